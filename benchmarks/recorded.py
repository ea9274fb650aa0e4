"""Measures real bodies and streams with dragoman and its peers: percentiles per pair of formats, with losses read.

Two views of each body. Warm: the best of several batches, alternating, with untimed calls before each batch.
Once: every body of a suite a single time per pass, in random order, garbage collector on, as a server meets them.
"""

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final

from benchmarks import corpus, limits, own_traffic
from benchmarks.bodies import FIRST, LATER, MODELS, Format
from benchmarks.candidates import Candidate, Job
from benchmarks.corpus import Kind, Sample
from benchmarks.measure import interleaved, once, quiet

Work = Callable[[], object]

_FORMATS: Final = (*FIRST, *LATER)
_SWEEPS: Final = 3  # noise lasts for seconds: each body is measured several times
_PASSES: Final = 3  # of the second view
_NEW_TOOL_ROUNDS: Final = 6
_JOBS: Final[dict[Kind, Job]] = {"request": Job.REQUEST, "response": Job.RESPONSE, "stream": Job.STREAM}
_SUITES: Final[dict[Kind, tuple[str, str]]] = {
    "request": (limits.VENDOR_REQUESTS, limits.COMPATIBLE_REQUESTS),
    "response": (limits.VENDOR_RESPONSES, limits.COMPATIBLE_RESPONSES),
    "stream": (limits.VENDOR_STREAMS, limits.COMPATIBLE_STREAMS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to measure. `bodies` is per pair of a vendor's file and a target; None means all."""

    kinds: tuple[Kind, ...] = corpus.KINDS
    sources: tuple[Format, ...] = _FORMATS
    targets: tuple[Format, ...] = _FORMATS
    bodies: int | None = 30
    rounds: int = 3
    compatible: bool = True
    collector: bool = False
    own: tuple[Path, ...] = ()  # files of the user's own traffic, instead of the recordings


@dataclass(slots=True)
class Figure:
    """One body in one pair: nanoseconds of the fastest call of each kind seen so far."""

    sample: Sample
    body_work: Work
    losses_work: Work
    floor: float = inf
    body: float = inf
    losses: float = inf
    floor_once: float = inf
    losses_once: float = inf

    @property
    def body_ratio(self) -> float:
        return self.body / self.floor

    @property
    def ratio(self) -> float:
        """With losses read: the figure with a limit."""
        return self.losses / self.floor

    @property
    def ratio_once(self) -> float:
        return self.losses_once / self.floor_once

    def see(self, floor: float, body: float, losses: float) -> None:
        self.floor, self.body = min(self.floor, floor), min(self.body, body)
        self.losses = min(self.losses, losses)


@dataclass(slots=True)
class Row:
    """All bodies of one source in one pair."""

    suite: str
    source: str
    target: Format
    kind: Kind = "request"
    format: Format | None = None  # of the bodies, where other libraries are measured too
    figures: list[Figure] = field(default_factory=list)
    refused: int = 0  # number of bodies that dragoman does not convert
    peers: dict[str, dict[str, float]] = field(default_factory=dict)  # peer -> body id -> times the floor, body only


def percentile(values: Iterable[float], percent: int) -> float:
    """The value that `percent` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else inf


def overhead(figures: Sequence[Figure]) -> float:
    """Time of reading the losses relative to the conversion, over all bodies."""
    converted = sum(figure.body for figure in figures)
    return sum(figure.losses for figure in figures) / converted - 1 if converted else 0.0


def measure(selection: Selection) -> list[Row]:
    """Dragoman's rows. Nothing where there are no recordings."""
    if not selection.own and not corpus.is_present():
        print("no recordings beside this repository: real bodies are not measured", file=sys.stderr)
        return []
    suites = _own_suites(selection) if selection.own else _suites(selection)
    corpus.forget()
    for name, rows in suites.items():
        count = sum(len(row.figures) for row in rows)
        print(f"measuring {name}: {count} bodies in {len(rows)} pairs", file=sys.stderr)
        for _ in range(_SWEEPS):
            _sweep(rows, selection)
        _once(rows)
    rows = [row for rows in suites.values() for row in rows]
    if "request" in selection.kinds:
        rows += _with_new_tools(suites.get(limits.VENDOR_REQUESTS, []))
    return [row for row in rows if row.figures]


def _suites(selection: Selection) -> dict[str, list[Row]]:
    suites: dict[str, list[Row]] = {}
    for kind in selection.kinds:
        vendors, compatible = _SUITES[kind]
        count = selection.bodies if kind != "stream" or selection.bodies is None else max(1, selection.bodies // 3)
        suites[vendors] = list(_file_rows(vendors, corpus.VENDOR_FILES, kind, count, selection))
        if selection.compatible:
            fewer = None if count is None else max(1, count // 3)
            suites[compatible] = list(_file_rows(compatible, corpus.COMPATIBLE_FILES, kind, fewer, selection))
    if "request" in selection.kinds:
        suites[limits.AGENTS] = [
            row
            for agent, samples in corpus.agent_requests().items()
            for row in _rows(limits.AGENTS, agent, samples, "request", selection)
        ]
        stored: tuple[Format, ...] = ("openai-chat", "anthropic-messages")
        suites[limits.STORED] = [
            row
            for source in stored
            if source in selection.sources
            for row in _rows(
                limits.STORED, source, corpus.conversations(source, source, selection.bodies), "request", selection
            )
        ]
    return {name: rows for name, rows in suites.items() if rows}


def _own_suites(selection: Selection) -> dict[str, list[Row]]:
    """A suite for each kind of body in the user's own files."""
    found, remarks = own_traffic.read(selection.own)
    for remark in remarks:
        print(f"left out: {remark}", file=sys.stderr)
    suites: dict[str, list[Row]] = {}
    for (source, kind), samples in sorted(found.items()):
        if kind in selection.kinds and source in selection.sources:
            drawn = corpus.sampled(samples, selection.bodies, f"own {source} {kind}")
            rows = _rows(f"{limits.OWN} {kind}s", source, drawn, kind, selection)
            suites.setdefault(f"{limits.OWN} {kind}s", []).extend(rows)
    return suites


def _file_rows(
    suite: str, files: dict[str, Format], kind: Kind, count: int | None, selection: Selection
) -> Iterator[Row]:
    for file, source in files.items():
        if source in selection.sources:
            yield from _rows(suite, file, corpus.recorded(file, source, kind, count), kind, selection)


def _rows(suite: str, label: str, samples: list[Sample], kind: Kind, selection: Selection) -> Iterator[Row]:
    sources = {sample.source for sample in samples} & set(selection.sources)
    for target in selection.targets:
        if target not in sources and sources:
            row = Row(suite, label, target, kind, next(iter(sources)) if len(sources) == 1 else None)
            _add_figures(row, samples, target, kind)
            yield row


def _add_figures(row: Row, samples: list[Sample], target: Format, kind: Kind) -> None:
    from dragoman.errors import DragomanError  # noqa: PLC0415 - its import is measured too, in fresh interpreters

    for sample in samples:
        body_work, losses_work = _works(sample, target, kind)
        try:
            losses_work()
        except DragomanError:
            row.refused += 1
        else:
            row.figures.append(Figure(sample, body_work, losses_work))


def _works(sample: Sample, target: Format, kind: Kind) -> tuple[Work, Work]:
    """The conversion as users call it, without and with reading the losses."""
    import dragoman  # noqa: PLC0415 - as above

    source = sample.source
    if kind == "stream":
        return _stream_works(sample, target)
    body = sample.body
    if kind == "response":
        respond = dragoman.translate_response
        return (
            lambda: respond(body, source=source, target=target).json(),
            lambda: respond(body, source=source, target=target).losses,
        )
    # As in a gateway: the model is replaced by the target's (Gemini's is in the URL).
    model, translate = MODELS[target], dragoman.translate_request
    return (
        lambda: translate(body, source=source, target=target, model=model).json(),
        lambda: translate(body, source=source, target=target, model=model).losses,
    )


def _stream_works(sample: Sample, target: Format) -> tuple[Work, Work]:
    from dragoman import StreamTranslator  # noqa: PLC0415 - as above

    source, chunks = sample.source, sample.chunks

    def translated() -> StreamTranslator:
        translator = StreamTranslator(source=source, target=target)
        feed = translator.feed
        for chunk in chunks:
            feed(chunk)
        translator.close()
        return translator

    return translated, lambda: translated().losses


def _sweep(rows: list[Row], selection: Selection) -> None:
    with quiet(collector=selection.collector):
        for row in rows:
            for figure in row.figures:
                works = [figure.sample.floor, figure.body_work, figure.losses_work]
                figure.see(*interleaved(works, rounds=selection.rounds))


def _once(rows: list[Row]) -> None:
    """The second view: each body once per pass, floor and conversion one after the other."""
    figures = [figure for row in rows for figure in row.figures]
    dice = random.Random(corpus.SEED)  # noqa: S311 - an order, not a secret
    with quiet(collector=True):
        for _ in range(_PASSES):
            dice.shuffle(figures)
            for figure in figures:
                floor, losses = once([figure.sample.floor, figure.losses_work])
                figure.floor_once = min(figure.floor_once, floor)
                figure.losses_once = min(figure.losses_once, losses)


def _with_new_tools(rows: list[Row]) -> list[Row]:
    """Every call converts tools that are in no cache: one copy of the body per call."""
    found = []
    with quiet(collector=False):
        for row in rows:
            new = Row(limits.NEW_TOOLS, row.source, row.target)
            for figure in row.figures:
                copies = corpus.with_new_tools(figure.sample, 4 * _NEW_TOOL_ROUNDS)
                if copies:
                    new.figures.append(_new_tools_figure(copies, new.target))
            found.append(new)
    print(f"measured {limits.NEW_TOOLS}: {sum(len(row.figures) for row in found)} bodies", file=sys.stderr)
    return found


def _new_tools_figure(copies: list[Sample], target: Format) -> Figure:
    works = [_works(copy, target, "request") for copy in copies]
    figure = Figure(copies[0], *works[0])
    for start in range(0, len(works), 4):
        untimed_body, timed_body, untimed_losses, timed_losses = works[start : start + 4]
        (floor,) = interleaved([copies[0].floor], rounds=1)
        untimed_body[0]()
        (body,) = once([timed_body[0]])
        untimed_losses[1]()
        (losses,) = once([timed_losses[1]])
        figure.see(floor, body, losses)
    figure.floor_once, figure.losses_once = figure.floor, figure.losses
    return figure


# ── peers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def measure_peer(peer: Candidate, rows: list[Row], *, rounds: int) -> None:
    """The same bodies with another library, without losses."""
    for row in rows:
        source = row.format
        compared = row.suite.startswith(limits.OWN) or row.suite == _SUITES[row.kind][0]
        if not compared or source is None or not {source, row.target} <= peer.formats:
            continue
        make = _peer_maker(peer, _JOBS[row.kind], source, row.target)
        if make is not None:
            print(f"measuring {peer.name}: {row.suite}, {row.source} -> {row.target}", file=sys.stderr)
            with quiet(collector=False):
                row.peers[peer.name] = dict(_peer_figures(make, row, rounds))


def _peer_maker(peer: Candidate, job: Job, source: Format, target: Format) -> Callable[[Sample], Work] | None:
    if job is Job.STREAM:
        stream = peer.streamer(job, source, target)
        return None if stream is None else lambda sample: lambda: stream(sample.chunks)
    translate = peer.translator(job, source, target)
    return None if translate is None else lambda sample: lambda: translate(sample.body)


def _peer_figures(make: Callable[[Sample], Work], row: Row, rounds: int) -> Iterator[tuple[str, float]]:
    for figure in row.figures:
        work = make(figure.sample)
        try:
            work()
        except Exception:  # noqa: BLE001, S112 - a body it cannot convert has no figure; the count shows how many have
            continue
        floor, time = interleaved([figure.sample.floor, work], rounds=max(4, rounds))
        figure.floor = min(figure.floor, floor)
        yield figure.sample.id, time / figure.floor
