"""One example for every field of every value of the intermediate format, by construction from its types.

`kinds()` are all kinds that a request or a completion can hold, found by following their annotations. `EXAMPLES` has a
plain value of each kind and, for every field, what to set; a new kind or field without an example fails a test.
"""

import base64
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from msgspec import Raw, structs

from dragoman import ir
from dragoman.ir.values import Value

MARK = "zqmark"
"""Part of every text that an example sets, so that it can be looked for in what is written."""
NUMBER = 7321
"""The same for whole numbers; fractions are `FRACTION`."""
FRACTION = 0.4375
DATA = base64.b64encode(b"data of the plain value").decode()
MARKED_DATA = base64.b64encode(f"{MARK} in other data".encode()).decode()
OWN, FOREIGN = "own family", "another family"
"""Stand-ins in metadata and signatures: the family of the target, and one that is not its own."""

Changes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    plain: Value
    fields: dict[str, Changes] = field(default_factory=dict)


def _set(**changes: Any) -> dict[str, Changes]:
    """Fields whose example is a single value of their own."""
    return {name: {name: value} for name, value in changes.items()}


_METADATA: dict[str, Changes] = {
    "metadata": {"metadata": {FOREIGN: {f"{MARK}_key": Raw(f'"{MARK}"'.encode())}}},
}
_SIGNATURE = ir.Signature(family=FOREIGN, data=MARKED_DATA)
_CACHE = ir.Cache(ttl="1h")
_MEDIA: dict[str, Changes] = {
    "data": {"data": MARKED_DATA},
    "url": {"data": None, "url": f"https://example.com/{MARK}"},
    "file_id": {"data": None, "file_id": f"file-{MARK}"},
    **_set(cache=_CACHE, signature=_SIGNATURE),
    **_METADATA,
}
_BLOCK = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
_MARKED_BLOCK = {**_BLOCK, "query": MARK}
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_MARKED_SCHEMA = {**_SCHEMA, "properties": {"city": {"type": "string", "description": MARK}}}

_SERVER: Changes = {"kind": "mcp", "server_url": "https://example.org"}

