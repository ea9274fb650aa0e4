"""A Responses request whose shape holds, and the ways its rules look into it."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.sim.rules.common import JsonObject, Path, objects_at, text_at
from dragoman.sim.rules.openai_request import Request

# The item that answers it -> what the server calls the call.
CALLS_BY_OUTPUT = {
    "function_call_output": ("function_call", "function call"),
    "custom_tool_call_output": ("custom_tool_call", "custom tool call"),
    "computer_call_output": ("computer_call", "computer call"),
    "shell_call_output": ("shell_call", "shell call"),
    "apply_patch_call_output": ("apply_patch_call", "apply patch call"),
}
ANSWERED_CALLS = dict(CALLS_BY_OUTPUT.values())


def kind_of(item: JsonObject) -> str:
    """An item without a type is a message or, if it has no role either, a reference."""
    return text_at(item, "type") or ("message" if "role" in item else "item_reference")


def items_of(request: Request) -> Iterator[tuple[int, JsonObject]]:
    yield from enumerate(objects_at(request.body, "input"))


def parts_of(request: Request, kind: str) -> Iterator[tuple[Path, JsonObject]]:
    """The content parts of messages and the parts of tool outputs."""
    for index, item in items_of(request):
        for place in ("content", "output"):
            for position, part in enumerate(objects_at(item, place)):
                if part.get("type") == kind:
                    yield ("input", index, place, position), part


def uses_stored_items(request: Request) -> bool:
    """Whether the server sees more of the conversation than this input."""
    if request.body.get("previous_response_id") is not None or request.body.get("conversation") is not None:
        return True
    return any(kind_of(item) == "item_reference" for _, item in items_of(request))


def tools_of(request: Request) -> Iterator[tuple[Path, JsonObject]]:
    """Every tool that can be defined in a request: at the top, in namespaces, in the input."""
    places: list[tuple[Path, object]] = [(("tools",), request.body)]
    places.extend((("input", index, "tools"), item) for index, item in items_of(request))
    for path, holder in places:
        for position, tool in enumerate(objects_at(holder, "tools")):
            yield (*path, position), tool
            for nested, member in enumerate(objects_at(tool, "tools")):
                yield (*path, position, "tools", nested), member
