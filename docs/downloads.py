"""Notebooks to download that run alone: each with its tables, as one archive.

A lecture's page links `downloads/NAME.zip`: the notebook, the tables and modules of
`notebooks/data` and `notebooks/lab` that its run read, and a file that says what to
install: JupyterLab, the package with its figures, and what the page says that it
**Needs**. Until a package index has the package, its wheel lies
beside the archives.
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


def beside(notebook: Path) -> list[Path]:
    """Files of the folders data and lab that a run of the notebook read."""
    record = NOTEBOOKS / f"records/{notebook.stem}.json"
    folders = ("notebooks/data/", "notebooks/lab/")
    names = json.loads(record.read_text("utf-8"))["read"]
    read = [ROOT / name for name in names if name.startswith(folders)]
    # A face names its modules in a stub, which a record leaves out.
    stubs = [path.with_suffix(".pyi") for path in read]
    return [*read, *(path for path in stubs if path.exists())]


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
    for path in beside(notebook):
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


def setup(app):
    app.connect("build-finished", write_archives)
    return {"parallel_read_safe": True}
