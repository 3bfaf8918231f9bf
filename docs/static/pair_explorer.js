// "Your own pair" of explorer.md: formulas f and g and a real distribution, and at once
// the frontier, QDisc, and a model that wins where there is one.
"use strict";

(() => {
  const { digits } = Plots;
  const find = (id) => document.getElementById(`pair-${id}`);
  const AXES = ["quality: mean of f(P)", "diversity: sum of g(Q)"];
  let height; // of the axis of probabilities: it stays while a bar is dragged

  // What an input holds, or null; its error is shown below it.
  function readInput(name, read) {
    const input = find(name);
    const error = find(`${name}-error`);
    try {
      const value = read(input.value);
      error.textContent = "";
      input.removeAttribute("aria-invalid");
      return value;
    } catch (refusal) {
      error.textContent = refusal.message;
      input.setAttribute("aria-invalid", "true");
      return null;
    }
  }

  function update() {
    const start = performance.now();
    const f = readInput("f", Formulas.read);
    const g = readInput("g", Formulas.read);
    const p = readInput("p", RealDistribution.read);
    find("divide").hidden = !find("p-error").textContent.includes("divide");
    if (p) followText(p);
    const shown = f && g && p ? answer(f, g, p) : { said: "" };
    if (p) drawBars(p, shown.won ? shown.q : []);
    if (shown.points) drawPlane(shown);
    else find("plane").replaceChildren();
    find("table").hidden = !shown.points;
    find("verdict").textContent = shown.said;
    find("verdict").classList.toggle("beaten", Boolean(shown.won));
    find("proof").hidden = !(f && g);
    find("example").value = `${find("f").value} | ${find("g").value}`; // if it is one
    if (find("example").selectedIndex < 0) find("example").value = "";
    if (f && g) command("check", f, g, "");
    if (f && g) command("qdisc", f, g, " --p p.txt");
    find("app").dataset.milliseconds = (performance.now() - start).toFixed(1);
  }

  function answer(f, g, p) {
    try {
      const posed = BestModels.pose(f, g, p);
      const found = BestModels.discrepancy(posed, p);
      const model = posed.metrics(found.q);
      fillTable(posed.real, model, found.won);
      return { ...posed, ...found, model, said: verdict(found, posed.real, model) };
    } catch (refusal) {
      return { said: `${refusal.message}.` };
    }
  }

  function verdict({ qdisc, drate, won }, real, model) {
    if (won === "quality") {
      const share = drate === null ? "" : `, ${digits(100 * drate)} % of the range of quality (DRate)`;
      return `A model beats P: as diverse, it has ${digits(qdisc)} more quality (QDisc)${share}.`;
    }
    if (won === "diversity") {
      return `A model beats P: of the same quality, it has ${digits(model[1] - real[1])} more diversity.`;
    }
    return "No better model found: P lies on the frontier, up to rounding.";
  }

  function fillTable(real, model, won) {
    [real, model].forEach((metrics, row) =>
      metrics.forEach((value, i) => (find(`${["real", "model"][row]}-${i}`).textContent = digits(value, 5))),
    );
    find("model-row").hidden = !won;
  }

  function command(name, f, g, more) {
    find(name).textContent = `qdtheory ${name} --f "${f.text}" --g "${g.text}"${more}`;
  }

  // --- The figures ------------------------------------------------------------------
  let pointAt = null;

  function drawBars(p, q) {
    if (dragged === null) height = Plots.heightFor(...p, ...q);
    const words = p.map((_, i) => String(i + 1));
    pointAt = Plots.bars(find("bars"), { p, q, words, high: height });
  }

  // A window round P where a model wins, if it is asked for: three times what it wins.
  function windowOf([u, v], better, qdisc) {
    const height = Math.max(...better.map(([, diversity]) => diversity - v));
    if (!find("zoom").checked || !(qdisc > 0 && height > 0)) return null;
    return [
      [u - 2 * qdisc, u + 2 * qdisc],
      [v - 2 * height, v + 2 * height],
    ];
  }

  function drawPlane(shown) {
    const { points, near, weight, real, model, won, qdisc } = shown;
    const wins = won === "quality";
    const closer = wins && Number.isFinite(weight) ? near(weight) : [];
    const frontier = [...points, ...closer].sort(([u], [other]) => u - other);
    const better = wins ? [real, ...along(frontier, real), [model[0], real[1]]] : [];
    Plots.plane(find("plane"), {
      axes: AXES,
      real,
      model: won ? model : real,
      lines: { frontier },
      better,
      inside: windowOf(real, better, qdisc) ?? partOf(shown),
    });
  }

  // Of a frontier that falls without end, as with log(x), the part about P.
  function partOf({ points, endless, real: [u, v] }) {
    if (!endless) return null;
    const top = Math.max(...points.map(([, diversity]) => diversity));
    const bottom = v - 3 * Math.max(top - v, 0.05 * Math.abs(top));
    const seen = points.filter(([, diversity]) => diversity >= bottom).map(([quality]) => quality);
    const [left, right] = [Math.min(...seen), Math.max(...seen, u)];
    const margin = 0.06 * (right - left) || 0.5;
    return [
      [left - margin, right + margin],
      [bottom, top + 0.06 * (top - bottom)],
    ];
  }

  // The part of the frontier that is better than P in both, from straight above P on.
  function along(points, [u, v]) {
    const after = points.findIndex(([quality]) => quality >= u);
    const start = [];
    if (after > 0) {
      const [[u0, v0], [u1, v1]] = [points[after - 1], points[after]];
      start.push([u, v0 + ((v1 - v0) * (u - u0)) / (u1 - u0 || 1)]);
    }
    return [...start, ...points.filter(([quality, diversity]) => quality >= u && diversity >= v)];
  }

  // --- The real distribution by hand ------------------------------------------------
  let dragged = null;

  function setP(p) {
    find("p").value = RealDistribution.write(p);
    update();
  }

  function drawP() {
    const size = Math.min(Math.max(Math.round(Number(find("size").value)) || 2, 2), 64);
    const concentration = 10 ** Number(find("concentration").value);
    find("concentration-shown").textContent = digits(concentration, 2);
    setP(RealDistribution.draw(size, concentration, Number(find("seed").value)));
  }

  function chosen(p) {
    return Math.min(Math.max(Math.round(Number(find("text").value)) || 1, 1), p.length) - 1;
  }

  function followText(p) {
    find("text").max = p.length;
    const value = p[chosen(p)];
    find("probability").value = value;
    find("probability-shown").textContent = digits(value, 4);
  }

  function setText(text, value) {
    const p = readInput("p", RealDistribution.read);
    if (p) setP(RealDistribution.withText(p, text, value));
  }

  function drag(event) {
    const { text, value } = pointAt(event);
    dragged ??= text;
    find("text").value = dragged + 1;
    setText(dragged, value);
  }

  function listen() {
    for (const name of ["f", "g", "p"]) find(name).addEventListener("input", update);
    for (const name of ["size", "seed", "concentration"]) find(name).addEventListener("input", drawP);
    find("another").addEventListener("click", () => {
      find("seed").value = Number(find("seed").value) + 1;
      drawP();
    });
    find("divide").addEventListener("click", () => {
      const p = readInput("p", RealDistribution.weights);
      if (p) setP(p);
    });
    find("example").addEventListener("change", () => {
      if (!find("example").value) return;
      [find("f").value, find("g").value] = find("example").value.split(" | ");
      update();
    });
    for (const name of ["text", "zoom"]) find(name).addEventListener("input", update);
    find("probability").addEventListener("input", () => {
      const p = readInput("p", RealDistribution.read);
      if (p) setText(chosen(p), Number(find("probability").value));
    });
    const bars = find("bars");
    bars.addEventListener("pointerdown", (event) => {
      if (!pointAt || find("p-error").textContent) return;
      bars.setPointerCapture(event.pointerId);
      drag(event);
    });
    bars.addEventListener("pointermove", (event) => dragged !== null && drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      bars.addEventListener(end, () => {
        dragged = null;
        update();
      });
    }
  }

  listen();
  drawP();
  find("app").hidden = false;
})();
