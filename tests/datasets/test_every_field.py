"""Law 2 for stored conversations, by construction: every field of the intermediate format set alone is written or is a
loss, and what was written is the same after it is read and written again.
"""

import json
from collections.abc import Iterator

import pytest

import dragoman
from dragoman.codecs.datasets.catalogue import dataset
from dragoman.errors import DecodeError, EncodeError
from tests.laws.test_every_field import WORLDS, encoded_examples, faults
from tests.support.edits import edits
from tests.support.promises import promise
from tests.support.trees import difference, plain

WRITTEN = tuple(name for name in dragoman.formats("dataset") if dataset(name).write is not None)

# (kind, field) -> why some format writes nothing about it and reports nothing. May only shrink.
_NO_TOOLS = "files without tools: the loss of the option comes before that of the tool"
UNREPORTED = {
    ("Request", "model"): "a file of conversations is not about one model",
    ("Request", "stream"): "a file of conversations is not about one request",
    ("ToolCall", "id"): "calls and results are paired by order there",
    ("ToolResult", "tool_call_id"): "calls and results are paired by order there",
    ("ProviderTool", "functions"): _NO_TOOLS,
    ("ToolDefinition", "deferred"): _NO_TOOLS,
}
# (format, kind, field) -> why the second time differs.
UNSTABLE = {
    ("openai-finetuning", "Request", "modalities"): "the settings of the sound are not read as such",
    ("gemini-tuning", "ToolDefinition", "strict"): "the mode VALIDATED is not read as such",
}


@promise("law:2-nothing-vanishes", "batch:datasets")
def test_every_field_set_alone_is_written_or_a_true_loss() -> None:
    found = {
        (kind.__name__, field): f"{target}: {fault}"
        for target in WRITTEN
        for kind in WORLDS["request"][2]
        for field, fault in faults("request", kind, target)
    }
    assert {row: fault for row, fault in found.items() if row not in UNREPORTED} == {}
    assert UNREPORTED.keys() - found.keys() == set()


def records(name: str) -> Iterator[tuple[str, str, bytes]]:
    """(kind, field, the record of a conversation with it)."""
    yield from ((kind.__name__, field, body) for kind, field, body in encoded_examples(name))


@promise("batch:datasets")
@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_is_read_and_written_again(name: str) -> None:
    failed = {}
    for kind, field, record in records(name):
        again = dragoman.encode_request(dragoman.decode_request(record, name), name)
        found = difference(plain(record), plain(again.json()))
        if (found or again.losses) and (name, kind, field) not in UNSTABLE:
            failed[name, kind, field] = found or str(again.losses)
    assert failed == {}


@promise("law:10-bad-input-good-words", "batch:datasets")
@pytest.mark.parametrize("name", WRITTEN)
def test_an_edited_record_is_refused_with_its_place_or_crosses(name: str) -> None:
    """Its meaning may change with the edit; then what is written next must be stable."""
    unstable, seen = [], set[bytes]()
    for kind, field, record in records(name):
        for edit in edits(json.loads(record)):
            raw = json.dumps(edit.body).encode()
            if raw in seen:
                continue
            seen.add(raw)
            try:
                once = dragoman.encode_request(dragoman.decode_request(raw, name), name).json()
                if b"[]" in once:
                    continue  # nothing is left of the conversation
            except DecodeError as refused:
                if not refused.path.startswith("$"):
                    unstable.append(f"{kind}.{field} {edit}: no place: {refused}")
                continue
            except EncodeError:
                continue
            twice = dragoman.encode_request(dragoman.decode_request(once, name), name).json()
            if twice != once:
                unstable.append(f"{kind}.{field} {edit}: {difference(plain(once), plain(twice))}")
    assert unstable == []
