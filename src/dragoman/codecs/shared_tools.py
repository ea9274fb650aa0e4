"""Tools that vendors run themselves, in terms that all of them share. Each format's `hosted_tools.py` implements them.

A call or result of another vendor's server cannot be sent to an API: ids and encrypted contents cannot be invented. It
reaches the model as text in the assistant's turn (`hosted_text`). A client, which only shows or skips such items, gets
an item in its own format, with an id that marks it as invented (`forged_id`): when the client sends it back, it is sent
to the provider as text too (`goes_back`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.codecs.reading import WireValue
from dragoman.ir import (
    AnyPart,
    AnyTool,
    Citation,
    ContentBlock,
    CustomTool,
    Image,
    Location,
    ProviderTool,
    Request,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolChoice,
    ToolResult,
)
from dragoman.ir.values import compact_text, encode_json, parse_json
from dragoman.losses import LossLog

FORGED = "dragoman1_"
"""Part of the id of an item that no provider issued."""

Fields = dict[str, Any]


def forged_id(prefix: str, call_id: str) -> str:
    """Return an id for clients only: the same for the same call, and never one of a provider."""
    _, is_ours, digest = call_id.partition(FORGED)
    if not is_ours:
        digest = hashlib.blake2s(call_id.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
    return f"{prefix}{FORGED}{digest}"


def goes_back(part: ServerToolCall | ServerToolResult, family: str, *, to_client: bool) -> bool:
    """Whether the block of a part may be sent to this family. One with an invented id is for clients only."""
    if part.origin != family or part.block is None:
        return False
    return to_client or FORGED not in (part.id if isinstance(part, ServerToolCall) else part.tool_call_id)


class SharedTools:
    """How one format reads and writes the tools, calls and results that vendors share. The defaults have none.

    Reading returns the fields of the value in the intermediate format, by name. Writing returns None if the format
    cannot express the value.
    """

    def read_tool(self, definition: Mapping[str, Any]) -> Fields:  # noqa: ARG002
        return {}

    def write_tool(self, tool: ProviderTool) -> WireValue:  # noqa: ARG002
        return None

    def read_call(self, block: Mapping[str, Any]) -> Fields:  # noqa: ARG002
        return {}

    def read_result(self, block: Mapping[str, Any]) -> Fields:  # noqa: ARG002
        return {}

    def write_call(self, call: ServerToolCall) -> WireValue:  # noqa: ARG002
        return None

    def write_result(self, result: ServerToolResult) -> WireValue:  # noqa: ARG002
        return None


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list; none for any other value."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def mappings(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; none for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def count_of(value: object) -> int | None:
    return value if type(value) is int else None


def beyond(family: str, definition: Mapping[str, Any], *known: str) -> Fields:
    """Return `metadata` with the keys of a definition beyond these; null means absent."""
    rest = {key: Raw(encode_json(value)) for key, value in definition.items() if key not in known and value is not None}
    return {"metadata": {family: rest}} if rest else {}


def output_text(*pieces: object) -> Fields:
    """Return `parts` with the output of a program as one text."""
    text = "\n".join(piece.rstrip("\n") for piece in pieces if isinstance(piece, str) and piece.strip())
    return {"parts": (Text(text),)} if text else {}


def json_input(value: object) -> Fields:
    """Return `input`, from a mapping or from the JSON text of one."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except msgspec.DecodeError:
            return {"input": {"text": value}}
    return {"input": value} if isinstance(value, dict) else {}


def read_headers(raw: object, authorization: object = None) -> Fields:
    """Return `headers` and `authorization` of an MCP server. A bearer token in the headers is the authorization."""
    headers = {str(name): value for name, value in raw.items()} if isinstance(raw, dict) else {}
    token = text_of(authorization)
    for name, value in list(headers.items()):
        if name.lower() == "authorization" and str(value).lower().startswith("bearer ") and token is None:
            token = str(headers.pop(name))[len("bearer ") :]
    return {"headers": headers or None, "authorization": token}


def write_headers(tool: ProviderTool) -> dict[str, Any] | None:
    """Return the headers of an MCP server, with its token, for an API that has no other place for it."""
    token = {} if tool.authorization is None else {"Authorization": f"Bearer {tool.authorization}"}
    return {**(tool.headers or {}), **token} or None


