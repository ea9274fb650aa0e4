"""Tools that Google runs, in terms that all vendors share: an entry of `tools`, a call step, a result step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.google_computer_use import screen_functions
from dragoman.codecs.google_vocabulary import allowed_tools_of
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_tools import (
    Fields,
    SharedTools,
    beyond,
    code_of,
    count_of,
    forged_id,
    json_input,
    non_empty,
    output_text,
    pages_of,
    query_of,
    read_headers,
    text_of,
    text_within,
    texts,
    write_headers,
)
from dragoman.ir import Citation, HostedKind, ProviderTool, ServerToolCall, ServerToolResult

_KINDS: dict[str, HostedKind] = {
    "google_search": "web_search",
    "url_context": "web_fetch",
    "code_execution": "code_execution",
    "file_search": "file_search",
    "mcp_server": "mcp",
    "mcp_server_tool": "mcp",
}
"""By the type of a tool, and by that of a step without its suffix."""


class HostedTools(SharedTools):
    def read_tool(self, definition: Mapping[str, Any]) -> Fields:
        if definition.get("type") == "computer_use":
            return {"functions": screen_functions(texts(definition.get("excluded_predefined_functions")))}
        kind = _KINDS.get(str(definition.get("type")))
        if kind is None:
            return {}
        searches = ["search_types"] if definition.get("search_types") == ["web_search"] else []  # the default
        known = ["type", *searches]
        fields: Fields = {"kind": kind}
        if kind == "file_search":
            fields |= {
                "stores": texts(definition.get("file_search_store_names")),
                "max_results": count_of(definition.get("top_k")),
            }
            known += ["file_search_store_names", "top_k"]
        elif kind == "mcp":
            allowed = allowed_tools_of(definition)
            if allowed is None:
                return {}  # without these limits, it is another tool
            fields |= {
                "name": text_of(definition.get("name")) or "mcp",
                "server_url": text_of(definition.get("url")),
                "allowed_tools": allowed,
                **read_headers(definition.get("headers")),
            }
            known += ["name", "url", "headers", "allowed_tools"]
        return fields | beyond(FAMILY, definition, *known)

    def write_tool(self, tool: ProviderTool) -> WireValue:
        match tool.kind:
            case "web_search":
                return {"type": "google_search"}
            case "web_fetch":
                return {"type": "url_context"}
            case "code_execution":
                return {"type": "code_execution"}
            case "file_search":
                options = non_empty(file_search_store_names=tool.stores, top_k=tool.max_results)
                return {"type": "file_search", **options}
            case "mcp":
                allowed = [{"tools": list(tool.allowed_tools)}] if tool.allowed_tools else None
                server = non_empty(
                    name=tool.name, url=tool.server_url, allowed_tools=allowed, headers=write_headers(tool)
                )
                return {"type": "mcp_server", **server}
        return None

    def read_call(self, block: Mapping[str, Any]) -> Fields:
        kind = _KINDS.get(str(block.get("type")).removesuffix("_call"))
        if kind is None:
            return {}
        fields: Fields = {"kind": kind} | json_input(block.get("arguments"))
        return fields | ({"server": text_of(block.get("server_name"))} if kind == "mcp" else {})

    def read_result(self, block: Mapping[str, Any]) -> Fields:
        kind = _KINDS.get(str(block.get("type")).removesuffix("_result"))
        if kind is None:
            return {}
        result = block.get("result")
        fields: Fields = {"kind": kind}
        if isinstance(result, str):
            fields |= output_text(result)
        elif isinstance(result, list):
            entries = [entry for entry in result if isinstance(entry, dict)]
            fields |= output_text(*(entry.get("text") for entry in entries))
            pages = tuple(Citation(url) for entry in entries if (url := text_of(entry.get("url"))))
            fields |= {"sources": pages} if pages else {}
        return fields | ({"error": "error"} if block.get("is_error") is True else {})

    def write_call(self, call: ServerToolCall) -> WireValue:
        arguments: Mapping[str, Any]
        match call.kind:
            case "code_execution":
                name, arguments = "code_execution", {"code": code_of(call), "language": "python"}
            case "web_search":
                name, arguments = "google_search", {"queries": [query_of(call)]}
            case "web_fetch":
                name, arguments = "url_context", {"urls": list(pages_of(call))}
            case _:
                return None
        return {"type": f"{name}_call", "id": forged_id("", call.id), "arguments": arguments}

    def write_result(self, result: ServerToolResult) -> WireValue:
        written: Any
        match result.kind:
            case "code_execution":
                name, written = "code_execution", text_within(result) or result.error or ""
            case "web_search":
                name, written = "google_search", []
            case "web_fetch":
                status = "success" if result.error is None else "error"
                name, written = "url_context", [{"url": one.url, "status": status} for one in result.sources if one.url]
            case _:
                return None
        step = {"type": f"{name}_result", "call_id": forged_id("", result.tool_call_id)}
        return {**step, "result": written} | ({} if result.error is None else {"is_error": True})


HOSTED = HostedTools()
