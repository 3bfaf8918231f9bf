// The frontier and QDisc of a pair U(Q) = sum Q_i u_i, V(Q) = sum g(Q_i), as
// qdtheory/theory/frontier.py and qdtheory/qdisc/solve.py have them, by
// root-finding: here for a strictly concave g, in concave_convex.js for some others.
//
// A model that no other beats satisfies g'(Q_i) = g'(m) + w (max u - u_i) wherever
// Q_i > 0. Here m is its largest probability, the root of sum Q_i = 1, and w > 0 the
// weight of quality: for QDisc the root of V(Q) = V(P). So three roots are nested.
"use strict";

const BestModels = (() => {
  const EPS = Number.EPSILON;
  const NOISE = 8 * EPS; // of a sum of a few terms
  const LEAST = 1e-100; // the smallest probability that is told from 0
  const [EVEN, POINTS] = [12, 48]; // of a frontier that is drawn
  const CLOSE = 12; // more of them on either side of P
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const digits = (x) => String(Number(x.toPrecision(6)));

  // --- What must be known of g ------------------------------------------------------
  const GRID = [
    ...range(64).map((i) => 10 ** (-12 + (9 * i) / 63)),
    ...range(960).map((i) => 2e-3 + (0.998 * i) / 959),
  ];

  // A value and a slope that 64 bits do not tell: a rise between neighbours that lies
  // outside their two slopes, as where (1 + x) - 1 has lost its digits.
  function requireTold(g) {
    const grid = [...range(352).map((i) => LEAST * 10 ** (i / 4)), ...GRID];
    const jets = grid.map((x) => g.jet(x));
    const [height, usual] = [0, 1].map((n) => {
      const parts = jets.slice(-960).map((jet) => jet[n]).filter(Number.isFinite);
      return Math.max(...parts) - Math.min(...parts);
    });
    for (let i = 1; i < grid.length; i++) {
      const [[v, s], [w, t]] = [jets[i - 1], jets[i]];
      if (grid[i] > GRID[0] && Number.isNaN(s + t)) continue; // whyNotConcave says it
      const step = grid[i] - grid[i - 1];
      const size = Math.max(Math.abs(s), Math.abs(t), grid[i] > 2e-3 ? usual : 0);
      const noise = NOISE * Math.max(Math.abs(v), Math.abs(w)) + 1e-12 * height;
      const error = noise / step + 1e-6 * size;
      const rise = (w - v) / step;
      if (rise >= Math.min(s, t) - error && rise <= Math.max(s, t) + error) continue;
      throw new Error(
        `64 bits do not tell g near ${digits(grid[i])}: its values rise by ${digits(rise)} an x, its slopes are ` +
          `${digits(s)} and ${digits(t)}; write g without jumps and without differences of nearly equal numbers`,
      );
    }
  }

  // Why g is not strictly concave, as far as the grid shows; "" if it is.
  function whyNotConcave(g) {
    const slopes = GRID.map((x) => g.jet(x)[1]);
    const bad = slopes.findIndex(Number.isNaN);
    if (bad >= 0) return `g must be differentiable on (0, 1], but g' is NaN at ${digits(GRID[bad])}`;
    const rises = slopes.slice(1).map((slope, i) => slope - slopes[i]);
    const noise = rises.map((_, i) => NOISE * Math.max(Math.abs(slopes[i]), Math.abs(slopes[i + 1])));
    if (rises.some((rise, i) => rise > noise[i])) {
      const worst = rises.reduce((most, rise, i) => (rise > rises[most] ? i : most), 0);
      const [from, to] = [worst, worst + 1].map((i) => `g'(${digits(GRID[i])}) = ${digits(slopes[i])}`);
      return `g must be strictly concave on [0, 1], but ${from} rises to ${to}`;
    }
    const flat = rises.map((rise, i) => rise >= -noise[i]);
    // Near 0 neighbours are too close to decide; beyond, three flat steps are a stretch.
    const stretch = flat.findIndex((_, i) => i >= 64 && flat[i] && flat[i + 1] && flat[i + 2]);
    if (stretch < 0) return "";
    const where = digits(GRID[stretch]);
    return `g must be strictly concave on [0, 1], but it is linear, to within rounding, near ${where}`;
  }

  function slopeAtZero(g) {
    const slope = g.jet(0)[1];
    if (Number.isNaN(slope)) throw new Error("64 bits do not tell g' near 0: it is NaN there");
    return slope;
  }

  // The range of g without the line through its ends: the unit of diversity.
  function chordHeight(g) {
    const values = range(1025).map((i) => g.jet(i / 1024)[0]);
    const [first, last] = [values[0], values[1024]];
    const above = values.map((value, i) => value - first - ((last - first) * i) / 1024);
    return Math.max(...above) - Math.min(...above) || 1;
  }

  const diversity = (g, q) => total(q.map((x) => g.jet(x)[0]));

  // A text of probability 0 costs nothing, even if its score is minus infinity.
  const quality = (scores, q) => total(q.map((x, i) => (x === 0 ? 0 : x * scores[i])));

  // --- The inverse of g' ------------------------------------------------------------
  // Each text keeps its last x, as z = x or log x, with its target and dg'/dz: the next x
  // is sought from where this leads.
  function inverseOf(g) {
    const atZero = slopeAtZero(g);
    // If g'(0) is infinite, log x is closer to linear in g', and keeps its digits.
    const inLogs = atZero === Infinity;
    const floor = inLogs ? Math.log(LEAST) : 0;
    const [to, back] = inLogs ? [Math.log, Math.exp] : [(x) => x, (x) => x];
    const lowest = inLogs ? g.jet(LEAST)[1] : atZero;

    // The x in (0, top] with g'(x) = target, 0 if that is beyond g'(0): Newton steps in
    // a shrinking bracket.
    function solve(text, target, top) {
      if (!(target < lowest)) {
        text.z = NaN;
        return 0;
      }
      const ceiling = to(top);
      let [low, high] = [floor, ceiling];
      const inside = (guess) => guess > low && guess < high;
      const expected = text.z + (target - text.target) / text.rise;
      let z = [expected, text.z].find(inside) ?? (low + high) / 2;
      for (let step = 0; step < 100; step++) {
        const x = back(z);
        const [, slope, curvature] = g.jet(x);
        text.rise = inLogs ? curvature * x : curvature;
        if (slope > target) low = z;
        else high = z;
        const newton = z - (slope - target) / text.rise;
        // After a short step the error is of the order of its square.
        const close = Math.abs(newton - z) <= 1e-9 * Math.abs(z);
        const good = newton >= low && newton <= high && step % 8 < 7;
        z = good || close ? Math.min(newton, ceiling) : (low + high) / 2;
        if (close || high - low <= 2 * EPS * Math.abs(z)) break;
      }
      Object.assign(text, { z, target });
      return back(z);
    }

    // How x moves with its target.
    const rate = (text) => (inLogs ? back(text.z) : 1) / text.rise;
    const start = (x = 0) => ({ z: x > 0 ? to(x) : NaN, target: NaN, rise: NaN });
    return { atZero, rate, solve, start };
  }

  // Gaps to the greatest score; differences of a rounding error are ties.
  function gapsOf(scores) {
    const best = Math.max(...scores);
    return scores.map((u) => (best - u <= 4 * EPS * Math.abs(best) ? 0 : best - u));
  }

  // --- Models by their weight of quality --------------------------------------------
  function modelsOf(g, scores) {
    const inverse = inverseOf(g);
    const gaps = gapsOf(scores);
    const modes = gaps.filter((gap) => gap === 0).length;
    let last = gaps.map(() => inverse.start());
    let guess = NaN;

    function withLargest(m, w) {
      const level = g.jet(m)[1];
      return gaps.map((gap, i) => (gap === 0 ? m : inverse.solve(last[i], level + w * gap, m)));
    }

    // The best model of a weight; it starts at another model, or where the last one ended.
    function model(w, start = null) {
      if (start) {
        last = start.map(inverse.start);
        guess = Math.max(...start);
      }
      let [low, high] = [1 / gaps.filter(Number.isFinite).length, 1 / modes];
      if (w === 0 || low === high) return gaps.map((gap) => (gap < Infinity ? low : 0));
      let m = guess > low && guess < high ? guess : Math.sqrt(low * high);
      let [q, rates, change] = [[], [], 0];
      for (let step = 0; step < 100; step++) {
        q = withLargest(m, w);
        const excess = total(q) - 1;
        const own = g.jet(m)[2]; // dg'/dm, which moves all targets
        rates = q.map((x, i) => (gaps[i] === 0 ? 1 : x > 0 ? own * inverse.rate(last[i]) : 0));
        rates = rates.map((rate) => (Number.isFinite(rate) ? rate : 0));
        change = -excess / total(rates);
        if (Math.abs(excess) < 1e-13 || high - low <= 2 * EPS * high) break;
        if (excess > 0) high = m;
        else low = m;
        const newton = m + change;
        m = newton > low && newton < high && step % 8 < 7 ? newton : Math.sqrt(low * high);
      }
      // Where g'' is nearly 0, x moves much as m moves by its last digit: a last step in
      // x itself makes the sum right.
      q = q.map((x, i) => Math.max(x + rates[i] * change, 0));
      const mass = total(q);
      if (!(Math.abs(mass - 1) <= 1e-9)) return null; // g is too flat for 64 bits
      guess = m;
      return q.map((x) => x / mass);
    }

    // Beyond this weight only the best texts are left.
    const nearest = Math.min(...gaps.filter((gap) => gap > 0));
    const end = (inverse.atZero - g.jet(1 / modes)[1]) / nearest;
    return { model, end, onModes: gaps.map((gap) => (gap === 0 ? 1 / modes : 0)) };
  }

  function tooFlat() {
    throw new Error(
      "64 bits do not tell the best models apart: g is too flat near 0; bend it there, " +
        "for example by adding -1e-3*x**2",
    );
  }

  // Models of the frontier, from the most diverse to the best of quality, with weights
  // w = unit * share / (1 - share). First the shares are evenly spaced; then the longest
  // stretches of the curve are halved.
  function frontier({ model, end, onModes }, unit, metrics) {
    const most = end === Infinity ? 1 : end / (end + unit) || 0; // NaN if all scores tie
    const curve = [];
    const at = (share, start) => {
      const w = share >= most ? Infinity : (unit * share) / (1 - share);
      const q = w === Infinity ? onModes : model(w, start);
      return q && { share, w, q, point: metrics(q) };
    };
    for (let i = 0; i <= EVEN; i++) curve.push(at((most * i) / EVEN));
    const solved = curve.filter(Boolean);
    const sizes = [0, 1].map((axis) => {
      const values = solved.map(({ point }) => point[axis]).filter(Number.isFinite);
      return Math.max(...values) - Math.min(...values) || 1;
    });
    const length = ({ point: a }, { point: b }) => {
      const long = Math.hypot((a[0] - b[0]) / sizes[0], (a[1] - b[1]) / sizes[1]);
      return Number.isFinite(long) ? long : 0;
    };
    while (solved.length < POINTS) {
      const lengths = solved.slice(1).map((next, i) => length(solved[i], next));
      const longest = lengths.indexOf(Math.max(...lengths));
      const [from, to] = [solved[longest], solved[longest + 1]];
      const middle = to && at((from.share + to.share) / 2, from.q);
      if (!middle) break;
      solved.splice(longest + 1, 0, middle);
    }
    return solved;
  }

  // The largest weight in a bracket whose model is as diverse as asked; it is found by
  // halves and by chords, in log w.
  function weightOf(excessAt, from, to) {
    let [low, high] = [from, to].map(Math.log);
    let [atLow, atHigh] = [excessAt(from), excessAt(to)];
    for (let step = 0; step < 150 && high - low > 4 * EPS * Math.abs(low); step++) {
      const chord = low + ((high - low) * atLow) / (atLow - atHigh);
      const z = step % 3 < 2 && chord > low && chord < high ? chord : (low + high) / 2;
      if (z <= low || z >= high) break;
      const value = excessAt(Math.exp(z));
      // The end that stays is halved, or chords would creep (the Illinois rule).
      if (value >= 0) [low, atLow, atHigh] = [z, value, atHigh / 2];
      else [high, atHigh, atLow] = [z, value, atLow / 2];
    }
    return Math.exp(low);
  }

  function concaveModels(g, scores, metrics, unit) {
    const models = modelsOf(g, scores);
    const { model, end, onModes } = models;
    const curve = frontier(models, unit, metrics);
    const points = curve.map(({ point }) => point);

    // The best model with V(Q) >= v, and its weight; null if no model is so diverse.
    function bestAs(v, noise) {
      if (points.at(-1)[1] - v >= -noise) return { q: onModes, weight: Infinity };
      const less = points.findIndex(([, diversity]) => diversity < v);
      if (less === 0) return null;
      const from = less > 1 ? curve[less - 1].w : unit * 1e-18;
      const to = Math.min(curve[less].w, end, unit * 1e18);
      const weight = weightOf((w) => metrics(model(w) ?? tooFlat())[1] - v, from, to);
      return { q: model(weight) ?? tooFlat(), weight };
    }

    // Points of the frontier close to a weight, in order.
    const near = (weight) =>
      range(2 * CLOSE + 1)
        .map((i) => model(weight * 2 ** ((1.5 * (i - CLOSE)) / CLOSE)))
        .filter((q) => q)
        .map(metrics);
    const even = scores.map(() => 1 / scores.length); // the most diverse of all models
    return { bestAs, even, near, onModes, points };
  }

  // --- The answers ------------------------------------------------------------------
  // Formulas f and g at P: its metrics, the frontier, and the best model that is as
  // diverse as asked. An Error with one line if the pair or P does not allow it.
  function pose(f, g, p) {
    const scores = p.map((x) => f.jet(x)[0]);
    const metrics = (q) => [quality(scores, q), diversity(g, q)];
    const real = metrics(p);
    if (!Number.isFinite(real[0]) || !scores.every((u) => u < Infinity)) {
      const got = String(Number(real[0].toPrecision(6))).replace("Infinity", "inf").replace("NaN", "nan");
      throw new Error(
        `the quality of P itself must be finite, got ${got}, and no score NaN or +inf; ` +
          "f is not so at this P",
      );
    }
    if (!Number.isFinite(real[1])) {
      throw new Error("the diversity of P itself is not finite; give every text some probability");
    }
    requireTold(g);
    const refusal = whyNotConcave(g);
    const inflection = refusal && ConcaveConvex.inflection(g);
    if (refusal && !inflection) {
      throw new Error(
        `${refusal}; or it may be concave up to one point and convex beyond. This page knows the ` +
          "best models of no other g, the commands search for them",
      );
    }
    const finite = scores.filter(Number.isFinite);
    const spread = Math.max(...finite) - Math.min(...finite);
    const found = inflection
      ? ConcaveConvex.models(g, inflection, scores, metrics)
      : concaveModels(g, scores, metrics, chordHeight(g) / (spread || 1));
    // The rounding error of V(q).
    const noiseOf = (q) => NOISE * total(q.map((x) => Math.abs(diversity(g, [x]))));
    const points = found.points.filter(([, v]) => Number.isFinite(v));
    const endless = points.length < found.points.length; // V falls to minus infinity
    return { ...found, endless, scores, spread, real, metrics, noiseOf, points };
  }

  // QDisc and DRate of the pair at P, and the model that wins.
  function discrepancy(posed, p) {
    const { scores, spread, real, onModes, metrics } = posed;
    const noise = posed.noiseOf(p);
    const { q, weight } = posed.bestAs(real[1], noise) ?? { q: p, weight: 0 };
    const qdisc = Math.max(total(q.map((x, i) => (x === p[i] ? 0 : (x - p[i]) * scores[i]))), 0);

    // In what P is beaten beyond rounding: an error in V is worth its price in quality,
    // and near the greatest diversity the order of its square root.
    const sizes = scores.map((u, i) => (q[i] + p[i] === 0 ? 0 : Math.abs(u) * (q[i] + p[i])));
    const error = NOISE * total(sizes) + Math.min((2 * noise) / weight, Math.sqrt(noise) * spread);
    const [most, diverse] = metrics(onModes);
    const more = real[0] - most <= error && diverse - real[1] > 2 * noise;
    const won = qdisc > error ? "quality" : more ? "diversity" : "";

    // From the quality of the most diverse model to the greatest.
    const size = most - metrics(posed.even)[0];
    const known = size > NOISE * Math.max(...scores.filter(Number.isFinite).map(Math.abs)) && size < Infinity;
    const drate = known ? qdisc / size : null;
    return { qdisc, drate, won, weight, q: { quality: q, diversity: onModes, "": p }[won] };
  }

  return { discrepancy, gapsOf, inverseOf, pose, total, GRID, NOISE };
})();
