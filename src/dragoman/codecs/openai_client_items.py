"""Items for OpenAI's own tools that the client runs (shell, patches, the computer), and for approvals of MCP calls.

They are ordinary calls and results in the intermediate format: any client can run them, any model can read them.

A note keeps each item as it was, for this API. For other vendors' models such a tool is a function; a call of that
function gets the note `CLIENT_ITEM` from it (ir/notes.py), and becomes such an item for the client.

An approval request is a call of `mcp_approval_request`, which no client declares: its arguments hold the id of the
request, so that the call and its result come back unchanged through clients of any format. Only a result with
`{"approve": true}` approves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.codecs.openai_client_tools import functions_of
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import ItemHead
from dragoman.codecs.shared_tools import text_within
from dragoman.ir import ContentBlock, Image, ToolCall, ToolResult
from dragoman.ir.notes import CLIENT_ITEM, Extra
from dragoman.ir.values import compact_text, encode_json, exact_object, parse_json

WHOLE = "~whole"
"""Note: the original item."""

APPROVAL = "mcp_approval_request"
_APPROVAL_ID = "approval_request_id"
_ANSWER = "mcp_approval_response"
_APPROVAL_ITEM = Raw(encode_json(APPROVAL))

_NAMES = {
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
}
_ARGUMENT_KEYS = {
    "shell_call": "action",
    "local_shell_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
}
"""The member that holds the requested action; a computer has one action, or several."""
_PREFIXES = {
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "computer_call": "cu",
    "tool_search_call": "tsc",
}
SEARCH_CALL, FOUND_TOOLS = "tool_search_call", "tool_search_output"
_OUTPUT_TYPES = {kind: f"{kind}_output" for kind in _NAMES} | {"tool_search_call": FOUND_TOOLS}
CLIENT_OUTPUTS = {_OUTPUT_TYPES[kind]: name for kind, name in _NAMES.items()}


def decode_client_call(raw: Raw, head: ItemHead) -> ToolCall | None:
    """Decode such an item as a call; None for another item."""
    kind = head.type or ""
    if kind == APPROVAL and head.id:
        return _decode_approval_request(raw, head.id)
    name = _NAMES.get(kind)
    call_id = head.call_id or head.id
    if name is None or not call_id:
        return None
    item = parse_json(raw)
    key = _ARGUMENT_KEYS.get(kind) or ("actions" if "actions" in item else "action")
    arguments: Any = item.get(key)
    if kind == "computer_call":
        name = name if key == "actions" else "computer_use_preview"
        arguments = {key: arguments} if arguments else None
    if not isinstance(arguments, dict):
        return None
    notes: Extra = {WHOLE: raw, CLIENT_ITEM: Raw(encode_json(kind)), **_further(item, key)}
    is_cut = item.get("status") == "incomplete"
    return ToolCall(call_id, name, arguments, incomplete=is_cut, metadata={FAMILY: notes})


_MODELLED = frozenset({"type", "id", "call_id", "status"})
_NO_MEANING: tuple[Any, ...] = (None, [], {"type": "local"}, "client")
"""Values without meaning here: a shell that the client runs is always local, and a search of the client's its own."""


def _further(item: Mapping[str, Any], *modelled: str) -> Extra:
    """Return the members of an item that no call or result of other formats has."""
    return {
        key: Raw(encode_json(value))
        for key, value in item.items()
        if key not in _MODELLED and key not in modelled and value not in _NO_MEANING
    }


def _decode_approval_request(raw: Raw, item_id: str) -> ToolCall:
    item = parse_json(raw)
    given = item.get("arguments")
    parsed = exact_object(given) if isinstance(given, str) else None
    arguments = {
        _APPROVAL_ID: item_id,
        **{key: item.get(key) for key in ("server_label", "name")},
        "arguments": given if parsed is None else parse_json(parsed),
    }
    notes = {WHOLE: raw, CLIENT_ITEM: _APPROVAL_ITEM, **_further(item, "server_label", "name", "arguments")}
    return ToolCall(item_id, APPROVAL, arguments, metadata={FAMILY: notes})


def approval_id(call: ToolCall) -> str | None:
    """Return the id of an approval request; None for any other call."""
    if call.name != APPROVAL or type(call.arguments_held) not in {Raw, dict}:
        return None
    found = call.arguments.get(_APPROVAL_ID)
    return found if isinstance(found, str) and found else None


def decode_client_result(raw: Raw, head: ItemHead, names: Mapping[str, str]) -> ToolResult | None:
    """Decode such an item as a result; None for another item."""
    kind = head.type or ""
    if kind == _ANSWER:
        return _decode_approval(raw, names)
    if kind not in CLIENT_OUTPUTS:
        return None
    if kind == FOUND_TOOLS:
        return _decode_found(raw, head)
    item = parse_json(raw)
    call_id = head.call_id or head.id or ""
    name = names.get(call_id) or CLIENT_OUTPUTS[kind]
    metadata = {FAMILY: {WHOLE: raw, **_further(item, "output")}}
    output = item.get("output")
    if kind == "computer_call_output":
        url = output.get("image_url") if isinstance(output, dict) else None
        file_id = output.get("file_id") if isinstance(output, dict) else None
        if not isinstance(url, str) and not isinstance(file_id, str):
            return None
        return ToolResult(call_id, name, "multimodal", None, (_screen(url, file_id),), metadata=metadata)
    if isinstance(output, str):
        kind_of = "error" if item.get("status") == "failed" else "text"
        return ToolResult(call_id, name, kind_of, output, metadata=metadata)  # type: ignore[arg-type]
    if output is None:
        return ToolResult(call_id, name, "text", str(item.get("status") or ""), metadata=metadata)
    return ToolResult(call_id, name, "data", output, metadata=metadata)


