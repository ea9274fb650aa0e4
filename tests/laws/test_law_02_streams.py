"""Law 2 in streams: an unknown key of any object of any event is kept, or reported as a loss."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import msgspec
import pytest

import dragoman
from tests.laws.known_stream_failures import KNOWN
from tests.support.sample_streams import STREAMS, framed
from tests.support.trees import variants

KEY, VALUE = "x_unknown", "kept-as-it-is"
TARGETS = ("anthropic-messages", "openai-chat", "gemini")


def with_unknown_key(source: str) -> Iterator[tuple[str, bytes]]:
    """The stream once more for every object of every event, with an unknown key there."""
    events = STREAMS[source]
    for number, event in enumerate(events):
        for path, changed in variants(event, lambda found: {**found, KEY: VALUE}):
            if source == "bedrock-converse" and path == "$":
                continue  # this object is the frame's event type and payload, not a JSON object of the wire
            yield f"{_name(event)} {path}", framed(source, [*events[:number], changed, *events[number + 1 :]])


def _name(event: dict[str, Any]) -> str:
    """The kind of an event: its type, or the members that tell chunks apart."""
    found = event.get("type") or event.get("event_type")
    if found:
        return str(found)
    if "message" in event:
        return "last line" if event["done"] else "line"
    return next(iter(event)) if len(event) == 1 else "chunk"


def again(source: str, data: bytes) -> bytes:
    """The stream decoded to events, and encoded again in its own format."""
    decoder, encoder = dragoman.StreamDecoder(source), dragoman.StreamEncoder(source)
    return encoder.encode([*decoder.feed(data), *decoder.close()]) + encoder.close()


def is_named(losses: tuple[dragoman.Loss, ...], place: str) -> bool:
    """Whether a loss names the key, or an object around it."""
    names = {KEY, *re.findall(r"\w+", place)}
    return any(loss.what in names or re.search(rf"\b{KEY}\b", loss.path) for loss in losses)


def silent_keys(source: str) -> set[str]:
    silent = set()
    for place, data in with_unknown_key(source):
        if VALUE.encode() not in again(source, data):
            silent.add(f"{place} -> itself")
        for target in TARGETS:
            if target == source:
                continue
            translator = dragoman.StreamTranslator(source=source, target=target)
            out = translator.feed(data) + translator.close()
            assert translator.failure is None, f"{place}: {translator.failure}"
            if VALUE.encode() not in out and not is_named(translator.losses, place):
                silent.add(f"{place} -> another")
    return silent


@pytest.mark.parametrize("source", STREAMS)
def test_an_unknown_key_of_an_event_is_kept_or_reported(source: str) -> None:
    silent = silent_keys(source)
    assert silent <= KNOWN[source].keys(), "lost in silence"
    assert silent >= KNOWN[source].keys(), "mended: remove the rows"


@pytest.mark.parametrize("kind", ["message", "output_text", "function_call"])
def test_a_key_that_several_events_repeat_is_kept_where_it_was(kind: str) -> None:
    """Responses announces an item, repeats it when it is done, and again at the end: a key of it is one loss."""
    source = "openai-responses"

    def marked(value: Any) -> Any:
        if isinstance(value, list):
            return [marked(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        found = {key: marked(inner) for key, inner in value.items()}
        return {**found, KEY: VALUE} if value.get("type") == kind else found

    data = framed(source, [marked(event) for event in STREAMS[source]])
    translator = dragoman.StreamTranslator(source=source, target="anthropic-messages")
    translator.feed(data)
    translator.close()
    assert [loss.what for loss in translator.losses if loss.severity == "dropped"] == [KEY]
    last = json.loads(again(source, data).rstrip().rpartition(b"data: ")[2])["response"]
    assert KEY not in last
    assert json.dumps(last["output"]).count(VALUE) == 1


_FAILS, _LOOSE = "an error ends the stream without an answer", "its keys are read one by one"
SKIPPING = {
    "anthropic-messages": {"ErrorEvent": _FAILS, "LooseEvent": _LOOSE},
    "bedrock-converse": {
        "Delta": "see known_stream_failures.py",
        "WireEvent": "the frame's event type and payload, not a JSON object of the wire",
        "LooseDelta": _LOOSE,
        "LooseEvent": _LOOSE,
    },
    "gemini-interactions": {"ErrorEvent": _FAILS, "LooseEvent": _LOOSE, "Opening": _LOOSE, "StepSeed": _LOOSE},
    "openai-chat": {
        "OpenDelta": _LOOSE,
        "Chunk": "see known_stream_failures.py",
        "OpenChunk": "see known_stream_failures.py",
        "Opening": _LOOSE,
    },
}
"""Types of events that skip unknown keys, and why none is lost."""


@pytest.mark.parametrize("source", STREAMS)
def test_every_type_of_event_forbids_unknown_keys(source: str) -> None:
    """So a key of any event is noticed, also of those that the sample streams do not have."""
    module = import_module(f"dragoman.codecs.{source.replace('-', '_')}.stream_wire")
    types = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    skipping = {kind.__name__ for kind in types if not kind.__struct_config__.forbid_unknown_fields}
    own = {kind.__name__ for kind in types if kind.__module__ == module.__name__}
    assert skipping & own == SKIPPING.get(source, {}).keys()


@pytest.mark.parametrize("source", STREAMS)
def test_a_usual_stream_loses_no_key(source: str) -> None:
    """The members that the service sends with every event are known: they are not reported."""
    translator = dragoman.StreamTranslator(source=source, target="openai-chat" if source != "openai-chat" else "gemini")
    translator.feed(framed(source, STREAMS[source]))
    translator.close()
    assert translator.failure is None
    assert [loss for loss in translator.losses if loss.severity == "dropped"] == []


MODALITIES = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}, {"modality": "IMAGE", "tokenCount": 4}]}
LIFETIMES = {"cacheWriteInputTokens": 4, "cacheDetails": [{"inputTokens": 4, "ttl": "1h"}]}


@pytest.mark.parametrize(
    ("source", "usage", "details", "name"),
    [
        ("gemini", "usageMetadata", MODALITIES, "4 image tokens"),
        ("bedrock-converse", "metadata", LIFETIMES, "tokens written to a cache with a lifetime of an hour"),
    ],
)
def test_details_of_token_counts_are_noted_and_the_counts_are_not(
    source: str, usage: str, details: dict[str, Any], name: str
) -> None:
    target = "openai-responses" if source == "bedrock-converse" else "anthropic-messages"
    *events, last = STREAMS[source]
    counts = last[usage]["usage"] | details if usage == "metadata" else last[usage] | details
    changed = {**last, usage: {**last[usage], "usage": counts} if usage == "metadata" else counts}
    translator = dragoman.StreamTranslator(source=source, target=target)
    translator.feed(framed(source, [*events, changed]))
    translator.close()
    whole = dragoman.encode_response(translator.completion, target)
    for losses in (translator.losses, whole.losses):
        assert [loss.what for loss in losses if loss.path.startswith("$.usage") and loss.severity == "noted"] == [name]
