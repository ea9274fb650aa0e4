"""Tools are read and written once, whatever else the body says; memos stay bounded."""

import json
import tracemalloc
from itertools import count
from typing import Any

from msgspec import Raw, structs

import dragoman
from dragoman import ir
from dragoman.codecs.memo import (
    _LATELY,
    ENTRY_BYTES,
    LONGEST_ENTRY,
    MOST_BYTES,
    BoundedMemo,
    ToolReader,
    ToolWriter,
)
from dragoman.codecs.registry import codec
from dragoman.codecs.wire_values import Wire
from dragoman.losses import LossLog
from tests.support.collector import tracked_objects
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


def places(name: str) -> set[tuple[str, int]]:
    """Where the fingerprints of this tool, and of a list with it alone, are remembered. It differs in every process."""
    tool = json.dumps({"name": name}).encode()
    return {("list", hash(bytes(raw(name))) % _LATELY), ("tool", hash(tool) % _LATELY)}


def numbered(letters: str) -> list[str]:
    """A name for each letter. No two of them share a place."""
    found: list[str] = []
    for letter in letters:
        taken = {place for name in found for place in places(name)}
        found.append(next(name for number in count() if not places(name := f"{letter}{number}") & taken))
    return found


def test_a_tool_that_came_twice_is_not_read_again_in_whatever_list_it_comes() -> None:
    counting = Counting()
    reader = ToolReader(Tool, "t", counting.decode)
    a, b, c = numbered("abc")
    reader.read(raw(a, b))
    first = reader.read(raw(a, b))
    assert reader.read(raw(a, b)) is first
    second = reader.read(raw(a, b, c))
    assert second.tools[:2] == first.tools
    assert counting.decoded == [a, b, a, b, c]
    assert second.names == {a, b, c}


def test_lists_of_one_length_do_not_evict_each_other() -> None:
    counting = Counting()
    reader = ToolReader(Tool, "t", counting.decode)
    *kept, further = numbered("abcde")
    for name in kept:
        reader.read(raw(name))
    lists = {name: reader.read(raw(name)) for name in kept}
    assert [name for name in lists if reader.read(raw(name)) is not lists[name]] == []
    for _ in range(2):
        reader.read(raw(further))  # there is room for four
    assert [name for name in reversed(kept) if reader.read(raw(name)) is not lists[name]] == kept[:1]


def test_tools_that_come_once_get_no_entry_and_push_none_out() -> None:
    counting = Counting()
    reader = ToolReader(Tool, "t", counting.decode)
    for _ in range(2):
        reader.read(raw("kept"))
    for number in range(10_000):
        reader.read(raw(f"once_{number}"))
    counting.decoded.clear()
    reader.read(raw("kept"))
    assert counting.decoded == []


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
    assert counting.encoded == ["a", "lost", "a", "lost", "b"]
    assert [entry[2] for entry in log.entries] == ["a", "b"]
    assert writer.write((tools[1],), LossLog()) is None


def test_a_memo_evicts_the_oldest_entry_and_no_more() -> None:
    memo: BoundedMemo[int, str] = BoundedMemo(10 * (ENTRY_BYTES + 10))
    for key in range(11):
        memo.put(key, str(key), 10)
    assert memo.get(0) is None
    assert [memo.get(key) for key in range(1, 11)] == [(str(key), ENTRY_BYTES + 10) for key in range(1, 11)]
    memo.put(5, "again", 20)
    assert memo.get(1) is None
    assert memo.get(5) == ("again", ENTRY_BYTES + 20)


def test_what_is_too_long_is_not_remembered() -> None:
    memo: BoundedMemo[int, str] = BoundedMemo()
    memo.put(1, "x", LONGEST_ENTRY + 1)
    assert memo.get(1) is None


def test_entries_without_any_output_count() -> None:
    memo: BoundedMemo[int, None] = BoundedMemo()
    for key in range(100_000):
        memo.put(key, None, 0)
    assert len(memo) == MOST_BYTES // ENTRY_BYTES


