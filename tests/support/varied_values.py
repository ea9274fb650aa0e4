"""Requests and answers by construction: every choice of a setting, a medium, a schema, a tool, an order of messages.

`requests(models)` and `answers()` yield (group, title, value). The groups are what tests/golden names in its digests.
"""
# ruff: noqa: E501 - a case per line reads better

import base64
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, get_args

from dragoman import ir
from tests.support.bodies import PIXEL

_DATA = base64.b64encode(b"some bytes of a file").decode()
_USER, _GO_ON = ir.Message("user", "hi"), ir.Message("user", "go on")
_FAMILIES = (
    "openai",
    "openai-responses",
    "anthropic",
    "google",
    "bedrock",
    "cohere",
    "gemini-interactions",
    "dragoman",
)
_OBJECT: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

Cases = Iterator[tuple[str, str, Any]]
Groups = tuple[Callable[[tuple[str, ...]], Cases], ...]


def _asked(model: str | None = "some-model", *messages: ir.Message, **settings: Any) -> ir.Request:
    return ir.Request(model, messages or (_USER,), **settings)


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────

_NUMBERS = (-1, 0, 1, 2, 5, 21, 128, 1024, 2**31, 2**63, 2**64)
_SHARES = (-2.5, -0.5, 0.0, 0.001, 0.5, 0.995, 1.0, 1.5, 2.0, 2.5)
_STOPS = ((), ("",), (" ",), ("END",), ("END", "END"), tuple(f"end {number}" for number in range(6)))
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "max_output_tokens": _NUMBERS,
    "temperature": _SHARES,
    "top_p": _SHARES,
    "top_k": _NUMBERS,
    "presence_penalty": _SHARES,
    "frequency_penalty": _SHARES,
    "seed": _NUMBERS,
    "candidates": (0, 1, 2, 9),
    "stop": _STOPS,
    "parallel_tool_calls": (True, False),
    "stream": (True, False),
    "store": (True, False),
    "obfuscation": (True, False),
    "logprobs": (True, False),
    "top_logprobs": (0, 1, 21),
    "max_tool_calls": (0, 1),
    "verbosity": ("low", "medium", "high", "odd"),
    "service_tier": ("auto", "default", "flex", "priority", "scale", "standard_only", "odd", ""),
    "user": ("", "ann", "ann@example.org", "u" * 300),
    "safety_identifier": ("", "ann", "u" * 300),
    "labels": ({}, {"team": "a"}, {"Team": "A b", "user_id": "ann"}, {f"key{number}": "v" for number in range(70)}),
    "prompt_cache_key": ("", "k"),
    "prompt_cache_retention": ("in_memory", "24h", "odd"),
    "prompt_cache_options": ({}, {"mode": "explicit"}, {"mode": "implicit", "ttl": "1h"}),
    "modalities": (("text",), ("audio",), ("text", "audio"), ("text", "image"), ("image",), ("smell",)),
    "moderation": ({}, {"model": "m"}),
    "cache": (ir.Cache(), ir.Cache("5m"), ir.Cache("1h"), ir.Cache("2h")),
}


def _settings(models: tuple[str, ...]) -> Cases:
    tool = ir.ToolDefinition("look", parameters=_OBJECT)
    for name, values in _SETTINGS.items():
        for number, value in enumerate(values):
            for model in (None, *models):
                yield f"setting {name}", f"{number} {model}", _asked(model, **{name: value})
            yield f"setting {name}", f"{number} with tools", _asked(tools=(tool,), **{name: value})
    pairs = {"temperature": 0.5, "top_p": 0.5, "top_k": 5, "seed": 7, "logprobs": True, "max_output_tokens": 100}
    for (one, first), (other, second) in product(pairs.items(), pairs.items()):
        if one < other:
            for model in models:
                yield "two settings", f"{one} {other} {model}", _asked(model, **{one: first, other: second})


def _reasoning(models: tuple[str, ...]) -> Cases:
    efforts = (None, "none", "minimal", "low", "medium", "high", "xhigh", "max", "odd")
    budgets = (None, -1, 0, 1, 512, 1024, 2049, 8193, 24577, 40000)
    given: list[ir.ReasoningSettings] = []
    for mode in (None, "off", "on", "adaptive"):
        given += [ir.ReasoningSettings(mode, effort) for effort in efforts]
        given += [ir.ReasoningSettings(mode, budget_tokens=budget) for budget in budgets]
        given += [ir.ReasoningSettings(mode, visible=visible) for visible in (True, False)]
        given += [ir.ReasoningSettings(mode, "high", 4000, visible) for visible in (None, True, False)]
    tool = ir.ToolDefinition("look", parameters=_OBJECT)
    for number, reasoning in enumerate(given):
        for model in models:
            yield "reasoning", f"{number} {model}", _asked(model, reasoning=reasoning)
            yield "reasoning", f"{number} {model}, 900", _asked(model, reasoning=reasoning, max_output_tokens=900)
        more = {"temperature": 0.5, "top_k": 4, "tools": (tool,), "tool_choice": ir.ToolChoice("required")}
        yield "reasoning with others", str(number), _asked(models[0], reasoning=reasoning, **more)


