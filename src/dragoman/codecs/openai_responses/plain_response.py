"""Responses responses, the short way, both directions (see codecs/plain.py)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.codecs.arguments import arguments_as_text
from dragoman.codecs.ids import invent_id
from dragoman.codecs.openai_responses.items import COMPLETED, STATUS
from dragoman.codecs.openai_responses.parts import NOTHING
from dragoman.codecs.openai_responses.plain_request import (
    PlainItem,
    decode_plain_call,
    decode_plain_said,
)
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.response import INVENTED_ID, NOTED, answer_object, usage_of, usage_wire
from dragoman.codecs.openai_responses.wire import OutputText, UsageWire
from dragoman.codecs.reading import WireValue
from dragoman.ir import AnyPart, Completion, Finish, Message, Text, ToolCall
from dragoman.ir.messages import content_held
from dragoman.ir.values import encode_json

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_read = msgspec.json.Decoder(dict[str, Raw]).decode
_read_output = msgspec.json.Decoder(list[PlainItem]).decode
_read_usage = msgspec.json.Decoder(UsageWire).decode
_read_string = msgspec.json.Decoder(str).decode
_read_time = msgspec.json.Decoder(int | float).decode

_STOP, _CALLS = Finish("stop", "completed"), Finish("tool_calls", "completed")
_CREATED = NOTED["created_at"]


def decode_plain_response(body: bytes) -> Completion | None:
    """An answer repeats the whole request, filled with defaults: all that is kept as it stands."""
    try:
        if not body.isascii():
            body.decode()  # pieces that are kept as they stand are text, too
        noted = NOTED
        extra = {noted[key]: held for key, held in _read(body).items()}
        parts = _parts(_read_output(extra.pop("output")))
        if not parts or extra[STATUS] != COMPLETED:
            return None
        usage = extra.pop("usage")
        counts = _read_usage(usage)
        answer_id, model = _read_string(extra.pop("id")), _read_string(extra.pop("model"))
        created = int(_read_time(extra[_CREATED]))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, KeyError):
        return None
    return Completion(
        (Message("assistant", tuple(parts)),),
        _CALLS if type(parts[-1]) is ToolCall else _STOP,
        usage_of(counts, {FAMILY: {"~usage": usage}}),
        answer_id,
        model,
        created,
        (),
        {FAMILY: extra},
    )


def _parts(items: list[PlainItem]) -> list[AnyPart] | None:
    """A text, then calls."""
    parts: list[AnyPart] = []
    for item in items:
        part: Text | ToolCall | None
        if item.type == "function_call":
            part = decode_plain_call(item) if item.status == COMPLETED else None
        else:
            part = None if parts or item.role != "assistant" else decode_plain_said(item)
        if part is None:
            return None
        parts.append(part)
    return parts


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class SaidOut(Struct, frozen=True, gc=False, tag="message"):
    role: str
    content: list[OutputText]
    id: str
    status: Raw


class CalledOut(Struct, frozen=True, gc=False, tag="function_call"):
    id: str
    call_id: str
    name: str
    arguments: str
    status: Raw


_HERE, _COUNT = Raw(b"%b"), Raw(b"%d")


def _template(status: str, reason: str | None) -> bytes:
    """An answer that ended like this, without its id, its times, its model, its output and its counts."""
    answer = answer_object(Completion(()), status, reason, [], None)
    holes: dict[str, Any] = dict.fromkeys(("id", "model", "output"), _HERE)
    holes["usage"] = usage_wire(_COUNT, _COUNT, _COUNT, _COUNT, _COUNT, _COUNT)
    return encode_json({**answer, **holes, "created_at": _COUNT, "completed_at": _COUNT if reason is None else None})


_WHOLE, _CUT = _template("completed", None), _template("incomplete", "max_output_tokens")
_FINISHES = frozenset({"stop", "length", "tool_calls"})
_INVENTED = invent_id(INVENTED_ID, 0)[:-1]
"""How the ids of items begin in an answer that has none of its own."""


def encode_plain_response(completion: Completion) -> bytes | None:
    messages, finish, usage = completion.messages, completion.finish, completion.usage
    if len(messages) != 1 or finish is None or usage is None or finish.reason not in _FINISHES:
        return None
    if completion.metadata is not None and FAMILY in completion.metadata:
        return None
    if usage.metadata is not None and FAMILY in usage.metadata:
        return None
    answer_id = completion.id
    invented = _INVENTED if not answer_id else invent_id(answer_id, 0)[:-1]
    items = _items(messages[0], invented)
    if items is None:
        return None
    created, model, read, written = completion.created or 0, completion.model or "", usage.input, usage.output
    cached, reasoned = usage.cached or 0, usage.reasoning or 0
    counts = (
        read,
        min(read, cached),
        usage.cache_written or 0,
        written,
        min(written, reasoned),
        read + written,
    )
    told = (encode_json(model), encode_json(items))
    if finish.reason == "length":
        return _CUT % (encode_json(answer_id or INVENTED_ID), created, *told, *counts)
    return _WHOLE % (encode_json(answer_id or INVENTED_ID), created, created, *told, *counts)


def _items(message: Message, invented: str) -> list[WireValue] | None:
    """A text, then calls, each an item with an id of its own, which begins like this and ends with its place."""
    content: Any = content_held(message)
    if message.name is not None or (message.metadata is not None and FAMILY in message.metadata):
        return None
    if type(content) is str:
        content = (Text(content),)
    items: list[WireValue] = []
    for part in content:
        if type(part) is ToolCall:
            if part.custom or part.incomplete or part.signature is not None:
                return None
            if part.metadata is not None and FAMILY in part.metadata:
                return None
            item_id = f"fc_{invented}{len(items)}"
            items.append(CalledOut(item_id, part.id, part.name, arguments_as_text(part) or "{}", COMPLETED))
        elif type(part) is Text and not items:
            if part.citations or part.signature is not None:
                return None
            if part.metadata is not None and FAMILY in part.metadata:
                return None
            items.append(SaidOut("assistant", [OutputText(part.text, NOTHING, NOTHING)], f"msg_{invented}0", COMPLETED))
        else:
            return None
    return items
