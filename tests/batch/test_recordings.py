"""Every record of every file of recorded traffic, through the bulk engine, without naming its format.

A record may be rejected for a fault of its own only: the service refused it too, or `accepted_differences` names it. A
record that is converted is read as the format that its file is of.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import StreamDecoder, encode_response
from dragoman.batch import Reject, Report, RunOptions, convert
from dragoman.codecs.accumulate import accumulate
from dragoman.ir import StreamFailed
from tests.accepted_differences import NOT_DECODED, REFUSED
from tests.support.promises import promise
from tests.support.recordings import Record

pytestmark = promise("batch:recordings")

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"
FORMATS: dict[str, str] = {
    "anthropic-bedrock": MESSAGES, "anthropic-compat": MESSAGES, "anthropic-messages": MESSAGES,
    "anthropic-vertex": MESSAGES, "bedrock-converse": "bedrock-converse", "cohere-chat": "cohere-chat",
    "deepseek-chat": CHAT, "gemini-generate": "gemini", "groq-chat": CHAT, "mistral-chat": CHAT,
    "ollama-chat": "ollama-chat", "openai-chat": CHAT, "openai-compat-chat": CHAT, "openai-responses": RESPONSES,
    "openrouter-chat": CHAT, "responses-compat": RESPONSES, "vertex-generate": "gemini", "xai-chat": CHAT,
}  # fmt: skip
TARGETS = (CHAT, RESPONSES, MESSAGES, "gemini", "bedrock-converse", "ollama-chat", "cohere-chat")
"""Each file is converted to three of them, another three for the next file."""
REQUEST_TARGETS = ("trl", "anthropic-batch", "universal")
OWN_FAULT = {row.id for row in (*NOT_DECODED, *REFUSED)}
SAME_FAMILY = {"gemini": {"gemini", "vertex"}}
PLAIN = {CHAT, "ollama-chat", MESSAGES}
"""Formats of which a plain request (a model and messages) may be any."""
REFUSED_STATUS = 400


def targets_of(name: str) -> tuple[str, ...]:
    turn = sorted(FORMATS).index(name)
    return tuple(TARGETS[(turn + step) % len(TARGETS)] for step in (0, 2, 4))


def converted(bodies: list[Any], folder: Path, target: str) -> tuple[Report, list[Reject]]:
    source = folder / "in.jsonl"
    source.write_text("".join(json.dumps(body, ensure_ascii=False) + "\n" for body in bodies), "utf-8")
    output = folder / f"{target}.jsonl"
    report = convert(str(source), str(output), RunOptions(workers=1, overwrite=True), target=target)
    assert report.tally.records == len(bodies)
    assert report.tally.converted + report.tally.rejected == len(bodies)
    assert len(output.read_bytes().splitlines()) == report.tally.converted
    rejects = folder / f"{target}.jsonl.rejects.jsonl"
    lines = rejects.read_bytes().splitlines() if rejects.exists() else []
    return report, [msgspec.json.decode(line, type=Reject) for line in lines]


def check_formats(name: str, report: Report) -> None:
    """Of a file of one API, no record is taken for another's but for the few that fit several."""
    expected = SAME_FAMILY.get(FORMATS[name], {FORMATS[name]})
    others = {found: count for found, count in report.tally.formats.items() if found.split()[0] not in expected}
    assert sum(others.values()) <= max(1, 0.01 * report.tally.records), others
    assert {found.split()[0] for found in others} <= PLAIN, others


@pytest.mark.parametrize("name", FORMATS)
def test_recorded_requests(name: str, recordings: Callable[[str], Iterator[Record]], tmp_path: Path) -> None:
    records = [record for record in recordings(name) if record.request is not None]
    for target in (*targets_of(name), *REQUEST_TARGETS):
        report, rejects = converted([record.request for record in records], tmp_path, target)
        for reject in rejects:
            record = records[reject.line - 1]
            assert record.status >= REFUSED_STATUS or record.id in OWN_FAULT, (target, record.id, reject)
        check_formats(name, report)


@pytest.mark.parametrize("name", FORMATS)
def test_recorded_answers_and_errors(name: str, recordings: Callable[[str], Iterator[Record]], tmp_path: Path) -> None:
    records = [record for record in recordings(name) if isinstance(record.response, dict | list)]
    for target in targets_of(name):
        report, rejects = converted([record.response for record in records], tmp_path, target)
        for reject in rejects:
            assert records[reject.line - 1].id in OWN_FAULT, (target, records[reject.line - 1].id, reject)
        check_formats(name, report)


@pytest.mark.parametrize("name", FORMATS)
def test_recorded_streams_as_answers(name: str, recordings: Callable[[str], Iterator[Record]], tmp_path: Path) -> None:
    """A stored stream is kept as the answer that it was: what the stream decoder gathered, written as a body."""
    answers = [body for record in recordings(name) if (body := gathered(record, FORMATS[name])) is not None]
    for target in targets_of(name)[:2]:
        report, rejects = converted(answers, tmp_path, target)
        assert not rejects, (target, rejects[:3])
        check_formats(name, report)


def gathered(record: Record, format_name: str) -> Any:
    """The answer; None where the stream failed, was cut short, or came in frames, which are not recorded."""
    if record.events is None or format_name == "bedrock-converse":
        return None
    decoder = StreamDecoder(format_name)
    events = [*decoder.feed("".join(record.events).encode()), *decoder.close()]
    if not events or any(isinstance(event, StreamFailed) for event in events):
        return None
    return encode_response(accumulate(events), format_name).body
