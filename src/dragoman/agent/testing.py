"""For tests of agents: whole runs recorded and replayed through the wire formats, and assertions about calls.

    driver = record(connect("openai/gpt-5.1"), "run.jsonl")     # once, against the real thing
    driver = replay("openai/gpt-5.1", "run.jsonl")              # afterwards, without a network

Scripted and function models are `ScriptedDriver` (`dragoman.drivers`): answers from a list, or from a function.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import msgspec
from msgspec import Struct, structs

from dragoman.agent.agent import Agent
from dragoman.agent.events import ToolCallEvent
from dragoman.drivers.connect import Options, connect
from dragoman.drivers.remote import RemoteDriver
from dragoman.drivers.replay import Replayed, ReplayedResponse
from dragoman.drivers.secret import hide_url
from dragoman.drivers.transport import HttpRequest, HttpResponse, Timeouts, Transport
from dragoman.errors import DragomanError
from dragoman.ir import Message
from dragoman.private_files import create_private_file

_KEPT = ("content-type", "retry-after", "x-request-id", "request-id", "anthropic-request-id", "x-amzn-requestid")
"""Response headers that are recorded; request headers, and with them all keys, are not."""


class ReplayMismatch(DragomanError):
    """The run makes a request that was not recorded: record it again, or check what has changed."""


class Exchanged(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a recording."""

    method: str
    url: str
    """Without secrets, such as a key."""
    request: str
    """The body as text; base64 behind `base64:` where it is not UTF-8."""
    status: int
    headers: Mapping[str, str] = {}
    chunks: Sequence[str] = ()


# ── recording ─────────────────────────────────────────────────────────────────────────────────────────────────


def record(driver: RemoteDriver, path: str | Path) -> RemoteDriver:
    """Return the same driver, which adds every request and response to the file, without keys and request headers."""
    file = Path(path)
    create_private_file(file)
    channel = structs.replace(driver.channel, transport=_Recorder(driver.channel.transport, file))
    return RemoteDriver(channel, driver.model, driver.defaults)


class _Recorder:
    def __init__(self, transport: Transport, file: Path) -> None:
        self._transport = transport
        self._file = file

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> HttpResponse:
        response = await self._transport.send(request, timeouts=timeouts)
        return _RecordedResponse(response, request, self._file)

    async def close(self) -> None:
        await self._transport.close()


class _RecordedResponse:
    def __init__(self, response: HttpResponse, request: HttpRequest, file: Path) -> None:
        self._response = response
        self._request = request
        self._file = file
        self._chunks: list[bytes] = []
        self._written = False

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunk(self) -> bytes:
        data = await self._response.chunk()
        if data:
            self._chunks.append(data)
        else:
            self._write()
        return data

    async def drain(self) -> None:
        await self._response.drain()
        self._write()

    def close(self) -> None:
        self._response.close()
        self._write()

    def _write(self) -> None:
        if self._written:
            return
        self._written = True
        line = Exchanged(
            method=self._request.method,
            url=hide_url(self._request.url),
            request=_text(self._request.body),
            status=self._response.status,
            headers={name: value for name, value in self._response.headers.items() if name.lower() in _KEPT},
            chunks=[_text(chunk) for chunk in self._chunks],
        )
        with self._file.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(data).decode()
    return text if not text.startswith("base64:") else "base64:" + base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.removeprefix("base64:")) if text.startswith("base64:") else text.encode()


# ── replaying ─────────────────────────────────────────────────────────────────────────────────────────────────


def replay(model: str, path: str | Path, **options: Unpack[Options]) -> RemoteDriver:
    """Return a driver that answers from a recording, in order. Other requests raise `ReplayMismatch`."""
    lines = [msgspec.json.decode(line, type=Exchanged) for line in Path(path).read_bytes().splitlines() if line]
    given: Options = {"environment": {}, **options, "transport": _Replayer(lines, str(path))}
    if "credentials" not in given:
        given.setdefault("api_key", "replayed")
    return connect(model, **given)


class _Replayer:
    def __init__(self, lines: Sequence[Exchanged], name: str) -> None:
        self._lines = lines
        self._name = name
        self._next = 0

    async def send(self, request: HttpRequest, *, timeouts: Timeouts) -> ReplayedResponse:  # noqa: ARG002
        if self._next >= len(self._lines):
            raise ReplayMismatch(f"{self._name} has {len(self._lines)} requests, and the run makes another one")
        line = self._lines[self._next]
        self._next += 1
        problem = _difference(line, request)
        if problem:
            raise ReplayMismatch(f"{self._name}, request {self._next}: {problem}")
        chunks = [_bytes(chunk) for chunk in line.chunks]
        return ReplayedResponse(Replayed(status=line.status, headers=line.headers, chunks=chunks))

    async def close(self) -> None:
        return


def _difference(line: Exchanged, request: HttpRequest) -> str:
    recorded = _bytes(line.request)
    if recorded == request.body:
        return ""
    try:
        before, now = msgspec.json.decode(recorded), msgspec.json.decode(request.body)
    except msgspec.DecodeError:
        return f"the body differs ({_digest(recorded)}, now {_digest(request.body)})"
    return _where(before, now, "$")


def _where(before: Any, now: Any, path: str) -> str:
    """Return the first place where two JSON values differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            if key not in before or key not in now:
                return f"{path}.{key} is {'new' if key not in before else 'missing'}"
            found = _where(before[key], now[key], f"{path}.{key}")
            if found:
                return found
        return ""
    if isinstance(before, list) and isinstance(now, list):
        for place, (one, other) in enumerate(zip(before, now, strict=False)):
            found = _where(one, other, f"{path}[{place}]")
            if found:
                return found
        return "" if len(before) == len(now) else f"{path} has {len(now)} elements, recorded were {len(before)}"
    return "" if before == now else f"{path} is {now!r:.80}, recorded was {before!r:.80}"


def _digest(data: bytes) -> str:
    return hashlib.blake2s(data, digest_size=4).hexdigest()


# ── assertions ────────────────────────────────────────────────────────────────────────────────────────────────

Expected: TypeAlias = str | tuple[str, Mapping[str, Any]]
"""The name of a tool, or its name and its arguments."""


def assert_calls(source: Agent[Any] | Iterable[Message | Any], *expected: Expected, in_order: bool = True) -> None:
    """Raise `AssertionError` unless exactly these tools were called, by an agent, in messages or in events."""
    found = list(_calls(source))
    wanted = [(one, None) if isinstance(one, str) else (one[0], dict(one[1])) for one in expected]
    left = list(found)
    for place, (name, arguments) in enumerate(wanted):
        candidates = left[:1] if in_order else left
        match = next((one for one in candidates if one[0] == name and arguments in (None, one[1])), None)
        if match is None:
            raise AssertionError(
                f"call {place + 1}: expected {_format_call(name, arguments)}; called were\n  "
                + ("\n  ".join(_format_call(*one) for one in found) or "none")
            )
        left.remove(match)
    if left:
        raise AssertionError("not expected:\n  " + "\n  ".join(_format_call(*one) for one in left))


def _calls(source: Agent[Any] | Iterable[Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for one in source.history if isinstance(source, Agent) else source:
        if isinstance(one, Message):
            yield from ((call.name, dict(call.arguments)) for call in one.tool_calls)
        elif isinstance(one, ToolCallEvent):
            yield one.tool, one.args


def _format_call(name: str, arguments: Mapping[str, Any] | None) -> str:
    return name if arguments is None else f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
