"""A stored conversation as a request: its messages, and if given also tools, tool choice and model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader, as_json, spliced
from dragoman.codecs.records.reading import TRUE, is_list, read_list, refuse_single
from dragoman.codecs.records.tools import (
    ChoiceRecord,
    ToolRecord,
    ToolStyle,
    decode_tool_choice,
    decode_tools,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.settings import SETTING_NAMES
from dragoman.codecs.wire_values import MaybeStr, Wire
from dragoman.ir import Completion, Message, Request, ToolChoice
from dragoman.ir.notes import RENAMED, Extra
from dragoman.ir.values import encode_json, note, parse_json
from dragoman.losses import JsonPaths, LossLog, PathLookup, at

LIST = "~list"
"""Note: the history is a bare list of records."""


class HistoryDocument(Wire, frozen=True, omit_defaults=True):
    messages: list[Raw]
    tools: list[ToolRecord] | UnsetType = UNSET
    tool_choice: str | ChoiceRecord | UnsetType = UNSET
    model: MaybeStr = None


class Decoder(Protocol):
    def decode(self, records: Sequence[Raw], path: str) -> tuple[Message, ...]: ...


class Encoder(Protocol):
    def encode(self, messages: Sequence[Message]) -> list[Any]: ...


class History(NamedTuple):
    """What is specific to the histories of one format."""

    family: str
    tools: ToolStyle
    reader: WireReader[Any]
    decoder: Callable[[], Decoder]
    encoder: Callable[[LossLog, bool], Encoder]

    def decode_request(self, body: bytes) -> Request:
        family = self.family
        if is_list(body):
            messages = self.decoder().decode(read_list(body, family), "$")
            return Request(None, messages, metadata={family: {LIST: TRUE}}, origin=family)
        wire: HistoryDocument = self.reader.read(body)
        refuse_single(wire, "$", family)
        extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.tools == []:
            extra["tools"] = Raw(b"[]")
        return Request(
            wire.model,
            self.decoder().decode(wire.messages, f"$.{_spelled_key(extra, 'messages')}"),
            () if wire.tools is UNSET else decode_tools(wire.tools, self.tools),
            None if wire.tool_choice is UNSET else decode_tool_choice(wire.tool_choice, self.tools),
            metadata={family: extra} if extra else None,
            origin=family,
        )

    def encode_request(self, request: Request, log: LossLog) -> Encoded:
        family = self.family
        native = request.origin == family
        report_settings(request, log)
        records = self.encoder(log, native).encode(request.messages)
        extra: Extra = (request.metadata or {}).get(family, {})
        fields: dict[str, Any] = {"messages": records}
        tools = encode_tools(request.tools, self.tools, log, native=native)
        if tools:
            fields["tools"] = tools
        if request.tool_choice is not None:
            fields[self.tools.choice_key] = encode_tool_choice(request.tool_choice, request, self.tools, log)
        if request.model is not None:
            fields["model"] = request.model
        if LIST in extra and len(fields) == 1:
            return Encoded(encode_json(records))
        return Encoded(bytes(spliced(as_json(fields), extra)))


def _spelled_key(extra: Extra, key: str) -> str:
    renamed = extra.get(RENAMED + key)
    return key if renamed is None else str(parse_json(renamed))


_SETTINGS = {
    **{name: what for name, what in SETTING_NAMES.items() if name not in {"model", "tool_choice"}},
    "max_output_tokens": "limit of output tokens",
    "candidates": "number of candidates",
    "stream": "stream flag",
    "user": "user id",
}


_UNSAID = {"parallel_tool_calls": True, "stream": False, "candidates": 1}
"""Defaults of every API."""


def report_settings(request: Request, log: LossLog) -> None:
    for name, what in _SETTINGS.items():
        value = getattr(request, name)
        if value not in (None, (), _UNSAID.get(name)):
            log.drop(request, name, what, "a stored history is no request: it has no settings")


# ── paths of losses ───────────────────────────────────────────────────────────────────────────────────────────

Span = Callable[[Message], int]
"""Returns how many records a message was read from; 0 if it continues the record of the message before it."""


class EarlierParts:
    """Counts the parts of a type before each part; each message of a body is counted once."""

    _counts: dict[tuple[int, type], list[int]]
    """By the id of the message, which the body that is looked up keeps alive."""

    def __init__(self) -> None:
        self._counts = {}

    def before(self, message: Message, part_index: int, kind: type) -> int:
        counts = self._counts.get((id(message), kind))
        if counts is None:
            found = [isinstance(part, kind) for part in message.parts]
            counts = self._counts[(id(message), kind)] = list(accumulate(found, initial=0))
        return counts[part_index]


Place = Callable[[Message, int, str, EarlierParts], tuple[int, str]]
"""Returns (record among those of its message, path within it) of a part."""
AnswerPath = Callable[[Completion, EarlierParts, int | None, int | None, str], str]


def answer_paths(json_path: AnswerPath) -> JsonPaths:
    """Return a path lookup from a function that finds one path at a time in the whole answer."""
    return lambda completion: partial(json_path, completion, EarlierParts())


class Places(NamedTuple):
    """Finds the nodes of a request in the stored body."""

    history: History
    span: Span
    place: Place

    def paths(self, request: Request) -> PathLookup:
        """Return a lookup of where in the stored body the nodes of a request came from."""
        extra: Extra = (request.metadata or {}).get(self.history.family, {})
        is_list = note(request.metadata, self.history.family, LIST) is not UNSET
        path = "$" if is_list else f"$.{_spelled_key(extra, 'messages')}"
        starts: list[int] = []
        earlier = EarlierParts()

        def json_path(message_index: int | None, part_index: int | None, field: str) -> str:
            if message_index is None:
                return _setting_path(request, part_index, field, self.history)
            if not starts:
                starts.extend(accumulate(map(self.span, request.messages), initial=0))
            start, end = starts[message_index : message_index + 2]
            if part_index is None:
                own = f"{path}[{end - 1}]"  # earlier ones are the records of its parts
                return at(own, field)
            offset, within = self.place(request.messages[message_index], part_index, field, earlier)
            return f"{path}[{start - (start == end) + offset}]{within}"

        return json_path


def _setting_path(request: Request, part_index: int | None, field: str, history: History) -> str:
    family = history.family
    if part_index is not None:
        nested = note(getattr(request.tools[part_index], "metadata", None), family, "~nested") is not UNSET
        inner = ".function" if nested and field.partition(".")[0] in _OF_A_FUNCTION else ""
        return at(f"$.tools[{part_index}]{inner}", field)
    head, _, rest = field.partition(".")
    if head == "tool_choice":
        inner = "" if not rest or rest in ToolChoice.__struct_fields__ else f".{rest}"
        extra: Extra = (request.metadata or {}).get(family, {})
        return f"$.{_spelled_key(extra, history.tools.choice_key)}{inner}"
    return at("$", field)


_OF_A_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