# ── schemas and tools ─────────────────────────────────────────────────────────────────────────────────────────

_TEXT, _NODE = {"type": "string"}, {"$ref": "#/$defs/node"}
SCHEMAS: dict[str, Any] = {
    "empty": {},
    "no properties": {"type": "object", "properties": {}},
    "object": _OBJECT,
    "closed": {**_OBJECT, "additionalProperties": False},
    "open": {**_OBJECT, "additionalProperties": True},
    "typed rest": {**_OBJECT, "additionalProperties": _TEXT},
    "optional": {"type": "object", "properties": {"a": _TEXT, "b": {"type": ["integer", "null"]}}},
    "text": _TEXT,
    "array": {"type": "array", "items": _OBJECT},
    "described": {
        **_OBJECT,
        "title": "T",
        "description": "D",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    },
    "root union": {"anyOf": [_OBJECT, {"type": "object", "properties": {"b": {"type": "integer"}}}]},
    "root one of": {"oneOf": [_OBJECT, {"type": "null"}]},
    "root all of": {"allOf": [_OBJECT, {"type": "object", "properties": {"b": {"type": "integer"}}}]},
    "recursive": {"$defs": {"node": {"type": "object", "properties": {"next": _NODE}}}, **_NODE},
    "definitions": {**_OBJECT, "definitions": {"n": _TEXT}, "properties": {"city": {"$ref": "#/definitions/n"}}},
    "lost reference": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
    "true": {"type": "object", "properties": {"a": True, "b": False}},
    "untyped": {"type": "object", "properties": {"a": {}, "b": {"description": "d"}, "c": {"enum": [1, "x", None]}}},
    "tuple": {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [_TEXT], "items": False}}},
    "old tuple": {"type": "object", "properties": {"a": {"type": "array", "items": [_TEXT, {"type": "integer"}]}}},
    "bare array": {"type": "object", "properties": {"a": {"type": "array"}}},
    "conditional": {**_OBJECT, "if": {"required": ["city"]}, "then": {}, "else": {}, "dependentRequired": {"a": ["b"]}},
    "pattern properties": {**_OBJECT, "patternProperties": {"^a": _TEXT}, "propertyNames": {"pattern": "^a"}},
    "odd names": {"type": "object", "properties": {"a b": _TEXT, "$ref": _TEXT, "ä": _TEXT}, "required": ["a b"]},
    "required twice": {**_OBJECT, "required": ["city", "city", "gone"]},
}
_KEYWORDS: dict[str, tuple[Any, ...]] = {
    "string": (
        {"enum": ["a", "b"]}, {"enum": []}, {"const": "a"}, {"format": "date-time"}, {"format": "odd"}, {"default": "a"},
        {"format": "date"}, {"format": "uuid"}, {"format": "email"}, {"format": "enum", "enum": ["a"]},
        {"pattern": "^a+$"}, {"pattern": "(?=a)b"}, {"minLength": 1}, {"maxLength": 9}, {"examples": ["a"]},
        {"example": "a"}, {"nullable": True}, {"readOnly": True}, {"deprecated": True}, {"x-own": 1}, {"title": "T"},
        {"$comment": "c"}, {"contentEncoding": "base64"}, {"not": {"const": "a"}}, {"anyOf": [_TEXT, {"type": "null"}]},
    ),
    "integer": (
        {"minimum": 1}, {"maximum": 9}, {"exclusiveMinimum": 1}, {"exclusiveMaximum": 9}, {"multipleOf": 2},
        {"enum": [1, 2]}, {"const": 1}, {"format": "int32"}, {"format": "int64"}, {"default": 1}, {"minimum": 2**63},
    ),
    "number": ({"minimum": 0.5}, {"format": "float"}, {"format": "double"}, {"multipleOf": 0.1}, {"enum": [0.5]}),
    "boolean": ({"const": True}, {"enum": [True]}, {"default": False}),
    "null": ({}, {"const": None}),
    "array": (
        {"items": _TEXT}, {"items": _TEXT, "minItems": 1}, {"items": _TEXT, "minItems": 2, "maxItems": 3},
        {"items": _TEXT, "uniqueItems": True}, {"items": _TEXT, "contains": _TEXT}, {"items": True}, {"items": {}},
    ),
    "object": (
        {}, {"properties": {"x": _TEXT}}, {"minProperties": 1}, {"maxProperties": 1}, {"additionalProperties": False},
        {"properties": {"x": _TEXT}, "propertyOrdering": ["x"]}, {"unevaluatedProperties": False},
    ),
}  # fmt: skip


