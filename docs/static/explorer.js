// The frontier explorer: draws EXPLORER, which explorer_data.py wrote, into explorer.md.
"use strict";

(() => {
  const { digits } = Plots;
  const find = (id) => document.getElementById(`explorer-${id}`);
  const show = (id, text) => (find(id).textContent = text);

  function draw() {
    const { texts, p, pairs } = EXPLORER[find("world").value];
    const pair = pairs[find("pair").value];
    const step = find("slider").value;
    const w = digits(pair.w[step]);
    const power = `: the real probabilities to the power ${w.replace("−", "")}, normalised`;
    const weight = `w = ${w}${pair.name === "LL-SE" ? power : ""}`;
    show("weight", weight);
    find("slider").setAttribute("aria-valuetext", weight);
    const model = [pair.quality[step], pair.diversity[step]];
    const frontier = pair.quality.map((u, i) => [u, pair.diversity[i]]);
    Plots.bars(find("bars"), { p, q: pair.q[step], words: texts });
    Plots.plane(find("plane"), { names: pair.axes, real: pair.real, model, frontier });
    for (const i of [0, 1]) {
      show(`axis-${i}`, pair.axes[i]);
      show(`model-${i}`, digits(model[i], 4));
      show(`real-${i}`, digits(pair.real[i], 4));
    }
    const verdict = pair.gain
      ? "The real distribution is not on the frontier: at its diversity, a model " +
        `${pair.found ? "found by search " : ""}has ${digits(pair.gain)} more of ${pair.axes[0]}.`
      : "The real distribution is on the frontier: no model beats it.";
    show("verdict", verdict);
  }

  EXPLORER.forEach(({ name }, i) => find("world").add(new Option(name, i)));
  EXPLORER[0].pairs.forEach(({ name }, i) => find("pair").add(new Option(name, i)));
  for (const id of ["world", "pair", "slider"]) find(id).addEventListener("input", draw);
  draw();
  find("app").hidden = false;
})();
