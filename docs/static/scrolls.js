// What scrolls sideways shows it: scrolls.css fades the side where there is more, and
// says so. It must be within reach of the keyboard, too.
(() => {
  const PLACES = "pre, p, dt, table, figure, figure > a, .cell_output, .math, " +
    "mjx-container, .pst-scrollable-table-container";

  const room = (node) => node.scrollWidth - node.clientWidth;
  const scrolls = (node) =>
    room(node) > 1 && /auto|scroll/.test(getComputedStyle(node).overflowX);

  const mark = (node) => {
    const left = node.scrollLeft > 1;
    const right = node.scrollLeft < room(node) - 1;
    node.dataset.more = left && right ? "both" : left ? "left" : "right";
    node.tabIndex = 0;
  };

  addEventListener("DOMContentLoaded", () => {
    const page = document.querySelector("article") ?? document.body;
    const markAll = () => {
      const nodes = [...page.querySelectorAll(PLACES)];
      for (const node of nodes) delete node.dataset.more; // it widens tables
      nodes.filter(scrolls).forEach(mark);
    };
    // Its height changes with the window, with a fold, and when formulas are set.
    new ResizeObserver(markAll).observe(page);
    const seen = ({target}) => target.dataset?.more && mark(target);
    addEventListener("scroll", seen, {capture: true, passive: true});
  });
})();