def schemas() -> Iterator[tuple[str, Any]]:
    yield from SCHEMAS.items()
    for kind, keywords in _KEYWORDS.items():
        for number, given in enumerate(keywords):
            yield f"{kind} {number}", {"type": "object", "properties": {"a": {"type": kind, **given}}}


def _schemas(models: tuple[str, ...]) -> Cases:
    """Of a tool and of the answer."""
    for (name, schema), strict in product(schemas(), (None, True, False)):
        model = models[0] if strict is None else models[-1]
        tool = ir.ToolDefinition("look", "Looks.", schema, strict)
        output = ir.StructuredOutput("schema", schema, None if strict is None else "answer", None, strict)
        yield f"schema of a tool, {name.split()[0]}", f"{name} {strict}", _asked(model, tools=(tool,))
        yield f"schema of the answer, {name.split()[0]}", f"{name} {strict}", _asked(model, output=output)


def _structure(models: tuple[str, ...]) -> Cases:
    tool = ir.ToolDefinition("look", parameters=_OBJECT)
    names = (None, "", "a b", "n" * 70, "ok")
    for model in models:
        for name, description, strict in product(names, (None, "D"), (None, True)):
            output = ir.StructuredOutput("schema", _OBJECT, name, description, strict)
            yield "structured output", f"{model} {name} {description} {strict}", _asked(model, output=output)
        for kind, schema in (("json", None), ("json", _OBJECT), ("schema", None)):
            output = ir.StructuredOutput(kind, schema)  # type: ignore[arg-type]
            yield "structured output", f"{model} {kind} {schema is None}", _asked(model, output=output)
            yield (
                "structured output",
                f"{model} {kind} {schema is None}, tool",
                _asked(model, output=output, tools=(tool,)),
            )
            wish = ir.Message("user", "Answer in JSON.")
            yield "structured output", f"{model} {kind} {schema is None}, said", _asked(model, wish, output=output)


def _tools(models: tuple[str, ...]) -> Cases:
    look, other, shell = ir.ToolDefinition("look", parameters=_OBJECT), ir.ToolDefinition("other"), ir.CustomTool("sh")
    search = ir.ProviderTool("web_search", kind="web_search")
    sets: dict[str, tuple[Any, ...]] = {
        "none": (), "one": (look,), "two": (look, other), "custom": (shell,), "hosted": (search,),
        "mixed": (look, shell, search), "twice": (look, look), "strict": (ir.ToolDefinition("look", strict=True), look),
        "deferred": (ir.ToolDefinition("look", deferred=True), ir.ToolDefinition("b", deferred=False)),
        "only deferred": (ir.ToolDefinition("look", deferred=True),),
    }  # fmt: skip
    for (name, tools), mode in product(sets.items(), (None, "auto", "none", "required")):
        for names, parallel in product(((), ("look",), ("look", "other"), ("gone",), ("sh",)), (None, True, False)):
            if mode is None and names:
                continue
            choice = None if mode is None else ir.ToolChoice(mode, names)
            request = _asked(models[0], tools=tools, tool_choice=choice, parallel_tool_calls=parallel)
            yield f"tool choice, {name}", f"{mode} {names} {parallel}", request
    odd = ("look.up", "look up", "7look", "-look", "ä", "l" * 65, "l" * 129, "look:up", "", "look/up", "web_search")
    for name in odd:
        call = ir.ToolCall("call_1", name, {"city": "Oslo"})
        result = ir.ToolResult("call_1", name, "text", "sunny")
        messages = (_USER, ir.Message("assistant", (call,)), ir.Message("tool", (result,)))
        tools = (ir.ToolDefinition(name), ir.ToolDefinition("look_up"), ir.CustomTool(f"{name}!"))
        yield (
            "odd names",
            name,
            _asked(models[0], *messages, tools=tools, tool_choice=ir.ToolChoice("required", (name,))),
        )


