"""Put a built site beside other versions: `python docs/publish.py SITE FOLDER`.

    FOLDER/index.html    leads to the newest version
    FOLDER/versions.js   the list, newest first
    FOLDER/0.9.0/        the site of a version

The pages of each version load the one list, so that old versions show new ones. All of
it works from a web server and from the disk.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOAD = """const versions = document.createElement("script");
versions.src = `${document.documentElement.dataset.content_root}../versions.js`;
document.head.append(versions);
"""


def order(version):
    """Key that sorts versions by their numbers."""
    return [int(number) for number in re.findall(r"\d+", version)]


def publish(site, folder):
    """Copy a site under its version, in place of an older copy, and list it."""
    page = (site / "docs/index.html").read_text("utf-8")
    version = re.search(r'id="version">([^<]+)<', page)[1]
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    (folder / version / "versions.js").write_text(LOAD, "utf-8")
    found = (path.parents[1].name for path in folder.glob("*/docs/index.html"))
    versions = sorted(found, key=order, reverse=True)
    names = ", ".join(f'"{name}"' for name in versions)
    (folder / "versions.js").write_text(f"showVersions([{names}]);\n", "utf-8")
    start = (ROOT / "docs/entrance/index.html").read_text("utf-8")
    start = start.replace("docs/index.html", f"{versions[0]}/docs/index.html")
    (folder / "index.html").write_text(start, "utf-8")
    return folder / "index.html"


if __name__ == "__main__":
    print(publish(Path(sys.argv[1]), Path(sys.argv[2])))
