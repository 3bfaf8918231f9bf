// One switch opens the code of all lectures, and is remembered; a link to what lies in a
// fold opens it. Without this script each fold still opens by itself.
(() => {
  const KEY = "qdtheory-code";
  const folds = [...document.querySelectorAll("details.code")];
  const central = folds.filter((fold) => fold.open);

  function stored(use) {
    try {
      return use(localStorage);
    } catch {} // storage may be barred to pages on the disk
  }

  if (folds.length > 1) {
    const button = document.createElement("button");
    Object.assign(button, {className: "code-switch", type: "button"});
    const set = (open) => {
      for (const fold of folds) fold.open = open;
      button.textContent = open ? "Hide all code" : "Show all code";
      button.onclick = () => {
        set(!open);
        stored((storage) => storage.setItem(KEY, open ? "closed" : "open"));
      };
    };
    const before = stored((storage) => storage.getItem(KEY));
    set(before === "open");
    if (!before) for (const fold of central) fold.open = true;
    document.querySelector(".article-header-buttons").prepend(button);
  }

  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let node = target;
    for (; node; node = node.parentElement?.closest("details")) node.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
})();

// On a phone two panels stand one above the other: two windows on one picture.
for (const image of document.querySelectorAll("figure img[class*='cut-']")) {
  const share = /cut-(\d+)/.exec(image.className)[1] / 1000;
  const right = image.cloneNode();
  right.alt = "";
  const set = (part, name, width) => {
    part.classList.add("panel", name);
    part.style.aspectRatio = (width * image.naturalWidth) / image.naturalHeight;
  };
  const cut = () => {
    image.after(right);
    set(image, "left", share);
    set(right, "right", 1 - share);
  };
  if (image.naturalWidth) cut();
  else image.addEventListener("load", cut, {once: true});
}
