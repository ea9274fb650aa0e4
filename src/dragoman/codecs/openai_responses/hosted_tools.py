"""Tools that OpenAI runs, or defines for clients to run, in terms that all vendors share.

One item often holds a call and its result; server_items.py splits them. Servers that speak this format (xAI,
OpenRouter, Groq) use the same words; xAI lists the sites of a search beside its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.openai_client_tools import functions_of
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_tools import (
    Fields,
    SharedTools,
    beyond,
    code_of,
    count_of,
    forged_id,
    json_input,
    mappings,
    non_empty,
    output_text,
    pages_of,
    query_of,
    read_headers,
    read_location,
    text_of,
    text_within,
    texts,
    write_location,
)
from dragoman.ir import (
    Citation,
    ContentBlock,
    HostedKind,
    Image,
    ProviderTool,
    ServerToolCall,
    ServerToolResult,
    Text,
    Usage,
)
from dragoman.ir.values import compact_text, parse_json

_KINDS: dict[str, HostedKind] = {
    "web_search": "web_search",
    "web_search_2025_08_26": "web_search",
    "web_search_preview": "web_search",
    "web_search_preview_2025_03_11": "web_search",
    "code_interpreter": "code_execution",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "mcp": "mcp",
    "shell": "shell",
    "tool_search": "tool_search",
}


class HostedTools(SharedTools):
    def read_tool(self, definition: Mapping[str, Any]) -> Fields:
        functions = functions_of(definition, FAMILY)
        if functions:
            return {"functions": functions}
        kind = _KINDS.get(str(definition.get("type")))
        return {} if kind is None else {"kind": kind} | _READ[kind](definition)

    def write_tool(self, tool: ProviderTool) -> WireValue:
        match tool.kind:
            case "web_search":
                return _write_search(tool)
            case "code_execution":
                return {"type": "code_interpreter", "container": {"type": "auto"} | non_empty(file_ids=tool.file_ids)}
            case "file_search":
                options = non_empty(vector_store_ids=tool.stores, max_num_results=tool.max_results)
                return {"type": "file_search"} | options
            case "mcp":
                return {"type": "mcp", "server_label": tool.name, "server_url": tool.server_url} | non_empty(
                    authorization=tool.authorization,
                    headers=tool.headers_held,
                    allowed_tools=tool.allowed_tools,
                    require_approval=tool.approval or "never",
                )
            case "image_generation" | "tool_search" | "shell":
                return {"type": tool.kind} | (
                    {"environment": {"type": "container_auto"}} if tool.kind == "shell" else {}
                )
        return None

    def read_call(self, block: Mapping[str, Any]) -> Fields:
        match block.get("type"):
            case "web_search_call":
                return _read_search_call(block)
            case "code_interpreter_call":
                return {"kind": "code_execution"} | json_input({"code": str(block.get("code") or "")})
            case "file_search_call":
                return {"kind": "file_search"} | json_input({"queries": list(texts(block.get("queries")))})
            case "image_generation_call":
                return {"kind": "image_generation"} | json_input(non_empty(prompt=text_of(block.get("revised_prompt"))))
            case "mcp_call":
                fields = {"kind": "mcp", "server": text_of(block.get("server_label"))}
                return fields | json_input(block.get("arguments"))
            case "shell_call":
                return {"kind": "shell"} | json_input(block.get("action"))
            case "tool_search_call":
                return {"kind": "tool_search"} | json_input(block.get("arguments"))
        return json_input(block.get("input"))

    def read_result(self, block: Mapping[str, Any]) -> Fields:
        """Read the result from `block`, the whole item, whichever of its fields hold it."""
        match block.get("type"):
            case "web_search_call":
                return _read_sources(block)
            case "code_interpreter_call":
                return {"kind": "code_execution", "parts": tuple(_outputs(block.get("outputs")))} | _failure(block)
            case "file_search_call":
                return {"kind": "file_search", "sources": tuple(_files(block.get("results")))}
            case "image_generation_call":
                return _read_image(block)
            case "mcp_call":
                return {"kind": "mcp"} | output_text(text_of(block.get("output"))) | _mcp_failure(block.get("error"))
            case "shell_call_output":
                return {"kind": "shell"} | _read_shell(block.get("output"))
            case "tool_search_output":
                names = [str(tool.get("name")) for tool in mappings(block.get("tools"))]
                return {"kind": "tool_search"} | output_text(", ".join(names))
        return {}

    def write_call(self, call: ServerToolCall) -> WireValue:
        call_input: Any = call.input or {}
        match call.kind:
            case "web_search":
                action = {"type": "search", "query": query_of(call), "queries": [query_of(call)]}
                return _item("ws", "web_search_call", call.id, action=action)
            case "web_fetch":
                action = {"type": "open_page", "url": next(iter(pages_of(call)), "")}
                return _item("ws", "web_search_call", call.id, action=action)
            case "code_execution" | "shell":
                fields = {"code": code_of(call), "container_id": "", "outputs": None}
                return _item("ci", "code_interpreter_call", call.id, **fields)
            case "file_search":
                queries = list(texts(call_input.get("queries"))) or [query_of(call)]
                return _item("fs", "file_search_call", call.id, queries=queries, results=None)
            case "mcp":
                arguments = compact_text(call.input_held or {})
                fields = {"name": call.name, "server_label": call.server or "", "arguments": arguments}
                return _item("mcp", "mcp_call", call.id, **fields, output=None, error=None)
        return None

    def write_result(self, result: ServerToolResult) -> WireValue:
        """Return the fields of the call's item that hold the result."""
        match result.kind:
            case "web_search":
                sources = [{"type": "url", "url": source.url} for source in result.sources if source.url]
                return {"action": {"sources": sources}}
            case "web_fetch":
                return {}
            case "code_execution" | "shell":
                text = text_within(result) or result.error
                outputs = [{"type": "logs", "logs": text}] if text else []
                return non_empty(status=None if result.error is None else "failed") | {"outputs": outputs}
            case "file_search":
                return {"results": [non_empty(filename=one.title, text=one.cited_text) for one in result.sources]}
            case "mcp":
                failed = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": result.error}]}
                error = {} if result.error is None else {"error": failed, "status": "failed"}
                return {"output": text_within(result)} | error
        return None

    def count_searches(self, usage: Usage, tools: Raw | UnsetType) -> Usage:
        """Add the number of web searches, which this API gives outside the usage."""
        if tools is UNSET:
            return usage
        parsed = parse_json(tools)
        counts = parsed.get("web_search") if isinstance(parsed, dict) else None
        count = counts.get("num_requests") if isinstance(counts, dict) else None
        return structs.replace(usage, searches=count) if type(count) is int else usage

    def write_counts(self, usage: Usage | None) -> Fields:
        """Return the member that counts searches, if there were any."""
        if usage is None or not usage.searches or FAMILY in (usage.metadata or {}):
            return {}
        return {"tool_usage": {"web_search": {"num_requests": usage.searches}}}


