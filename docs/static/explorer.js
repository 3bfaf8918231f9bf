// The frontier explorer: draws EXPLORER (explorer_data.js) into the page explorer.md.
"use strict";

(() => {
  const BARS = { width: 360, height: 300, left: 46, right: 4, top: 8, bottom: 52 };
  const PLANE = { width: 360, height: 300, left: 52, right: 12, top: 8, bottom: 40 };
  const find = (id) => document.getElementById(`explorer-${id}`);

  function element(parent, name, attributes, text = "") {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return parent.appendChild(node);
  }

  // Three or more significant digits, with a minus sign instead of a hyphen.
  function digits(x, count = 3) {
    if (x === null) return "−∞";
    if (x === 0) return "0";
    return (Math.abs(x) < 1e-3 ? x.toFixed(4) : x.toPrecision(count)).replace("-", "−");
  }

  // The map of an interval of values onto one of pixels.
  const scale = (low, high, from, to) => (x) => from + ((x - low) / (high - low)) * (to - from);

  // Round values inside an interval, four to nine of them.
  function ticks(low, high) {
    const power = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = [5, 2, 1].map((n) => n * power).find((s) => (high - low) / s >= 4);
    const first = Math.ceil(low / step);
    const count = Math.floor(high / step) - first + 1;
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return Array.from({ length: count }, (_, i) => {
      const value = (first + i) * step;
      return [value, value.toFixed(places).replace("-", "−")];
    });
  }

  function verticalAxis(svg, box, y, low, high, label) {
    for (const [value, text] of ticks(low, high)) {
      element(svg, "line", { class: "grid", x1: box.left, x2: box.width - box.right, y1: y(value), y2: y(value) });
      element(svg, "text", { x: box.left - 5, y: y(value) + 4, "text-anchor": "end" }, text);
    }
    const middle = (box.top + box.height - box.bottom) / 2;
    element(svg, "text", { transform: `translate(11 ${middle}) rotate(-90)`, "text-anchor": "middle" }, label);
  }

  // A bar for the model beside one for the real distribution, text by text.
  function drawBars(pair, step) {
    const svg = find("bars");
    svg.replaceChildren();
    const q = pair.q[step];
    const high = Math.max(...q, ...EXPLORER.p) <= 0.4 ? 0.4 : 1;
    const floor = BARS.height - BARS.bottom;
    const y = scale(0, high, floor, BARS.top);
    verticalAxis(svg, BARS, y, 0, high, "probability");
    const width = (BARS.width - BARS.left - BARS.right) / q.length;
    EXPLORER.texts.forEach((text, i) => {
      const x = BARS.left + i * width;
      const bar = (kind, value, from) =>
        element(svg, "rect", { class: kind, x: from, y: y(value), width: 0.38 * width, height: floor - y(value) });
      bar("real", EXPLORER.p[i], x + 0.1 * width);
      bar("model", q[i], x + 0.52 * width);
      element(svg, "text", { class: "word", transform: `translate(${x + width / 2 + 4} ${floor + 5}) rotate(-90)`, "text-anchor": "end" }, text);
    });
    element(svg, "text", { x: (BARS.left + BARS.width) / 2, y: BARS.height - 4, "text-anchor": "middle" }, "text");
    const most = q.indexOf(Math.max(...q));
    svg.setAttribute(
      "aria-label",
      `Bars: probability of each of ${q.length} texts. The model's greatest is ` +
        `${digits(q[most])}, of ${EXPLORER.texts[most]}, where the real one is ${digits(EXPLORER.p[most])}.`,
    );
  }

  // The frontier, the model on it (a dot) and the real distribution (a star).
  function drawPlane(pair, step) {
    const svg = find("plane");
    svg.replaceChildren();
    const range = (values) => {
      const margin = 0.06 * (Math.max(...values) - Math.min(...values));
      return [Math.min(...values) - margin, Math.max(...values) + margin];
    };
    const [left, right] = range(pair.quality);
    const [low, high] = range(pair.diversity);
    const floor = PLANE.height - PLANE.bottom;
    const x = scale(left, right, PLANE.left, PLANE.width - PLANE.right);
    const y = scale(low, high, floor, PLANE.top);
    verticalAxis(svg, PLANE, y, low, high, pair.axes[1]);
    for (const [value, text] of ticks(left, right)) {
      element(svg, "line", { class: "grid", x1: x(value), x2: x(value), y1: PLANE.top, y2: floor });
      element(svg, "text", { x: x(value), y: floor + 16, "text-anchor": "middle" }, text);
    }
    element(svg, "text", { x: (PLANE.left + PLANE.width) / 2, y: PLANE.height - 5, "text-anchor": "middle" }, pair.axes[0]);
    const points = pair.quality.map((u, i) => `${x(u)},${y(pair.diversity[i])}`);
    element(svg, "polyline", { class: "frontier", points: points.join(" ") });
    const spikes = Array.from({ length: 10 }, (_, i) => {
      const [radius, angle] = [i % 2 ? 5 : 11, (Math.PI * i) / 5];
      return `${x(pair.real[0]) + radius * Math.sin(angle)},${y(pair.real[1]) - radius * Math.cos(angle)}`;
    });
    element(svg, "polygon", { class: "star", points: spikes.join(" ") });
    element(svg, "circle", { class: "dot", cx: x(pair.quality[step]), cy: y(pair.diversity[step]), r: 5 });
    svg.setAttribute(
      "aria-label",
      `The plane of ${pair.axes.join(" and ")}: the model at ${digits(pair.quality[step], 4)} and ` +
        `${digits(pair.diversity[step], 4)}, the real distribution at ${pair.real.map((v) => digits(v, 4)).join(" and ")}.`,
    );
  }

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
    drawBars(pair, step);
    drawPlane(pair, step);
    pair.axes.forEach((axis, i) => (find(`axis-${i}`).textContent = axis));
    const model = [pair.quality[step], pair.diversity[step]];
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
