"""Laws 1 and 2 for record formats, by construction: every field of the intermediate format set alone, and every value
of what is written then removed, emptied, set to null or repeated.

A field is stored or is a loss. An edited history is refused with its place, or it is the same history after it is read
and written.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.errors import DecodeError
from tests.laws.test_every_field import WORLDS, encoded_examples, faults
from tests.support.edits import edits
from tests.support.promises import promise
from tests.support.records import RECORDS, SAMPLES
from tests.support.trees import difference, plain

# (kind, field) -> why it may vanish, or be called degraded.
_IN_BLOCK = "the stored block has it"
KNOWN_FIELDS = {
    **{("ServerToolCall", field): _IN_BLOCK for field in ("input", "kind", "server")},
    **{("ServerToolResult", field): _IN_BLOCK for field in ("kind", "parts", "error", "sources")},
    ("ToolChoice", "names"): "stored as auto, which is what nothing means",
}
# (path inside a message, edit) -> what is filled in.
_NAME = "the name of the call that a result answers"
FILLED_IN = {
    ("name", "emptied"): _NAME,
    ("tool_name", "emptied"): _NAME,
    ("content[].name", "emptied"): _NAME,
    ("content[].payload.cite", "null"): "a switch that is not set",
    ("tool_calls[].type", "emptied"): "the type goes without saying",
    ("toolCalls[].type", "emptied"): "the type goes without saying",
    ("type", "emptied"): "the type goes without saying",
    ("$.toolChoice.type", "emptied"): "the type goes without saying",
    ("role", "emptied"): "a role that is missing is the user's",
}


def listed(path: str, what: str) -> bool:
    return (re.sub(r"\[\d+\]", "[]", re.sub(r"^\$(\.\w+)?\[\d+\]\.", "", path)), what) in FILLED_IN


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", RECORDS)
def test_every_field_set_alone_is_stored_or_a_true_loss(target: str) -> None:
    found = {
        (kind.__name__, name): fault
        for kind in WORLDS["request"][2]
        for name, fault in faults("request", kind, target)
        if (kind.__name__, name) not in KNOWN_FIELDS
    }
    assert found == {}


def histories(name: str) -> Iterator[tuple[str, Any]]:
    """(where it is from, a stored history)."""
    yield from ((f"sample {number}", sample) for number, sample in enumerate(SAMPLES[name]))
    yield from ((f"{kind.__name__}.{field}", json.loads(body)) for kind, field, body in encoded_examples(name))


def failure(raw: bytes, name: str) -> str | None:
    try:
        request = dragoman.decode_request(raw, name)
    except DecodeError as refused:
        return None if refused.path.startswith("$") else f"no place: {refused}"
    again = dragoman.encode_request(request, name)
    found = difference(plain(raw), plain(again.json()))
    return found or (str(again.losses[0]) if again.losses else None)


@promise("law:1-identity")
@pytest.mark.parametrize("name", RECORDS)
def test_an_edited_history_is_refused_or_the_same_again(name: str) -> None:
    failed, seen = [], set[bytes]()
    for source, body in histories(name):
        whole = json.dumps(body).encode()
        assert failure(whole, name) is None, source
        for edit in edits(body):
            raw = json.dumps(edit.body).encode()
            if raw in seen or listed(edit.path, edit.what):
                continue
            seen.add(raw)
            if (found := failure(raw, name)) is not None:
                failed.append(f"{source} {edit}: {found}")
    assert failed == []
