"""Chat messages and their parts, both ways.

A message keeps thinking, images, text and calls in four separate fields, so the order between them is lost on this
wire: decoding gives them in that order, encoding reports if the source had another one. A result is a separate
message; servers pair it by `tool_name` and order, newer ones by `tool_call_id`, so both are sent if both are known.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.arguments import (
    EMPTY_OBJECT,
    arguments_as_object,
    read_arguments,
    report_unparsed,
    unwrap_arguments,
)
from dragoman.codecs.carried_signatures import SIGNATURE, read_signature, write_signature
from dragoman.codecs.common_losses import NOT_SENT, drop_cache_mark, drop_signature
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.ollama_chat import foreign_signatures
from dragoman.codecs.ollama_chat.foreign_signatures import THINKING
from dragoman.codecs.ollama_chat.parts import PartEncoder, decode_images
from dragoman.codecs.ollama_chat.profile import FAMILY
from dragoman.codecs.ollama_chat.wire import (
    ALIASES,
    AnyMessage,
    AssistantMessage,
    Call,
    Function,
    ResultOut,
    SystemMessage,
    TextOut,
    ToolMessage,
    UnknownMessage,
    UserMessage,
)
from dragoman.codecs.reading import WireReader, WireValue, keep, spliced
from dragoman.codecs.result_errors import ERROR_START, read_error, write_error
from dragoman.errors import DecodeError
from dragoman.ir import AnyPart, Message, Reasoning, ResultKind, Role, Text, ToolCall, ToolResult
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.traits import BLANK_TEXT, TraitNotes
from dragoman.ir.values import compact_text, encode_json, note, parse_json
from dragoman.losses import LossLog

SOURCE = "ollama-chat request"

NULL = Raw(b"null")
ABSENT = Raw(b'"absent"')
EMPTY_LIST = Raw(b"[]")

# Notes on messages, calls and results.
CONTENT = "~content"
"""There was no text: "absent" or null. Usually it is present and empty."""
ROLE = "~role"
"""The role as it was spelled; the server ignores its case."""
IDENTITY = "~id"
"""The id as it was spelled, if not in the usual form; null if there was none."""
NAME = "~name"
INDEX = "~index"
TYPE = "~type"
ARGUMENTS = "~arguments"

_OBJECT = re.compile(rb'\{(?!"unparsed_arguments")')
_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_message_reader: WireReader[AnyMessage] = WireReader(AnyMessage, SOURCE, aliases=ALIASES)  # type: ignore[arg-type]

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Unanswered:
    """The calls of the last turn that have no result yet, in order."""

    __slots__ = ("_answered", "_calls", "_index", "_next", "first")

    def __init__(self, calls: list[ToolCall]) -> None:
        self._calls = calls
        self._next = 0
        self._answered: set[int] = set()
        self._index: dict[tuple[str, object], deque[int]] | None = None
        self.first = calls[0] if calls else None
        """The next call in order, which the usual result answers."""

    def add(self, calls: list[ToolCall]) -> None:
        """Add calls of the same turn, none of which has a result yet."""
        self._calls += calls
        self.first = self._calls[self._next] if self._next < len(self._calls) else None

    def take_first(self) -> ToolCall | None:
        call = self.first
        if call is not None:
            self._take(self._next)
        return call

    def take(self, given: str | UnsetType, name: str | UnsetType, *, is_known: bool) -> ToolCall | None:
        """Return the call that a result with this id and name answers. `is_known`: some call has the id."""
        if given is not UNSET and given:
            call = self._take_by("id", given)
            if call is not None or is_known:
                return call
            # No call has this id: the calls of this history lost theirs. It cannot belong to a call that has an id.
            return self._take_by("invented", name) or (None if name else self._take_by("invented", None))
        return self._take_by("name", name) or (None if name else self.take_first())

    def _take_by(self, kind: str, key: object) -> ToolCall | None:
        """Answer and return the first unanswered call with this id, name, or name and invented id."""
        if self._index is None:
            self._index = {}
            for position, call in enumerate(self._calls):
                keys: list[tuple[str, object]] = [("id", call.id), ("name", call.name)]
                keys += [("invented", call.name), ("invented", None)] if call.invented_id else []
                for each in keys:
                    self._index.setdefault(each, deque()).append(position)
        positions = self._index.get((kind, key), ())
        while positions:
            position = positions.popleft()
            if position not in self._answered:
                self._take(position)
                return self._calls[position]
        return None

    def _take(self, position: int) -> None:
        self._answered.add(position)
        while self._next in self._answered:
            self._next += 1
        self.first = self._calls[self._next] if self._next < len(self._calls) else None


_NO_CALLS = _Unanswered([])


class MessageDecoder(TraitNotes):
    """Decodes the messages of one request, in order: results are paired with the calls before them.

    Records the traits of the conversation while reading (ir/traits.py).
    """

    _unanswered: _Unanswered = _NO_CALLS
    _called: int = -2
    """The index of the last message with calls."""

    def decode(self, wires: Sequence[AnyMessage], first: int = 0) -> tuple[Message, ...]:
        """Decode the messages. The usual ones are read inline, others by their own method."""
        messages: list[Message] = []
        for index, wire in enumerate(wires, first):
            kind = type(wire)
            if kind is UserMessage or kind is SystemMessage:
                role: Role = "user" if kind is UserMessage else "system"
                self.turn(role)
                content = wire.content  # type: ignore[union-attr]
                if type(content) is str and wire.extra is wire.images is UNSET:  # type: ignore[union-attr]
                    if not content or content.isspace():
                        self.bits |= BLANK_TEXT
                    messages.append(Message(role, content))
                else:
                    message = _decode_plain(role, wire)  # type: ignore[arg-type]
                    self.message(message)
                    messages.append(message)
            elif kind is AssistantMessage:
                self.turn("assistant")
                messages.append(self._decode_assistant(wire, index))  # type: ignore[arg-type]
            elif kind is ToolMessage:
                messages.append(self._decode_result(wire, index))  # type: ignore[arg-type]
            else:
                messages.append(self._decode_other_case(wire, index))  # type: ignore[arg-type]
        return tuple(messages)

    def _decode_assistant(self, wire: AssistantMessage, index: int) -> Message:
        message = decode_assistant(wire, index)
        self.message(message)
        if wire.tool_calls:
            calls = [part for part in message.content_held if type(part) is ToolCall]
            if index == self._called + 1:
                self._unanswered.add(calls)  # some clients send each call of a turn in a message of its own
            else:
                # A result without id or name belongs to the calls directly before it, not to those of earlier turns.
                self._unanswered = _Unanswered(calls)
            self._called = index
        return message

    def _decode_result(self, wire: ToolMessage, index: int) -> Message:
        content = wire.content
        call = self._unanswered.first
        if (
            call is not None
            and wire.tool_call_id == call.id
            and wire.tool_name == call.name
            and not call.invented_id
            and wire.extra is wire.images is UNSET
            and type(content) is str
            and content[:9] != ERROR_START
        ):
            self._unanswered.take_first()
            result = ToolResult(call.id, call.name, "text", content)
        else:
            result = self._decode_odd_result(wire, index)
            if result.metadata is not None:
                self.metadata(result.metadata)
        self.result(result.tool_call_id, result.name)
        return Message("tool", (result,))

    def _decode_other_case(self, wire: UnknownMessage, index: int) -> Message:
        entries = _entries(wire.raw)
        spelled = parse_json(entries.get("role", NULL))
        role = spelled.lower() if isinstance(spelled, str) else None
        if role not in {"system", "user", "assistant", "tool"} or role == spelled:
            raise DecodeError(
                path=f"$.messages[{index}].role",
                expected="system, user, assistant or tool",
                got=repr(spelled),
                source=SOURCE,
            )
        (message,) = self.decode((_message_reader.read(encode_json({**entries, "role": role})),), index)
        noted = {ROLE: Raw(encode_json(spelled))}
        if message.role != "tool":
            notes = (message.metadata or {}).get(FAMILY, {})
            return Message(message.role, message.content_held, None, {FAMILY: {**notes, **noted}})
        result = message.tool_results[0]
        notes = (result.metadata or {}).get(FAMILY, {})
        return Message("tool", (msgspec.structs.replace(result, metadata={FAMILY: {**notes, **noted}}),))

    def _decode_odd_result(self, wire: ToolMessage, index: int) -> ToolResult:
        extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        call_id, name = self._pair(wire, index, extra)
        content = _content(wire.content, extra)
        error = read_error(content) if content.startswith(ERROR_START) else UNSET
        if wire.images is not UNSET and not wire.images:
            extra[MODELLED + "images"] = EMPTY_LIST
        metadata = {FAMILY: extra} if extra else None
        if wire.images:
            text = error if type(error) is str else content
            parts = (*((Text(text),) if text else ()), *decode_images(wire.images))
            kind: ResultKind = "error" if type(error) is str else "multimodal"
            return ToolResult(call_id, name, kind, None, parts, None, metadata)
        if error is not UNSET:
            return ToolResult(call_id, name, "error", error, (), None, metadata)
        return ToolResult(call_id, name, "text", content, (), None, metadata)

    def _pair(self, wire: ToolMessage, index: int, extra: Extra) -> tuple[str, str]:
        """Return (call id, name): by the wire's id if a call has it, else by name, else by order."""
        given = wire.tool_call_id
        name = wire.tool_name
        if name is UNSET:
            extra[NAME] = NULL
            raw = extra.get("name")
            if raw is not None and bytes(raw)[:1] == b'"':
                extra[MODELLED + "name"] = extra.pop("name")  # the spelling of clients of other APIs
                name = parse_json(raw)
        call = self._unanswered.take(given, name, is_known=given in self.call_names)
        if call is not None:
            call_id, known = call.id, call.name
        elif given is not UNSET and given in self.call_names:
            call_id, known = given, self.call_names[given]
        else:
            call_id = given if given is not UNSET and given else invent_id(f"$.messages[{index}]", 0)
            known = ""
        if given is UNSET:
            if not is_invented(call_id):
                extra[IDENTITY] = NULL
        elif given != call_id or is_invented(given):
            extra[IDENTITY] = Raw(encode_json(given))
        if known and name is not UNSET and name != known and NAME not in extra:
            extra[NAME] = Raw(encode_json(name))
        return call_id, known or ("" if name is UNSET else name)


