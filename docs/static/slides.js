"use strict";
// Without this script the slides stand one below the other.
const slides = [...document.querySelectorAll(".slide")];
const notes = document.querySelector("#notes details");
const told = [...document.querySelectorAll("#notes li[value]")];
const WALL = matchMedia("(min-width: 60rem) and (min-height: 30rem)");
// Text and figures of a full slide shrink together, down to what is read from a seat.
const SIZES = [[1, 74], [1, 66], [0.92, 60], [0.84, 54], [0.76, 48]];
const [FIRST, LAST] = [-Infinity, Infinity];
const STEPS = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1, Home: FIRST, End: LAST};
let now = 0;

function fit(slide) {
  for (const [text, figure] of SIZES) {
    slide.style.fontSize = `${text}em`;
    slide.style.setProperty("--figure", `${figure}vh`);
    const wide = [...slide.querySelectorAll("pre, mjx-container[display]")];
    const cut = wide.some((node) => node.scrollWidth > node.clientWidth + 1);
    if (!WALL.matches || (!cut && slide.scrollHeight <= innerHeight - 40)) break;
  }
}

function turn(to) {
  now = Math.max(0, Math.min(slides.length - 1, to));
  slides.forEach((slide, place) => slide.classList.toggle("now", place === now));
  for (const note of told) note.hidden = note.value !== now + 1;
  fit(slides[now]);
  tell();
  history.replaceState(null, "", `#slide-${now + 1}`);
  scrollTo(0, 0);
}

// The speaker's window: what to say of the slide that the class sees.
let speaker = null;

function tell() {
  if (!speaker || speaker.closed) return;
  const note = told.find((one) => one.value === now + 1);
  const next = slides[now + 1]?.querySelector("h1, h2").textContent ?? "the end";
  speaker.document.title = `Slide ${now + 1}`;
  speaker.document.body.style = "font: 1.6rem/1.4 system-ui, sans-serif; margin: 2rem";
  const shown = note ? speaker.document.importNode(note, true) : "No note.";
  speaker.document.body.replaceChildren(shown);
  speaker.document.body.append(`Next: ${next}`);
}

// On paper the notes of all slides stand on one sheet.
addEventListener("beforeprint", () => {
  notes.open = true;
  for (const note of told) note.hidden = false;
});

const isUsed = (node) => node.closest?.("a, summary, pre, table");

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isUsed(event.target) && event.key === " ") return;
  if (event.key === "n") notes.open = !notes.open;
  else if (event.key === "w") {
    speaker = open("", "speaker");
    tell();
  } else if (event.key in STEPS) turn(now + STEPS[event.key]);
  else return;
  event.preventDefault();
});

// A finger: a tap on the right or left edge of a slide.
addEventListener("click", ({target, clientX}) => {
  if (!target.closest(".slide") || isUsed(target)) return;
  if (clientX > 0.85 * innerWidth) turn(now + 1);
  if (clientX < 0.15 * innerWidth) turn(now - 1);
});

// What scrolls sideways must be within reach of the keyboard.
for (const node of document.querySelectorAll("pre, table")) node.tabIndex = 0;

function start() {
  const turnToHash = () => turn((Number(location.hash.slice("#slide-".length)) || 1) - 1);
  document.body.classList.add("turning");
  turnToHash();
  addEventListener("resize", () => fit(slides[now]));
  addEventListener("hashchange", turnToHash);
}
// Formulas are set while all slides are shown: in hidden ones they have no size.
(window.MathJax?.startup?.promise ?? Promise.resolve()).then(start, start);
