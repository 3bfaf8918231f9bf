"""The explorer's page without the site round it, so that a test need not build that."""

import json
from pathlib import Path

from browser import Browser
from markdown_it import MarkdownIt

DOCS = Path(__file__).parents[1] / "docs"


def open_explorer(folder: Path) -> Browser:
    """A browser that shows docs/explorer.md, with its scripts, from the disk."""
    body = MarkdownIt("commonmark", {"html": True}).render(
        (DOCS / "explorer.md").read_text()
    )
    (folder / "docs").mkdir()
    (folder / "_static").symlink_to(DOCS / "static")
    page = folder / "docs/explorer.html"
    head = '<meta charset="utf-8"><title>Explorer</title>'
    page.write_text(
        f'<!doctype html><html lang="en" data-theme="light">{head}<main>{body}</main>'
    )
    browser = Browser(folder / "chromium")
    browser.resize(1280)
    browser.open(page.as_uri())
    return browser


def enter(browser: Browser, name: str, value: str | float) -> None:
    """Choose in a field of the page."""
    browser.evaluate(
        f"""(() => {{
          const field = document.getElementById({name!r});
          field.value = {json.dumps(str(value))};
          field.dispatchEvent(new Event("input", {{bubbles: true}}));
          field.dispatchEvent(new Event("change", {{bubbles: true}}));
        }})()"""
    )


def text(browser: Browser, name: str) -> str:
    """What an element of the page says."""
    return browser.evaluate(f"document.getElementById({name!r}).textContent")
