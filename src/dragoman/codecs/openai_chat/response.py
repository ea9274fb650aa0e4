"""Chat Completions responses, both ways."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.openai_chat.messages import FAMILY, NULL, MessageEncoder, decode_assistant
from dragoman.codecs.openai_chat.request import locate_part
from dragoman.codecs.openai_chat.wire import (
    AssistantMessage,
    ChatResponse,
    ChoiceWire,
    CompletionDetails,
    PromptDetails,
    UsageWire,
)
from dragoman.codecs.reading import MODELLED, Extra, WireReader, WireValue, inner_extra, keep, spliced
from dragoman.ir import Completion, Finish, FinishReason, Message, Refusal, ToolCall, Usage
from dragoman.ir.messages import content_held
from dragoman.ir.values import encode_json, note
from dragoman.losses import LossLog

_reader = WireReader(ChatResponse, "openai-chat response")

# ── finish reasons: total both ways ───────────────────────────────────────────────────────────────────────────

_DECODE_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    # Azure DeepSeek, Together, Mistral and HuggingFace have words of their own.
    "tool_call": "tool_calls",
    "eos": "stop",
    "end_turn": "stop",
    "model_length": "length",
    "error": "error",
}
_ENCODE_FINISH: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "stop",
    "pause": "stop",
    "error": "stop",
    "unknown": "stop",
}


def decode_finish(raw: str | None | UnsetType, message: Message | None) -> Finish | None:
    """Calls present mean tool calls, whatever the word: forced choices end with "stop" on several servers."""
    if raw is UNSET or raw is None:
        return None
    reason = _DECODE_FINISH.get(raw, "unknown")
    if reason in {"stop", "unknown"} and message is not None:
        if any(isinstance(part, ToolCall) for part in message.parts):
            reason = "tool_calls"
        elif any(isinstance(part, Refusal) for part in message.parts):
            reason = "refusal"
    return Finish(reason, raw)


def encode_finish(finish: Finish | None, source: str | None, log: LossLog, completion: Completion) -> str | None:
    if finish is None:
        return None
    if source == FAMILY and finish.raw is not None:
        return finish.raw
    if finish.reason in {"pause", "error", "unknown"}:
        log.degrade(
            completion, "finish", f"finish reason {finish.raw or finish.reason!r}", "this API can only say stop"
        )
    if finish.stop_sequence is not None:
        log.drop(completion, "finish.stop_sequence", "matched stop sequence", "this API does not say which one matched")
    return _ENCODE_FINISH[finish.reason]


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_usage(wire: UsageWire) -> Usage:
    """Prompt tokens include cached ones. Some vendors keep reasoning outside completion tokens: the total tells."""
    prompt_details = wire.prompt_tokens_details
    completion_details = wire.completion_tokens_details
    prompt = 0 if wire.prompt_tokens is UNSET else wire.prompt_tokens
    written = 0 if wire.completion_tokens is UNSET else wire.completion_tokens
    cached = cache_written = image = reasoning = None
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    if isinstance(prompt_details, PromptDetails):
        cached = _count(prompt_details.cached_tokens)
        cache_written = _count(prompt_details.cache_write_tokens)
        image = _count(prompt_details.image_tokens)
    if isinstance(completion_details, CompletionDetails):
        reasoning = _count(completion_details.reasoning_tokens)
    total = None if wire.total_tokens is UNSET else wire.total_tokens
    if total is not None and reasoning and prompt + written + reasoning == total:
        written += reasoning
        extra["~reasoning"] = Raw(b'"outside"')
    extra["~usage"] = _exact(wire)
    return Usage(prompt, written, cached, cache_written, reasoning, image, total, {FAMILY: extra})


def _exact(wire: UsageWire) -> Raw:
    """The wire's own spelling: which details were there, null or zero."""
    details: dict[str, Any] = {}
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        inner = getattr(wire, name)
        if isinstance(inner, PromptDetails | CompletionDetails):
            details[name] = spliced(inner, {} if inner.extra is UNSET else inner.extra)
    shell = UsageWire(wire.prompt_tokens, wire.completion_tokens, wire.total_tokens)
    nulls = {
        name: NULL for name in ("prompt_tokens_details", "completion_tokens_details") if getattr(wire, name) is None
    }
    return spliced(shell, details | nulls)


def _count(value: int | None | UnsetType) -> int | None:
    return None if value is UNSET else value


def encode_usage(usage: Usage) -> WireValue:
    notes = (usage.metadata or {}).get(FAMILY)
    if notes is not None and "~usage" in notes:
        return spliced(notes["~usage"], notes)
    prompt = PromptDetails(
        UNSET if usage.cached is None else usage.cached,
        UNSET if usage.cache_written is None else usage.cache_written,
        UNSET if usage.image is None else usage.image,
    )
    completion = CompletionDetails(UNSET if usage.reasoning is None else usage.reasoning)
    return UsageWire(
        usage.input,
        usage.output,
        usage.input + usage.output if usage.total is None else usage.total,
        prompt,
        completion,
    )


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────


