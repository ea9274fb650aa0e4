"""Law 1 for what we write ourselves: a body that crossed is read in its new format and written again, the same and
without a loss.

Every sample body and every field of the intermediate format crosses to every format. Of the edited bodies (one value
removed, emptied, set to null or repeated) each crosses to one format, by turns.
"""

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, EncodeError
from tests.laws.test_every_field import WORLDS
from tests.support.edits import edits
from tests.support.formats import FAMILY, FORMATS
from tests.support.ir_examples import EXAMPLES, resolved
from tests.support.promises import promise
from tests.support.small_bodies import small_bodies
from tests.support.trees import difference, plain, variants

# (kind, body, target) -> what is different the second time.
_MEDIA = "media beside the text of a result are read as a turn of their own"
_KEY = "a key of another family that was carried is reported when it is carried no longer"
KNOWN = {
    ("request", "bedrock-converse: kinds", "openai-responses"): _MEDIA,
    ("response", "Reasoning.metadata of google", "gemini"): _KEY,
    ("response", "Reasoning.metadata of google", "vertex"): _KEY,
    ("response", "Reasoning.metadata of anthropic", "gemini"): _KEY,
    ("response", "Reasoning.metadata of anthropic", "vertex"): _KEY,
}
KNOWN_EDITS = {
    (
        "anthropic-messages: thinking and calls",
        "$.content[2].type removed",
        "vertex",
    ): "a signature before an unknown part",
}


def samples(kind: str) -> Iterator[tuple[str, str, Any]]:
    """(name, format, body)."""
    for row in small_bodies(kind):
        yield (str(row.id), *row.values)


def values(kind: str) -> Iterator[tuple[str, ir.Request | ir.Completion]]:
    decode = getattr(dragoman, f"decode_{kind}")
    for name, source, body in samples(kind):
        try:
            yield name, decode(body, source)
        except DecodeError:
            continue
    place, _, kinds = WORLDS["request" if kind == "request" else "answer"]
    for one in kinds:
        for own, foreign in (("google", "anthropic"), ("anthropic", "openai")):
            base: Any = resolved(EXAMPLES[one].plain, own, foreign)
            for field, changes in EXAMPLES[one].fields.items():
                given = {key: resolved(value, own, foreign) for key, value in changes.items()}
                yield f"{one.__name__}.{field} of {own}", place(structs.replace(base, **given)).whole


def fault(kind: str, written: bytes, target: str) -> str | None:
    try:
        read = getattr(dragoman, f"decode_{kind}")(written, target)
    except DecodeError as error:
        # An answer that failed is an error body there.
        return None if kind == "response" and b'"error"' in written else f"cannot be read: {error}"
    again = getattr(dragoman, f"encode_{kind}")(read, target)
    if again.losses:
        return str(again.losses[0])
    return None if again.json() == written else difference(plain(written), plain(again.json()))


@promise("law:1-identity")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("kind", ["request", "response"])
def test_what_crossed_is_written_again_as_it_was(kind: str, target: str) -> None:
    failed = {}
    for name, value in values(kind):
        try:
            written = getattr(dragoman, f"encode_{kind}")(value, target).json()
        except EncodeError:
            continue
        if (found := fault(kind, written, target)) is not None:
            failed[kind, name, target] = found
    known = {row for row in KNOWN if (row[0], row[2]) == (kind, target)}
    assert {row: found for row, found in failed.items() if row not in known} == {}
    assert known - failed.keys() == set(), "no longer different: remove these rows"


@promise("law:1-identity", "law:10-bad-input-good-words")
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("kind", ["request", "response"])
def test_an_edited_body_crosses_and_is_written_again_as_it_was(kind: str, source: str) -> None:
    failed = {}
    targets = [target for target in FORMATS if target != source]
    for name, body in ((name, body) for name, format, body in samples(kind) if format == source):
        for number, edit in enumerate(edits(body)):
            target = targets[number % len(targets)]
            if (kind, name, target) in KNOWN:
                continue
            try:
                raw = json.dumps(edit.body).encode()
                written = getattr(dragoman, f"translate_{kind}")(raw, source=source, target=target).json()
            except (DecodeError, EncodeError):
                continue
            if (found := fault(kind, written, target)) is not None:
                failed[name, str(edit), target] = found
    assert {row: found for row, found in failed.items() if row not in KNOWN_EDITS} == {}


# A single element may stand for its list on this wire, and one server names its counts otherwise: then the usual place
# is named.
ELSEWHERE = {
    ("gemini: snake case and typed schema", "$.contents"),
    ("gemini: snake case and typed schema", "$.contents.parts"),
    ("vertex: snake case and typed schema", "$.contents"),
    ("vertex: snake case and typed schema", "$.contents.parts"),
    ("cohere-chat: counts of an early server", "$.meta"),
}
KEY = "x_unknown"


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("kind", ["request", "response"])
def test_the_loss_of_an_unknown_key_names_its_place(kind: str, source: str) -> None:
    """Every object of every sample body, with an unknown key in it. Each crosses to one other family, by turns."""
    targets = [target for target in FORMATS if FAMILY[target] != FAMILY[source]]
    wrong: dict[tuple[str, str, str], list[str]] = {}
    turns = cycle(targets)
    for name, body in ((name, body) for name, format, body in samples(kind) if format == source):
        for path, changed in variants(body, lambda found: {**found, KEY: 1}):
            target = next(turns)
            try:
                raw = json.dumps(changed).encode()
                losses = getattr(dragoman, f"translate_{kind}")(raw, source=source, target=target).losses
            except (DecodeError, EncodeError):
                continue
            named = [loss.path for loss in losses if KEY in loss.path]
            if named and f"{path}.{KEY}" not in named and (name, path) not in ELSEWHERE:
                wrong[name, path, target] = named
    assert wrong == {}
