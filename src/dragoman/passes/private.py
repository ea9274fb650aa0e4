"""What a family said that nobody else understands stays behind, and is reported (law 2)."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.ir import AnyPart, Completion, Message, Metadata, Request, Text, ToolResult
from dragoman.ir.messages import content_held
from dragoman.ir.notes import WITHIN, inner_extra
from dragoman.ir.values import Value
from dragoman.losses import LossLog
from dragoman.profile import Profile

_SAYS_NOTHING = frozenset({b"null", b"[]", b"{}"})


def says_more(metadata: Metadata, family: str) -> bool:
    """Whether a family other than this one said something here that is more than spelling."""
    for owner, entries in metadata.items():
        if owner != family:
            for key in entries:
                if key[:1] != "~" or key.startswith(WITHIN):
                    return True
    return False


def report_private(request: Request, profile: Profile, log: LossLog) -> Request:
    _report(request, request.metadata, profile, log)
    for tool in request.tools:
        _report(tool, getattr(tool, "metadata", None), profile, log)
    _report_messages(request.messages, profile, log)
    for name in ("tool_choice", "reasoning", "output"):
        settings = getattr(request, name)
        if settings is not None:
            _report(request, settings.metadata, profile, log, f"{name}.")
    return request


def report_private_answer(completion: Completion, profile: Profile, log: LossLog) -> None:
    _report(completion, completion.metadata, profile, log)
    _report_messages(completion.messages, profile, log)
    if completion.finish is not None:
        _report(completion, completion.finish.metadata, profile, log, "finish.")
    if completion.usage is not None:
        _report(completion, completion.usage.metadata, profile, log, "usage.")


def _report_messages(messages: Iterable[Message], profile: Profile, log: LossLog) -> None:
    for message in messages:
        if message.metadata is not None:
            _report(message, message.metadata, profile, log)
        content = content_held(message)
        if type(content) is tuple:
            for part in content:
                _report_part(part, profile, log)


def _report_part(part: AnyPart, profile: Profile, log: LossLog) -> None:
    metadata = getattr(part, "metadata", None)
    if metadata is not None:
        _report(part, metadata, profile, log)
    kind = type(part)
    if kind is Text:
        for citation in part.citations:  # type: ignore[union-attr]
            _report(part, citation.metadata, profile, log, "citations.")
    elif kind is ToolResult:
        for inner in part.parts:  # type: ignore[union-attr]
            _report_part(inner, profile, log)


def _report(node: Value, metadata: Metadata | None, profile: Profile, log: LossLog, within: str = "") -> None:
    if metadata is None or not says_more(metadata, profile.family):
        return
    for family, entries in metadata.items():
        if family == profile.family:
            continue
        for key, held in entries.items():
            if key.startswith(WITHIN):
                name = key.removeprefix(WITHIN)
                for inner, value in (inner_extra(entries, name) or {}).items():
                    _report_key(node, f"{within}{name}.", inner, bytes(value), family, log)
            else:
                _report_key(node, within, key, bytes(held), family, log)


def _report_key(node: Value, within: str, key: str, held: bytes, family: str, log: LossLog) -> None:
    if not key.startswith("~") and held not in _SAYS_NOTHING:
        log.drop(node, within + key, key, f"only {family} understands it")
