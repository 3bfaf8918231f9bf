"""Execute the notebooks' sources, compare with what is committed, write what differs.

    python notebooks/build.py [--check | --stale] [--all | NAME ...]

By default the first lectures, 00 to 09, and those that are stale by their records.
`src/NAME.md` is the source of `NAME.ipynb`, what a reader opens, and of
`solutions/NAME.ipynb` where it holds cells tagged `solution`. `{minutes}` becomes the
time that it takes to read. A notebook is written only if its source, its tags, its alt
texts, a number or a figure changed beyond the tolerances below, so that
rebuilding on another machine changes no file; what its run read goes into
`records/NAME.json` (freshness.py). With `--check` nothing is written, and a difference
is a failure. With `--stale` nothing is executed either: notebooks that read a file
which changed since are named, and to have edited one of them or its source without
building it is a failure.
"""

import argparse
import asyncio
import base64
import io
import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from threading import current_thread
from typing import Any

import freshness
import jupytext
import nbformat
import numpy as np
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image
from traitlets.config import Config

FOLDER = Path(__file__).resolve().parent

# Rounding differs between machines in about the last 10 bits of a long sum;
# searched and trained numbers drift more, and their cells are tagged `loose`.
RELATIVE, LOOSE, ABSOLUTE = 1e-4, 1e-2, 1e-8
# Another build of the font renderer moves the grey of a few edge pixels; a curve in a
# loose cell may take another way. A drawing's points are in pixels too.
GREY_LEVELS, PIXELS, LOOSE_PIXELS = 32, 1e-3, 3e-2
SHIFT, LOOSE_SHIFT = 0.5, 15.0
CELL_SECONDS = 600
WORDS_A_MINUTE = 200
FIRST = "0"  # names of lectures that every build executes, fresh or not
KERNELS = 4  # at once, at most: one takes up to a gigabyte
# JAX traces many small objects: looking for cycles every 700 of them costs 10 %.
NEW_OBJECTS = 100_000
SVG = "image/svg+xml"

# A drawing of a few lines is kept as SVG, with all its points, since what is left out
# depends on rounding; its texts stay texts. One of many points, or in a loose cell,
# where their number may change, is kept as pixels.
LARGEST_DRAWING = 40_000
DRAWING = """
c.InlineBackend.figure_formats = {"svg", "png"}
c.InlineBackend.rc = {
    "path.simplify": False, "svg.fonttype": "none", "svg.hashsalt": "qdtheory"
}
c.InlineBackend.print_figure_kwargs = {
    "bbox_inches": "tight", "metadata": {"Creator": None, "Date": None}
}
"""
# Names of clipped areas and markers, made of the digits of their coordinates.
SVG_NAME = re.compile(r'(?<=id=")[pm][0-9a-f]{10}(?=")|(?<=#)[pm][0-9a-f]{10}')

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")
INTEGER = re.compile(r"[-+]?\d+\.?")
# A residual and its bound, `3.1e-07 <= 1e-6`: rounding or a solver decides its digits.
RESIDUAL = re.compile(r"(?<![\w.])\d\.?\d*e[-+]\d+(?= <= (\d\.?\d*e-\d+))")
ANSI = re.compile(r"\x1b\[[0-9;]*m")

METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


class CellError(Exception):
    """A cell failed, or wrote to stderr."""


# --- from one source to the notebooks ---------------------------------------


def tags(cell: NotebookNode) -> set[str]:
    """Tags of a cell."""
    return set(cell.metadata.get("tags", []))


def told(cell: NotebookNode) -> dict[str, str]:
    """What a cell says beside its text: what its figure shows, the words of a slide."""
    kept = ("alt", "notes", "slide")
    return {name: cell.metadata[name] for name in kept if name in cell.metadata}


