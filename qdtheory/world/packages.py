"""Other packages: the versions to report, and what to type where one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version


def versions() -> str:
    """Name the versions of this package and of those that compute for it.

    Returns:
        The names and versions, in one line.

    Example:
        >>> print(versions())  # doctest: +ELLIPSIS
        qdtheory ..., JAX ..., NumPy ...
    """
    names = {"qdtheory": "qdtheory", "JAX": "jax", "NumPy": "numpy"}
    return ", ".join(f"{name} {version(package)}" for name, package in names.items())


def missing(what: str, package: str, extra: str | None) -> ModuleNotFoundError:
    """Build the error of a package that is not installed.

    Args:
        what: what needs it.
        package: its name.
        extra: the extra of qdtheory that installs it; None: it is installed by itself.

    Returns:
        The error, to be raised.

    Example:
        >>> print(missing("plotting", "matplotlib", "plot"))
        plotting needs matplotlib: pip install "qdtheory[plot]"
    """
    install = f'"qdtheory[{extra}]"' if extra else package
    message = f"{what} needs {package}: pip install {install}"
    return ModuleNotFoundError(message, name=package)


@contextmanager
def required(what: str, extra: str | None) -> Iterator[None]:
    """Tell what to install when the imports inside fail.

    Args:
        what: what needs the packages.
        extra: the extra of qdtheory that installs them; None: they are installed by
            themselves.

    Raises:
        ModuleNotFoundError: a package is not installed.

    Example:
        >>> with required("drawing", "plot"):
        ...     import pencil.colours
        Traceback (most recent call last):
        ModuleNotFoundError: drawing needs pencil: pip install "qdtheory[plot]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(what, str(error.name).partition(".")[0], extra) from None
