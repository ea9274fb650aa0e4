"""Collects losses while passes and encoders work, and finds their JSON paths in the source (law 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

from msgspec import structs

from dragoman.ir import AnyTool, Completion, Message, Request, StreamStart, ToolResult
from dragoman.ir.values import Value
from dragoman.loss import Loss, Severity

_OF_THE_ANSWER = (StreamStart, Completion)

N = TypeVar("N")
T = TypeVar("T")
V = TypeVar("V", bound=Value)

PathLookup: TypeAlias = Callable[[int | None, int | None, str], str]
"""(message index, part index, field) -> JSON path. Without a message index, the part index counts tools."""

JsonPaths: TypeAlias = Callable[[Any], PathLookup]
"""Request or completion -> lookup of where its nodes were in the body it was decoded from.

The first call may walk the messages once; each lookup must then take constant time, because one body can lose thousands
of things. The path of a tool depends on the tools and on notes of the request alone.
"""


PiecePath: TypeAlias = Callable[[ToolResult, int, str], str]
"""(result, index of one of its parts, field) -> what follows the path of the result."""


class PathsWithPieces:
    """Json paths of a format, with those of the parts inside its tool results."""

    pieces: PiecePath
    _paths: JsonPaths

    def __init__(self, paths: JsonPaths, pieces: PiecePath) -> None:
        self._paths, self.pieces = paths, pieces

    def __call__(self, root: Any) -> PathLookup:
        return self._paths(root)


def at(path: str, field: str) -> str:
    """Return the path of a field below another path; that path itself for an empty field."""
    return f"{path}.{field}" if field else path


Position: TypeAlias = tuple[int | None, int | None, int]
"""Message index, part index, and the index of the node among the parts of the result there; -1 if it is not inside."""

Entry: TypeAlias = tuple[Value, str, str, Severity, str]
"""Node, field, what, severity, why."""


Remark: TypeAlias = tuple[Value | str | None, str, Severity, str]
"""Node (None: the whole record; text: a JSON path in it), what, severity, why."""


class Remarks(NamedTuple):
    """What the reader of a record found in it that becomes a loss."""

    format: str
    found: tuple[Remark, ...]
    """Losses in every format but its own."""
    everywhere: tuple[Remark, ...] = ()
    """Losses in its own format too."""


def remarks_on(request: Request) -> Remarks | None:
    """The remarks that the decoder left on a request. Like traits, they are lost when it is changed."""
    return request._remarks  # type: ignore[no-any-return]  # noqa: SLF001


class ToolLosses:
    """Losses of tools that are written for every request of a conversation.

    They are resolved again only if the source has other tools, another format or other notes.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self._known: tuple[tuple[Value, ...], JsonPaths, dict[str, bytes], list[Loss]] | None = None

    def resolve(self, log: LossLog, root: Value, paths: JsonPaths) -> list[Loss]:
        given = getattr(root, "tools", ())
        notes = _spelling_of(root)
        if notes is None:
            return log.resolve_entries(self.entries, root, paths)
        known = self._known
        if known is None or known[0] is not given or known[1] is not paths or known[2] != notes:
            known = (given, paths, notes, log.resolve_entries(self.entries, root, paths))
            self._known = known  # in one step: other threads may write the same tools
        return known[3]


_LONGEST_NOTE = 1_024


def _spelling_of(root: Value) -> dict[str, bytes] | None:
    """Return the notes of a request, which the path of a tool may depend on; None if they are too long to keep."""
    found: dict[str, bytes] = {}
    for notes in (getattr(root, "metadata", None) or {}).values():
        for key, held in notes.items():
            if key[:1] == "~":
                if len(held) > _LONGEST_NOTE:
                    return None
                found[key] = bytes(held)  # a copy: the note may keep a whole body alive
    return found


