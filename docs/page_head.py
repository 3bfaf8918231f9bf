"""What a page tells of itself to search engines and to sites that link to it."""

import textwrap

from docutils import nodes


def tell(app, pagename, templatename, context, doctree):
    """Describe a page by its first paragraph; a picture needs the site's address."""
    if doctree is not None:
        paragraph = next(doctree.findall(nodes.paragraph), None)
        if paragraph is not None:
            words = paragraph.astext()
            context["description"] = textwrap.shorten(words, 200, placeholder=" ...")
    address = app.config.html_baseurl
    if address:
        context["social_picture"] = f"{address.rstrip('/')}/_static/social.png"


def setup(app):
    app.connect("html-page-context", tell)
    return {"parallel_read_safe": True}
