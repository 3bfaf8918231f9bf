// One switch opens the code of all lectures, and is remembered; a link to what lies in a
// fold opens it. Without this script each fold still opens by itself.
(() => {
  const KEY = "qdtheory-code";
  const folds = [...document.querySelectorAll("details.code")];

  const remembered = () => {
    try {
      return localStorage.getItem(KEY) === "open";
    } catch {
      return false; // storage may be barred to pages on the disk
    }
  };

  const remember = (open) => {
    try {
      localStorage.setItem(KEY, open ? "open" : "closed");
    } catch {}
  };

  if (folds.length > 1) {
    const button = document.createElement("button");
    button.className = "code-switch";
    button.type = "button";
    let open = remembered();
    const set = () => {
      for (const fold of folds) fold.open = open;
      button.textContent = open ? "Hide all code" : "Show all code";
    };
    button.addEventListener("click", () => {
      open = !open;
      remember(open);
      set();
    });
    set();
    document.querySelector(".article-header-buttons").prepend(button);
  }

  const unfold = () => {
    let node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const target = node;
    for (; node; node = node.parentElement?.closest("details")) node.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
})();
