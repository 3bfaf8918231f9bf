// What is wrong with a page: each function gives texts, one for each fault.

// Formulas that were left as they are in the source, or that MathJax could not read.
function unsetMaths() {
  const found = [...document.querySelectorAll("span.math, div.math")]
    .filter((node) => !node.querySelector("mjx-container"));
  found.push(...document.querySelectorAll(
    "[data-mml-node=merror], mjx-container [fill=red]"));
  const walker = document.createTreeWalker(
    document.body, NodeFilter.SHOW_TEXT, (node) =>
      /\$[^$]+\$|\\[([]/.test(node.textContent) &&
      !node.parentElement.closest("pre, code, script, style, mjx-container")
        ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
  while (walker.nextNode()) found.push(walker.currentNode);
  return found.map((node) => `maths: ${node.textContent.slice(0, 60)}`);
}

// What a page that scrolls sideways holds beyond its right edge.
function tooWide() {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  return [...document.querySelectorAll("main *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .filter((node) => !node.parentElement.closest("pre, svg"))
    .slice(0, 3).map((node) => `too wide: ${node.outerHTML.slice(0, 90)}`);
}

// MathJax's formulas and the colours of code are alike on all pages, and many: boxes
// and plain text take their places, but colours stay where contrast is judged.
async function violations(contrast) {
  const formulas = [...document.querySelectorAll("mjx-container")]
    .map((node) => [node, node.getBoundingClientRect().width]);
  for (const [node, width] of formulas) {
    const box = document.createElement("span");
    box.style = `display: inline-block; width: ${width}px`;
    node.replaceWith(box);
  }
  for (const node of contrast ? [] : document.querySelectorAll("pre"))
    node.textContent = node.textContent;
  const {violations} = await axe.run({
    preload: false, resultTypes: ["violations"],
    rules: {"color-contrast": {enabled: contrast}}});
  return violations
    .filter(({id, impact}) =>
      ["serious", "critical"].includes(impact) || id == "heading-order")
    .map(({id, nodes: [node]}) => `${id}: ${node.html.slice(0, 90)}`);
}

// Nothing is on its way any more.
function stand() {
  const still = document.createElement("style");
  still.textContent = "* {transition: none !important}";
  document.head.append(still);
}

// In the dark only colours are others, once none is on its way there.
async function contrastInTheDark() {
  stand();
  const only = {type: "rule", values: ["color-contrast"]};
  const {violations} = await axe.run({preload: false, runOnly: only});
  return violations.map(({id, nodes: [node]}) =>
    `${id} in the dark: ${node.html.slice(0, 90)}`);
}

// The theme hears of the wish for dark colours a moment later.
function staysLight() {
  return new Promise((resolve) => {
    const {dataset} = document.documentElement;
    const end = performance.now() + (dataset.theme ? 3000 : 0);
    const look = () => {
      const ground = getComputedStyle(document.body).backgroundColor;
      const brightest = Math.max(...ground.match(/\d+/g).slice(0, 3).map(Number));
      if (brightest < 64 || !dataset.theme) resolve([]);
      else if (performance.now() > end) resolve([`stays light: ${ground}`]);
      else setTimeout(look, 20);
    };
    look();
  });
}

// What is wider than its place without a way to the rest, or without a sign of it.
function unsigned() {
  return [...document.querySelectorAll("main *")]
    .filter((node) => node.clientWidth > 30 &&
      node.scrollWidth > node.clientWidth + 1 &&
      !node.closest("svg, button") && !node.matches("mjx-container *, option"))
    .map((node) => {
      const {overflowX, maskImage} = getComputedStyle(node);
      const scrolls = /auto|scroll/.test(overflowX);
      const hides = /hidden|clip/.test(overflowX);
      const fault = hides ? "cut off" : !scrolls ? "" : maskImage === "none" && "no sign";
      return fault && `${fault}: ${node.outerHTML.slice(0, 90)}`;
    })
    .filter(Boolean);
}

// Letters below each other: short words of tables that are broken into lines.
function brokenWords() {
  const found = [];
  for (const cell of document.querySelectorAll(
    "main table:not(.genindextable) :is(th, td)")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest("code, pre, mjx-container, .claim-link")) continue;
      for (const {index, 0: word} of node.textContent.matchAll(/[\p{L}\p{N}]{2,14}/gu)) {
        const range = new Range();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const tops = [...range.getClientRects()].map(({top}) => Math.round(top));
        if (new Set(tops).size > 1) found.push(`broken: ${word} in ${cell.textContent}`);
      }
    }
  }
  return found;
}

// Heads of tables that are higher than five lines.
function highHeads() {
  return [...document.querySelectorAll("main thead th")]
    .filter((head) => {
      const line = 1.5 * parseFloat(getComputedStyle(head).fontSize);
      return head.getBoundingClientRect().height > 5 * line + 20;
    })
    .map((head) => `high: ${head.textContent}`);
}

// Switches that lie over what a cell prints or draws, or over each other.
function covering() {
  const boxes = (node) => {
    if (node.matches("img, button")) return [node.getBoundingClientRect()];
    const range = new Range();
    range.selectNodeContents(node);
    return [...range.getClientRects()];
  };
  const meet = (a, b) => a.width && b.width && a.left < b.right - 1 &&
    b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const lies = (one, others) => {
    const box = one.getBoundingClientRect();
    return [...others].some((node) => boxes(node).some((other) => meet(box, other)));
  };
  const folds = [...document.querySelectorAll(".code > summary")].filter((fold) =>
    lies(fold, fold.closest(".cell").querySelectorAll(".cell_output :is(pre, img, td)")));
  const buttons = [...document.querySelectorAll(".header-article button")];
  const pressed = buttons.filter((one) => lies(one, buttons.filter((b) => b !== one)));
  return [...folds, ...pressed].map((node) => {
    const place = node.closest(".cell") ?? node;
    return `covering: ${place.textContent.trim().slice(0, 90)}`;
  });
}

// The pictures that are no icons: address and share of the size they were drawn in.
function pictures() {
  return [...document.images]
    .filter((image) => image.naturalWidth > 100 && image.clientWidth)
    .map((image) => {
      const {width, height} = image.getBoundingClientRect();
      return [image.src, width / image.naturalWidth, height / image.naturalHeight];
    });
}
