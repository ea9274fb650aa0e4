"""Judges the fidelity of one conversion.

- exact: the target has its own field for it, and nothing was lost.
- carried: the target has no equal field; converted back, it is intact.
- degraded: it does not come back, and a loss is reported.
- refused: the conversion was refused with a reason, or the target's API refuses the result.
- silent: it does not come back, and no loss is reported. Must never happen.
- None: the source format does not have the feature.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, TypeAlias

from msgspec import Struct

from dragoman.codecs.registry import codec
from dragoman.errors import DragomanError
from dragoman.fidelity import legality, wire
from dragoman.fidelity.cases import Case, Kind
from dragoman.fidelity.catalogue import PLAIN
from dragoman.fidelity.echo import next_request
from dragoman.fidelity.interpreters import Crossing, Dragoman, Interpreter, Refused, Translation
from dragoman.ir import Failure, StreamFailed
from dragoman.loss import Loss

Verdict: TypeAlias = Literal["exact", "carried", "degraded", "refused", "silent"]
VERDICTS: tuple[Verdict, ...] = ("exact", "carried", "degraded", "refused", "silent")
"""Best first."""


class Judgement(Struct, frozen=True):
    """A verdict, with the reported losses or errors."""

    verdict: Verdict
    reason: str = ""


class Original(Struct, frozen=True):
    """An example in a format, and its fact there."""

    content: bytes
    fact: object


def write_original(case: Case, source: str) -> Original | None:
    """The example as this format writes it; None if the format does not have the feature."""
    example = case.example_for(codec(source).profile.family)
    slot = case.slots.of(source)
    if example is None or slot is None:
        return None
    try:
        content, losses = wire.write(example, case, source)
    except DragomanError:
        return None
    native = not slot or slot in wire.wire_words(content, case.kind, source)
    if not native or _special_losses(case, losses, _usually_written(case.kind, source)):
        return None
    stated, wanted = wire.fact_of(case, content, source), case.fact(_read_fact(case, example))
    return Original(content, stated) if stated == wanted else None


def _read_fact(case: Case, example: object) -> object:
    if not isinstance(example, tuple):
        return example
    cut_off = StreamFailed(Failure("truncated", "the stream breaks off"))
    return wire.decode_events((*example[: -case.cut], cut_off) if case.cut else example)


def _special_losses(case: Case, losses: tuple[Loss, ...], usual: frozenset[str]) -> list[Loss]:
    """Losses without those of any exchange, and without additions that the target requires."""
    ignored = frozenset() if case.bare else usual
    return [loss for loss in losses if loss.severity != "invented" and loss.what not in ignored]


@cache
def _usually_written(kind: Kind, format: str) -> frozenset[str]:
    written = (wire.write(plain.example_for(""), plain, format) for plain in PLAIN[kind])
    return frozenset(loss.what for _, losses in written for loss in losses)


@cache
def _usually_crossed(kind: Kind, source: str, target: str) -> frozenset[str]:
    usual: set[str] = set()
    for plain in PLAIN[kind]:
        content, _ = wire.write(plain.example_for(""), plain, source)
        crossed = Dragoman().translate(content, Crossing(kind, source, target, plain.model(target)))
        usual.update(loss.what for loss in crossed.losses)
    return frozenset(usual)


def judge(case: Case, source: str, target: str, interpreter: Interpreter) -> Judgement | None:
    """The verdict on one example, converted from one format to another."""
    if not interpreter.offers(case.kind, source, target):
        return None
    original = write_original(case, source)
    if original is None:
        return None
    way = Crossing(case.kind, source, target, case.model(target))
    try:
        crossed = interpreter.translate(original.content, way)
    except Refused as refusal:
        return Judgement("refused", str(refusal))
    news = _special_losses(case, crossed.losses, _usually_crossed(case.kind, source, target)) if crossed.losses else []
    described = "; ".join(f"{loss.what}: {loss.why}" for loss in news)
    arrived = wire.fact_of(case, crossed.content, target)
    unspoilt = not any(loss.refusable for loss in news)
    if unspoilt and arrived == original.fact and _is_native(case, crossed, source, target):
        judgement = Judgement("exact")
    elif _fact_after_return(case, crossed.content, way, interpreter, arrived) == original.fact:
        judgement = Judgement("carried", described)
    else:
        return Judgement("degraded", described) if described else Judgement("silent")
    refused = _refusal(case, crossed.content, way, interpreter)
    return judgement if refused is None else Judgement("refused", refused)


def _refusal(case: Case, content: bytes, way: Crossing, interpreter: Interpreter) -> str | None:
    """Why the target's API refuses the body. Complaints about every body of this interpreter do not count."""
    minter = _owner(way.source)
    if case.private and case.kind == "request" and minter != _owner(way.target):
        slot = case.slots.of(way.target)
        if slot and slot in wire.wire_words(content, case.kind, way.target):
            return f"{slot}: the API verifies it, and {minter} minted it"
    found = legality.complaints(content, case.kind, way.target, way.model)
    if found:
        found -= _usual_complaints(interpreter, case.kind, way.source, way.target)
    return min(found, default=None)


@cache
def _usual_complaints(interpreter: Interpreter, kind: Kind, source: str, target: str) -> frozenset[str]:
    usual: set[str] = set()
    for plain in PLAIN[kind]:
        content, _ = wire.write(plain.example_for(""), plain, source)
        way = Crossing(kind, source, target, plain.model(target))
        try:
            crossed = interpreter.translate(content, way)
        except Refused:
            continue
        usual |= legality.complaints(crossed.content, kind, target, way.model)
    return frozenset(usual)


def _owner(format: str) -> str:
    """The owner of opaque data. Claude's signatures are Anthropic's, on Bedrock too (decision 0008)."""
    family = codec(format).profile.signs_as
    return {"bedrock": "anthropic"}.get(family, family)


def _is_native(case: Case, crossed: Translation, source: str, target: str) -> bool:
    if case.private and _owner(source) != _owner(target):
        return False
    slot = case.slots.of(target)
    return slot is not None and (not slot or slot in wire.wire_words(crossed.content, case.kind, target))


def _fact_after_return(case: Case, content: bytes, way: Crossing, interpreter: Interpreter, arrived: object) -> object:
    """The fact after converting back, with the same library, or with dragoman if it offers none."""
    kind: Kind = "request" if case.in_next_request else case.kind
    if not interpreter.offers(kind, way.target, way.source):
        if case.in_next_request:
            return arrived
        interpreter = Dragoman()
    way_back = Crossing(kind, way.target, way.source, case.model(way.source), case.request)
    try:
        sent = next_request(content, way.target, case.model(way.target)) if case.in_next_request else content
        return case.fact(wire.read(interpreter.translate(sent, way_back).content, kind, way.source))
    except (Refused, DragomanError, KeyError, IndexError, TypeError) as error:
        return error
