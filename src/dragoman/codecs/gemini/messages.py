"""Contents, both ways.

Results are parts of user contents here, and separate messages in the intermediate format. Encoding by default puts
all results of a turn in one content, in call order, with nothing beside them (Vertex refuses a functionResponse that
shares its content); notes keep the arrangement of bodies that differed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.common_losses import NOT_SENT, invent_content
from dragoman.codecs.gemini.parts import (
    ABSENT,
    NO_THOUGHT,
    NULL,
    TRUE,
    PartDecoder,
    PartEncoder,
    is_plain_text,
    server_call,
)
from dragoman.codecs.gemini.profile import FAMILY, GeminiProfile
from dragoman.codecs.gemini.results import (
    ResultEncoder,
    decode_result,
    has_reference,
    is_plain_result,
    read_response,
    result_notes,
    write_response,
)
from dragoman.codecs.gemini.wire import (
    CallOut,
    Content,
    ContentOut,
    FunctionCallOut,
    FunctionResponse,
    FunctionResponseOut,
    Part,
    ResultOut,
    TextOut,
)
from dragoman.codecs.google_signatures import PLACEHOLDER
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import WireValue, spliced
from dragoman.codecs.result_media import is_media_tag, rejoin_media
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Message,
    Metadata,
    Opaque,
    Role,
    ServerToolResult,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import Extra, Spelling, family_notes
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, TraitNotes
from dragoman.ir.values import encode_json, note, parse_json
from dragoman.losses import LossLog

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}

# Notes on a message.
ROLE = "~role"
"""The role as it was spelled; null if it was missing."""
PARTS = "~parts"
"""There were no parts: "absent" or []."""
APART = "~apart"
"""These results were in a separate content although other results came directly before."""
PLACES = "~places"
"""Indices of these results in their content, among the parts of the user message that follows."""
JOINED = "~joined"
"""This user message shared its content with the results before it."""
ORDER = "~order"
"""These results were not in call order, whether on purpose or not."""
_SYSTEM_ROLES: dict[str, Metadata] = {
    role: Spelling({FAMILY: {ROLE: Raw(encode_json(role))}}) for role in ("user", "model", "system")
}
TAGGED_MEDIA: Metadata = {FAMILY: {"~tagged": TRUE}}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_answer(content: Content | UnsetType, seed: str, path: str) -> Message:
    """Decode the content of a candidate."""
    if content is UNSET:
        return Message("assistant", (), None, {FAMILY: {"~content": ABSENT}})
    notes: Extra = {} if content.extra is UNSET else dict(content.extra)
    if content.role != "model":
        notes[ROLE] = NULL if content.role is UNSET else Raw(encode_json(content.role))
    parts = _decode_body(content, notes, seed, path, marks_ids=True)
    return Message("assistant", parts, None, {FAMILY: notes} if notes else None)


def _decode_body(
    content: Content,
    notes: Extra,
    seed: str | int,
    path: str | None = None,
    *,
    marks_ids: bool = False,
    makes_calls: bool = True,
) -> str | tuple[AnyPart, ...]:
    """Decode the parts of a content (see `PartDecoder`); a single text is held as a string."""
    wires = content.parts
    if wires is UNSET or not wires:
        notes[PARTS] = ABSENT if wires is UNSET else Raw(b"[]")
        return ()
    if len(wires) == 1 and wires[0].thought is UNSET and is_plain_text(wires[0]):
        return wires[0].text  # type: ignore[return-value]
    return tuple(PartDecoder(seed, path, marks_ids=marks_ids, makes_calls=makes_calls).decode(wires))


class MessageDecoder(TraitNotes):
    """Decodes the contents of one request, in order: results are paired with the calls before them.

    Records the traits of the conversation while reading (ir/traits.py).
    """

    _unanswered: _Unanswered | None = None
    _tagged: bool = False
    is_rearranged: bool = False
    """Messages were changed after they had been read, so the recorded traits no longer hold."""
    _messages: list[Message]
    _order: dict[str, int]
    """Call id -> index among all calls."""
    _served: list[ToolCall]

    def __init__(self) -> None:
        super().__init__()
        self._messages = []
        self._order = {}
        self._served = []

    def decode(self, contents: Sequence[Content], system: Content | None | UnsetType = UNSET) -> tuple[Message, ...]:
        """Decode the contents. The usual ones are read inline, others by `_decode_content`."""
        messages = self._messages
        if system is not None and system is not UNSET:
            messages.append(self._decode_system(system))
        for index, content in enumerate(contents):
            wires, role = content.parts, content.role
            if content.extra is UNSET and wires:
                if role == "user":
                    wire = wires[0]
                    if len(wires) == 1 and wire.thought is UNSET and is_plain_text(wire):
                        text: str = wire.text  # type: ignore[assignment]
                        self.user_text(text)
                        messages.append(Message("user", text))
                        continue
                    if wire.function_response is not UNSET:
                        self._decode_results(wires, {}, index)
                    else:
                        self._decode_user(content, {}, index)
                    continue
                if role == "model":
                    self._decode_model(content, {}, index)
                    continue
            self._decode_content(content, index)
        if self._served:
            self.is_rearranged = True
            messages = self._with_served(messages)
        if self._tagged:
            self.is_rearranged = True
            messages = rejoin_media(messages, TAGGED_MEDIA)
        return tuple(messages)

    def _decode_system(self, content: Content) -> Message:
        notes: Extra = {} if content.extra is UNSET else dict(content.extra)
        role = content.role
        if role is not UNSET and (notes or role not in _SYSTEM_ROLES):
            notes[ROLE] = Raw(encode_json(role))
        parts = _decode_body(content, notes, "$.systemInstruction")
        if not notes and role is not UNSET:
            return self._note_message(Message("system", parts, None, _SYSTEM_ROLES[role]))
        if ROLE not in notes and role is not UNSET:
            notes[ROLE] = Raw(encode_json(role))
        return self._note_message(Message("system", parts, None, {FAMILY: notes} if notes else None))

    def _decode_content(self, content: Content, index: int) -> None:
        notes: Extra = {} if content.extra is UNSET else dict(content.extra)
        role = content.role
        if role == "user" or role == "model":  # noqa: PLR1714
            lowered = role
        else:
            lowered = "user" if role is UNSET else role.lower()
            notes[ROLE] = NULL if role is UNSET else Raw(encode_json(role))
            if lowered not in _ROLES:
                raise DecodeError(
                    path=f"$.contents[{index}].role",
                    expected="user or model",
                    got=repr(role),
                    source="gemini/vertex request",
                )
        if lowered == "model":
            self._decode_model(content, notes, index)
        else:
            self._decode_user(content, notes, index)

    def _note_message(self, message: Message) -> Message:
        """Record the traits of the message and return it."""
        content = message.content_held
        if message.metadata is not None and type(message.metadata) is not Spelling:
            self.metadata(message.metadata)
        if type(content) is str:
            if not content or content.isspace():
                self.bits |= BLANK_TEXT
            return message
        if not content:
            self.bits |= EMPTY_MESSAGE
        for part in content:
            kind = type(part)
            if kind is ToolCall:
                if message.role != "assistant":
                    self.is_rearranged = True  # a call in the system text
                self._note_call(part)  # type: ignore[arg-type]
            elif kind is not Text or not (part.metadata is None or part.metadata is NO_THOUGHT) or part.citations:  # type: ignore[union-attr]
                self.part(part)  # type: ignore[arg-type]
            elif not part.text or part.text.isspace():  # type: ignore[union-attr]
                self.bits |= BLANK_TEXT
        return message

    def _decode_model(self, content: Content, notes: Extra, index: int) -> None:
        self.turn("assistant")
        parts = _decode_body(content, notes, index)
        unanswered, messages = self._unanswered, self._messages
        if type(parts) is tuple and unanswered is not None:
            parts = self._serve_all(parts)
        if unanswered is not None and (unanswered.first is None or messages[-1].role != "assistant"):
            self._unanswered = None
        messages.append(self._note_message(Message("assistant", parts, None, {FAMILY: notes} if notes else None)))

    def _note_call(self, call: ToolCall) -> None:
        call_id, order = call.id, self._order
        order[call_id] = len(order)
        self.call(call_id, call.name)
        if call.metadata is not None:
            self.metadata(call.metadata)
        if self._unanswered is None:
            self._unanswered = _Unanswered(call)
        else:
            self._unanswered.add(call)

    def _serve_all(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Pair server results that have no call id yet.

        Stream histories keep one content per chunk, so the server's result comes one content after its call.
        """
        for part in parts:
            if type(part) is ServerToolResult and not part.tool_call_id:
                return tuple([self._serve(part) for part in parts])
        return parts

    def _serve(self, part: AnyPart) -> AnyPart:
        """Give a server result the id of the call it answers, and record that call as the server's."""
        if type(part) is not ServerToolResult or part.tool_call_id or self._unanswered is None:
            return part
        call = self._unanswered.take_named(part.name)
        if call is None:
            return part
        self._served.append(call)
        return structs.replace(part, tool_call_id=call.id)

    def _with_served(self, messages: list[Message]) -> list[Message]:
        """Return the messages, with the calls that the server answered as server calls."""
        served = {id(call) for call in self._served}
        return [
            structs.replace(
                message,
                parts=tuple([server_call(part) if id(part) in served else part for part in message.parts]),  # type: ignore[arg-type]
            )
            if message.role == "assistant" and any(id(part) in served for part in message.content_held)
            else message
            for message in messages
        ]

    def _decode_user(self, content: Content, notes: Extra, index: int) -> None:
        wires = content.parts
        if wires is not UNSET and any(wire.function_response is not UNSET for wire in wires):
            self._decode_results(wires, notes, index)
            return
        self.turn("user")
        parts = _decode_body(content, notes, index, makes_calls=False)
        if type(parts) is tuple and parts and type(parts[0]) is Text and is_media_tag(parts[0].text):
            self._tagged = True
        self._messages.append(self._note_message(Message("user", parts, None, {FAMILY: notes} if notes else None)))

    def _decode_results(self, wires: Sequence[Part], notes: Extra, index: int) -> None:
        """Decode a content with results; other parts beside them become a separate user message."""
        messages = self._messages
        if self._previous == "tool" and messages[-1].role == "tool":
            notes[APART] = TRUE
        results: list[ToolResult] = []
        others: list[Part] = []
        for place, wire in enumerate(wires):
            answer = wire.function_response
            if answer is UNSET:
                others.append(wire)
                continue
            result = self._decode_plain_result(wire, answer) or self._decode_result(wire, answer, index, place)
            self.result(result.tool_call_id, result.name)
            results.append(result)
        if len(results) > 1 and not self._in_call_order(results):
            notes[ORDER] = TRUE
        if others:
            places = [place for place, wire in enumerate(wires) if wire.function_response is not UNSET]
            notes[PLACES] = Raw(encode_json(places))
        if not notes:
            messages.append(Message("tool", tuple(results)))
            return
        metadata = {FAMILY: notes}
        self.metadata(metadata)
        messages.append(Message("tool", tuple(results), None, metadata))
        if others:
            self.turn("user")
            rest = PartDecoder(index, makes_calls=False).decode(others)
            messages.append(self._note_message(Message("user", tuple(rest), None, {FAMILY: {JOINED: TRUE}})))

    def _in_call_order(self, results: Sequence[ToolResult]) -> bool:
        order = self._order
        last = len(order)
        places = [order.get(result.tool_call_id, last) for result in results]
        return places == sorted(places)

    def _decode_plain_result(self, wire: Part, answer: FunctionResponse) -> ToolResult | None:
        """Decode the result of the next call in order, if it has only the usual fields; else return None."""
        unanswered = self._unanswered
        call = None if unanswered is None else unanswered.first
        if (
            unanswered is None
            or call is None
            or answer.name != call.name
            or (answer.id != call.id and (answer.id is not UNSET or not call.invented_id))
            or not is_plain_result(wire, answer)
        ):
            return None
        response: Raw = answer.response  # type: ignore[assignment]
        data = bytes(response)
        kind, value = read_response(response, data)
        if kind == "data" and (data[:1] != b"{" or has_reference(data)):
            return None
        unanswered.take_first(call)
        return ToolResult(call.id, call.name, kind, value)

    def _decode_result(self, wire: Part, answer: FunctionResponse, index: int, place: int) -> ToolResult:
        notes = result_notes(wire, answer)
        call_id, name = self._pair(answer, notes, f"$.contents[{index}].parts[{place}]")
        result = decode_result(answer, call_id, name, notes)
        if result.metadata is not None:
            self.metadata(result.metadata)
        for piece in result.parts:
            if not isinstance(piece, Opaque) and piece.metadata is not None:
                self.metadata(piece.metadata)
        return result

    def _pair(self, answer: FunctionResponse, notes: Extra, path: str) -> tuple[str, str]:
        """Return (call id, name) of a result: by id if the wire gives one, else by name and order."""
        given, name, unanswered = answer.id, answer.name, self._unanswered
        known = self.call_names.get(given) if given is not UNSET else None
        if known is not None:
            call_id: str = given  # type: ignore[assignment]
            if unanswered is not None:
                unanswered.take(call_id)
        else:
            call = None if name is UNSET or unanswered is None else unanswered.take_named(name)
            call_id = call.id if call is not None else given or invent_id(path, 0)
            if given is not UNSET and given != call_id:
                notes["~id"] = Raw(encode_json(given))
            elif given is UNSET and not is_invented(call_id):
                notes["~id"] = NULL
            known = "" if call is None else call.name
        if name is UNSET:
            notes["~name"] = NULL
        elif known and name != known:
            notes["~name"] = Raw(encode_json(name))
        return call_id, known or ("" if name is UNSET else name)


