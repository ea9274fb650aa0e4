"""Tools that Anthropic runs, or defines for clients to run, in terms that all vendors share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Raw, structs

from dragoman.codecs.anthropic_messages.caching import FAMILY
from dragoman.codecs.claude_tools import functions_of
from dragoman.codecs.memo import DecodedTools
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_tools import (
    Fields,
    SharedTools,
    beyond,
    code_of,
    count_of,
    forged_id,
    mappings,
    non_empty,
    output_text,
    pages_of,
    query_of,
    read_location,
    text_of,
    text_within,
    texts,
    write_location,
)
from dragoman.codecs.signature_tags import TAG
from dragoman.ir import AnyTool, Citation, HostedKind, ProviderTool, ServerToolCall, ServerToolResult
from dragoman.ir.notes import MODELLED, Extra
from dragoman.ir.values import encode_json, parse_json

NOT_ENCRYPTED = TAG
"""Placeholder for data this API encrypts for itself, in blocks that show a client another provider's answer."""

MCP_SERVERS = MODELLED + "mcp_servers"
"""Note of a request: the addresses of its MCP servers. Each toolset repeats that of its server."""
MCP_BETA, _OLDER_MCP_BETA = "mcp-client-2025-11-20", "mcp-client-2025-04-04"
_WITHOUT_TOOLSETS = "~without_toolsets"
"""Note of a request: its servers stand alone, as in the older version."""
SERVER = "~server"
"""Note of a tool: it is only a server, the one at this place of `mcp_servers`."""

_KINDS: tuple[tuple[str, HostedKind], ...] = (
    ("web_search_", "web_search"),
    ("web_fetch_", "web_fetch"),
    ("code_execution_", "code_execution"),
    ("tool_search_tool_", "tool_search"),
)
"""Prefixes of the dated types of tools. The differences between dates concern this family only."""

_KIND_OF_CALL: dict[str, HostedKind] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_regex": "tool_search",
    "tool_search_tool_bm25": "tool_search",
}


