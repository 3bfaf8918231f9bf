// The best models for a g that is concave up to a point c and convex beyond, such as
// -x*(1 - (1 - x)**4), as qdtheory/qdisc/convex.py has them.
//
// At most one probability exceeds c, that of a best text. So this largest probability t
// determines the model: the others are the x in [0, c] with g'(x) = g'(t) + w gap, and
// the weight w is the root of sum Q_i = 1. QDisc is the best point of this curve that is
// as diverse as P.
"use strict";

const ConcaveConvex = (() => {
  const [BELOW, ABOVE] = [24, 48]; // values of t up to c, and beyond
  const { gapsOf, inverseOf, total, GRID, NOISE } = BestModels;
  const range = (count) => Array.from({ length: count }, (_, i) => i);
  const between = (low, high, share) => low * (high / low) ** share;

  // A root in an interval at whose ends a function differs in sign, by halves.
  function halved(sign, low, high, atLow = sign(low)) {
    for (let step = 0; step < 100 && high - low > 2 * Number.EPSILON * high; step++) {
      const middle = (low + high) / 2;
      if (sign(middle) === atLow) low = middle;
      else high = middle;
    }
    return [low, high];
  }

  // The point c up to which g is concave, as far as the grid shows; null if there is none.
  function inflection(g) {
    const slopes = GRID.map((x) => g.jet(x)[1]);
    const least = slopes.indexOf(Math.min(...slopes));
    if (!(least > 0 && least < GRID.length - 1)) return null;
    const wrong = slopes.slice(1).map((slope, i) => (i < least ? 1 : -1) * (slope - slopes[i]));
    const noise = wrong.map((_, i) => NOISE * Math.max(Math.abs(slopes[i]), Math.abs(slopes[i + 1])));
    if (!wrong.every((rise, i) => rise <= noise[i])) return null;
    const flat = (i) => i < least && wrong[i] >= -noise[i];
    if (wrong.some((_, i) => i >= 64 && flat(i) && flat(i + 1) && flat(i + 2))) return null;
    return halved((x) => g.jet(x)[2] < 0, GRID[least - 1], GRID[least + 1])[0];
  }

  // Models of equal probabilities, but for that of the first of the chosen texts.
  function nearlyEven(g, c, chosen, first) {
    const others = total(chosen.map(Number)) - 1;
    const tops = [1 / (others + 1)];
    if (others) {
      const excess = (t) => g.jet((1 - t) / others)[1] > g.jet(t)[1];
      const low = Math.max(c, 1 - others * c, tops[0]);
      const grid = range(ABOVE + 1).map((i) => between(low, 1, i / ABOVE));
      grid.slice(1).forEach((t, i) => {
        if (excess(t) !== excess(grid[i])) tops.push(halved(excess, grid[i], t)[0]);
      });
      tops.push(1);
    }
    return tops.map((t) => chosen.map((is, i) => (i === first ? t : is ? (1 - t) / others : 0)));
  }

  const best = (models, value) => models.reduce((a, b) => (value(b) >= value(a) ? b : a));

  // What BestModels.pose needs of scores and a g with the inflection c.
  function models(g, c, scores, metrics) {
    const gaps = gapsOf(scores);
    const first = gaps.indexOf(0);
    const finite = gaps.map(Number.isFinite);
    const ties = gaps.filter((gap) => gap === 0).length - 1;
    const inverse = inverseOf(g);
    const last = gaps.map(() => inverse.start());
    const unit = 1 / (Math.max(...gaps.filter(Number.isFinite)) || 1);
    let guess = 0;

    // The model whose largest probability is t, and its weight; null if there is none.
    function model(t) {
      const level = g.jet(t)[1];
      const probabilities = (w) =>
        gaps.map((gap, i) => (i === first ? t : inverse.solve(last[i], gap ? level + w * gap : level, c)));
      const even = inverse.solve(inverse.start(), level, c);
      const most = total(finite.map((is, i) => (is && i !== first ? even : 0)));
      if (!(most + t > 1) || ties * even + t > 1) return null;
      let [low, high] = [0, Infinity];
      let w = guess;
      for (let step = 0; step < 200; step++) {
        const q = probabilities(w);
        const excess = total(q) - 1;
        if (Math.abs(excess) < 1e-13 || high - low <= 2 * Number.EPSILON * low) {
          guess = w;
          return { t, w, q: q.map((x) => x / (1 + excess)) };
        }
        if (excess > 0) low = w;
        else high = w;
        const fall = total(q.map((x, i) => (x > 0 && gaps[i] ? gaps[i] * inverse.rate(last[i]) : 0)));
        const newton = w - excess / fall;
        const middle = high < Infinity ? (low + high) / 2 : 2 * w + unit;
        w = newton > low && newton < high && step % 6 < 5 ? newton : middle;
      }
      return null;
    }

    const known = (found) => found && { ...found, point: metrics(found.q) };
    const isMode = gaps.map((gap) => gap === 0);
    const diversity = (q) => metrics(q)[1];
    const onModes = best(nearlyEven(g, c, isMode, first), diversity);
    const even = best(nearlyEven(g, c, finite.map(() => true), first), diversity);

    // The curve, on a grid of t, with the ends of its stretches: at weight 0 all
    // others are equal. Where no model exists there is only t.
    const start = 1 / finite.filter(Boolean).length;
    const from = Math.max(start, c);
    const grid = range(ABOVE).map((i) => between(from, 1, (i + 0.5) / ABOVE));
    if (start < c) grid.push(...range(BELOW).map((i) => between(start, c, (i + 0.5) / BELOW)));
    const curve = [
      ...grid.map((t) => known(model(t)) ?? { t }),
      ...nearlyEven(g, c, finite, first).map((q) => known({ t: q[first], w: 0, q })),
    ].sort((a, b) => a.t - b.t);
    const end = known({ t: 1, w: Infinity, q: onModes });

    // The best model with V(Q) >= v: where the curve crosses v, or a point above it.
    function bestAs(v, noise) {
      if (metrics(onModes)[1] - v >= -noise) return { q: onModes, weight: Infinity };
      const above = (at) => Boolean(at?.point && at.point[1] >= v);
      const found = [...curve, end].filter(above);
      curve.slice(1).forEach((to, i) => {
        // Also where the curve begins or ends between two values of t.
        if (above(curve[i]) === above(to)) return;
        const isAbove = (t) => {
          const at = known(model(t));
          if (above(at)) found.push(at);
          return above(at);
        };
        halved(isAbove, curve[i].t, to.t, above(curve[i]));
      });
      if (!found.length) return null;
      const { q, w } = best(found, (at) => at.point[0]);
      return { q, weight: w };
    }

    // Of all models known, those that no other beats.
    const points = [...curve, end].filter(({ point }) => point).map(({ point }) => point);
    const unbeaten = points
      .sort(([u, v], [u2, v2]) => u2 - u || v2 - v)
      .filter(([, v], i, all) => i === 0 || v > Math.max(...all.slice(0, i).map(([, other]) => other)))
      .reverse();
    return { bestAs, onModes, even, points: unbeaten, near: () => [] };
  }

  return { inflection, models };
})();
