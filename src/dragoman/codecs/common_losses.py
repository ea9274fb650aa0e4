"""Losses that several formats report in the same words. The caller tests whether there is anything to report."""

from __future__ import annotations

from dragoman.ir import Completion, Message, Refusal, Signature
from dragoman.ir.values import Value
from dragoman.losses import LossLog

CACHED = "prompts are cached automatically by this API"
NO_REFUSALS = "this API has no refusals: sent as text"
NOT_SENT = "[This message held nothing that can be shown here.]"
"""Replaces a turn of which nothing could be sent: an empty turn would be refused, or read as no answer."""


def drop_signature(node: Value, signature: Signature, log: LossLog) -> None:
    log.drop(node, "signature", "signature", f"only {signature.family} can verify it")


def drop_cache_mark(node: Value, log: LossLog) -> None:
    log.drop(node, "cache", "cache mark", CACHED)


def drop_tool_cache_mark(tool: Value, log: LossLog) -> None:
    log.drop(tool, "cache", "cache mark on a tool", CACHED)


def degrade_refusal(part: Refusal, log: LossLog) -> None:
    log.degrade(part, "", "refusal", NO_REFUSALS)


def drop_stop_sequence(completion: Completion, log: LossLog) -> None:
    log.drop(completion, "finish.stop_sequence", "matched stop sequence", "this API does not say which one matched")


def invent_content(message: Message, log: LossLog) -> None:
    log.invent(message, "", "text in place of what was lost", "the turn must have content")


def note_empty_model(node: Value, log: LossLog) -> None:
    log.note(node, "model", "empty model name", "answers of this API name their model")


def fill_in_identity(completion: Completion, invented_id: str, log: LossLog) -> Completion:
    """Fill in id and model: Gemini may omit both, and clients of the API expect them."""
    named = log.replace(completion, id=completion.id or invented_id, model=completion.model or "")
    if not completion.id:
        log.note(completion, "id", "id of the answer", "an answer of this API has one")
    if completion.model is None:
        note_empty_model(completion, log)
    return named
