"""Real bodies and streams: recorded traffic, and requests of coding agents and SDKs.

Both are too large for this repository and are read from the folder beside it (see tests/support/recordings.py).
Samples are drawn with a fixed seed, so two runs measure the same bodies.
"""

import gzip
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from benchmarks import streams
from benchmarks.bodies import Format
from tests.support.recordings import recordings_dir

Json = dict[str, Any]
Kind = Literal["request", "response", "stream"]
KINDS: Final[tuple[Kind, ...]] = ("request", "response", "stream")
SEED: Final = 20261116

# File of recordings -> the format of its bodies: vendors' own endpoints, then servers compatible with them.
VENDOR_FILES: Final[dict[str, Format]] = {
    "openai-chat": "openai-chat",
    "anthropic-messages": "anthropic-messages",
    "gemini-generate": "gemini",
    "openai-responses": "openai-responses",
    "ollama-chat": "ollama-chat",
    "bedrock-converse": "bedrock-converse",
}
COMPATIBLE_FILES: Final[dict[str, Format]] = {
    "openai-compat-chat": "openai-chat",
    "openrouter-chat": "openai-chat",
    "deepseek-chat": "openai-chat",
    "groq-chat": "openai-chat",
    "mistral-chat": "openai-chat",
    "xai-chat": "openai-chat",
    "anthropic-compat": "anthropic-messages",
    "responses-compat": "openai-responses",
}

_AGENTS: Final[dict[str, tuple[str, Format]]] = {
    "claude": ("Claude Code", "anthropic-messages"),
    "claude-vertex": ("Claude Code", "anthropic-messages"),
    "codex": ("Codex", "openai-responses"),
    "gemini": ("Gemini CLI", "gemini"),
    "gemini-vertex": ("Gemini CLI", "gemini"),
}

# Excluded: broken streams, which would measure error handling instead of conversion.
_BROKEN: Final = frozenset({"error", "cut_short", "bad_json", "non_json", "empty", "malformed_call"})


@dataclass(frozen=True, slots=True)
class Sample:
    """One body (one chunk) or one stream (a chunk per event), and the JSON that the floor reads and writes."""

    id: str
    source: Format
    chunks: tuple[bytes, ...]
    payloads: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return self.chunks[0]

    def floor(self) -> None:
        """Parses and writes the same JSON with orjson, without interpreting it."""
        for payload in self.payloads:
            orjson.dumps(orjson.loads(payload))


def is_present() -> bool:
    return recordings_dir() is not None


def recorded(file: str, source: Format, kind: Kind, count: int | None) -> list[Sample]:
    """At most `count` of a file's bodies or streams, drawn with the fixed seed; None means all."""
    usable = _usable(file, source, kind)
    return sampled(usable, count, f"{file} {kind}")


def sampled(usable: Sequence[Sample], count: int | None, key: str) -> list[Sample]:
    if count is None or len(usable) <= count:
        return list(usable)
    return random.Random(f"{SEED} {key}").sample(usable, count)  # noqa: S311 - a sample, not a secret


@cache
def _usable(file: str, source: Format, kind: Kind) -> tuple[Sample, ...]:
    read = _READERS[kind]
    found = (read(record, source) for record in _records(file) if record["status"] == 200)
    return tuple(sample for sample in found if sample is not None)


@cache
def _records(file: str) -> tuple[Json, ...]:
    directory = recordings_dir()
    if directory is None:
        return ()
    with gzip.open(directory / f"{file}.jsonl.gz") as lines:
        return tuple(orjson.loads(line) for line in lines)


def forget() -> None:
    """Releases the parsed recordings: tens of megabytes of small objects would slow down later measurements."""
    _records.cache_clear()


def body_sample(id: str, source: Format, body: Json) -> Sample:
    content = orjson.dumps(body)
    return Sample(id, source, (content,), (content,))


def _request(record: Json, source: Format) -> Sample | None:
    return None if record["request"] is None else body_sample(record["id"], source, record["request"])


def _response(record: Json, source: Format) -> Sample | None:
    usable = isinstance(record["response"], dict) and "error" not in record["tags"]
    return body_sample(record["id"], source, record["response"]) if usable else None


def _stream(record: Json, source: Format) -> Sample | None:
    if not record["events"] or _BROKEN & set(record["tags"]):
        return None
    read = _EVENTS.get(source, server_sent_event)
    events = [read(event) for event in record["events"]]
    chunks = tuple(chunk for chunk, _ in events)
    return Sample(record["id"], source, chunks, tuple(payload for _, payload in events if payload))


