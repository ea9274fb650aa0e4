"""Describes a recorded stream as a tree: its timeline, and the resulting answer."""

from __future__ import annotations

from msgspec import structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.inspection.bodies import describe_completion, describe_finish, describe_part, describe_usage
from dragoman.inspection.recordings import Recording, describe_end, refuse_if_unreadable
from dragoman.inspection.tree import Node
from dragoman.ir import AnyEvent, Finished, PartDelta, PartEnd, PartStart, StreamFailed, StreamStart, UsageUpdate
from dragoman.streams import StreamDecoder


def describe_stream(recording: Recording) -> Node:
    timeline = _Timeline(recording)
    timeline.read()
    return timeline.tree()


class _Group:
    """The events of one part, or one other event."""

    def __init__(self, line: int, unit: str) -> None:
        self._unit = unit
        self.first = self.last = line
        self.events: list[AnyEvent] = []
        self.pieces = 0
        self.node = Node("")

    def add(self, event: AnyEvent, line: int) -> None:
        self.events.append(event)
        self.pieces += isinstance(event, PartDelta)
        if not isinstance(event, PartEnd):  # in some formats, parts end only with the answer
            self.last = line

    @property
    def place(self) -> str:
        unit = self._unit
        return f"{unit} {self.last}" if self.first == self.last else f"{unit}s {self.first}-{self.last}"


class _Timeline:
    """Collects events into one line per group, in the order in which the groups were completed."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._answer = Accumulator()
        self._parts: dict[int, _Group] = {}
        self._usage: _Group | None = None
        self._groups: list[_Group] = []
        self._end = "no end"
        self._line = 1

    def read(self) -> None:
        decoder = StreamDecoder(self._recording.format)
        for content, line in self._recording.pieces:
            self._line = line
            self._add_events(decoder.feed(content))
        self._add_events(decoder.close())

    def tree(self) -> Node:
        name = self._recording.format
        root = Node(f"{name} stream", self._end, style="bold")
        width = max((len(group.place) for group in self._groups), default=0)
        for group in self._groups:
            group.node.head = f"{group.place:{width}}  {group.node.head}"
            root.add(group.node)
        answer = root.add(describe_completion(self._answer.completion(), name))
        answer.head = "the answer"
        return root

    def _add_events(self, events: list[AnyEvent]) -> None:
        self._answer.add(events)
        for event in events:
            if isinstance(event, PartStart | PartDelta | PartEnd):
                self._part(event)
            elif isinstance(event, UsageUpdate):
                self._count(event)
            elif isinstance(event, StreamStart):
                names = (f"model {event.model}" if event.model else "", event.id or "")
                self._add_line(Node("start", ", ".join(name for name in names if name), style="cyan"))
            elif isinstance(event, Finished):
                self._finish(event)
            elif isinstance(event, StreamFailed):
                self._fail(event)

    def _add_line(self, node: Node, group: _Group | None = None) -> None:
        group = group or _Group(self._line, self._recording.unit)
        group.node = node
        self._groups.append(group)

    def _part(self, event: PartStart | PartDelta | PartEnd) -> None:
        group = self._parts.setdefault(event.index, _Group(self._line, self._recording.unit))
        group.add(event, self._line)
        if isinstance(event, PartEnd):
            self._add_line(_describe(self._parts.pop(event.index).events, group.pieces, cut=event.incomplete), group)

    def _count(self, event: UsageUpdate) -> None:
        """Shows only the last usage update: some services send one with every chunk."""
        group = self._usage or _Group(self._line, self._recording.unit)
        group.add(event, self._line)
        if self._usage is not None:
            self._groups.remove(group)
        (node,) = describe_usage(event.usage)
        if len(group.events) > 1:
            node.remark = f"sent {len(group.events)} times" + (f", {node.remark}" if node.remark else "")
        self._usage = group
        self._add_line(node, group)

    def _finish(self, event: Finished) -> None:
        self._end = f"finished: {event.finish.reason}"
        for finish in (event.finish, *event.others):
            for node in describe_finish(finish):
                self._add_line(node)

    def _fail(self, event: StreamFailed) -> None:
        failure = event.failure
        refuse_if_unreadable(self._recording, failure, self._answer.completion(), self._line)
        self._end = "ended early" if failure.kind == "truncated" else f"failed: {failure.kind}"
        self._add_line(Node("end", warning=describe_end(failure), style="red"))


def _describe(events: list[AnyEvent], pieces: int, *, cut: bool) -> Node:
    """The complete part."""
    answer = Accumulator()
    candidate = 0
    for event in events:
        if isinstance(event, PartStart) and event.candidate:
            candidate = event.candidate
            answer.add((structs.replace(event, candidate=0),))
        else:
            answer.add((event,))
    (part,) = answer.completion().messages[0].parts
    node = describe_part(part)
    if candidate:
        node.head = f"candidate {candidate}: {node.head}"
    notes = (node.remark, f"{pieces} pieces" if pieces > 1 else "")
    node.remark = ", ".join(note for note in notes if note)
    if cut and "cut off" not in node.warning:
        node.warning = "cut off"
    return node
