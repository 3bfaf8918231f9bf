"""The scorers of docs/harness score as the library does, in the harness if it is there.

Where a harness is not installed, a stand-in has as much of its interface as they use.
"""

import asyncio
import doctest
import importlib.util
import json
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml
from other_pythons import ROOT

from qdtheory import text

FOLDER = ROOT / "docs/harness"
PARTS = ("quality", "diversity", "score")
PROMPTS = [
    json.loads(line) for line in (FOLDER / "prompts/test.jsonl").read_text().split("\n")[:-1]
]
REFERENCES = [row["references"] for row in PROMPTS]
OUTPUTS = [
    ["in the park", "they play in the garden", "behind the school", "in the park"],
    ["a cup of tea", "a cup of coffee", "black tea", "a cup of black tea"],
    ["because of the snow", "because of the snow", "the road is under repair", ""],
    ["walk down the hill", "turn left", "take the bus", "walk down the hill"],
]


def installed(package):
    return importlib.util.find_spec(package) is not None


def load(monkeypatch, name, stand_in):
    """Run a file of docs/harness with the modules of a stand-in."""
    for module, names in stand_in.items():
        made = ModuleType(module)
        made.__dict__.update(names)
        monkeypatch.setitem(sys.modules, module, made)
    spec = importlib.util.spec_from_file_location("loaded", FOLDER / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