_FORMATS_OF_TEXT: tuple[Any, ...] = (
    None, {"type": "text"}, {"type": "grammar", "syntax": "regex", "definition": "a+"}, {"type": "odd"},
    {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}},
)  # fmt: skip


def _hosted(models: tuple[str, ...]) -> Cases:
    options: dict[str, Any] = {
        "none": {}, "max_uses": {"max_uses": 3}, "allowed": {"allowed_domains": ("a.org", "b.org")},
        "blocked": {"blocked_domains": ("a.org",)}, "both": {"allowed_domains": ("a.org",), "blocked_domains": ("b.org",)},
        "location": {"location": ir.Location("DE", "Berlin", "Berlin", "Europe/Berlin")},
        "no location": {"location": ir.Location()}, "context": {"context_size": "high"},
        "stores": {"stores": ("s1", "s2")}, "max_results": {"stores": ("s1",), "max_results": 4},
        "container": {"container": "c1"}, "files": {"file_ids": ("f1",)}, "cache": {"cache": ir.Cache("1h")},
        "server": {"server_url": "https://example.org/mcp"},
        "server, all": {
            "server_url": "https://example.org/mcp", "authorization": "t", "headers": {"x": "y"},
            "allowed_tools": ("a", "b"), "approval": "never",
        },
        "approval": {"server_url": "https://example.org/mcp", "approval": "always"},
    }  # fmt: skip
    for kind, (name, given) in product(get_args(ir.HostedKind), options.items()):
        tool = ir.ProviderTool(kind, kind=kind, **given)
        for model in models:
            yield f"hosted {kind}", f"{name} {model}", _asked(model, tools=(tool,))
        yield f"hosted {kind}", f"{name}, forced", _asked(tools=(tool,), tool_choice=ir.ToolChoice("required", (kind,)))
        limited = _asked(models[0], tools=(tool, ir.ProviderTool("web_search", kind="web_search")), max_tool_calls=2)
        yield f"hosted {kind}", f"{name}, limited", limited
        both = (tool, ir.ToolDefinition("look"), tool)
        yield f"hosted {kind}", f"{name}, among others", _asked(models[0], tools=both)
    for number, form in enumerate(_FORMATS_OF_TEXT):
        yield "custom tool", str(number), _asked(models[0], tools=(ir.CustomTool("sh", "Runs.", form),))


# ── media ─────────────────────────────────────────────────────────────────────────────────────────────────────

_TYPES = (
    "image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/heic",
    "image/svg+xml", "image/*", "", "application/pdf", "application/json", "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/octet-stream", "text/plain",
    "text/csv", "text/html", "text/markdown", "text/x-markdown", "text/x-python", "video/mp4", "video/webm",
    "video/quicktime", "video/mov", "video/mpeg", "video/mpg", "video/x-flv", "video/x-matroska", "video/x-ms-wmv",
    "video/3gpp", "video/3gp", "audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/flac", "audio/opus",
    "audio/aac", "audio/x-aac", "audio/L16", "audio/pcm", "audio/webm", "audio/ogg", "audio/mp4", "audio/m4a",
    "audio/mkv", "audio/mka", "audio/mpga", "audio/odd", "odd",
)  # fmt: skip
_URLS = (
    "https://example.org/a", "https://example.org/a.png", "https://example.org/a.pdf", "s3://bucket/a.mp4",
    "gs://bucket/a.wav", "https://www.youtube.com/watch?v=1", "https://youtu.be/1", "ftp://example.org/a", "a b",
    "https://generativelanguage.googleapis.com/v1beta/files/1", f"data:image/png;base64,{PIXEL}", "data:,a",
)  # fmt: skip


def _media(models: tuple[str, ...]) -> Cases:
    kinds: tuple[type[Any], ...] = (ir.Image, ir.Document, ir.Audio)
    for kind, media_type in product(kinds, _TYPES):
        for name, given in (("data", {"data": _DATA}), ("url", {"url": _URLS[0]}), ("file", {"file_id": "file-1"})):
            part = kind(media_type=media_type, **given)
            for model in models[:2]:
                message = ir.Message("user", (part, ir.Text("What is it?")))
                yield (
                    f"media {media_type.partition('/')[0]}",
                    f"{media_type} {kind.__name__} {name} {model}",
                    _asked(model, message),
                )
            yield (
                f"media {media_type.partition('/')[0]}",
                f"{media_type} {kind.__name__} {name} in a result",
                _asked(models[0], *_answered(part)),
            )
    for kind, url in product(kinds, _URLS):
        for media_type in ("image/png", ""):
            message = ir.Message("user", (kind(media_type=media_type, url=url), ir.Text("What is it?")))
            yield "media at an address", f"{url} {kind.__name__} {media_type}", _asked(models[0], message)
    yield from _documents(models)


