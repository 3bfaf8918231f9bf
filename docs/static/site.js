// On a phone the sidebar opens where the page is, and on a desk it stays there: see
// templates/sidebar_place.html.
addEventListener("load", () => {
  document.querySelector(".primary-toggle")?.addEventListener("click", () => {
    placeSidebar(document.getElementById("pst-primary-sidebar-modal"));
  });
});

// On a phone the cells of a row stand below each other, so each says its column.
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.stacked")) {
    const names = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, i) => (cell.dataset.column = names[i]));
    }
  }
});

// Called by versions.js, where other versions of the site lie beside this one.
function showVersions(versions) {
  const place = document.getElementById("version");
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Version of the book");
  choice.append(...versions.map((name) => new Option(name)));
  choice.value = place.textContent;
  choice.addEventListener("change", () => {
    const root = document.documentElement.dataset.content_root;
    location.href = `${root}../${choice.value}/docs/index.html`;
  });
  place.replaceWith(choice);
}
