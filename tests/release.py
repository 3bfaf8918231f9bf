"""Build the sdist and the wheel, and use the wheel as a stranger would.

    python tests/release.py FOLDER

Both are built twice, from two copies of the checkout, and must be the same bytes; the
wheel that the sdist makes must be the wheel. It is installed with its base requirements
into an empty environment of each Python of this machine, where the commands run. FOLDER
gets what was built.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from other_pythons import ROOT, copy_checkout, other_pythons

# What a user without an extra types, and how the answer begins.
COMMANDS = {
    'check --f "log(x)" --g "-x*log(x)"': "compatible",
    'check --f "log(x)" --g "-x**2"': "incompatible",
    "qdisc --pair CR-NRR": "",
    "metrics BLEU": "As papers use it, beside Self-BLEU: real text is beaten.",
    "rewards --reward 'log(D/(1-D))'": "",
    "evaluate model.txt --references real.txt": "",
}


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command printed; its failure ends this program."""
    # Nothing of the checkout or of the environment in which this runs.
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    outer = {name: value for name, value in os.environ.items() if name not in hidden}
    found = subprocess.run(
        command, cwd=cwd, env=outer | environment, capture_output=True, text=True
    )
    if found.returncode:
        line = " ".join(map(str, command))
        sys.exit(f"{line} failed\n{found.stdout}{found.stderr}")
    return found.stdout


def build(source: Path, folder: Path, *kinds: str) -> dict[str, bytes]:
    """The distributions of a source folder, each under its name."""
    chosen = [option for kind in kinds for option in ("-t", kind)]
    run(sys.executable, "-m", "hatchling", "build", *chosen, "-d", folder, cwd=source)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def reproducible(folder: Path) -> dict[str, bytes]:
    """The sdist and the wheel, after three builds that agree."""
    builds = []
    for name in ("one", "two"):
        source = folder / name / "source"
        source.mkdir(parents=True)
        copy_checkout(source)
        builds.append(build(source, folder / name / "dist", "sdist", "wheel"))
    if builds[0] != builds[1]:
        sys.exit("two builds of one checkout differ")
    (sdist,) = (folder / "one/dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (unpacked,) = (folder / "sdist").iterdir()
    ((name, wheel),) = build(unpacked, folder / "three", "wheel").items()
    if builds[0][name] != wheel:
        sys.exit("the sdist makes another wheel than the checkout")
    return builds[0]


def use(wheel: Path, interpreter: Path, folder: Path) -> None:
    """Install the wheel with its base requirements only, and use it."""
    folder.mkdir()
    home = folder / "environment"
    run(sys.executable, "-m", "uv", "venv", "--python", interpreter, home, cwd=folder)
    python = home / "bin/python"
    pinned = ["--constraint", ROOT / "requirements/lock.txt"]
    install = ["-m", "uv", "pip", "install", "--python", python, *pinned, wheel]
    run(sys.executable, *install, cwd=folder)
    for name in ("model.txt", "real.txt"):
        (folder / name).write_text("a model wrote this one\n" * 3 + "or not this one\n")
    for line, said in COMMANDS.items():
        printed = run("sh", "-c", f"{home}/bin/qdtheory {line}", cwd=folder)
        if not (printed and printed.startswith(said)):
            sys.exit(f"qdtheory {line} printed {printed!r}, expected {said!r}")
    code = "import qdtheory as qd; print(qd.check('BLEU', 'Self-BLEU'))"
    if not run(python, "-c", code, cwd=folder).startswith("Incompatible: "):
        sys.exit(f"{code} printed something else")
    version = run(python, "--version", cwd=folder).strip()
    print(f"{version}: {len(COMMANDS)} commands, a line of Python", flush=True)


def main() -> None:
    """Build, compare, use."""
    if len(sys.argv) != 2:
        sys.exit(f"{__doc__}")
    output = Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="qdtheory-") as folder:
        for name, content in reproducible(Path(folder)).items():
            (output / name).write_bytes(content)
            print(f"{name}: {len(content) / 1e6:.1f} MB, the same in every build")
        (wheel,) = Path(folder, "one/dist").glob("*.whl")
        interpreters = [Path(sys.executable), *other_pythons().values()]
        for number, interpreter in enumerate(interpreters):
            use(wheel, interpreter, Path(folder, f"use-{number}"))


if __name__ == "__main__":
    main()