def read_location(value: object) -> Location | None:
    if not isinstance(value, dict):
        return None
    location = Location(*(text_of(value.get(key)) for key in ("country", "region", "city", "timezone")))
    return None if location == Location() else location


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def non_empty(**fields: Any) -> Fields:
    """Return the fields that are not empty."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in fields.items()
        if value not in (None, ())
    }


_FREE_TEXT = Raw(b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}')


def parameters_of_custom(tool: CustomTool, log: LossLog) -> Raw:
    """Return the schema of the function that replaces a tool with free text as its input."""
    log.degrade(tool, "", f"custom tool {tool.name!r}", "sent as a function with one text argument")
    if tool.format_held is not None:
        log.drop(tool, "format", "grammar of a custom tool", "functions of this API take no grammar")
    return _FREE_TEXT


def write_location(location: Location | None) -> Fields | None:
    if location is None:
        return None
    return {"type": "approximate"} | non_empty(
        city=location.city, region=location.region, country=location.country, timezone=location.timezone
    )


def query_of(call: ServerToolCall) -> str:
    """Return the search query of a call."""
    arguments: Any = call.input or {}
    queries = texts(arguments.get("queries"))
    return text_of(arguments.get("query")) or "; ".join(queries)


def pages_of(call: ServerToolCall) -> tuple[str, ...]:
    """Return the addresses that a call fetches."""
    arguments: Any = call.input or {}
    page = text_of(arguments.get("url"))
    return texts(arguments.get("urls")) if page is None else (page,)


def code_of(call: ServerToolCall) -> str:
    """Return the code or commands of a call, as one text."""
    arguments: Any = call.input or {}
    return (
        text_of(arguments.get("code"))
        or text_of(arguments.get("command"))
        or "\n".join(texts(arguments.get("commands")))
    )


def text_within(result: ToolResult | ServerToolResult) -> str:
    """Return the texts in a result, each in a line of its own."""
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))


def hosted_text(part: ServerToolCall | ServerToolResult) -> str | None:
    """Return the text that a model of another vendor gets in place of the part; None if the part shows nothing.

    A call is `[web_search called with {"query":"…"}]`. A result is `[web_search returned]` and, in the lines after
    it, the text and the sources; or `[web_search failed: …]`.
    """
    name = f"{part.server}.{part.name}" if isinstance(part, ServerToolCall) and part.server else part.name
    if isinstance(part, ServerToolCall):
        return None if part.input is None else f"[{name} called with {compact_text(part.input_held)}]"
    lines = [*map(_line_of_part, part.parts), *map(_line_of_source, part.sources)]
    if part.error is not None:
        return "\n".join([f"[{name} failed: {part.error}]", *lines])
    return "\n".join([f"[{name} returned]", *lines]) if lines else None


def _line_of_part(part: ContentBlock) -> str:
    return part.text if isinstance(part, Text) else f"[{type(part).__name__.lower()}]"


def _line_of_source(source: Citation) -> str:
    place = " ".join(piece for piece in (source.title, source.url and f"<{source.url}>") if piece)
    return f"- {place}: {source.cited_text}" if source.cited_text else f"- {place}"


def cross_hosted(part: ServerToolCall | ServerToolResult, log: LossLog, tools: SharedTools | None) -> WireValue:
    """Return the replacement of a part that another provider ran; None if there is nothing to show. All is logged.

    A `Text` for an API; for a client, whose `tools` are given, an item of its own format.
    """
    is_call = isinstance(part, ServerToolCall)
    what = ("call" if is_call else "result of a call") + " run by the provider"
    if tools is None:
        text = hosted_text(part)
        if text is not None:
            log.degrade(part, "", what, "sent as text: only the provider that ran it takes it back")
            return Text(text)
        log.drop(part, "", what, "it has nothing that another model could read")
        return None
    wire = tools.write_call(part) if isinstance(part, ServerToolCall) else tools.write_result(part)
    if wire is None:
        log.drop(part, "", what, "this API has no such item")
    else:
        log.degrade(part, "", what, "sent to the client as one of this API, with an invented id")
    return wire


def drawn_image(part: AnyPart, log: LossLog) -> Image | None:
    """Return the image that a tool of another provider drew, for an API whose models draw without a tool; logs it."""
    if type(part) is not ServerToolResult or part.kind != "image_generation":
        return None
    image = next((one for one in part.parts if type(one) is Image), None)
    if image is not None:
        log.degrade(part, "", "result of a call run by the provider", "sent as an image of the answer")
        log.replaced(image, part)
    return image


# ── tools of a request ────────────────────────────────────────────────────────────────────────────────────────


def encode_provider_tool(
    tool: ProviderTool, family: str, log: LossLog, write_hosted: Callable[[ProviderTool], WireValue] | None = None
) -> WireValue:
    """Return a tool that a provider runs or defines: as this family wrote it, or as its counterpart; None if lost."""
    wire = tool.definition_held if tool.origin == family else None
    if wire is None and write_hosted is not None:
        wire = write_hosted(tool)
    return report_provider_tool(tool, log) if wire is None else wire


def report_provider_tool(tool: ProviderTool, log: LossLog) -> None:
    log.drop(tool, "", f"tool {tool.name!r}", f"it is run or defined by {tool.origin or 'its provider'}")


def offered_tools(request: Request, choice: ToolChoice, log: LossLog, *, can_name: bool) -> tuple[AnyTool, ...]:
    """Return the tools to offer to an API without a choice among several: only the chosen ones.

    `can_name`: whether the API can require one tool by its name.
    """
    tools = request.tools
    if can_name and choice.mode == "required" and len(choice.names) == 1:
        return tools
    names = set(choice.names)
    offered = tuple(tool for tool in tools if tool.name in names)
    if len(offered) < len(tools):
        why = "only those tools are sent: this API has no choice among several"
        log.degrade(request, "tool_choice", "choice among several tools", why)
        for tool in tools:
            if tool.name not in names:
                log.drop(tool, "", f"tool {tool.name!r}", "left out: the choice does not name it")
    return offered