def _content(content: str | None | UnsetType, extra: Extra) -> str:
    if type(content) is str:
        return content
    extra[CONTENT] = ABSENT if content is UNSET else NULL
    return ""


def _decode_plain(role: Role, wire: UserMessage | SystemMessage) -> Message:
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    content = _content(wire.content, extra)
    parts: str | tuple[AnyPart, ...] = content
    if wire.images:
        # An empty text beside images has no meaning.
        parts = (*decode_images(wire.images), *((Text(content),) if content else ()))
    elif wire.images is not UNSET:
        extra[MODELLED + "images"] = EMPTY_LIST
    return Message(role, parts, None, {FAMILY: extra} if extra else None)


def decode_assistant(wire: AssistantMessage, seed: object, *, answer: bool = False) -> Message:
    """Decode an assistant message of a history or response; `seed`, its position, makes ids the wire does not give."""
    content = wire.content
    calls = wire.tool_calls
    if wire.extra is wire.thinking is wire.images is UNSET and type(content) is str:
        if calls is UNSET:
            return Message("assistant", content)
        if calls:
            parts: list[AnyPart] = [Text(content)] if content else []
            parts += [_decode_call(call, seed, index, answer=answer) for index, call in enumerate(calls)]
            return Message("assistant", tuple(parts))
    extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    signed = foreign_signatures.read_signatures(extra)
    text = _content(content, extra)
    parts = []
    if wire.thinking:
        parts += (
            foreign_signatures.reasoning_parts(wire.thinking, signed)
            if signed
            else [Reasoning(wire.thinking, metadata=THINKING)]
        )
    elif wire.thinking is not UNSET or signed:
        parts += foreign_signatures.reasoning_parts("", signed)
    if wire.thinking == "":
        extra["~thinking"] = Raw(b'""')
    if wire.images:
        parts += decode_images(wire.images)
    elif wire.images is not UNSET:
        extra[MODELLED + "images"] = EMPTY_LIST
    parts += foreign_signatures.text_parts(text, signed) if signed else [Text(text)] if text else []
    if calls:
        parts += [_decode_call(call, seed, index, answer=answer) for index, call in enumerate(calls)]
    elif calls is not UNSET:
        extra[MODELLED + "tool_calls"] = EMPTY_LIST
    if not parts and CONTENT not in extra:
        return Message("assistant", text, None, {FAMILY: extra} if extra else None)
    return Message("assistant", tuple(parts), None, {FAMILY: extra} if extra else None)


