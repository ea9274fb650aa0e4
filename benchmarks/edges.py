"""Compares bodies with one unusual trait to the same body without it, and measures the command line on a file.

The figure is a quotient of two conversions, not a multiple of the floor: an unusual part must not slow down the rest.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

import orjson

from benchmarks import bodies, conversations, corpus
from benchmarks.bodies import MODELS, Format
from benchmarks.conversations import Assistant, Conversation, Results, Turn, User
from benchmarks.measure import interleaved, quiet

Work = Callable[[], object]

_LOSSES: Final = 1_600
_ROUNDS: Final = 12
_SLOW: Final = 50_000_000  # nanoseconds; above, a single call is enough
_LINES: Final = 300
_PAIRS: Final[tuple[tuple[Format, Format], ...]] = (
    ("openai-chat", "anthropic-messages"),
    ("anthropic-messages", "openai-chat"),
    ("gemini", "openai-chat"),
)
# No extra cost, with a margin for noise and for the bytes that differ.
_NOTHING_EXTRA: Final = 1.1


@dataclass(frozen=True, slots=True)
class Edge:
    """`time` is what a conversion took, `base` what it is compared with, both in nanoseconds."""

    name: str
    pair: str
    time: float
    base: float
    most: float | None  # None: reported only

    @property
    def ratio(self) -> float:
        return self.time / self.base

    @property
    def is_broken(self) -> bool:
        return self.most is not None and self.ratio > self.most


def measure() -> list[Edge]:
    edges = [edge for source, target in _PAIRS for edge in _of_pair(source, target)]
    return [*edges, *_command_line()]


def _of_pair(source: Format, target: Format) -> Iterator[Edge]:
    pair = f"{source} -> {target}"
    many = _many_losses(source)
    body_work, losses_work = _works(many, source, target)
    body, losses = _raced(body_work, losses_work)
    yield Edge(f"reading {_LOSSES:,} losses, against the conversion", pair, body + max(0.0, losses - body), body, 2.0)
    plain = conversations.history()
    empty = replace(plain, turns=tuple(_emptied(turn) for turn in plain.turns))
    short = replace(plain, turns=tuple(_emptied(turn, "ok") for turn in plain.turns))
    base, time = _raced(_convert(short, source, target), _convert(empty, source, target))
    yield Edge("empty results, against short ones", pair, time, base, _NOTHING_EXTRA)
    text = "The tests pass now; the cause was a missing flush."
    answered = replace(plain, turns=(*plain.turns, Assistant(text)))
    went_on = replace(answered, turns=(*answered.turns, User("Thanks.")))
    base, time = _raced(_convert(went_on, source, target), _convert(answered, source, target))
    yield Edge("final assistant turn, against one more user turn", pair, time, base, _NOTHING_EXTRA)


def _emptied(turn: Turn, value: str = "") -> Turn:
    return Results((value,) * len(turn.values)) if isinstance(turn, Results) else turn


def _convert(conversation: Conversation, source: Format, target: Format) -> Work:
    return _works(bodies.request(conversation, source), source, target)[1]


def _works(body: bytes, source: Format, target: Format) -> tuple[Work, Work]:
    from dragoman import translate_request  # noqa: PLC0415 - its import is measured too, in fresh interpreters

    model = MODELS[target]
    return (
        lambda: translate_request(body, source=source, target=target, model=model).json(),
        lambda: translate_request(body, source=source, target=target, model=model).losses,
    )


def _raced(first: Work, second: Work) -> tuple[float, float]:
    with quiet(collector=False):
        once = _timed(second)
        if once > _SLOW:
            return min(_timed(first) for _ in range(3)), once
        one, other = interleaved([first, second], rounds=_ROUNDS)
    return one, other


def _many_losses(source: Format) -> bytes:
    """A request with 1,600 messages, each with something specific to the vendor."""
    return orjson.dumps({"model": MODELS[source], "max_tokens": 100, **_LOSSY[source]()})


def _speakers() -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[i % 2], "content": "x", "name": f"n{i}"} for i in range(_LOSSES + 1)]}


def _cache_marks() -> dict[str, Any]:
    roles, mark = ("user", "assistant"), {"type": "ephemeral"}
    block = {"type": "text", "text": "x", "cache_control": mark}
    return {"messages": [{"role": roles[i % 2], "content": [block]} for i in range(_LOSSES + 1)]}


def _signatures() -> dict[str, Any]:
    roles, part = ("user", "model"), {"text": "x", "thoughtSignature": "c2lnbmVk"}
    return {"contents": [{"role": roles[i % 2], "parts": [part]} for i in range(_LOSSES + 1)]}


_LOSSY: Final[dict[Format, Callable[[], dict[str, Any]]]] = {
    "openai-chat": _speakers,
    "anthropic-messages": _cache_marks,
    "gemini": lambda: {key: value for key, value in _signatures().items() if key != "model"},
}


def _command_line() -> Iterator[Edge]:
    """`dragoman convert` on JSON Lines of stored conversations, with detection, against the floor of its lines."""
    from dragoman.cli.main import main  # noqa: PLC0415 - as above

    if not corpus.is_present():
        return
    pairs: tuple[tuple[Format, Format], ...] = (
        ("openai-chat", "anthropic-messages"),
        ("anthropic-messages", "openai-chat"),
    )
    for source, target in pairs:
        samples = [sample for sample in corpus.conversations(source, source, _LINES) if _is_convertible(sample, target)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stored.jsonl"
            path.write_bytes(b"\n".join(sample.body for sample in samples))
            out = str(Path(folder) / "converted.jsonl")
            for how in ((), ("--from", source, "--kind", "request")):
                arguments = ["convert", str(path), "--to", target, "-o", out, *how]
                time, base = inf, inf
                for _ in range(3):
                    base = min(base, _timed(partial(_floor_of, samples)))
                    time = min(time, _timed(partial(_silently, main, arguments)))
                named = "format named" if how else "format detected"
                name = f"dragoman convert, {len(samples)} lines, {named}: times the floor"
                yield Edge(name, f"{source} -> {target}", time, base, None)


def _floor_of(samples: list[corpus.Sample]) -> None:
    for sample in samples:
        sample.floor()


def _is_convertible(sample: corpus.Sample, target: Format) -> bool:
    from dragoman.errors import DragomanError  # noqa: PLC0415 - as above

    try:
        _works(sample.body, sample.source, target)[0]()
    except DragomanError:
        return False
    return True


def _timed(work: Work) -> int:
    start = perf_counter_ns()
    work()
    return perf_counter_ns() - start


def _silently(main: Callable[[list[str]], int], arguments: list[str]) -> None:
    with contextlib.redirect_stderr(io.StringIO()):
        code = main(arguments)
    if code:
        raise RuntimeError(f"dragoman {' '.join(arguments)} ended with {code}")
