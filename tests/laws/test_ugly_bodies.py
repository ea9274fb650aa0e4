"""The ugliest bodies of each format, to every other: no crash, no silent loss, nothing that the target refuses."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.codecs.accumulate import Accumulator
from dragoman.drivers.scripted import events_of
from dragoman.errors import DecodeError, EncodeError
from dragoman.loss import Loss
from tests.support.cases import each
from tests.support.endings import failure_of, reads_as_success, succeeded, unfair
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise
from tests.support.trees import covers
from tests.support.ugly import UGLY_ANSWERS, UGLY_REQUESTS

_MARK = re.compile(r"mk\d+x")
# One backend's own words pass to the other as they are (decision 4).
_ONE_FAMILY = {("gemini", "vertex")}
# Invalid base64 and invalid URLs: the API that the body was written for refuses them as well.
_NOBODY_TAKES = {("openai-chat", "bad data url"), ("ollama-chat", "images")}


def rows(bodies: dict[str, dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(source, name, body, id=f"{source}-{name}")
        for source, named in bodies.items()
        for name, body in named.items()
    ]


def texts(value: Any, path: str = "$") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        yield path, value


def missed(body: Any, arrived: str, losses: tuple[Loss, ...]) -> list[str]:
    """Texts that neither arrive nor are reported."""
    return [
        f"{path}: {text[:40]}"
        for path, text in texts(body)
        for found in _MARK.findall(text)
        if found not in arrived and not any(covers(loss.path, path) for loss in losses)
    ]


@promise("law:1-identity", "law:2-nothing-vanishes", "law:3-legality", "law:10-bad-input-good-words")
@each(("source", "name", "body"), rows(UGLY_REQUESTS))
def test_an_ugly_request_crosses_or_is_refused_with_its_place(source: str, name: str, body: dict[str, Any]) -> None:
    for target in FORMATS:
        model = None if target == source else MODELS[target]
        try:
            encoded = dragoman.translate_request(json.dumps(body), source=source, target=target, model=model)
        except (DecodeError, EncodeError) as refused:
            if not refused.path.startswith("$"):
                raise
            continue
        if target == source:
            assert encoded.body == body
            continue
        assert missed(body, encoded.json().decode(), encoded.losses) == [], target
        if (source, target) not in _ONE_FAMILY and (source, name) not in _NOBODY_TAKES:
            assert refusals(encoded, target, model=model) == (), target


@promise("law:1-identity", "law:2-nothing-vanishes", "law:3-legality", "law:10-bad-input-good-words")
@each(("source", "name", "body"), rows(UGLY_ANSWERS))
def test_an_ugly_answer_reaches_every_client(source: str, name: str, body: dict[str, Any]) -> None:
    answer = dragoman.decode_response(json.dumps(body), source)
    for target in FORMATS:
        encoded = dragoman.translate_response(json.dumps(body), source=source, target=target)
        if target == source:
            assert encoded.body == body, name
            continue
        assert missed(body, encoded.json().decode(), encoded.losses) == [], target
        if (source, target) not in _ONE_FAMILY:
            assert unfair(encoded, target, answer) == (), target


@promise("law:2-nothing-vanishes", "law:5-streams-tell-the-same-story")
@each(("source", "name", "body"), rows(UGLY_ANSWERS))
def test_an_ugly_answer_streams_to_every_client(source: str, name: str, body: dict[str, Any]) -> None:
    answer = dragoman.decode_response(json.dumps(body), source)
    for target in FORMATS:
        encoder, decoder = dragoman.StreamEncoder(target), dragoman.StreamDecoder(target)
        stream = b"".join(encoder.encode(events) for events in events_of(answer)) + encoder.close()
        accumulator = Accumulator()
        accumulator.add([*decoder.feed(stream), *decoder.close()])
        completion, failed = accumulator.completion(), accumulator.failed
        if failed is not None:  # the end of an answer that did not succeed; what it said came before
            assert not succeeded(answer), (name, target)
            assert failed.failure.message == failure_of(answer).message, (name, target)
        elif not succeeded(answer) and answer.finish is not None:  # without a finish, its events say that it stopped
            assert not reads_as_success(completion), (name, target)
        lossy = any(loss.refusable for loss in encoder.losses)
        assert lossy or completion.text.split() == answer.text.split(), (name, target)
        names = [call.name for call in answer.tool_calls if not call.incomplete]
        assert lossy or [call.name for call in completion.tool_calls if not call.incomplete] == names, (name, target)


@each(
    "schema",
    [
        {},
        {"description": "anything"},
        {"properties": {"a": {"type": "string"}}},
        {"type": ["object", "null"], "properties": {"a": {"type": "string"}}},
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}]},
        {"$defs": {"n": {"type": "object", "properties": {"c": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
        {"type": "object", "properties": {"a": True, "b": {"anyOf": [True, {"type": "string"}]}}},
    ],
)
@each("target", FORMATS)
def test_any_schema_of_an_object_is_taken(target: str, schema: dict[str, Any]) -> None:
    """Servers of tools leave out what goes without saying, and APIs refuse the request for it."""
    tool = dragoman.ir.ToolDefinition("f", "does it", schema)
    request = dragoman.ir.Request(MODELS[target], (dragoman.ir.Message("user", "hi"),), (tool,), max_output_tokens=99)
    assert refusals(dragoman.encode_request(request, target), target, model=MODELS[target]) == ()