def _decode_call(call: Call, seed: object, index: int, *, answer: bool = False) -> ToolCall:
    """Decode a call. Answers usually give its index, histories usually do not; exceptions are noted."""
    function = call.function
    place = function.index
    arguments = function.arguments
    if (
        call.extra is function.extra is call.type is UNSET
        and call.id
        and place == (index if answer else UNSET)
        and arguments is not UNSET
        and not is_invented(call.id)
        and _OBJECT.match(arguments) is not None
    ):
        return ToolCall(call.id, function.name, arguments)
    return _decode_odd_call(call, seed, index, answer=answer)


def _decode_odd_call(call: Call, seed: object, index: int, *, answer: bool) -> ToolCall:
    function = call.function
    extra: Extra = {} if call.extra is UNSET else dict(call.extra)
    call_id, invented = call.id, False
    if call_id is UNSET or not call_id:
        extra[IDENTITY] = NULL if call_id is UNSET else Raw(b'""')
        call_id, invented = invent_id(seed, index), True
    elif is_invented(call_id):
        extra[IDENTITY] = Raw(encode_json(call_id))
        invented = True
    if function.index != (index if answer else UNSET):
        extra[INDEX] = NULL if function.index is UNSET else Raw(b"%d" % function.index)
    if call.type is not UNSET:
        extra[TYPE] = Raw(encode_json(call.type))
    arguments, text = _arguments(function.arguments, extra, seed, index)
    signature = read_signature(extra) if SIGNATURE in extra else None
    if function.extra is not UNSET:
        extra |= keep(FAMILY, UNSET, function=function.extra)[FAMILY]  # type: ignore[index]
    return ToolCall(
        call_id,
        function.name,
        arguments,
        text,
        invented_id=invented,
        signature=signature,
        metadata={FAMILY: extra} if extra else None,
    )