def _documents(models: tuple[str, ...]) -> Cases:
    titles = (None, "", "report.pdf", "A report (1)", "a  b\n[c]_ä", "t" * 300)
    for title, cite, context in product(titles, (None, True, False), (None, "C")):
        given: dict[str, Any] = {"title": title, "cite": cite, "context": context}
        texts = (
            ir.Document("text/plain", text="Some words.", **given),
            ir.Document("application/pdf", data=_DATA, **given),
            ir.Document("text/plain", data=_DATA, **given),
        )
        for number, part in enumerate(texts):
            case = f"{number} {title} {cite} {context}"
            yield "documents", case, _asked(models[0], ir.Message("user", (part, ir.Text("Read."))))
            yield "documents", f"{case}, in a result", _asked(models[0], *_answered(part))
            yield "documents", f"{case}, twice", _asked(models[0], ir.Message("user", (part, part)))
    for detail in ("low", "high", "auto", "original", "odd"):
        image = ir.Image("image/png", data=PIXEL, detail=detail)
        for model in models:
            yield "detail of images", f"{detail} {model}", _asked(model, ir.Message("user", (image,)))


def _answered(*parts: Any) -> tuple[ir.Message, ...]:
    call = ir.ToolCall("call_1", "look", {"city": "Oslo"})
    result = ir.ToolResult("call_1", "look", "multimodal", parts=parts)
    return _USER, ir.Message("assistant", (call,)), ir.Message("tool", (result,))


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def _orders(models: tuple[str, ...]) -> Cases:
    """Every order of three messages, with every content that a role may have."""
    call, result = ir.ToolCall("call_1", "look", {"city": "Oslo"}), ir.ToolResult("call_1", "look", "text", "sunny")
    turns: dict[str, ir.Message] = {
        "s": ir.Message("system", "Be brief."), "S": ir.Message("system", (ir.Text("Be"), ir.Text("kind.", cache=ir.Cache()))),
        "u": _USER, "U": ir.Message("user", (ir.Text("a"), ir.Image("image/png", data=PIXEL), ir.Text(""))),
        "a": ir.Message("assistant", "yes"), "c": ir.Message("assistant", (ir.Text("See:"), call)),
        "C": ir.Message("assistant", (ir.Reasoning("Hm"), call, ir.ToolCall("call_2", "look", {}))),
        "r": ir.Message("tool", (result,)), "e": ir.Message("user", ""), "E": ir.Message("assistant", ()),
        "b": ir.Message("assistant", " \n"), "n": ir.Message("user", "named", name="ann"),
    }  # fmt: skip
    longer = {
        **turns, "w": ir.Message("assistant", "yes \n"), "W": ir.Message("assistant", (ir.Text("a"), ir.Text("b "))),
        "x": ir.Message("system", " "), "R": ir.Message("tool", (ir.ToolResult("call_2", "look", "error", " "),)),
    }  # fmt: skip
    tools = (ir.ToolDefinition("look", parameters=_OBJECT),)
    for names in product(turns, turns, turns):
        messages = [turns[name] for name in names]
        yield f"messages {names[0]}", "".join(names), ir.Request(models[0], tuple(messages), tools=tools)
    orders = ("ucru", "uCru", "ucrcr", "sscru", "uaus", "urc", "uccrr", "ucrra", "uCrcr", "usu", "nn", "uab")
    for order in (
        *orders,
        "uw",
        "w",
        "uaw",
        "sw",
        "ucrw",
        "ucw",
        "uW",
        "uwa",
        "xu",
        "uxa",
        "sxw",
        "uCRr",
        "uCrR",
        "uR",
    ):
        messages = [longer[name] for name in order]
        yield "longer", order, ir.Request(models[-1], tuple(messages), tools=tools)
        yield "longer", f"{order} without tools", ir.Request(models[0], tuple(messages))


