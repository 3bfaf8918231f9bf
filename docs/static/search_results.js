// Shows below each result where it is and a sentence that holds the words. PAGES has
// the texts of all pages: search_page.py writes it with each build.

const stemmer = new Stemmer();
const stems = (text) =>
  (text.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? [])
    .map((word) => word.replace(/^\.+|\.+$/g, ""));
const sought = stems(new URLSearchParams(location.search).get("q") ?? "");
const beginnings = new Set(sought.map((word) => word.slice(0, 3)));
const wanted = new Set(sought.map((word) => stemmer.stemWord(word)));

// The wanted words of a text, stemmed; most words need no stemming to be ruled out.
const held = (text) =>
  new Set(
    stems(text)
      .filter((word) => beginnings.has(word.slice(0, 3)))
      .map((word) => stemmer.stemWord(word))
      .filter((word) => wanted.has(word)),
  );

const best = (things, text) =>
  things
    .map((thing) => [held(text(thing)).size, thing])
    .reduce((a, b) => (b[0] > a[0] ? b : a), [0, undefined])[1];

function quotation(text) {
  const sentence = best(text.split(/\n|(?<=[.?!]) +(?=\p{Lu})/u), (part) => part);
  const line = document.createElement("p");
  for (const piece of sentence.slice(0, 300).split(/([\p{L}\p{N}_]+)/u)) {
    if (held(piece).size) {
      line.append(Object.assign(document.createElement("mark"), {textContent: piece}));
    } else {
      line.append(piece);
    }
  }
  if (sentence.length > 300) line.append(" ...");
  return line;
}

function explain(result) {
  const link = result.querySelector("a");
  const [, name, anchor] = link.getAttribute("href").match(/^(.*)\.html(?:#(.*))?$/);
  const page = PAGES[name];
  if (!page) return;
  const here = page.texts.filter(([id]) => id === anchor);
  const hit = best(here.length ? here : page.texts, ([, title, text]) => `${title} ${text}`);
  const where = document.createElement("p");
  where.className = "search-place";
  where.append(page.place.join(" › "));
  if (hit && hit[0] && !anchor) {
    const section = document.createElement("a");
    section.href = `${name}.html#${hit[0]}`;
    section.textContent = hit[1];
    if (page.place.length) where.append(" › ");
    where.append(section);
  }
  if (where.textContent) result.append(where);
  if (hit && held(hit[2]).size) result.append(quotation(hit[2]));
}

new MutationObserver((changes) => {
  for (const {addedNodes} of changes) {
    for (const node of addedNodes) {
      if (node.matches?.("ul.search > li")) explain(node);
    }
  }
}).observe(document.getElementById("search-results"), {childList: true, subtree: true});
