"""Prints events of an agent: as text, with rich, or as JSON. The answer goes to stdout, the rest to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from dragoman.agent import (
    AnyAgentEvent,
    CompactionCompleteEvent,
    CompactionStartEvent,
    FinalEvent,
    ReasoningEvent,
    RetryEvent,
    StepCompleteEvent,
    StepStartEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
    encode_event,
)
from dragoman.agent.token_totals import add_usage
from dragoman.cli.problems import one_line
from dragoman.ir import Usage
from dragoman.ir.values import compact_text
from dragoman.terminal import harmless, stdout, terminal_of

_FOLDED = 8
"""Lines of a tool's output shown without --expand."""


class Renderer(Protocol):
    def show(self, event: AnyAgentEvent) -> None: ...
    def pause(self) -> Any:
        """A context that stops animations while the user answers a question."""
        ...


@contextmanager
def renderer_of(*, as_json: bool, expand: bool) -> Iterator[Renderer]:
    """JSON if requested; rich if it is installed and the output is a terminal; otherwise plain lines."""
    if as_json:
        yield JsonRenderer(stdout())
        return
    rich = _rich_renderer(expand=expand) if sys.stderr.isatty() else None
    if rich is None:
        yield PlainRenderer(expand=expand)
        return
    try:
        yield rich
    finally:
        rich.close()


class JsonRenderer:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, event: AnyAgentEvent) -> None:
        self._stream.write(encode_event(event).decode() + "\n")
        self._stream.flush()

    @contextmanager
    def pause(self) -> Iterator[None]:
        yield


def fold(text: str, *, expand: bool) -> str:
    text = harmless(text)
    lines = text.splitlines()
    if expand or len(lines) <= _FOLDED:
        return text
    return "\n".join([*lines[:_FOLDED], f"… {len(lines) - _FOLDED} more lines (--expand shows them)"])


def usage_line(usage: Usage, model: str) -> str:
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    return f"{model}: {usage.input:,} tokens in{cached}, {usage.output:,} out"


class _TableRenderer:
    """Shows each event by its handler."""

    _handlers: Mapping[type, Callable[[Any], None]]

    def __init__(self, *, expand: bool) -> None:
        self._expand = expand
        self._usage: dict[str, Usage] = {}

    def show(self, event: AnyAgentEvent) -> None:
        handle = self._handlers.get(type(event))
        if handle is not None:
            handle(event)

    def _count(self, event: UsageEvent) -> None:
        self._usage[event.model] = add_usage(self._usage.get(event.model, Usage()), event.usage)


class PlainRenderer(_TableRenderer):
    """One line per event."""

    def __init__(self, *, expand: bool) -> None:
        super().__init__(expand=expand)
        self._screen = terminal_of(sys.stderr)
        self._handlers = {
            TextEvent: lambda event: self._line(harmless(event.content)),
            ReasoningEvent: lambda event: self._line(harmless(event.content), dim=True),
            ToolCallEvent: self._call,
            ToolResultEvent: self._result,
            RetryEvent: lambda event: self._line(one_line(f"{event.reason}; again in {event.delay:.1f} s")),
            CompactionStartEvent: lambda _: self._line("summing up the conversation", dim=True),
            UsageEvent: self._count,
            FinalEvent: self._final,
        }

    @contextmanager
    def pause(self) -> Iterator[None]:
        yield

    def _line(self, text: str, *, dim: bool = False) -> None:
        print(self._screen.paint(text, "dim" if dim else None), file=sys.stderr, flush=True)

    def _call(self, event: ToolCallEvent) -> None:
        self._line(f"{self._screen.paint(f'-> {harmless(event.tool)}', 'cyan')} {one_line(compact_text(event.args))}")

    def _result(self, event: ToolResultEvent) -> None:
        text = fold(event.result, expand=self._expand).replace("\n", "\n   ")
        self._line(self._screen.paint(f"   {text}", "red" if event.is_error else "dim"))

    def _final(self, event: FinalEvent) -> None:
        for model, usage in self._usage.items():
            self._line(usage_line(usage, model), dim=True)
        stream = stdout()
        print(harmless(event.content) if stream.isatty() else event.content, file=stream, flush=True)


def _rich_renderer(*, expand: bool) -> RichRenderer | None:
    try:
        import rich  # noqa: F401 - an extra
    except ImportError:
        return None
    return RichRenderer(expand=expand)


class RichRenderer(_TableRenderer):
    """A spinner while working, a panel per call, the answer as Markdown."""

    def __init__(self, *, expand: bool) -> None:
        from rich.console import Console

        super().__init__(expand=expand)
        self._console = Console(stderr=True)
        self._answer = Console()
        self._status = self._console.status("thinking")
        self._status.start()
        self._calls: dict[str, ToolCallEvent] = {}
        self._results: dict[str, ToolResultEvent] = {}
        self._handlers = {
            TextEvent: lambda event: self._console.print(harmless(event.content), markup=False, highlight=False),
            ReasoningEvent: lambda event: self._console.print(
                harmless(event.content), style="dim italic", markup=False, highlight=False
            ),
            StepStartEvent: lambda event: self._status.update(_escape_markup(f"running {harmless(event.title)}")),
            ToolCallEvent: self._call,
            ToolResultEvent: lambda event: self._results.update({event.tool_call_id: event}),
            StepCompleteEvent: self._panel,
            RetryEvent: lambda event: self._console.print(
                one_line(f"{event.reason}; again in {event.delay:.1f} s"), style="yellow", markup=False
            ),
            CompactionStartEvent: lambda _: self._status.update("summing up the conversation"),
            CompactionCompleteEvent: lambda _: self._status.update("thinking"),
            UsageEvent: self._count,
            FinalEvent: self._final,
        }

    @contextmanager
    def pause(self) -> Iterator[None]:
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()

    def close(self) -> None:
        self._status.stop()

    def _call(self, event: ToolCallEvent) -> None:
        self._calls[event.tool_call_id] = event

    def _panel(self, event: StepCompleteEvent) -> None:
        from rich.panel import Panel
        from rich.text import Text

        call, result = self._calls.pop(event.step_id, None), self._results.pop(event.step_id, None)
        if call is None:
            return
        body = Text(one_line(compact_text(call.args)), style="cyan")
        if result is not None and result.result:
            body.append("\n" + fold(result.result, expand=self._expand), style="red" if result.is_error else "default")
        border = "red" if event.status == "error" else "green"
        title = Text(harmless(call.display_name or call.tool))
        self._console.print(Panel(body, title=title, subtitle=f"{event.duration_ms:.0f} ms", border_style=border))
        self._status.update("thinking")

    def _final(self, event: FinalEvent) -> None:
        from rich.markdown import Markdown

        self._status.stop()
        for model, usage in self._usage.items():
            self._console.print(usage_line(usage, model), style="dim", markup=False, highlight=False)
        if self._answer.is_terminal:
            self._answer.print(Markdown(harmless(event.content)))
        else:
            print(event.content, file=stdout(), flush=True)


def _escape_markup(text: str) -> str:
    """Escapes rich markup."""
    from rich.markup import escape

    return escape(text)
