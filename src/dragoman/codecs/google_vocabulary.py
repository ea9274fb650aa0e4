"""Translates between generateContent and Interactions: built-in tools, steps that Google ran, token counts.

The intermediate format uses the words of generateContent. Each function translates one object, and returns None for
one that the other API cannot express. Settings: google_settings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw

from dragoman.ir import Completion, ProviderTool, ServerToolCall, ServerToolResult, Usage
from dragoman.ir.notes import CODE_LANGUAGE, Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

Object = dict[str, Any]

# ── built-in tools ────────────────────────────────────────────────────────────────────────────────────────────

_TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "google_search": ("googleSearch", {"search_types": "searchTypes"}),
    "code_execution": ("codeExecution", {}),
    "url_context": ("urlContext", {}),
    "google_maps": ("googleMaps", {"enable_widget": "enableWidget"}),
    "file_search": (
        "fileSearch",
        {"file_search_store_names": "fileSearchStoreNames", "top_k": "topK", "metadata_filter": "metadataFilter"},
    ),
    "computer_use": (
        "computerUse",
        {
            "environment": "environment",
            "excluded_predefined_functions": "excludedPredefinedFunctions",
            "disabled_safety_policies": "disabledSafetyPolicies",
            "enable_prompt_injection_detection": "enablePromptInjectionDetection",
        },
    ),
}
_TYPE_OF_KEY = {key: kind for kind, (key, _) in _TOOLS.items()} | {"googleSearchRetrieval": "google_search"}
_ENTERPRISE_KEY, _ENTERPRISE_SEARCH = "enterpriseWebSearch", "enterprise_web_search"
_RESTRICTING = frozenset({"excludeDomains", "blockingConfidence"})
"""Options without which a tool could reach more than allowed."""
_SEARCHES = {"web_search": "webSearch", "image_search": "imageSearch"}
_SEARCH_OF = {camel: snake for snake, camel in _SEARCHES.items()}
_ENVIRONMENT = "ENVIRONMENT_"


def tool_as_member(tool: Mapping[str, Any]) -> Object | None:
    """Return an entry of Interactions' `tools` as a member of a generateContent Tool object."""
    known = _TOOLS.get(str(tool.get("type", "")))
    if known is None:
        return None
    if tool == {"type": "google_search", "search_types": [_ENTERPRISE_SEARCH]}:
        return {_ENTERPRISE_KEY: {}}
    key, names = known
    options: Object = {}
    for name, value in tool.items():
        if name == "type":
            continue
        if name not in names:
            return None
        options[names[name]] = value
    if "searchTypes" in options:
        searches = options["searchTypes"]
        if not isinstance(searches, list) or not {*map(str, searches)} <= _SEARCHES.keys():
            return None
        options["searchTypes"] = {_SEARCHES[str(search)]: {} for search in searches}
    if "environment" in options:
        options["environment"] = _ENVIRONMENT + str(options["environment"]).upper()
    return {key: options}


def member_as_tool(member: Mapping[str, Any]) -> tuple[Object, tuple[str, ...]] | None:
    """Return a member of a generateContent Tool object as an entry of Interactions' `tools`, and the options left out.

    None if Interactions has no such tool, or if what it would leave out restricts the tool.
    """
    if len(member) != 1:
        return None
    key, options = next(iter(member.items()))
    key = _camel_case(key)
    if key == "mcpServers":
        return _server_as_tool(options)
    if not isinstance(options, Mapping) or any(_camel_case(name) in _RESTRICTING for name in options):
        return None
    if key == _ENTERPRISE_KEY:
        return {"type": "google_search", "search_types": [_ENTERPRISE_SEARCH]}, tuple(options)
    kind = _TYPE_OF_KEY.get(key)
    if kind is None:
        return None
    names = {camel: snake for snake, camel in _TOOLS[kind][1].items()}
    tool: Object = {"type": kind}
    left_out = []
    for name, value in options.items():
        if (known := names.get(_camel_case(name))) is None:
            left_out.append(name)
        else:
            tool[known] = value
    if "search_types" in tool:
        searches = tool["search_types"]
        if not isinstance(searches, Mapping) or any(
            search not in _SEARCH_OF or searches[search] for search in searches
        ):
            return None
        tool["search_types"] = [_SEARCH_OF[search] for search in searches]
    if "environment" in tool:
        tool["environment"] = str(tool["environment"]).removeprefix(_ENVIRONMENT).lower()
    return tool, tuple(left_out)


def _server_as_tool(servers: Any) -> tuple[Object, tuple[str, ...]] | None:
    """Return the only server of a list; each is an entry of its own in Interactions."""
    server = servers[0] if isinstance(servers, list) and len(servers) == 1 else None
    if not isinstance(server, Mapping):
        return None
    transport = server.get("streamableHttpTransport", server.get("streamable_http_transport"))
    if not isinstance(transport, Mapping):
        return None
    tool: Object = {"type": "mcp_server"} | ({"name": server["name"]} if "name" in server else {})
    tool |= {name: transport[name] for name in ("url", "headers") if name in transport}
    return tool, tuple(name for name in transport if name not in tool)


