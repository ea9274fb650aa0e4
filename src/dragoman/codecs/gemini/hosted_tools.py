"""Tools that Google runs, in terms that all vendors share.

A built-in tool is one key of a Tool object. Searches appear as `toolCall` and `toolResponse` only if the client asked
for them; their findings are in the grounding of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.google_computer_use import screen_functions
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
    read_headers,
    text_of,
    text_within,
    texts,
)
from dragoman.ir import HostedKind, ProviderTool, ServerToolCall, ServerToolResult
from dragoman.ir.values import compact_text

_KINDS: dict[str, HostedKind] = {
    "googlesearch": "web_search",
    "googlesearchretrieval": "web_search",
    "enterprisewebsearch": "web_search",
    "urlcontext": "web_fetch",
    "codeexecution": "code_execution",
    "filesearch": "file_search",
    "mcpservers": "mcp",
}
"""Keys are lowercase without underscores, because both spellings are read here."""

_KIND_OF_CALL: dict[str, HostedKind] = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "GOOGLE_SEARCH_IMAGE": "web_search",
    "URL_CONTEXT": "web_fetch",
    "FILE_SEARCH": "file_search",
}
_FAILED = ("OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")


def _camel(entries: Mapping[str, Any], key: str) -> Any:
    """Return a member by its camelCase or snake_case key."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
    return entries.get(key, entries.get(snake))


def _single(block: Mapping[str, Any]) -> tuple[str, Any]:
    return next(iter(block.items()))


class HostedTools(SharedTools):
    def read_tool(self, definition: Mapping[str, Any]) -> Fields:
        key, held = next(iter(definition.items()), ("", None))
        flat = key.replace("_", "").lower()
        if flat == "computeruse":
            excluded = _camel(held, "excludedPredefinedFunctions") if isinstance(held, dict) else ()
            return {"functions": screen_functions(texts(excluded))}
        kind = _KINDS.get(flat)
        if kind is None:
            return {}
        if kind == "mcp":
            return _read_servers(held)
        options: Mapping[str, Any] = held if isinstance(held, dict) else {}
        known = [name for name in options if name.replace("_", "").lower() in _READ]
        return {
            "kind": kind,
            "blocked_domains": texts(_camel(options, "excludeDomains")),
            "stores": texts(_camel(options, "fileSearchStoreNames")),
            "max_results": count_of(_camel(options, "topK")),
            **beyond(FAMILY, options, *known),
        }

    def write_tool(self, tool: ProviderTool) -> WireValue:
        match tool.kind:
            case "web_search":
                return {"googleSearch": non_empty(excludeDomains=tool.blocked_domains)}
            case "web_fetch":
                return {"urlContext": {}}
            case "code_execution":
                return {"codeExecution": {}}
            case "file_search":
                return {"fileSearch": non_empty(fileSearchStoreNames=tool.stores, topK=tool.max_results)}
            case "mcp":
                return {"mcpServers": [{"name": tool.name, "streamableHttpTransport": _transport(tool)}]}
        return None

    def read_call(self, block: Mapping[str, Any]) -> Fields:
        member, fields = _single(block)
        if member in {"executableCode", "executable_code"}:
            return {"kind": "code_execution"} | json_input({"code": str(fields.get("code", ""))})
        if member == "functionCall":
            return {"kind": "mcp"} | json_input(fields.get("args"))
        kind = _KIND_OF_CALL.get(str(_camel(fields, "toolType")))
        return ({} if kind is None else {"kind": kind}) | json_input(fields.get("args"))

    def read_result(self, block: Mapping[str, Any]) -> Fields:
        member, fields = _single(block)
        if member in {"codeExecutionResult", "code_execution_result"}:
            failed = {"error": fields["outcome"]} if fields.get("outcome") in _FAILED else {}
            return {"kind": "code_execution"} | output_text(fields.get("output")) | failed
        response = fields.get("response")
        if member == "functionResponse":
            text = text_of(response.get("result")) if isinstance(response, dict) else None
            return {"kind": "mcp"} | output_text(text or compact_text(response))
        kind = _KIND_OF_CALL.get(str(_camel(fields, "toolType")))
        return {} if kind is None else {"kind": kind}

    def write_call(self, call: ServerToolCall) -> WireValue:
        if call.kind != "code_execution":
            return None
        return {"executableCode": {"language": "PYTHON", "code": code_of(call), "id": forged_id("code_", call.id)}}

    def write_result(self, result: ServerToolResult) -> WireValue:
        if result.kind != "code_execution":
            return None
        return {
            "codeExecutionResult": {
                "outcome": "OUTCOME_OK" if result.error is None else "OUTCOME_FAILED",
                "output": text_within(result) or result.error or "",
                "id": forged_id("code_", result.tool_call_id),
            }
        }


HOSTED = HostedTools()

_READ = frozenset({"excludedomains", "filesearchstorenames", "topk"})


def _read_servers(value: object) -> Fields:
    """Read the settings of a single server; no other API takes a list of several."""
    server = value[0] if isinstance(value, list) and len(value) == 1 else None
    transport = _camel(server, "streamableHttpTransport") if isinstance(server, dict) else None
    if not isinstance(server, dict) or not isinstance(transport, dict):
        return {"kind": "mcp"}
    return {
        "kind": "mcp",
        "name": text_of(server.get("name")) or "mcp",
        "server_url": text_of(transport.get("url")),
        **read_headers(transport.get("headers")),
        "approval": "never",
        **beyond(FAMILY, transport, "url", "headers"),
    }


def _transport(tool: ProviderTool) -> Fields:
    headers: Any = dict(tool.headers or {}) if tool.headers_held is not None else {}
    if tool.authorization is not None:
        headers["Authorization"] = f"Bearer {tool.authorization}"
    return {"url": tool.server_url} | non_empty(headers=headers or None)
