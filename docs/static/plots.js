// What the explorers share: numbers in words, and two figures as SVG.
"use strict";

const Plots = (() => {
  const BARS = { width: 360, height: 300, left: 46, right: 4, top: 8, bottom: 52 };
  const PLANE = { width: 360, height: 300, left: 70, right: 12, top: 8, bottom: 40 };
  const LETTER = 7.5; // its width
  const MOST_WORDS = 20; // that fit below the bars

  function element(parent, name, attributes, text = "") {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return parent.appendChild(node);
  }

  // Three or more significant digits, with a minus sign instead of a hyphen.
  function digits(x, count = 3) {
    if (x === null || x === -Infinity) return "−∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    if (size < 1e-4 || size >= 1e6) return x.toExponential(count - 1).replaceAll("-", "−");
    return x.toPrecision(count).replace("-", "−");
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
    const long = places > 4 || Math.abs(high) >= 1e5 || Math.abs(low) >= 1e5;
    return Array.from({ length: count }, (_, i) => {
      const value = (first + i) * step;
      const text = long ? String(Number(value.toPrecision(6))) : value.toFixed(places);
      return [value, text.replaceAll("-", "−")];
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

  // The height of the axis of probabilities: a round number above the greatest.
  const heightFor = (...probabilities) =>
    [0.05, 0.1, 0.2, 0.4, 0.6, 1].find((high) => probabilities.every((x) => x <= high)) ?? 1;

  // Bars of the real distribution, outlined, and of a model, filled. Returns the text
  // and the probability at a point of the screen.
  function bars(svg, { p, q, words, high = heightFor(...p, ...q) }) {
    svg.replaceChildren();
    const named = words.length <= MOST_WORDS;
    const floor = BARS.height - BARS.bottom + (named ? 0 : 22);
    const y = scale(0, high, floor, BARS.top);
    verticalAxis(svg, BARS, y, 0, high, "probability");
    const width = (BARS.width - BARS.left - BARS.right) / p.length;
    const bar = (kind, value, i, margin) =>
      element(svg, "rect", {
        class: kind,
        x: BARS.left + (i + margin) * width,
        y: y(value),
        width: (1 - 2 * margin) * width,
        height: floor - y(value),
        "stroke-width": named ? 1 : 0.5,
      });
    q.forEach((value, i) => bar("model", value, i, 0.2));
    p.forEach((value, i) => bar("real", value, i, 0.08));
    const middle = (i) => BARS.left + (i + 0.5) * width;
    if (named) {
      words.forEach((word, i) => {
        const place = `translate(${middle(i) + 4} ${floor + 5}) rotate(-90)`;
        element(svg, "text", { class: "word", transform: place, "text-anchor": "end" }, word);
      });
    }
    const below = { x: (BARS.left + BARS.width) / 2, y: BARS.height - 4, "text-anchor": "middle" };
    element(svg, "text", below, named ? "text" : `${p.length} texts`);
    const [shown, other] = q.length ? [q, "the real one"] : [p, ""];
    const most = shown.indexOf(Math.max(...shown));
    svg.setAttribute(
      "aria-label",
      `Bars: probability of each of ${p.length} texts. The ${q.length ? "model" : "real distribution"}'s ` +
        `greatest is ${digits(shown[most])}, of text ${words[most]}` +
        `${other && `, where ${other} is ${digits(p[most])}`}.`,
    );
    return (event) => {
      const { left, top, width: shown } = svg.getBoundingClientRect();
      const unit = BARS.width / shown;
      const [x, height] = [(event.clientX - left) * unit, (event.clientY - top) * unit];
      const value = ((floor - height) / (floor - BARS.top)) * high;
      const text = Math.floor((x - BARS.left) / width);
      return { text: clamp(text, 0, p.length - 1), value: clamp(value, 0, 1) };
    };
  }

  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  function starAt(svg, x, y) {
    const spikes = Array.from({ length: 10 }, (_, i) => {
      const [radius, angle] = [i % 2 ? 5 : 11, (Math.PI * i) / 5];
      return `${x + radius * Math.sin(angle)},${y - radius * Math.cos(angle)}`;
    });
    element(svg, "polygon", { class: "star", points: spikes.join(" ") });
  }

  // The plane of quality and diversity, or the part of it inside a window: lines, the
  // shaded models that beat the real one, the real one as a star and a model as a dot.
  function plane(svg, { axes, real, model, lines = {}, better = [], ring = null, inside = null }) {
    svg.replaceChildren();
    const shown = [real, model, ...Object.values(lines).flat()];
    const range = (values) => {
      const finite = values.filter(Number.isFinite);
      const [from, to] = [Math.min(...finite), Math.max(...finite)];
      const margin = 0.06 * (to - from) || 0.5;
      return [from - margin, to + margin];
    };
    const [left, right] = inside?.[0] ?? range(shown.map(([u]) => u));
    const [bottom, top] = inside?.[1] ?? range(shown.map(([, v]) => v));
    const floor = PLANE.height - PLANE.bottom;
    const x = scale(left, right, PLANE.left, PLANE.width - PLANE.right);
    const y = scale(bottom, top, floor, PLANE.top);
    verticalAxis(svg, PLANE, y, bottom, top, axes[1]);
    const across = ticks(left, right);
    const letters = across.reduce((count, [, text]) => count + text.length + 2, 0);
    const every = Math.ceil((letters * LETTER) / (PLANE.width - PLANE.left));
    across.forEach(([value, text], i) => {
      element(svg, "line", { class: "grid", x1: x(value), x2: x(value), y1: PLANE.top, y2: floor });
      if (i % every) return; // all would touch
      element(svg, "text", { x: x(value), y: floor + 16, "text-anchor": "middle" }, text);
    });
    const below = { x: (PLANE.left + PLANE.width) / 2, y: PLANE.height - 5, "text-anchor": "middle" };
    element(svg, "text", below, axes[0]);
    // An inner svg cuts off what lies outside the window.
    const window = { x: PLANE.left, y: 0, width: PLANE.width - PLANE.left, height: floor + 3 };
    const cut = element(svg, "svg", { ...window, viewBox: Object.values(window).join(" ") });
    const path = (points) => points.map(([u, v]) => `${x(u)},${y(v)}`).join(" ");
    if (better.length) element(cut, "polygon", { class: "better", points: path(better) });
    for (const [kind, points] of Object.entries(lines)) {
      element(cut, "polyline", { class: kind, points: path(points) });
    }
    starAt(svg, x(real[0]), y(real[1]));
    if (ring) element(svg, "circle", { class: "ring", cx: x(ring[0]), cy: y(ring[1]), r: 6 });
    if (model !== real) element(svg, "circle", { class: "dot", cx: x(model[0]), cy: y(model[1]), r: 5 });
    const at = (point) => point.map((value) => digits(value, 4)).join(" and ");
    const where = model === real ? "" : `the model at ${at(model)}, `;
    svg.setAttribute(
      "aria-label",
      `The plane of ${axes.join(" and ")}: ${where}the real distribution at ${at(real)}.`,
    );
  }

  return { bars, digits, heightFor, plane };
})();
