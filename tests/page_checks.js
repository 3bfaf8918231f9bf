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

// MathJax's formulas are alike on all pages, and many: boxes take their places. Contrast
// takes longest, so one page of each template is judged.
const CONTRAST = new RegExp([
  String.raw`docs/(index|coverage|explorer|parts/frontier|generated/qdtheory\.pairs)\.html`,
  String.raw`search\.html|solutions/02_\w+\.html|(slides|handouts)/(index|02_\w+)\.html`,
].join("|"));

async function violations() {
  const formulas = [...document.querySelectorAll("mjx-container")]
    .map((node) => [node, node.getBoundingClientRect().width]);
  for (const [node, width] of formulas) {
    const box = document.createElement("span");
    box.style = `display: inline-block; width: ${width}px`;
    node.replaceWith(box);
  }
  const {violations} = await axe.run({
    preload: false, resultTypes: ["violations"],
    rules: {"color-contrast": {enabled: CONTRAST.test(location.pathname)}}});
  return violations
    .filter(({id, impact}) =>
      ["serious", "critical"].includes(impact) || id == "heading-order")
    .map(({id, nodes: [node]}) => `${id}: ${node.html.slice(0, 90)}`);
}