def notebook(cells: Sequence[NotebookNode]) -> NotebookNode:
    """Notebook that holds these cells and no fact of this machine."""
    book = new_notebook(metadata=METADATA, nbformat_minor=5)
    for number, cell in enumerate(cells, start=1):
        metadata = told(cell) | ({"tags": sorted(tags(cell))} if tags(cell) else {})
        kept = cell | {"id": f"cell-{number}", "metadata": NotebookNode(metadata)}
        book.cells.append(NotebookNode(kept))
    return book


def notebooks(source: Path, folder: Path) -> dict[Path, NotebookNode]:
    """Unexecuted notebooks of a source, each under the path it is written to."""
    cells = jupytext.read(source, fmt="md:myst").cells
    name = f"{source.stem}.ipynb"
    books = {folder / name: notebook([c for c in cells if "solution" not in tags(c)])}
    if any("solution" in tags(c) for c in cells):
        title = re.search(r"^# +(.+)", cells[0].source, re.MULTILINE)
        heading = f"# Solutions: {title[1] if title else source.stem}\n\n"
        link = f"The exercises of [{source.stem}](../{name}), solved.\n"
        solved = [c for c in cells if tags(c) & {"setup", "exercise", "solution"}]
        books[folder / "solutions" / name] = notebook(
            [new_markdown_cell((heading + link).strip()), *solved]
        )
    return books


# --- execution --------------------------------------------------------------


def compiler_flags(jaxlib: str) -> str:
    """Flags of XLA that halve the time to compile programs as many and small as here.

    XLA ends the process at a flag that it does not know. The first of these is known
    from jaxlib 0.7 to 0.11.0, the second to every version.
    """
    release = tuple(map(int, re.findall(r"\d+", jaxlib)[:3]))
    plain = "--xla_cpu_use_fusion_emitters=false " if release < (0, 11, 1) else ""
    return plain + "--xla_backend_optimization_level=0"


