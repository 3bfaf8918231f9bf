"""The site builds without a warning and asks nothing of the network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What a browser fetches by itself: not the links a reader may click.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=[\"']?(?:https?:)?//"
    r"|<link\b[^>]*\shref=[\"']?(?:https?:)?//[^>]*"
    r"|(?:url\(|@import\s)\s*[\"']?(?:https?:)?//"
)


@pytest.mark.parametrize(
    ("text", "fetched"),
    [
        ('<script defer src="https://example.org/a.js">', True),
        ('<link rel="stylesheet" href="//example.org/a.css">', True),
        ("@font-face { src: url(https://example.org/a.woff) }", True),
        ("@import 'https://example.org/a.css'", True),
        ('<a href="https://example.org">', False),
        ('<script src="../_static/a.js">', False),
    ],
)
def test_the_pattern_finds_what_a_browser_fetches(text, fetched):
    assert bool(FETCHED.search(text)) is fetched


def test_the_site_builds_without_warnings_and_stands_alone(tmp_path):
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-d"]
    result = subprocess.run(
        [sys.executable, *command, tmp_path / "doctrees", ".", tmp_path / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    html = tmp_path / "html"
    pages = [*html.rglob("*.html")]
    names = {str(page.relative_to(html)) for page in pages}
    sources = ROOT.glob("notebooks/*.ipynb")
    assert names >= {f"notebooks/{path.stem}.html" for path in sources}
    assert "docs/generated/qdtheory.pairs.html" in names
    for path in [*pages, *html.rglob("*.css")]:
        assert not (found := FETCHED.search(path.read_text())), (path, found)
    page = (html / "docs/generated/qdtheory.pairs.html").read_text()
    assert re.search(r'<script defer="defer" src="[./]*/_static/tex-svg-full.js', page)
    (script,) = html.rglob("_static/tex-svg-full.js")
    assert script.stat().st_size > 1_000_000