HOSTED = HostedTools()


def _item(prefix: str, kind: str, call_id: str, **fields: Any) -> Fields:
    return {"id": forged_id(f"{prefix}_", call_id), "type": kind, "status": "completed", **fields}


# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────


def _read_search(definition: Mapping[str, Any]) -> Fields:
    filters: Any = definition.get("filters") if isinstance(definition.get("filters"), dict) else {}
    blocked = filters.get("blocked_domains") or definition.get("excluded_domains")
    known = ("type", "filters", "user_location", "search_context_size", "allowed_domains", "excluded_domains")
    return {
        "allowed_domains": texts(filters.get("allowed_domains") or definition.get("allowed_domains")),
        "blocked_domains": texts(blocked),
        "location": read_location(definition.get("user_location")),
        "context_size": text_of(definition.get("search_context_size")),
        **beyond(FAMILY, definition, *known),
    }


def _write_search(tool: ProviderTool) -> Fields:
    filters = non_empty(allowed_domains=tool.allowed_domains, blocked_domains=tool.blocked_domains)
    # Without a location this API searches from the United States; an empty one means from nowhere.
    location = write_location(tool.location) or {"type": "approximate"}
    return {"type": "web_search"} | non_empty(
        filters=filters or None, search_context_size=tool.context_size, user_location=location
    )


def _read_code(definition: Mapping[str, Any]) -> Fields:
    container = definition.get("container")
    fields: Any = container if isinstance(container, dict) else {}
    rest = beyond(FAMILY, {**definition, **fields}, "type", "container", "file_ids")
    return {"container": text_of(container), "file_ids": texts(fields.get("file_ids")), **rest}


