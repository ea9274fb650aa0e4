"""Stored histories as people have them, in the four record formats: spelled every way their documents allow."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import dragoman
from tests import strategies
from tests.support.bodies import PIXEL

RECORDS: tuple[str, ...] = dragoman.formats("record")

_WORDS = strategies.ANY_TEXT
_IDS = st.sampled_from(("call_1", "call_2", "toolu_3"))
_UNKNOWN = st.dictionaries(st.sampled_from(("x_trace", "timestamp", "tags")), strategies.JSON_VALUES, max_size=1)
_BAGS = st.sampled_from(
    (
        {"thoughtSignature": "c2ln"},
        {"thought_signature": "c2ln", "more": 1},
        {"google": {"thought_signature": "c2ln"}},
        {"signature": {"family": "anthropic", "data": "c2ln", "id": "x"}},
        {"trace": [1]},
        "text",
        None,
    )
)
_REFUSALS = strategies.WORDS | st.none()
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def _with(draw: DrawFn, record: dict[str, Any], **optional: SearchStrategy[Any]) -> dict[str, Any]:
    """The record with some of these keys, and sometimes with an unknown one."""
    for key, values in optional.items():
        if draw(st.booleans()):
            record[key] = draw(values)
    return {**record, **draw(_UNKNOWN)} if draw(st.integers(0, 5)) == 0 else record


# ── parts and calls ───────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def parts(draw: DrawFn, bag: str) -> dict[str, Any]:
    kind = draw(st.sampled_from(("text", "text", "image_url", "document", "other", "audio", "strange", "reasoning")))
    if kind == "text":
        return _with(draw, {"type": "text", "text": draw(_WORDS)}, **{bag: _BAGS})
    if kind == "image_url":
        url = draw(st.sampled_from(("https://example.org/a.png", "data:image/png;base64,aGk=", "file.png")))
        image = _with(draw, {"url": url}, detail=st.just("low"), media_type=st.just("image/png"))
        return _with(draw, {"type": "image_url", "image_url": draw(st.sampled_from((image, url)))}, **{bag: _BAGS})
    if kind == "document":
        source = {"data": "aGk=", "media_type": "application/pdf"}
        return _with(draw, {"type": "document", "source": _with(draw, source)}, title=_WORDS)
    if kind == "other":
        if draw(st.booleans()):
            return {"type": "other", "provider": "anthropic", "kind": "text", "payload": {"type": "text", "text": "x"}}
        other = {"type": "other", "provider": "somebody", "kind": "k"}
        return _with(draw, other, payload=strategies.JSON_VALUES, **{bag: _BAGS})
    if kind == "audio":
        return {"type": "other", "provider": "dragoman", "kind": "audio", "payload": draw(strategies.JSON_VALUES)}
    if kind == "reasoning":
        return _with(draw, {"type": "reasoning", "text": draw(_WORDS)}, redacted=st.booleans(), **{bag: _BAGS})
    return _with(draw, {"type": "strange", "value": draw(strategies.JSON_VALUES)})


def contents(bag: str) -> SearchStrategy[Any]:
    return _WORDS | st.lists(parts(bag), max_size=2)


@st.composite
def flat_calls(draw: DrawFn, bag: str) -> dict[str, Any]:
    arguments = st.dictionaries(st.just("city"), _WORDS, max_size=1) | st.just('{"city": "x"}') | st.none()
    call = {"name": draw(strategies.NAMES)}
    return _with(draw, call, id=_IDS | st.none() | st.just(""), arguments=arguments, **{bag: _BAGS})


@st.composite
def nested_calls(draw: DrawFn, bag: str) -> dict[str, Any]:
    text = st.sampled_from(('{"city": "x"}', "{}", "", "{broken")) | st.just({"city": "x"}) | st.none()
    function = _with(draw, {"name": draw(strategies.NAMES)}, arguments=text)
    return _with(draw, {"function": function}, id=_IDS, type=st.just("function"), **{bag: _BAGS})


def calls(bag: str) -> SearchStrategy[dict[str, Any]]:
    return flat_calls(bag) | nested_calls(bag)


# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def universal(draw: DrawFn) -> dict[str, Any]:
    bag = "raw_context"
    kind = draw(st.sampled_from(("user", "system", "assistant", "assistant", "call", "result", "result")))
    if kind in {"user", "system"}:
        return _with(draw, {"role": kind}, content=contents(bag) | st.none(), name=strategies.NAMES)
    if kind == "assistant":
        made = st.lists(calls(bag), max_size=2)
        return _with(draw, {"role": kind}, content=contents(bag) | st.none(), tool_calls=made, name=strategies.NAMES)
    if kind == "call":
        return {"arguments": {}, **draw(calls(bag))}
    record = {"result": draw(strategies.JSON_VALUES)}
    return _with(
        draw,
        record,
        tool_call_id=_IDS | st.none() | st.just("unknown"),
        name=strategies.NAMES,
        is_error=st.booleans(),
        kind=st.sampled_from(("data", "text")),
        role=st.just("tool"),
        multimodal_parts=st.lists(parts(bag), max_size=2),
    )


@st.composite
def modular_prompt(draw: DrawFn) -> dict[str, Any]:
    bag = "metadata"
    kind = draw(st.sampled_from(("user", "assistant", "assistant", "call", "result", "result", "old result")))
    if kind == "user":
        return _with(draw, {"role": kind, "content": draw(contents(bag))}, type=st.just("message"))
    if kind == "assistant":
        thoughts = st.just(
            {"reasoning": [{"text": "hm", "signature": {"family": "anthropic", "data": "c2ln"}}], "x": 1}
        )
        made = st.lists(calls(bag), max_size=2)
        return _with(draw, {"role": kind, "content": draw(contents(bag))}, toolCalls=made, metadata=thoughts | _BAGS)
    if kind == "call":
        return {"arguments": {}, **draw(calls(bag))}
    if kind == "old result":
        content = draw(_WORDS | st.lists(parts(bag), max_size=2))
        return _with(draw, {"role": "tool", "content": content}, toolCallId=_IDS, name=strategies.NAMES)
    tag = draw(st.sampled_from(("text", "data", "error", "multimodal")))
    value = draw(st.lists(parts(bag), max_size=2) if tag == "multimodal" else strategies.JSON_VALUES)
    return _with(draw, {"kind": tag, "value": value}, role=st.just("tool"), toolCallId=_IDS, name=strategies.NAMES)


_ITEMS = st.sampled_from(
    (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2ln"},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "c2ln", "summary": []},
        {"type": "strange"},
        {"signature": {"family": "google", "data": "c2ln"}, "redacted": True},
        None,
    )
)


@st.composite
def agent_sdk(draw: DrawFn) -> dict[str, Any]:
    bag = "provider_meta"
    kind = draw(st.sampled_from(("user", "system", "assistant", "assistant", "reasoning", "tool", "tool")))
    content = contents(bag)
    if kind == "tool":
        return _with(
            draw,
            {"role": kind, "content": draw(content)},
            tool_call_id=_IDS,
            tool_name=strategies.NAMES,
            is_error=st.booleans(),
            output_ref=st.just({"id": "out_1", "byte_size": 10, "line_count": 2}),
            trimmed=st.booleans(),
            kind=st.sampled_from(("data", "text")),
        )
    if kind == "reasoning":
        return _with(draw, {"role": kind}, content=_WORDS | st.none(), raw_item=_ITEMS)
    if kind == "assistant":
        made = st.lists(calls(bag), max_size=2)
        return _with(draw, {"role": kind}, content=content | st.none(), tool_calls=made, refusal=_REFUSALS)
    return _with(draw, {"role": kind, "content": draw(content)}, name=strategies.NAMES, cache=st.booleans())


@st.composite
def _chat_parts(draw: DrawFn) -> Any:
    kind = draw(st.sampled_from(("text", "bare", "call", "flat", "result", "strange", "reasoning")))
    if kind == "bare":
        return draw(_WORDS)
    if kind == "text":
        return _with(draw, {"type": "text", "content": draw(_WORDS)}, metadata=_BAGS)
    if kind in {"call", "flat"}:
        arguments = st.dictionaries(st.just("city"), _WORDS, max_size=1) | st.none() | st.just('{"city": "x"}')
        call = _with(
            draw,
            {"name": draw(strategies.NAMES)},
            arguments=arguments,
            tool_call_id=_IDS | st.none(),
            metadata=_BAGS,
        )
        return {"type": "tool_call", **call} if kind == "flat" else _with(draw, {"type": "tool_call", "content": call})
    if kind == "result":
        return _with(
            draw,
            {"type": "tool_result", "content": draw(strategies.JSON_VALUES)},
            name=strategies.NAMES,
            tool_call_id=_IDS | st.none() | strategies.NAMES,
            is_error=st.booleans(),
            kind=st.sampled_from(("data", "x")),
        )
    if kind == "reasoning":
        return _with(draw, {"type": "reasoning", "content": draw(_WORDS)}, redacted=st.booleans(), metadata=_BAGS)
    return _with(draw, {"type": "strange"})


@st.composite
def multi_llm_chat(draw: DrawFn) -> dict[str, Any]:
    role = draw(st.sampled_from(("user", "gemini", "chatgpt", "claude", "assistant", "tool", "tool", "system")))
    content = _WORDS | st.lists(_chat_parts(), max_size=3) | st.none()
    return _with(
        draw, {"role": role}, content=content, name=strategies.NAMES, tool_call_id=_IDS, is_error=st.booleans()
    )


RECORD_STRATEGIES: dict[str, SearchStrategy[dict[str, Any]]] = {
    "universal": universal(),
    "modular-prompt": modular_prompt(),
    "agent-sdk": agent_sdk(),
    "multi-llm-chat": multi_llm_chat(),
}

# ── whole histories ───────────────────────────────────────────────────────────────────────────────────────────

_TOOLS = st.lists(
    st.sampled_from(
        (
            {"name": "f", "description": "d", "parameters": _SCHEMA, "strict": True},
            {"name": "g"},
            {"type": "function", "function": {"name": "h", "parameters": _SCHEMA, "x": 1}},
            {"function": {"name": "i"}, "y": 2},
            {"type": "web_search", "max": 1},
            {"type": "function", "name": "j"},
        )
    ),
    max_size=2,
    unique_by=str,
)
_CHOICES = st.sampled_from(
    (
        "auto",
        "none",
        "required",
        "f",
        {"name": "f"},
        {"type": "function", "function": {"name": "f"}},
        {"function": {"name": "f", "x": 1}},
        {"type": "tool", "name": "f", "y": 1},
    )
)
_MODES = ("auto", "none", "required")
CHOICE_KEY = {"modular-prompt": "toolChoice"}


@st.composite
def histories(draw: DrawFn, name: str) -> Any:
    """A list of records, or an object that holds it."""
    records = draw(st.lists(RECORD_STRATEGIES[name], max_size=4))
    if draw(st.booleans()):
        return records
    key = "turns" if name == "multi-llm-chat" and draw(st.booleans()) else "messages"
    body = {key: records}
    choice = CHOICE_KEY.get(name, "tool_choice")
    if name == "modular-prompt" and draw(st.booleans()):
        choice = "tool_choice"
    further = {"system_prompt": _WORDS} if name == "multi-llm-chat" else {}
    whole = _with(draw, body, tools=_TOOLS, model=st.just("m"), **{choice: _CHOICES}, **further)
    if whole.get(choice) in _MODES or choice not in whole:
        return whole
    return {**whole, "tools": [{"name": "f"}, *(tool for tool in whole.get("tools", ()) if tool.get("name") != "f")]}


# ── samples: the ordinary history of each format ──────────────────────────────────────────────────────────────

_PIXEL = f"data:image/png;base64,{PIXEL}"
_DEFINITION = {"name": "get_weather", "description": "Weather", "parameters": _SCHEMA}

SAMPLES: dict[str, list[Any]] = {
    "universal": [
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is it?"},
                        {"type": "image_url", "image_url": {"url": _PIXEL}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": "Let me see.",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "name": "get_weather",
                            "arguments": {"city": "Oslo"},
                            "raw_context": {"thoughtSignature": "c2lnbmF0dXJl"},
                        },
                        {"id": "call_2", "name": "get_weather", "arguments": {"city": "Nowhere"}},
                    ],
                },
                {"tool_call_id": "call_1", "name": "get_weather", "result": {"temp": 22}, "is_error": False},
                {"tool_call_id": "call_2", "name": "get_weather", "result": "no such city", "is_error": True},
                {"role": "assistant", "content": "22 degrees."},
                {"role": "user", "content": "Thanks"},
            ],
            "tools": [_DEFINITION],
            "tool_choice": {"name": "get_weather"},
        },
        [
            {"role": "user", "content": "Weather?"},
            {"id": "call_1", "name": "get_weather", "arguments": {"city": "Oslo"}},
            {
                "tool_call_id": "call_1",
                "name": "get_weather",
                "result": "22",
                "is_error": False,
                "multimodal_parts": [{"type": "image_url", "image_url": {"url": _PIXEL}}],
            },
        ],
    ],
    "modular-prompt": [
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": "",
                    "toolCalls": [
                        {
                            "id": "call_1",
                            "name": "get_weather",
                            "arguments": {"city": "Oslo"},
                            "metadata": {"thoughtSignature": "c2lnbmF0dXJl"},
                        },
                        {"id": "call_2", "name": "get_weather", "arguments": {"city": "Nowhere"}},
                    ],
                },
                {"role": "tool", "toolCallId": "call_1", "name": "get_weather", "kind": "data", "value": {"temp": 22}},
                {
                    "role": "tool",
                    "toolCallId": "call_2",
                    "name": "get_weather",
                    "kind": "error",
                    "value": "no such city",
                },
                {"role": "assistant", "content": "22 degrees."},
                {"role": "user", "content": "Thanks"},
            ],
            "tools": [_DEFINITION],
            "toolChoice": {"name": "get_weather"},
        },
        {
            "messages": [
                {"role": "user", "content": "Weather?"},
                {
                    "role": "assistant",
                    "content": "",
                    "toolCalls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"city":"tokyo"}'},
                        }
                    ],
                },
                {"role": "tool", "content": '{"temp":22}', "toolCallId": "call_1", "name": "get_weather"},
            ],
            "tools": [{"type": "function", "function": _DEFINITION}],
            "toolChoice": {"type": "function", "function": {"name": "get_weather"}},
        },
    ],
    "agent-sdk": [
        {
            "messages": [
                {"role": "system", "content": "Be brief.", "cache": True},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is it?"},
                        {"type": "image_url", "image_url": {"url": _PIXEL, "detail": "low", "media_type": "image/png"}},
                        {
                            "type": "document",
                            "source": {"data": "JVBERi0xLjQKJSVFT0YK", "media_type": "application/pdf"},
                        },
                    ],
                },
                {
                    "role": "reasoning",
                    "content": "hm",
                    "raw_item": {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"},
                },
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
                            "provider_meta": {"thoughtSignature": "c2lnbmF0dXJl"},
                        },
                        {"id": "call_2", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "tool_name": "get_weather", "content": "22"},
                {
                    "role": "tool",
                    "tool_call_id": "call_2",
                    "tool_name": "get_weather",
                    "content": "no such city",
                    "is_error": True,
                },
                {"role": "assistant", "content": "22 degrees."},
                {"role": "user", "content": "Thanks", "name": "ann"},
            ],
            "tools": [_DEFINITION],
            "tool_choice": "get_weather",
        },
    ],
    "multi-llm-chat": [
        [
            {"role": "user", "content": [{"type": "text", "content": "Weather?"}]},
            {
                "role": "gemini",
                "content": [
                    {"type": "text", "content": "Let me check."},
                    {
                        "type": "tool_call",
                        "content": {"name": "get_weather", "arguments": {"city": "Oslo"}, "tool_call_id": "call_1"},
                    },
                    {
                        "type": "tool_call",
                        "name": "get_weather",
                        "arguments": {"city": "Nowhere"},
                        "tool_call_id": "call_2",
                    },
                ],
            },
            {
                "role": "tool",
                "content": [
                    {"type": "tool_result", "name": "get_weather", "content": '{"temp": 22}', "tool_call_id": "call_1"},
                    {
                        "type": "tool_result",
                        "name": "get_weather",
                        "content": "no such city",
                        "tool_call_id": "call_2",
                        "is_error": True,
                    },
                ],
            },
            {"role": "chatgpt", "content": "It is 22 degrees."},
            {"role": "user", "content": "Thanks"},
        ],
        {
            "display_name": "Weather",
            "system_prompt": "Be brief.",
            "turns": [
                {"role": "user", "content": "Hello"},
                {"role": "gemini", "content": "Hi there"},
                {"role": "user", "content": "Go on"},
            ],
            "metadata": {"schema_version": 2, "created_at": "2026-02-01T00:00:00+00:00"},
        },
    ],
}
