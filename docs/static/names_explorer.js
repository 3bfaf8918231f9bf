// "Your pair by its names" of explorer.md: two lists, and what NAMED holds of the pair.
// The address holds the choice, so that it can be sent to somebody.
"use strict";

(() => {
  const { digits } = Plots;
  const find = (id) => document.getElementById(`names-${id}`);
  const KINDS = ["quality", "diversity"];
  const MOST = 8; // texts shown: those whose share changes most

  // A name without what does not matter in it, as in Python.
  const plain = (name) => name.toLowerCase().replace(/[\s_\-\u2010-\u2015\u2212]/g, "");

  function element(name, ...children) {
    const made = document.createElement(name);
    made.append(...children);
    return made;
  }

  // The place of a name in its list; BLEU-2 alone is that of two references.
  function placeOf(kind, name) {
    const names = NAMED[kind].map((metric) => plain(metric.name));
    const exact = names.indexOf(plain(name));
    return exact < 0 ? names.indexOf(`${plain(name)}of2references`) : exact;
  }

  // Chooses what an address holds, and says whether it holds a choice.
  function read(hash) {
    const given = new URLSearchParams(hash.slice(1));
    if (!KINDS.every((kind) => given.has(kind))) return false;
    for (const kind of KINDS) find(kind).value = placeOf(kind, given.get(kind));
    update();
    const unknown = KINDS.find((kind) => !find(kind).value);
    if (unknown) {
      find("verdict").textContent = `The lists have no ${unknown} “${given.get(unknown)}”: choose one.`;
    }
    return true;
  }

  function update() {
    const places = KINDS.map((kind) => find(kind).value);
    find("verdict").classList.remove("beaten");
    find("answer").hidden = places.includes("");
    if (places.includes("")) return;
    const [u, v] = KINDS.map((kind, i) => NAMED[kind][places[i]]);
    const place = Number(places[0]) * NAMED.diversity.length + Number(places[1]);
    const [status, sentences, instead, ...rival] = NAMED.answers[place];
    find("verdict").textContent = NAMED.headlines[status].replace("PAIR", `${u.name} and ${v.name}`);
    find("verdict").classList.toggle("beaten", status === 1);
    const shown = (places, name) => places.map((i) => element(name, ...linked(NAMED.sentences[i])));
    find("reasons").replaceChildren(...shown(sentences, "p"));
    find("instead").replaceChildren(...shown(instead, "li"));
    find("rival").hidden = !rival.length;
    if (rival.length) showRival(...rival);
    find("check").textContent = `qdtheory check ${u.typed} ${v.typed}`;
    find("address").href = `#${new URLSearchParams({ quality: u.name, diversity: v.name })}`;
  }

  // A sentence in parts, its claims as links to the lines that print them.
  function linked(sentence) {
    return sentence.split(/([TLNE]\d+\.\d+)/).map((part) => {
      if (!(part in NAMED.claims)) return part;
      const link = element("a", part);
      link.href = `../notebooks/${NAMED.claims[part]}.html#${part}`;
      return link;
    });
  }

  function showRival(world, q, gains) {
    const { texts, p } = NAMED.worlds[world];
    const both = gains && `gains ${digits(gains[0])} in quality and ${digits(gains[1])} in diversity`;
    find("gains").textContent =
      `Over ${texts.length} texts a rival ${both || "is no worse in one and better in the other"}:`;
    const change = (i) => Math.abs(q[i] - p[i]);
    const moved = [...texts.keys()].sort((i, j) => change(j) - change(i) || i - j);
    const row = (i) => element("tr", element("th", texts[i]), element("td", p[i]), element("td", q[i]));
    find("texts").replaceChildren(...moved.slice(0, MOST).map(row));
  }

  for (const kind of KINDS) {
    NAMED[kind].forEach(({ label }, i) => find(kind).add(new Option(label, i)));
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
