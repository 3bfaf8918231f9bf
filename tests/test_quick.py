"""`make quick` finds what changed, and checks the folders that it lies in."""

import subprocess

import pytest
import quick

TEXT = ["qdtheory/text/ngrams.py", "README.md"]


@pytest.fixture
def checkout(tmp_path):
    """A repository whose branch left main, which then went on."""

    def git(*arguments):
        by = ["-c", "user.name=x", "-c", "user.email=x@x"]
        subprocess.run(["git", *by, *arguments], cwd=tmp_path, check=True)

    git("init", "--quiet", "--initial-branch=main")
    (tmp_path / ".gitignore").write_text("ignored\n")
    for name in ("kept", "edited", "deleted", "moved"):
        (tmp_path / name).write_text(f"{name}\n")
    git("add", ".")
    git("commit", "--quiet", "--message=1")
    git("branch", "work")
    (tmp_path / "kept").write_text("on main\n")
    git("commit", "--quiet", "--all", "--message=2")
    git("checkout", "--quiet", "work")
    return tmp_path, git


def test_a_branch_is_compared_with_where_it_left_main(checkout):
    folder, git = checkout
    assert quick.changed_files(folder) == []
    (folder / "edited").write_text("in a commit\n")
    git("mv", "moved", "a name with spaces")
    git("commit", "--quiet", "--all", "--message=3")
    (folder / "deleted").unlink()
    (folder / "staged").write_text("")
    git("add", "staged")
    (folder / "new").write_text("")
    (folder / "ignored").write_text("")
    found = ["a name with spaces", "deleted", "edited", "moved", "new", "staged"]
    assert quick.changed_files(folder) == found
    git("branch", "--quiet", "--delete", "--force", "main")
    assert quick.changed_files(folder) == ["deleted", "new", "staged"]


def test_without_git_the_whole_is_to_be_tested(tmp_path):
    with pytest.raises(SystemExit, match="run `make test`"):
        quick.changed_files(tmp_path)


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (TEXT, {"text"}),
        (["tests/test_pairs.py", "tests/lab/corpora/minilm.txt"], {"pairs", "lab"}),
        (["qdtheory/plotting.py", "tests/test_claims.py"], {"plotting", "claims"}),
        (["notebooks/build.py", "docs/coverage_page.py"], {"build", "coverage_page"}),
        (["notebooks/src/00_map.md", "docs/coverage.csv"], set()),
    ],
)
def test_files_name_their_rooms(files, names):
    assert quick.touched(files) == names


def test_the_room_is_checked_and_the_contracts_always():
    checks = quick.checks(TEXT)
    assert checks["types"][2:] == ["qdtheory/text"]
    everywhere = quick.checks([])["tests"]
    assert "types" not in quick.checks([])
    assert {*checks["tests"]} - {*everywhere} == {"tests/text", "qdtheory/text"}
    assert {f"tests/test_{name}.py" for name in quick.CONTRACTS} <= {*everywhere}
    assert "--all" not in everywhere


def test_what_fails_is_named(monkeypatch, capfd):
    programs = {"types": "exit(1)", "style": "print('seen')", "tests": "exit(2)"}
    checks = {word: ["-c", program] for word, program in programs.items()}
    monkeypatch.setattr(quick, "changed_files", lambda root: TEXT)
    monkeypatch.setattr(quick, "checks", lambda files: checks)
    assert quick.main() == 1
    first, *seen, verdict = capfd.readouterr().out.splitlines()
    assert first == "Checking text, contracts"
    assert seen == ["seen"]
    assert verdict.startswith("failed: types, tests (")
    del checks["types"], checks["tests"]
    assert quick.main() == 0
    assert capfd.readouterr().out.splitlines()[-1].startswith("well (")
