"""What a terminal shows: plain lines anywhere, panels and columns where rich is installed and somebody watches."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TextIO

from dragoman.agent import RetryEvent, TextDeltaEvent, ToolCallEvent, ToolResultEvent
from dragoman.chat.answers import LiveAnswer
from dragoman.chat.entries import Entry, Part
from dragoman.chat.events import Activity, AnswerEnded, AnswerStarted, AnyChatEvent, Notice, TurnEnded
from dragoman.chat.payloads import as_text, call_of
from dragoman.terminal import Style, Terminal, terminal_of

WIDTH_OF_A_COLUMN = 38
_RESULT_LINES = 12
_REASONING_LINES = 4
_REFRESH = 0.1  # seconds


def clean(text: str) -> str:
    """Without anything a terminal would obey: what models and tools say is text."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}" for sign in text)


def shortened(text: str, lines: int) -> str:
    found = text.splitlines()
    return text if len(found) <= lines else "\n".join([*found[:lines], f"… {len(found) - lines} more lines"])


class Screen(Protocol):
    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None: ...
    def entries(self, entries: Sequence[Entry]) -> None: ...
    def line(self, text: str, style: Style | None = None) -> None: ...
    def pause(self) -> None:
        """Before somebody is asked something."""
        ...


def screen_of(stream: TextIO) -> Screen:
    terminal = terminal_of(stream)
    if stream.isatty() and terminal.colour:
        try:
            import_module("rich")
        except ImportError:
            return PlainScreen(stream)
        return RichScreen(stream)
    return PlainScreen(stream)


# ── plain ─────────────────────────────────────────────────────────────────────────────────────────────────────


