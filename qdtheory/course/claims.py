"""What a notebook claims: a sentence with its number and what was measured."""

import sys
from textwrap import fill

WIDTH = 76


def claim(text: str) -> None:
    """Show a claim of a notebook: its number, and one sentence in words.

    A notebook shows it as Markdown, so that math stands between dollars; elsewhere it
    is printed. Line breaks are spaces.

    Args:
        text: the number, a space and the sentence, with the values that the cell has
            just checked: f"N8.16 Some model gains {gain:.1f} points of BLEU-2."

    Example:
        >>> claim("N8.16 Some model gains 3.3 points of BLEU-2.")
        N8.16  Some model gains 3.3 points of BLEU-2.
    """
    number, _, sentence = " ".join(text.split()).partition(" ")
    indent = " " * (len(number) + 2)
    plain = fill(f"{number}  {sentence}", WIDTH, subsequent_indent=indent)
    # Outside of IPython, or before it runs, there is nobody to show Markdown to.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        print(plain)
    else:
        shell.display_pub.publish(
            {"text/plain": plain, "text/markdown": f"**{number}** {sentence}"}
        )