def server_sent_event(event: str) -> tuple[bytes, bytes]:
    """The chunk as received, and its JSON: also of JSON-array streams, one element each, with brackets and commas."""
    lines = event.splitlines()
    data = "".join(line.removeprefix("data:").strip() for line in lines if line.startswith("data:"))
    payload = data or event.strip("[], \r\n")
    return event.encode(), payload.encode() if payload.startswith("{") else b""


def _json_line(event: str) -> tuple[bytes, bytes]:
    return event.encode(), event.strip().encode()


def _frame(event: str) -> tuple[bytes, bytes]:
    """Recordings keep a frame's type and payload as `event:` and `data:`; the wire has binary frames."""
    name, _, payload = event.removeprefix("event: ").partition("\ndata: ")
    content = payload.removesuffix("\n\n").encode()
    return streams.frame(name, content), content


_READERS: Final[dict[Kind, Callable[[Json, Format], Sample | None]]] = {
    "request": _request,
    "response": _response,
    "stream": _stream,
}
_EVENTS: Final[dict[Format, Callable[[str], tuple[bytes, bytes]]]] = {
    "ollama-chat": _json_line,
    "bedrock-converse": _frame,
}


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────


def agent_requests() -> dict[str, list[Sample]]:
    """Requests of each coding agent, by name. Long strings were cut when they were captured."""
    found: dict[str, list[Sample]] = {}
    for file, (agent, source) in _AGENTS.items():
        for number, body in enumerate(_captured(file)):
            found.setdefault(agent, []).append(body_sample(f"{file}#{number}", source, body))
    return found


def _captured(file: str) -> Iterator[Json]:
    directory = recordings_dir()
    path = None if directory is None else directory.parent / "rigs" / "captured" / f"{file}.jsonl"
    if path is not None and path.is_file():
        for line in Path(path).read_bytes().splitlines():
            yield orjson.loads(line)["body"]


# ── derived bodies ────────────────────────────────────────────────────────────────────────────────────────────


def conversations(file: str, source: Format, count: int | None) -> list[Sample]:
    """Conversations as people store them: the messages of a recorded request and, last, the recorded answer."""
    stored = []
    for record in _records(file):
        answer = _ANSWERS[source](record["response"]) if record["status"] == 200 and record["request"] else None
        if answer is not None and isinstance(record["request"].get("messages"), list):
            body = {**record["request"], "messages": [*record["request"]["messages"], answer]}
            stored.append(body_sample(record["id"], source, body))
    return sampled(stored, count, f"{file} stored")


def _chat_answer(response: Any) -> Json | None:
    choices = response.get("choices") if isinstance(response, dict) else None
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict):
        return None
    kept = ("role", "content", "tool_calls", "refusal")
    return {key: message[key] for key in kept if message.get(key) is not None}


def _messages_answer(response: Any) -> Json | None:
    content = response.get("content") if isinstance(response, dict) else None
    return {"role": "assistant", "content": content} if isinstance(content, list) and content else None


_ANSWERS: Final[dict[Format, Callable[[Any], Json | None]]] = {
    "openai-chat": _chat_answer,
    "anthropic-messages": _messages_answer,
}

_SCHEMA_KEYS: Final = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")


def with_new_tools(sample: Sample, count: int) -> list[Sample]:
    """Copies of a request with new tools in each; none if it declares no functions.

    A number of constant length goes into every description and every schema, so that no cache of tools or schemas
    contains them and the floor stays the same.
    """
    copies = []
    for _ in range(count):
        body = orjson.loads(sample.body)
        tools = body.get("tools") or (body.get("toolConfig") or {}).get("tools")
        if not tools or not _renew(tools, f" ({next(_SERIAL):09})"):
            return []
        content = orjson.dumps(body)
        copies.append(replace(sample, chunks=(content,), payloads=(content,)))
    return copies


_SERIAL: Final = iter(range(10**9))


def _renew(tools: Any, mark: str) -> bool:
    """Marks every function in place; returns whether there was one."""
    if isinstance(tools, list):
        return True in [_renew(tool, mark) for tool in tools]
    if not isinstance(tools, dict):
        return False
    schemas = [tools[key] for key in _SCHEMA_KEYS if isinstance(tools.get(key), dict)]
    if not schemas and "name" not in tools:  # a wrapper: `function`, `toolSpec`, `functionDeclarations`
        return True in [_renew(value, mark) for value in tools.values()]
    for schema in schemas:
        inner = schema.get("json", schema)  # Bedrock: {"json": schema}
        inner["description"] = f"{inner.get('description') or ''}{mark}"
    if schemas and isinstance(tools.get("description"), str):
        tools["description"] += mark
    return bool(schemas)
