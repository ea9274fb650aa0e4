"""Items other than messages, function calls and reasoning: tools of the provider, and items we do not model.

In the intermediate format, a tool that the provider runs is a pair: the call, and its result if the wire has one. Most
of these items hold both; they are split by the fields below and joined again when encoding. Items that ask the client
for something (a screenshot, a shell command, an approval) are opaque: no other API can answer them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from dragoman.codecs.openai_responses.hosted_tools import HOSTED
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import Item, ItemHead
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_tools import FORGED, cross_hosted, forged_id, goes_back
from dragoman.ir import AnyPart, Image, Opaque, Role, ServerToolCall, ServerToolResult
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog

OUTCOME: dict[str, tuple[str, ...]] = {
    "file_search_call": ("results",),
    "code_interpreter_call": ("outputs",),
    "image_generation_call": ("result", "error"),
    "mcp_call": ("output", "error"),
    "mcp_list_tools": ("tools", "error"),
}
"""Fields of a call's item that hold the result."""
_CLIENT_RUN = frozenset(
    {"computer_call", "local_shell_call", "apply_patch_call", "mcp_approval_request", "shell_call", "tool_search_call"}
)
"""Items that the client runs or answers; for the last two, `is_for_client` reads their fields."""
_OUTPUT_OF = {"shell_call_output": "shell", "tool_search_output": "tool_search", "program_output": "program"}
_BY_CALL_ID = frozenset({"shell_call", "tool_search_call", "program"})
DRAWN = "~drawn"
"""Note on an image: the item in which a client got it, and which it sent back."""
_DRAWING = "image_generation_call"
_ROLES: dict[str, Role] = {
    "additional_tools": "system",
    "configuration_update": "system",
    "compaction_trigger": "user",
}

_RUN_BY_XAI = frozenset({"x_keyword_search", "x_semantic_search", "x_user_search", "x_thread_fetch"})


def is_run_by_server(item: Item | ItemHead) -> bool:
    """Whether the provider has run this custom tool call: xAI shows searches of X as such items, without results."""
    return item.type == "custom_tool_call" and item.name in _RUN_BY_XAI


read_head = msgspec.json.Decoder(ItemHead).decode
entries_of = _entries = msgspec.json.Decoder(dict[str, Raw]).decode


def is_for_client(kind: str, head: ItemHead) -> bool:
    """Whether the client must act on this item."""
    if kind == "tool_search_call":
        return head.execution == "client"
    if kind == "shell_call":
        return b'"container' not in (b"" if head.environment is UNSET else bytes(head.environment))
    return kind in _CLIENT_RUN


def asks_client(part: AnyPart) -> bool:
    """Whether an opaque part of an answer is a call that the client must answer."""
    return isinstance(part, Opaque) and part.origin == FAMILY and part.kind in _CLIENT_RUN


def role_of_item(kind: str) -> Role:
    """Return the role whose turn an input item belongs to."""
    if kind in _ROLES:
        return _ROLES[kind]
    return "user" if kind.endswith(("_output", "_response")) else "assistant"


def decode_other(raw: Raw, head: ItemHead, server_calls: dict[str, str]) -> list[AnyPart]:
    """Decode the parts of such an item; `server_calls` holds the earlier calls that the provider ran."""
    kind = head.type or ""
    name = _OUTPUT_OF.get(kind)
    if name is not None:
        # A tool search run by the provider has no call id: its output follows it.
        call_id = server_calls.get(head.call_id or "")
        served = call_id is not None and head.execution != "client"
        if not served:
            return [Opaque(FAMILY, kind, raw)]
        return [ServerToolResult(call_id or "", name, FAMILY, raw, **HOSTED.read_result(parse_json(raw)))]
    if is_for_client(kind, head) or not (kind.endswith("_call") or kind in {"mcp_list_tools", "program"}):
        return [Opaque(FAMILY, kind or "item_reference", raw)]
    if kind == _DRAWING and FORGED in (head.id or ""):
        image = _restore_image(raw)
        if image is not None:
            return [image]
    call_id = (head.call_id if kind in _BY_CALL_ID else head.id) or head.id or ""
    if kind in _BY_CALL_ID:
        server_calls[head.call_id or ""] = call_id
    name = head.name or kind.removesuffix("_call")
    return _take_apart(raw, kind, call_id, name)


def _take_apart(raw: Raw, kind: str, call_id: str, name: str) -> list[AnyPart]:
    block = parse_json(raw)
    called, found = HOSTED.read_call(block), HOSTED.read_result(block)
    fields = OUTCOME.get(kind, ())
    entries = _entries(raw) if fields else {}
    outcome = {key: entries[key] for key in fields if key in entries}
    if all(bytes(value) == b"null" for value in outcome.values()):
        call = ServerToolCall(call_id, name, FAMILY, raw, **called)
        # The sources of a search are within its action, or not shown: the result adds nothing to the item.
        is_over = block.get("status") != "in_progress" and "kind" in found
        return [call, ServerToolResult(call_id, name, FAMILY, {}, **found)] if is_over else [call]
    rest = {key: value for key, value in entries.items() if key not in outcome}
    return [
        ServerToolCall(call_id, name, FAMILY, Raw(encode_json(rest)), **called),
        ServerToolResult(call_id, name, FAMILY, Raw(encode_json(outcome)), **found),
    ]


def drawing_item(image: Image, item_id: str) -> WireValue:
    """Return the item in which clients of this API look for an image of an answer: its models draw with a tool."""
    form = (image.media_type or "image/png").removeprefix("image/")
    item = {"id": forged_id("ig_", item_id), "type": _DRAWING, "status": "completed", "result": image.data}
    return item if form == "png" else {**item, "output_format": form}


def _restore_image(raw: Raw) -> Image | None:
    """Return the image of an item that we made for a client."""
    result = HOSTED.read_result(parse_json(raw))
    image = next((part for part in result.get("parts", ()) if type(part) is Image), None)
    return None if image is None else structs.replace(image, metadata={FAMILY: {DRAWN: raw}})


def is_outcome_of(result: AnyPart, call: AnyPart | None) -> bool:
    """Whether the result shares an item with the call before it."""
    return (
        isinstance(result, ServerToolResult)
        and isinstance(call, ServerToolCall)
        and result.tool_call_id == call.id
        and result.origin == call.origin
        and (result.origin != FAMILY or "type" not in (result.block or {}))
    )


def encode_pair(call: ServerToolCall, following: AnyPart | None, log: LossLog) -> WireValue:
    """Return the item of a call, with its result if they share one; a call of another provider is for clients only."""
    is_pair = following is not None and is_outcome_of(following, call)
    outcome: Any
    if not goes_back(call, FAMILY, to_client=True):
        item: Any = cross_hosted(call, log, HOSTED)
        outcome = cross_hosted(following, log, HOSTED) if is_pair else None  # type: ignore[arg-type]
        if item is None or outcome is None:
            return item
        action = item.get("action", {}) | outcome.get("action", {})
        return item | outcome | ({"action": action} if action else {})
    raw = to_raw(call.block_held)
    if not is_pair:
        return raw
    outcome = _entries(to_raw(following.block_held))  # type: ignore[union-attr]
    return Raw(encode_json(_entries(raw) | outcome))
