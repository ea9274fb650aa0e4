"""The log of the gateway: one line per request, as JSON for programs or as text for a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TextIO, TypeAlias

import msgspec

from dragoman.gateway.request_records import Record
from dragoman.private_files import create_private_file
from dragoman.terminal import Style, terminal_of, visible

LogStyle: TypeAlias = Literal["auto", "json", "text", "off"]
_encode = msgspec.json.Encoder().encode
_LOGGED_LOSSES = 20
_CHECK_SECONDS = 1.0
_CLIENT_ERROR, _SERVER_ERROR = 400, 500


class Stream(Protocol):
    """The destination of log lines."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class LogFile:
    """A file that another program may move or delete: a new file with the same name is then started."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._checked = 0.0
        self._file = self._open()

    def write(self, text: str, /) -> None:
        now = time.monotonic()
        if now - self._checked >= _CHECK_SECONDS:
            self._checked = now
            if self._was_moved():
                self.reopen()
        self._file.write(text)

    def flush(self) -> None:
        self._file.flush()

    def reopen(self) -> None:
        older, self._file = self._file, self._open()
        older.close()

    def close(self) -> None:
        self._file.close()

    def _open(self) -> TextIO:
        create_private_file(self._path)
        return self._path.open("a", encoding="utf-8")

    def _was_moved(self) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return True


class Log:
    """Writes lines of JSON. If that fails, requests are served anyway, and lost lines are counted."""

    silent = False

    def __init__(self, stream: Stream | None = None) -> None:
        self._stream: Stream = sys.stderr if stream is None else stream
        self.lost = 0
        """Lines that could not be written."""
        self._reported = 0

    def request(self, record: Record) -> None:
        if self.silent:
            return
        usage = record.usage
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": "request",
            "id": record.id,
            "client": record.client,
            "operation": record.operation,
            "model": record.model,
            "route": record.route,
            "upstream": record.upstream,
            "target": record.target,
            "stream": record.stream,
            "status": record.status,
            "attempts": record.attempts,
            "seconds": round(record.seconds, 4),
            "first_byte": None if record.first_byte is None else round(record.first_byte, 4),
            "key": record.key or None,
            "tokens": None if usage is None else {"input": usage.input, "output": usage.output, "cached": usage.cached},
            "cost": record.cost,
            "cache": record.cache or None,
            "mcp_calls": record.mcp_calls or None,
            "losses": [str(loss) for loss in record.losses[:_LOGGED_LOSSES]],
            "failure": record.failure or None,
            "error": record.error or None,
        }
        self.write({name: value for name, value in line.items() if value not in (None, [], "")})

    def event(self, event: str, **fields: object) -> None:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.write({"time": moment, "event": event, **fields})

    def write(self, line: Mapping[str, object]) -> None:
        try:
            if self.lost > self._reported:
                self._write({"event": "log_lines_lost", "lost": self.lost - self._reported})
                self._reported = self.lost
            self._write(line)
        except (OSError, ValueError):
            self.lost += 1

    def reopen(self) -> None:
        """Open the log file again, after a log rotation has moved it."""
        if isinstance(self._stream, LogFile):
            try:
                self._stream.reopen()
            except OSError:
                self.lost += 1

    def close(self) -> None:
        if isinstance(self._stream, LogFile):
            self._stream.close()

    def _write(self, line: Mapping[str, object]) -> None:
        self._stream.write(self.render(line) + "\n")
        self._stream.flush()

    def render(self, line: Mapping[str, object]) -> str:
        return _encode(line).decode()


class TextLog(Log):
    """Writes one short, aligned line per request, with its error, in colour if the terminal supports it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        shown = sys.stderr if stream is None else stream
        super().__init__(shown)
        self._terminal = terminal_of(shown)

    def render(self, line: Mapping[str, object]) -> str:
        moment = datetime.now().astimezone().strftime("%H:%M:%S")
        words = self._request(line) if line.get("event") == "request" else self._event(line)
        return f"{self._terminal.paint(moment, 'dim')} {words}"

    def _request(self, line: Mapping[str, object]) -> str:
        status = int(str(line.get("status", 0)))
        style: Style = "green" if status < _CLIENT_ERROR else "yellow" if status < _SERVER_ERROR else "red"
        model, target = str(line.get("model", "")), _target(line)
        parts = [
            f"{line.get('client', '')}{' ' + model if model else ''}{' -> ' + target if target else ''}",
            f"{line.get('seconds', 0):.2f} s",
            *_accounts(line),
        ]
        # Clients and upstreams wrote parts of the line: escape everything but our own colour sequences.
        words = [self._terminal.paint(f"{status:>3}", style), *map(visible, parts)]
        if line.get("error"):
            words.append(self._terminal.paint(visible(str(line["error"])), style))
        return "  ".join(words)

    def _event(self, line: Mapping[str, object]) -> str:
        more = ", ".join(f"{name} {value}" for name, value in line.items() if name not in {"event", "time"} and value)
        return visible(f"{str(line.get('event', '')).replace('_', ' ')}{': ' + more if more else ''}")


def _target(line: Mapping[str, object]) -> str:
    """Return the upstream and its name of the model, unless the client asked for exactly that."""
    upstream, target = line.get("upstream"), line.get("target")
    found = f"{upstream}/{target}" if upstream and target else str(upstream or "")
    return "" if found == line.get("model") else found


def _accounts(line: Mapping[str, object]) -> list[str]:
    parts: list[str] = []
    tokens, losses, cost = line.get("tokens"), line.get("losses"), line.get("cost")
    if isinstance(tokens, dict):
        parts.append(f"{tokens['input']} + {tokens['output']} tokens")
    if isinstance(cost, float):
        parts.append(f"cost {cost:.4f}")
    if isinstance(losses, list):
        count = f"{len(losses)}+" if len(losses) == _LOGGED_LOSSES else str(len(losses))
        parts.append(f"{count} {'loss' if count == '1' else 'losses'}")
    if line.get("cache") == "hit":
        parts.append("from the cache")
    if line.get("key"):
        parts.append(f"key {line['key']}")
    if line.get("attempts") not in (None, 0, 1):
        parts.append(f"{line['attempts']} attempts")
    return parts


class Silence(Log):
    silent = True

    def write(self, line: Mapping[str, object]) -> None:
        """Discard the line: the log is off."""


def open_log(style: LogStyle, file: str = "") -> Log:
    """Open the log. Files and pipes get JSON, a terminal gets text. Raises `OSError` if the file cannot be opened."""
    if style == "off":
        return Silence()
    if file:
        return Log(LogFile(Path(file)))
    if style == "text" or (style == "auto" and sys.stderr.isatty()):
        return TextLog()
    return Log()
