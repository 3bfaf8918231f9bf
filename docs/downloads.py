"""Notebooks to download that run alone: each with its tables, as one archive.

A page's download button gives `downloads/NAME.zip`: the notebook, the tables and
modules of `notebooks/data` that its cells name, and a line that says what to install.
"""

import re
import zipfile
from pathlib import Path

from notebook_cells import NOTEBOOKS, cells_of, lectures, source_of

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes in every build
INSTALL = """\
Needs Python 3.11 or newer:

    pip install jupyterlab seaborn "qdtheory[plot,text,train,certify,embeddings]"
    jupyter lab {name}.ipynb
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


def pack(notebook: Path, target: Path) -> None:
    """Write a notebook and what it reads into one archive."""
    name = notebook.stem
    contents = {f"{name}/{notebook.name}": notebook.read_bytes()}
    contents |= {f"{name}/data/{p.name}": p.read_bytes() for p in tables(notebook)}
    contents[f"{name}/README.txt"] = INSTALL.format(name=name).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in contents.items():
            archive.writestr(
                zipfile.ZipInfo(inside, EPOCH), content, zipfile.ZIP_DEFLATED
            )


def write_archives(app, error):
    """Write the archives beside the pages."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir, "downloads")
    folder.mkdir(exist_ok=True)
    for notebook in lectures():
        pack(notebook, folder / f"{notebook.stem}.zip")


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
    app.connect("build-finished", write_archives)
    # After the theme, which makes the buttons at 501.
    app.connect("html-page-context", offer_archive, priority=600)
    return {"parallel_read_safe": True}