class PlainScreen:
    """A single answer as it comes; several one after the other, each when it is finished."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal: Terminal = terminal_of(stream)
        self._streaming = ""
        self._answers = 0
        """Of this turn."""

    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None:
        del running
        if isinstance(event, AnswerStarted):
            self._answers += 1
        elif isinstance(event, TurnEnded):
            self._answers = 0
        elif isinstance(event, Activity) and self._answers == 1:
            self._activity(event)
        elif isinstance(event, AnswerEnded):
            self._ended(event)
        elif isinstance(event, Notice):
            self.line(event.text, "yellow")

    def _activity(self, event: Activity) -> None:
        inner = event.event
        if isinstance(inner, TextDeltaEvent):
            if not self._streaming:
                self._streaming = event.answer
                self._write(self._terminal.paint(f"{event.model}: ", "cyan"))
            self._write(clean(inner.content))
        elif isinstance(inner, ToolCallEvent):
            self._break()
            self._call({"name": inner.tool, "arguments": inner.args})
        elif isinstance(inner, ToolResultEvent):
            self._break()
            self._result({"name": inner.tool, "content": inner.result, "is_error": inner.is_error})
        elif isinstance(inner, RetryEvent):
            self.line(f"{event.model}: {inner.reason}; again in {inner.delay:.1f} s", "yellow")

    def _ended(self, event: AnswerEnded) -> None:
        if self._answers == 1:
            self._break()
            self._status(event.entries[-1])
        else:
            self.entries(event.entries)
        self._streaming = ""

    def entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if not entry.replaced:
                self._entry(entry)

    def _entry(self, entry: Entry) -> None:
        said = [part for part in entry.content if part.get("type") not in {"tool_call", "tool_result", "reasoning"}]
        if entry.role != "tool" and (said or entry.status != "ok"):
            self._write(self._terminal.paint(f"{entry.role}: ", "cyan" if entry.speaker else "green"))
        for part in entry.content:
            tell = _PLAIN.get(str(part.get("type")), PlainScreen._other)
            tell(self, part)
        self._status(entry)

    def _status(self, entry: Entry) -> None:
        if entry.status != "ok":
            self.line(f"[{entry.role}: {entry.status}] {clean(entry.error)}", "red")

    def _text(self, part: Part) -> None:
        self._write(clean(as_text(part.get("content"))) + "\n")

    def _call(self, part: Part) -> None:
        call = call_of(part)
        arguments = clean(as_text(call.get("arguments") or {}))
        self._write(self._terminal.paint(f"  -> {call.get('name')}", "magenta") + f" {arguments}\n")

    def _result(self, part: Part) -> None:
        text = shortened(clean(as_text(part.get("content"))), _RESULT_LINES).replace("\n", "\n     ")
        failed = bool(part.get("is_error"))
        word = "  !! " if failed else "  <- "
        self._write(self._terminal.paint(f"{word}{part.get('name')} {text}", "red" if failed else "dim") + "\n")

    def _other(self, part: Part) -> None:
        if part.get("type") != "reasoning":
            self._write(f"[{part.get('type')} {part.get('title') or ''}]\n")

    def line(self, text: str, style: Style | None = None) -> None:
        self._break()
        self._write(self._terminal.paint(clean(text), style) + "\n")

    def pause(self) -> None:
        self._break()

    def _break(self) -> None:
        if self._streaming:
            self._write("\n")
            self._streaming = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


_PLAIN: Mapping[str, Callable[[PlainScreen, Part], None]] = {
    "text": PlainScreen._text,  # noqa: SLF001 - its own table
    "tool_call": PlainScreen._call,  # noqa: SLF001
    "tool_result": PlainScreen._result,  # noqa: SLF001
}


# ── rich ──────────────────────────────────────────────────────────────────────────────────────────────────────


class RichScreen:
    """Answers grow in a region of the screen, side by side where it is wide enough, and are printed at their end."""

    def __init__(self, stream: TextIO) -> None:
        self._console: Any = import_module("rich.console").Console(file=stream, highlight=False)
        self._live: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended: dict[str, Sequence[Entry]] = {}
        self._order: list[str] = []

    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None:
        if isinstance(event, Notice):
            self.line(event.text, "yellow")
        elif isinstance(event, AnswerEnded):
            self._ended[event.answer] = event.entries
        elif not isinstance(event, Activity):
            return
        for one in running:
            if one.id not in self._order:
                self._order.append(one.id)
        if not running:
            self._finish()
        elif self._timer is None:
            # Drawn a little later, so that pieces that come together are drawn once, and the last is never left out.
            self._timer = asyncio.get_running_loop().call_later(_REFRESH, self._draw, running)

    def _draw(self, running: Sequence[LiveAnswer]) -> None:
        self._timer = None
        if self._live is None:
            self._live = import_module("rich.live").Live(
                console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop"
            )
            self._live.start()
        now = {one.id: one.so_far() or [Entry(role=one.name)] for one in running}
        self._live.update(self._together({**self._ended, **now}, tail=True), refresh=True)

    def _finish(self) -> None:
        self.pause()
        if self._ended:
            self._console.print(self._together(self._ended))
        self._ended, self._order = {}, []

    def _together(self, answers: Mapping[str, Sequence[Entry]], *, tail: bool = False) -> Any:
        """Columns if each gets enough of the width, else one below the other."""
        names = [name for name in self._order if name in answers] or list(answers)
        panels = [self._panel(answers[name], len(names), tail=tail) for name in names]
        if len(panels) > 1 and self._console.width // len(panels) >= WIDTH_OF_A_COLUMN:
            table = import_module("rich.table").Table.grid(expand=True, padding=(0, 1))
            for _ in panels:
                table.add_column(ratio=1)
            table.add_row(*panels)
            return table
        return import_module("rich.console").Group(*panels)

    def _panel(self, entries: Sequence[Entry], count: int, *, tail: bool) -> Any:
        speaker = next((entry.speaker for entry in entries if entry.speaker), "")
        body = import_module("rich.console").Group(*(one for entry in entries for one in self._pieces(entry)))
        failed = entries[-1].status != "ok"
        wide = len(entries) and self._console.width // max(count, 1) >= WIDTH_OF_A_COLUMN
        height = self._console.height - 4 if wide else max(5, (self._console.height - 4) // max(count, 1))
        inner = _Tail(body, max(3, height - 2)) if tail else body
        return import_module("rich.panel").Panel(
            inner, title=speaker, title_align="left", border_style="red" if failed else "cyan"
        )

    def _pieces(self, entry: Entry) -> list[Any]:
        text = import_module("rich.text").Text
        pieces = [self._piece(part) for part in entry.content]
        if entry.status != "ok":
            pieces.append(text(f"[{entry.status}] {clean(entry.error)}", style="bold red"))
        return [piece for piece in pieces if piece is not None]

    def _piece(self, part: Part) -> Any:
        text = import_module("rich.text").Text
        kind = part.get("type")
        said = clean(as_text(part.get("content") or ""))
        if kind == "text":
            return import_module("rich.markdown").Markdown(said) if said.strip() else None
        if kind == "reasoning":
            return text(shortened(said, _REASONING_LINES), style="dim italic") if said.strip() else None
        panel = import_module("rich.panel").Panel
        if kind == "tool_call":
            call = call_of(part)
            arguments = clean(json.dumps(call.get("arguments") or {}, ensure_ascii=False, indent=1))
            return panel(text(arguments), title=f"-> {call.get('name')}", title_align="left", border_style="magenta")
        if kind == "tool_result":
            colour = "red" if part.get("is_error") else "green"
            shown = text(shortened(said, _RESULT_LINES))
            return panel(shown, title=f"<- {part.get('name')}", title_align="left", border_style=colour)
        return text(f"[{kind} {part.get('title') or ''}]", style="dim")

    def entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.replaced:
                continue
            if entry.role != "tool":
                self._console.rule(entry.role, align="left", style="cyan" if entry.speaker else "green")
            for piece in self._pieces(entry):
                self._console.print(piece)

    def line(self, text: str, style: Style | None = None) -> None:
        self._console.print(clean(text), style=style, markup=False)

    def pause(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.stop()
            self._live = None
            sys.stdout.flush()


class _Tail:
    """The last lines of something that may be longer than its place."""

    def __init__(self, body: Any, height: int) -> None:
        self._body = body
        self._height = height

    def __rich_console__(self, console: Any, options: Any) -> Any:
        lines = console.render_lines(self._body, options, pad=False)
        segments = import_module("rich.segment").Segment
        for line in lines[-self._height :]:
            yield from line
            yield segments.line()
