"""Checks one codec against the laws of the design, without pytest and network.

The examples are those of `dragoman fidelity`. Legality depends on the vendor's rules: it needs that vendor's simulator
and is not checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

from dragoman.codecs.registry import Codec
from dragoman.errors import DragomanError, UnsupportedFormat
from dragoman.fidelity import facts
from dragoman.fidelity.cases import Case, DecodedStream, Example
from dragoman.fidelity.catalogue import CASES, PLAIN
from dragoman.fidelity.wire import decode_events
from dragoman.ir import Completion, Request, StreamFailed, ToolCall, ToolResult
from dragoman.ir.values import encode_json, parse_json
from dragoman.loss import Loss
from dragoman.testing.reports import Finding, Report
from dragoman.testing.subjects import Bodies, Subject

Decoded: TypeAlias = Request | Completion | DecodedStream


def check_codec(
    codec: str | Codec, *, requests: Bodies = (), responses: Bodies = (), stream: ModuleType | None = None
) -> Report:
    """Checks a codec against the laws; `report.raise_if_failed()` makes it a test.

    `codec` is the name of a registered format, or a `Codec` that is not registered yet (then `stream` is its stream
    module, if it has one). `requests` and `responses` are bodies that the format's owner accepts: the more, the better.

    >>> check_codec("openai-chat", requests=[{"model": "m", "messages": [{"role": "user", "content": "hi"}]}]).ok
    True
    """
    subject = Subject(codec, requests, responses, stream)
    findings: list[Finding] = []
    tried: Counter[str] = Counter()
    for law, check in LAWS.items():
        for what, detail in check(subject):
            tried[law] += 1
            if detail is not None:
                findings.append(Finding(law, what, detail))
    return Report(subject.name, tuple(findings), dict(tried))


Trial: TypeAlias = tuple[str, str | None]
"""What was tried, and what was wrong, if anything."""


def _attempt(what: str, trial: Callable[[], str | None]) -> Trial:
    """Runs a trial; typed errors of the codec are allowed, other exceptions are findings."""
    try:
        return what, trial()
    except UnsupportedFormat:
        return what, None
    except DragomanError as error:
        return what, f"it refuses its own body: {error}"
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        return what, f"crashed: {type(error).__name__}: {error}"


# ── the catalogue in this format ──────────────────────────────────────────────────────────────────────────────


def _examples(kind: str) -> Iterator[tuple[Case, str, Example]]:
    for case in (*(plain for cases in PLAIN.values() for plain in cases), *CASES):
        if case.kind != kind:
            continue
        named = case.example if isinstance(case.example, Mapping) else {"": case.example}
        for family, example in named.items():
            yield case, f"{kind} {case.feature}{family and f' of {family}'}", example


def _write(subject: Subject, case: Case, example: Example) -> tuple[bytes, tuple[Loss, ...]]:
    if isinstance(example, Request):
        return subject.write_request(example)
    if isinstance(example, Completion):
        return subject.write_response(example)
    return subject.write_stream(example[: len(example) - case.cut], ended=not case.cut)


def _read(subject: Subject, case: Case, content: bytes) -> Decoded:
    if case.kind == "request":
        return subject.codec.decode_request(content)
    if case.kind == "response":
        return subject.as_asked(subject.codec.decode_response(content), case.request)
    decoded = decode_events(subject.read_stream(content))
    return DecodedStream(subject.as_asked(decoded.completion, case.request), decoded.failure)


def _kinds(subject: Subject) -> tuple[str, ...]:
    return ("request", "response", "stream") if subject.stream is not None else ("request", "response")


def _bodies(subject: Subject, kind: str) -> Iterator[tuple[str, bytes]]:
    """Bodies known to be valid, and bodies written by the codec."""
    given = subject.requests if kind == "request" else subject.responses
    yield from ((f"{kind} sample {number}", body) for number, body in enumerate(given))
    for case, what, example in _examples(kind):
        try:
            yield what, _write(subject, case, example)[0]
        except Exception:  # noqa: BLE001, S112 - another law reports it
            continue


# ── the laws ──────────────────────────────────────────────────────────────────────────────────────────────────


def identity(subject: Subject) -> Iterator[Trial]:
    """Law 1: a body that is decoded and encoded is the same body."""
    for kind, again in (("request", subject.same_request), ("response", subject.same_response)):
        for what, body in _bodies(subject, kind):
            yield _attempt(what, partial(_describe_change, body, again))


def _describe_change(body: bytes, again: Callable[[bytes], bytes]) -> str | None:
    before, after = parse_json(body), parse_json(again(body))
    return None if before == after else f"{_shorten(before)} became {_shorten(after)}"


def nothing_vanishes(subject: Subject) -> Iterator[Trial]:
    """Law 2: everything in an example arrives, or a loss reports it."""
    for kind in _kinds(subject):
        for case, what, example in _examples(kind):
            if case.cut == 0:
                yield _attempt(what, partial(_find_silent_loss, subject, case, example))


def _find_silent_loss(subject: Subject, case: Case, example: Example) -> str | None:
    try:
        content, losses = _write(subject, case, example)
    except DragomanError:
        return None  # refused with a reason
    is_reported = any(loss.severity != "invented" for loss in losses)
    wanted = case.fact(decode_events(example) if isinstance(example, tuple) else example)
    found = case.fact(_read(subject, case, content))
    return (
        None
        if is_reported or found == wanted
        else f"lost without a report: {_shorten(wanted)} became {_shorten(found)}"
    )


def determinism(subject: Subject) -> Iterator[Trial]:
    """Law 4: the same input gives the same bytes."""
    for kind in _kinds(subject):
        for case, what, example in _examples(kind):
            yield _attempt(what, partial(_find_variation, subject, case, example))


def _find_variation(subject: Subject, case: Case, example: Example) -> str | None:
    try:
        first, again = _write(subject, case, example)[0], _write(subject, case, example)[0]
    except DragomanError:
        return None
    return None if first == again else "encoding it twice gives different bytes"


def streams_tell_the_same_story(subject: Subject) -> Iterator[Trial]:
    """Law 5: any cut gives the same events, and a stream that breaks off is an error."""
    if subject.stream is None:
        return
    for case, what, example in _examples("stream"):
        yield _attempt(what, partial(_find_cut_dependence, subject, case, example))


def _find_cut_dependence(subject: Subject, case: Case, example: Example) -> str | None:
    content, _ = _write(subject, case, example)
    uncut = subject.read_stream(content)
    for size in (1, 7):
        if subject.read_stream(content, size) != uncut:
            return f"cut into pieces of {size} bytes it gives other events"
    if case.cut and not (uncut and isinstance(uncut[-1], StreamFailed)):
        return "the stream breaks off, and nothing reports it"
    calls = (
        [call.name for call in facts.parts(decode_events(uncut), ToolCall) if not call.incomplete] if case.cut else []
    )
    return f"the stream breaks off within a call that looks complete: {calls}" if calls else None


def pairs_hold(subject: Subject) -> Iterator[Trial]:
    """Law 8: every result still answers its call, in order."""
    for case, what, example in _examples("request"):
        if any(facts.parts(example, ToolResult)):  # type: ignore[arg-type]
            yield _attempt(what, partial(_find_torn_pair, subject, case, example))


def _find_torn_pair(subject: Subject, case: Case, example: Any) -> str | None:
    try:
        request = subject.codec.decode_request(_write(subject, case, example)[0])
    except DragomanError:
        return None
    calls = [call.id for call in facts.parts(request, ToolCall)]
    answered = [result.tool_call_id for result in facts.parts(request, ToolResult)]
    return None if answered == calls else f"calls {calls}, and results of {answered}"


def usage_adds_up(subject: Subject) -> Iterator[Trial]:
    """Law 9: the parts of a count are within it, and the total is the sum."""
    for case, what, example in _examples("response"):
        if case.feature.startswith("usage"):
            yield _attempt(what, partial(_find_wrong_sum, subject, case, example))


def _find_wrong_sum(subject: Subject, case: Case, example: Any) -> str | None:
    content, losses = _write(subject, case, example)
    found, wanted = subject.codec.decode_response(content).usage, example.usage
    if found is None:
        return None if losses else "the counts are gone"
    if (found.input, found.output) != (wanted.input, wanted.output):
        return f"read {wanted.input} and wrote {wanted.output} became {found.input} and {found.output}"
    if found.total not in {None, found.input + found.output}:
        return f"the total {found.total} is not {found.input} + {found.output}"
    return "more cached than read" if found.uncached_input < 0 else None


def bad_input_good_words(subject: Subject) -> Iterator[Trial]:
    """Law 10: bad input is refused with a typed error; nothing crashes."""
    decoders: dict[str, Callable[[bytes], Any]] = {
        "request": subject.codec.decode_request,
        "response": subject.codec.decode_response,
        "error": lambda body: subject.codec.decode_error(body, 400, {}),
    }
    for kind, decode in decoders.items():
        bodies = [body for _, body in _bodies(subject, kind)][:_SPOILED] if kind != "error" else [b'{"error":{}}']
        for bad in (*_NONSENSE, *(spoiled for body in bodies for spoiled in _spoil(body))):
            yield _attempt(f"{kind} {_shorten(bad)}", partial(_find_untyped_error, decode, bad))


_NONSENSE = (b"", b" ", b"null", b"[]", b"{", b'"text"', b"17", b"\xff\xfe", b'{"messages":17}', b"[" * 5000)
_SPOILED = 8
_WRONG: tuple[Any, ...] = (None, 17, "text", [], [17], {}, {"x": 17})


def _spoil(body: bytes) -> Iterator[bytes]:
    """The body cut in half, and with each of its values replaced by something else."""
    yield body[: len(body) // 2]
    value = parse_json(body)
    for key in value if isinstance(value, dict) else ():
        for wrong in _WRONG:
            yield encode_json({**value, key: wrong})


def _find_untyped_error(decode: Callable[[bytes], Any], body: bytes) -> str | None:
    try:
        decode(body)
    except DragomanError as error:
        return None if str(error).strip() else "refused without a message"
    return None


LAWS: dict[str, Callable[[Subject], Iterator[Trial]]] = {
    "1 identity": identity,
    "2 nothing vanishes": nothing_vanishes,
    "4 determinism": determinism,
    "5 streams tell the same story": streams_tell_the_same_story,
    "8 pairs hold": pairs_hold,
    "9 usage adds up": usage_adds_up,
    "10 bad input, good words": bad_input_good_words,
}


_LONGEST = 160


def _shorten(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