def _read_files(definition: Mapping[str, Any]) -> Fields:
    return {
        "stores": texts(definition.get("vector_store_ids")),
        "max_results": count_of(definition.get("max_num_results")),
        **beyond(FAMILY, definition, "type", "vector_store_ids", "max_num_results"),
    }


def _read_server(definition: Mapping[str, Any]) -> Fields:
    """Read an MCP server; approval is required unless the definition says otherwise."""
    allowed, approval = definition.get("allowed_tools"), definition.get("require_approval")
    names = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
    known = ("type", "server_label", "server_url", "authorization", "headers", "allowed_tools", "require_approval")
    return {
        "server_url": text_of(definition.get("server_url")),
        **read_headers(definition.get("headers"), definition.get("authorization")),
        "allowed_tools": texts(names),
        "approval": "never" if approval == "never" else "always",
        **beyond(FAMILY, definition, *known),
    }


def _read_plain(definition: Mapping[str, Any]) -> Fields:
    return beyond(FAMILY, definition, "type")


_READ = {
    "web_search": _read_search,
    "code_execution": _read_code,
    "file_search": _read_files,
    "mcp": _read_server,
    "image_generation": _read_plain,
    "shell": _read_plain,
    "tool_search": _read_plain,
}

# ── calls and results ─────────────────────────────────────────────────────────────────────────────────────────


def _read_search_call(block: Mapping[str, Any]) -> Fields:
    action = block.get("action")
    if not isinstance(action, dict):
        return {"kind": "web_search"}
    fields = non_empty(**{key: action[key] for key in ("query", "queries", "url", "pattern") if action.get(key)})
    return {"kind": "web_search" if action.get("type", "search") == "search" else "web_fetch", "input": fields}


def _read_sources(block: Mapping[str, Any]) -> Fields:
    action: Any = block.get("action") if isinstance(block.get("action"), dict) else {}
    found = mappings(action.get("sources"))
    sources = tuple(Citation(text_of(one.get("url")), text_of(one.get("title"))) for one in found)
    kind = "web_search" if action.get("type", "search") == "search" else "web_fetch"
    return {"kind": kind, "sources": sources} | _failure(block)


def _failure(block: Mapping[str, Any]) -> Fields:
    status = text_of(block.get("status"))
    return {"error": status} if status in {"failed", "incomplete"} else {}


def _outputs(value: object) -> list[ContentBlock]:
    parts: list[ContentBlock] = []
    for output in value if isinstance(value, list) else ():
        if isinstance(output, dict) and isinstance(output.get("logs"), str):
            parts.append(Text(output["logs"]))
        elif isinstance(output, dict) and isinstance(output.get("url"), str):
            parts.append(Image(url=output["url"]))
    return parts


def _files(value: object) -> list[Citation]:
    found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return [Citation(None, text_of(one.get("filename")), text_of(one.get("text"))) for one in found]


def _read_image(block: Mapping[str, Any]) -> Fields:
    data, form = text_of(block.get("result")), text_of(block.get("output_format")) or "png"
    shown: Fields = {} if data is None else {"parts": (Image(f"image/{form}", data),)}
    return {"kind": "image_generation"} | shown | _mcp_failure(block.get("error"))


def _mcp_failure(error: object) -> Fields:
    if isinstance(error, dict):
        content = error.get("content")
        texts = [one.get("text") for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        words = [text for text in (*texts, error.get("message"), error.get("type")) if isinstance(text, str) and text]
        return {"error": words[0] if words else "the tool failed"}
    return {"error": error} if isinstance(error, str) and error else {}


def _read_shell(value: object) -> Fields:
    outputs = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    fields = output_text(*(one.get(key) for one in outputs for key in ("stdout", "stderr")))
    codes = [_exit_code(one.get("outcome")) for one in outputs]
    failed = [code for code in codes if code not in {None, "0"}]
    return fields | ({"error": f"exit code {failed[0]}"} if failed else {})


def _exit_code(outcome: object) -> str | None:
    if not isinstance(outcome, dict):
        return None
    return str(outcome["exit_code"]) if "exit_code" in outcome else text_of(outcome.get("type"))
