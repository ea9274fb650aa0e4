"""What the `anthropic-beta` header unlocks. Without its beta a field does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Problem, Refused
from dragoman.sim.rules.common import object_at, objects_at, text_at

# The first beta that Claude Code sends has no dashes in its date.
_BETA = re.compile(r"[a-z0-9-]+-\d{4}-\d{2}-\d{2}|claude-code-\d{8}")

# Field -> prefixes of the betas that have it.
_TOP_LEVEL: dict[str, tuple[str, ...]] = {
    "context_management": ("context-management-", "compact-2026-01-12"),
    "compaction": ("compact-2026-09-04",),
    "mcp_servers": ("mcp-client-",),
    "fallbacks": ("server-side-fallback-",),
    "fallback_credit_token": ("fallback-credit-",),
    "thread": ("message-threads-",),
}
_NESTED: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("output_config",), "task_budget", ("task-budgets-",)),
    (("thinking",), "block_binding", ("thinking-binding-controls-",)),
)


def betas_of(header: str) -> list[str]:
    betas = [beta.strip() for beta in header.split(",") if beta.strip()]
    if unknown := [beta for beta in betas if not _BETA.fullmatch(beta)]:
        values = ", ".join(f"`{beta}`" for beta in unknown)
        raise Refused(Problem("invalid", f"Unexpected value(s) {values} for the `anthropic-beta` header."))
    return betas


def check(body: JsonObject, header: str) -> None:
    betas = betas_of(header)
    for where, wanted in _fields_in_use(body):
        if not any(beta.startswith(wanted) for beta in betas):
            raise Refused(Problem("invalid", f"{where}: Extra inputs are not permitted"))


def _fields_in_use(body: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from ((name, wanted) for name, wanted in _TOP_LEVEL.items() if body.get(name) is not None)
    for path, name, wanted in _NESTED:
        if object_at(body, *path).get(name) is not None:
            yield ".".join((*path, name)), wanted
    if text_at(body, "thinking", "display") == "updates":
        yield "thinking.display", ("thinking-display-updates-",)
    yield from _tool_changes(objects_at(body, "messages"))


def _tool_changes(messages: Iterable[JsonObject]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for index, message in enumerate(messages):
        for position, block in enumerate(objects_at(message, "content")):
            if block.get("type") in ("tool_addition", "tool_removal"):
                yield f"messages.{index}.content.{position}", ("mid-conversation-tool-changes-", "inline-tools-")
