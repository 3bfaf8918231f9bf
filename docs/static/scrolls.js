// What scrolls sideways shows it: scrolls.css fades the side where there is more, and
// says so. It must be within reach of the keyboard, too.
(() => {
  const PLACES = "pre, p, dt, table, figure, figure > a, .cell_output, .math, " +
    "mjx-container, .pst-scrollable-table-container";

  const mark = (node) => {
    const room = node.scrollWidth - node.clientWidth;
    if (room <= 1 || !/auto|scroll/.test(getComputedStyle(node).overflowX)) {
      if (node.dataset.more) node.tabIndex = -1;
      delete node.dataset.more;
      return;
    }
    const left = node.scrollLeft > 1;
    const right = node.scrollLeft < room - 1;
    node.dataset.more = left && right ? "both" : left ? "left" : "right";
    node.tabIndex = 0;
  };

  addEventListener("DOMContentLoaded", () => {
    const page = document.querySelector("article") ?? document.body;
    const markAll = () => page.querySelectorAll(PLACES).forEach(mark);
    // Its height changes with the window, with a fold, and when formulas are set.
    new ResizeObserver(markAll).observe(page);
    const seen = ({target}) => target.dataset?.more && mark(target);
    addEventListener("scroll", seen, {capture: true, passive: true});
  });
})();
