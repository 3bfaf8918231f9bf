// Shows above the results where the words, or the numbers of claims, lead at once, and
// below each result where it is and a sentence that holds the words. PAGES has the texts
// of all pages, SHORTCUTS the words: search_page.py writes them with each build.

const stemmer = new Stemmer();
const stems = (text) =>
  (text.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? [])
    .map((word) => word.replace(/^\.+|\.+$/g, ""));
const query = new URLSearchParams(location.search).get("q") ?? "";
const sought = stems(query);
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

// Lecture and line of each claim whose number is typed: "N8.11", "n8.11".
function* claims() {
  for (const [id] of query.toUpperCase().matchAll(/\b[TLNE]\d+\.\d+\b/g)) {
    const begins = new RegExp(`^${id.replace(".", "\\.")} (.*)`, "m");
    for (const [name, {texts}] of Object.entries(PAGES)) {
      const said = name.startsWith("notebooks/") && !name.includes("/solutions/") &&
        texts.map(([, , text]) => text.match(begins)).find((match) => match);
      if (said) yield [name, id, id, said[1]];
    }
  }
}

// Sections that answer what is typed: all words of one of their phrases are.
function* answers() {
  const typed = (phrase) => stems(phrase).every((word) => wanted.has(stemmer.stemWord(word)));
  for (const [phrases, name, anchor] of SHORTCUTS) {
    if (!phrases.some(typed)) continue;
    const {title, texts} = PAGES[name];
    const section = texts.find(([id]) => id === anchor);
    const opening = (section ?? texts[0])[2].split(/\n|(?<=[.?!]) +(?=\p{Lu})/u)[0];
    yield [name, anchor, anchor ? section[1] : title, opening];
  }
}

function lead() {
  const found = [...claims(), ...answers()];
  if (!found.length) return;
  const list = document.createElement("ul");
  list.className = "search-answers";
  for (const [name, anchor, title, said] of found) {
    const entry = list.appendChild(document.createElement("li"));
    const link = entry.appendChild(document.createElement("a"));
    link.href = `${name}.html${anchor && `#${anchor}`}`;
    link.textContent = title;
    const where = entry.appendChild(document.createElement("p"));
    where.className = "search-place";
    where.textContent = PAGES[name].place.join(" › ") || PAGES[name].title;
    const line = entry.appendChild(document.createElement("p"));
    line.textContent = said.length > 300 ? `${said.slice(0, 300)} ...` : said;
  }
  document.getElementById("search-results").before(list);
}
lead();

new MutationObserver((changes) => {
  for (const {addedNodes} of changes) {
    for (const node of addedNodes) {
      if (node.matches?.("ul.search > li")) explain(node);
    }
  }
}).observe(document.getElementById("search-results"), {childList: true, subtree: true});
