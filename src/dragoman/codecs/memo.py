"""Remembers tool definitions that were read and written: an agent sends the same ones with every request.

Memos are bounded by bytes and evict one entry at a time, oldest first, so that a working set slightly too large does
not empty them. Entries are found by exact bytes (reading) or by identity (writing); nothing else is remembered.

A first occurrence gets no entry: making one, and evicting another for it, costs as much as reading a tool, and tools
that differ with every request would evict those that recur. Whatever occurs again soon after is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Raw

from dragoman.codecs.reading import WireReader, WireValue
from dragoman.errors import DecodeError
from dragoman.ir import AnyTool, ProviderTool, ToolDefinition
from dragoman.ir.traits import tool_traits
from dragoman.ir.values import encode_json
from dragoman.losses import Entry, LossLog, ToolLosses

K = TypeVar("K")
V = TypeVar("V")

MOST_BYTES = 1 << 20
LONGEST_ENTRY = 1 << 18
ENTRY_BYTES = 512
"""Counted for every entry besides its size: the key, the value's own objects, the slot in the dictionary."""
_LATELY = 512
"""How many recent fingerprints are remembered, one for each remainder."""
_TAIL = 512
"""How many bytes at the end of a list make its fingerprint. A collision costs one entry, nothing else."""
_MOST_OF_ONE_LENGTH = 4
_MOST_TOOLS = 512
"""Longer lists are not remembered: they would only evict others, and cost more the longer they are."""


class BoundedMemo(Generic[K, V]):
    """A dictionary whose entries may not exceed `most_bytes` in total: their sizes, and a fixed number for each."""

    __slots__ = ("_bytes", "_came_lately", "_entries", "get", "most_bytes")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        # Evicting the oldest entry of a plain dict would scan over all entries evicted before it.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._came_lately = [0] * _LATELY
        self.most_bytes = most_bytes
        self.get = self._entries.get
        """Value and size, or None."""

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0
        self._came_lately = [0] * _LATELY

    def admits(self, fingerprint: int) -> bool:
        """Whether this fingerprint occurred recently too, so that an entry is likely to be used."""
        place = fingerprint % _LATELY
        if self._came_lately[place] == fingerprint:
            return True
        self._came_lately[place] = fingerprint
        return False

    def put(self, key: K, value: V, size: int) -> None:
        if size > LONGEST_ENTRY:
            return
        size += ENTRY_BYTES
        replaced = self._entries.pop(key, None)
        self._bytes += size - (0 if replaced is None else replaced[1])
        self._entries[key] = (value, size)
        while self._bytes > self.most_bytes:
            try:
                _, (_, evicted) = self._entries.popitem(last=False)
            except KeyError:
                return  # another thread changed the memo meanwhile; it evicts too
            self._bytes -= evicted


class DecodedTools:
    """The tools of a request, with the traits a decoder notes about them (ir/traits.py)."""

    __slots__ = ("is_private", "names", "tools")

    def __init__(self, tools: tuple[AnyTool, ...]) -> None:
        self.tools = tools
        self.names = frozenset([tool.name for tool in tools])
        self.is_private = tool_traits(tools)
        """Trait bits: `PRIVATE_SETTING`, `VENDOR_TOOL`."""


NO_TOOLS = DecodedTools(())
_ITEMS: Any = list[Raw] | None


