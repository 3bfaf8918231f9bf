"""Render the recipe as conda's builder reads it, without building: `make dist`."""

import sys
import tomllib
from pathlib import Path

from rattler_build import Stage0Recipe, VariantConfig

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Fail unless the recipe renders to the version of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    oldest = project["requires-python"].removeprefix(">=")
    recipe = Stage0Recipe.from_yaml((ROOT / "recipe/recipe.yaml").read_text("utf-8"))
    (output,) = recipe.render(VariantConfig({"python_min": [oldest]}))
    found = output.recipe.package
    if (found.name, found.version) != (name, version):
        sys.exit(f"the recipe makes {found}, pyproject.toml {name} {version}")
    print(f"recipe: {name} {version} renders for Python {oldest}")


if __name__ == "__main__":
    main()
