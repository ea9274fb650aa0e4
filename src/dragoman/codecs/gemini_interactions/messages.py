"""Messages as lists of steps, both ways; single steps are in steps.py, contents in parts.py.

There are no roles on this wire. What the model did in one turn is a list of steps: thoughts, output, calls. They are
one assistant message in the intermediate format, in the same order; the function results that follow are one tool
message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.codecs.common_losses import NOT_SENT, drop_cache_mark, drop_signature, invent_content
from dragoman.codecs.gemini_interactions import foreign_signatures
from dragoman.codecs.gemini_interactions.parts import PartEncoder, decode_part
from dragoman.codecs.gemini_interactions.profile import FAMILY, PROFILE, InteractionsProfile
from dragoman.codecs.gemini_interactions.steps import (
    APART,
    BEFORE,
    ON_CALL,
    SPELLED,
    STEP,
    TRUE,
    begins_step,
    decode_call,
    decode_other,
    decode_thought,
    encode_call,
    encode_thought,
    is_output,
    is_plain_text,
    is_signed_by_google,
    noted,
    shares_thought,
)
from dragoman.codecs.gemini_interactions.wire import (
    Content,
    FunctionCallStep,
    FunctionResultStep,
    ModelOutputStep,
    TextContent,
    ThoughtStep,
    UserInputStep,
)
from dragoman.codecs.google_signatures import GOOGLE, PLACEHOLDER, is_dummy
from dragoman.codecs.reading import WireReader, WireValue, keep, restore, spliced
from dragoman.codecs.wire_values import Unmodelled
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Message,
    Opaque,
    Reasoning,
    Request,
    ResultKind,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import Extra, family_notes, inner_extra
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, TraitNotes
from dragoman.ir.values import compact_text, encode_json, parse_json, to_raw
from dragoman.losses import LossLog

SOURCE = "gemini-interactions"
_OBJECT, _STRING, _LIST = b"{", b'"', b"["

_TO_AN_API = Request(None, ())
"""Placeholder for the request in which a part is sent."""

INSIDE = "~inside"
"""Note on a tool message: its results were among the contents of a user step, at these indices."""
JOINED = "~joined"
"""Note on a user message: it is the rest of that step."""


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageDecoder(TraitNotes):
    """Decodes the steps of one request, in order: results take their names from the calls before them.

    Records the traits of the conversation while reading (ir/traits.py). `answering`: all steps are the model's.
    """

    _pending_signature: tuple[Signature | None, Extra] | None = None
    """The signature of the next part, and how it was written."""
    _calls: int = 0

    def __init__(self, seed: str = "", *, answering: bool = False) -> None:
        super().__init__()
        self.seed = seed
        self.answering = answering
        self._messages: list[Message] = []
        self._turn_parts: list[AnyPart] = []  # the model's turn, so far
        self._results: list[AnyPart] = []

    def finished(self) -> tuple[Message, ...]:
        self._end_turn()
        self._end_tool_message()
        return tuple(self._messages)

    def answer(self) -> tuple[AnyPart, ...]:
        self._settle()
        return tuple(self._turn_parts)

    def add_system(self, text: str) -> None:
        self.turn("system")
        self.text(text)
        self._messages.append(Message("system", text))

    def add_text(self, text: str) -> None:
        """Add the input of a request that gives it as a string."""
        self.turn("user")
        self.text(text)
        self._messages.append(Message("user", text))

    def add_contents(self, wires: Sequence[Any]) -> None:
        """Add the input if it is one content or a list of them: one user turn."""
        for index, wire in enumerate(wires):
            if type(wire) in _HANDLERS and type(wire) not in _AMONG_CONTENTS:
                raise self._misfit(index, "", "a content: steps and contents do not mix", wire.__struct_config__.tag)
        self._add_user(UserInputStep(list(wires)), 0)

    def add_steps(self, steps: Iterable[Any]) -> None:
        for index, step in enumerate(steps):
            handler = _HANDLERS.get(type(step))
            if handler is None:
                raise self._misfit(index, "", "a step: steps and contents do not mix", step.__struct_config__.tag)
            handler(self, step, index)

    @property
    def _where(self) -> str:
        return "steps" if self.answering else "input"

    def _misfit(self, index: int, key: str, expected: str, got: object) -> DecodeError:
        path = f"$.{self._where}[{index}]" + (f".{key}" if key else "")
        return DecodeError(path=path, expected=expected, got=str(got), source=SOURCE)

    # ── users ──

    def _add_user(self, step: UserInputStep, index: int) -> None:  # noqa: ARG002
        if self.answering:
            self._say(Opaque(FAMILY, "user_input", restore(step)))  # of a GET, which returns the whole timeline
            return
        self._end_turn()
        self._end_tool_message()
        notes: Extra = {} if step.extra is UNSET else dict(step.extra)
        content = step.content
        if type(content) is list and any(type(wire) is FunctionResultStep for wire in content):
            self._add_inner_results(content, notes)
            return
        self.turn("user")
        parts: Any = content
        if type(content) is str:
            notes[SPELLED] = TRUE
            self.text(content)
        elif content is UNSET or not content:
            notes[SPELLED] = Raw(b'"absent"') if content is UNSET else Raw(b"[]")
            parts = ()
            self.bits |= EMPTY_MESSAGE
        else:
            parts = self._decode_contents(content)
        metadata = {FAMILY: notes} if notes else None
        if metadata is not None:
            self.metadata(metadata)
        self._messages.append(Message("user", parts, None, metadata))

    def _decode_contents(self, wires: Sequence[Any]) -> str | tuple[AnyPart, ...]:
        if len(wires) == 1 and is_plain_text(wires[0]):
            text: str = wires[0].text
            if not text or text.isspace():
                self.bits |= BLANK_TEXT
            return text
        parts = tuple([decode_part(wire) for wire in wires])
        for part in parts:
            self.part(part)
        return parts

    def _add_inner_results(self, wires: Sequence[Any], notes: Extra) -> None:
        """Add results that one client puts among the contents; they are written as steps."""
        self._results += [self._decode_result(wire) for wire in wires if type(wire) is FunctionResultStep]
        others = [wire for wire in wires if type(wire) is not FunctionResultStep]
        places = [place for place, wire in enumerate(wires) if type(wire) is FunctionResultStep]
        notes[INSIDE] = Raw(encode_json(places))
        self._end_tool_message(notes)
        if others:
            self.turn("user")
            self._messages.append(Message("user", self._decode_contents(others), None, {FAMILY: {JOINED: TRUE}}))

    # ── results ──

    def _add_result(self, step: FunctionResultStep, index: int) -> None:  # noqa: ARG002
        if self.answering:
            self._say(Opaque(FAMILY, "function_result", restore(step)))
            return
        self._end_turn()
        self._results.append(self._decode_result(step))

    def _decode_result(self, step: FunctionResultStep) -> ToolResult:
        notes: Extra = {} if step.extra is UNSET else dict(step.extra)
        given = step.name
        name = self.call_names.get(step.call_id, "" if given is UNSET else given)
        if given != name or not given:
            notes["~name"] = Raw(b"null") if given is UNSET else Raw(encode_json(given))
        if step.is_error is False:
            notes["~is_error"] = Raw(b"false")
        failed = step.is_error is True
        kind, value, parts = self._decode_value(step.result, notes, failed=failed)
        metadata = {FAMILY: notes} if notes else None
        if metadata is not None:
            self.metadata(metadata)
        for part in parts:
            if (inner := getattr(part, "metadata", None)) is not None:
                self.metadata(inner)
        self.result(step.call_id, name)
        return ToolResult(step.call_id, name, kind, value, parts, metadata=metadata)

    def _decode_value(self, value: Any, notes: Extra, *, failed: bool) -> tuple[ResultKind, Any, Any]:
        """Decode a result: a string is text, an object data, a list contents. None of them is ever wrapped."""
        plain: ResultKind = "error" if failed else "text"
        if value is UNSET or bytes(value) == b"null":
            notes["~result"] = Raw(b'"absent"') if value is UNSET else Raw(b"null")
            return "error" if failed else "data", None, ()
        first = bytes(value)[:1]
        if first == _STRING:
            return plain, parse_json(value), ()
        if first == _LIST:
            try:
                parts: tuple[AnyPart, ...] | None = tuple([decode_part(wire) for wire in _contents.read(value)])
            except DecodeError:
                parts = None
            if parts is None or (failed and not parts):
                notes["~result"] = Raw(b'"list"')
                return "error" if failed else "data", value, ()
            return "error" if failed else "multimodal", None, parts
        if first != _OBJECT:
            notes["~result"] = Raw(b'"scalar"')
        return "error" if failed else "data", value, ()

    def _end_tool_message(self, notes: Extra | None = None) -> None:
        if self._results:
            metadata = {FAMILY: notes} if notes else None
            if metadata is not None:
                self.metadata(metadata)
            self._messages.append(Message("tool", tuple(self._results), None, metadata))
            self._results = []

    # ── the model's turn ──

    def _add_output(self, step: ModelOutputStep, index: int) -> None:  # noqa: ARG002
        content = step.content
        contents: Any = [TextContent(content)] if type(content) is str else content
        parts = [] if contents is UNSET else [decode_part(wire) for wire in contents]
        first = parts[0] if parts else None
        if first is None or isinstance(first, Opaque):
            self._say(Opaque(FAMILY, "model_output", restore(step)))
            return
        notes: Extra = {}
        if type(content) is str:
            notes[SPELLED] = TRUE
        extra: Extra = {} if step.extra is UNSET else dict(step.extra)
        if step.error is not UNSET:
            extra["error"] = step.error
        if extra:
            notes.update((keep(FAMILY, UNSET, step=extra) or {})[FAMILY])
        if self._turn_parts and is_output(self._turn_parts[-1]) and self._pending_signature is None:
            notes[STEP] = TRUE
        self._say(replace(first, metadata=noted(first.metadata, notes)) if notes else first)
        for part in parts[1:]:
            self._say(part)

    def _add_thought(self, step: ThoughtStep, index: int) -> None:  # noqa: ARG002
        self._settle()
        signature = step.signature
        tag = None if signature is UNSET else foreign_signatures.read_tag_of(signature)
        if tag is not None and step.extra is UNSET and self._add_tagged(step, tag):
            return
        if signature is UNSET or is_dummy(signature):
            self._add_unsigned(step)
            return
        reasoning = decode_thought(step)
        behind = bool(self._turn_parts) and type(self._turn_parts[-1]) is Reasoning
        if reasoning is not None:
            self._say(reasoning)
        notes: Extra = {APART: TRUE} if reasoning is None and behind else {}
        self._pending_signature = (Signature("dragoman" if tag else GOOGLE, signature), notes)

    def _add_unsigned(self, step: ThoughtStep) -> None:
        """Add a thought with only a summary, or with a placeholder signature, which has no meaning for others."""
        reasoning = decode_thought(step)
        if reasoning is not None and step.signature is UNSET:
            self._say(reasoning)
        elif reasoning is not None:
            notes: Extra = {"~raw:signature": Raw(encode_json(step.signature))}
            self._say(replace(reasoning, metadata=noted(reasoning.metadata, notes)))
        else:
            self._pending_signature = (None, {BEFORE: restore(step)})

    def _add_tagged(self, step: ThoughtStep, tag: str) -> bool:
        summary = step.summary or ()
        text = "".join(getattr(piece, "text", "") for piece in summary)
        trailing = foreign_signatures.read_trailing(text, tag)
        if trailing is not None:
            return foreign_signatures.sign_last(self._turn_parts, trailing)
        found = foreign_signatures.read_tagged(text, tag)
        if isinstance(found, Signature):
            self._pending_signature = (found, {"~tagged": TRUE})
        elif found is not None:
            self._say(found)
        return found is not None

    def _add_call(self, step: FunctionCallStep, index: int) -> None:
        seed = f"{self.seed} {index}" if self.answering else f"$.input[{index}]"
        call = decode_call(step, seed, self._calls, f"$.{self._where}[{index}]")
        self._calls += 1
        self._say(call)

    def _add_other(self, step: Unmodelled, index: int) -> None:
        if bytes(step.raw)[:1] != _OBJECT or b'"type"' not in bytes(step.raw):
            raise self._misfit(index, "", "a step with a type", bytes(step.raw)[:60].decode(errors="replace"))
        self._say(decode_other(step.raw))

    def _say(self, part: AnyPart) -> None:
        """Add a part to the model's turn, with the signature that came before it."""
        self._end_tool_message()
        if self._pending_signature is not None:
            signed = self._sign(part)
            if signed is None:
                self._settle()
            else:
                part = signed
        if not self.answering:
            if not self._turn_parts:
                self.turn("assistant")
            if type(part) is ToolCall:
                self.call(part.id, part.name)
                if part.metadata is not None:
                    self.metadata(part.metadata)
            else:
                self.part(part)
        self._turn_parts.append(part)

    def _sign(self, part: AnyPart) -> AnyPart | None:
        """Give the part the signature that waits for it; None if there is none, or the part cannot have it."""
        if self._pending_signature is None or not isinstance(part, Text | ToolCall) or part.signature is not None:
            return None
        (signature, notes), self._pending_signature = self._pending_signature, None
        if foreign_signatures.stands_alone(part):
            notes = {**notes, foreign_signatures.SHOWN: TRUE}
        return replace(part, signature=signature, metadata=noted(part.metadata, notes))

    def _settle(self) -> None:
        """If no part came that the thought before could sign, give its signature to an empty text."""
        if self._pending_signature is None:
            return
        (signature, notes), self._pending_signature = self._pending_signature, None
        if signature is None:
            self._say(Opaque(FAMILY, "thought", notes[BEFORE]))
        else:
            self._say(Text("", signature=signature, metadata={FAMILY: notes} if notes else None))

    def _end_turn(self) -> None:
        self._settle()
        if self._turn_parts:
            self._messages.append(Message("assistant", tuple(self._turn_parts)))
            self._turn_parts = []


