// A figure that scrolls sideways must be within reach of the keyboard; the theme sees to
// code and tables.
for (const event of ["load", "resize"]) {
  addEventListener(event, () => {
    for (const node of document.querySelectorAll(".cell_output, p:has(> img)")) {
      node.tabIndex = node.scrollWidth > node.clientWidth ? 0 : -1;
    }
  });
}
