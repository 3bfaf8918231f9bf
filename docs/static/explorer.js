// The frontier explorer: draws EXPLORER (explorer_data.js) into the page explorer.md.
"use strict";

(() => {
  const { digits } = Plots;
  const find = (id) => document.getElementById(`explorer-${id}`);

  function draw() {
    const pair = EXPLORER.pairs[find("pair").value];
    const slider = find("slider");
    const step = Number(slider.value);
    let weight = `w = ${digits(pair.w[step])}`;
    if (pair.name === "LL-SE") {
      const power = digits(pair.w[step]).replace("−", "");
      weight += `: the real probabilities to the power ${power}, normalised`;
    }
    slider.setAttribute("aria-valuetext", weight);
    find("weight").textContent = weight;
    const model = [pair.quality[step], pair.diversity[step]];
    const frontier = pair.quality.map((u, i) => [u, pair.diversity[i]]);
    const high = Plots.heightFor(0.4, ...EXPLORER.p, ...pair.q[step]); // rarely jumps
    Plots.bars(find("bars"), { p: EXPLORER.p, q: pair.q[step], words: EXPLORER.texts, high });
    Plots.plane(find("plane"), { axes: pair.axes, real: pair.real, model, lines: { frontier } });
    pair.axes.forEach((axis, i) => (find(`axis-${i}`).textContent = axis));
    model.forEach((value, i) => (find(`model-${i}`).textContent = digits(value, 4)));
    pair.real.forEach((value, i) => (find(`real-${i}`).textContent = digits(value, 4)));
    find("verdict").textContent = pair.gain
      ? "The real distribution is not on the frontier: at its diversity, a model " +
        `${pair.found ? "found by search " : ""}has ${digits(pair.gain)} more of ${pair.axes[0]}.`
      : "The real distribution is on the frontier: no model beats it.";
  }

  const choice = find("pair");
  EXPLORER.pairs.forEach((pair, i) => choice.add(new Option(pair.name, i)));
  choice.addEventListener("change", () => {
    const slider = find("slider");
    const share = slider.value / slider.max;
    slider.max = EXPLORER.pairs[choice.value].w.length - 1;
    slider.value = Math.round(share * slider.max);
    draw();
  });
  find("slider").addEventListener("input", draw);
  find("slider").max = EXPLORER.pairs[0].w.length - 1;
  find("slider").value = 15;
  draw();
  find("app").hidden = false;
})();
