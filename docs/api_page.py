"""The reference: a page for each public module, and one table of all public names.

tests/public_names.txt lists what is public, by the name that a reader types and in the
order of the table. A name at the top stands on the page of the module that defines it.
"""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ROOT / "tests/public_names.txt"
PAGES = ROOT / "docs/generated"  # not committed

PAGE = """\
# {typed}

```python
{imports}
```

{table}

```{{eval-rst}}
.. automodule:: {module}
   :members: {members}
```
"""


@cache
def defined_at():
    """The module of each name at the top, as `__init__.pyi` imports it."""
    tree = ast.parse((ROOT / "qdtheory/__init__.pyi").read_text("utf-8"))
    return {
        alias.name: f"qdtheory.{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


@cache
def public():
    """Module -> its public names, each with what is typed, in the order of the list."""
    found = {}
    for line in NAMES.read_text("utf-8").splitlines():
        typed, parameters = re.fullmatch(r"([\w.]+)(.*)", line).groups()
        place, _, name = typed.rpartition(".")
        if place == "qdtheory":
            place = defined_at().get(name)
            if place and place.startswith("qdtheory.text."):  # shown by its room
                place = "qdtheory.text"
        if place:  # else a module, which its names show
            shown = typed.replace("qdtheory", "qd", 1) + parameters
            found.setdefault(place, {})[name] = shown
    return found


def in_order():
    """The public modules as the package's page names its files; the others follow."""
    said = (ROOT / "qdtheory/README.md").read_text("utf-8")
    files = re.findall(r"`(\w+)\.py`", said)
    place = {f"qdtheory.{name}": i for i, name in enumerate(dict.fromkeys(files))}
    return sorted(public(), key=lambda module: (place.get(module, len(place)), module))


def import_line(module):
    """What one types to have the names of a module."""
    flat = module.count(".") == 1 or all(
        shown.startswith("qd.") and shown.count(".") == 1
        for shown in (name.partition("(")[0] for name in public()[module].values())
    )
    return "import qdtheory as qd" if flat else f"from {module} import NAME"


def typed(module, shown):
    """A name as it is typed after the import line."""
    whole = module.replace("qdtheory", "qd", 1)
    if import_line(module).startswith("from"):
        return shown.removeprefix(f"{whole}.")
    return shown


def described(value):
    """The first line of a docstring, as Markdown for a table; of a constant itself."""
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return f"`{value!r}`" if len(repr(value)) < 60 else ""
    line = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())

    def without_bar(match):  # it would end the cell
        return match[1].replace("|", r"\vert ") if match[1] else r"\|"

    return re.sub(r"(\$[^$]+\$)|\|", without_bar, line)


def table(module):
    """What is public in a module, as typed, with what it is."""
    home = importlib.import_module(module)
    rows = [
        f"| {{py:obj}}`{typed(module, shown)} <{module}.{name}>` "
        f"| {described(getattr(home, name))} |"
        for name, shown in public()[module].items()
    ]
    return "\n".join(["| As typed | What it is |", "|---|---|", *rows])


def write_pages(app):
    """Write the page of each public module before Sphinx looks for pages."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for module, names in public().items():
        page = PAGE.format(
            typed=module.replace("qdtheory", "qd", 1),
            imports=import_line(module),
            table=table(module),
            module=module,
            members=", ".join(names),
        )
        (PAGES / f"{module}.md").write_text(page, encoding="utf-8")


def texts():
    """The table of all names, module by module."""
    parts = []
    for module in in_order():
        page = f"[{module.replace('qdtheory', 'qd', 1)}](generated/{module}.md)"
        parts.append(f"## {page}\n\n`{import_line(module)}`\n\n{table(module)}\n")
    entries = "\n".join(f"generated/{module}" for module in in_order())
    tree = f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    return {"names": "\n".join([*parts, tree])}


def setup(app):
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
