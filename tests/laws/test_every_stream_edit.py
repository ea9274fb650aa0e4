"""Laws 5 and 10 by construction: every value of every event of a sample stream removed, emptied, set to null or
repeated, alone.

Each such stream ends once, reads the same for any cut of its bytes, and tells the same story after it is decoded and
encoded again.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.errors import StreamError
from tests.laws.test_whole_and_streamed import story
from tests.support.edits import edits
from tests.support.promises import promise
from tests.support.sample_streams import STREAMS, framed

SIZE = 7
"""Bytes of a piece: less than any event."""

# (format, event, edit, what differs) -> why.
_NO_REASON = "an end that says nothing is told as one that no client takes for a success"
_NULL = "a signature that is null at first is not completed"
_NO_TYPE = "a block that does not say what it is comes back whole, or not at all"
_SUM = "the total is filled in"
KNOWN: dict[tuple[str, int, str, str], str] = {
    ("openai-chat", 7, "$.usage.total_tokens null", "usage"): _SUM,
    ("openai-chat", 7, "$.usage.total_tokens removed", "usage"): _SUM,
    ("anthropic-messages", 2, "$.content_block.signature null", "signatures"): _NULL,
    ("anthropic-messages", 15, "$.delta emptied", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "$.delta null", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "$.delta removed", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "$.delta.stop_reason emptied", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "$.delta.stop_reason null", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "$.delta.stop_reason removed", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "$.type emptied", "finish"): _NO_REASON,
    ("anthropic-messages", 15, "removed", "finish"): _NO_REASON,
    ("openai-responses", 13, "$.item.type emptied", "finish"): _NO_REASON,
    ("openai-responses", 13, "$.item.type null", "finish"): _NO_REASON,
    ("openai-responses", 13, "$.item.type removed", "finish"): _NO_REASON,
    ("bedrock-converse", 1, "$.contentBlockDelta.delta emptied", "others"): _NO_TYPE,
    ("bedrock-converse", 1, "$.contentBlockDelta.delta emptied", "reasoning"): _NO_TYPE,
    ("bedrock-converse", 1, "$.contentBlockDelta.delta emptied", "signatures"): _NO_TYPE,
    ("bedrock-converse", 1, "$.contentBlockDelta.delta.reasoningContent removed", "others"): _NO_TYPE,
    ("bedrock-converse", 1, "$.contentBlockDelta.delta.reasoningContent removed", "reasoning"): _NO_TYPE,
    ("bedrock-converse", 1, "$.contentBlockDelta.delta.reasoningContent removed", "signatures"): _NO_TYPE,
    ("bedrock-converse", 12, "$.messageStop emptied", "finish"): _NO_REASON,
    ("bedrock-converse", 12, "$.messageStop.stopReason removed", "finish"): _NO_REASON,
    ("gemini-interactions", 2, "$.step emptied", "ended"): _NO_TYPE,
    ("gemini-interactions", 2, "$.step.type emptied", "ended"): _NO_TYPE,
    ("gemini-interactions", 2, "$.step.type removed", "ended"): _NO_TYPE,
}


def edited(source: str) -> Iterator[tuple[int, str, bytes]]:
    """(number of the event, edit, the stream with that edit)."""
    events = STREAMS[source]
    for number, event in enumerate(events):
        for edit in edits(event):
            if isinstance(edit.body, dict) and edit.body:
                yield number, str(edit), framed(source, [*events[:number], edit.body, *events[number + 1 :]])
        yield number, "repeated", framed(source, [*events[: number + 1], *events[number:]])
        yield number, "removed", framed(source, [*events[:number], *events[number + 1 :]])


def decoded(source: str, data: bytes, size: int) -> list[ir.AnyEvent]:
    decoder = dragoman.StreamDecoder(source)
    read = [event for start in range(0, len(data), size) for event in decoder.feed(data[start : start + size])]
    return [*read, *decoder.close()]


def outcome(events: list[ir.AnyEvent]) -> dict[str, Any]:
    try:
        return {"ended": "well", **story(dragoman.accumulate(events))}
    except StreamError:
        return {"ended": "failed"}


def differences(source: str) -> Iterator[tuple[int, str, str]]:
    for number, edit, data in edited(source):
        events = decoded(source, data, len(data))
        ends = [isinstance(event, ir.Finished | ir.StreamFailed) for event in events]
        if sum(ends) != 1 or not ends[-1]:
            yield number, edit, "end"
        if decoded(source, data, SIZE) != events:
            yield number, edit, "cut"
        encoder = dragoman.StreamEncoder(source)
        again = encoder.encode(events) + encoder.close()
        before, after = outcome(events), outcome(decoded(source, again, len(again)))
        if before.keys() != after.keys():
            yield number, edit, "ended"
            continue
        yield from ((number, edit, what) for what in before if before[what] != after[what])


@promise("law:5-streams-tell-the-same-story", "law:10-bad-input-good-words")
@pytest.mark.parametrize("source", STREAMS)
def test_an_edited_stream_ends_once_and_tells_its_story_again(source: str) -> None:
    found = set(differences(source))
    known = {row[1:] for row in KNOWN if row[0] == source}
    assert sorted(found - known) == []
    assert sorted(known - found) == [], "no longer different: remove these rows"
