"use strict";
// Without this script the slides stand one below the other.
const slides = [...document.querySelectorAll(".slide")];
const notes = document.querySelector("#notes details");
const told = [...document.querySelectorAll("#notes li[value]")];
const WALL = matchMedia("(min-width: 60rem) and (min-height: 30rem)");
// Text and figures of a full slide shrink together, down to what is read from a seat.
const SIZES = [1, 0.92, 0.84, 0.76, 0.68];
const HEIGHTS = [62, 54, 46, 38, 32];
let now = 0;

function fit(slide) {
  for (const [step, size] of SIZES.entries()) {
    slide.style.fontSize = `${size}em`;
    slide.style.setProperty("--figure", `${HEIGHTS[step]}vh`);
    const cut = [...slide.querySelectorAll("pre, mjx-container[display]")].some(
      (node) => node.scrollWidth > node.clientWidth + 1,
    );
    if (!WALL.matches || (!cut && slide.scrollHeight <= innerHeight - 40)) break;
  }
}

function turn(to) {
  now = Math.max(0, Math.min(slides.length - 1, to));
  slides.forEach((slide, place) => slide.classList.toggle("now", place === now));
  for (const note of told) note.hidden = note.value !== now + 1;
  fit(slides[now]);
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
  const inside = event.target.closest?.("a, summary, pre, table");
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
  addEventListener("resize", () => fit(slides[now]));
  addEventListener("hashchange", () => turn(Number(location.hash.slice(7)) - 1 || 0));
}
// Formulas are set while all slides are shown: in hidden ones they have no size.
(window.MathJax?.startup?.promise ?? Promise.resolve()).then(start, start);
