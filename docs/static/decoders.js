// What decoders make of the law of the next token, as qdtheory/generators/decoders.py
// has it: temperature, then top-k, top-p and min-p, in the order of Hugging Face.
"use strict";

const Decoders = (() => {
  const total = (values) => values.reduce((sum, value) => sum + value, 0);

  function kept(law, keeps) {
    const left = law.map((x, i) => (keeps(x, i) ? x : 0));
    const mass = total(left);
    return left.map((x) => x / mass);
  }

  function temperature(law, t) {
    const most = Math.max(...law);
    const powers = law.map((x) => (x / most) ** (1 / t));
    const mass = total(powers);
    return powers.map((x) => x / mass);
  }

  // The k most probable tokens, and all that tie with the last of them.
  function topK(law, k) {
    const least = [...law].sort((a, b) => b - a)[Math.min(k, law.length) - 1];
    return kept(law, (x) => x >= least);
  }

  // From the least probable on, tokens go while their sum is at most 1 - mass; the last
  // of the most probable stays.
  function topP(law, mass) {
    const order = law.map((_, i) => i).sort((a, b) => law[a] - law[b] || a - b);
    const stays = new Set();
    let sum = 0;
    order.forEach((token, rank) => {
      sum += law[token];
      if (sum > 1 - mass || rank === order.length - 1) stays.add(token);
    });
    return kept(law, (_, i) => stays.has(i));
  }

  // Tokens of at least a share of the greatest probability.
  function minP(law, share) {
    const least = share * Math.max(...law);
    return kept(law, (x) => x >= least);
  }

  const DIALS = { temperature, topK, topP, minP };
  // Dials at which a decoder changes nothing.
  const NEUTRAL = { temperature: 1, topK: Infinity, topP: 1, minP: 0 };

  // Laws after each prefix, level by level, to the probabilities of all texts in
  // lexicographic order.
  function decode(laws, dials) {
    const steps = Object.keys(DIALS).filter((name) => dials[name] !== NEUTRAL[name]);
    const change = (law) => steps.reduce((changed, name) => DIALS[name](changed, dials[name]), law);
    return laws.reduce(
      (prefixes, level) => prefixes.flatMap((mass, i) => change(level[i]).map((x) => mass * x)),
      [1],
    );
  }

  return { NEUTRAL, decode };
})();