class LossLog:
    """Collects losses while passes and encoders work, by the node they concern; JSON paths are resolved on demand.

    A pass that replaces a node registers the replacement (`replaced`), so that its path leads to the original.
    """

    entries: list[Entry]
    origins: dict[int, tuple[Value, Value]] | None = None
    """Id of a node made by a pass -> the original node, and the new one."""
    root: Value | None = None
    paths: JsonPaths | None = None
    tools: ToolLosses | None
    """Losses of tools that were written before, which begin at `tools_at`."""
    tools_at: int = 0

    def __init__(self) -> None:
        self.entries = []
        self.tools = None

    def __bool__(self) -> bool:
        return bool(self.entries)

    def drop(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "dropped", why))

    def degrade(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "degraded", why))

    def invent(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "invented", why))

    def note(self, node: Value, field: str, what: str, why: str) -> None:
        self.entries.append((node, field, what, "noted", why))

    def add_remarks(self, remarks: Remarks, request: Request, target: str) -> None:
        """Add the remarks of the request's decoder that apply to this target."""
        found = remarks.everywhere if remarks.format == target else remarks.found + remarks.everywhere
        for node, what, severity, why in found:
            if isinstance(node, str):
                self.entries.append((request, KEY + node, what, severity, why))
            else:
                self.entries.append((request if node is None else node, "", what, severity, why))

    def add_tool_losses(self, losses: ToolLosses) -> None:
        """Add the losses of all tools of a request, which were written before."""
        if losses.entries:
            self.tools, self.tools_at = losses, len(self.entries)
            self.entries += losses.entries

    def dropped_content(self) -> str:
        """Return what of the messages was dropped and why, for the reason of a refusal; empty if nothing was."""
        kept = (Request, *_TOOLS)
        dropped = [
            (what, why)
            for node, _, what, severity, why in self.entries
            if severity == "dropped" and type(node) not in kept
        ]
        if not dropped:
            return ""
        what, why = dropped[0]
        more = f", and {len(dropped) - 1} more" if len(dropped) > 1 else ""
        return f": dropped {what} ({why}){more}"

    def replaced(self, new: Value, old: Value) -> None:
        if self.origins is None:
            self.origins = {}
        self.origins[id(new)] = (old, new)

    def replace(self, node: V, **changes: Any) -> V:
        """Return the node with changes, whose losses lead to the node; without changes, the node itself."""
        if not changes:
            return node
        new = structs.replace(node, **changes)
        self.replaced(new, node)
        return new

    def keep_for(self, root: Value, paths: JsonPaths) -> None:
        """Keep what resolving the losses of `root` takes."""
        self.root, self.paths = root, paths

    def resolve_kept(self) -> tuple[Loss, ...]:
        """Return all losses, after `keep_for`."""
        assert self.root is not None  # noqa: S101
        assert self.paths is not None  # noqa: S101
        return self.resolve(self.root, self.paths)

    def resolve(self, root: Value, paths: JsonPaths) -> tuple[Loss, ...]:
        """Return all losses with JSON paths in the source, in one pass over the log and at most one over `root`."""
        tools = self.tools
        if tools is None:
            return tuple(self.resolve_entries(self.entries, root, paths))
        start = self.tools_at
        before, behind = self.entries[:start], self.entries[start + len(tools.entries) :]
        others = self.resolve_entries(before + behind, root, paths)
        return (*others[:start], *tools.resolve(self, root, paths), *others[start:])

    def resolve_streamed(self) -> tuple[Loss, ...]:
        """Return all losses of a stream, with paths in the whole answer: a part is spread over many events."""
        losses = []
        for node, field, what, severity, why in self.entries:
            path = f"$.{field.replace(KEY, '')}" if field and type(node) in _OF_THE_ANSWER else "$"
            losses.append(Loss(path, what, severity, why))
        return tuple(losses)

    def resolve_entries(self, entries: list[Entry], root: Value, paths: JsonPaths) -> list[Loss]:
        """Return the losses of these entries of the log, in their order."""
        if not entries:
            return []
        lookup, kind = paths(root), type(root)
        positions: dict[int, Position] | None = None
        losses: list[Loss] = []
        marks: list[tuple[int, str]] = []
        for node, field, what, severity, why in entries:
            is_key = KEY in field
            # Passes may log against a changed copy of the request: every request in the log is the root.
            if type(node) is kind:
                path = field if is_key and field.startswith(_PLACE) else lookup(None, None, field)
            else:
                if positions is None:
                    positions = self._positions(entries, root, kind)
                position, inner = positions.get(id(node)), field
                if position is None:
                    position, inner = self._origin(node, field, positions, kind)
                if position is None:
                    path = "$"  # an invented node, which has no original in the source
                elif position[2] < 0:
                    path = lookup(position[0], position[1], inner)
                else:
                    path = _path_of_piece(lookup, paths, root, position, inner)
                if not field and severity == "dropped" and position is not None and position[2] < 0:
                    marked = self._path_of_mark(node, lookup, position, path)
                    marks += [(len(losses) + 1, marked)] if marked else []
            losses.append(Loss(path.replace(KEY, "", 1) if is_key else path, what, severity, why))
        return _with_marks(losses, marks) if marks else losses

    def _path_of_mark(self, node: Value, lookup: PathLookup, position: Position, path: str) -> str:
        """Return where the cache mark of a dropped node is, if it is not inside the node; empty if there is none."""
        if getattr(node, "cache", None) is None:
            return ""
        marked = lookup(position[0], position[1], "cache")
        return "" if marked.startswith(path) else marked

    def _positions(self, entries: list[Entry], root: Value, kind: type[Value]) -> dict[int, Position]:
        """Return the positions of the nodes with losses, and of their originals."""
        nodes = [entry[0] for entry in entries if type(entry[0]) is not kind]
        if self.origins is not None:
            nodes += [old for old, _ in self.origins.values()]
        if len(nodes) == 1 and type(nodes[0]) not in _TOOLS:
            position = _find(nodes[0], getattr(root, "messages", ()))
            return {} if position is None else {id(nodes[0]): position}
        tools: set[int] = set()
        wanted: set[int] = set()
        for node in nodes:
            (tools if type(node) in _TOOLS else wanted).add(id(node))
        positions = _walk(getattr(root, "messages", ()), wanted) if wanted else {}
        if tools:
            for index, tool in enumerate(getattr(root, "tools", ())):
                if id(tool) in tools:
                    positions[id(tool)] = (None, index, -1)
        return positions

    def _origin(
        self, node: Value, field: str, positions: dict[int, Position], kind: type[Value]
    ) -> tuple[Position | None, str]:
        """Return the position of the original of a node that a pass made, and the field there."""
        origins, made = self.origins or {}, type(node)
        while id(node) in origins:
            node = origins[id(node)][0]
            if type(node) is kind:
                return _ROOT, field
            position = positions.get(id(node))
            if position is not None:
                # The original may be of another kind, without that field: a provider's own tool has no parameters.
                is_field = field not in made.__struct_fields__ or field in type(node).__struct_fields__
                return position, field if is_field else ""
        return None, field


