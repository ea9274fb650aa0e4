"""The conversation as plain lines: for pipes, files and simple terminals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TextIO

from dragoman.agent import RetryEvent, TextDeltaEvent, ToolCallEvent, ToolResultEvent
from dragoman.chat.answers import LiveAnswer
from dragoman.chat.entries import Entry, Part
from dragoman.chat.events import Activity, AnswerEnded, AnswerStarted, AnyChatEvent, Notice, TurnEnded
from dragoman.chat.payloads import as_text, call_of
from dragoman.chat.terminal.screens import GaugeOf, other_part, shorten
from dragoman.terminal import Style, Terminal, harmless, terminal_of

_RESULT_LINES = 12
_GAP = 2


class PlainScreen:
    """Streams a single answer; prints several answers one after the other, each when it is finished."""

    def __init__(self, stream: TextIO) -> None:
        self.gauge: GaugeOf = lambda _: ""
        self.simulated: frozenset[str] = frozenset()
        self._stream = stream
        self._terminal: Terminal = terminal_of(stream)
        self._streaming = False
        self._answers = 0
        """Number of answers in this turn."""
        self._waiting: list[AnyChatEvent] | None = None

    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None:
        del running
        if self._waiting is not None:
            self._waiting.append(event)
        elif isinstance(event, AnswerStarted):
            self._answers += 1
        elif isinstance(event, TurnEnded):
            self._answers = 0
        elif isinstance(event, Activity):
            self._activity(event)
        elif isinstance(event, AnswerEnded):
            self._end_answer(event)
        elif isinstance(event, Notice):
            self.line(event.text, "yellow")

    def _activity(self, event: Activity) -> None:
        inner = event.event
        if isinstance(inner, RetryEvent):
            reason = inner.reason.removeprefix(f"{event.model}: ")  # a model is often named after its provider
            self.line(f"{event.model}: {reason}; again in {inner.delay:.1f} s", "yellow")
        elif self._answers > 1:
            return
        elif isinstance(inner, TextDeltaEvent):
            if not self._streaming:
                self._streaming = True
                self._write(self._prefix(event.model))
            self._write(harmless(inner.content))
        elif isinstance(inner, ToolCallEvent):
            self._call({"name": inner.tool, "arguments": inner.args}, event.model)
        elif isinstance(inner, ToolResultEvent):
            self._result({"name": inner.tool, "content": inner.result, "is_error": inner.is_error}, event.model)

    def _end_answer(self, event: AnswerEnded) -> None:
        self._break()
        if self._answers == 1:
            self._status(event.entries[-1])
        else:
            self.entries(event.entries)
        if self._stream.isatty():
            self.line(f"({event.model}: {self.gauge(event.model)})", "dim")

    def entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if not entry.replaced:
                for part in entry.content:
                    render = _PARTS.get(str(part.get("type")), PlainScreen._other)
                    render(self, part, entry.speaker or entry.role)
                self._status(entry)

    def _status(self, entry: Entry) -> None:
        if entry.status != "ok":
            self.line(f"[{entry.role}: {entry.status}] {entry.error}", "red")

    def _text(self, part: Part, speaker: str) -> None:
        text = harmless(as_text(part.get("content"))).strip("\n")
        if text.strip():
            self._write(self._prefix(speaker) + f"{text}\n")

    def _prefix(self, speaker: str) -> str:
        """The speaker's name as a prefix."""
        badge = self._terminal.paint(" (simulated)", "yellow") if speaker in self.simulated else ""
        return self._terminal.paint(speaker, "cyan") + badge + self._terminal.paint(": ", "cyan")

    def _call(self, part: Part, speaker: str) -> None:
        self._break()
        call = call_of(part)
        arguments = harmless(as_text(call.get("arguments") or {}))
        self._write(self._terminal.paint(f"{speaker} -> {call.get('name')}", "magenta") + f" {arguments}\n")

    def _result(self, part: Part, speaker: str) -> None:
        self._break()
        text = shorten(harmless(as_text(part.get("content"))), _RESULT_LINES).replace("\n", "\n     ")
        failed = bool(part.get("is_error"))
        word = "!!" if failed else "<-"
        line = f"{speaker} {word} {part.get('name')} {text}"
        self._write(self._terminal.paint(line, "red" if failed else "dim") + "\n")

    def _other(self, part: Part, speaker: str) -> None:
        if part.get("type") != "reasoning":
            self._write(f"{speaker}: {other_part(part)}\n")

    def line(self, text: str, style: Style | None = None) -> None:
        self._break()
        self._write(self._terminal.paint(harmless(text), style) + "\n")

    def rows(self, rows: Sequence[tuple[str, str]]) -> None:
        width = max((len(left) for left, _ in rows), default=0) + _GAP
        for left, right in rows:
            lines = wrap(right, max(20, self._terminal.width - width)) or [""]
            self.line(f"{left:<{width}}" + f"\n{'':<{width}}".join(lines))

    def pause(self) -> None:
        self._break()
        self._waiting = self._waiting or []

    def resume(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for event in waiting:
            self.show(event, ())

    def redraw(self) -> None:
        """Nothing to do: lines are never redrawn."""

    def _break(self) -> None:
        if self._streaming:
            self._write("\n")
            self._streaming = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


_PARTS: Mapping[str, Callable[[PlainScreen, Part, str], None]] = {
    "text": PlainScreen._text,  # noqa: SLF001 - its own table
    "tool_call": PlainScreen._call,  # noqa: SLF001
    "tool_result": PlainScreen._result,  # noqa: SLF001
}
