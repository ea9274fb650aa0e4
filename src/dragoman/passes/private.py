"""What a family said that nobody else understands stays behind, and is reported (law 2)."""

from __future__ import annotations

from dragoman.codecs.profile import Profile
from dragoman.ir import Metadata, Request
from dragoman.ir.values import Value
from dragoman.losses import LossLog


def report_private(request: Request, profile: Profile, log: LossLog) -> Request:
    _report(request, request.metadata, profile, log)
    for tool in request.tools:
        _report(tool, getattr(tool, "metadata", None), profile, log)
    for message in request.messages:
        _report(message, message.metadata, profile, log)
        for part in message.parts:
            _report(part, getattr(part, "metadata", None), profile, log)
    for settings in (request.tool_choice, request.reasoning, request.output):
        if settings is not None:
            _report(request, settings.metadata, profile, log)
    return request


def report_private_node(node: Value, metadata: Metadata | None, profile: Profile, log: LossLog) -> None:
    """The same for one node of an answer."""
    _report(node, metadata, profile, log)


def _report(node: Value, metadata: Metadata | None, profile: Profile, log: LossLog) -> None:
    for family, entries in (metadata or {}).items():
        if family == profile.family:
            continue
        for key, held in entries.items():
            if not key.startswith("~") and bytes(held) not in {b"null", b"[]", b"{}"}:
                log.drop(node, key, key, f"only {family} understands it")
