"""Recorded traffic of the real APIs.

It is too large for this repository and lies beside it; where it is absent, tests that need it skip, and only they may.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "DRAGOMAN_RECORDINGS"
BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[3] / "shared" / "recordings"
FORMAT_OF: Mapping[str, str] = {
    "openai-chat": "openai-chat",
    "openai-compat-chat": "openai-chat",
    "deepseek-chat": "openai-chat",
    "groq-chat": "openai-chat",
    "mistral-chat": "openai-chat",
    "openrouter-chat": "openai-chat",
    "xai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "responses-compat": "openai-responses",
    "anthropic-messages": "anthropic-messages",
    "anthropic-bedrock": "anthropic-messages",
    "anthropic-vertex": "anthropic-messages",
    "anthropic-compat": "anthropic-messages",
    "gemini-generate": "gemini",
    "vertex-generate": "vertex",
    "bedrock-converse": "bedrock-converse",
    "ollama-chat": "ollama-chat",
    "cohere-chat": "cohere-chat",
}
"""File -> the format of its bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One exchange. `"".join(events)` is a streamed body as received; `response` is a str if the body was not JSON."""

    id: str
    source: str
    endpoint: str
    request: dict[str, Any] | None
    status: int
    stream: bool
    response: dict[str, Any] | str | None
    events: tuple[str, ...] | None
    tags: frozenset[str]


def recordings_dir() -> Path | None:
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return BESIDE_THE_REPOSITORY if BESIDE_THE_REPOSITORY.is_dir() else None
    directory = Path(chosen)
    if not directory.is_dir():  # a wrong setting must fail, not skip tests
        raise NotADirectoryError(f"{VARIABLE}={chosen} is not a directory")
    return directory


def load(name: str) -> Iterator[Record]:
    """Read the exchanges of one file ("openai-chat") one by one."""
    directory = recordings_dir()
    if directory is None:
        raise FileNotFoundError(f"no recordings at {BESIDE_THE_REPOSITORY}; set {VARIABLE}")
    with gzip.open(directory / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = _record(line)
            if name != "cohere-chat" or record.endpoint == "/v2/chat":  # v1 is another format, in the same file
                yield record


def _record(line: str) -> Record:
    # The standard library's parser on purpose: the tests must not see the wire through the parser they test.
    fields = json.loads(line)
    events = fields["events"]
    return Record(
        id=fields["id"],
        source=fields["source"],
        endpoint=fields["endpoint"],
        request=fields["request"],
        status=fields["status"],
        stream=fields["stream"],
        response=fields["response"],
        events=None if events is None else tuple(events),
        tags=frozenset(fields["tags"]),
    )


ALL_VARIABLE = "DRAGOMAN_ALL_RECORDS"
"""If set, tests that use a share of the records use all of them."""


def share(records: Iterator[Record], key: str, *, one_in: int = 3) -> Iterator[Record]:
    """One in so many of the records, another choice for each key.

    If every pair of formats takes its own share, each record is used by some pair, though not by every pair.
    """
    return (record for record, _ in shares(records, (key,), one_in=one_in))


def shares(records: Iterator[Record], keys: Iterable[str], *, one_in: int = 3) -> Iterator[tuple[Record, str]]:
    """The shares of several keys, each record with each key that takes it: a file is read once for all of them."""
    turns = {key: 0 if ALL_VARIABLE in os.environ else zlib.crc32(key.encode()) for key in keys}
    for record in records:
        number = 0 if ALL_VARIABLE in os.environ else zlib.crc32(record.id.encode())
        for key, turn in turns.items():
            if (number + turn) % one_in == 0:
                yield record, key