class ToolLists(Generic[V]):
    """Reads the `tools` of a request as a whole: reuses the result of `decode` for the same bytes.

    A list is found by its length and compared byte by byte, which is cheaper than hashing it. Several of one length
    are kept: two sessions of an agent often differ in a path or a date within a description.
    """

    def __init__(self, decode: Callable[[Raw], V]) -> None:
        self._decode = decode
        self._lists: BoundedMemo[int, tuple[tuple[Raw, V], ...]] = BoundedMemo()

    def read(self, raw: Raw) -> V:
        size = len(raw)
        entry = self._lists.get(size)
        known: tuple[tuple[Raw, V], ...] = () if entry is None else entry[0]
        for held, decoded in known:
            if held == raw:
                return decoded
        made = self._decode(raw)
        if self._lists.admits(hash(bytes(memoryview(raw)[-_TAIL:]))):
            most = min(_MOST_OF_ONE_LENGTH, LONGEST_ENTRY // size)
            kept = (*known, (Raw(bytes(raw)), made))[-most:] if most else ()  # a copy: `raw` keeps the body alive
            self._lists.put(size, kept, size * len(kept))
        return made


class ToolReader:
    """Reads the `tools` of a request: the whole list if it was read before, else tool by tool."""

    def __init__(
        self,
        kind: Any,
        source: str,
        decode: Callable[[Any], AnyTool],
        *,
        wider: Any = None,
        aliases: Mapping[str, str] | None = None,
        untagged: Any = None,
    ) -> None:
        """`kind` is the wire type of one tool; `decode` gets a value of it, or of `wider` or `untagged`.

        See `WireReader` for these two.
        """
        self._reader: WireReader[Any] = WireReader(
            kind, source, wider=wider, aliases=aliases, untagged=untagged, lone_elements=False
        )
        self._items: WireReader[list[Raw] | None] = WireReader(_ITEMS, source, path="$.tools", lone_elements=False)
        self._decode = decode
        self._tools: BoundedMemo[bytes, AnyTool] = BoundedMemo()
        self.read = ToolLists(self._read_list).read

    def _read_list(self, raw_value: Raw) -> DecodedTools:
        items = self._items.read(raw_value) or ()
        if len(items) > _MOST_TOOLS:
            read = self._reader.read
            return DecodedTools(tuple([self._decoded(read(raw, f"$.tools[{i}]"), i) for i, raw in enumerate(items)]))
        return DecodedTools(tuple([self._read_tool(bytes(raw), index) for index, raw in enumerate(items)]))

    def _read_tool(self, data: bytes, index: int) -> AnyTool:
        known = self._tools.get(data)
        if known is not None:
            return known[0]
        tool = self._decoded(self._reader.read(data, f"$.tools[{index}]"), index)
        if self._tools.admits(hash(data)):
            self._tools.put(data, tool, len(data))
        return tool

    def _decoded(self, wire: Any, index: int) -> AnyTool:
        try:
            return self._decode(wire)
        except DecodeError as error:
            if error.path != "$":
                raise
            raise error.within(f"$.tools[{index}]") from error


class ToolWriter:
    """Writes the tools of a request for one target: a tool that was written before is not encoded again.

    `encode` must depend on the tool alone (all tools are given for the path of an error). Losses are remembered with
    the tool, which is their node.
    """

    def __init__(
        self,
        encode: Callable[[AnyTool, tuple[AnyTool, ...], LossLog], WireValue],
        depends: Callable[[tuple[AnyTool, ...]], bool] | None = None,
    ) -> None:
        """`depends`: whether the encoding of these tools depends on each other or on the request."""
        self._encode = encode
        self._depends = depends
        self._dependent: BoundedMemo[int, tuple[AnyTool, ...]] = BoundedMemo()
        self._tools: BoundedMemo[int, tuple[AnyTool, Raw | None, list[Entry]]] = BoundedMemo()
        self._lists: BoundedMemo[int, tuple[tuple[AnyTool, ...], Raw | None, ToolLosses]] = BoundedMemo()

    def can_write(self, tools: tuple[AnyTool, ...]) -> bool:
        """Whether each of these tools can be written independently."""
        if self._depends is None:
            return True
        written = self._lists.get(id(tools))
        if written is not None and written[0][0] is tools:
            return True
        dependent = self._dependent.get(id(tools))
        if dependent is not None and dependent[0] is tools:
            return False
        if not self._depends(tools):
            return True
        if self._dependent.admits(fingerprint(tools)):
            self._dependent.put(id(tools), tools, size_of_tools(tools))
        return False

    def write(self, tools: tuple[AnyTool, ...], log: LossLog) -> Raw | None:
        """Encode the tools; None if none is left."""
        known = self._lists.get(id(tools))
        if known is not None and known[0][0] is tools:
            _, written, losses = known[0]
            log.add_tool_losses(losses)
            return written
        if len(tools) > _MOST_TOOLS:
            long = [wire for tool in tools if (wire := self._encode(tool, tools, log)) is not None]
            return Raw(encode_json(long)) if long else None
        own = LossLog()
        wires = [wire for tool in tools if (wire := self.write_tool(tool, tools, own)) is not None]
        written = Raw(encode_json(wires)) if wires else None
        log.entries += own.entries
        if self._lists.admits(fingerprint(tools)):
            size = size_of_tools(tools) + _length(written) + len(own.entries) * _LOSS_BYTES
            self._lists.put(id(tools), (tools, written, ToolLosses(own.entries)), size)
        return written

    def write_tool(self, tool: AnyTool, tools: tuple[AnyTool, ...], log: LossLog) -> Raw | None:
        known = self._tools.get(id(tool))
        if known is not None and known[0][0] is tool:
            _, written, entries = known[0]
            log.entries += entries
            return written
        own = LossLog()
        wire: Any = self._encode(tool, tools, own)
        written = None if wire is None else wire if type(wire) is Raw else Raw(encode_json(wire))
        log.entries += own.entries
        if self._tools.admits(fingerprint((tool,))):
            self._tools.put(id(tool), (tool, written, own.entries), size_of_tools((tool,)) + _length(written))
        return written


_LOSS_BYTES = 512
"""Of a loss, with its path."""


def _length(written: Raw | None) -> int:
    return 0 if written is None else len(written)


def fingerprint(tools: tuple[AnyTool, ...]) -> int:
    """Return a number that tools of the same names and descriptions share (identities may be reused)."""
    if not tools:  # none is left, because a choice names no tool of the request
        return 0
    last = tools[-1]
    description = last.description if type(last) is ToolDefinition else None
    return hash((len(tools), tools[0].name, last.name, description))


def size_of_tools(tools: tuple[AnyTool, ...]) -> int:
    """Return the bytes that an entry found by the identity of its tools keeps alive, besides the encoded ones."""
    size = 0
    for tool in tools:
        key = _definition_of(tool)
        size += ENTRY_BYTES + (len(key) if type(key) is Raw else 0 if key is None else _PARSED)
    return size


_PARSED = 4_096
"""For a schema that was built as a mapping: its size is unknown, and a thousand of them are enough."""


def _definition_of(tool: AnyTool) -> object:
    if isinstance(tool, ToolDefinition):
        return tool.parameters_held
    return tool.definition_held if isinstance(tool, ProviderTool) else tool.format_held