def _marks(models: tuple[str, ...]) -> Cases:
    """Cache marks: how long, where and how many."""
    for ttls in product((None, "5m", "1h", "2h"), repeat=2):
        caches = [ir.Cache(ttl) for ttl in ttls]
        texts = tuple(ir.Text(f"text {number}", cache=cache) for number, cache in enumerate(caches))
        tool = ir.ToolDefinition("look", cache=caches[0])
        for model in models:
            yield "cache", f"{ttls} {model}", _asked(model, ir.Message("system", texts), _USER)
            yield "cache", f"{ttls} {model}, user", _asked(model, ir.Message("user", texts))
            yield "cache", f"{ttls} {model}, tool", _asked(model, ir.Message("user", texts[1:]), tools=(tool,))
            yield "cache", f"{ttls} {model}, whole", _asked(model, ir.Message("user", texts[1:]), cache=caches[0])
    many = tuple(ir.Text(f"text {number}", cache=ir.Cache("1h" if number > 3 else None)) for number in range(7))
    blank = (ir.Text("", cache=ir.Cache()), ir.Text("a"), ir.Text(" ", cache=ir.Cache()))
    image = (
        ir.Image("image/png", data=PIXEL, cache=ir.Cache()),
        ir.Document("application/pdf", data=_DATA, cache=ir.Cache()),
    )
    for name, parts in (("many", many), ("blank", blank), ("media", image)):
        for model in models:
            yield "cache", f"{name} {model}", _asked(model, ir.Message("user", parts))
            yield "cache", f"{name} {model}, system", _asked(model, ir.Message("system", parts), _USER)
            yield "cache", f"{name} {model}, result", _asked(model, *_answered(*parts))


def _values(models: tuple[str, ...]) -> Cases:
    """Arguments of calls and values of results."""
    arguments: tuple[dict[str, Any], ...] = (
        {"arguments": {}}, {"arguments": {"a": None, "b": [1, {"c": 1.0}], "ä": "\ud7ff\n"}},
        {"arguments": {"n": 2**60}}, {"arguments": {}, "arguments_text": ""}, {"arguments": {"a": 1}, "arguments_text": '{ "a": 1 }'},
        {"arguments": {"input": "ls"}, "arguments_text": "ls", "custom": True}, {"arguments": {"input": "ls"}},
        {"arguments": {"a": 1}, "incomplete": True}, {"arguments": {}, "invented_id": True},
        {"arguments": {}, "cache": ir.Cache()},
    )  # fmt: skip
    results: tuple[dict[str, Any], ...] = (
        {"kind": "text", "value": ""}, {"kind": "text", "value": '{"a": 1}'}, {"kind": "data", "value": {"a": [1, None]}},
        {"kind": "data", "value": [1, 2]}, {"kind": "data", "value": None}, {"kind": "data", "value": 7},
        {"kind": "data", "value": "word"}, {"kind": "data", "value": {"result": 1}}, {"kind": "data", "value": {"error": "x"}},
        {"kind": "data", "value": {"output": "x"}}, {"kind": "error", "value": "broke"}, {"kind": "error", "value": {"code": 7}},
        {"kind": "error", "value": ""}, {"kind": "multimodal", "parts": ()}, {"kind": "multimodal", "parts": (ir.Text("a"),)},
        {"kind": "multimodal", "parts": (ir.Text("a"), ir.Text("b", cache=ir.Cache()))},
        {"kind": "multimodal", "parts": (ir.Image("image/png", data=PIXEL), ir.Text("a"))},
        {"kind": "multimodal", "parts": (ir.SearchResult("kb://1", "T", ("a", "b"), cite=True), ir.SearchResult("s", "", ()))},
        {"kind": "text", "value": "x", "cache": ir.Cache("1h")},
    )  # fmt: skip
    tools = (ir.ToolDefinition("look", parameters=_OBJECT),)
    for number, given in enumerate(arguments):
        tool: Any = ir.CustomTool("look") if given.get("custom") else tools[0]
        call = ir.ToolCall("call_1", "look", **given)
        messages = (
            _USER,
            ir.Message("assistant", (call,)),
            ir.Message("tool", (ir.ToolResult("call_1", "look", "text", "x"),)),
        )
        for model in models:
            yield "arguments", f"{number} {model}", _asked(model, *messages, tools=(tool,))
        yield "arguments", f"{number}, undeclared", _asked(models[0], *messages)
    for number, given in enumerate(results):
        for model in models:
            result = ir.ToolResult("call_1", "look", **given)
            messages = (
                _USER,
                ir.Message("assistant", (ir.ToolCall("call_1", "look", {}),)),
                ir.Message("tool", (result,)),
            )
            yield "results", f"{number} {model}", _asked(model, *messages, tools=tools)
        lone = ir.Message("tool", (ir.ToolResult("call_9", "gone", **given),))
        yield "results", f"{number}, without a call", _asked(models[0], _USER, lone, tools=tools)