def _arguments(given: Raw | UnsetType, extra: Extra, seed: object, index: int) -> tuple[Raw | UnsetType, str | None]:
    """Return (arguments, exact text)."""
    if given is UNSET:
        extra[ARGUMENTS] = ABSENT
        return EMPTY_OBJECT, None
    first = bytes(memoryview(given)[:1])
    if first == b"{":
        return unwrap_arguments(given)
    if first == b'"':
        # Some servers of this format send arguments as text, as Chat Completions does.
        extra[ARGUMENTS] = Raw(b'"text"')
        text: str = parse_json(given)
        return read_arguments(text), text
    if bytes(given) == b"null":
        extra[ARGUMENTS] = NULL
        return EMPTY_OBJECT, None
    place = f"$.messages[{seed}]" if isinstance(seed, int) else "$.message"
    raise DecodeError(
        path=f"{place}.tool_calls[{index}].function.arguments",
        expected="object",
        got=type(parse_json(given)).__name__,
        source="ollama-chat",
    )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_ORDER = {Reasoning: 0, ToolCall: 2}


class MessageEncoder:
    """Encodes messages one after the other.

    `to_client`: an answer, which also carries signatures of other families. `native`: it came from a server of this
    format.
    """

    _log: LossLog
    _to_client: bool
    _native: bool

    def __init__(self, log: LossLog, *, to_client: bool = False, native: bool = False) -> None:
        self._log = log
        self._to_client = to_client
        self._native = native

    def encode(self, messages: Iterable[Message]) -> list[WireValue]:
        wires: list[WireValue] = []
        for message in messages:
            role = message.role
            content = message.content_held
            if role == "tool":
                wires += [self._encode_result(part) for part in content]  # type: ignore[arg-type]
            elif type(content) is str and message.metadata is None:
                wires.append(TextOut(role, content))
            elif role == "assistant":
                wires.append(self.encode_assistant(message))
            else:
                wires.append(self._encode_plain(message))
        return wires

    def _encode_plain(self, message: Message) -> WireValue:
        notes: Extra = (message.metadata or {}).get(FAMILY, {})
        gathered = PartEncoder(self._log).gather(message.parts)
        for part in message.parts:
            if isinstance(part, Text):
                self._report_signature(part)
        if len(gathered.texts) > 1:
            what = f"borders between {len(gathered.texts)} texts"
            self._log.degrade(message, "", what, "joined by line breaks: a message of this API holds one text")
        kind = UserMessage if message.role == "user" else SystemMessage
        if not (gathered.texts or gathered.images or self._native) and message.parts:
            gathered.texts.append(NOT_SENT)  # the losses are logged; the turn must not be empty
        body = kind(_spell_content("\n".join(gathered.texts), notes), gathered.images or UNSET)
        return _with_notes(body, notes)

    def _report_signature(self, part: Text | ToolCall) -> None:
        if part.signature is not None and part.signature.data:
            drop_signature(part, part.signature, self._log)

    def _plain_assistant(self, parts: tuple[AnyPart, ...]) -> AssistantMessage | None:
        """Encode the usual turn of an agent, text then calls and nothing else; None for any other."""
        text = ""
        calls: list[ToolCall] = []
        for part in parts:
            if type(part) is ToolCall:
                if part.metadata is not None or part.signature is not None or part.cache is not None:
                    return None
                calls.append(part)
            elif type(part) is Text and not text and not calls:
                if part.citations or part.signature is not None or part.cache is not None:
                    return None
                text = part.text
            else:
                return None
        wires: Any = [self._encode_call(call, index) for index, call in enumerate(calls)]
        return AssistantMessage(text, UNSET, wires or UNSET)

    def encode_assistant(self, message: Message) -> WireValue:
        if message.metadata is None or FAMILY not in message.metadata:
            plain = self._plain_assistant(message.parts)
            if plain is not None:
                return plain
        notes: Extra = (message.metadata or {}).get(FAMILY, {})
        parts = message.parts
        thoughts: list[str] = []
        others: list[AnyPart] = []
        calls: list[WireValue] = []
        carried = MODELLED + foreign_signatures.SIGNATURES in notes
        rank = 0
        for part in parts:
            kind = type(part)
            if kind is ToolCall:
                calls.append(self._encode_call(part, len(calls)))  # type: ignore[arg-type]
            elif kind is Reasoning:
                if self._keeps(part):  # type: ignore[arg-type]
                    thoughts.append(part.text)  # type: ignore[union-attr, arg-type]
            else:
                if kind is Text and not self._to_client and not carried:
                    self._report_signature(part)  # type: ignore[arg-type]
                others.append(part)
            order = _ORDER.get(kind, 1)
            if order < rank:
                self._log.degrade(part, "", "place among the other parts", "a message keeps text and calls apart")
            rank = max(rank, order)
        is_media = self._native or not self._to_client
        gathered = PartEncoder(self._log, media=is_media, to_client=self._to_client).gather(others)
        thinking: Any = "".join(thoughts) or ("" if "~thinking" in notes else UNSET)
        body = AssistantMessage(
            _spell_content("".join(gathered.texts), notes), thinking, calls or UNSET, gathered.images or UNSET
        )
        signatures = foreign_signatures.write_signatures(parts) if self._to_client and not carried else None
        if signatures is not None:
            notes = {**notes, foreign_signatures.SIGNATURES: signatures}
        return _with_notes(body, notes)

    def _keeps(self, part: Reasoning) -> bool:
        """Whether to send the reasoning: all of it to a client, only what came in this format to a server."""
        if self._to_client or "~thinking" in (part.metadata or {}).get(FAMILY, {}):
            return True
        self._log.drop(part, "", "reasoning", "the reasoning of another provider is not this model's own")
        return False

    def _encode_call(self, call: ToolCall, position: int) -> WireValue:
        if call.cache is not None:
            drop_cache_mark(call, self._log)
        notes = None if call.metadata is None else call.metadata.get(FAMILY)
        carried = notes is not None and MODELLED + SIGNATURE in notes
        signature = None if carried or call.signature is None or not call.signature.data else call.signature
        if signature is not None and not self._to_client:
            self._report_signature(call)
            signature = None
        if notes is None:
            if call.arguments_held is UNSET and not self._native:
                report_unparsed(call, self._log)
            function = Function(call.name, arguments_as_object(call), position if self._to_client else UNSET)
            body = Call(function, UNSET if call.invented_id and not self._to_client else call.id)
            if signature is None:
                return body
            return spliced(body, {SIGNATURE: write_signature(signature)})
        function = _noted_function(call, notes, position if self._to_client else UNSET)
        body = Call(function, _noted_id(call.id, notes, call.invented_id), notes.get(TYPE, UNSET))
        if signature is not None:
            notes = {**notes, SIGNATURE: write_signature(signature)}
        return spliced(body, notes)

    def _encode_result(self, result: ToolResult) -> WireValue:
        call_id: WireValue = UNSET if is_invented(result.tool_call_id) else result.tool_call_id
        metadata = result.metadata
        if metadata is None and result.kind == "text" and not result.parts and result.cache is None:
            value = result.value_held
            return ResultOut("tool", result.name, value if type(value) is str else result.value, call_id)
        if result.cache is not None:
            drop_cache_mark(result, self._log)
        notes: Extra = (metadata or {}).get(FAMILY, {})
        spelled_name = note(metadata, FAMILY, NAME)
        name: WireValue = result.name if spelled_name is UNSET else UNSET if spelled_name is None else spelled_name
        spelled_id = note(metadata, FAMILY, IDENTITY)
        if spelled_id is not UNSET:
            call_id = UNSET if spelled_id is None else spelled_id
        content, images = self._result_content(result)
        body = ToolMessage(_spell_content(content, notes), name, call_id, images or UNSET)
        return _with_notes(body, notes)

    def _result_content(self, result: ToolResult) -> tuple[WireValue, list[str]]:
        kind = result.kind
        if result.parts or kind == "multimodal":
            gathered = PartEncoder(self._log, text_first=True).gather(result.parts)
            for part in result.parts:
                if type(part) is Text:
                    self._report_signature(part)
            if len(gathered.texts) > 1:
                what = f"borders between {len(gathered.texts)} texts"
                self._log.degrade(result, "parts", what, "joined by line breaks: a message of this API holds one text")
            text = "\n".join(gathered.texts)
            return (write_error(text) if kind == "error" else text), gathered.images
        if kind == "text":
            value = result.value_held
            return value if type(value) is str else result.value, []
        return write_error(result.value) if kind == "error" else compact_text(result.value_held), []


