// Numbers in words, and the two figures of explorer.md as SVG.
"use strict";

const Plots = (() => {
  const [WIDTH, HEIGHT] = [360, 300];
  const STAR = "0,-11 2.9,-4 10.5,-3.4 4.8,1.5 6.5,8.9 0,5 -6.5,8.9 -4.8,1.5 -10.5,-3.4 -2.9,-4";

  function element(parent, name, attributes, text = "") {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return parent.appendChild(node);
  }

  // Significant digits, with a minus sign instead of a hyphen; null is minus infinity.
  function digits(x, count = 3) {
    if (x === null) return "−∞";
    if (x === 0) return "0";
    const tiny = Math.abs(x) < 1e-4;
    return (tiny ? x.toExponential(count - 1) : x.toPrecision(count)).replaceAll("-", "−");
  }

  // The map of an interval of values onto one of pixels.
  const scale = (low, high, from, to) => (x) => from + ((x - low) / (high - low)) * (to - from);

  // Round values inside an interval, four to nine of them.
  function ticks(low, high) {
    const power = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = [5, 2, 1].map((n) => n * power).find((s) => (high - low) / s >= 4);
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i += 1) {
      found.push([i * step, (i * step).toFixed(places).replace("-", "−")]);
    }
    return found;
  }

  // Lines and labels of the vertical axis between top and floor, and both names.
  function axes(svg, { left, floor, y, low, high, names }) {
    svg.replaceChildren();
    for (const [value, text] of ticks(low, high)) {
      element(svg, "line", { class: "grid", x1: left, x2: WIDTH, y1: y(value), y2: y(value) });
      element(svg, "text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, text);
    }
    const upwards = `translate(11 ${floor / 2}) rotate(-90)`;
    element(svg, "text", { transform: upwards, "text-anchor": "middle" }, names[1]);
    const below = { x: (left + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" };
    element(svg, "text", below, names[0]);
  }

  // Bars of the real distribution, outlined, and of a model, filled, of each word.
  function bars(svg, { p, q, words }) {
    const [left, floor] = [46, 248];
    const high = [0.4, 0.6, 1].find((x) => Math.max(...p, ...q) <= x);
    const y = scale(0, high, floor, 8);
    axes(svg, { left, floor, y, low: 0, high, names: ["text", "probability"] });
    const width = (WIDTH - left) / p.length;
    const bar = (kind, value, i, margin) =>
      element(svg, "rect", {
        class: kind,
        x: left + (i + margin) * width,
        y: y(value),
        width: (1 - 2 * margin) * width,
        height: floor - y(value),
      });
    q.forEach((value, i) => bar("model", value, i, 0.2));
    p.forEach((value, i) => bar("real", value, i, 0.08));
    words.forEach((word, i) => {
      const place = `translate(${left + (i + 0.5) * width + 4} ${floor + 5}) rotate(-90)`;
      element(svg, "text", { class: "word", transform: place, "text-anchor": "end" }, word);
    });
    const most = q.indexOf(Math.max(...q));
    const greatest = `${digits(q[most])}, of text ${words[most]}, really of ${digits(p[most])}`;
    svg.setAttribute("aria-label", `Bars of ${p.length} texts. The model's greatest: ${greatest}.`);
  }

  // The plane of quality and diversity: a frontier, the real distribution as a star and a
  // model as a dot.
  function plane(svg, { names, real, model, frontier }) {
    const [left, floor] = [70, 260];
    const range = (values) => {
      const [from, to] = [Math.min(...values), Math.max(...values)];
      const margin = 0.06 * (to - from);
      return [from - margin, to + margin];
    };
    const points = [real, ...frontier];
    const [west, east] = range(points.map(([u]) => u));
    const [low, high] = range(points.map(([, v]) => v));
    const x = scale(west, east, left, WIDTH - 12);
    const y = scale(low, high, floor, 8);
    axes(svg, { left, floor, y, low, high, names });
    const across = ticks(west, east);
    across.forEach(([value, text], i) => {
      element(svg, "line", { class: "grid", x1: x(value), x2: x(value), y1: 8, y2: floor });
      if (across.length > 5 && i % 2) return; // all would touch
      element(svg, "text", { x: x(value), y: floor + 16, "text-anchor": "middle" }, text);
    });
    const path = frontier.map(([u, v]) => `${x(u)},${y(v)}`).join(" ");
    element(svg, "polyline", { class: "frontier", points: path });
    const star = `translate(${x(real[0])} ${y(real[1])})`;
    element(svg, "polygon", { class: "star", points: STAR, transform: star });
    element(svg, "circle", { class: "dot", cx: x(model[0]), cy: y(model[1]), r: 5 });
    const at = (point) => point.map((value) => digits(value, 4)).join(" and ");
    const label = `The plane of ${names.join(" and ")}: the model at ${at(model)}, `;
    svg.setAttribute("aria-label", `${label}the real distribution at ${at(real)}.`);
  }

  return { bars, digits, plane };
})();
