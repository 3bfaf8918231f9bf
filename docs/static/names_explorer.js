// "Your pair by its names" of explorer.md: two lists, and what is known of the pair. The
// address holds the choice, so that it can be sent to somebody.
"use strict";

(() => {
  const { digits } = Plots;
  const find = (id) => document.getElementById(`names-${id}`);
  const KINDS = ["quality", "diversity"];
  const STATUSES = [
    (u, v) => `Compatible: no model can beat the real distribution in both ${u} and ${v}.`,
    (u, v) => `Incompatible: a model can beat the real distribution in both ${u} and ${v}.`,
    (u, v) => `No verdict on ${u} and ${v} by their names.`,
    (u, v) => `Conditional: over some texts a model can beat the real distribution in both ${u} and ${v}, over others none can.`,
  ];
  const MOST = 8; // texts shown: those whose share changes most

  // A name without what does not matter in it, as in Python.
  const plain = (name) => name.toLowerCase().replace(/[\s_\-\u2010-\u2015\u2212]/g, "");

  function element(name, content, ...children) {
    const made = document.createElement(name);
    made.textContent = content;
    made.append(...children);
    return made;
  }

  function fill() {
    for (const kind of KINDS) {
      NAMED[kind].forEach(({ label }, i) => find(kind).append(new Option(label, i)));
    }
  }

  // The choice in an address, where it is one.
  function read(hash) {
    const given = new URLSearchParams(hash.slice(1));
    if (!KINDS.every((kind) => given.has(kind))) return false;
    const places = KINDS.map((kind) => {
      const wanted = plain(given.get(kind));
      const exact = NAMED[kind].findIndex(({ name }) => plain(name) === wanted);
      // BLEU-2 alone is that of two references.
      const first = NAMED[kind].findIndex(({ name }) => plain(name) === `${wanted}of2references`);
      return exact < 0 ? first : exact;
    });
    const unknown = places.findIndex((place) => place < 0);
    KINDS.forEach((kind, i) => (find(kind).value = places[i] < 0 ? "" : places[i]));
    update();
    if (unknown >= 0) {
      find("verdict").textContent = `The lists have no ${KINDS[unknown]} “${given.get(KINDS[unknown])}”: choose one.`;
    }
    return true;
  }

  function update() {
    const places = KINDS.map((kind) => find(kind).value);
    const chosen = places.every((place) => place !== "");
    find("answer").hidden = !chosen;
    find("verdict").classList.toggle("beaten", false);
    if (!chosen) return;
    const [u, v] = KINDS.map((kind, i) => NAMED[kind][places[i]]);
    const place = Number(places[0]) * NAMED.diversity.length + Number(places[1]);
    const [status, sentences, ...rival] = NAMED.answers[place];
    find("verdict").textContent = STATUSES[status](u.name, v.name);
    find("verdict").classList.toggle("beaten", status === 1);
    // The last two say what to report of either.
    const shown = sentences.map((i) => NAMED.sentences[i]);
    find("reasons").replaceChildren(...shown.slice(0, -2).map((said) => sentence("p", said)));
    find("instead").replaceChildren(...shown.slice(-2).map((said) => sentence("li", said)));
    showRival(...rival);
    find("check").textContent = `qdtheory check ${u.typed} ${v.typed}`;
    find("address").href = `#${new URLSearchParams({ quality: u.name, diversity: v.name })}`;
  }

  // A sentence, with its claims as links to the lines that print them.
  function sentence(name, said) {
    const parts = said.split(/([TLNE]\d+\.\d+)/).map((part) => {
      if (!(part in NAMED.claims)) return part;
      const link = element("a", part);
      link.href = `../notebooks/${NAMED.claims[part]}.html#${part}`;
      return link;
    });
    return element(name, "", ...parts);
  }

  function showRival(world, q, gains) {
    find("rival").hidden = world === undefined;
    if (world === undefined) return;
    const { texts, p } = NAMED.worlds[world];
    find("gains").textContent =
      `Over ${texts.length} texts a rival gains ${digits(gains[0], 3)} in quality and ` +
      `${digits(gains[1], 3)} in diversity:`;
    const moved = texts.map((_, i) => i).sort((i, j) => Math.abs(q[j] - p[j]) - Math.abs(q[i] - p[i]) || i - j);
    const rows = moved.slice(0, MOST).map((i) => {
      const head = element("th", texts[i]);
      head.scope = "row";
      return element("tr", "", head, element("td", p[i]), element("td", q[i]));
    });
    find("texts").replaceChildren(...rows);
  }

  fill();
  for (const kind of KINDS) {
    find(kind).addEventListener("change", () => {
      update();
      history.replaceState(null, "", find("address").href);
    });
  }
  window.addEventListener("hashchange", () => read(location.hash));
  find("app").hidden = false;
  if (read(location.hash)) find("app").scrollIntoView();
  else read("#quality=BLEU-2&diversity=Self-BLEU-2");
})();
