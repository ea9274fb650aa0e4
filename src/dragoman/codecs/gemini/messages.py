"""Contents, both ways.

Results live in user contents here and in messages of their own in the intermediate format. Default on the way out: all
results of a turn in one content, in call order, with nothing beside them (Vertex refuses a functionResponse that shares
its content); notes remember bodies that did otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.gemini import carriers
from dragoman.codecs.gemini.parts import (
    ABSENT,
    NULL,
    TRUE,
    PartDecoder,
    PartEncoder,
    is_plain_text,
    server_call,
)
from dragoman.codecs.gemini.profile import FAMILY, PROFILE, GeminiProfile
from dragoman.codecs.gemini.results import ResultEncoder, decode_result, result_notes
from dragoman.codecs.gemini.wire import (
    CallOut,
    Content,
    ContentOut,
    FunctionCallOut,
    FunctionResponse,
    Part,
    TextOut,
)
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.reading import Extra, WireValue, spliced
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
from dragoman.ir.messages import content_held
from dragoman.ir.parts import arguments_held
from dragoman.ir.values import encode_json, note, parse_json
from dragoman.losses import LossLog

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}

# Notes of a message.
ROLE = "~role"
"""The role as it was spelled; null when there was none."""
PARTS = "~parts"
"""There were no parts: "absent" or []."""
APART = "~apart"
"""These results stood in a content of their own although other results came right before."""
PLACES = "~places"
"""Where in their content these results stood, among the parts of the user message that follows."""
JOINED = "~joined"
"""This user message shared its content with the results before it."""
ORDER = "~order"
"""These results were not in call order, on purpose or not."""
TAGGED_MEDIA: Metadata = {FAMILY: {"~tagged": TRUE}}

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_system(content: Content) -> Message:
    notes: Extra = {} if content.extra is UNSET else dict(content.extra)
    if content.role is not UNSET:
        notes[ROLE] = Raw(encode_json(content.role))
    parts = _decode_body(content, notes, PartDecoder("$.systemInstruction", "$.systemInstruction"))
    return Message("system", parts, None, {FAMILY: notes} if notes else None)


def decode_answer(content: Content | UnsetType, seed: str, path: str) -> Message:
    """The content of a candidate."""
    if content is UNSET:
        return Message("assistant", (), None, {FAMILY: {"~content": ABSENT}})
    notes: Extra = {} if content.extra is UNSET else dict(content.extra)
    if content.role != "model":
        notes[ROLE] = NULL if content.role is UNSET else Raw(encode_json(content.role))
    parts = _decode_body(content, notes, PartDecoder(seed, path, marks_ids=True))
    return Message("assistant", parts, None, {FAMILY: notes} if notes else None)


def _decode_body(content: Content, notes: Extra, decoder: PartDecoder) -> str | tuple[AnyPart, ...]:
    wires = content.parts
    if wires is UNSET or not wires:
        notes[PARTS] = ABSENT if wires is UNSET else Raw(b"[]")
        return ()
    if len(wires) == 1 and is_plain_text(wires[0]):
        return wires[0].text  # type: ignore[return-value]
    return tuple(decoder.decode(wires))


class MessageDecoder:
    """Decodes the contents of one request, in order: results are paired with the calls before them."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[int, str]] = {}
        self._unanswered: list[ToolCall] = []
        self._messages: list[Message] = []
        self._tagged = False

    def decode(self, contents: Sequence[Content]) -> tuple[Message, ...]:
        messages = self._messages
        for index, content in enumerate(contents):
            wires = content.parts
            if content.extra is UNSET and type(wires) is list and len(wires) == 1:
                role = content.role
                wire = wires[0]
                if role == "user" and is_plain_text(wire):
                    messages.append(Message("user", wire.text))  # type: ignore[arg-type]
                    continue
                if role == "model" and is_plain_text(wire):
                    messages.append(Message("assistant", wire.text))  # type: ignore[arg-type]
                    continue
            self._decode_content(content, index)
        return tuple(rejoin_media(messages, TAGGED_MEDIA) if self._tagged else messages)

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
                    path=f"$.contents[{index}].role", expected="user or model", got=repr(role), source="gemini request"
                )
        path = f"$.contents[{index}]"
        if lowered == "model":
            self._decode_model(content, notes, path)
        else:
            self._decode_user(content, notes, path)

    def _decode_model(self, content: Content, notes: Extra, path: str) -> None:
        parts = _decode_body(content, notes, PartDecoder(path, path))
        messages = self._messages
        if messages and messages[-1].role != "assistant":
            self._unanswered = []
        if type(parts) is tuple:
            for part in parts:
                kind = type(part)
                if kind is ToolCall:
                    self._calls[part.id] = (len(self._calls), part.name)  # type: ignore[union-attr]
                    self._unanswered.append(part)  # type: ignore[arg-type]
                elif kind is ServerToolResult and not part.tool_call_id:  # type: ignore[union-attr]
                    parts = self._serve(parts, part)  # type: ignore[arg-type]
        messages.append(Message("assistant", parts, None, {FAMILY: notes} if notes else None))

    def _serve(self, parts: tuple[AnyPart, ...], answer: ServerToolResult) -> tuple[AnyPart, ...]:
        """Stream histories keep one content per chunk: the server's answer comes one content after its call."""
        call = next((call for call in self._unanswered if call.name == answer.name), None)
        if call is None:
            return parts
        self._unanswered.remove(call)
        for index, message in enumerate(self._messages):
            if any(part is call for part in message.parts):
                served = tuple(server_call(call) if part is call else part for part in message.parts)
                self._messages[index] = structs.replace(message, parts=served)
        paired = structs.replace(answer, tool_call_id=call.id)
        return tuple(paired if part is answer else part for part in parts)

    def _decode_user(self, content: Content, notes: Extra, path: str) -> None:
        wires = content.parts
        if wires is UNSET or not any(wire.function_response is not UNSET for wire in wires):
            parts = _decode_body(content, notes, PartDecoder(path, path))
            if type(parts) is tuple and parts and type(parts[0]) is Text and is_media_tag(parts[0].text):
                self._tagged = True
            self._messages.append(Message("user", _no_calls(parts, content), None, {FAMILY: notes} if notes else None))
            return
        if self._messages and self._messages[-1].role == "tool":
            notes[APART] = TRUE
        results: list[AnyPart] = []
        others: list[Part] = []
        places: list[int] = []
        for index, wire in enumerate(wires):
            if wire.function_response is not UNSET:
                places.append(index)
                results.append(self._decode_result(wire, wire.function_response, f"{path}.parts[{index}]"))
            else:
                others.append(wire)
        if len(results) > 1 and not self._in_call_order(results):
            notes[ORDER] = TRUE
        if others:
            notes[PLACES] = Raw(encode_json(places))
        self._messages.append(Message("tool", tuple(results), None, {FAMILY: notes} if notes else None))
        if others:
            rest = Content(parts=others)
            parts = _no_calls(tuple(PartDecoder(path, path).decode(others)), rest)
            self._messages.append(Message("user", parts, None, {FAMILY: {JOINED: TRUE}}))

    def _in_call_order(self, results: Sequence[AnyPart]) -> bool:
        calls = self._calls
        places = [calls[part.tool_call_id][0] for part in results if part.tool_call_id in calls]  # type: ignore[union-attr]
        return places == sorted(places)

    def _decode_result(self, wire: Part, answer: FunctionResponse, path: str) -> ToolResult:
        notes = result_notes(wire, answer)
        call_id, name = self._pair(answer, notes, path)
        return decode_result(answer, call_id, name, notes)

    def _pair(self, answer: FunctionResponse, notes: Extra, path: str) -> tuple[str, str]:
        """(call id, name): by id where the wire gives one, else by name and order."""
        given, name = answer.id, answer.name
        called = self._calls.get(given) if given is not UNSET else None
        if called is not None:
            call_id: str = given  # type: ignore[assignment]
            known = called[1]
        else:
            call = next((call for call in self._unanswered if call.name == name), None)
            call_id = call.id if call is not None else given or invent_id(path, 0)
            if given is not UNSET and given != call_id:
                notes["~id"] = Raw(encode_json(given))
            elif given is UNSET and not is_invented(call_id):
                notes["~id"] = NULL
            known = "" if call is None else call.name
        self._unanswered = [call for call in self._unanswered if call.id != call_id]
        if name is UNSET:
            notes["~name"] = NULL
        elif known and name != known:
            notes["~name"] = Raw(encode_json(name))
        return call_id, known or ("" if name is UNSET else name)


