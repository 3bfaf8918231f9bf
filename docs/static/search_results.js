// Shows above the results where the words, or the numbers of claims, lead at once, and
// below each result where it is and a sentence that holds the words. PAGES has the texts
// of all pages, SHORTCUTS the words: search_page.py writes them with each build.

const SENTENCES = /\n|(?<=[.?!]) +(?=\p{Lu})/u;
const MOST = 300; // characters that are quoted
const stemmer = new Stemmer();
const stem = (word) => stemmer.stemWord(word);
const wordsOf = (text) =>
  (text.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? [])
    .map((word) => word.replace(/^\.+|\.+$/g, ""));
const query = new URLSearchParams(location.search).get("q") ?? "";
const sought = wordsOf(query);
const wanted = new Set(sought.map(stem));
const beginnings = new Set(sought.map((word) => word.slice(0, 3)));

// How many wanted words a text has; most words need no stemming to be ruled out.
function hits(text) {
  const near = wordsOf(text).filter((word) => beginnings.has(word.slice(0, 3)));
  return new Set(near.map(stem).filter((word) => wanted.has(word))).size;
}

const best = (things, text) =>
  things
    .map((thing) => [hits(text(thing)), thing])
    .reduce((a, b) => (b[0] > a[0] ? b : a))[1];

function add(parent, name, text, properties = {}) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(text);
  return parent.appendChild(node);
}

const cut = (text) => (text.length > MOST ? `${text.slice(0, MOST)} ...` : text);

function quote(result, text) {
  const line = add(result, "p", "");
  const sentence = cut(best(text.split(SENTENCES), (part) => part));
  for (const piece of sentence.split(/([\p{L}\p{N}_]+)/u)) {
    if (hits(piece)) add(line, "mark", piece);
    else line.append(piece);
  }
}

function explain(result) {
  const address = result.querySelector("a").getAttribute("href");
  const [, name, anchor] = address.match(/^(.*)\.html(?:#(.*))?$/);
  if (!(name in PAGES)) return;
  const {place, texts} = PAGES[name];
  const here = texts.filter(([id]) => !anchor || id === anchor);
  const [id, title, text] = best([["", "", ""], ...here], (part) => part.slice(1).join(" "));
  const line = add(result, "p", place.join(" › "), {className: "search-place"});
  if (id && !anchor) {
    if (place.length) line.append(" › ");
    add(line, "a", title, {href: `${name}.html#${id}`});
  }
  if (!line.textContent) line.remove();
  if (hits(text)) quote(result, text);
}

// Lecture and line of a claim whose number is typed: "N8.11", "n8.11".
function claimed(id) {
  const lectures = Object.entries(PAGES).filter(([name]) => /^notebooks\/\w+$/.test(name));
  return lectures.flatMap(([name, {texts}]) => {
    const lines = texts.flatMap(([, , text]) => text.split("\n"));
    const line = lines.find((line) => line.startsWith(`${id} `));
    return line ? [[name, id, id, line.slice(id.length + 1)]] : [];
  });
}

// The opening of a section that answers what is typed.
function answer([, name, anchor]) {
  const {title, texts} = PAGES[name];
  const [, heading, text] = texts.find(([id]) => id === anchor) ?? ["", title, texts[0][2]];
  return [name, anchor, heading, text.split(SENTENCES)[0]];
}

const typed = (phrase) => wordsOf(phrase).every((word) => wanted.has(stem(word)));
const numbers = query.toUpperCase().match(/\b[TLNE]\d+\.\d+\b/g) ?? [];
const answers = SHORTCUTS.filter(([phrases]) => phrases.some(typed)).map(answer);
const leads = [...numbers.flatMap(claimed), ...answers];
const results = document.getElementById("search-results");
if (leads.length) {
  const list = Object.assign(document.createElement("ul"), {className: "search-answers"});
  for (const [name, anchor, title, said] of leads) {
    const entry = add(list, "li", "");
    add(entry, "a", title, {href: `${name}.html${anchor && `#${anchor}`}`});
    const place = PAGES[name].place.join(" › ") || PAGES[name].title;
    add(entry, "p", place, {className: "search-place"});
    add(entry, "p", cut(said));
  }
  results.before(list);
}

new MutationObserver((changes) => {
  for (const node of changes.flatMap(({addedNodes}) => [...addedNodes])) {
    if (node.matches?.("ul.search > li")) explain(node);
  }
}).observe(results, {childList: true, subtree: true});