EXAMPLES: dict[type[Value], Example] = {
    ir.Signature: Example(
        ir.Signature(family=FOREIGN, data=DATA),
        _set(family=OWN, data=MARKED_DATA, id=f"rs_{MARK}"),
    ),
    ir.Cache: Example(ir.Cache(), _set(ttl="1h")),
    ir.Citation: Example(
        ir.Citation(url="https://example.com", start=0, end=4),
        {
            **_set(url=f"https://example.com/{MARK}", title=MARK, cited_text=MARK),
            "start": {"start": 2},
            "end": {"end": 3},
            **_METADATA,
        },
    ),
    ir.Text: Example(
        ir.Text("some text"),
        {
            **_set(text=MARK, citations=(ir.Citation(url=f"https://example.com/{MARK}", start=0, end=4),)),
            **_set(cache=_CACHE, signature=_SIGNATURE),
            **_METADATA,
        },
    ),
    ir.Reasoning: Example(
        ir.Reasoning(text="some thoughts"),
        {
            **_set(text=MARK, signature=_SIGNATURE),
            "redacted": {"text": "", "redacted": True, "signature": _SIGNATURE},
            **_METADATA,
        },
    ),
    ir.Refusal: Example(ir.Refusal("I will not."), {**_set(text=MARK), **_METADATA}),
    ir.Image: Example(
        ir.Image(media_type="image/png", data=DATA), {**_set(media_type="image/webp", detail="low"), **_MEDIA}
    ),
    ir.Document: Example(
        ir.Document(media_type="application/pdf", data=DATA),
        {
            **_set(media_type="text/csv", title=MARK, context=MARK, cite=True),
            "text": {"media_type": "text/plain", "data": None, "text": MARK},
            **_MEDIA,
        },
    ),
    ir.Audio: Example(
        ir.Audio(media_type="audio/wav", data=DATA),
        {**_set(media_type="audio/mp3", transcript=MARK), **_MEDIA},
    ),
    ir.ToolCall: Example(
        ir.ToolCall(id="call_1", name="look", arguments={"city": "Rome"}),
        {
            **_set(id=f"call_{MARK}", name=f"look_{MARK}", arguments={"city": MARK}),
            "arguments_text": {"arguments": {"city": MARK}, "arguments_text": f'{{ "city": "{MARK}" }}'},
            "custom": {"custom": True, "arguments": {"input": MARK}, "arguments_text": MARK},
            **_set(invented_id=True, incomplete=True, signature=_SIGNATURE, cache=_CACHE),
            **_METADATA,
        },
    ),
    ir.ToolResult: Example(
        ir.ToolResult(tool_call_id="call_1", name="look", kind="text", value="sunny"),
        {
            **_set(tool_call_id=f"call_{MARK}", name=f"look_{MARK}", value=MARK, cache=_CACHE),
            "kind": {"kind": "error", "value": MARK},
            "parts": {"kind": "multimodal", "value": None, "parts": (ir.Text(MARK),)},
            **_METADATA,
        },
    ),
    ir.SearchResult: Example(
        ir.SearchResult("kb://1", "Rain", ("It rains.",)),
        {**_set(source=f"kb://{MARK}", title=MARK, texts=(MARK,), cite=True, cache=_CACHE), **_METADATA},
    ),
    ir.ServerToolCall: Example(
        ir.ServerToolCall(
            id="ws_1", name="web_search", origin=FOREIGN, block=_BLOCK, kind="web_search", input={"query": "rain"}
        ),
        {
            **_set(input={"query": MARK}, kind="code_execution"),
            "server": {"kind": "mcp", "server": MARK},
            **_set(id=f"ws_{MARK}", name=f"search_{MARK}", origin=OWN, block=_MARKED_BLOCK),
            **_set(signature=_SIGNATURE, cache=_CACHE),
            **_METADATA,
        },
    ),
    ir.ServerToolResult: Example(
        ir.ServerToolResult(
            tool_call_id="ws_1",
            name="web_search",
            origin=FOREIGN,
            block=_BLOCK,
            kind="web_search",
            sources=(ir.Citation(url="https://example.com"),),
        ),
        {
            **_set(kind="code_execution", parts=(ir.Text(MARK),), error=MARK),
            **_set(sources=(ir.Citation(url=f"https://example.com/{MARK}"),)),
            **_set(tool_call_id=f"ws_{MARK}", name=f"search_{MARK}", origin=OWN, block=_MARKED_BLOCK),
            **_set(signature=_SIGNATURE, cache=_CACHE),
            **_METADATA,
        },
    ),
    ir.Opaque: Example(
        ir.Opaque(origin=FOREIGN, kind="mystery", block={"type": "mystery"}),
        _set(origin=OWN, kind=MARK, block={"type": "mystery", "say": MARK}, signature=_SIGNATURE),
    ),
    ir.Message: Example(
        ir.Message("user", "hi"),
        {"role": {"role": "system"}, "parts": {"parts": MARK}, **_set(name=MARK), **_METADATA},
    ),
    ir.ToolDefinition: Example(
        ir.ToolDefinition(name="look", parameters=_SCHEMA),
        {
            **_set(name=f"look_{MARK}", description=MARK, parameters=_MARKED_SCHEMA, strict=True, cache=_CACHE),
            **_set(deferred=True),
            **_METADATA,
        },
    ),
    ir.CustomTool: Example(
        ir.CustomTool(name="shell"),
        {
            **_set(name=f"shell_{MARK}", description=MARK),
            "format": {"format": {"type": "grammar", "syntax": "lark", "definition": f"start: {MARK}"}},
            **_METADATA,
        },
    ),
    ir.Location: Example(
        ir.Location(country="JP", region="Kanto"),
        _set(country=MARK, region=MARK, city=MARK, timezone=MARK),
    ),
    ir.ProviderTool: Example(
        ir.ProviderTool(name="web_search", kind="web_search"),
        {
            **_set(name=f"search_{MARK}", cache=_CACHE, kind="code_execution"),
            "origin": {"origin": OWN, "definition": {"type": "web_search"}},
            "definition": {"origin": OWN, "definition": {"type": "web_search", "say": MARK}},
            "functions": {"kind": None, "functions": (ir.ToolDefinition(name=f"look_{MARK}"),)},
            **_set(max_uses=NUMBER, allowed_domains=(f"{MARK}.org",), blocked_domains=(f"{MARK}.org",)),
            **_set(location=ir.Location(city=MARK), context_size="low"),
            "stores": {"kind": "file_search", "stores": (MARK,)},
            "max_results": {"kind": "file_search", "stores": ("s",), "max_results": NUMBER},
            "container": {"kind": "code_execution", "container": MARK},
            "file_ids": {"kind": "code_execution", "file_ids": (MARK,)},
            "server_url": {**_SERVER, "server_url": f"https://{MARK}.org"},
            "authorization": {**_SERVER, "authorization": MARK},
            "headers": {**_SERVER, "headers": {"x": MARK}},
            "allowed_tools": {**_SERVER, "allowed_tools": (MARK,)},
            "approval": {**_SERVER, "approval": "always"},
            **_METADATA,
        },
    ),
    ir.ToolChoice: Example(ir.ToolChoice(mode="auto"), {**_set(mode="required", names=("look",)), **_METADATA}),
    ir.ReasoningSettings: Example(
        ir.ReasoningSettings(),
        {
            "mode": {"mode": "off"},
            "effort": {"effort": "low"},
            "budget_tokens": {"mode": "on", "budget_tokens": NUMBER},
            "visible": {"mode": "on", "budget_tokens": 2048, "visible": True},
            **_METADATA,
        },
    ),
    ir.StructuredOutput: Example(
        ir.StructuredOutput(kind="schema", schema=_SCHEMA, name="answer"),
        {
            "kind": {"kind": "json", "schema": None},
            **_set(schema=_MARKED_SCHEMA, name=MARK, description=MARK, strict=True),
            **_METADATA,
        },
    ),
    ir.Request: Example(
        ir.Request(model="some-model", messages=(ir.Message("user", "hi"),)),
        {
            **_set(model=f"some-{MARK}", messages=(ir.Message("user", MARK),)),
            **_set(tools=(ir.ToolDefinition(name=f"look_{MARK}", parameters=_SCHEMA),)),
            "tool_choice": {"tools": (ir.ToolDefinition(name="look"),), "tool_choice": ir.ToolChoice("required")},
            "parallel_tool_calls": {"tools": (ir.ToolDefinition(name="look"),), "parallel_tool_calls": False},
            **_set(max_output_tokens=NUMBER, temperature=FRACTION, top_p=FRACTION, top_k=NUMBER, stop=(MARK,)),
            **_set(seed=NUMBER, presence_penalty=FRACTION, frequency_penalty=FRACTION, candidates=3),
            **_set(reasoning=ir.ReasoningSettings(effort="low"), output=ir.StructuredOutput(kind="json")),
            **_set(stream=True, user=MARK, cache=_CACHE, verbosity=MARK),
            **_set(labels={"team": MARK}, safety_identifier=MARK, service_tier="flex", store=True),
            **_set(prompt_cache_key=MARK, prompt_cache_retention=MARK, prompt_cache_options={"mode": MARK}),
            **_set(moderation={"model": MARK}, logprobs=True, modalities=("text", "audio"), obfuscation=True),
            **_set(max_tool_calls=NUMBER, min_p=FRACTION, repetition_penalty=FRACTION),
            "top_logprobs": {"logprobs": True, "top_logprobs": 7},
            **_METADATA,
        },
    ),
    ir.Usage: Example(
        ir.Usage(input=9000, output=9000, total=18000),
        {
            **_set(input=9000 + NUMBER, output=9000 + NUMBER, cached=NUMBER, cache_written=NUMBER, reasoning=NUMBER),
            **_set(image=NUMBER, total=18000 + NUMBER, searches=NUMBER),
            **_set(details={"cache_written_1h": NUMBER}, service_tier="priority"),
            **_METADATA,
        },
    ),
    ir.Finish: Example(
        ir.Finish(reason="stop"),
        {**_set(reason="length", raw=MARK, stop_sequence=MARK, explanation=MARK), **_METADATA},
    ),
    ir.TokenLogprob: Example(
        ir.TokenLogprob("hi", -0.5),
        {
            **_set(token=MARK, logprob=-FRACTION, bytes=(104, 105, 33), id=NUMBER),
            **_set(top_logprobs=(ir.TokenLogprob(MARK, -0.25),)),
        },
    ),
    ir.Logprobs: Example(
        ir.Logprobs((ir.TokenLogprob("hi", -0.5),)),
        {**_set(tokens=(ir.TokenLogprob(MARK, -0.5),)), "candidate": {"candidate": 1}},
    ),
    ir.Completion: Example(
        ir.Completion(messages=(ir.Message("assistant", "hi"),), finish=ir.Finish("stop")),
        {
            **_set(messages=(ir.Message("assistant", MARK),), finish=ir.Finish("length"), id=f"id_{MARK}"),
            **_set(model=MARK, created=1_700_007_321, usage=ir.Usage(input=NUMBER, output=1)),
            "finishes": {
                "messages": (ir.Message("assistant", "hi"), ir.Message("assistant", MARK)),
                "finishes": (ir.Finish("stop"), ir.Finish("length")),
            },
            **_set(logprobs=(ir.Logprobs((ir.TokenLogprob(MARK, -0.5),)),)),
            **_METADATA,
        },
    ),
}