class _Unanswered:
    """The calls of the last turn that have no result yet, in order."""

    __slots__ = ("_answered", "_by_name", "_calls", "_next", "first")

    def __init__(self, call: ToolCall) -> None:
        self._calls = [call]
        self._next = 0
        self._answered: set[str] = set()
        """Ids of answered calls."""
        self._by_name: dict[str, deque[ToolCall]] | None = None
        self.first: ToolCall | None = call
        """The next call in order, which the usual result answers."""

    def add(self, call: ToolCall) -> None:
        self._calls.append(call)
        self._answered.discard(call.id)
        if self._by_name is not None:
            self._by_name.setdefault(call.name, deque()).append(call)

    def take_first(self, call: ToolCall) -> None:
        """Mark the next call in order as answered."""
        if len(self._calls) == 1:
            self._answered.add(call.id)
            self.first = None
        else:
            self.take(call.id)

    def take(self, call_id: str) -> None:
        """Mark the call with this id as answered."""
        answered, calls, position = self._answered, self._calls, self._next
        answered.add(call_id)
        while position < len(calls) and calls[position].id in answered:
            position += 1
        self._next = position
        self.first = calls[position] if position < len(calls) else None

    def take_named(self, name: str) -> ToolCall | None:
        """Mark the first unanswered call of this name as answered and return it."""
        if self._by_name is None:
            self._by_name = {}
            for call in self._calls:
                self._by_name.setdefault(call.name, deque()).append(call)
        named = self._by_name.get(name, ())
        while named:
            call = named.popleft()
            if call.id not in self._answered:
                self.take(call.id)
                return call
        return None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder(PartEncoder):
    """Encodes messages in order; results wait until the last result of the turn has come."""

    _calls: dict[str, tuple[int, str, bool]]
    _media: list[WireValue]
    """Media of results, for older models: sent at the end of the turn in a separate user content."""
    _unsigned_from: int | None = None
    _step: int = -1
    _step_signed: bool = False
    _messages: Sequence[Message] = ()
    _contents: list[WireValue]
    system: list[Message]
    places: list[int]
    """In an answer: wire index of each part of the last encoded turn; of a dropped part, that of the next one."""

    def __init__(
        self,
        log: LossLog,
        profile: GeminiProfile,
        carries: bool = False,  # noqa: FBT001, FBT002
        native: bool = False,  # noqa: FBT001, FBT002
        model: str | None = None,
    ) -> None:
        super().__init__(log, profile, carries, native)
        self._model = model
        self._calls = {}
        self._media = []
        self._contents = []
        self.system = []
        self.places = []

    @property
    def _sends_ids(self) -> bool:
        return self._native or self._carries or self._profile.sends_foreign_ids

    def encode_contents(self, messages: Sequence[Message]) -> list[WireValue]:
        """Encode the contents; system messages are collected in `system`."""
        contents = self._contents
        self._messages = messages
        waiting: list[Message] = []
        for index, message in enumerate(messages):
            role = message.role
            if role == "tool":
                if waiting and APART in family_notes(FAMILY, message.metadata):
                    self._flush(waiting)
                    waiting = []
                waiting.append(message)
                continue
            if waiting:
                joined = role == "user" and JOINED in family_notes(FAMILY, message.metadata)
                self._flush(waiting, message if joined else None)
                waiting = []
                if joined:
                    continue
            if role == "system":
                self._add_system(message, leading=not contents)
                continue
            content = message.content_held
            if type(content) is str and message.metadata is None:
                contents.append(ContentOut("user" if role == "user" else "model", (TextOut(content),)))
                continue
            wire = self.encode_turn(message, index)
            if wire is not None:
                contents.append(wire)
        if waiting:
            self._flush(waiting)
        return contents

    def encode_system(self) -> WireValue:
        """Encode all system text as one content, or return UNSET; for some models it begins the contents instead."""
        if not self.system:
            return UNSET
        if self._profile.no_system_models.search(self._model or "") is not None:
            for message in self.system:
                why = "sent as the user's: this model refuses a system instruction"
                self._log.degrade(message, "", "system text", why)
            if parts := self._encode_system_parts():
                self._contents.insert(0, ContentOut("user", parts))
            return UNSET
        first = self.system[0]
        content = first.content_held
        if len(self.system) == 1 and type(content) is str and (first.metadata is None or FAMILY not in first.metadata):
            return ContentOut(UNSET, (TextOut(content),))
        parts = self._encode_system_parts()
        notes = family_notes(FAMILY, first.metadata)
        if not parts and PARTS not in notes:
            return UNSET
        return self._finish(first, parts, note(first.metadata, FAMILY, ROLE) if ROLE in notes else UNSET)

    def _encode_system_parts(self) -> list[WireValue]:
        parts: list[WireValue] = []
        for message in self.system:
            for part in message.parts:
                if not self._native and not isinstance(part, Text):
                    self._log.drop(part, "", name_of_part(part), "system text is text only here")
                elif (wire := self.encode(part)) is not None:
                    parts.append(wire)
        return parts

    def _add_system(self, message: Message, *, leading: bool) -> None:
        if not leading:
            self._log.degrade(message, "", "place of a system message", "this API has one field for it, at the front")
        self.system.append(message)

    def encode_turn(self, message: Message, index: int = -1) -> WireValue:
        """Encode one user or model content; None if nothing is left of it. `index` is its position in the request."""
        role = "user" if message.role == "user" else "model"
        content = message.content_held
        notes = None if message.metadata is None else message.metadata.get(FAMILY)
        if type(content) is str and notes is None:
            self.places = [0]
            return ContentOut(role, (TextOut(content),))
        self.places = []
        wires = self._encode_parts(message.parts, index)
        if not wires and (notes is None or PARTS not in notes):
            if role == "model" or not content:
                for key in notes or ():
                    if not key.startswith("~"):
                        self._log.drop(message, key, key, "nothing is left of its message")
                return None
            invent_content(message, self._log)
            wires = [TextOut(NOT_SENT)]
        if not notes:
            return ContentOut(role, wires)
        needed = bool(wires) and index >= 0 and self._profile.needs_role
        return self._finish(message, wires, self._role(message, role, needed=needed))

    def _role(self, message: Message, role: str, *, needed: bool) -> str | UnsetType:
        """Return the role as the body spelled it; one that it left out is added if it is `needed`."""
        spelled = note(message.metadata, FAMILY, ROLE)
        if spelled is None:
            return role if needed else UNSET
        return role if spelled is UNSET else spelled

    def _finish(self, message: Message, wires: list[WireValue], role: str | UnsetType) -> WireValue:
        notes = family_notes(FAMILY, message.metadata)
        parts: Any = wires
        if not wires and PARTS in notes:
            parts = UNSET if notes[PARTS] == ABSENT else []
        return spliced(Content(role, parts), notes)

    def _encode_parts(self, parts: Sequence[AnyPart], index: int) -> list[WireValue]:
        wires: list[WireValue] = []
        texts_end = 0
        for place, part in enumerate(parts):
            kind = type(part)
            if self.carried:
                if place >= texts_end:
                    texts_end = _end_of_texts(parts, place)
                self.saves = _leads_to_call(parts, place, texts_end)
            if kind is ToolCall:
                wire = self._encode_call(part, index)  # type: ignore[arg-type]
            elif (
                kind is Text
                and part.metadata is None  # type: ignore[union-attr]
                and part.signature is None  # type: ignore[union-attr]
                and part.cache is None  # type: ignore[union-attr]
                and not part.citations  # type: ignore[union-attr]
                and not self.carried
            ):
                wire = TextOut(part.text)  # type: ignore[union-attr, arg-type]
            else:
                wire = self.encode(part)
            if self._carries:
                self.places.append(len(wires))
            if wire is not None:
                wires.append(wire)
        if self.carried:
            self.finish(wires)
        return wires

    def _encode_call(self, call: ToolCall, index: int) -> WireValue:
        calls = self._calls
        call_id = call.id
        arguments = call.arguments_held
        wire: WireValue
        is_plain = call.signature is None and call.cache is None and not self.carried
        if is_plain and type(arguments) is Raw and (call.metadata is None or FAMILY not in call.metadata):
            sends = self._sends_ids and not (call.invented_id or is_invented(call_id))
            wire = CallOut(FunctionCallOut(call.name, arguments, call_id if sends else UNSET))
        else:
            sends = self.sends_id(call)
            wire = self.encode(call)
        calls[call_id] = (len(calls), call.name, sends)
        if index >= 0:
            start = self._unsigned_from
            if start is None:
                start = self._unsigned_from = self._first_checked()
            if index >= start:
                return self._placeholder(call, wire, index)
        return wire

    def _first_checked(self) -> int:
        """Index of the first message whose calls must be signed.

        Models that check signatures check the calls after the newest user message.
        """
        messages = self._messages
        if self._profile.placeholder_signature_models.search(self._model or "") is None:
            return len(messages)
        return max((index for index, message in enumerate(messages) if message.role == "user"), default=-1) + 1

    def _placeholder(self, call: ToolCall, wire: WireValue, index: int) -> WireValue:
        """Add a placeholder signature to the call if its step has none.

        Gemini 3 requires one on the first call of each step of the current turn; later calls of the step need none.
        """
        if index != self._step and (index == 0 or self._messages[index - 1].role != "assistant"):
            self._step_signed = False
        self._step = index
        if self._step_signed:
            return wire
        self._step_signed = True
        signature = call.signature
        signed = signature is not None and signature.family == FAMILY and bool(signature.data)
        if signed or "~signature" in family_notes(FAMILY, call.metadata) or (self._native and not self.dropped_foreign):
            return wire
        self._log.invent(
            call, "signature", "placeholder signature", "this model requires the first call of a step signed"
        )
        if isinstance(wire, CallOut):
            return CallOut(wire.function_call, PLACEHOLDER)
        return spliced(wire, {"thoughtSignature": Raw(encode_json(PLACEHOLDER))})

    # ── results ──

    def _flush(self, waiting: list[Message], joined: Message | None = None) -> None:
        first = waiting[0]
        if len(waiting) == 1 and joined is None and first.metadata is None and len(first.parts) == 1:
            self._contents.append(ContentOut("user", (self._encode_result(first.parts[0]),)))  # type: ignore[arg-type]
        else:
            self._flush_all(waiting, joined)
        if self._media:
            self._contents.append(ContentOut("user", self._media))
            self._media = []

    def _flush_all(self, waiting: list[Message], joined: Message | None) -> None:
        results = [part for message in waiting for part in message.parts if isinstance(part, ToolResult)]
        notes = family_notes(FAMILY, waiting[0].metadata)
        if len(results) > 1 and ORDER not in notes:
            results = self._in_call_order(results)
        wires: list[WireValue] = [self._encode_result(result) for result in results]
        if joined is not None and len(waiting) == 1:
            wires = _interleave(wires, self._encode_parts(joined.parts, -1), notes)
        elif joined is not None:
            wires += self._encode_parts(joined.parts, -1)
        if wires and not notes:
            self._contents.append(ContentOut("user", wires))
        elif wires:
            role = self._role(waiting[0], "user", needed=self._profile.needs_role)
            self._contents.append(spliced(Content(role, wires), notes))

    def _in_call_order(self, results: list[ToolResult]) -> list[ToolResult]:
        calls = self._calls
        last = len(calls)
        places = [calls[part.tool_call_id][0] if part.tool_call_id in calls else last for part in results]
        if places == sorted(places):
            return results
        return [part for _, part in sorted(zip(places, results, strict=True), key=lambda pair: pair[0])]

    def _encode_result(self, result: ToolResult) -> WireValue:
        call_id = result.tool_call_id
        known = self._calls.get(call_id)
        if known is not None:
            _, name, sends = known
            name = name or result.name
        else:
            name, sends = result.name, self._sends_ids and not is_invented(call_id)
        is_plain = result.cache is None and (result.metadata is None or FAMILY not in result.metadata)
        if is_plain and not result.parts:
            response = write_response(result, self._log, as_given=False)
            return ResultOut(FunctionResponseOut(name, response, call_id if sends else UNSET))
        takes_media = self._profile.older_models.search(self._model or "") is None
        encoder = ResultEncoder(self._log, self, takes_media=takes_media)
        wire = encoder.encode(result, name, call_id if sends else UNSET)
        self._media += encoder.media
        return wire


def _end_of_texts(parts: Sequence[AnyPart], start: int) -> int:
    """Return the index of the first part from `start` on that is not text."""
    return next((place for place in range(start, len(parts)) if type(parts[place]) is not Text), len(parts))


def _leads_to_call(parts: Sequence[AnyPart], place: int, texts_end: int) -> bool:
    """Whether the part at `place` is a text, followed only by texts up to a call.

    A text that itself carried reasoning in the original body carries it again.
    """
    if place >= texts_end or texts_end == len(parts):
        return False
    if "~carried" in family_notes(FAMILY, parts[place].metadata):  # type: ignore[union-attr]
        return False
    return type(parts[texts_end]) is ToolCall


def _interleave(results: list[WireValue], others: list[WireValue], notes: Extra) -> list[WireValue]:
    """Merge results and other parts of one content, each at its original position."""
    places = set(parse_json(notes[PLACES])) if PLACES in notes else set(range(len(results)))
    if len(places) != len(results):
        return results + others
    mixed: list[WireValue] = []
    for index in range(len(results) + len(others)):
        source = results if (index in places and results) or not others else others
        mixed.append(source.pop(0))
    return mixed
