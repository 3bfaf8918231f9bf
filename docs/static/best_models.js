// The frontier and QDisc of a pair U(Q) = sum Q_i u_i, V(Q) = sum g(Q_i), as
// qdtheory/theory/frontier.py and qdtheory/discrepancy/quality.py have them for a
// strictly concave g, by root-finding.
//
// A model that no other beats satisfies g'(Q_i) = g'(m) + w (max u - u_i) wherever
// Q_i > 0. Here m is its largest probability, the root of sum Q_i = 1, and w > 0 the
// weight of quality: for QDisc the root of V(Q) = V(P). So three roots are nested.
"use strict";

const BestModels = (() => {
  const EPS = Number.EPSILON;
  const NOISE = 8 * EPS; // of a sum of a few terms
  const TINY = 2.2250738585072014e-308; // stands for 0 where g is NaN there
  const LEAST = 1e-100; // the smallest probability that is told from 0
  const POINTS = 96; // of a frontier that is drawn
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const digits = (x) => String(Number(x.toPrecision(6)));

  // --- What must be known of g ------------------------------------------------------
  const GRID = [
    ...range(64).map((i) => 10 ** (-12 + (9 * i) / 63)),
    ...range(960).map((i) => 2e-3 + (0.998 * i) / 959),
  ];

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
    return `g must be strictly concave on [0, 1], but it is linear, to within rounding, near ${digits(GRID[stretch])}`;
  }

  function slopeAtZero(g) {
    const [atZero, near, nearer] = [0, 1e-100, 1e-200].map((x) => g.jet(x)[1]);
    if (!Number.isNaN(atZero)) return atZero;
    return nearer - near > 1e-6 * Math.max(1, Math.abs(near)) ? Infinity : nearer;
  }

  // The range of g without the line through its ends: the unit of diversity.
  function chordHeight(g) {
    const values = range(1025).map((i) => g.jet(Math.max(i / 1024, TINY))[0]);
    const [first, last] = [values[0], values[1024]];
    const above = values.map((value, i) => value - first - ((last - first) * i) / 1024);
    return Math.max(...above) - Math.min(...above) || 1;
  }

  function diversity(g, q) {
    const least = Number.isNaN(g.jet(0)[0]) ? TINY : 0; // -x*log(x) has a limit at 0
    return total(q.map((x) => g.jet(Math.max(x, least))[0]));
  }

  // A text of probability 0 costs nothing, even if its score is minus infinity.
  const quality = (scores, q) => total(q.map((x, i) => (x === 0 ? 0 : x * scores[i])));

  // --- Models by their weight of quality --------------------------------------------
  // A function of w, to be called with weights near each other: it starts where it ended.
  function modelsOf(g, scores) {
    const best = Math.max(...scores);
    // Differences of a rounding error are ties.
    const gaps = scores.map((u) => (best - u <= 4 * EPS * Math.abs(best) ? 0 : best - u));
    const modes = gaps.filter((gap) => gap === 0).length;
    const atZero = slopeAtZero(g);
    // If g'(0) is infinite, log q is closer to linear in g', and keeps its digits.
    const inLogs = atZero === Infinity;
    const floor = inLogs ? Math.log(LEAST) : 0;
    const [to, back] = inLogs ? [Math.log, Math.exp] : [(x) => x, (x) => x];
    const lowest = inLogs ? g.jet(LEAST)[1] : atZero;
    const guesses = gaps.map(() => NaN);
    let guess = NaN;

    // The x in (0, m] with g'(x) = target: Newton steps in a shrinking bracket.
    function inverse(target, ceiling, start) {
      let [low, high] = [floor, ceiling];
      let z = start > low && start < high ? start : (low + high) / 2;
      for (let step = 0; step < 100; step++) {
        const x = back(z);
        const [, slope, curvature] = g.jet(x);
        const excess = slope - target;
        if (Math.abs(excess) <= 4 * EPS * Math.max(Math.abs(slope), Math.abs(target))) return z;
        if (excess > 0) low = z;
        else high = z;
        const newton = z - excess / (inLogs ? curvature * x : curvature);
        const next = newton > low && newton < high && step % 8 < 7 ? newton : (low + high) / 2;
        if (Math.abs(next - z) <= 2 * EPS * Math.abs(z)) return next;
        z = next;
      }
      return z;
    }

    function withLargest(m, w) {
      const [level, ceiling] = [g.jet(m)[1], to(m)];
      return gaps.map((gap, i) => {
        if (gap === 0) return m;
        const target = level + w * gap;
        if (!(target < lowest)) return 0;
        guesses[i] = inverse(target, ceiling, guesses[i]);
        return back(guesses[i]);
      });
    }

    function model(w) {
      let [low, high] = [1 / gaps.filter(Number.isFinite).length, 1 / modes];
      if (w === 0 || low === high) return gaps.map((gap) => (gap < Infinity ? low : 0));
      let m = guess > low && guess < high ? guess : Math.sqrt(low * high);
      let q = [];
      for (let step = 0; step < 100; step++) {
        q = withLargest(m, w);
        const excess = total(q) - 1;
        if (Math.abs(excess) <= 4 * EPS || high - low <= 2 * EPS * high) break;
        if (excess > 0) high = m;
        else low = m;
        const own = g.jet(m)[2];
        const rates = q.map((x) => (x > 0 ? own / g.jet(x)[2] : 0)).filter(Number.isFinite);
        const newton = m - excess / total(rates);
        m = newton > low && newton < high && step % 8 < 7 ? newton : Math.sqrt(low * high);
      }
      guess = m;
      const mass = total(q);
      return q.map((x) => x / mass);
    }

    // Beyond this weight only the best texts are left.
    const nearest = Math.min(...gaps.filter((gap) => gap > 0));
    const last = (g.jet(1 / modes)[1] - atZero) / -nearest;
    return { model, last, onModes: gaps.map((gap) => (gap === 0 ? 1 / modes : 0)) };
  }

  // The last weight whose model is as diverse as asked, by halves and chords in log w.
  function weightOf(least, diversityAt, unit) {
    const excess = (z) => diversityAt(unit * Math.exp(z)) - least;
    let [low, high] = [-45, 45];
    let [atLow, atHigh] = [excess(low), excess(high)];
    if (atLow <= 0) return 0;
    if (atHigh >= 0) return unit * Math.exp(high);
    for (let step = 0; step < 150 && high - low > 4 * EPS; step++) {
      const chord = low + ((high - low) * atLow) / (atLow - atHigh);
      const z = step % 3 < 2 && chord > low && chord < high ? chord : (low + high) / 2;
      if (z === low || z === high) break;
      const value = excess(z);
      // The end that stays is halved, or chords would creep (the Illinois rule).
      if (value >= 0) [low, atLow, atHigh] = [z, value, atHigh / 2];
      else [high, atHigh, atLow] = [z, value, atLow / 2];
    }
    return unit * Math.exp(low);
  }

  // --- The answer -------------------------------------------------------------------
  // Of formulas f and g at P: an Error with one line, or what the page shows.
  function solve(f, g, p) {
    const scores = p.map((x) => f.jet(x)[0]);
    const real = [quality(scores, p), diversity(g, p)];
    if (!Number.isFinite(real[0]) || !scores.every((u) => u < Infinity)) {
      const got = String(real[0]).replace("Infinity", "inf").replace("NaN", "nan");
      throw new Error(
        `the quality of P itself must be finite, got ${got}, and no score NaN or +inf; ` +
          "f is not so at this P",
      );
    }
    if (!Number.isFinite(real[1])) {
      throw new Error(`the diversity of P itself is not finite, as g(0) is not; give every text some probability`);
    }
    const refusal = whyNotConcave(g);
    if (refusal) throw new Error(refusal);

    const finite = scores.filter(Number.isFinite);
    const spread = Math.max(...finite) - Math.min(...finite);
    const unit = chordHeight(g) / (spread || 1);
    const { model, last, onModes } = modelsOf(g, scores);
    const points = frontier(model, last, unit, onModes).map((q) => [quality(scores, q), diversity(g, q)]);

    const noise = NOISE * total(p.map((x) => Math.abs(diversity(g, [x]))));
    let q = onModes;
    let weight = Infinity;
    if (diversity(g, onModes) - real[1] < -noise) {
      weight = weightOf(real[1], (w) => diversity(g, model(w)), unit);
      q = weight === 0 ? p : model(weight);
    }
    const gain = Math.max(total(q.map((x, i) => (x === p[i] ? 0 : (x - p[i]) * scores[i]))), 0);
    const won = dominatedIn({ g, scores, p, q, onModes, gain, real, noise, spread, price: 1 / weight });
    const even = quality(scores, p.map(() => 1 / p.length));
    const size = Math.max(...finite) - even;
    const known = size > NOISE * Math.max(...finite.map(Math.abs)) && size < Infinity;
    return {
      real,
      points,
      spread,
      qdisc: gain,
      drate: known ? gain / size : null,
      won,
      q: { quality: q, diversity: onModes, "": p }[won],
    };
  }

  function frontier(model, last, unit, onModes) {
    const end = last / unit / (1 + last / unit);
    const shares = range(POINTS - 1).map((i) => (Number.isNaN(end) ? 1 : end) * (i / (POINTS - 1)));
    return [...shares.map((share) => model((unit * share) / (1 - share))), onModes];
  }

  // In what P is beaten beyond rounding: "quality", "diversity" or "".
  function dominatedIn({ g, scores, p, q, onModes, gain, real, noise, spread, price }) {
    const sizes = scores.map((u, i) => (q[i] + p[i] === 0 ? 0 : Math.abs(u) * (q[i] + p[i])));
    const error = NOISE * total(sizes) + Math.min(2 * noise * price, Math.sqrt(noise) * spread);
    if (gain > error) return "quality";
    const loss = real[0] - quality(scores, onModes);
    return loss <= error && diversity(g, onModes) - real[1] > 2 * noise ? "diversity" : "";
  }

  return { solve };
})();
