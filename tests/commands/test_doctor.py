"""`qdtheory doctor`: files and functions as users have them, one line for the bad."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from calls import call, refusal

from qdtheory import text

MINE = """
def quality(texts, references):
    return sum(x in "ace" for x in texts) / len(texts)

def diversity(texts):
    shares = [texts.count(x) / len(texts) for x in "abcdef"]
    return -sum(share**2 for share in shares)

def nan(texts):
    return float("nan")
"""
OWN = "--quality", "own_metrics:quality", "--diversity", "own_metrics:diversity"
NAMED = "--quality", "CR-1", "--diversity", "NRR-1"
FEW = "--calls", "100"


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """20,000 sentences of one word in a folder, beside functions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    rng = np.random.default_rng(0)
    found = rng.choice([*"abcdef"], 20_000, p=np.arange(1, 7) / 21).tolist()
    Path("real.txt").write_text("\n".join(found), encoding="utf-8")
    Path("few.txt").write_text("a b\n", encoding="utf-8")
    Path("own_metrics.py").write_text(MINE, encoding="utf-8")
    yield found
    sys.modules.pop("own_metrics", None)


def test_functions_of_lists_of_strings(lines):
    outputs = "--json", "--witness", "witness.txt", "--plot", "lots.png"
    answer = call("doctor", "real.txt", *OWN, "--calls", "300", *outputs)
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["verdict"], found["beaten"]) == ("beaten by real text", True)
    written = Path("witness.txt").read_text("utf-8").splitlines()
    assert written == found["witness"]
    share = np.mean([x in "ace" for x in written])
    assert share > np.mean([x in "ace" for x in lines]) + 0.1
    assert Path("lots.png").stat().st_size > 5_000


def test_names_give_what_the_library_gives(lines):
    answer = call("doctor", "real.txt", *NAMED, *FEW)
    assert answer.exit_code == 0, answer.stderr
    expected = text.doctor("CR-1", "NRR-1", lines, calls=100)
    assert answer.stdout.strip() == expected.to_text(80)


@pytest.mark.usefixtures("lines")
def test_kept_answers_make_the_same_command_short():
    kept = []
    for _ in range(2):
        answer = call("doctor", "real.txt", *OWN, *FEW, "--cache", "answers", "--json")
        assert answer.exit_code == 0, answer.stderr
        kept.append(json.loads(answer.stdout)["lots"])
        # Nothing is asked for the second time.
        Path("own_metrics.py").write_text(MINE.replace("sum(", "1 / 0 + sum("))
        sys.modules.pop("own_metrics", None)
    assert kept[0] == kept[1]


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("few.txt: expected at least 2,000 real ones", "real > few"),
        ("nothing.txt: No such file", "real > nothing"),
        ("--calls: expected a whole number from 100", "--calls 9"),
        ("--lot: expected a whole number from 10 to 400, a fift", "--lot 999"),
        ("--alpha: expected a number between", "--alpha 2"),
        ("--witness: real.txt is a file that is read", "--witness real.txt"),
        ("--witness: real.txt has none", "--witness witness.txt --calls 100"),
        ("--plot: lots.txt: expected a name that ends in", "--plot lots.txt"),
        ("give each its own", "--plot lots.png --witness lots.png"),
        ("--cache: few.txt: ", "--cache few.txt"),
        ("own_metrics has no function lost", "CR-1 > own_metrics:lost"),
        ("own_metrics.py:f: expected MODULE:", "CR-1 > own_metrics.py:f"),
        ("a finite number from the function, got nan", "NRR-1 > own_metrics:nan"),
        ("--quality: expected one of CR-2", "CR-1 > CND-2"),
    ],
)
def test_what_is_bad_is_told_in_one_line(said, change):
    line = " ".join(["real.txt", *NAMED])
    old, arrow, new = change.partition(" > ")
    line = line.replace(old, new) if arrow else f"{line} {change}"
    assert said in refusal("doctor", *line.split())
    assert not Path("witness.txt").exists()
