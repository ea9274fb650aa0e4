"""Responses, and the request fields that they repeat, as OpenAI does: defaults filled in, secrets left out.

Strict clients and the public Open Responses schema require all of these members, in whole responses and in each event
that carries one. The request is given as raw fields: only those that are filled in are interpreted here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from dragoman.codecs.reading import WireValue
from dragoman.ir import Completion
from dragoman.ir.values import encode_json

Echo: TypeAlias = Mapping[str, Any]

_REDACTED = "<redacted>"
_array = msgspec.json.Decoder(list[Raw]).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode

DEFAULTS: Echo = {
    "background": False,
    "frequency_penalty": 0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
    "user": None,
}
"""What a response repeats for fields that its request does not have."""


_DEFAULTS_JSON = encode_json(DEFAULTS)[1:-1]


def echo_json(echo: Echo, tier: str | None = None) -> bytes:
    """Return the members as JSON, without braces; `tier` is the one that was used, if the answer states it."""
    if tier is not None and tier != echo.get("service_tier"):
        echo = {**echo, "service_tier": tier}
    return _DEFAULTS_JSON if echo is DEFAULTS else encode_json(echo)[1:-1]


def echo_of(fields: Mapping[str, Raw]) -> dict[str, Any]:
    """Return the members of a response that repeat a request, from the request's top-level members."""
    echo: dict[str, Any] = {**DEFAULTS, "store": True}
    for name, value in fields.items():
        if name in _REPEATED and bytes(value) != b"null":
            echo[name] = _FILLED[name](value) if name in _FILLED else value
    return echo


def _tools(raw: Raw) -> Any:
    return [_tool(tool) for tool in _array(raw)] if bytes(raw)[:1] == b"[" else raw


def _tool(raw: Raw) -> Any:
    if bytes(raw)[:1] != b"{":
        return raw
    tool: dict[str, Any] = _object(raw)
    if bytes(tool.get("type", b"")) == b'"function"':
        return {**_FUNCTION, **tool}
    # Readers of a stored response must not see the credentials of an MCP server.
    tool.pop("authorization", None)
    if "headers" in tool and bytes(tool["headers"])[:1] == b"{":
        tool["headers"] = dict.fromkeys(_object(tool["headers"]), _REDACTED)
    return tool


# Without `strict`: an upstream of another format did not have to follow the schema.
_FUNCTION = {"description": None, "parameters": None, "strict": False}


def _text(raw: Raw) -> Any:
    if bytes(raw)[:1] != b"{":
        return raw
    text: dict[str, Any] = {name: value for name, value in _object(raw).items() if bytes(value) != b"null"}
    form = text.get("format")
    if form is not None and bytes(form)[:1] == b"{":
        fields = _object(form)
        text["format"] = {**_SCHEMA, **fields} if bytes(fields.get("type", b"")) == b'"json_schema"' else form
    return {"format": {"type": "text"}, "verbosity": "medium", **text}


_SCHEMA = {"description": None, "strict": False}


def _reasoning(raw: Raw) -> Any:
    return {"effort": None, "summary": None, **_object(raw)} if bytes(raw)[:1] == b"{" else raw


def _conversation(raw: Raw) -> Any:
    """Return the conversation as an object, also if the request gave its id alone."""
    return {"id": raw} if bytes(raw)[:1] == b'"' else raw


_OWN = ("service_tier",)
"""A response states the tier that was used, not the requested one."""
_REPEATED = frozenset(DEFAULTS).difference(_OWN) | {
    *("conversation", "image", "prompt", "prompt_cache_options", "prompt_cache_retention")
}
_FILLED: Mapping[str, Callable[[Raw], Any]] = {
    "tools": _tools,
    "text": _text,
    "reasoning": _reasoning,
    "conversation": _conversation,
}


def with_echo(response: bytes, echo: Echo) -> bytes:
    """Return a whole response with members that repeat its request."""
    fields = _object(response)
    return encode_json({**fields, **echo, **{name: fields[name] for name in _OWN if name in fields}})


def answer_head(completion: Completion, status: str, reason: str | None, output: list[WireValue]) -> dict[str, Any]:
    """Return the members of a response that come before those that repeat its request."""
    created = completion.created or 0
    return {
        "id": completion.id or "",
        "object": "response",
        "created_at": created,
        "status": status,
        "completed_at": created if status == "completed" else None,
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "model": completion.model or "",
        "output": output,
    }


def answer_json(head: dict[str, Any], echo: bytes, usage: WireValue, further: dict[str, Any]) -> bytes:
    """Return a response with every member strict clients expect; `echo` (see `echo_json`) repeats the request."""
    tail = b"," + encode_json(further)[1:] if further else b"}"
    return b'%b,%b,"usage":%b%b' % (encode_json(head)[:-1], echo, encode_json(usage), tail)