def _with_marks(losses: list[Loss], marks: list[tuple[int, str]]) -> list[Loss]:
    """Return the losses with those of cache marks whose block was dropped, each behind that of its block."""
    known = {loss.path for loss in losses}
    for place, path in reversed(marks):
        if path not in known:
            losses.insert(place, Loss(path, "cache mark", "dropped", "what it marks is not sent"))
    return losses


def read_losses(encoded: Any) -> tuple[Loss, ...]:
    """Return the losses of an encoded body, which holds them resolved or as the log that resolves them."""
    held: Any = encoded.losses_held
    if type(held) is not LossLog:
        losses: tuple[Loss, ...] = held
        return losses
    log: LossLog = held
    return log.resolve_kept()


KEY = "\0"
"""Marks a key of the source that has the name of one of our fields, so that no lookup takes it for the field."""
_PLACE = f"{KEY}$"
"""Start of a field that is a whole JSON path in the source; none of our fields begins with a dollar sign."""


def _field_names(kind: type[Value]) -> Iterator[str]:
    yield from kind.__struct_fields__
    for inner in kind.__subclasses__():
        yield from _field_names(inner)


_FIELDS = frozenset(_field_names(Value))


def field_of_key(within: str, key: str) -> str:
    """Return the field of a loss for a key of the source's own body, marked if one of our fields has the same name."""
    return f"{within}{KEY}{key}" if key in _FIELDS else within + key


_ROOT: Position = (None, None, -1)


