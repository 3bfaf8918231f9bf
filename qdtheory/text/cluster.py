"""One evaluation by the workers of a Dask cluster, or of processes on this machine.

The workers read slices of the files and keep them. An n-gram may be in any slice, so
each slice tells where the n-grams of a part begin, and one worker counts the part. Only
a few parts are under way at a time. What a worker that dies had read or counted, Dask
has the others read and count again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from io import BytesIO
from itertools import chain, pairwise
from logging import CRITICAL
from operator import attrgetter, getitem
from os import PathLike
from os.path import getsize
from typing import Any, NamedTuple

import numpy as np

from qdtheory.bleu_formula import Smoothing
from qdtheory.support.packages import required
from qdtheory.text import corpus as corpora
from qdtheory.text import numbered, partial_sums, sources
from qdtheory.text.containers import splitter
from qdtheory.text.corpus import Corpus, ids_of, numbering, prefix_sums, slices
from qdtheory.text.files import File, Files, lines, name_of
from qdtheory.text.leave_out import GroupScores, group_scores

# More tasks than threads, so that no thread waits long for the last.
TASKS_A_THREAD = 2
PART = 2**19  # tokens of a part, about, of which a task counts some
PARTS_A_TASK = 3
BLOCK = 2**25  # bytes of a slice of a file
SLICE = 2**20  # tokens of a slice of texts in memory
# Of a scheduler to answer.
SECONDS = 10


@contextmanager
def connected(scheduler: Any) -> Iterator[Any]:
    """Connect to a scheduler's address, or start so many processes of one thread."""
    with required("a cluster", "scale"):
        from dask import config  # pyright: ignore
        from distributed import Client, LocalCluster  # pyright: ignore
        from distributed.client import FutureCancelledError  # pyright: ignore
        from distributed.comm import CommClosedError  # pyright: ignore
        from distributed.scheduler import KilledWorker  # pyright: ignore
    with ExitStack() as stack:
        address, client = scheduler, scheduler
        if isinstance(address, int):
            settings: Any = {"threads_per_worker": 1, "dashboard_address": ":0"}
            settings["silence_logs"] = CRITICAL  # errors are raised here
            with config.set({"distributed.scheduler.work-stealing": False}):
                local = LocalCluster(n_workers=address, **settings)
            scheduler = stack.enter_context(local)
        if not isinstance(client, Client):
            try:
                client = stack.enter_context(Client(scheduler, timeout=SECONDS))
            except (OSError, ValueError, TypeError) as error:
                said, *_ = str(error).splitlines() or ["no answer"]
                message = f"{address}: {said}; is dask scheduler up?"
                raise ConnectionError(message) from None
        try:
            yield client
        except (KilledWorker, FutureCancelledError, CommClosedError) as error:
            said, *_ = str(error).splitlines()
            raise ConnectionError(
                f"{address}: workers died, of too little memory? {said}"
            ) from None


def num_threads(client: Any) -> int:
    """Count the threads of the workers of a `distributed.Client`."""
    of_workers: Any = client.nthreads()
    if not of_workers:
        raise ValueError("client: the cluster has no worker; start one (dask worker)")
    return sum(of_workers.values())


# --- Reading ------------------------------------------------------------------------


class SlicedCorpus:
    """A corpus whose sentences are on the workers, in slices with words of their own.

    Attributes:
        slices: the future of each slice, a `Corpus`.
        ids: for each slice, the place of its words in the vocabulary.
        lengths: number of tokens in each sentence.
        vocabulary, empty_lines, tokenizer: as those of a `Corpus`.
    """

    def __init__(self, client: Any, slices: Sequence[Any]):
        self.client, self.slices, self.ids = client, slices, []
        table, lengths, self.empty_lines = numbering(), [], 0
        for known in client.map(_described, slices, pure=False):
            vocabulary, some, empty_lines, self.tokenizer = known.result()
            self.ids.append(ids_of(vocabulary, table))
            lengths.append(some)
            self.empty_lines += empty_lines
        self.vocabulary = tuple(table)
        self.lengths = np.concatenate(lengths)
        self.num_tokens = int(self.lengths.sum())
        self.num_empty = int((self.lengths == 0).sum())
        self.bounds = prefix_sums([*map(len, lengths)])

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: np.ndarray) -> Iterator[tuple]:
        """Some sentences, whose numbers ascend."""
        cuts = pairwise(np.searchsorted(index, self.bounds))
        each = zip(self.slices, cuts, self.bounds)
        chosen = ((x, index[a:b] - start) for x, (a, b), start in each if a < b)
        found = [self.client.submit(getitem, *one, pure=False) for one in chosen]
        return chain.from_iterable(x.result() for x in found)

    def by_slice(self, function: Callable, ids: np.ndarray) -> Iterator[Any]:
        """Apply a function of sentences and their words' ids to each slice."""
        parts = [ids[own] for own in self.ids]
        found = self.client.map(function, self.slices, parts, pure=False)
        return (x.result() for x in found)

    def held(self, text: numbered.NumberedText) -> Iterator[Any]:
        """The futures of all slices, with the numbers of their words and sentences."""
        each = zip(self.slices, self.ids, pairwise(self.bounds))
        for held, own, (start, end) in each:
            known = held, text.ids[own], text.place[start:end]
            yield self.client.submit(Slice, *known, pure=False)