def decode_response(body: bytes) -> Completion:
    wire = _reader.read(body)
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    seed = wire.id if isinstance(wire.id, str) else ""
    messages = []
    finishes = []
    for index, choice in enumerate(wire.choices):
        message = _decode_choice(choice, f"{seed} {index}" if index else seed)
        messages.append(message)
        finishes.append(decode_finish(choice.finish_reason, message))
    for key in ("object", "service_tier", "system_fingerprint"):
        value = getattr(wire, key)
        if value is not UNSET:
            extra[MODELLED + key] = Raw(encode_json(value))
    if wire.usage is None:
        extra["usage"] = NULL
    return Completion(
        tuple(messages),
        finishes[0] if finishes else None,
        decode_usage(wire.usage) if isinstance(wire.usage, UsageWire) else None,
        None if wire.id is UNSET else wire.id,
        None if wire.model is UNSET else wire.model,
        None if wire.created is UNSET else wire.created,
        tuple(finishes) if len(finishes) > 1 else (),
        {FAMILY: extra},
    )


def _decode_choice(choice: ChoiceWire, seed: str) -> Message:
    notes: Extra = {}
    if choice.index is not UNSET:
        notes["~index"] = Raw(encode_json(choice.index))
    if choice.logprobs is not UNSET:
        notes["~logprobs"] = choice.logprobs
    if choice.finish_reason is UNSET or choice.finish_reason is None:
        notes["~finish"] = NULL if choice.finish_reason is None else Raw(b'"absent"')
    if choice.extra is not UNSET:
        notes.update(keep(FAMILY, UNSET, choice=choice.extra)[FAMILY])  # type: ignore[index]
    if choice.message is UNSET:
        return Message("assistant", (), None, {FAMILY: notes | {"~message": Raw(b'"absent"')}})
    message = decode_assistant(choice.message, seed)
    own = (message.metadata or {}).get(FAMILY, {})
    return Message("assistant", content_held(message), message.name, {FAMILY: {**own, **notes}})


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    native = completion.metadata is not None and FAMILY in completion.metadata
    extra = (completion.metadata or {}).get(FAMILY, {})
    encoder = MessageEncoder(log, to_client=True)
    choices = [
        _encode_choice(message, encoder.encode_assistant(message), word, index, native=native)
        for index, (message, word) in enumerate(
            zip(completion.messages, _encode_finishes(completion, log, native=native), strict=True)
        )
    ]
    wire = ChatResponse(
        choices,
        UNSET if completion.id is None else completion.id,
        UNSET if native else "chat.completion",
        UNSET if completion.created is None and native else completion.created or 0,
        UNSET if completion.model is None else completion.model,
        UNSET if completion.usage is None else encode_usage(completion.usage),
    )
    content = bytes(spliced(wire, extra)) if extra else encode_json(wire)
    return Encoded(content)


def _encode_finishes(completion: Completion, log: LossLog, *, native: bool) -> list[str | None]:
    finishes = completion.finishes or (completion.finish,) * len(completion.messages)
    return [encode_finish(finish, FAMILY if native else None, log, completion) for finish in finishes]


def _encode_choice(message: Message, body: WireValue, word: WireValue, index: int, *, native: bool) -> WireValue:
    notes = (message.metadata or {}).get(FAMILY, {})
    if not native:
        # A strict client of this API expects these two keys on every message.
        absent = {key: held for key, held in (("refusal", NULL), ("annotations", Raw(b"[]"))) if not _says(body, key)}
        body = spliced(body, absent) if absent else body
    if "~finish" in notes:
        word = UNSET if note(message.metadata, FAMILY, "~finish") == "absent" else None
    place = notes.get("~index", index if not native else UNSET)
    choice = ChoiceWire(
        UNSET if "~message" in notes else body, place, word, notes.get("~logprobs", UNSET if native else NULL)
    )
    inner = inner_extra(notes, "choice")
    return choice if inner is None else spliced(choice, inner)


def _says(body: AssistantMessage | Raw, key: str) -> bool:
    if isinstance(body, Raw):
        return f'"{key}":'.encode() in bytes(body)
    return getattr(body, key) is not UNSET


def locate(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the wire body a node of the completion came from."""
    if message_index is None:
        return {"finish": "$.choices[0].finish_reason"}.get(field, f"$.{field}" if field else "$")
    path = f"$.choices[{message_index}].message"
    if part_index is not None:
        path += locate_part(completion.messages[message_index], part_index)
    return f"{path}.{field}" if field else path
