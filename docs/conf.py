"""Sphinx settings: the notebooks as committed, and the reference from docstrings."""

import importlib.util
import re
import sys
import typing
from pathlib import Path

# jaxtyping writes `Float[Array, "texts"]` in signatures if this is set before it,
# or anything that imports it, is loaded.
typing.GENERATING_DOCUMENTATION = "qdtheory"

project = "qdtheory"
author = "The qdtheory authors"
copyright = author
sys.path.append(str(Path(__file__).parent))  # where the pages' tables are
extensions = [
    "claim_links",
    "coverage_page",
    "downloads",
