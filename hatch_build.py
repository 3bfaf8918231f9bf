"""Gives the package its addresses and, without the files beside it, the README."""

import re
import tomllib
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]*)\)")
PAPER = "https://arxiv.org/abs/2007.01488"


def standalone(text: str, repository: str) -> str:
    """Make relative links absolute; without an address, words of links stay alone."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, path = link.groups()
        if not repository:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/HEAD/{path})"

    return LINK.sub(absolute, text)


def urls(repository: str) -> dict[str, str]:
    """The addresses that a package index lists."""
    if not repository:
        return {"Paper": PAPER}
    return {
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Paper": PAPER,
    }


class Addresses(MetadataHookInterface):
    """The README as a package index shows it, and the project's addresses."""

    def update(self, metadata: dict) -> None:
        """Set both by the address that `tool.qdtheory` of pyproject.toml gives."""
        root = Path(self.root)
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        repository = project["tool"]["qdtheory"]["repository"]
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": standalone(text, repository),
        }
        metadata["urls"] = urls(repository)
