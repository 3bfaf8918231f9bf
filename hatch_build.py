"""Gives the package its description: the README, without the files beside it."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]*)\)")


def standalone(text: str, repository: str | None) -> str:
    """Make relative links absolute; without an address, words of links stay alone."""

    def absolute(link: re.Match[str]) -> str:
        picture, words, path = link.groups()
        if repository is None:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/HEAD/{path})"

    return LINK.sub(absolute, text)


class Readme(MetadataHookInterface):
    """The README as a package index shows it."""

    def update(self, metadata: dict) -> None:
        """Set the readme; links lead to `Repository` of the project's URLs."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": standalone(text, repository),
        }
