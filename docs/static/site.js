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
