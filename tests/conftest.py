"""The built site and a browser, for the tests of pages."""

import fcntl
import os
import shutil

import pytest
from browser import DESK, Browser
from processes import ROOT, python


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The built site; of several workers the first to need it builds it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    html = folder / "html"
    with (folder / "html.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not html.exists():
            # Pages of modules that have moved since would be orphans.
            shutil.rmtree(ROOT / "docs/generated", ignore_errors=True)
            command = ["-m", "sphinx", "-qW", "--keep-going", "-j2", "-cdocs", "-d"]
            python(*command, folder / "trees", ".", folder / "building")
            (folder / "building").rename(html)
    return html


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def explorer(site, browser):
    """The explorer's page in a browser; it must not have complained in the end."""
    browser.resize(DESK)
    browser.open((site / "docs/explorer.html").as_uri())
    yield browser
    assert browser.complaints() == []