def signed_parts() -> Iterator[tuple[str, ir.AnyPart]]:
    for family, data in product(_FAMILIES, ("c2lnbmF0dXJl", "not base64!", "")):
        for of in (None, "rs_1"):
            signature = ir.Signature(family, data, of)
            name = f"{family} {data} {of}"
            yield f"thought {name}", ir.Reasoning("Hm", signature=signature)
            yield f"blank thought {name}", ir.Reasoning("", signature=signature)
            yield f"redacted {name}", ir.Reasoning("", redacted=True, signature=signature)
            yield f"text {name}", ir.Text("Hm", signature=signature)
            yield f"call {name}", ir.ToolCall("call_1", "look", {}, signature=signature)
    yield "unsigned", ir.Reasoning("Hm")
    yield "redacted, unsigned", ir.Reasoning("", redacted=True)


def _signatures(models: tuple[str, ...]) -> Cases:
    result = ir.Message("tool", (ir.ToolResult("call_1", "look", "text", "sunny"),))
    for name, part in signed_parts():
        more = (result,) if isinstance(part, ir.ToolCall) else (_GO_ON,)
        messages = (_USER, ir.Message("assistant", (part, ir.Text("done"))), *more)
        group = f"signed {name.split()[0]}"
        yield group, name, _asked(models[0], *messages, tools=(ir.ToolDefinition("look"),))
        if "rs_1" in name:
            on = ir.ReasoningSettings("on", budget_tokens=2048)
            yield group, f"{name}, thinking", _asked(models[0], *messages, reasoning=on)
            twice = ir.Message("assistant", (part, part, ir.Text("done")))
            yield group, f"{name}, twice", _asked(models[-1], _USER, twice, *more)


ALL: Groups = (
    _settings,
    _reasoning,
    _schemas,
    _structure,
    _tools,
    _hosted,
    _media,
    _orders,
    _marks,
    _values,
    _signatures,
)
ABOUT_SERVERS: Groups = (_settings, _reasoning, _structure, _tools, _hosted, _media, _values)
ABOUT_MESSAGES: Groups = (_documents, _orders, _values, _signatures)


def requests(models: tuple[str, ...], groups: Groups = ALL) -> Cases:
    for group in groups:
        yield from group(models)


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

_CITED = (
    ir.Citation(url="https://example.org", title="T", cited_text="some", start=0, end=4),
    ir.Citation(url="https://example.org"), ir.Citation(title="T", cited_text="some"), ir.Citation(start=2, end=99),
)  # fmt: skip
_CONTENTS: dict[str, tuple[Any, ...]] = {
    "nothing": (), "text": (ir.Text("some text"),), "blank": (ir.Text(""),), "two texts": (ir.Text("some"), ir.Text("text")),
    "refusal": (ir.Refusal("I will not."),), "text and refusal": (ir.Text("Well"), ir.Refusal("no.")),
    "thought": (ir.Reasoning("Hm"), ir.Text("some text")), "only a thought": (ir.Reasoning("Hm"),),
    "call": (ir.Text("See:"), ir.ToolCall("call_1", "look", {"city": "Oslo"})),
    "calls": (ir.ToolCall("call_1", "look", {}), ir.ToolCall("call_2", "look", {"a": 1}, incomplete=True)),
    "function call of a custom tool": (ir.ToolCall("call_1", "sh", {"input": "ls"}),),
    "custom call": (ir.ToolCall("call_1", "sh", {"input": "ls"}, "ls", custom=True),),
    "text behind a call": (ir.ToolCall("call_1", "look", {}), ir.Text("there")),
    "image": (ir.Image("image/png", data=PIXEL), ir.Text("a picture")), "image at a URL": (ir.Image(url="https://example.org/a"),),
    "sound": (ir.Audio("audio/wav", data=_DATA, transcript="hi"),), "document": (ir.Document("application/pdf", data=_DATA),),
    **{f"cited {number}": (ir.Text("some text", citations=(one,)),) for number, one in enumerate(_CITED)},
    "cited often": (ir.Text("some text", citations=_CITED), ir.Text("and more", citations=_CITED[:1])),
}  # fmt: skip


def _hosted_calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for kind in (None, *get_args(ir.HostedKind)):
        for family, error in product(("openai", "anthropic", "google"), (None, "broke")):
            own: dict[str, Any] = {"origin": family, "block": {"type": f"{kind}_call", "id": "ws_1"}, "kind": kind}
            call = ir.ServerToolCall("ws_1", str(kind), input={"query": "rain", "code": "1+1"}, server="srv", **own)
            found: dict[str, Any] = {
                "parts": (ir.Text("42"),),
                "sources": (ir.Citation(url="https://example.org"),),
                "error": error,
            }
            result = ir.ServerToolResult("ws_1", str(kind), **found, **own)
            yield f"{kind} {family} {error}", (call, result, ir.Text("done"))


