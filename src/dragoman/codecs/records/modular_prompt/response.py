"""The result of a query, both ways: {content, toolCalls?, finishReason?, usage?}."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader, keep, spliced
from dragoman.codecs.records.answers import finish_with, only_message
from dragoman.codecs.records.modular_prompt.messages import FAMILY, MessageDecoder, MessageEncoder
from dragoman.codecs.records.modular_prompt.request import place
from dragoman.codecs.records.modular_prompt.wire import QueryResult, TokenCounts
from dragoman.codecs.records.reading import Peeker, as_json, read_record
from dragoman.ir import Completion, Finish, FinishReason, Usage, withholds_calls
from dragoman.ir.notes import Extra
from dragoman.losses import LossLog, paths_by

_reader = WireReader(QueryResult, FAMILY)
_peeker = Peeker(FAMILY)
_OF_THE_MESSAGE = ("content", "toolCalls", "metadata")

_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "error": "error"}
_WORDS: dict[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "error": "error",
    "content_filter": "error",
    "refusal": "stop",
    "pause": "stop",
    "unknown": "stop",
}


def decode_finish(word: str) -> Finish:
    return Finish(_REASONS.get(word, "unknown"), word)


def encode_finish(finish: Finish, completion: Completion, log: LossLog, *, native: bool) -> str:
    if native and finish.raw is not None:
        return finish.raw
    if finish.reason not in _REASONS:
        log.degrade(
            completion, "finish", f"finish reason {finish.raw or finish.reason!r}", "this format has four of them"
        )
    if finish.stop_sequence is not None:
        log.drop(completion, "finish.stop_sequence", "matched stop sequence", "this format does not say which matched")
    if withholds_calls(finish) and any(message.tool_calls for message in completion.messages):
        return "error"  # the one word here for an answer whose calls must not be run
    return _WORDS[finish.reason]


def decode_usage(wire: TokenCounts) -> Usage:
    total = None if wire.total_tokens is UNSET else wire.total_tokens
    return Usage(wire.prompt_tokens, wire.completion_tokens, total=total, metadata=keep(FAMILY, wire.extra))


_UNCOUNTED = {"cached": "cached tokens", "cache_written": "tokens written to the cache"} | {
    "reasoning": "reasoning tokens",
    "image": "image tokens",
}


def encode_usage(usage: Usage, completion: Completion, log: LossLog) -> Raw:
    for name, what in _UNCOUNTED.items():
        if getattr(usage, name):
            log.note(completion, f"usage.{name}", what, "this format counts prompt and completion only")
    notes: Extra = (usage.metadata or {}).get(FAMILY, {})
    total = usage.input + usage.output if usage.total is None else usage.total
    counts = {"promptTokens": usage.input, "completionTokens": usage.output, "totalTokens": total}
    if usage.total is None and FAMILY in (completion.metadata or {}):
        del counts["totalTokens"]
    return spliced(as_json(counts), notes)


def decode_response(body: bytes) -> Completion:
    entries = _peeker.keys(Raw(body), "$")
    record = {key: entries.pop(key) for key in _OF_THE_MESSAGE if key in entries}
    wire = read_record(_reader, as_json(entries), "$", FAMILY)
    decoder = MessageDecoder()
    decoder.add_message("assistant", as_json({"role": "assistant", **record}), "$")
    (message,) = decoder.messages
    return Completion(
        (message,),
        finish_with(message, None if wire.finish_reason is UNSET else decode_finish(wire.finish_reason)),
        None if wire.usage is UNSET else decode_usage(wire.usage),
        metadata={FAMILY: {} if wire.extra is UNSET else wire.extra},
    )


def encode_response(completion: Completion, log: LossLog) -> Encoded:
    native = FAMILY in (completion.metadata or {})
    message = only_message(completion, log, holds=frozenset({"usage", "finish"}))
    (record,) = MessageEncoder(log).encode_message(message)
    fields: dict[str, Any] = _peeker.keys(record, "$")
    del fields["role"]
    if "content" in fields and bytes(fields["content"]) == b"null" and not native:
        fields["content"] = ""  # a result always has text, if empty
    if completion.finish is not None and not (native and completion.finish.raw is None):
        fields["finishReason"] = encode_finish(completion.finish, completion, log, native=native)
    if completion.usage is not None:
        fields["usage"] = encode_usage(completion.usage, completion, log)
    return Encoded(bytes(spliced(as_json(fields), (completion.metadata or {}).get(FAMILY, {}))))


_COUNTS = {"input": "promptTokens", "output": "completionTokens", "total": "totalTokens"}


def _json_path(completion: Completion, message_index: int | None, part_index: int | None, field: str) -> str:
    """Where in the result a node of the completion came from."""
    if message_index is None:
        head, _, rest = field.partition(".")
        if head == "finish":
            return "$.finishReason"
        if head == "usage":
            return f"$.usage.{_COUNTS.get(rest, rest)}" if rest else "$.usage"
        return f"$.{field}" if field else "$"
    if part_index is None:
        return f"$.{field}" if field else "$"
    return "$" + place(completion.messages[message_index], part_index, field)[1]


response_paths = paths_by(_json_path)