_contents: WireReader[list[Content]] = WireReader(list[Content], f"{SOURCE} result")
_HANDLERS: dict[type[Any], Callable[[MessageDecoder, Any, int], None]] = {
    UserInputStep: MessageDecoder._add_user,
    FunctionResultStep: MessageDecoder._add_result,
    ModelOutputStep: MessageDecoder._add_output,
    ThoughtStep: MessageDecoder._add_thought,
    FunctionCallStep: MessageDecoder._add_call,
    Unmodelled: MessageDecoder._add_other,
}


_AMONG_CONTENTS = (FunctionResultStep, Unmodelled)
"""Steps that may also be in a list of contents."""


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder:
    """Encodes messages in order: as the input of a request, or as the steps of an answer."""

    def __init__(
        self,
        log: LossLog,
        profile: InteractionsProfile = PROFILE,
        *,
        model: str | None = None,
        native: bool = False,
        to_client: bool = False,
    ) -> None:
        self._log = log
        self._native = native
        self._to_client = to_client
        # A stored transcript (native, without a target model) keeps what it carries; a provider never receives it.
        self._carries = to_client or native
        self.parts = PartEncoder(log, None if self._carries else _TO_AN_API, native=native, profile=profile)
        self._checks = not self._carries and profile.placeholder_signature_models.search(model or "") is not None

    def encode(self, messages: Sequence[Message]) -> list[WireValue]:
        steps: list[WireValue] = []
        waiting: Message | None = None
        for message in messages:
            if waiting is not None:
                joined = message if JOINED in family_notes(FAMILY, message.metadata) else None
                steps += self._encode_inside(waiting, joined)
                waiting = None
                if joined is not None:
                    continue
            if message.role == "tool":
                if self._native and INSIDE in family_notes(FAMILY, message.metadata):
                    waiting = message
                else:
                    steps += [self._encode_result(part) for part in message.parts]  # type: ignore[arg-type]
            elif message.role == "assistant":
                steps += self.encode_turn(message)
            elif message.role == "user":
                steps += self._encode_user(message)
        return steps if waiting is None else [*steps, *self._encode_inside(waiting, None)]

    # ── users ──

    def _encode_user(self, message: Message) -> list[WireValue]:
        content = message.content_held
        notes = family_notes(FAMILY, message.metadata)
        if type(content) is str and not notes:
            return [UserInputStep([TextContent(content)])]
        contents: Any = self._contents_of(message)
        if not contents and SPELLED not in notes:
            if content and not self._native:
                # The losses are logged; a turn without contents is refused.
                contents = [TextContent(NOT_SENT)]
                invent_content(message, self._log)
            elif not self._native:
                return []
        if SPELLED in notes and self._native:
            spelled = bytes(notes[SPELLED])
            contents = message.text if spelled == bytes(TRUE) else UNSET if spelled == b'"absent"' else contents
        step = UserInputStep(contents)
        return [spliced(step, notes) if notes else step]

    def _contents_of(self, message: Message) -> list[WireValue]:
        if type(message.content_held) is str:
            return [TextContent(message.text)]
        return [wire for part in message.parts if (wire := self.parts.encode_content(part, message.role)) is not None]

    def _encode_inside(self, results: Message, rest: Message | None) -> list[WireValue]:
        """Encode a user step with results among its contents, as one client writes it."""
        notes = family_notes(FAMILY, results.metadata)
        places = set(parse_json(notes[INSIDE]))
        inside = [self._encode_result(part) for part in results.parts]  # type: ignore[arg-type]
        others = [] if rest is None else self._contents_of(rest)
        mixed: list[WireValue] = []
        for place in range(len(inside) + len(others)):
            source = inside if (place in places and inside) or not others else others
            mixed.append(source.pop(0))
        return [spliced(UserInputStep(mixed), notes)]

    # ── results ──

    def _encode_result(self, result: ToolResult) -> WireValue:
        if result.cache is not None:
            drop_cache_mark(result, self._log)
        notes = family_notes(FAMILY, result.metadata)
        name: Any = result.name or UNSET
        is_error: Any = True if result.kind == "error" else UNSET
        if self._native and notes:
            if "~name" in notes:
                given = parse_json(notes["~name"])
                name = UNSET if given is None else given
            is_error = False if "~is_error" in notes else is_error
        step = FunctionResultStep(result.tool_call_id, self._result_value(result, notes), name, is_error)
        return spliced(step, notes) if notes else step

    def _result_value(self, result: ToolResult, notes: Extra) -> Any:
        """Return text, an object, or a list of contents, unwrapped. Any other JSON is sent as its text."""
        if result.parts or result.kind == "multimodal":
            wires = [wire for part in result.parts if (wire := self.parts.encode_content(part, "tool")) is not None]
            return wires if wires or self._native or not result.parts else ""
        value = result.value_held
        if result.kind != "data" and isinstance(text := value if type(value) is str else result.value, str):
            return text
        raw = to_raw(value)
        if "~result" in notes and self._native:
            return UNSET if bytes(notes["~result"]) == b'"absent"' else raw
        if bytes(raw)[:1] == _OBJECT:
            return raw
        if result.kind == "data":
            self._log.degrade(result, "value", "JSON result that is not an object", "it is sent as JSON text")
        return compact_text(raw)

    # ── the model's turn ──

    def encode_turn(self, message: Message) -> list[WireValue]:
        """Encode the steps of an assistant message, in order."""
        for key in family_notes(FAMILY, message.metadata):
            if not key.startswith("~"):
                self._log.drop(message, key, key, "a turn is a row of steps here, and has no fields of its own")
        parts = message.parts
        steps: list[WireValue] = []
        signed = not self._checks
        index = 0
        while index < len(parts):
            part = parts[index]
            following = parts[index + 1] if index + 1 < len(parts) else None
            if isinstance(part, Reasoning):
                merges = shares_thought(part, following)
                signature = following.signature if merges else None  # type: ignore[union-attr]
                step = encode_thought(part, signature, self._log, to_client=self._to_client, native=self._native)
                steps += [] if step is None else [step]
                if merges and step is not None:
                    signed = True
                    steps += self._encode_signed(parts, index + 1, is_merged=True)
                    index += _count(parts, index + 1)
            else:
                if isinstance(part, ToolCall) and not signed:
                    steps += self._placeholder(part)
                    signed = True
                steps += self._encode_signed(parts, index, is_merged=False)
                signed = signed or is_signed_by_google(part)
                index += _count(parts, index) - 1
            index += 1
        return steps

    def _placeholder(self, call: ToolCall) -> list[WireValue]:
        notes = family_notes(FAMILY, call.metadata)
        if is_signed_by_google(call) or BEFORE in notes or ON_CALL in notes:
            return []
        why = "this model requires a thought before the first call"
        self._log.invent(call, "signature", "placeholder signature", why)
        return [ThoughtStep(PLACEHOLDER)]

    def _encode_signed(self, parts: Sequence[AnyPart], index: int, *, is_merged: bool) -> list[WireValue]:
        """Encode a part as its step, and a thought with its signature before it (ours may come after it)."""
        part = parts[index]
        following = parts[index + 1] if index + 1 < len(parts) else None
        before: list[WireValue] = []
        behind: list[WireValue] = []
        notes = family_notes(FAMILY, getattr(part, "metadata", None))
        if BEFORE in notes and self._carries:
            before.append(notes[BEFORE])
        signature = part.signature if isinstance(part, Text | ToolCall) else None
        if signature is not None and not is_merged and ON_CALL not in notes:
            thought = self._carrier(part, signature, following)
            if thought is not None and self.parts.signatures.stands_behind(part):  # type: ignore[arg-type]
                behind.append(foreign_signatures.trailing_signature(part, signature))
            elif thought is not None:
                before.append(thought)
        if signature is not None and foreign_signatures.stands_alone(part):
            return before or behind  # the thought is enough
        return [*before, *self._encode_step(parts, index), *behind]

    def _carrier(self, part: Any, signature: Signature, following: AnyPart | None) -> WireValue:
        """Return the thought that carries the signature of a part; None if it cannot be sent (logged)."""
        if signature.family == GOOGLE and signature.data:
            signs = isinstance(following, Text | ToolCall) and following.signature is None
            if not self._carries or not signs or not foreign_signatures.stands_alone(part):
                return ThoughtStep(signature.data)
        if not self._carries:
            drop_signature(part, signature, self._log)
            return None
        if signature.family == "dragoman":
            return ThoughtStep(signature.data)
        return foreign_signatures.tagged_signature(part, signature)

    def _encode_step(self, parts: Sequence[AnyPart], index: int) -> list[WireValue]:
        part = parts[index]
        if isinstance(part, ToolCall):
            return [encode_call(part, self._log, native=self._native)]
        if not is_output(part):
            return self.parts.encode_part(part, "assistant")
        run = parts[index : index + _count(parts, index)]
        contents = [wire for piece in run if (wire := self.parts.encode_content(piece, "assistant")) is not None]
        if not contents:
            return []
        notes = family_notes(FAMILY, getattr(part, "metadata", None))
        content: Any = contents
        if SPELLED in notes and self._native and isinstance(part, Text) and len(run) == 1:
            content = part.text
        step = ModelOutputStep(content)
        within = inner_extra(notes, "step")
        return [*self.parts.thoughts_of(part), step if within is None else spliced(step, within)]


def _count(parts: Sequence[AnyPart], index: int) -> int:
    """Return the number of parts in the step that begins here."""
    end = index + 1
    while end < len(parts) and not begins_step(parts[end], parts[end - 1]):
        end += 1
    return end - index
