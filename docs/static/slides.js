"use strict";
// Without this script the slides stand one below the other.
const slides = [...document.querySelectorAll(".slide")];
const notes = document.querySelector("#notes details");
let now = 0;

function turn(to) {
  now = Math.max(0, Math.min(slides.length - 1, to));
  slides.forEach((slide, place) => slide.classList.toggle("now", place === now));
  history.replaceState(null, "", `#slide-${now + 1}`);
  scrollTo(0, 0);
}

const KEYS = {
  ArrowRight: () => turn(now + 1),
  PageDown: () => turn(now + 1),
  " ": () => turn(now + 1),
  ArrowLeft: () => turn(now - 1),
  PageUp: () => turn(now - 1),
  Home: () => turn(0),
  End: () => turn(slides.length - 1),
  n: () => (notes.open = !notes.open),
};

addEventListener("keydown", (event) => {
  const inside = event.target.closest("a, summary, [tabindex]");
  if (event.ctrlKey || event.metaKey || event.altKey || (inside && event.key === " "))
    return;
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

// A finger: a tap on the right or left edge of a slide.
for (const slide of slides) {
  slide.addEventListener("click", (event) => {
    if (event.target.closest("a, summary, pre, table")) return;
    const share = event.clientX / innerWidth;
    if (share > 0.85) turn(now + 1);
    if (share < 0.15) turn(now - 1);
  });
}
// What scrolls sideways must be within reach of the keyboard.
for (const node of document.querySelectorAll("pre, table")) node.tabIndex = 0;

function start() {
  document.body.classList.add("turning");
  turn((Number(location.hash.replace("#slide-", "")) || 1) - 1);
}
// Formulas are set while all slides are shown: in hidden ones they have no size.
(window.MathJax?.startup?.promise ?? Promise.resolve()).then(start, start);