def answers() -> Cases:
    usage = ir.Usage(input=9, output=5)
    for name, parts in [*_CONTENTS.items(), *((f"hosted {name}", parts) for name, parts in _hosted_calls())]:
        message = ir.Message("assistant", parts)
        reasons = get_args(ir.FinishReason) if name in _CONTENTS else ("stop", "length")
        for reason in (None, *reasons):
            finish = None if reason is None else ir.Finish(reason)
            yield f"answer {name.split()[0]}", f"{name} {reason}", ir.Completion((message,), finish, usage=usage)
    for reason, raw, stop, words in product(
        get_args(ir.FinishReason), (None, "odd"), (None, "", "END"), (None, "Because.")
    ):
        finish = ir.Finish(reason, raw=raw, stop_sequence=stop, explanation=words)
        for name in ("text", "call", "refusal", "nothing"):
            answer = ir.Completion((ir.Message("assistant", _CONTENTS[name]),), finish, usage=usage)
            yield f"finish {reason}", f"{raw} {stop} {words} {name}", answer
    yield from _candidates()
    yield from _counted()
    for name, part in signed_parts():
        message = ir.Message("assistant", (part, ir.Text("done")))
        yield f"answer, signed {name.split()[0]}", name, ir.Completion((message,), ir.Finish("stop"), usage=usage)


def _candidates() -> Cases:
    text, call = (ir.Message("assistant", _CONTENTS[name]) for name in ("text", "call"))
    probable = ir.TokenLogprob("some", -0.5, bytes=(115,), top_logprobs=(ir.TokenLogprob("any", -1.5),))
    for number, messages in enumerate(((), (text,), (text, call), (call, text, text))):
        for finish in (None, ir.Finish("stop"), ir.Finish("length")):
            finishes = tuple(finish for _ in messages)
            answer = ir.Completion(messages, finish, finishes=finishes, id="a", model="m", created=1_700_000_000)
            yield "candidates", f"{number} {finish}", answer
            for candidate in (0, 1):
                given = (ir.Logprobs((probable, probable), candidate),)
                yield (
                    "log probabilities",
                    f"{number} {finish} {candidate}",
                    ir.Completion(messages, finish, logprobs=given),
                )


def _counted() -> Cases:
    message = (ir.Message("assistant", "hi"),)
    for given in product((0, 9), (0, 5), (None, 0, 4), (None, 3), (None, 2), (None, 0, 14, 99)):
        names = ("input", "output", "cached", "cache_written", "reasoning", "total")
        counts: dict[str, Any] = dict(zip(names, given, strict=True))
        usage = ir.Usage(**counts)
        yield "usage", str(given), ir.Completion(message, ir.Finish("stop"), usage=usage)
    for tier in ("default", "priority", "flex", "batch", "odd", ""):
        yield "usage", tier, ir.Completion(message, ir.Finish("stop"), usage=ir.Usage(9, 5, service_tier=tier))
    for written, hour in product((None, 0, 3), (0, 1, 3, 5)):
        counted: dict[str, Any] = {"cache_written": written, "details": {"cache_written_1h": hour}}
        yield "usage", str(counted), ir.Completion(message, ir.Finish("stop"), usage=ir.Usage(9, 5, **counted))
    for details in ({"cache_written_1h": 3}, {"cache_written_5m": 3}, {"audio_input": 2}, {"odd": 1}, {"tool_use": 4}):
        usage = ir.Usage(input=9, output=5, cache_written=3, image=2, searches=1, details=details)
        yield "usage", str(details), ir.Completion(message, ir.Finish("stop"), usage=usage)


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────


def failures() -> Cases:
    for kind, status in product(get_args(ir.FailureKind), (None, 200, 400, 404, 418, 429, 500, 529)):
        yield f"failure {kind}", str(status), ir.Failure(kind, "It broke.", status)
    more: dict[str, tuple[Any, ...]] = {
        "code": ("context_length_exceeded", "odd"), "parameter": ("messages[0]",), "retry_after": (0.0, 0.5, 7.0, 86400.0),
        "request_id": ("req_1",), "raw_type": ("api_error", "odd"), "details": ({"a": 1}, [1], "x"), "message": ("", "a\nb"),
    }  # fmt: skip
    for name, values in more.items():
        for value in values:
            for kind in ("invalid_request", "rate_limit", "server"):
                given = {"kind": kind, "message": "It broke.", name: value}
                yield f"failure with {name}", f"{kind} {value}", ir.Failure(**given)
