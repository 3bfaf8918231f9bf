"""Each answer: two sentences, a number that its claim prints, a line that runs."""

import contextlib
import json
import re
import shlex
from types import SimpleNamespace

import numpy as np
import pytest
from browser import in_a_browser
from calls import call
from coverage_page import claims
from processes import ROOT

PAGE = (ROOT / "docs/questions.md").read_text()
BLOCK = r"```(sh|python)\n(.*?)\n```"
ENTRY = re.compile(rf"^### ([^\n]+)\n\n((?:(?!\n\n).)+)\n\n{BLOCK}", re.M | re.S)
LINK = re.compile(r"\[([A-Z]+\d+\.\d+)\]\(\.\./notebooks/(\w+)\.ipynb\)")
PREPARE = re.search(BLOCK, PAGE, re.DOTALL)[2]
# Languages are fitted, or a search is made.
SLOW = re.compile("language-model|lm_score|doctor")


def entry(match):
    question, answer, language, code = match.groups()
    text = " ".join(LINK.sub("", answer).split())
    return SimpleNamespace(
        question=question,
        answer=text,
        links=LINK.findall(answer),
        code=code,
        sh=language,
    )


ENTRIES = [entry(match) for match in ENTRY.finditer(PAGE)]
of_each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.question)


def test_no_question_is_left_out_or_asked_twice():
    questions = [entry.question for entry in ENTRIES]
    assert len(questions) == len(re.findall(r"^###", PAGE, re.M)) >= 34
    assert len({*questions}) == len(questions)
    assert PAGE.count("```") == 2 * (len(questions) + 1)


@of_each
def test_an_answer_is_two_sentences_and_a_number_that_the_claim_prints(entry):
    assert entry.question.endswith("?")
    assert len(re.findall(r"[.?!](?= [A-Z\d]|$)", entry.answer)) == 2, entry.answer
    ((claim, notebook),) = entry.links
    (number,) = re.findall(r"\*\*(.+?)\*\*", entry.answer)
    assert re.fullmatch(r"-?[\d,.]*\d(e[+-]\d+)?%?", number)
    there, printed = claims()[claim]
    assert there == notebook
    found = rf"(?<![\d.]){re.escape(number)}(?![\d%]|\.\d|e[+-])"
    assert re.search(found, " ".join(printed)), printed


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The files that the page names, of sentences over sixty words."""
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    sizes = {"model": 300, "other": 300, "held_out": 300, "real": 2000}
    for name, size in sizes.items():
        words = np.minimum(rng.geometric(0.06, (size, 5)), 60)
        np.savetxt(folder / f"{name}.txt", words, "w%d")
    answers = rng.choice(["yes", "no", "perhaps not"], (20, 7)).tolist()
    for name, drawn in (("model", slice(3)), ("other", slice(3, 6))):
        lines = [
            {"prompt": str(i), "outputs": x[drawn], "references": x[6:]}
            for i, x in enumerate(answers)
        ]
        text = "\n".join(map(json.dumps, lines))
        (folder / f"{name}.jsonl").write_text(text)
    return folder


@pytest.fixture(scope="module")
def names(texts):
    """What the lines of Python go on from."""
    found = {}
    with contextlib.chdir(texts):
        exec(compile(PREPARE, "docs/questions.md", "exec"), found)
    return found


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            entry,
            id=entry.question,
            marks=[pytest.mark.slow] if SLOW.search(entry.code) else [],
        )
        for entry in ENTRIES
    ],
)
def test_the_line_of_an_answer_runs(entry, texts, names, monkeypatch):
    monkeypatch.chdir(texts)
    if entry.sh == "sh":
        program, *arguments = shlex.split(entry.code)
        result = call(*arguments)
        assert (program, result.exit_code) == ("qdtheory", 0), result.output
        assert result.stdout
    else:
        exec(compile(entry.code, entry.question, "exec"), {**names})


# --- the search of the site ----------------------------------------------------------


def test_the_search_index_holds_the_questions(site):
    script = (site / "searchindex.js").read_text()
    index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))
    page = index["docnames"].index("docs/questions")
    for entry in ENTRIES:
        places = index["alltitles"][entry.question]
        assert page in [place for place, _ in places], entry.question


@in_a_browser
@pytest.mark.parametrize(
    ("words", "section"),
    [
        ("is lower self-bleu better", "is-lower-self-bleu-better"),
        ("temperature before or after min-p", "temperature-before-or-after-min-p"),
        ("negative cnd", "why-is-my-cnd-negative"),
        ("mauve difference noise", "is-a-difference-in-mauve-noise"),
        ("density above 1", "can-density-be-above-1"),
        ("error bars over prompts", "how-do-i-get-error-bars-over-prompts"),
    ],
)
def test_a_reader_finds_a_question_by_its_words(site, browser, words, section):
    browser.open((site / "search.html").as_uri() + "?q=" + words.replace(" ", "+"))
    browser.until(
        """document.querySelector("#search-results .search-summary")
          ?.textContent.startsWith("Search finished")"""
    )
    found = browser.evaluate(
        "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    )
    assert f"{site.as_uri()}/docs/questions.html#{section}" in found
    assert browser.complaints() == []
