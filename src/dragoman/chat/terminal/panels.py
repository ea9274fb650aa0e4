"""The conversation in panels (extra `chat`: rich): Markdown as it grows, tools, several models side by side."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.panel import Panel
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from dragoman.agent import RetryEvent
from dragoman.chat.answers import LiveAnswer
from dragoman.chat.entries import Entry, Part
from dragoman.chat.events import Activity, AnswerEnded, AnswerStarted, AnyChatEvent, Notice
from dragoman.chat.payloads import as_text, call_of
from dragoman.chat.terminal.screens import GaugeOf, other_part, shorten
from dragoman.terminal import Style, harmless

WIDTH_OF_A_COLUMN = 36
_RESULT_LINES = 12
_REASONING_LINES = 4
_ONE_LINE = 60
_RECENT = 6_000
"""Characters of a growing text that are drawn: more than a screen shows, few enough to parse ten times a second."""
_REFRESH = 0.1  # seconds
_BUSY_SHARE = 4
"""Drawing takes at most a quarter of the time, because it blocks reading."""
_FENCE = "```"


class PanelScreen:
    """Answers grow in a live region of the screen and are printed in full when they end."""

    def __init__(self, stream: TextIO) -> None:
        self.gauge: GaugeOf = lambda _: ""
        self.simulated: frozenset[str] = frozenset()
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._width = 0
        self._timer: asyncio.TimerHandle | None = None
        self._pace = _REFRESH
        self._paused = False
        self._running: Sequence[LiveAnswer] = ()
        self._ended: dict[str, Sequence[Entry]] = {}
        self._order: list[str] = []
        self._gauges: dict[str, str] = {}
        self._retries: dict[str, str] = {}

    def show(self, event: AnyChatEvent, running: Sequence[LiveAnswer]) -> None:
        if isinstance(event, Notice):
            self.line(event.text, "yellow")
            return
        if isinstance(event, AnswerStarted):
            self._order.append(event.answer)
        elif isinstance(event, AnswerEnded):
            self._ended[event.answer] = event.entries
            self._retries.pop(event.answer, None)  # no more retries
            self._gauges[event.answer] = self.gauge(event.model)
        elif isinstance(event, Activity):
            self._note_retry(event)
        else:
            return
        self._running = running
        if not self._paused:
            self._schedule_drawing()

    def _note_retry(self, event: Activity) -> None:
        self._retries.pop(event.answer, None)
        if isinstance(event.event, RetryEvent):
            self._retries[event.answer] = f"{event.event.reason}; again in {event.event.delay:.1f} s"

    def _schedule_drawing(self) -> None:
        """Schedules one drawing for all pieces that arrive within the refresh time."""
        if not self._running:
            self._finish()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pace, self._draw)

    def _draw(self) -> None:
        self._timer = None
        began = time.monotonic()
        live = self._live_region()
        now = {one.id: one.so_far() or [Entry(role=one.name)] for one in self._running}
        live.update(self._arrange({**self._ended, **now}, growing=True), refresh=True)
        self._pace = max(_REFRESH, _BUSY_SHARE * (time.monotonic() - began))

    def _live_region(self) -> Live:
        """The live region.

        If the width has changed, the position of its lines is unknown: the screen is scrolled up and a new region
        begins.
        """
        if self._live is not None and self._console.width != self._width:
            self._stop_live()
            self._console.file.write(f"\x1b[{self._console.height};1H" + "\n" * self._console.height + "\x1b[H")
        if self._live is None:
            self._width = self._console.width
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                vertical_overflow="crop",
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self._live

    def _finish(self) -> None:
        self._stop_live()
        if self._ended:
            self._console.print(self._arrange(self._ended))
        self._order.clear()
        for memory in (self._ended, self._gauges, self._retries):
            memory.clear()

    # ── panels ────────────────────────────────────────────────────────────────────────────────────────────────

    def _arrange(self, answers: Mapping[str, Sequence[Entry]], *, growing: bool = False) -> RenderableType:
        """Side by side if the width suffices, otherwise stacked."""
        names = [name for name in self._order if name in answers]
        wide = len(names) > 1 and self._console.width // len(names) >= WIDTH_OF_A_COLUMN
        height = self._console.height - 4
        height = (height if wide or not names else max(5, height // len(names))) - 2
        panels = [self._panel(name, answers[name], height if growing else None) for name in names]
        if not wide:
            return Group(*panels)
        table = Table.grid(expand=True, padding=(0, 1))
        for _ in panels:
            table.add_column(ratio=1, overflow="fold")
        table.add_row(*panels)
        return table

    def _panel(self, answer: str, entries: Sequence[Entry], height: int | None) -> Panel:
        """While the answer grows, only its last `height` lines are shown."""
        speaker = next((entry.speaker for entry in entries if entry.speaker), "")
        pieces = [piece for entry in entries for piece in _pieces(entry, growing=height is not None)]
        if answer in self._retries:
            pieces.append(Text(harmless(self._retries[answer]), style="yellow"))
        body = Group(*pieces) if pieces else Text("…", style="dim")
        ended = answer in self._ended
        failed = entries[-1].status != "ok"
        return Panel(
            body if height is None else _Tail(body, max(3, height)),
            title=self._title(speaker, ended=ended),
            title_align="left",
            subtitle=Text(self._gauges[answer], style="dim") if ended else None,
            subtitle_align="right",
            border_style="red" if failed else "cyan" if ended else "blue",
        )

    def _title(self, speaker: str, *, ended: bool) -> Text:
        title = Text(speaker if ended else f"{speaker} …", style="bold")
        return title.append(" simulated", style="yellow not bold") if speaker in self.simulated else title

    def entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.replaced:
                continue
            if entry.role != "tool":
                style = "cyan" if entry.speaker else "green"
                self._console.print(Rule(Text(entry.role), align="left", style=style))
            for piece in _pieces(entry):
                self._console.print(piece)

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────

    def line(self, text: str, style: Style | None = None) -> None:
        self._console.print(Text(harmless(text), style=style or ""))

    def rows(self, rows: Sequence[tuple[str, str]]) -> None:
        table = Table.grid(padding=(0, 2))
        longest = max((len(left) for left, _ in rows), default=0)
        table.add_column(no_wrap=longest < self._console.width // 2, overflow="fold")
        table.add_column(overflow="fold")
        for left, right in rows:
            table.add_row(Text(harmless(left)), Text(harmless(right)))
        self._console.print(table)

    def pause(self) -> None:
        self._paused = True
        self._stop_live()

    def resume(self) -> None:
        self._paused = False
        if self._running or self._ended:
            self._schedule_drawing()

    def redraw(self) -> None:
        if self._live is not None and not self._paused:
            self._schedule_drawing()

    def _stop_live(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._console.file.flush()


# ── pieces of an answer ───────────────────────────────────────────────────────────────────────────────────────


def _pieces(entry: Entry, *, growing: bool = False) -> Iterator[RenderableType]:
    """The parts of an entry, in order."""
    for part in entry.content:
        draw = _PARTS.get(str(part.get("type")), _other)
        yield from draw(part, growing)
    if entry.status != "ok":
        yield Text(f"[{entry.status}] {harmless(entry.error)}", style="bold red")


def _text(part: Part, growing: bool) -> Iterator[RenderableType]:  # noqa: FBT001 - one shape for the table
    content = harmless(as_text(part.get("content") or ""))
    if content.strip():
        yield Markdown(recent(content) if growing else content)


def _reasoning(part: Part, growing: bool) -> Iterator[RenderableType]:  # noqa: FBT001
    """Shows the end of growing reasoning, and the beginning of finished one."""
    content = harmless(as_text(part.get("content") or "")).strip()
    if content:
        visible = content[-_RECENT:] if growing else shorten(content, _REASONING_LINES)
        yield Text(visible, style="dim italic")


def _call(part: Part, _: bool) -> Iterator[RenderableType]:  # noqa: FBT001
    call = call_of(part)
    arguments = call.get("arguments") or {}
    text = as_text(arguments)
    if len(text) > _ONE_LINE and not isinstance(arguments, str):
        text = json.dumps(arguments, ensure_ascii=False, indent=1, default=str)
    yield _tool(f"-> {call.get('name')}", text, "magenta")


def _result(part: Part, _: bool) -> Iterator[RenderableType]:  # noqa: FBT001
    failed = part.get("is_error")
    text = shorten(as_text(part.get("content") or ""), _RESULT_LINES)
    yield _tool(f"{'!!' if failed else '<-'} {part.get('name')}", text, "red" if failed else "green")


def _tool(title: str, body: str, colour: str) -> Panel:
    return Panel(Text(harmless(body)), title=Text(harmless(title)), title_align="left", border_style=colour)


def _other(part: Part, _: bool) -> Iterator[RenderableType]:  # noqa: FBT001
    yield Text(harmless(other_part(part)), style="dim")


_PARTS: Mapping[str, Callable[[Part, bool], Iterator[RenderableType]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool_call": _call,
    "tool_result": _result,
}


def recent(text: str) -> str:
    """The end of a long text, from the start of a paragraph; reopens a code block if it starts inside one."""
    if len(text) <= _RECENT:
        return text
    place = text.find("\n\n", len(text) - _RECENT)
    place = len(text) - _RECENT if place < 0 else place
    open_fence = text.count(f"\n{_FENCE}", 0, place) + text.startswith(_FENCE)
    return (f"{_FENCE}\n" if open_fence % 2 else "") + text[place:].lstrip("\n")


class _Tail:
    """The last lines of a renderable that may be too tall."""

    def __init__(self, body: RenderableType, height: int) -> None:
        self._body = body
        self._height = height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._body, options, pad=False)
        for line in lines[-self._height :]:
            yield from line
            yield Segment.line()