def jax_environment(cache: Path) -> dict[str, str]:
    """Environment in which JAX compiles quickly, and keeps what it compiled."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        # The path of a cache of XLA's own would be part of the key of every entry.
        "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", compiler_flags(version("jaxlib"))),
    }


def kernel_environment(cache: Path, ipython: str) -> dict[str, str]:
    """Environment in which every machine's kernel prints and draws the same."""
    return os.environ | {
        **jax_environment(cache),
        # The library and the lab beside these notebooks, whatever is installed, and
        # for `!qdtheory` the command of this interpreter.
        "PYTHONPATH": os.pathsep.join(
            filter(
                None, [str(FOLDER.parent), str(FOLDER), os.environ.get("PYTHONPATH")]
            )
        ),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        # JAX warns on stderr of a GPU that it cannot use.
        "JAX_PLATFORMS": "cpu",
        # The reader's own settings must not change what is printed or drawn.
        "IPYTHONDIR": ipython,
        "MATPLOTLIBRC": os.devnull,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "COLUMNS": "76",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def execute(book: NotebookNode, target: Path, cache: Path) -> set[str]:
    """Run a notebook in its own folder; its outputs are put into its cells.

    Returns:
        Files that it read, those of modules too.

    Raises:
        CellError: A cell failed, or wrote to stderr.
    """
    target.parent.mkdir(exist_ok=True)
    book.cells.append(new_code_cell(freshness.PRINT_READ))
    with tempfile.TemporaryDirectory() as ipython:
        startup = Path(ipython, "profile_default/startup")
        startup.mkdir(parents=True)
        # No name is left behind that a notebook could lean on.
        (startup / "gc.py").write_text(
            f"__import__('gc').set_threshold({NEW_OBJECTS})\n{freshness.NOTE_OPENED}"
        )
        startup.with_name("ipython_kernel_config.py").write_text(
            f"c = get_config()\n{DRAWING}"
        )
        client = NotebookClient(
            book,
            kernel_name="python3",
            timeout=CELL_SECONDS,
            record_timing=False,
            coalesce_streams=True,  # where a stream is cut depends on the clock
            extra_arguments=["--log-level=ERROR"],
            # Sockets in a folder of its own: of two kernels that start at once, one
            # may take the TCP port that was chosen for the other, which then dies.
            config=Config(
                KernelManager={
                    "transport": "ipc",
                    "connection_file": str(Path(ipython, "kernel.json")),
                }
            ),
        )
        environment = kernel_environment(cache, ipython)
        try:
            # Not `execute`, which leaves an event loop open in each thread.
            asyncio.run(client.async_execute(cwd=str(target.parent), env=environment))
        except CellExecutionError as error:
            raise CellError(ANSI.sub("", error.traceback).strip()) from None
        except (CellTimeoutError, DeadKernelError) as error:
            raise CellError(str(error).strip()) from None
    read = {*book.cells.pop().outputs[0].text.splitlines()}
    book.metadata = NotebookNode(METADATA)
    said = str(minutes(book.cells))
    for number, cell in enumerate(book.cells, start=1):
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("{minutes}", said)
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                raise CellError(f"cell {number} raised {output.ename}: {output.evalue}")
            if output.get("name") == "stderr":
                raise CellError(
                    f"cell {number} wrote to stderr, where a warning or a log belongs "
                    f"that a reader should not see:\n{output.text.rstrip()}"
                )
            if "image/png" in output.get("data", {}):
                keep_one_picture(output.data, loose="loose" in tags(cell))
    return read


def keep_one_picture(data: dict[str, str], *, loose: bool) -> None:
    """Keep the drawing of a figure if it is small, else its pixels."""
    drawing = rounded(data.pop(SVG, ""))
    if drawing and not loose and len(drawing) <= LARGEST_DRAWING:
        data[SVG] = drawing
        del data["image/png"]
    else:
        data["image/png"] = with_palette(data["image/png"])


def rounded(svg: str) -> str:
    """The same drawing in hundredths of a pixel: half of the bytes.

    Numbers that are read stand between tags, and stay.
    """

    def shorter(tag: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d{3,}", lambda x: f"{float(x[0]):.2f}", tag[0])

    return re.sub("<[^>]*>", shorter, svg)


def with_palette(png: str) -> str:
    """The same picture in at most 256 colours: a third of the bytes."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    packed = io.BytesIO()
    picture.quantize(256, dither=Image.Dither.NONE).save(packed, "png", optimize=True)
    return base64.b64encode(packed.getvalue()).decode()


# --- reading time -------------------------------------------------------------


def words(cell: Mapping[str, Any]) -> int:
    """Words of a cell that are read: its text, or the claims that it shows."""
    if cell["cell_type"] == "markdown":
        return len("".join(cell["source"]).split())
    shown = (o.get("data", {}).get("text/markdown", "") for o in cell["outputs"])
    return sum(len("".join(text).split()) for text in shown)


def minutes(cells: Iterable[Mapping[str, Any]]) -> int:
    """Time to read a notebook: its words, and a minute a proof or cell of code."""
    taken = 0.0
    for cell in cells:
        is_code = cell["cell_type"] == "code"
        is_proof = "proof" in cell["metadata"].get("tags", [])
        taken += words(cell) / WORDS_A_MINUTE + (is_code or is_proof)
    return round(taken)


# --- comparison -------------------------------------------------------------


def bound_if_within(residual: re.Match[str]) -> str:
    """The bound in place of a residual that it holds for."""
    return residual[1] if float(residual[0]) <= float(residual[1]) else residual[0]


def text_difference(old: str, new: str, relative: float) -> str | None:
    """Tell how two printed texts differ, or None: words exactly, numbers nearly.

    Two integers are counts and must be equal, unless the cell is loose. Of a residual
    with its bound no more is asked than that it stays below.
    """
    old, new = (RESIDUAL.sub(bound_if_within, text) for text in (old, new))
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (old, new)]
    if words[0] != words[1]:
        return f"committed {clip(old)}, now {clip(new)}"
    for a, b in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True):
        exact = relative < LOOSE and INTEGER.fullmatch(a) and INTEGER.fullmatch(b)
        tolerances = (0.0, 0.0) if exact else (relative, ABSOLUTE)
        if not math.isclose(
            float(a), float(b), rel_tol=tolerances[0], abs_tol=tolerances[1]
        ):
            return f"number {a} committed, now {b}"
    return None


def image_difference(old: str, new: str, pixels: float) -> str | None:
    """Tell how two PNG images in base64 differ, or None."""
    a, b = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA"))
        for png in (old, new)
    )
    if a.shape != b.shape:
        return f"figure of {a.shape[1::-1]} pixels committed, now {b.shape[1::-1]}"
    off = np.abs(a.astype(int) - b.astype(int)).max(axis=-1) > GREY_LEVELS
    if off.mean() > pixels:
        return f"figure with {off.mean():.2%} of its pixels changed"
    return None


def drawing_difference(old: str, new: str, shift: float) -> str | None:
    """Tell how two drawings differ, or None: marks exactly, places nearly."""
    a, b = (" ".join(re.findall(r">([^<>]+)<", svg)) for svg in (old, new))
    if found := text_difference(a, b, RELATIVE):
        return f"figure that says: {found}"
    marks = [NUMBER.sub("#", SVG_NAME.sub("name", svg)) for svg in (old, new)]
    if marks[0] != marks[1]:
        return "figure of other marks or words"
    places = [NUMBER.findall(SVG_NAME.sub("name", svg)) for svg in (old, new)]
    off = float(np.abs(np.diff(np.array(places, float), axis=0)).max(initial=0.0))
    return f"figure with points {off:.2f} pixels off" if off > shift else None


def payloads(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """Kind and content of all that a cell shows."""
    for output in cell.get("outputs", []):
        if "data" in output:
            for kind, content in sorted(output.data.items()):
                is_text = isinstance(content, str)
                yield kind, content if is_text else json.dumps(content, sort_keys=True)
        else:
            yield output.output_type, output.get("text", "")


def cell_difference(old: NotebookNode, new: NotebookNode) -> str | None:
    """Tell how two cells differ, or None."""
    if (old.cell_type, old.source) != (new.cell_type, new.source):
        return f"source {clip(old.source)} committed, now {clip(new.source)}"
    if tags(old) != tags(new):
        return f"tags {sorted(tags(old))} committed, now {sorted(tags(new))}"
    if told(old) != told(new):
        return f"metadata {clip(str(told(old)))} committed, now {clip(str(told(new)))}"
    shown = [list(payloads(cell)) for cell in (old, new)]
    kinds = [[kind for kind, _ in cell] for cell in shown]
    if kinds[0] != kinds[1]:
        return f"outputs {kinds[0]} committed, now {kinds[1]}"
    loose = "loose" in tags(new)
    relative, pixels = (LOOSE, LOOSE_PIXELS) if loose else (RELATIVE, PIXELS)
    for (kind, a), (_, b) in zip(*shown, strict=True):
        if kind == "image/png":
            found = image_difference(a, b, pixels)
        elif kind == SVG:
            found = drawing_difference(a, b, LOOSE_SHIFT if loose else SHIFT)
        else:
            found = text_difference(a, b, relative)
        if found:
            return found
    return None


def differences(old: NotebookNode, new: NotebookNode) -> list[str]:
    """List how two notebooks differ, cell by cell."""
    found = [
        f"cell {number}: {difference}"
        for number, cells in enumerate(zip(old.cells, new.cells, strict=False), start=1)
        if (difference := cell_difference(*cells))
    ]
    if len(old.cells) != len(new.cells):  # all cells after it are shifted
        found = [*found[:1], f"{len(old.cells)} cells committed, now {len(new.cells)}"]
    return found


def clip(text: str, width: int = 300) -> str:
    """Text in quotes, cut where it gets long."""
    return repr(text if len(text) <= width else text[:width] + " ...")


# --- the command ------------------------------------------------------------


def bring_up_to_date(
    book: NotebookNode, target: Path, cache: Path, *, check: bool
) -> set[str] | None:
    """Execute, compare, write where something differs; files read if all is well."""
    start = time.monotonic()
    name = f"{target.parent.name}/{target.stem}"
    try:
        read = execute(book, target, cache)
    except CellError as error:
        print(f"{name} failed\n{error}", flush=True)
        return None
    if target.exists():
        found = differences(nbformat.read(target, as_version=4), book)
    else:
        found = ["not built before"]
    verdict = "unchanged" if not found else "differs" if check else "written"
    took = f"{time.monotonic() - start:.0f} s"
    lines = [f"{name} {verdict} ({took})", *(f"  {line}" for line in found)]
    print("\n".join(lines), flush=True)  # at once: others print beside it
    if found and not check:
        nbformat.write(book, target)
    return None if found and check else read


def bring_all_up_to_date(
    sources: Mapping[str, dict[Path, NotebookNode]], folder: Path, *, check: bool
) -> bool:
    """Bring the notebooks of some sources up to date at a time; tell if all is well."""
    cache = Path(
        os.environ.get("JAX_COMPILATION_CACHE_DIR", folder.parent / ".jax_cache/main")
    )

    def of_one(name: str) -> bool:
        # A cache of its own: JAX writes entries in place, where a kernel that runs at
        # the same time would read them half written.
        own = cache / current_thread().name
        reads = [
            bring_up_to_date(book, target, own, check=check)
            for target, book in sources[name].items()
        ]
        if None in reads:
            return False
        if not check:
            freshness.record(name, set().union(*filter(None, reads)), folder)
        return True

    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, KERNELS), "kernel")
    try:
        return all([*pool.map(of_one, sources)])
    finally:
        pool.shutdown(cancel_futures=True)


def name_the_stale(names: Iterable[str], folder: Path) -> bool:
    """Name what to build; tell if no source and no notebook was edited since."""
    well = True
    for name in names:
        if found := freshness.changed(name, folder):
            print(freshness.told(name, found))
            well = well and Path(found[0]).stem != name
    return well


def orphans(targets: Set[Path], folder: Path) -> list[Path]:
    """Notebooks that no source makes."""
    present = {*folder.glob("*.ipynb"), *folder.glob("solutions/*.ipynb")}
    return sorted(present - targets)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Run the command; the exit status is 1 if anything failed or differs."""
    parser = argparse.ArgumentParser(description="Bring the notebooks up to date.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: the stale")
    parser.add_argument("--all", action="store_true", help="the fresh ones too")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--check", action="store_true", help="write nothing, fail on a difference"
    )
    mode.add_argument(
        "--stale", action="store_true", help="execute nothing, name what changed"
    )
    options = parser.parse_args(arguments)

    sources = {path.stem: path for path in sorted(folder.glob("src/*.md"))}
    chosen = [Path(name).stem for name in options.names] or list(sources)
    if not (options.names or options.all or options.check or options.stale):
        chosen = [
            name
            for name in sources
            if name.startswith(FIRST) or freshness.changed(name, folder)
        ]
        if left := len(sources) - len(chosen):
            print(
                f"Not executed: {left} lectures from 10 on, which are fresh by their "
                "records; `make book ALL=1` executes all",
                flush=True,
            )
    if unknown := [name for name in chosen if name not in sources]:
        parser.error(f"no source src/{unknown[0]}.md; there are: {', '.join(sources)}")

    read = chosen if options.names else sources
    books = {name: notebooks(sources[name], folder) for name in read}
    if options.stale:
        well = name_the_stale(chosen, folder)
    else:
        these = {name: books[name] for name in chosen}
        well = bring_all_up_to_date(these, folder, check=options.check)
    if not options.names:
        for path in orphans(set().union(*books.values()), folder):
            print(f"{path.relative_to(folder)} has no source in src/: delete it")
            well = False
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
