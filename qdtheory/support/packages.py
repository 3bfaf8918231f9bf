"""Other packages: the versions to report, and what to type where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version


def versions() -> str:
    """Name the versions of this package and of those that compute for it."""
    names = {"qdtheory": "qdtheory", "JAX": "jax", "NumPy": "numpy"}
    return ", ".join(f"{name} {version(package)}" for name, package in names.items())


def missing(what: str, package: str, extra: str | None) -> ModuleNotFoundError:
    """Build the error of a package that is not installed."""
    install = f'"qdtheory[{extra}]"' if extra else package
    message = f"{what} needs {package}: pip install {install}"
    return ModuleNotFoundError(message, name=package)


@contextmanager
def required(what: str, extra: str | None) -> Iterator[None]:
    """Tell what to install when the imports inside fail."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(what, str(error.name).partition(".")[0], extra) from None
