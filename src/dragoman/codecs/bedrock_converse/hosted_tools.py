"""Tools that Bedrock runs (`systemTool`, on Nova 2), in terms that all vendors share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_tools import (
    Fields,
    SharedTools,
    code_of,
    forged_id,
    output_text,
    query_of,
    text_of,
    text_within,
)
from dragoman.ir import HostedKind, ProviderTool, ServerToolCall, ServerToolResult

_KINDS: dict[str, HostedKind] = {"nova_grounding": "web_search", "nova_code_interpreter": "code_execution"}
_NAMES: dict[HostedKind, str] = {kind: name for name, kind in _KINDS.items()}
HIDDEN = "[HIDDEN]"
"""Placeholder for the pages found, which this API does not show."""


class HostedTools(SharedTools):
    def read_tool(self, definition: Mapping[str, Any]) -> Fields:
        tool = definition.get("systemTool")
        kind = _KINDS.get(str(tool.get("name"))) if isinstance(tool, dict) else None
        return {} if kind is None else {"kind": kind}

    def write_tool(self, tool: ProviderTool) -> WireValue:
        name = _NAMES.get(tool.kind) if tool.kind is not None else None
        return None if name is None else {"systemTool": {"name": name}}

    def read_call(self, block: Mapping[str, Any]) -> Fields:
        use: Any = block.get("toolUse")
        kind, arguments = _KINDS.get(str(use.get("name"))), use.get("input")
        fields: Fields = {} if kind is None else {"kind": kind}
        if not isinstance(arguments, dict):
            return fields
        snippet = text_of(arguments.get("snippet"))
        return fields | {"input": arguments if snippet is None else {"code": snippet}}

    def read_result(self, block: Mapping[str, Any]) -> Fields:
        result: Any = block.get("toolResult")
        kind = _KINDS.get(str(result.get("type")).removesuffix("_result"))
        fields: Fields = {} if kind is None else {"kind": kind}
        content = result.get("content")
        blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        runs = [one["json"] for one in blocks if isinstance(one.get("json"), dict)]
        texts = [one.get("text") for one in blocks if one.get("text") != HIDDEN]
        fields |= output_text(*texts, *(run.get(key) for run in runs for key in ("stdOut", "stdErr")))
        if result.get("status") == "error" or any(run.get("isError") is True for run in runs):
            fields["error"] = "the tool failed"
        return fields

    def write_call(self, call: ServerToolCall) -> WireValue:
        if call.kind not in _NAMES:
            return None
        arguments = {"query": query_of(call)} if call.kind == "web_search" else {"snippet": code_of(call)}
        call_id = forged_id("tooluse_", call.id)
        return {
            "toolUse": {"toolUseId": call_id, "name": _NAMES[call.kind], "input": arguments, "type": "server_tool_use"}
        }

    def write_result(self, result: ServerToolResult) -> WireValue:
        if result.kind not in _NAMES:
            return None
        text, failed = text_within(result), result.error is not None
        shown: Fields = {"text": text or HIDDEN}
        if result.kind == "code_execution":
            shown = {"json": {"stdOut": text, "stdErr": result.error or "", "exitCode": int(failed), "isError": failed}}
        return {
            "toolResult": {
                "toolUseId": forged_id("tooluse_", result.tool_call_id),
                "content": [shown],
                "status": "error" if failed else "success",
                "type": f"{_NAMES[result.kind]}_result",
            }
        }


HOSTED = HostedTools()