def _path_of_piece(lookup: PathLookup, paths: JsonPaths, root: Any, position: Position, field: str) -> str:
    """Return the path of a part of a result; for formats that do not give one, the path of the result."""
    message_index, part_index, index = position
    path = lookup(message_index, part_index, "")
    pieces: PiecePath | None = getattr(paths, "pieces", None)
    if pieces is None:
        return path
    return path + pieces(root.messages[message_index].parts[part_index], index, field)


_TOOLS: frozenset[type[Any]] = frozenset(get_args(AnyTool))


def _find(node: Value, messages: tuple[Message, ...]) -> Position | None:
    """Return the position of the only node with a loss: what `_walk` gives, without a set of ids."""
    position: Position | None = None
    for message_index, message in enumerate(messages):
        if message is node:
            position = (message_index, None, -1)
        content = message.content_held
        if type(content) is not tuple:
            continue
        for part_index, part in enumerate(content):
            if part is node:
                position = (message_index, part_index, -1)
            if type(part) is ToolResult and part.parts:
                for place, inner in enumerate(part.parts):
                    if inner is node:
                        position = (message_index, part_index, place)
        if position is not None:
            break
    return position


def _walk(messages: tuple[Message, ...], wanted: set[int]) -> dict[int, Position]:
    """Return the positions of the messages, their parts and the parts of results with these ids."""
    positions: dict[int, Position] = {}
    for message_index, message in enumerate(messages):
        if id(message) in wanted:
            positions[id(message)] = (message_index, None, -1)
        content = message.content_held
        if type(content) is not tuple:
            continue
        for part_index, part in enumerate(content):
            if id(part) in wanted:
                positions[id(part)] = (message_index, part_index, -1)
            if type(part) is ToolResult and part.parts:
                for place, inner in enumerate(part.parts):
                    if id(inner) in wanted:
                        positions[id(inner)] = (message_index, part_index, place)
        if len(positions) == len(wanted):
            break
    return positions


def _intermediate_lookup(_root: Value) -> PathLookup:
    return _intermediate_path


def _intermediate_path(message_index: int | None, part_index: int | None, field: str) -> str:
    path = "$"
    if message_index is not None:
        path += f".messages[{message_index}]"
        if part_index is not None:
            path += f".parts[{part_index}]"
    elif part_index is not None:
        path += f".tools[{part_index}]"
    return at(path, field)


def intermediate_piece(_result: ToolResult, index: int, field: str) -> str:
    """Return the path of a part inside a tool result, below the path of the result."""
    return at(f".parts[{index}]", field)


intermediate_paths: JsonPaths = PathsWithPieces(_intermediate_lookup, intermediate_piece)
"""Paths in the intermediate format, for values that were not decoded."""


class Tables:
    """Cache of a path lookup: each tuple of nodes is walked once, however many paths are looked up."""

    _known: dict[tuple[int, Callable[..., Any]], tuple[Any, Any]]

    def __init__(self) -> None:
        self._known = {}

    def of(self, nodes: N, build: Callable[[N], T]) -> T:
        key = (id(nodes), build)
        if key not in self._known:
            self._known[key] = (nodes, build(nodes))  # keep the nodes alive, so that their id is not reused
        table: T = self._known[key][1]
        return table


def running_totals(counts: Iterable[int]) -> list[int]:
    """Return the sum before each position, and finally the whole sum."""
    return list(accumulate(counts, initial=0))


def paths_by_tables(json_path: Callable[[Any, Tables, int | None, int | None, str], str]) -> JsonPaths:
    """Return a path lookup from a function that finds one path at a time and caches its counts."""
    return lambda root: partial(json_path, root, Tables())


class _Paths(Protocol):
    def json_path(self, message_index: int | None, part_index: int | None, field: str, /) -> str: ...


def paths_by_class(kind: Callable[[Any], _Paths]) -> JsonPaths:
    """Return a path lookup from a class that is made for one value. A method is called faster than an instance."""
    return lambda root: kind(root).json_path


def paths_by(json_path: Callable[[Any, int | None, int | None, str], str]) -> JsonPaths:
    """Return a path lookup from a function that finds one path at a time in the whole value."""
    return lambda root: partial(json_path, root)