class Slice(NamedTuple):
    """Some sentences of one text among all that are counted together."""

    corpus: Corpus
    ids: np.ndarray
    place: np.ndarray


def on_workers(client: Any, texts: Any, **settings: Any) -> SlicedCorpus:
    """Have the workers read files, which they see under the same names.

    A file of lines is read in blocks, whatever else by one worker. Texts in memory, and
    streams, are read here and sent.
    """
    splitter(settings["tokenizer"])  # an unknown one is told before a file is opened
    if not sources.is_file(texts):
        sent = _sent(client, corpora.read_corpus(texts, **settings))
        return SlicedCorpus(client, sent)
    found: list[Any] = []
    for file in texts if isinstance(texts, Files) else [texts]:
        if isinstance(file, str | PathLike):
            found += _read(client, file, settings)
        else:
            found += _sent(client, _file(file, settings))
    corpus = SlicedCorpus(client, found)
    corpora.require_tokens(corpus, name_of(texts))
    return corpus


def _sent(client: Any, corpus: Corpus) -> list[Any]:
    """Futures of slices: as tasks, since what is scattered dies with its worker."""
    return [client.submit(replace, x, pure=False) for _, x in slices(corpus, SLICE)]


def _read(client: Any, path: str | PathLike[str], settings: dict) -> list[Any]:
    """Futures of the slices of a file."""
    form = sources.form_by_line(path, settings["field"])
    if form is None:
        return [client.submit(_file, path, settings, pure=False)]
    total, parts = getsize(path), TASKS_A_THREAD * num_threads(client)
    size = max(1, min(BLOCK, -(-total // parts)))
    starts = range(0, max(total, 1), size)
    known = size, form, settings
    return [client.submit(_block, path, x, *known, pure=False) for x in starts]


def _block(
    path: str | PathLike[str], start: int, size: int, form: sources.Form, settings: dict
) -> Corpus:
    """Read the lines that begin in a block of a file."""
    from fsspec.utils import read_block  # pyright: ignore[reportMissingImports]

    with open(path, "rb") as file:
        block = BytesIO(read_block(file, start, size, b"\n"))
    name = f"{name_of(path)}, from byte {start:,}" if start else name_of(path)
    rows = sources.rows_in(form, lines(block, name), name)
    texts = sources.sentences(form, rows, name, settings["field"])
    return _corpus_of(texts, **settings)


def _file(file: File, settings: dict) -> Corpus:
    with sources.opened(file, settings["field"], bounded=False) as texts:
        return _corpus_of(texts, **settings)


def _corpus_of(texts, tokenizer, lowercase, empty, field) -> Corpus:
    corpus = corpora.corpus_of(texts, tokenizer, lowercase, "line", 1)
    tokens, offsets = (  # in as few bytes as hold them
        x.astype(np.min_scalar_type(-1 - x.max(initial=0)))
        for x in (corpus.tokens, corpus.offsets)
    )
    return corpora.with_empty(replace(corpus, tokens=tokens, offsets=offsets), empty)


def _described(corpus: Corpus) -> tuple[Any, ...]:
    """What is known of a slice but its tokens."""
    lengths = corpus.lengths.astype(np.int32)
    return corpus.vocabulary, lengths, corpus.empty_lines, corpus.tokenizer


# --- Counting -----------------------------------------------------------------------


def sums_on(
    candidates: Mapping[str, SlicedCorpus],
    references: SlicedCorpus,
    max_order: int,
    averaged: bool,
    smoothing: Smoothing,
    step: Callable[[str], None],
) -> tuple[partial_sums.CorpusSums, dict[str, list[GroupScores]]]:
    """Add up all parts on a cluster, and score the groups of each candidate.

    Integers add up to those of one process. The floats of `averaged` counts are added
    in the order of the parts, which rounds otherwise than all at once.
    """
    from distributed import as_completed, wait  # pyright: ignore

    client, every = references.client, [*candidates.values(), references]

    def submit(function: Callable, *arguments: Any, **where: Any) -> Any:
        return client.submit(function, *arguments, pure=False, **where)

    texts, numbers = numbered.number_texts(candidates, references)  # pyright: ignore
    lengths = {name: text.histogram for name, text in texts.items()}
    held = [x for one, text in zip(every, texts.values()) for x in one.held(text)]
    sides = {name: _side(submit, text) for name, text in texts.items()}
    del texts
    wait(held)
    homes = client.who_has(held)  # slices stay there, unless a worker dies
    threads, num_tokens = num_threads(client), sum(x.num_tokens for x in every)
    num_parts = max(TASKS_A_THREAD * threads, -(-num_tokens // PART))
    size = min(PARTS_A_TASK, num_parts // (TASKS_A_THREAD * threads))
    tasks = iter(range(0, num_parts, size))
    # Each thread adds to what its last task found.
    chains: list[Any] = [None] * threads
    totals, chain_of, running = [], {}, as_completed()

    def begin(thread: int) -> None:
        if (start := next(tasks, None)) is not None:
            parts = range(start, min(start + size, num_parts))
            known = numbers, max_order, parts, num_parts
            at = [{"workers": homes[x.key], "allow_other_workers": True} for x in held]
            found = [submit(_places, x, *known, **y) for x, y in zip(held, at)]
            settings = numbers, max_order, averaged
            one = submit(_count, sides, found, chains[thread], *settings)
            totals.append(submit(attrgetter("totals"), one))
            chains[thread] = submit(attrgetter("blocks"), one)
            chain_of[chains[thread].key] = thread
            running.add(chains[thread])

    for number in range(TASKS_A_THREAD * threads):
        begin(number % threads)
    for number, done in enumerate(running, start=1):
        if done.status == "error":
            done.result()
        begin(chain_of[done.key])
        step(f"Counted {min(number * size, num_parts)} of {num_parts} parts")
    # Group by group, since the matches of a whole text, added up, fill a worker.
    scores, real = {}, lengths.pop(numbered.REFERENCES)
    for name, own in lengths.items():
        scores[name] = []
        for group in range(len(own.times)):
            of_text = (submit(getitem, x, name) for x in chains if x)
            known = [submit(getitem, x, group) for x in of_text]
            scores[name].append(submit(_scores, group, known, own, real, smoothing))
    whole = reduce(partial_sums.merge_totals, (x.result() for x in totals))
    return whole, {name: [x.result() for x in some] for name, some in scores.items()}


def _side(submit: Callable, text: numbered.NumberedText) -> Any:
    """The future of what counting needs of a text, sent group by group."""
    lengths = [submit(np.asarray, text.lengths[a:b]) for a, b in pairwise(text.bounds)]
    return submit(_text_of, text.first, lengths, text.histogram)


def _text_of(
    first: int, lengths: list[np.ndarray], histogram: numbered.Lengths
) -> numbered.NumberedText:
    sizes, none = [*map(len, lengths)], np.zeros(0, int)
    groups = np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)
    bounds = prefix_sums(sizes)
    return numbered.NumberedText(
        none, first, none, bounds, groups, np.concatenate(lengths), histogram
    )


def _places(held: Slice, *settings: Any) -> list[tuple[numbered.Places, ...]]:
    """For each part the places in each chunk of a slice."""
    return [*zip(*numbered.places(*held, *settings))]


def _count(
    texts: dict[str, numbered.NumberedText],
    found: list[list[tuple[numbered.Places, ...]]],
    before: dict[str, tuple[partial_sums.GroupMatches, ...]] | None,
    *settings: Any,
) -> partial_sums.PartialSums:
    """Count some parts, of which each slice has told the places."""
    parts = map(chain.from_iterable, zip(*found))
    added = partial_sums.count(texts, parts, *settings)
    both = partial_sums.merge_blocks(before, added.blocks) if before else added.blocks
    return replace(added, blocks=both)


def _scores(group: int, known: list[Any], *settings: Any) -> GroupScores:
    """Score a group, of which each thread knows its own parts."""
    matches = reduce(partial_sums.merge_matches, known)
    return group_scores([(group, matches)], *settings)[0]
