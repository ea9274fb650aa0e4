"""Tools are read and written once, whatever else the body says; memos stay bounded."""

import json
from typing import Any

from msgspec import Raw

from dragoman import ir
from dragoman.codecs.memo import LONGEST_ENTRY, BoundedMemo, ToolReader, ToolWriter
from dragoman.codecs.reading import Wire
from dragoman.losses import LossLog
from tests.support.promises import promise

pytestmark = promise("core:tool-memo")


class Tool(Wire, frozen=True):
    name: str


class Counting:
    def __init__(self) -> None:
        self.decoded: list[str] = []
        self.encoded: list[str] = []

    def decode(self, wire: Tool) -> ir.AnyTool:
        self.decoded.append(wire.name)
        return ir.ToolDefinition(wire.name)

    def encode(self, tool: ir.AnyTool, tools: tuple[ir.AnyTool, ...], log: LossLog) -> Any:  # noqa: ARG002
        self.encoded.append(tool.name)
        log.drop(tool, "", tool.name, "to be remembered")
        return Tool(tool.name) if tool.name != "lost" else None


def raw(*names: str) -> Raw:
    return Raw(json.dumps([{"name": name} for name in names]).encode())


def test_a_tool_is_read_once_in_whatever_list_it_comes() -> None:
    counting = Counting()
    reader = ToolReader(Tool, "t", counting.decode)
    first = reader.read(raw("a", "b"))
    assert reader.read(raw("a", "b")) is first
    second = reader.read(raw("a", "b", "c"))
    assert second.tools[:2] == first.tools
    assert counting.decoded == ["a", "b", "c"]
    assert second.names == {"a", "b", "c"}


def test_a_tool_is_written_once_and_its_losses_are_remembered() -> None:
    counting = Counting()
    writer = ToolWriter(counting.encode)
    tools = (ir.ToolDefinition("a"), ir.ToolDefinition("lost"))
    for _ in range(3):
        log = LossLog()
        assert bytes(writer.write(tools, log) or b"") == b'[{"name":"a"}]'
        assert [entry[0] for entry in log.entries] == list(tools)
    log = LossLog()
    writer.write((tools[0], ir.ToolDefinition("b")), log)
    assert counting.encoded == ["a", "lost", "b"]
    assert [entry[2] for entry in log.entries] == ["a", "b"]
    assert writer.write((tools[1],), LossLog()) is None


def test_a_memo_evicts_the_oldest_entry_and_no_more() -> None:
    memo: BoundedMemo[int, str] = BoundedMemo(100)
    for key in range(11):
        memo.put(key, str(key), 10)
    assert memo.get(0) is None
    assert [memo.get(key) for key in range(1, 11)] == [(str(key), 10) for key in range(1, 11)]
    memo.put(5, "again", 20)
    assert memo.get(1) is None
    assert memo.get(5) == ("again", 20)


def test_what_is_too_long_is_not_remembered() -> None:
    memo: BoundedMemo[int, str] = BoundedMemo()
    memo.put(1, "x", LONGEST_ENTRY + 1)
    assert memo.get(1) is None