class HostedTools(SharedTools):
    def read_tool(self, definition: Mapping[str, Any]) -> Fields:
        kind = definition.get("type")
        if not isinstance(kind, str):
            return {}
        if kind == "mcp_toolset":
            return _read_toolset(definition)
        for start, meaning in _KINDS:
            if kind.startswith(start):
                return {"kind": meaning} | {
                    "max_uses": count_of(definition.get("max_uses")),
                    "allowed_domains": texts(definition.get("allowed_domains")),
                    "blocked_domains": texts(definition.get("blocked_domains")),
                    "location": read_location(definition.get("user_location")),
                    **beyond(FAMILY, definition, *_OPTIONS),
                }
        functions = functions_of(definition)
        return {"functions": functions} if functions else {}

    def write_tool(self, tool: ProviderTool) -> WireValue:
        if tool.kind == "mcp":
            only = {"default_config": {"enabled": False}} if tool.allowed_tools else {}
            configs = {name: {"enabled": True} for name in tool.allowed_tools}
            return {"type": "mcp_toolset", "mcp_server_name": tool.name} | only | non_empty(configs=configs or None)
        if tool.kind not in _DATED:
            return None
        kind, name = _DATED[tool.kind]
        return {"type": kind, "name": name} | non_empty(
            max_uses=tool.max_uses,
            allowed_domains=tool.allowed_domains,
            blocked_domains=tool.blocked_domains,
            user_location=write_location(tool.location),
        )

    def join_servers(self, tools: DecodedTools, extra: Extra) -> DecodedTools:
        """Give each toolset its server's address. A server without a toolset is a tool itself, as in the older version.

        If a server cannot be read, the key is passed on as it is.
        """
        parsed = parse_json(extra["mcp_servers"])
        servers = [one for one in parsed if isinstance(one, dict)] if isinstance(parsed, list) else []
        if not servers or len(servers) < len(parsed):
            return tools
        named = {str(one.get("name")): one for one in servers}
        toolsets = {tool.name for tool in tools.tools if isinstance(tool, ProviderTool) and tool.kind == "mcp"}
        alone = [_read_server(one, at) for at, one in enumerate(servers) if str(one.get("name")) not in toolsets]
        read = [tool for tool in alone if tool is not None]
        if len(read) < len(alone):
            return tools
        extra[MCP_SERVERS] = extra.pop("mcp_servers")
        if read:
            extra[_WITHOUT_TOOLSETS] = Raw(b"true")
        return DecodedTools((*(_with_server(tool, named) for tool in tools.tools), *read))

    def write_servers(self, tools: Iterable[AnyTool]) -> Extra | None:
        """Return the request key that holds the addresses of the toolsets' servers."""
        servers = [
            {"type": "url", "url": tool.server_url, "name": tool.name}
            | non_empty(authorization_token=tool.authorization)
            for tool in tools
            if isinstance(tool, ProviderTool) and tool.kind == "mcp" and tool.definition is None
        ]
        return {MCP_SERVERS: Raw(encode_json(servers))} if servers else None

    def beta_of_servers(self, extra: Extra) -> str | None:
        """Return the version of the API that takes the MCP servers of a request; None without any."""
        if MCP_SERVERS not in extra:
            return None
        return _OLDER_MCP_BETA if _WITHOUT_TOOLSETS in extra else MCP_BETA

    def read_call(self, block: Mapping[str, Any]) -> Fields:
        arguments = block.get("input")
        fields: Fields = {"input": arguments} if isinstance(arguments, dict) else {}
        if block.get("type") == "mcp_tool_use":
            return {"kind": "mcp", "server": text_of(block.get("server_name"))} | fields
        kind = _KIND_OF_CALL.get(str(block.get("name")))
        return fields if kind is None else {"kind": kind} | fields

    def read_result(self, block: Mapping[str, Any]) -> Fields:
        content = block.get("content")
        kind, read = _RESULTS.get(str(block.get("type")), (None, _read_any))
        fields = {} if kind is None else {"kind": kind}
        if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
            message = text_of(content.get("error_message"))
            error = str(content.get("error_code"))
            return fields | {"error": error if message is None else f"{error}: {message}"}
        if block.get("is_error") is True:
            return fields | {"error": "the tool failed"} | read(content)
        return fields | read(content)

    def write_call(self, call: ServerToolCall) -> WireValue:
        arguments = call.input_held
        if call.kind == "mcp":
            return {
                "type": "mcp_tool_use",
                "id": forged_id("mcptoolu_", call.id),
                "name": call.name,
                "server_name": call.server or "",
                "input": arguments or {},
            }
        if call.kind not in _RESULT_OF:
            return None
        name = call.kind
        if call.kind == "web_search":
            arguments = {"query": query_of(call)}
        elif call.kind == "code_execution":
            arguments = {"code": code_of(call)}
        elif call.kind == "web_fetch" and (pages := pages_of(call)):
            arguments = {"url": pages[0]}
        return {
            "type": "server_tool_use",
            "id": forged_id("srvtoolu_", call.id),
            "name": name,
            "input": arguments or {},
        }

    def write_result(self, result: ServerToolResult) -> WireValue:
        if result.kind == "mcp":
            return {
                "type": "mcp_tool_result",
                "tool_use_id": forged_id("mcptoolu_", result.tool_call_id),
                "is_error": result.error is not None,
                "content": [{"type": "text", "text": text_within(result) or result.error or ""}],
            }
        if result.kind not in _RESULT_OF:
            return None
        kind, write = _RESULT_OF[result.kind]
        code = result.error if result.error in _ERRORS else "unavailable"
        content: Any = {"type": f"{kind}_tool_result_error", "error_code": code}
        return {
            "type": f"{kind}_tool_result",
            "tool_use_id": forged_id("srvtoolu_", result.tool_call_id),
            "content": write(result) if result.error is None or _has_run(result) else content,
        }

    def write_citation(self, citation: Citation) -> WireValue:
        """Return, for a client, a page or document that another provider cited; None if nothing says which.

        Without the index and the file's id that this API would expect back.
        """
        if citation.url is None:
            return _write_cited_document(citation)
        return {
            "type": "web_search_result_location",
            "url": citation.url,
            "title": citation.title,
            "encrypted_index": NOT_ENCRYPTED,
            "cited_text": citation.cited_text or "",
        }


def _write_cited_document(citation: Citation) -> WireValue:
    text = citation.cited_text or ""
    if not (text or citation.title):
        return None
    return {
        "type": "char_location",
        "cited_text": text,
        "document_index": 0,
        "document_title": citation.title,
        "start_char_index": 0,
        "end_char_index": len(text),
        "file_id": NOT_ENCRYPTED,
    }


HOSTED = HostedTools()

# ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────

_DATED: dict[HostedKind, tuple[str, str]] = {
    # The oldest versions are on every platform, and the only ones that do not bring other tools with them.
    "web_search": ("web_search_20250305", "web_search"),
    "web_fetch": ("web_fetch_20250910", "web_fetch"),
    "code_execution": ("code_execution_20250825", "code_execution"),
    "tool_search": ("tool_search_tool_bm25_20251119", "tool_search_tool_bm25"),
}
_OPTIONS = ("type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location", "cache_control")


def _with_server(tool: AnyTool, named: Mapping[str, Mapping[str, Any]]) -> AnyTool:
    if not isinstance(tool, ProviderTool) or tool.kind != "mcp" or tool.name not in named:
        return tool
    server = named[tool.name]
    token = text_of(server.get("authorization_token"))
    return structs.replace(tool, server_url=text_of(server.get("url")), authorization=token)


_SERVER_KEYS = frozenset({"type", "url", "name", "authorization_token", "tool_configuration"})


