// Real distributions for "your own pair": read from numbers, drawn at random, or with
// one probability set by hand.
"use strict";

const RealDistribution = (() => {
  const MOST_TEXTS = 256;
  const DIGITS = 5;
  const total = (values) => values.reduce((sum, value) => sum + value, 0);

  // Numbers between spaces, commas or lines; an Error says, as the library does, why
  // they are no distribution. Nothing is repaired silently: `weights` only divides.
  function read(text) {
    const p = numbers(text);
    const sum = total(p);
    if (Math.abs(sum - 1) > 1e-10 + p.length * Number.EPSILON) {
      throw new Error(`P must sum to 1, got ${Number(sum.toPrecision(12))}; divide the numbers by their sum`);
    }
    return p;
  }

  function numbers(text) {
    const words = text.split(/[\s,;]+/).filter(Boolean);
    const p = words.map(Number);
    const odd = p.findIndex((x) => !Number.isFinite(x));
    if (odd >= 0) throw new Error(`P: expected numbers such as 0.25, got ${words[odd]}`);
    if (p.length < 2) throw new Error(`P: expected the probabilities of 2 texts or more, got ${p.length}`);
    if (p.length > MOST_TEXTS) throw new Error(`P: expected at most ${MOST_TEXTS} texts here, got ${p.length}`);
    const negative = p.findIndex((x) => x < 0);
    if (negative >= 0) throw new Error(`P must be nonnegative, got ${p[negative]} at index ${negative}`);
    return p;
  }

  function weights(text) {
    const p = numbers(text);
    const sum = total(p);
    if (!(sum > 0)) throw new Error("P: the numbers are all zero; at least one must be positive");
    return p.map((x) => x / sum);
  }

  // --- At random --------------------------------------------------------------------
  // Uniform numbers in (0, 1) from a seed: mulberry32.
  function generator(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 32;
    };
  }

  const normal = (random) => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());

  // A gamma variable by Marsaglia and Tsang's method; below 1 from that of shape + 1.
  function gamma(shape, random) {
    if (shape < 1) return gamma(shape + 1, random) * random() ** (1 / shape);
    const d = shape - 1 / 3;
    for (;;) {
      const x = normal(random);
      const v = (1 + x / Math.sqrt(9 * d)) ** 3;
      if (v > 0 && Math.log(random()) < x * x / 2 + d - d * v + d * Math.log(v)) return d * v;
    }
  }

  // Dirichlet probabilities in falling order, rounded, each of at least one unit.
  function draw(size, concentration, seed) {
    const random = generator(seed);
    const parts = Array.from({ length: size }, () => gamma(concentration, random));
    const unit = 10 ** -DIGITS;
    const sum = total(parts);
    const p = parts.map((x) => Math.max(x / sum, unit)).sort((a, b) => b - a);
    return rounded(p, 0);
  }

  // --- By hand ----------------------------------------------------------------------
  // One text gets a probability, and the others share the rest in proportion.
  function withText(p, text, value) {
    const rest = 1 - p[text];
    const others = p.map((x) => (rest > 0 ? x / rest : 1 / (p.length - 1)) * (1 - value));
    others[text] = value;
    return rounded(others, text);
  }

  // Rounded to five digits; one text takes what is left.
  function rounded(p, text) {
    const units = p.map((x) => Math.round(x * 10 ** DIGITS));
    units[text] += 10 ** DIGITS - total(units);
    if (units[text] < 0) { // many small numbers were rounded up
      units[units.indexOf(Math.max(...units))] += units[text];
      units[text] = 0;
    }
    return units.map((n) => n / 10 ** DIGITS);
  }

  const write = (p) => p.map(String).join(" ");

  return { draw, read, weights, withText, write };
})();