@cache
def kinds() -> tuple[type[Value], ...]:
    """Every kind of value that a request or a completion can hold."""
    found: dict[type[Value], None] = {}
    for root in (ir.Request, ir.Completion):
        _follow(root, found)
    return tuple(found)


def _follow(hint: Any, found: dict[type[Value], None]) -> None:
    if isinstance(hint, type) and issubclass(hint, Value) and hint not in found:
        found[hint] = None
        for inner in typing.get_type_hints(hint).values():
            _follow(inner, found)
    for inner in get_args(hint):
        _follow(inner, found)


def example_fields(kind: type[Value]) -> tuple[str, ...]:
    return tuple(one.name for one in structs.fields(kind))


def resolved(value: Any, own: str, foreign: str) -> Any:
    """The value with the stand-ins for families replaced."""
    if isinstance(value, Value):
        return structs.replace(
            value,
            **{
                one.name: resolved(getattr(value, one.name), own, foreign)
                for one in structs.fields(value)
                if one.name not in getattr(type(value), "__exact__", {})
            },
        )
    if isinstance(value, tuple):
        return tuple(resolved(inner, own, foreign) for inner in value)
    if isinstance(value, dict):
        return {_family(key, own, foreign): inner for key, inner in value.items()}
    return _family(value, own, foreign)


def _family(value: Any, own: str, foreign: str) -> Any:
    return {OWN: own, FOREIGN: foreign}.get(value, value) if isinstance(value, str) else value


def marks(value: Any) -> Iterator[str]:
    """What must be found in the output if the value arrives: marked texts and numbers, as they are written in JSON."""
    if isinstance(value, Value):
        for one in structs.fields(value):
            yield from marks(getattr(value, one.name))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from marks(key)
            yield from marks(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from marks(inner)
    elif isinstance(value, str) and value == MARKED_DATA:
        yield MARKED_DATA
    elif isinstance(value, str) and MARK in value:
        yield MARK
    elif isinstance(value, Raw):
        yield from marks(bytes(value).decode())
    elif isinstance(value, int | float) and value in {NUMBER, FRACTION}:
        yield str(value)
