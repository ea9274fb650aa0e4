"""Law 10 on random bytes: a decoder decodes or refuses them, soon and in bounded memory."""

import json
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dragoman
from dragoman.errors import DragomanError
from tests import strategies
from tests.support.bodies import ERRORS, REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise

pytestmark = promise("law:10-bad-input-good-words")

DECODERS: tuple[Callable[[bytes, str], object], ...] = (
    dragoman.decode_request,
    dragoman.decode_response,
    dragoman.decode_error,
)


def _detect(body: bytes, name: str) -> object:
    del name
    return dragoman.detect(body)


def survive(body: bytes, name: str) -> None:
    for decode in (*DECODERS, _detect):
        try:
            decode(body, name)
        except DragomanError as error:
            if not str(error):
                raise


@given(body=st.binary(max_size=200))
@example(body=b"\xef\xbb\xbf{}")
@example(body=b'{"a":1e999999999}')
@example(body=b'{"messages":[{"role":"user","content":"\\udc00"}]}')
@each("name", FORMATS)
def test_any_bytes(name: str, body: bytes) -> None:
    survive(body, name)


@given(value=strategies.JSON_VALUES)
@each("name", FORMATS)
def test_any_json(name: str, value: Any) -> None:
    survive(json.dumps(value).encode(), name)


# ── mutated bodies ────────────────────────────────────────────────────────────────────────────────────────────

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**64,
    1.5,
    1e308,
    "",
    "text",
    "\u0000",
    "user",
    "tool",
    "null",
    [],
    [None],
    [[]],
    [{}],
    {},
    {"type": "text"},
    {"type": None},
    {"type": "tool_use", "id": 1},
    {"": {}},
    {"~raw:x": 1, "~": 2, "~in:function": 3},
    {"$ref": "#"},
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _places(inner, (*path, index))
    return found


def _holder(value: Any, path: tuple[Any, ...]) -> tuple[Any, Any]:
    """A copy of the value, and what holds the place in it."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for step in path[:-1]:
        holder = holder[step]
    return copy, holder


def _with(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    copy, holder = _holder(value, path)
    holder[path[-1]] = odd
    return copy


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    copy, holder = _holder(value, path)
    del holder[path[-1]]
    return copy


def _twice(value: Any, path: tuple[Any, ...]) -> Any:
    copy, holder = _holder(value, path)
    holder[path[-1]] = [holder[path[-1]]] * 2
    return copy


def _mutations(sample: Sample) -> list[bytes]:
    """Every value of the body replaced by every odd one, left out, doubled; a fixed share of all that."""
    chance = random.Random(str(sample))  # noqa: S311
    bodies = []
    for path in _places(sample.body)[1:]:
        bodies += [_with(sample.body, path, odd) for odd in chance.sample(ODD, 6)]
        bodies.append(_without(sample.body, path))
        bodies.append(_twice(sample.body, path))
    return [json.dumps(body).encode() for body in bodies]


@pytest.mark.parametrize("sample", [*REQUESTS, *RESPONSES, *ERRORS], ids=str)
def test_bodies_with_one_value_gone_wrong(sample: Sample) -> None:
    for body in _mutations(sample):
        survive(body, sample.format)


@pytest.mark.parametrize("sample", [*REQUESTS, *RESPONSES, *ERRORS], ids=str)
def test_bodies_cut_or_bent_at_any_byte(sample: Sample) -> None:
    body = sample.json()
    chance = random.Random(str(sample))  # noqa: S311
    for place in chance.sample(range(len(body)), min(60, len(body))):
        survive(body[:place], sample.format)
        survive(body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :], sample.format)


@pytest.mark.parametrize(
    ("translate", "sample"),
    [
        *((dragoman.translate_request, sample) for sample in REQUESTS),
        *((dragoman.translate_response, sample) for sample in RESPONSES),
    ],
    ids=lambda value: str(value) if isinstance(value, Sample) else value.__name__,
)
def test_what_is_read_from_bent_bodies_can_be_written(
    translate: Callable[..., dragoman.Encoded], sample: Sample
) -> None:
    """A strange body that decodes must also encode, to every format, or be refused."""
    chance = random.Random(str(sample))  # noqa: S311
    bodies = _mutations(sample)
    for body in chance.sample(bodies, min(60, len(bodies))):
        for target in FORMATS:
            try:
                encoded = translate(body, source=sample.format, target=target)
            except DragomanError:
                continue
            assert isinstance(encoded.body, dict)
            assert all(loss.path.startswith("$") for loss in encoded.losses)


# ── bombs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _history(name: str, turns: int, text: str) -> dict[str, Any]:
    if name == "openai-chat":
        return {"model": "m", "messages": [{"role": "user", "content": text}] * turns}
    if name == "anthropic-messages":
        return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}] * turns}
    if name == "bedrock-converse":
        return {"messages": [{"role": "user", "content": [{"text": text}]}] * turns}
    return {"contents": [{"role": "user", "parts": [{"text": text}]}] * turns}


BOMBS: dict[str, Callable[[str], bytes]] = {
    "many turns": lambda name: json.dumps(_history(name, 5_000, "x")).encode(),
    "one long text": lambda name: json.dumps(_history(name, 1, "x" * 2_000_000)).encode(),
    "many unknown keys": lambda name: json.dumps(
        _history(name, 1, "x") | {f"k{number}": number for number in range(10_000)}
    ).encode(),
    "deep unknown value": lambda name: (
        json.dumps(_history(name, 1, "x")).encode()[:-1] + b',"x":' + b"[" * 500 + b"]" * 500 + b"}"
    ),
    "deeper than we read": lambda name: (
        json.dumps(_history(name, 1, "x")).encode()[:-1] + b',"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    ),
    "one key many times": lambda name: json.dumps(_history(name, 1, "x")).encode()[:-1] + b',"x":1' * 10_000 + b"}",
    "a long number": lambda name: json.dumps(_history(name, 1, "x")).encode()[:-1] + b',"x":' + b"9" * 4_000 + b"}",
    "a very long number": lambda name: (
        json.dumps(_history(name, 1, "x")).encode()[:-1] + b',"x":' + b"9" * 300_000 + b"}"
    ),
}
SECONDS = 8.0  # of CPU time; what takes longer than this has the wrong complexity
FACTOR = 60  # bytes of memory per byte of body, Python objects being what they are


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_bounded(bomb: str, name: str) -> None:
    body = BOMBS[bomb](name)
    tracemalloc.start()
    started = time.process_time()
    try:
        for target in FORMATS:
            try:
                dragoman.translate_request(body, source=name, target=target)
            except DragomanError:
                continue
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < SECONDS * len(FORMATS)
    assert peak < FACTOR * len(body) + 5_000_000


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(request=strategies.WILD_REQUESTS)
def test_time_grows_with_size_not_faster(request: Any) -> None:
    """A history ten times as long may take ten times as long, with room for noise; not a hundred times."""
    if not request.messages:
        return
    for target in FORMATS:
        times = []
        for factor in (5, 50):
            longer = type(request)(request.model, request.messages * factor, request.tools)
            started = time.process_time()
            try:
                dragoman.encode_request(longer, target)
            except DragomanError:
                break
            times.append(time.process_time() - started)
        if len(times) == 2:
            assert times[1] < 60 * times[0] + 0.5