def _read_server(server: Mapping[str, Any], index: int) -> ProviderTool | None:
    """Return the tool for a server without a toolset; None for one that is switched off, or says more."""
    name, url = text_of(server.get("name")), text_of(server.get("url"))
    configured = server.get("tool_configuration") or {}
    if name is None or url is None or not server.keys() <= _SERVER_KEYS or not isinstance(configured, dict):
        return None
    allowed = configured.get("allowed_tools")
    is_off = configured.get("enabled") is False or allowed == []
    if is_off or not configured.keys() <= {"enabled", "allowed_tools"}:
        return None
    return ProviderTool(
        name,
        FAMILY,
        dict(server),
        kind="mcp",
        server_url=url,
        authorization=text_of(server.get("authorization_token")),
        allowed_tools=texts(allowed),
        approval="never",
        metadata={FAMILY: {SERVER: Raw(encode_json(index))}},
    )


def _read_toolset(definition: Mapping[str, Any]) -> Fields:
    """Read which tools of a server are switched on. The server's address is elsewhere in the request."""
    default, configs = definition.get("default_config"), definition.get("configs")
    is_on = not (isinstance(default, dict) and default.get("enabled") is False)
    names = [
        name
        for name, config in (configs.items() if isinstance(configs, dict) else ())
        if isinstance(config, dict) and config.get("enabled") is not False
    ]
    switched_off = isinstance(configs, dict) and len(names) < len(configs)
    fields: Fields = {"kind": "mcp", "approval": "never", "allowed_tools": () if is_on else tuple(names)}
    known = ("type", "mcp_server_name", "cache_control", "default_config", "configs")
    # Other formats cannot switch off single tools: such a toolset is not converted.
    return fields | beyond(FAMILY, definition, *(known[:3] if is_on and switched_off else known))


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


def _read_found(content: object) -> Fields:
    found = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    return {"sources": tuple(Citation(text_of(one.get("url")), text_of(one.get("title"))) for one in found)}


def _read_page(content: object) -> Fields:
    page: Any = content if isinstance(content, dict) else {}
    document: Any = page.get("content") if isinstance(page.get("content"), dict) else {}
    source: Any = document.get("source") if isinstance(document.get("source"), dict) else {}
    fields = {"sources": (Citation(text_of(page.get("url")), text_of(document.get("title"))),)}
    return fields | (output_text(source.get("data")) if source.get("type") == "text" else {})


def _read_run(content: object) -> Fields:
    run: Any = content if isinstance(content, dict) else {}
    shown = output_text(run.get("stdout"), run.get("stderr"), run.get("content"))
    code = run.get("return_code")
    return shown if code in (None, 0) else shown | {"error": f"exit code {code}"}


def _read_names(content: object) -> Fields:
    references = content.get("tool_references") if isinstance(content, dict) else None
    names = [str(one.get("tool_name")) for one in mappings(references)]
    return output_text(", ".join(names))


def _read_any(content: object) -> Fields:
    if isinstance(content, str):
        return output_text(content)
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return output_text(*texts)


_RESULTS: dict[str, tuple[HostedKind, Callable[[object], Fields]]] = {
    "web_search_tool_result": ("web_search", _read_found),
    "web_fetch_tool_result": ("web_fetch", _read_page),
    "code_execution_tool_result": ("code_execution", _read_run),
    "bash_code_execution_tool_result": ("code_execution", _read_run),
    "text_editor_code_execution_tool_result": ("code_execution", _read_run),
    "tool_search_tool_result": ("tool_search", _read_names),
    "mcp_tool_result": ("mcp", _read_any),
}


def _write_found(result: ServerToolResult) -> list[Fields]:
    return [
        {
            "type": "web_search_result",
            "url": source.url or "",
            "title": source.title or source.url or "",
            "encrypted_content": NOT_ENCRYPTED,
            "page_age": None,
        }
        for source in result.sources
    ]


def _write_page(result: ServerToolResult) -> Fields:
    source = result.sources[0] if result.sources else Citation()
    text = text_within(result)
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}
    return {
        "type": "web_fetch_result",
        "url": source.url or "",
        "content": document | {"title": source.title, "citations": None},
        "retrieved_at": None,
    }


def _has_run(result: ServerToolResult) -> bool:
    """Whether this is the output of code that ran, and failed: no error of the tool."""
    return result.kind == "code_execution" and bool(text_within(result))


def _write_run(result: ServerToolResult) -> Fields:
    text = text_within(result)
    shown = {"stdout": text, "stderr": ""} if result.error is None else {"stdout": "", "stderr": text}
    return {"type": "code_execution_result", **shown, "return_code": int(result.error is not None), "content": []}


_RESULT_OF: dict[HostedKind, tuple[str, Callable[[ServerToolResult], Any]]] = {
    "web_search": ("web_search", _write_found),
    "web_fetch": ("web_fetch", _write_page),
    "code_execution": ("code_execution", _write_run),
}
_ERRORS = frozenset({"invalid_tool_input", "unavailable", "max_uses_exceeded", "too_many_requests", "query_too_long"})
