"""Law 2 for stored conversations, by construction: a new key in any object of a record is a loss with its path.

A key that is reported really has no effect on what is read.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import dragoman
from dragoman.codecs.datasets.catalogue import dataset
from dragoman.codecs.datasets.known_keys import all_keys, keys, kinds_of, messages_in
from dragoman.codecs.datasets.unread_keys import severity_of, unread_keys
from dragoman.codecs.registry import codec
from dragoman.errors import DecodeError
from dragoman.translate import translate_request
from tests.datasets.public_shapes import SHAPES
from tests.datasets.test_datasets import STORIES
from tests.support.cases import each
from tests.support.promises import promise

NEW = "zz_new"
# Objects of which only the text is read, or nothing. May only shrink.
HIDDEN = {
    ("smolagents", "$[*].model_input_messages[*]"): "a copy of the steps before",
    ("smolagents", "$[*].model_input_messages[*].content[*]"): "a copy of the steps before",
    ("open-webui", "$.chat.history.messages"): "its keys are ids",
    ("open-webui", "$.history.messages"): "its keys are ids",
    ("chatgpt-export", "$.mapping"): "its keys are ids",
    ("claude-code", "$[*].message.content[*]"): "a message of another branch",
    ("haystack", "$.messages[*].content[*].tool_call_result.origin.arguments"): "a copy of the call",
    ("haystack", "$[*]._content[*].tool_call_result.origin.arguments"): "a copy of the call",
    ("langchain", "$[*].kwargs.content[*].input"): "a copy of the call",
    ("langsmith", "$.inputs.messages[*][*].kwargs.content[*].input"): "a copy of the call",
    ("vercel-ui", "$[*].toolInvocations[*].args"): "a copy of the call",
    ("toolbench", "$.answer_generation.train_messages[*][*].function_call.arguments"): "the beginning of another one",
    ("letta", "$.tools[*].json_schema.parameters"): "a tool of another agent",
    ("letta", "$.tools[*].json_schema.parameters.properties"): "a tool of another agent",
    ("letta", "$.tools[*].json_schema.parameters.properties.city"): "a tool of another agent",
    ("langchain", "$[*].data.tool_calls[*].args"): "arguments, of which a copy with their exact text is used",
}


class JsonText:
    """What a text in a record holds, if it is the JSON of an object or a list."""

    def __init__(self, value: Any) -> None:
        self.value = value


def unpacked(value: Any) -> Any:
    """A copy of a record, in which JSON texts can be edited."""
    if isinstance(value, dict):
        return {key: unpacked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unpacked(inner) for inner in value]
    if isinstance(value, str) and value[:1] in {"{", "["}:
        with suppress(ValueError):
            return JsonText(unpacked(json.loads(value)))
    return value


def written(value: Any) -> str:
    return json.dumps(value, default=lambda text: written(text.value))


def objects(value: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, JsonText):
        yield from objects(value.value, path)
    elif isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from objects(inner, f"{path}.{key}" if re.fullmatch(r"\w+", key) else f"{path}[{key!r}]")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from objects(inner, f"{path}[{index}]")


def pattern(path: str) -> str:
    return re.sub(r"\[\d+\]", "[*]", path)


def records(name: str) -> Iterator[Any]:
    yield STORIES[name]
    yield from (shape.record for shape in SHAPES.values() if shape.format == name)


def silent(name: str, record: Any) -> set[str]:
    """Patterns of the objects in which a new key neither arrives nor is reported, alone or with an object around it."""
    found = set()
    for number, (path, _) in enumerate(objects(unpacked(record))):
        changed = unpacked(record)
        list(objects(changed))[number][1][NEW] = NEW
        try:
            encoded = translate_request(written(changed).encode(), source=name, target="openai-chat", model="m")
        except DecodeError:
            continue
        if NEW in encoded.json().decode():
            continue
        at = f"{path}.{NEW}"
        places = {loss.path for loss in encoded.losses} - {"$"}
        alike = {pattern(place) for place in places}
        if not any(map(at.startswith, places)) and not any(map(pattern(at).startswith, alike)):
            found.add(pattern(path))
    return found


@promise("law:2-nothing-vanishes", "batch:datasets")
def test_a_new_key_in_any_object_arrives_or_is_reported_with_its_path() -> None:
    found = {(name, path) for name in STORIES for record in records(name) for path in silent(name, record)}
    assert found - HIDDEN.keys() == set()
    assert HIDDEN.keys() - found == set()


def reported(name: str, record: Any) -> list[str]:
    encoded = translate_request(json.dumps(record).encode(), source=name, target="openai-chat", model="m")
    return [loss.path for loss in encoded.losses if "beside the conversation" in loss.why]


def _spelled(at: str, key: str) -> tuple[str, str]:
    return f"{at}.{key}", f"{at}[{key!r}]"


@promise("law:2-nothing-vanishes", "batch:datasets")
@each("name", [name for name in STORIES if dataset(name).keys is not None])
def test_a_reported_key_is_in_the_record_and_has_no_effect(name: str) -> None:
    """If a reader reads a key without declaring it, it reports a loss of something that it kept."""
    for record in records(name):
        try:
            body = codec(name).decode_request(written(unpacked(record)).encode())
        except DecodeError:
            continue
        for path in reported(name, record):
            changed = unpacked(record)
            assert [node.pop(key) for at, node in objects(changed) for key in list(node) if path in _spelled(at, key)]
            if dataset(name).is_record(json.loads(written(changed))):  # some keys only identify the format
                assert codec(name).decode_request(written(changed).encode()) == body, path


def test_empty_keys_are_not_reported() -> None:
    known = keys("role")
    assert unread_keys({"role": "user", "a": None, "b": "", "c": [], "d": {}}, known) == []
    assert unread_keys({"role": "user", "a": 0, "b": False}, known) == [("$.a", "a", 1), ("$.b", "b", 1)]


def test_a_key_is_reported_once_per_kind_of_object() -> None:
    call = keys("name")
    known = messages_in(kinds_of("role", {"tool result": keys("id")}, keys("content", calls=call)), "title")
    record = {
        "title": "t",
        "a.b": 1,
        "messages": [
            {"role": "user", "time": 1},
            {"role": "user", "time": 2, "calls": [{"name": "f"}, {"name": "g", "time": 3}]},
            {"role": "result", "id": "i", "content": "c"},
        ],
    }
    found = [path for path, _, _ in unread_keys(record, known)]
    assert found == ["$['a.b']", "$.messages[0].time", "$.messages[2].content", "$.messages[1].calls[1].time"]
    assert unread_keys(record["messages"], known)[0][0] == "$[0].time"
    assert unread_keys({"x": {"y": 1}}, all_keys()) == []


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", ["trl", "openai-chat", "sharegpt"])
def test_what_a_format_cannot_keep_is_a_loss_in_that_format_too(target: str) -> None:
    record = {"conversations": [{"role": "user", "content": "hi", "country": "Oslo"}], "id": 1}
    losses = dragoman.translate_request(record, source="trl", target=target, model="m").losses
    assert "$.conversations[0].country" in {loss.path for loss in losses}
    assert not any(loss.path == "$.id" and "beside the conversation" in loss.why for loss in losses)


@pytest.mark.parametrize(
    ("key", "severity"),
    [
        ("timestamp", "noted"),
        ("parentUuid", "noted"),
        ("sessionId", "noted"),
        ("gitBranch", "noted"),
        ("token_usage", "noted"),
        ("updated_at", "noted"),
        ("stopReason", "noted"),
        ("tool_call_id", "dropped"),
        ("sourceToolAssistantUUID", "dropped"),
        ("text", "dropped"),
        ("memory", "dropped"),
        ("", "dropped"),
    ],
)
def test_records_of_a_log_are_notes_and_content_is_not(key: str, severity: str) -> None:
    """So `strict` and `--filter dropped` accept conversations of agents, which all have times and ids."""
    assert severity_of(key) == severity
