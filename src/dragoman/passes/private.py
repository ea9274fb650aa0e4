"""What a family said that nobody else understands stays behind, and is reported (law 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.ir import Audio, Completion, Message, Metadata, Opaque, ProviderTool, Request, Text, ToolCall, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.notes import WITHIN, inner_extra
from dragoman.ir.values import Value
from dragoman.losses import LossLog, Severity
from dragoman.profile import Profile

_SAYS_NOTHING = frozenset({b"null", b"[]", b"{}"})

BOOKKEEPING: Mapping[type[Value], frozenset[str]] = {
    Completion: frozenset(
        {
            "billing",
            "metrics",
            "performanceConfig",
            "prompt",  # the request's own, told back
            "provider",
            "serviceTier",
            "service_tier",
            "system_fingerprint",
            "tool_usage",
            "usage_breakdown",
            "x_groq",
        }
    ),
    # What a candidate says of itself: how likely it was, and its finish reason once more in other words.
    Message: frozenset({"avgLogprobs", "finishMessage", "native_finish_reason", "score"}),
    ToolCall: frozenset({"index"}),
    Audio: frozenset({"expires_at", "id"}),
}
"""Keys of an answer that tell how it was made, and nothing of what it says. One list for all: servers that speak
another's format copy its names, and no name here means two things."""

_COUNTS = "usage."
"""Whatever a provider says beside its token counts is bookkeeping."""


def report_private_settings(request: Request, profile: Profile, log: LossLog) -> Request:
    """Reports wire keys of the request, its tools and its settings that only their own family understands."""
    reporter = _Reporter(profile.family, log, {})
    if request.metadata is not None:
        reporter.node(request, request.metadata)
    for tool in request.tools:
        if type(tool) is not ProviderTool and tool.metadata is not None:  # type: ignore[union-attr]
            reporter.node(tool, tool.metadata)  # type: ignore[union-attr]
    for name in ("tool_choice", "reasoning", "output"):
        settings = getattr(request, name)
        if settings is not None and settings.metadata is not None:
            reporter.node(request, settings.metadata, f"{name}.")
    return request


def report_private_content(request: Request, profile: Profile, log: LossLog) -> Request:
    """The same for messages and their parts."""
    _Reporter(profile.family, log, {}).messages(request.messages)
    return request


def report_private_answer(completion: Completion, profile: Profile, log: LossLog) -> None:
    """The same for an answer. Keys that tell how it was made, and nothing of what it says, are only noted."""
    reporter = _Reporter(profile.family, log, BOOKKEEPING)
    finish, usage = completion.finish, completion.usage
    if completion.metadata:
        reporter.node(completion, completion.metadata)
    reporter.messages(completion.messages)
    if finish is not None and finish.metadata is not None:
        reporter.node(completion, finish.metadata, "finish.")
    if usage is not None and usage.metadata is not None:
        reporter.node(completion, usage.metadata, _COUNTS)


class _Reporter:
    """Reports what families other than one said."""

    __slots__ = ("_bookkeeping", "_family", "_log")

    def __init__(self, family: str, log: LossLog, bookkeeping: Mapping[type[Value], frozenset[str]]) -> None:
        self._family = family
        self._log = log
        self._bookkeeping = bookkeeping

    def messages(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if message.metadata is not None:
                self.node(message, message.metadata)
            content = content_held(message)
            if type(content) is tuple:
                for part in content:
                    if type(part) is not Opaque:
                        self._part(part)

    def _part(self, part: Any) -> None:
        if part.metadata is not None:
            self.node(part, part.metadata)
        if type(part) is Text:
            for citation in part.citations:
                if citation.metadata is not None:
                    self.node(part, citation.metadata, "citations.")
        elif type(part) is ToolResult:
            for inner in part.parts:
                if type(inner) is not Opaque:
                    self._part(inner)

    def node(self, node: Value, metadata: Metadata, within: str = "") -> None:
        for family, entries in metadata.items():
            if family == self._family:
                continue
            for key, held in entries.items():
                if key[:1] != "~":
                    self._key(node, within, key, bytes(held), family)
                elif key.startswith(WITHIN):
                    name = key.removeprefix(WITHIN)
                    for inner, value in (inner_extra(entries, name) or {}).items():
                        if inner[:1] != "~":
                            self._key(node, f"{within}{name}.", inner, bytes(value), family)

    def _key(self, node: Value, within: str, key: str, held: bytes, family: str) -> None:
        if held in _SAYS_NOTHING:
            return
        bookkeeping = within == _COUNTS or key in self._bookkeeping.get(type(node), ())
        severity: Severity = "noted" if bookkeeping else "dropped"
        self._log.entries.append((node, within + key, key, severity, f"only {family} understands it"))
