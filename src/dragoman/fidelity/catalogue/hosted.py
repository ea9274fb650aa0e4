"""Tools that providers run themselves, or define for clients to run."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from dragoman.fidelity import facts
from dragoman.fidelity.cases import MODELS, Case, Example, Slots, slots
from dragoman.fidelity.catalogue.pieces import answer, ask, history, stream
from dragoman.ir import (
    AnyEvent,
    AnyPart,
    Citation,
    Location,
    Message,
    PartEnd,
    PartStart,
    ProviderTool,
    Request,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolDefinition,
)

_MODELS = {
    **MODELS,
    "openai-chat": "gpt-4o-search-preview",
    "openai-responses": "gpt-5.1",
    "bedrock-converse": "us.amazon.nova-2-lite-v1:0",
}
"""Models that have such tools, where not all do."""


def _tool(feature: str, tool: ProviderTool | dict[str, ProviderTool], found_in: Slots) -> Case:
    example: Any = (
        {family: ask(tools=(one,)) for family, one in tool.items()} if isinstance(tool, dict) else ask(tools=(tool,))
    )
    return Case(feature, "request", example, facts.hosted_tools, found_in, models=_MODELS)


_SEARCH = ProviderTool("web_search", kind="web_search")
_BLOCKED = ProviderTool("web_search", kind="web_search", blocked_domains=("example.com",))
_SERVER = ProviderTool("docs", kind="mcp", server_url="https://example.org/mcp", approval="never")
_BASH = {"type": "bash_20250124", "name": "bash"}

_COMPUTER = {"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768}
_SCREEN = {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"}
_LATER = ToolDefinition("later", parameters={"type": "object", "properties": {}}, deferred=True)
_SEARCHING = {**_MODELS, "openai-responses": "gpt-5.4"}

_DEFINITIONS: tuple[Case, ...] = (
    _tool("web-search", _SEARCH, slots(
        chat="web_search_options", responses="type=web_search", messages="type=web_search_20250305",
        gemini="googleSearch", converse="systemTool")),
    _tool("web-search-sites", _BLOCKED, slots(
        responses="blocked_domains", messages="blocked_domains", vertex="excludeDomains")),
    _tool("web-search-only", ProviderTool("web_search", kind="web_search", allowed_domains=("example.org",)), slots(
        responses="allowed_domains", messages="allowed_domains")),
    _tool("web-search-place", ProviderTool("web_search", kind="web_search", location=Location("DE", city="Bonn")),
          slots(chat="user_location", responses="user_location", messages="user_location")),
    _tool("web-search-size", ProviderTool("web_search", kind="web_search", context_size="low"), slots(
        chat="search_context_size", responses="search_context_size")),
    Case("hosted-tool-uses", "request", ask(tools=(structs.replace(_SEARCH, max_uses=3),)), facts.hosted_uses,
         slots(responses="max_tool_calls=3", messages="max_uses=3"), models=_MODELS),
    _tool("web-fetch", ProviderTool("web_fetch", kind="web_fetch"), slots(
        messages="type=web_fetch_20250910", gemini="urlContext")),
    _tool("code-execution", ProviderTool("code_execution", kind="code_execution"), slots(
        responses="type=code_interpreter", messages="type=code_execution_20250825", gemini="codeExecution",
        converse="systemTool")),
    _tool("file-search", ProviderTool("file_search", kind="file_search", stores=("store_1",)), Slots(
        responses="type=file_search", gemini="fileSearch")),
    _tool("mcp-servers", _SERVER, Slots(responses="type=mcp", gemini="mcpServers")),
    _tool("mcp-tools", structs.replace(_SERVER, allowed_tools=("look_up",)), Slots(responses="allowed_tools")),
    _tool("image-generation", ProviderTool("image_generation", kind="image_generation"), slots(
        responses="type=image_generation")),
    _tool("hosted-shell", ProviderTool("shell", kind="shell"), slots(responses="type=shell")),
    _tool("tool-search", ProviderTool("tool_search", kind="tool_search"), slots(
        responses="type=tool_search", messages="type=tool_search_tool_bm25_20251119")),
    Case("deferred-tools", "request", ask(tools=(_LATER, ProviderTool("tool_search", kind="tool_search"))),
         facts.deferred_tools, slots(responses="defer_loading", messages="defer_loading"), models=_SEARCHING),
    Case("computer-use", "request", {
        "anthropic": ask(tools=(ProviderTool("computer", "anthropic", _COMPUTER),)),
        "openai-responses": ask(tools=(ProviderTool("computer_use_preview", "openai-responses", _SCREEN),)),
    }, facts.declared_names, private=True),
    Case("client-tools", "request", {
        "anthropic": ask(tools=(ProviderTool("bash", "anthropic", _BASH),)),
        "openai-responses": ask(tools=(ProviderTool("apply_patch", "openai-responses", {"type": "apply_patch"}),)),
    }, facts.declared_names, private=True),
)  # fmt: skip

# ── calls and results ─────────────────────────────────────────────────────────────────────────────────────────

_PAGE = "https://example.org"
_CALLED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}
_FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": _PAGE, "title": "E", "encrypted_content": "ZW5j"}],
}
_LOOKED_UP = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "rain", "sources": [{"type": "url", "url": _PAGE}]},
}
_QUERY: dict[str, Any] = {"kind": "web_search", "input": {"query": "rain"}}
_SEARCHED: dict[str, tuple[ServerToolCall, ServerToolResult]] = {
    "anthropic": (
        ServerToolCall("srvtoolu_1", "web_search", "anthropic", _CALLED, **_QUERY),
        ServerToolResult(
            "srvtoolu_1", "web_search", "anthropic", _FOUND, kind="web_search", sources=(Citation(_PAGE, "E"),)
        ),
    ),
    "openai-responses": (
        ServerToolCall("ws_1", "web_search", "openai-responses", _LOOKED_UP, **_QUERY),
        ServerToolResult("ws_1", "web_search", "openai-responses", {}, kind="web_search", sources=(Citation(_PAGE),)),
    ),
}
_CODE = {"executableCode": {"language": "PYTHON", "code": "print(6*7)", "id": "c1"}}
_RUN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42", "id": "c1"}}
_INTERPRETED = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "container_id": "cntr_1",
    "code": "print(6*7)",
}
_SNIPPET: dict[str, Any] = {"kind": "code_execution", "input": {"code": "print(6*7)"}}
_PRINTED: dict[str, Any] = {"kind": "code_execution", "parts": (Text("42"),)}
_RAN: dict[str, tuple[ServerToolCall, ServerToolResult]] = {
    "google": (
        ServerToolCall("c1", "code_execution", "google", _CODE, **_SNIPPET),
        ServerToolResult("c1", "code_execution", "google", _RUN, **_PRINTED),
    ),
    "openai-responses": (
        ServerToolCall("ci_1", "code_interpreter", "openai-responses", _INTERPRETED, **_SNIPPET),
        ServerToolResult(
            "ci_1", "code_interpreter", "openai-responses", {"outputs": [{"type": "logs", "logs": "42"}]}, **_PRINTED
        ),
    ),
}
_DONE = Text("Done.")


def _history(pair: tuple[ServerToolCall, ServerToolResult]) -> Request:
    question, thanks = history().messages[0], Message("user", "Thanks.")
    return Request(None, (question, Message("assistant", (*pair, _DONE)), thanks), max_output_tokens=100)


def _events(pair: tuple[ServerToolCall, ServerToolResult]) -> tuple[AnyEvent, ...]:
    parts: tuple[AnyPart, ...] = (*pair, _DONE)
    return stream(*(event for index, part in enumerate(parts) for event in (PartStart(index, part), PartEnd(index))))


def _calls(feature: str, pairs: dict[str, tuple[ServerToolCall, ServerToolResult]]) -> tuple[Case, ...]:
    answers: dict[str, Example] = {family: answer(*pair, _DONE) for family, pair in pairs.items()}
    pieces: dict[str, Example] = {family: _events(pair) for family, pair in pairs.items()}
    return (
        Case(feature, "response", answers, facts.server_calls, private=True),
        Case(feature, "stream", pieces, facts.server_calls, private=True),
    )


HOSTED: tuple[Case, ...] = (
    *_DEFINITIONS,
    *_calls("search-calls", _SEARCHED),
    *_calls("code-calls", _RAN),
    Case("hosted-history", "request", {family: _history(pair) for family, pair in (_SEARCHED | _RAN).items()},
         facts.hosted_words, private=True),
)  # fmt: skip