def _no_calls(parts: str | tuple[AnyPart, ...], content: Content) -> str | tuple[AnyPart, ...]:
    """A functionCall in a user content is nobody's call."""
    if type(parts) is str or content.parts is UNSET or all(wire.function_call is UNSET for wire in content.parts):
        return parts
    return tuple(
        Opaque(FAMILY, "functionCall", server_call(part).block, part.signature) if isinstance(part, ToolCall) else part
        for part in parts
        if not isinstance(part, str)
    )


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder:
    """Encodes messages one after the other. Results wait until the last one of their turn is there."""

    def __init__(
        self,
        log: LossLog,
        profile: GeminiProfile = PROFILE,
        *,
        model: str | None = None,
        native: bool = False,
        to_client: bool = False,
    ) -> None:
        self._log = log
        self._profile = profile
        # A stored transcript (native, bound for no model) keeps what it carries; a provider never sees it.
        self._parts = PartEncoder(log, profile, carries=to_client or (native and model is None), native=native)
        self._native = native
        takes_media = profile.older_models.search(model or "") is None
        self._results = ResultEncoder(log, self._parts, takes_media=takes_media)
        self._signs = profile.placeholder_signature_models.search(model or "") is not None
        self._sends_ids = native or to_client or profile.sends_foreign_ids
        self._calls: dict[str, tuple[int, str, bool]] = {}
        self._step_signed = False
        self._contents: list[WireValue] = []
        self.system: list[Message] = []
        self.places: list[int] = []
        """At which wire part each part of the last encoded turn stands; -1 for those that did not cross."""

    def encode(self, messages: Sequence[Message]) -> list[WireValue]:
        contents = self._contents
        waiting: list[Message] = []
        turn_start = _turn_start(messages) if self._signs else 0
        for index, message in enumerate(messages):
            role = message.role
            if role == "tool":
                if waiting and APART in _notes(message):
                    self._flush(waiting)
                    waiting = []
                waiting.append(message)
                continue
            if waiting:
                joined = role == "user" and JOINED in _notes(message)
                self._flush(waiting, message if joined else None)
                waiting = []
                if joined:
                    continue
            if role == "system":
                self._add_system(message, leading=not contents)
                continue
            content = content_held(message)
            if type(content) is str and message.metadata is None and message.name is None:
                contents.append(ContentOut("user" if role == "user" else "model", (TextOut(content),)))
                continue
            signs = self._signs and role == "assistant" and index > turn_start
            if signs and messages[index - 1].role != "assistant":
                self._step_signed = False
            wire = self.encode_turn(message, signs=signs)
            if wire is not None:
                contents.append(wire)
        if waiting:
            self._flush(waiting)
        return contents

    def encode_system(self) -> WireValue:
        """All system text as one content, or UNSET."""
        if not self.system:
            return UNSET
        parts: list[WireValue] = []
        for message in self.system:
            for part in message.parts:
                if not self._native and not isinstance(part, Text):
                    self._log.drop(part, "", type(part).__name__.lower(), "system text is text only here")
                elif (wire := self._parts.encode(part)) is not None:
                    parts.append(wire)
        first = self.system[0]
        notes = _notes(first)
        if not parts and PARTS not in notes:
            return UNSET
        return self._finish(first, parts, note(first.metadata, FAMILY, ROLE) if ROLE in notes else UNSET)

    def _add_system(self, message: Message, *, leading: bool) -> None:
        if not leading:
            self._log.degrade(message, "", "place of a system message", "this API has one field for it, at the front")
        self.system.append(message)

    def encode_turn(self, message: Message, *, signs: bool = False) -> WireValue:
        """One user or model content; None when nothing is left of it."""
        if message.name is not None:
            self._log.drop(message, "name", "name of a participant", "this API has no such field")
        role = "user" if message.role == "user" else "model"
        content = content_held(message)
        if type(content) is str and message.metadata is None:
            self.places = [0]
            return ContentOut(role, (TextOut(content),))
        wires = self._encode_parts(message.parts, signs=signs)
        notes = _notes(message)
        if not wires and PARTS not in notes:
            if role == "model" or not content:
                return None
            wires = [TextOut("")]  # the turn stays, though nothing of it crossed
        if not notes:
            return ContentOut(role, wires)
        spelled = note(message.metadata, FAMILY, ROLE)
        return self._finish(message, wires, role if spelled is UNSET else UNSET if spelled is None else spelled)

    def _finish(self, message: Message, wires: list[WireValue], role: str | UnsetType) -> WireValue:
        notes = _notes(message)
        parts: Any = wires
        if not wires and PARTS in notes:
            parts = UNSET if notes[PARTS] == ABSENT else []
        return spliced(Content(role, parts), notes)

    def _encode_parts(self, parts: Sequence[AnyPart], *, signs: bool) -> list[WireValue]:
        wires: list[WireValue] = []
        places: list[int] = []
        encoder = self._parts
        for part in parts:
            kind = type(part)
            if kind is ToolCall:
                wire = self._encode_call(part, signs=signs)  # type: ignore[arg-type]
            elif (
                kind is Text
                and part.metadata is None  # type: ignore[union-attr]
                and part.signature is None  # type: ignore[union-attr]
                and part.cache is None  # type: ignore[union-attr]
                and not part.citations  # type: ignore[union-attr]
                and not encoder.carried
            ):
                wire = TextOut(part.text)  # type: ignore[union-attr, arg-type]
            else:
                wire = encoder.encode(part)
            if wire is None:
                places.append(-1)
            else:
                places.append(len(wires))
                wires.append(wire)
        if encoder.carried:
            encoder.finish(wires)
        self.places = places
        return wires

    def _encode_call(self, call: ToolCall, *, signs: bool) -> WireValue:
        encoder = self._parts
        calls = self._calls
        if call.signature is None and call.metadata is None and call.cache is None and not encoder.carried:
            call_id = call.id
            sends = self._sends_ids and not (call.invented_id or is_invented(call_id))
            calls[call_id] = (len(calls), call.name, sends)
            held = arguments_held(call)
            if type(held) is Raw:
                wire: Any = CallOut(FunctionCallOut(call.name, held, call_id if sends else UNSET))
            else:
                wire = encoder.encode(call)
        else:
            calls[call.id] = (len(calls), call.name, encoder.sends_id(call))
            wire = encoder.encode(call)
        return self._placeholder(call, wire) if signs and not self._step_signed else wire

    def _placeholder(self, call: ToolCall, wire: WireValue) -> WireValue:
        """Gemini 3 wants the first call of each step of the current turn signed; later siblings stay without."""
        self._step_signed = True
        signature = call.signature
        signed = signature is not None and signature.family == FAMILY and bool(signature.data)
        if signed or "~signature" in _notes(call) or (self._native and not self._parts.dropped_foreign):
            return wire
        self._log.invent(call, "signature", "placeholder signature", "this model wants the first call of a step signed")
        if isinstance(wire, CallOut):
            return CallOut(wire.function_call, carriers.PLACEHOLDER)
        return spliced(wire, {"thoughtSignature": Raw(encode_json(carriers.PLACEHOLDER))})

    # ── results ──

    def _flush(self, waiting: list[Message], joined: Message | None = None) -> None:
        results = [part for message in waiting for part in message.parts if isinstance(part, ToolResult)]
        notes = _notes(waiting[0])
        if len(results) > 1 and ORDER not in notes:
            results = self._in_call_order(results)
        wires: list[WireValue] = [self._encode_result(result) for result in results]
        if joined is not None and len(waiting) == 1:
            wires = _interleaved(wires, self._encode_parts(joined.parts, signs=False), notes)
        elif joined is not None:
            wires += self._encode_parts(joined.parts, signs=False)
        if wires and not notes:
            self._contents.append(ContentOut("user", wires))
        elif wires:
            spelled = note(waiting[0].metadata, FAMILY, ROLE)
            role: Any = "user" if spelled is UNSET else UNSET if spelled is None else spelled
            self._contents.append(spliced(Content(role, wires), notes))
        if self._results.media:
            self._contents.append(ContentOut("user", self._results.media))
            self._results.media = []

    def _in_call_order(self, results: list[ToolResult]) -> list[ToolResult]:
        calls = self._calls
        last = len(calls)
        places = [calls[part.tool_call_id][0] if part.tool_call_id in calls else last for part in results]
        if places == sorted(places):
            return results
        return [part for _, part in sorted(zip(places, results, strict=True), key=lambda pair: pair[0])]

    def _encode_result(self, result: ToolResult) -> WireValue:
        known = self._calls.get(result.tool_call_id)
        if known is not None:
            _, name, sends = known
        else:
            name, sends = result.name, self._sends_ids and not is_invented(result.tool_call_id)
        return self._results.encode(result, name, result.tool_call_id if sends else UNSET)


def _turn_start(messages: Sequence[Message]) -> int:
    """The turn that signatures are checked in starts at the newest user message."""
    return max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)


def _notes(node: Any) -> Extra:
    metadata: Metadata | None = node.metadata
    return {} if metadata is None else metadata.get(FAMILY, {})


def _interleaved(results: list[WireValue], others: list[WireValue], notes: Extra) -> list[WireValue]:
    """Results and other parts of one content, each at the place it had."""
    places = set(parse_json(notes[PLACES])) if PLACES in notes else set(range(len(results)))
    if len(places) != len(results):
        return results + others
    mixed: list[WireValue] = []
    for index in range(len(results) + len(others)):
        source = results if (index in places and results) or not others else others
        mixed.append(source.pop(0))
    return mixed