def _spell_content(text: WireValue, notes: Extra) -> WireValue:
    spelled = None if text else notes.get(CONTENT)
    if spelled is None:
        return text
    return None if bytes(spelled) == b"null" else UNSET


def _with_notes(body: Any, notes: Extra) -> WireValue:
    if not notes:
        return body
    role = notes.get(ROLE)
    if role is None:
        return spliced(body, notes)
    return spliced(Raw(encode_json({**_entries(encode_json(body)), "role": role})), notes)


def _noted_id(call_id: str, notes: Extra, invented: bool) -> WireValue:  # noqa: FBT001
    spelled = notes.get(IDENTITY)
    if spelled is None:
        return UNSET if invented else call_id
    return UNSET if bytes(spelled) == b"null" else spelled


def _noted_function(call: ToolCall, notes: Extra, place: int | UnsetType) -> Any:
    spelled = note({FAMILY: notes}, FAMILY, ARGUMENTS)
    arguments: Any = arguments_as_object(call)
    if spelled == "text" and call.arguments_text is not None:
        arguments = Raw(encode_json(call.arguments_text))
    elif spelled in {"absent", None} and bytes(arguments) == b"{}":
        arguments = UNSET if spelled == "absent" else NULL
    noted = notes.get(INDEX)
    index: Any = place if noted is None else UNSET if bytes(noted) == b"null" else noted
    function = Function(call.name, arguments, index)
    inner = inner_extra(notes, "function")
    return function if inner is None else spliced(function, inner)
