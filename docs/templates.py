"""The templates of what is written beside Sphinx's own pages."""

from pathlib import Path

import jinja2

FOLDER = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
ENVIRONMENT = jinja2.Environment(
    loader=FOLDER, autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def rendered(template: str, **values: object) -> str:
    """A template filled in; values are escaped unless the template says `safe`."""
    return ENVIRONMENT.get_template(template).render(values)
