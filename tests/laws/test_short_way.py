"""Both ways through a codec say the same: what takes the short way reads and writes as it would the long way.

So the short way (dragoman.codecs.plain) can only be faster, never different. That it is taken at all is tested too.
"""

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest
from hypothesis import given

import dragoman
from benchmarks.bodies import FIRST, LATER, Format, response
from benchmarks.candidates import Job
from benchmarks.cases import CASES
from benchmarks.conversations import Assistant
from dragoman import ir
from dragoman.codecs.encoded import UNTOLD, losses_held
from dragoman.codecs.registry import codec, folder_of
from dragoman.errors import EncodeError
from dragoman.losses import LossLog
from dragoman.passes.legalise import legalise
from tests import strategies
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise
from tests.support.recordings import Record

Recordings = Callable[[str], Iterator[Record]]

pytestmark = promise("law:1-identity", "law:2-nothing-vanishes")

SHORT = tuple(name for name in FORMATS if find_spec(f"dragoman.codecs.{folder_of(name)}.plain_request") is not None)
CROSSINGS = tuple((source, target) for source in SHORT for target in SHORT if FAMILY[source] != FAMILY[target])
FILES = (
    ("openai-chat", "openai-chat"),
    ("openai-compat-chat", "openai-chat"),
    ("groq-chat", "openai-chat"),
    ("mistral-chat", "openai-chat"),
    ("anthropic-messages", "anthropic-messages"),
    ("gemini-generate", "gemini"),
    ("vertex-generate", "vertex"),
)


def _module(name: str, part: str) -> Any:
    return import_module(f"dragoman.codecs.{folder_of(name)}.{part}")


def read_both_ways(name: str, kind: str, body: bytes) -> bool:
    """Whether the short way read it; then the long way reads the same."""
    short = getattr(_module(name, f"plain_{kind}"), f"decode_plain_{kind}")(body)
    if short is None:
        return False
    assert short == getattr(_module(name, kind), f"decode_{kind}")(body)
    return True


def write_request_both_ways(request: ir.Request, target: str) -> bool:
    """Whether the short way wrote it; then the long way writes the same, and has losses to tell of if they were said
    to be there.
    """
    outgoing = codec(target)
    if request.origin == outgoing.profile.family:
        return False
    assert outgoing.encode_plain_request is not None
    try:
        short = outgoing.encode_plain_request(request)
    except UnicodeEncodeError:
        return False
    if short is None:
        return False
    log = LossLog()
    long = outgoing.encode_request(legalise(request, outgoing.profile, log), log)
    assert (short.content, short.path, short.headers) == (long.content, long.path, long.headers)
    assert bool(log.entries) == (losses_held(short) is UNTOLD)
    return True


def write_response_both_ways(completion: ir.Completion, target: str) -> bool:
    outgoing = codec(target)
    assert outgoing.encode_plain_response is not None
    try:
        short = outgoing.encode_plain_response(completion)
    except UnicodeEncodeError:
        return False
    if short is None:
        return False
    assert short == outgoing.encode_response(completion, LossLog()).content
    return True


@pytest.mark.parametrize("target", SHORT)
@given(request=strategies.ANY_REQUESTS)
def test_any_request(target: str, request: ir.Request) -> None:
    write_request_both_ways(request, target)
    try:
        encoded = dragoman.encode_request(request, target)
    except EncodeError:
        return
    read_both_ways(target, "request", encoded.json())


@pytest.mark.parametrize("target", SHORT)
@given(completion=strategies.COMPLETIONS)
def test_any_response(target: str, completion: ir.Completion) -> None:
    write_response_both_ways(completion, target)
    try:
        encoded = dragoman.encode_response(completion, target)
    except EncodeError:
        return
    read_both_ways(target, "response", encoded.json())


@pytest.mark.parametrize("sample", [sample for sample in REQUESTS if sample.format in SHORT], ids=str)
def test_requests_of_our_own(sample: Sample) -> None:
    take_both_ways(sample.format, "request", sample.json())


