"""Claims and tables are Markdown in a notebook, and printed elsewhere."""

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from qdtheory.course import claim, tabulate

LONG = "N8.16 " + "word " * 20


@pytest.fixture
def published():
    """What a running IPython is given to show."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
    yield shell.display_pub.outputs
    InteractiveShell.clear_instance()


def test_it_is_printed_in_lines_that_fit_and_begin_below_the_sentence(capsys):
    claim(LONG)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "N8.16  " + " ".join(["word"] * 14)
    assert second == "       " + " ".join(["word"] * 6)


def test_a_line_is_not_broken_at_a_hyphen(capsys):
    claim("N8.16 " + "word " * 13 + "BLEU-2")
    assert capsys.readouterr().out.splitlines()[1] == "       BLEU-2"


def test_line_breaks_are_spaces(capsys):
    claim("""T2.1 one
    and  more""")
    assert capsys.readouterr().out == "T2.1  one and more\n"


def test_a_notebook_shows_it_as_markdown(published, capsys):
    claim("T2.1 the *sum* is $1$")
    (shown,) = published
    assert shown["data"] == {
        "text/plain": "T2.1  the *sum* is $1$",
        "text/markdown": "**T2.1** the *sum* is $1$",
    }
    assert capsys.readouterr().out == ""


def test_a_notebook_shows_a_table_as_markdown(published, capsys):
    tabulate(("$n$", "QDisc"), (1, 0.5), (2, 0.25))
    (shown,) = published
    assert shown["data"] == {
        "text/plain": "$n$  QDisc\n---  -----\n1    0.5\n2    0.25",
        "text/markdown": "| $n$ | QDisc |\n| --- | --- |\n| 1 | 0.5 |\n| 2 | 0.25 |",
    }
    assert capsys.readouterr().out == ""


def test_rows_of_a_table_have_as_many_cells_as_it_has_titles():
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        tabulate(("n", "QDisc"), (1,))