def _decode_found(raw: Raw, head: ItemHead) -> ToolResult | None:
    """Decode the tools that the client found: the result names them, and the request declares them."""
    item = parse_json(raw)
    tools = item.get("tools")
    if head.execution != "client" or not head.call_id or not isinstance(tools, list):
        return None
    found = ", ".join(name for tool in tools if isinstance(tool, dict) for name in _names_of(tool))
    metadata = {FAMILY: {WHOLE: raw, **_further(item, "tools")}}
    return ToolResult(head.call_id, CLIENT_OUTPUTS[FOUND_TOOLS], "text", found, metadata=metadata)


def _names_of(tool: Mapping[str, Any]) -> list[str]:
    """Return the names under which models of other vendors see a tool."""
    members = functions_of(tool, FAMILY)
    return [member.name for member in members] if members else [str(tool.get("name") or tool.get("type") or "")]


def _decode_approval(raw: Raw, names: Mapping[str, str]) -> ToolResult | None:
    item = parse_json(raw)
    request_id = item.get(_APPROVAL_ID)
    if not isinstance(request_id, str) or names.get(request_id) != APPROVAL:
        return None
    answer = {key: item[key] for key in ("approve", "reason") if item.get(key) is not None}
    notes = {WHOLE: raw, **_further(item, _APPROVAL_ID, "approve", "reason")}
    return ToolResult(request_id, APPROVAL, "data", answer, metadata={FAMILY: notes})


def _screen(url: str | None, file_id: str | None) -> Image:
    if url is not None and url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        return Image(head.removeprefix("data:"), data)
    return Image(url=url) if url is not None else Image(file_id=file_id)


def client_kind(call: ToolCall, notes: Extra) -> str | None:
    """Return the item type of a call; None for a function call."""
    if CLIENT_ITEM not in notes or type(call.arguments_held) not in {Raw, dict}:
        return None
    return str(parse_json(notes[CLIENT_ITEM]))


def item_prefix(kind: str) -> str:
    return _PREFIXES[kind]


def write_client_call(call: ToolCall, kind: str, item_id: str | None) -> dict[str, Any]:
    arguments: Any = call.arguments
    if kind == APPROVAL:
        given = arguments.get("arguments")
        return {
            "type": APPROVAL,
            "id": arguments[_APPROVAL_ID],
            **{key: str(arguments.get(key) or "") for key in ("server_label", "name")},
            "arguments": given if isinstance(given, str) else compact_text(given or {}),
        }
    item: dict[str, Any] = {
        "type": kind,
        "call_id": call.id,
        "status": "incomplete" if call.incomplete else "completed",
    }
    if item_id is not None:
        item["id"] = item_id
    if kind == "computer_call":
        return {**item, "pending_safety_checks": [], **arguments}
    if kind == SEARCH_CALL:
        item["execution"] = "client"
    if kind == "local_shell_call":
        arguments = {"type": "exec", "env": {}} | arguments
    return item | {_ARGUMENT_KEYS[kind]: arguments}


def write_client_result(result: ToolResult, kind: str) -> dict[str, Any] | None:
    """Encode the result; None if this API does not take it: the result of a computer call must be a picture."""
    item: dict[str, Any] = {"type": _OUTPUT_TYPES[kind], "call_id": result.tool_call_id}
    text = _text_of(result)
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": int(result.is_error)}
        value = result.value
        lines = [{"stdout": text, "stderr": "", "outcome": outcome}]
        is_output = isinstance(value, list) and all(isinstance(one, dict) and "stdout" in one for one in value)
        return item | {"output": value if is_output else lines}
    if kind == "local_shell_call":
        return {"type": item["type"], "id": result.tool_call_id, "output": text}
    if kind == "apply_patch_call":
        return item | {"status": "failed" if result.is_error else "completed", "output": text}
    for part in result.parts:
        url = _url_of(part)
        if url is not None:
            return item | {"output": {"type": "computer_screenshot", "image_url": url}}
    return None


def write_approval(result: ToolResult, request_id: str) -> dict[str, Any]:
    """Encode the approval: only `{"approve": true}` approves; any other result is the reason for the denial."""
    text = _text_of(result)
    parsed = None if result.is_error else exact_object(text)
    answer = {} if parsed is None else parse_json(parsed)
    item = {"type": _ANSWER, _APPROVAL_ID: request_id, "approve": answer.get("approve") is True}
    reason = answer.get("reason") if "approve" in answer else text
    return {**item, "reason": reason} if isinstance(reason, str) and reason else item


def _text_of(result: ToolResult) -> str:
    if result.parts:
        return text_within(result)
    value = result.value_held
    return value if type(value) is str else result.value if isinstance(result.value, str) else compact_text(value)


def _url_of(part: ContentBlock) -> str | None:
    if not isinstance(part, Image):
        return None
    return f"data:{part.media_type or 'image/png'};base64,{part.data}" if part.data is not None else part.url