def test_what_an_entry_keeps_alive_counts_even_if_nothing_is_written_of_it() -> None:
    """All tools of such a list are dropped, and their schemas are held by the list that the memo knows."""
    writer = ToolWriter(lambda _tool, _tools, _log: None, lambda _tools: False)
    schema = b'{"description":"%b"}' % (b"x" * 60_000)
    tracemalloc.start()
    for number in range(200):
        tools = (ir.ToolDefinition(f"t{number}", parameters=Raw(schema + b" " * number)),)
        for _ in range(2):
            assert writer.can_write(tools)
            assert writer.write(tools, LossLog()) is None
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 3 * MOST_BYTES  # of 12 MB


def test_small_entries_of_a_reader_take_no_more_than_they_count() -> None:
    reader = ToolReader(Tool, "t", Counting().decode)
    tracemalloc.start()
    for number in range(6_000):
        for _ in range(2):
            reader.read(raw(f"tool_{number}"))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 2 * 2 * MOST_BYTES  # two memos


def test_all_memos_together_are_bounded() -> None:
    """One for each direction, kind of target and format."""
    for name in dragoman.formats():
        dragoman.encode_request(ir.Request("m", (ir.Message("user", "x"),), (ir.ToolDefinition("f"),)), name)
    memos = [one for one in tracked_objects() if isinstance(one, BoundedMemo)]
    assert 10 < len(memos) < 80
    assert {memo.most_bytes for memo in memos} <= {MOST_BYTES}
    assert MOST_BYTES <= 1 << 20


# ── losses of remembered tools ────────────────────────────────────────────────────────────────────────────────


def _declared(count: int, tail: str = "") -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
    return [{"name": f"f{index}{tail}", "parametersJsonSchema": schema} for index in range(count)]


def _paths(body: dict[str, Any], source: str = "gemini") -> list[str]:
    return [loss.path for loss in dragoman.translate_request(body, source=source, target="ollama-chat").losses]


def test_losses_of_remembered_tools_keep_their_places_among_the_others() -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": _declared(3, "_placed")}],
        "cachedContent": "c",
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 8192}},
    }
    first = dragoman.translate_request(body, source="gemini", target="ollama-chat").losses
    assert ["tools" in loss.path for loss in first] == [False, True, True, True, False]
    for _ in range(4):
        assert dragoman.translate_request(body, source="gemini", target="ollama-chat").losses == first


def test_remembered_tools_in_other_groups_have_other_paths() -> None:
    tools = dragoman.decode_request(
        {"contents": [], "tools": [{"functionDeclarations": _declared(2, "_grouped")}]}, "gemini"
    )
    apart = dragoman.decode_request(
        {"contents": [], "tools": [{"functionDeclarations": [one]} for one in _declared(2, "_grouped")]}, "gemini"
    )
    message = ir.Message("user", "hi")
    for _ in range(4):  # the same tuple of tools, in requests with different notes
        for given, place in ((tools, "tools[0].functionDeclarations[1]"), (apart, "tools[1].functionDeclarations[0]")):
            log = LossLog()
            request = structs.replace(given, messages=(message,), tools=tools.tools)
            codec("ollama-chat").encode_request(request, log)
            losses = log.resolve(request, codec("gemini").request_paths)
            assert f"$.{place}.parametersJsonSchema" in [loss.path for loss in losses]


def test_remembered_tools_have_the_paths_of_the_source_they_came_from() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
    openai = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f_sourced", "parameters": schema}}],
    }
    request = dragoman.decode_request(openai, "openai-chat")
    for _ in range(4):
        for source, key in (("openai-chat", "function.parameters"), ("anthropic-messages", "input_schema")):
            log = LossLog()
            codec("ollama-chat").encode_request(request, log)
            assert [loss.path for loss in log.resolve(request, codec(source).request_paths)] == [f"$.tools[0].{key}"]


def test_long_notes_are_not_kept_with_the_losses() -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": _declared(1, "_long")}],
    }
    assert _paths(body) == _paths(body) == _paths(body)
    request = dragoman.decode_request(body, "gemini")
    noted = structs.replace(
        request, metadata={"gemini": {**(request.metadata or {}).get("gemini", {}), "~x": Raw(b"1" * 5000)}}
    )
    log = LossLog()
    codec("ollama-chat").encode_request(noted, log)
    assert [loss.path for loss in log.resolve(noted, codec("gemini").request_paths)] == _paths(body)
