"""What pages have at comments, `<!-- names -->`, made anew in each build."""

import address
import api_page
import coverage_page
import metrics_page
import theorem_graph

MADE = {
    "docs/api": api_page.texts,
    "docs/index": lambda: {"install": address.install_from_the_site()},
    "docs/metrics": metrics_page.texts,
    "docs/theorem_graph": theorem_graph.texts,
    "docs/your_paper": coverage_page.texts,
}


def fill(app, document, source):
    """Put the texts in the places of their comments."""
    for name, text in MADE.get(document, dict)().items():
        source[0] = source[0].replace(f"<!-- {name} -->", text)


def outdated(app, env, added, changed, removed):
    """These pages, and those of the parts: what they show may have changed."""
    return {x for x in env.found_docs if x in MADE or x.startswith("docs/parts/")}


def setup(app):
    app.connect("source-read", fill)
    app.connect("env-get-outdated", outdated)
    return {"parallel_read_safe": True}
