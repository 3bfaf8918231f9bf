"""Notebooks to download that run alone: each with its tables, as one archive.

A page's download button gives `downloads/NAME.zip`: the notebook, the tables and
modules of `notebooks/data` that its cells name, those of `notebooks/lab` that its run
read, and a file that says what to install:
JupyterLab, the package with its figures, and what the page says that it **Needs**.
Until a package index has the package, its wheel lies beside the archives, and each page
links both.
"""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from address import RELEASED, ROOT, WHEEL, requirement
from notebook_cells import NOTEBOOKS, cells_of, lectures, source_of

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes in every build
NEEDS = re.compile(r"\*\*Needs\*\* (.+?)(?=\n\n|\Z)", re.DOTALL)
# Where the package comes from, before there is a release.
BESIDE = f"""\
Put {WHEEL} into this folder: it is the package, and
the lecture's page offers it beside this archive. """
INSTALL = """\
{where}With Python 3.11 or newer:

    pip install {packages}
    jupyter lab {opened}
"""


def tables(notebook: Path) -> list[Path]:
    """Files of the folder data that the cells of a notebook read."""
    code = "\n".join(
        source_of(c) for c in cells_of(notebook) if c["cell_type"] == "code"
    )
    modules = re.findall(r"^from data\.(\w+) import", code, re.MULTILINE)
    names = re.findall(r"""["'](?:data/)?([\w.-]+\.csv)["']""", code)
    wanted = [f"{module}.py" for module in modules] + names
    return [NOTEBOOKS / "data" / name for name in dict.fromkeys(wanted)]


def lab(notebook: Path) -> list[Path]:
    """Files of the lab that a run of the notebook read, by its record."""
    record = NOTEBOOKS / f"records/{notebook.stem}.json"
    read = [ROOT / name for name in json.loads(record.read_text("utf-8"))["read"]]
    modules = [path for path in read if path.is_relative_to(NOTEBOOKS / "lab")]
    # A face names its modules in a stub, which a record leaves out.
    stubs = [path.with_suffix(".pyi") for path in modules]
    return [*modules, *(path for path in stubs if path.exists())]


def needs(notebook: Path) -> tuple[set[str], set[str]]:
    """Extras and other packages that a lecture says it needs beside the common ones."""
    opening = "\n\n".join(source_of(cell) for cell in cells_of(notebook)[:4])
    said = NEEDS.search(opening)
    assert said, f"{notebook.name} does not say what it **Needs**"
    named = re.findall(r"(extra )?`([\w-]+)`", said[1])
    assert named or said[1] == "nothing else", f"{notebook.name} needs {said[1]!r}"
    return {n for extra, n in named if extra}, {n for extra, n in named if not extra}


def install(notebooks: Iterable[Path], opened: str, where: str = "") -> bytes:
    """Say what to install for these notebooks, and what to open."""
    extras, packages = {"plot"}, {"jupyterlab"}
    for notebook in notebooks:
        more = needs(notebook)
        extras |= more[0]
        packages |= more[1]
    asked = ",".join(sorted(extras))
    package = requirement(asked, released=RELEASED, copy=f"./{WHEEL}")
    named = " ".join([*sorted(packages), package])
    return INSTALL.format(where=where, packages=named, opened=opened).encode()


def pack(notebook: Path, target: Path) -> None:
    """Write a notebook and what it reads into one archive."""
    name = notebook.stem
    contents = {f"{name}/{notebook.name}": notebook.read_bytes()}
    for path in (*tables(notebook), *lab(notebook)):
        contents[f"{name}/{path.relative_to(NOTEBOOKS)}"] = path.read_bytes()
    where = "" if RELEASED else BESIDE
    contents[f"{name}/README.txt"] = install([notebook], notebook.name, where)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in contents.items():
            archive.writestr(
                zipfile.ZipInfo(inside, EPOCH), content, zipfile.ZIP_DEFLATED, 9
            )


@cache
def wheel() -> bytes:
    """The package as one file, the same bytes in every build."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    with TemporaryDirectory() as folder:
        subprocess.run([*command, folder], cwd=ROOT, check=True, capture_output=True)
        return Path(folder, WHEEL).read_bytes()


def write_archives(app, error):
    """Write the archives beside the pages."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir, "downloads")
    folder.mkdir(exist_ok=True)
    if not RELEASED:
        (folder / WHEEL).write_bytes(wheel())
    for notebook in lectures():
        pack(notebook, folder / f"{notebook.stem}.zip")


def link_archive(app, document, source):
    """Link the archive, and the package, where a lecture says what it needs.

    They are no files of the repository, so the notebook itself cannot.
    """
    folder, _, name = document.rpartition("/")
    if folder != "notebooks":
        return
    link = f'<a href="../downloads/{name}.zip">the notebook with its tables</a>'
    if not RELEASED:
        link += f' and <a href="../downloads/{WHEEL}">the package</a>'
    book = json.loads(source[0])
    for cell in book["cells"][:4]:
        said = rf"\g<0> · **To run it alone** {link}"
        cell["source"] = NEEDS.sub(said, source_of(cell))
    source[0] = json.dumps(book)


def offer_archive(app, page, template, context, doctree):
    """Let a lecture's download button give the archive, in place of its source."""
    folder, _, name = page.rpartition("/")
    for group in context.get("header_buttons", []):
        if group.get("label") != "download-buttons":
            continue
        group["buttons"] = [
            button
            for button in group["buttons"]
            if "_sources/" not in button.get("url", "")
        ]
        if folder == "notebooks":
            button = {
                "type": "link",
                "url": context["pathto"](f"downloads/{name}.zip", 1),
                "text": ".zip",
                "icon": "fas fa-file-zipper",
                "tooltip": "Download the notebook with its tables",
                "label": "download-archive-button",
            }
            group["buttons"].insert(0, button)


def setup(app):
    app.connect("source-read", link_archive)
    app.connect("build-finished", write_archives)
    # After the theme, which makes the buttons at 501.
    app.connect("html-page-context", offer_archive, priority=600)
    return {"parallel_read_safe": True}