@pytest.mark.parametrize("sample", [sample for sample in RESPONSES if sample.format in SHORT], ids=str)
def test_responses_of_our_own(sample: Sample) -> None:
    take_both_ways(sample.format, "response", sample.json())


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, name in FILES if name in SHORT])
def test_recorded_bodies(file: str, name: str, recordings: Recordings) -> None:
    for record in recordings(file):
        for kind, body in (("request", record.request), ("response", record.response)):
            if isinstance(body, dict) and record.status < 400:
                take_both_ways(name, kind, json.dumps(body).encode())


def take_both_ways(name: str, kind: str, body: bytes) -> None:
    read_both_ways(name, kind, body)
    decode, write = _WAYS[kind]
    try:
        value = decode(body, name)
    except dragoman.DecodeError:
        return
    for target in SHORT:
        write(value, target)


_WAYS: dict[str, tuple[Callable[..., Any], Callable[..., bool]]] = {
    "request": (dragoman.decode_request, write_request_both_ways),
    "response": (dragoman.decode_response, write_response_both_ways),
}


_WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_ORDINARY = ir.Request(
    "some-model",
    (
        ir.Message("system", "Be brief."),
        ir.Message("user", "天気は?"),
        ir.Message("assistant", (ir.Text("Let me see."), ir.ToolCall("call_1", "get_weather", {"city": "東京"}))),
        ir.Message("tool", (ir.ToolResult("call_1", "get_weather", "text", "sunny"),)),
        ir.Message("assistant", "Sunny."),
        ir.Message("user", "And tomorrow?"),
    ),
    (ir.ToolDefinition("get_weather", "Weather", _WEATHER),),
    ir.ToolChoice("auto"),
    max_output_tokens=100,
    temperature=0.5,
)
_ANSWER = ir.Completion(
    (ir.Message("assistant", (ir.Text("Let me see."), ir.ToolCall("call_1", "get_weather", {"city": "東京"}))),),
    ir.Finish("tool_calls"),
    ir.Usage(10, 5, 4),
    "answer-1",
    "some-model",
    1_790_000_000,
)


@pytest.mark.parametrize(("source", "target"), CROSSINGS)
def test_an_ordinary_request_takes_the_short_way(source: str, target: str) -> None:
    body = dragoman.encode_request(_ORDINARY, source).json()
    assert read_both_ways(source, "request", body)
    request = dragoman.decode_request(body, source)
    assert write_request_both_ways(request, target)


@pytest.mark.parametrize(("source", "target"), CROSSINGS)
def test_an_ordinary_answer_takes_the_short_way(source: str, target: str) -> None:
    body = dragoman.encode_response(_ANSWER, source).json()
    completion = dragoman.decode_response(body, source)
    assert write_response_both_ways(completion, target)


@pytest.mark.parametrize("name", [name for name in (*FIRST, *LATER) if name in SHORT])
def test_an_answer_as_the_api_gives_it_is_read_the_short_way(name: Format) -> None:
    (answer,) = (turn for case in CASES if case.job is Job.RESPONSE for turn in case.conversation.turns)
    assert isinstance(answer, Assistant)
    assert read_both_ways(name, "response", response(answer, name))


def test_losses_that_were_not_worked_out_are_when_somebody_asks() -> None:
    request = msgspec.structs.replace(_ORDINARY, max_output_tokens=None)
    encoded = dragoman.encode_request(request, "anthropic-messages")
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.max_output_tokens", "invented")]
    with pytest.raises(dragoman.LossRefused):
        dragoman.encode_request(request, "anthropic-messages", strict=True)


@pytest.mark.parametrize("name", SHORT)
def test_pieces_that_are_no_text_are_refused_the_short_way_too(name: str) -> None:
    body = dragoman.encode_request(_ORDINARY, name).json()
    assert "東京".encode() in body
    broken = body.replace("東京".encode(), "東京".encode()[:-1])
    with pytest.raises(dragoman.DecodeError, match="UTF-8"):
        dragoman.decode_request(broken, name)
