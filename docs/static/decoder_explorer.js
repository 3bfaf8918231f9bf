// "A decoder's dial" of explorer.md: what temperature, top-k, top-p and min-p make of a
// small language model, and how far they leave the frontier round it.
"use strict";

(() => {
  const { digits } = Plots;
  const { laws, tokens } = EXPLORER.model;
  const find = (id) => document.getElementById(`decoder-${id}`);
  const NAMES = ["temperature", "topK", "topP", "minP"];
  const SWEEP = 80; // points of a dial's path
  const PAIRS = {
    "LL-SE": ["log-likelihood (nats)", "entropy (nats)"],
    "CR-NRR": ["coverage rate", "negative repetition rate"],
  };
  const words = laws.reduce((texts) => texts.flatMap((text) => [...tokens].map((t) => text + t)), [""]);
  const real = Decoders.decode(laws, Decoders.NEUTRAL);
  const order = real.map((_, i) => i).sort((a, b) => real[b] - real[a]);
  const descending = (q) => order.map((i) => q[i]);
  let touched = "topP";

  const posed = Object.fromEntries(
    Object.keys(PAIRS).map((name) => {
      const [f, g] = name.split("-").map(Formulas.read);
      return [name, BestModels.pose(f, g, real)];
    }),
  );

  const valueOf = (name) => Number(find(name).value);
  const dials = () => Object.fromEntries(NAMES.map((name) => [name, valueOf(name)]));

  // The metrics while one dial turns, the others as they are.
  function path(metrics, name) {
    const { min, max, step } = find(name);
    const [low, top] = [Number(min), Number(max)];
    const count = Math.min(SWEEP, Math.round((top - low) / Number(step)));
    const values = Array.from({ length: count + 1 }, (_, i) => low + ((top - low) * i) / count);
    return values.map((value) => metrics(Decoders.decode(laws, { ...dials(), [name]: value })));
  }

  function update() {
    const start = performance.now();
    const pair = find("pair").value;
    const { metrics, bestAs, noiseOf, points, real: star } = posed[pair];
    const q = Decoders.decode(laws, dials());
    const model = metrics(q);
    const best = bestAs(model[1], noiseOf(q));
    const short = best ? Math.max(metrics(best.q)[0] - model[0], 0) : 0;
    const away = short > 1e-9;
    NAMES.forEach((name) => (find(`${name}-shown`).textContent = String(valueOf(name))));
    Plots.bars(find("bars"), {
      p: descending(real),
      q: descending(q),
      words: descending(words),
      high: Plots.heightFor(0.2, ...real, ...q),
    });
    Plots.plane(find("plane"), {
      axes: PAIRS[pair],
      real: star,
      model,
      lines: { frontier: points, path: path(metrics, touched) },
      ring: away ? [model[0] + short, model[1]] : null,
    });
    PAIRS[pair].forEach((axis, i) => (find(`axis-${i}`).textContent = axis));
    model.forEach((value, i) => (find(`model-${i}`).textContent = digits(value, 4)));
    star.forEach((value, i) => (find(`real-${i}`).textContent = digits(value, 4)));
    find("kept").textContent = q.filter((x) => x > 0).length;
    const same = q.every((x, i) => Math.abs(x - real[i]) < 1e-12);
    find("verdict").textContent = same
      ? "The dials change nothing: the dot is on the star."
      : away
        ? "The decoder has left the frontier: as diverse, the best model (the ring) has " +
          `${digits(short)} more in ${PAIRS[pair][0]}.`
        : "The decoded model is on the frontier.";
    find("app").dataset.milliseconds = (performance.now() - start).toFixed(1);
  }

  Object.keys(PAIRS).forEach((name) => find("pair").add(new Option(name, name)));
  find("topK").max = tokens.length;
  for (const name of NAMES) {
    find(name).addEventListener("input", () => {
      touched = name;
      update();
    });
  }
  find("pair").addEventListener("change", update);
  find("reset").addEventListener("click", () => {
    for (const name of NAMES) find(name).value = Math.min(Decoders.NEUTRAL[name], tokens.length);
    update();
  });
  update();
  find("app").hidden = false;
})();