def write_member(tool: ProviderTool, log: LossLog) -> Object | None:
    """Return a tool of generateContent as an entry of Interactions' `tools`; what it lacks is reported."""
    translated = member_as_tool(tool.definition or {})
    if translated is None:
        log.drop(tool, "", f"tool {tool.name!r}", "this API has no such tool, or not with these limits")
        return None
    wire, left_out = translated
    for name in left_out:
        log.degrade(tool, "", f"{name} of tool {tool.name!r}", "this API has no such option")
    return wire


def allowed_tools_of(server: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the tools that an MCP server of Interactions may be asked for; empty for all.

    None if it is limited in a way that other APIs cannot state.
    """
    entries = server.get("allowed_tools") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return None
    named = [entry.get("tools") or [] for entry in entries]
    names = tuple(dict.fromkeys(name for tools in named if isinstance(tools, list) for name in tools))
    modes = {str(entry.get("mode", "auto")).lower() for entry in entries}
    is_known = all(isinstance(name, str) for name in names) and modes <= {"auto", "any", "validated"}
    return names if is_known and (names or not entries) else None


def _camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


# ── steps that Google runs itself ─────────────────────────────────────────────────────────────────────────────

_TOOL_TYPES = {
    "google_search": "GOOGLE_SEARCH_WEB",
    "url_context": "URL_CONTEXT",
    "google_maps": "GOOGLE_MAPS",
    "file_search": "FILE_SEARCH",
    "processing": "MEDIA_PROCESSING",
}
_STEP_OF_TOOL_TYPE = {tool_type: kind for kind, tool_type in _TOOL_TYPES.items()}
_IMAGE_SEARCH = "GOOGLE_SEARCH_IMAGE"
_PYTHON = "PYTHON"
_WITHOUT_ARGUMENTS = frozenset({"file_search", "processing"})
_ARGUMENTS = {"google_search": "queries", "url_context": "urls", "google_maps": "queries"}
"""The only argument that Interactions accepts in a call of each tool."""


def language_note(step: Mapping[str, Any]) -> Extra:
    """Return a note for code that is not Python: generateContent has no word for another language."""
    arguments = step.get("arguments")
    if step.get("type") != "code_execution_call" or not isinstance(arguments, Mapping):
        return {}
    language = arguments.get("language")
    return {} if language in (None, "python") else {CODE_LANGUAGE: Raw(encode_json(language))}


def beside_text(summary: Raw) -> dict[int, Raw]:
    """Return what the pieces of a thought's summary have beside their text, by place: all of an image."""
    found: dict[int, Raw] = {}
    for place, piece in enumerate(parse_json(summary)):
        if isinstance(piece, Mapping):
            further = {key: value for key, value in piece.items() if key not in {"type", "text"}}
            found |= {place: Raw(encode_json(further))} if further else {}
    return found


def step_as_part(step: Mapping[str, Any]) -> Object | None:
    """Return a call or result step of Interactions, without its signature, as a member of a generateContent part."""
    kind = str(step.get("type", ""))
    if kind.endswith("_call"):
        return _call_as_part(kind.removesuffix("_call"), step)
    return _result_as_part(kind.removesuffix("_result"), step) if kind.endswith("_result") else None


def _call_as_part(tool: str, step: Mapping[str, Any]) -> Object | None:
    arguments = step.get("arguments")
    if step.keys() - {"type", "id", "arguments", "search_type"} or not isinstance(step.get("id"), str):
        return None
    if tool == "code_execution":
        if not isinstance(arguments, Mapping) or arguments.keys() != {"code", "language"}:
            return None
        # See `language_note`.
        return {"executableCode": {"id": step["id"], "language": _PYTHON, "code": arguments["code"]}}
    tool_type = _TOOL_TYPES.get(tool)
    if step.get("search_type") == "image_search":
        tool_type = _IMAGE_SEARCH
    elif "search_type" in step:
        return None
    if tool_type is None:
        return None
    call: Object = {"id": step["id"], "toolType": tool_type}
    return {"toolCall": call if arguments is None else {**call, "args": arguments}}


_OUTCOMES = {False: "OUTCOME_OK", True: "OUTCOME_FAILED"}


def _result_as_part(tool: str, step: Mapping[str, Any]) -> Object | None:
    if step.keys() - {"type", "call_id", "result", "is_error"} or not isinstance(step.get("call_id"), str):
        return None
    result, failed = step.get("result"), step.get("is_error")
    if tool == "code_execution":
        if not isinstance(result, str) or (failed is not None and not isinstance(failed, bool)):
            return None
        outcome: Object = {"id": step["call_id"], "outcome": _OUTCOMES[bool(failed)], "output": result}
        return {"codeExecutionResult": outcome}
    if tool not in _TOOL_TYPES or failed:
        return None
    response: Object = {"id": step["call_id"], "toolType": _TOOL_TYPES[tool]}
    return {"toolResponse": response if result is None else {**response, "response": {"result": result}}}


def part_as_step(part: Mapping[str, Any], call_id: str) -> Object | None:
    """Return a member of a generateContent part as a step; `call_id` is needed because older models give none."""
    if len(part) != 1:
        return None
    key, entries = next(iter(part.items()))
    translate = _STEPS.get(_camel_case(key))
    return None if translate is None or not isinstance(entries, Mapping) else translate(entries, call_id)


def _code_step(entries: Mapping[str, Any], call_id: str) -> Object | None:
    arguments = {"code": entries.get("code", ""), "language": str(entries.get("language", _PYTHON)).lower()}
    return {"type": "code_execution_call", "id": entries.get("id", call_id), "arguments": arguments}


def _outcome_step(entries: Mapping[str, Any], call_id: str) -> Object | None:
    step: Object = {
        "type": "code_execution_result",
        "call_id": entries.get("id", call_id),
        "result": entries.get("output", ""),
    }
    return step if entries.get("outcome", "OUTCOME_OK") == "OUTCOME_OK" else {**step, "is_error": True}


def _tool_call_step(entries: Mapping[str, Any], call_id: str) -> Object | None:
    tool_type = entries.get("toolType", entries.get("tool_type"))
    kind = "google_search" if tool_type == _IMAGE_SEARCH else _STEP_OF_TOOL_TYPE.get(str(tool_type))
    if kind is None:
        return None
    step: Object = {"type": f"{kind}_call", "id": entries.get("id", call_id)}
    if entries.get("args"):
        if kind in _WITHOUT_ARGUMENTS or not isinstance(entries["args"], Mapping):
            return None
        known = _ARGUMENTS[kind]
        step["arguments"] = {known: entries["args"][known]} if known in entries["args"] else {}
    return {**step, "search_type": "image_search"} if tool_type == _IMAGE_SEARCH else step


def _tool_response_step(entries: Mapping[str, Any], call_id: str) -> Object | None:
    tool_type = str(entries.get("toolType", entries.get("tool_type")))
    kind = "google_search" if tool_type == _IMAGE_SEARCH else _STEP_OF_TOOL_TYPE.get(tool_type)
    if kind is None:
        return None
    step: Object = {"type": f"{kind}_result", "call_id": entries.get("id", call_id)}
    response = entries.get("response")
    if response is None:
        return step
    # Both APIs have sent the list itself; generateContent requires an object around it.
    wrapped = isinstance(response, Mapping) and response.keys() == {"result"}
    return {**step, "result": response["result"] if wrapped else [response]}


_STEPS: dict[str, Callable[[Mapping[str, Any], str], Object | None]] = {
    "executableCode": _code_step,
    "codeExecutionResult": _outcome_step,
    "toolCall": _tool_call_step,
    "toolResponse": _tool_response_step,
}

_IN_STEPS: dict[str, frozenset[str]] = {
    "executableCode": frozenset({"id", "language", "code"}),
    "codeExecutionResult": frozenset({"id", "outcome", "output"}),
    "toolCall": frozenset({"id", "toolType", "args"}),
    "toolResponse": frozenset({"id", "toolType", "response"}),
}
"""The keys of a generateContent member that a step keeps."""


def report_beyond_step(part: ServerToolCall | ServerToolResult, step: Mapping[str, Any], log: LossLog) -> None:
    """Report what `part_as_step` leaves out: arguments, and keys of the part unless null."""
    member, entries = next(iter((part.block or {}).items()))
    given = entries.get("args") if _camel_case(member) == "toolCall" else None
    left = given.keys() - step.get("arguments", {}).keys() if isinstance(given, Mapping) else ()
    if left:
        what = f"arguments {', '.join(sorted(left))} of a call run by the provider"
        log.degrade(part, "", what, "this API has no such arguments")
    known = _IN_STEPS[_camel_case(member)]
    for key, value in entries.items():
        if value is not None and _camel_case(key) not in known:
            log.drop(part, f"{member}.{key}", f"{member}.{key}", "a step of this API has no such key")


# ── token counts: thoughts are counted outside the output, and the total is a sum ─────────────────────────────


def fit_counts(usage: Usage, log: LossLog, completion: Completion) -> tuple[int, int | None, int]:
    """Return (thoughts, cached, total) as these APIs count them; logs counts that do not fit."""
    if usage.cache_written:
        log.note(completion, "usage.cache_written", "tokens written to a cache", "this API does not count them")
    thoughts = min(usage.reasoning or 0, usage.output)
    if thoughts != (usage.reasoning or 0):
        log.degrade(completion, "usage.reasoning", f"{usage.reasoning} reasoning tokens", "more than all output tokens")
    total = usage.input + usage.output
    if usage.total not in {None, total}:
        log.degrade(completion, "usage.total", f"total of {usage.total} tokens", "totals are sums in this API")
    cached = usage.cached
    if cached is not None and cached > usage.input:
        log.degrade(completion, "usage.cached", f"{cached} cached tokens", "more than all input tokens")
        cached = usage.input
    return thoughts, cached, total
