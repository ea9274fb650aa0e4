"""Chat messages and their parts, both ways.

An assistant message keeps content, plan, calls and citations in four separate fields, so the order between them is
lost on this wire: decoding gives content, plan and calls in that order, encoding reports if the source had another
one. A result is a separate message, which identifies its tool only by the id of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.arguments import EMPTY_OBJECT, arguments_as_text, read_arguments
from dragoman.codecs.carried_signatures import SIGNATURE, signature_in, write_signature
from dragoman.codecs.cohere_chat.foreign_signatures import ONLY_PLAN, PLAN, TAGGED_MEDIA
from dragoman.codecs.cohere_chat.grounding import (
    DATA,
    OF_THE_REQUEST,
    decode_citations,
    encode_citations,
    encode_document,
)
from dragoman.codecs.cohere_chat.parts import DECODE_PART, ENCODE_PART
from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.cohere_chat.wire import (
    AnyMessage,
    AssistantMessage,
    Call,
    ContentPart,
    DocumentPart,
    Function,
    SystemMessage,
    TextPart,
    ToolMessage,
    UnknownMessage,
    UserMessage,
)
from dragoman.codecs.common_losses import drop_cache_mark, drop_signature
from dragoman.codecs.ids import is_invented
from dragoman.codecs.media import as_text_document, document_text, is_refused_image
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import WireValue, keep, spliced
from dragoman.codecs.result_errors import ERROR_START, read_error, write_error, write_words
from dragoman.codecs.result_media import TAGGED, is_media_tag, media_placeholder, media_tag, rejoin_media
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Document,
    Image,
    Media,
    Message,
    Metadata,
    Opaque,
    Reasoning,
    Role,
    SearchResult,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import MODELLED, Extra, inner_extra
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, TraitNotes
from dragoman.ir.values import compact_text, encode_json, note, parse_json
from dragoman.losses import LossLog

NULL = Raw(b"null")
CONTENT = "~content"
"""Note: the form of the content: "string" beside something else, "empty" list, null."""
STRING, EMPTY = Raw(b'"string"'), Raw(b'"empty"')
ARGUMENTS = "~arguments"
TYPE = "~type"

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageDecoder(TraitNotes):
    """Decodes the messages of one request, in order: results take their names from the calls before them.

    Records the traits of the conversation while reading. `tagged`: some media came in a separate turn.
    """

    tagged: bool = False

    def decode(self, wires: Sequence[AnyMessage]) -> tuple[Message, ...]:
        """Decode the messages. The usual ones are read inline, others by their own method."""
        messages: list[Message] = []
        content: Any
        for index, wire in enumerate(wires):
            kind = type(wire)
            if kind is UserMessage or kind is SystemMessage:
                role: Role = "user" if kind is UserMessage else "system"
                self.turn(role)
                content = wire.content  # type: ignore[union-attr]
                if type(content) is not str:
                    content = self._decode_parts(content, is_user=kind is UserMessage)
                elif not content or content.isspace():
                    self.bits |= BLANK_TEXT
                metadata = keep(FAMILY, wire.extra)
                if metadata is not None:
                    self.metadata(metadata)
                messages.append(Message(role, content, None, metadata))
            elif kind is AssistantMessage:
                self.turn("assistant")
                message = self.decode_assistant(wire)  # type: ignore[arg-type]
                self.message(message)
                messages.append(message)
            elif kind is ToolMessage:
                messages.append(self._decode_result(wire))  # type: ignore[arg-type]
            else:
                raise _unknown_role(wire, index)
        return tuple(rejoin_media(messages, TAGGED_MEDIA) if self.tagged else messages)

    def _decode_parts(self, wires: list[ContentPart], *, is_user: bool) -> tuple[AnyPart, ...]:
        parts: list[AnyPart] = []
        for wire in wires:
            part = DECODE_PART[type(wire)](wire)
            self.part(part)
            parts.append(part)
        if not parts:
            self.bits |= EMPTY_MESSAGE
        elif is_user and type(parts[0]) is Text and is_media_tag(parts[0].text):
            self.tagged = True
        return tuple(parts)

    @staticmethod
    def decode_assistant(wire: AssistantMessage) -> Message:
        """Decode an assistant message, from a history or a response."""
        content, calls, plan = wire.content, wire.tool_calls, wire.tool_plan
        if type(content) is str and calls is plan is wire.citations is wire.extra is UNSET:
            return Message("assistant", content)
        extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        parts = _decode_content(content, extra)
        count = len(parts)
        if plan:
            parts.append(Text(plan, metadata=ONLY_PLAN))
        elif plan is not UNSET:
            extra[MODELLED + "tool_plan"] = NULL if plan is None else Raw(b'""')
        if wire.citations is not UNSET:
            _cite(wire.citations, parts, count, extra)
        if calls:
            parts += [_decode_call(call) for call in calls]
        elif calls is not UNSET:
            extra[MODELLED + "tool_calls"] = NULL if calls is None else Raw(b"[]")
        return Message("assistant", tuple(parts), None, {FAMILY: extra} if extra else None)

    def _decode_result(self, wire: ToolMessage) -> Message:
        call_id, content = wire.tool_call_id, wire.content
        name = self.call_names.get(call_id, "")
        self.result(call_id, name)
        if type(content) is str and wire.extra is UNSET and content[:9] != ERROR_START:
            return Message("tool", (ToolResult(call_id, name, "text", content),))
        extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        result = _odd_result(call_id, name, content, extra)
        if result.metadata is not None:
            self.metadata(result.metadata)
        for piece in result.parts:
            if piece_metadata := getattr(piece, "metadata", None):
                self.metadata(piece_metadata)
        return Message("tool", (result,))


def _unknown_role(wire: AnyMessage, index: int) -> DecodeError:
    role = parse_json(wire.raw).get("role") if isinstance(wire, UnknownMessage) else None
    return DecodeError(
        path=f"$.messages[{index}].role",
        expected="system, user, assistant or tool",
        got=repr(role),
        source="cohere-chat",
    )


def _decode_content(content: str | list[ContentPart] | None | UnsetType, extra: Extra) -> list[AnyPart]:
    if content is UNSET:
        return []
    if content is None:
        extra[CONTENT] = NULL
        return []
    if isinstance(content, str):
        extra[CONTENT] = STRING
        return [Text(content)]
    if not content:
        extra[CONTENT] = EMPTY
    return [DECODE_PART[type(part)](part) for part in content]


def _cite(raw: Raw, parts: list[AnyPart], count: int, extra: Extra) -> None:
    """Give the texts their citations. The first `count` parts are the content; a plan may follow."""
    cited = decode_citations(raw)
    if cited is None:
        extra["citations"] = raw
        return
    extra[MODELLED + "citations"] = raw
    texts = [index for index in range(count) if type(parts[index]) is Text]
    found: dict[int, list[Any]] = {}
    for one in cited:
        place = one.content_index
        if one.is_plan:
            place = count if len(parts) > count else None
        elif place is None or place >= count or type(parts[place]) is not Text:
            place = texts[0] if texts and not one.is_thinking else None
        if place is None:
            extra["citations"] = raw  # about thinking, or a text that is not here
            extra.pop(MODELLED + "citations", None)
        else:
            found.setdefault(place, []).extend(one.citations)
    for place, citations in found.items():
        parts[place] = structs.replace(parts[place], citations=tuple(citations))


def _decode_call(call: Call) -> ToolCall:
    function = call.function
    text = function.arguments
    if type(text) is str and call.type == "function" and call.signature is call.extra is function.extra is UNSET:
        return ToolCall(call.id, function.name, read_arguments(text), text, invented_id=is_invented(call.id))
    extra: Extra = {} if call.extra is UNSET else dict(call.extra)
    if call.type != "function":
        extra[TYPE] = NULL if call.type is UNSET else Raw(encode_json(call.type))
    if function.extra is not UNSET:
        extra |= keep(FAMILY, UNSET, function=function.extra)[FAMILY]  # type: ignore[index]
    signature = None
    if call.signature is not UNSET:
        signature = signature_in(call.signature)
        extra[MODELLED * (signature is not None) + SIGNATURE] = call.signature
    arguments: Any = EMPTY_OBJECT
    if type(text) is str:
        arguments = read_arguments(text)
    else:
        extra[ARGUMENTS] = Raw(b'"absent"') if text is UNSET else NULL
    return ToolCall(
        call.id,
        function.name,
        arguments,
        text if type(text) is str else None,
        invented_id=is_invented(call.id),
        signature=signature,
        metadata={FAMILY: extra} if extra else None,
    )


def _odd_result(call_id: str, name: str, content: str | list[ContentPart], extra: Extra) -> ToolResult:
    metadata: Metadata | None = {FAMILY: extra} if extra else None
    if isinstance(content, str):
        error = read_error(content)
        is_error = error is not UNSET
        return ToolResult(
            call_id, name, "error" if is_error else "text", error if is_error else content, (), None, metadata
        )
    if len(content) == 1 and type(content[0]) is DocumentPart and content[0].extra is UNSET:
        document = content[0].document
        if bytes(document.data)[:1] == b"{":
            # A single document of data is the tool's return value.
            if document.extra is not UNSET or document.id is not UNSET:
                inner = {} if document.extra is UNSET else document.extra
                own = {"id": Raw(encode_json(document.id))} if document.id is not UNSET else {}
                extra |= keep(FAMILY, UNSET, document={**own, **inner})[FAMILY]  # type: ignore[index]
            extra[DATA] = Raw(b"true")
            return ToolResult(call_id, name, "data", document.data, (), None, {FAMILY: extra})
    parts: Any = tuple([DECODE_PART[type(piece)](piece) for piece in content])
    return ToolResult(call_id, name, "multimodal", None, parts, None, metadata)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageEncoder:
    """Encodes messages in order; images of results wait until the last result of the turn is written.

    `to_client`: an answer, which also carries signatures of other families. `native`: the conversation came in this
    format. `foreign`: it came in another one. `documents`: those that belong to the request as a whole;
    `takes_documents`: whether they may be sent.
    """

    def __init__(
        self,
        log: LossLog,
        *,
        to_client: bool = False,
        native: bool = False,
        foreign: bool = False,
        takes_documents: bool = True,
    ) -> None:
        self._log = log
        self._to_client = to_client
        self._native = native
        self._foreign = foreign
        self._takes_documents = takes_documents
        self._waiting_media: list[WireValue] = []
        self.documents: list[WireValue] = []

    def encode(self, messages: Iterable[Message]) -> list[WireValue]:
        wires: list[WireValue] = []
        add = wires.append
        for message in messages:
            role = message.role
            content: Any = message.content_held
            if role == "tool":
                for part in content:
                    add(self._encode_result(part))
                continue
            if self._waiting_media:
                self._flush_media(wires)
            if role == "assistant":
                wire = self.encode_assistant(message)
            elif type(content) is str and message.metadata is None:
                wire = UserMessage(content) if role == "user" else SystemMessage(content)
            else:
                wire = self._encode_plain(message)
            if wire is not None:
                add(wire)
        if self._waiting_media:
            self._flush_media(wires)
        return wires

    def _flush_media(self, wires: list[WireValue]) -> None:
        # Results must be contiguous, and this API takes images only from users.
        wires.append(UserMessage(self._waiting_media))
        self._waiting_media = []

    def _encode_plain(self, message: Message) -> WireValue:
        """Encode a system or user message; None if nothing of it can be sent (logged)."""
        notes: Extra = (message.metadata or {}).get(FAMILY, {})
        content: Any = message.content_held
        if type(content) is tuple:
            content = self._encode_content(content, message.role)
            if not content and not self._native:
                if message.role == "system":
                    self._report_keys(message, notes)
                    return None
                content = self._invent_placeholder(message)
            if CONTENT in notes and len(content) == 1 and type(content[0]) is TextPart:
                content = content[0].text
        wire = UserMessage(content) if message.role == "user" else SystemMessage(content)
        return spliced(wire, notes) if notes else wire

    def _invent_placeholder(self, message: Message) -> str:
        """Return a text that replaces the parts of a turn that cannot be sent: an empty turn is refused."""
        kinds = ", ".join(type(part).__name__.lower() for part in message.parts)
        self._log.invent(message, "", "a text in its place", "this API refuses a turn without content")
        return f"[left out: {kinds}]"

    def _report_keys(self, message: Message, notes: Extra) -> None:
        if notes:
            self._log.drop(message, "", "keys of a message", "nothing else of the message can be sent")

    def _encode_content(self, parts: tuple[AnyPart, ...], role: str) -> list[WireValue]:
        wires: list[WireValue] = []
        # A turn must have content beside its documents.
        alone = not any(
            type(part) is Text or (isinstance(part, Media) and type(part) is not Document) for part in parts
        )
        for part in parts if self._native else [as_text_document(part, self._log) for part in parts]:
            if type(part) is Text and part.metadata is None and part.cache is None and part.signature is None:
                self._report_citations(part, role)
                wires.append(TextPart(part.text))
            elif type(part) is Document and part.text is not None:
                self._place_document(part, wires, as_text=alone or role != "user")
            elif self._native or self._fits(part, role):
                wire = ENCODE_PART[type(part)](part, self._log, self._to_client)
                if wire is not None:
                    if type(part) is Text:
                        self._report_citations(part, role)
                    wires.append(wire)
        return wires

    def _report_citations(self, part: Text, role: str) -> None:
        if part.citations:
            self._log.drop(part, "citations", "citations", f"a {role} message of this API has none")

    def _place_document(self, part: Document, wires: list[WireValue], *, as_text: bool) -> None:
        """Put a document beside the messages or, if it may not be there, its text into the message."""
        own = OF_THE_REQUEST in (part.metadata or {}).get(FAMILY, {})
        if (own and self._native) or (self._takes_documents and not as_text):
            if not own:
                why = "documents of this API belong to the request as a whole"
                self._log.degrade(part, "", "place of a document", why)
            self.documents.append(encode_document(part, self._log))
            return
        if self._native or (part.text or "").strip():
            wires.append(TextPart(document_text(part, self._log)))
        else:
            self._log.drop(part, "", "document", "this API refuses blank text")

    def _fits(self, part: AnyPart, role: str) -> bool:
        """Whether the role may send the part: users send text and images; a system message is text."""
        if type(part) in {Text, SearchResult, Opaque} or (role == "user" and isinstance(part, Media)):
            return self._is_taken(part)
        self._log.drop(part, "", name_of_part(part), f"a {role} message of this API cannot hold it")
        return False

    def _is_taken(self, part: AnyPart) -> bool:
        """Whether this API reads images of this type; refused ones are reported."""
        if type(part) is Image and is_refused_image(part.media_type, part.url):
            self._log.drop(part, "", "image", "this API takes PNG, JPEG, GIF and WebP")
            return False
        return True

    def encode_assistant(self, message: Message) -> WireValue:
        """Encode the message; None if nothing of it can be sent (logged): an empty turn is refused."""
        content: Any = message.content_held
        if type(content) is str and message.metadata is None:
            return AssistantMessage([TextPart(content)] if self._to_client else content)
        notes: Extra = (message.metadata or {}).get(FAMILY, {})
        turn = _Turn(message.parts, native=self._native or self._to_client)
        calls = [self._encode_call(call) for call in turn.calls]
        for part in turn.late:
            self._log.degrade(part, "", "place among the other parts", "a message keeps content, plan and calls apart")
        wires, citations = self._encode_answer_content(turn.content)
        plan: Any = UNSET
        if turn.plan is not None:
            plan = self._encode_plan(turn.plan, citations)
        if not (wires or calls or plan or self._native or self._to_client):
            self._report_keys(message, notes)
            return None
        body = AssistantMessage(_spell_content(wires, notes), plan, calls or UNSET)
        if citations and MODELLED + "citations" not in notes and "citations" not in notes:
            notes = {**notes, "citations": Raw(encode_json(citations))}
        return spliced(body, notes) if notes else body

    def _encode_plan(self, plan: Text, citations: list[WireValue]) -> str:
        citations += encode_citations(plan, None, self._log)
        if plan.cache is not None:
            drop_cache_mark(plan, self._log)
        if plan.signature is not None:
            drop_signature(plan, plan.signature, self._log)
        return plan.text

    def _encode_answer_content(self, parts: list[AnyPart]) -> tuple[list[WireValue], list[WireValue]]:
        wires: list[WireValue] = []
        citations: list[WireValue] = []
        for part in parts:
            if type(part) is Document and part.text is not None:
                self._place_document(part, wires, as_text=True)
                continue
            if isinstance(part, Media) and not (self._native or getattr(part, "transcript", None)):
                what = "an assistant message of this API holds text, thinking and calls"
                self._log.drop(part, "", name_of_part(part), what)
                continue
            if type(part) is Reasoning and not self._keeps(part):
                continue
            wire = ENCODE_PART[type(part)](part, self._log, self._to_client)
            if wire is not None:
                if type(part) is Text and part.citations:
                    citations += encode_citations(part, len(wires), self._log)
                wires.append(wire)
        return wires, citations

    def _keeps(self, part: Reasoning) -> bool:
        """Whether to send the reasoning.

        It has no signature here, so a conversation in another format cannot show that it is this model's.
        """
        spelled_elsewhere = bool(part.metadata) and FAMILY not in (part.metadata or {})
        if self._to_client or self._native or not (self._foreign or spelled_elsewhere):
            return True
        self._log.drop(part, "", "reasoning", "the reasoning of another provider is not this model's own")
        return False

    def _encode_call(self, call: ToolCall) -> WireValue:
        metadata = call.metadata
        if call.cache is not None:
            drop_cache_mark(call, self._log)
        notes: Extra | None = None if metadata is None else metadata.get(FAMILY)
        signature = call.signature if call.signature is not None and call.signature.data else None
        if signature is not None and not self._to_client:
            drop_signature(call, signature, self._log)
            notes = {key: value for key, value in (notes or {}).items() if key != MODELLED + SIGNATURE}
        elif signature is not None and (notes is None or MODELLED + SIGNATURE not in notes):
            notes = {**(notes or {}), SIGNATURE: write_signature(signature)}
        if not notes:
            return Call(call.id, Function(call.name, _arguments(call, native=self._native)), "function")
        spelled = note({FAMILY: notes}, FAMILY, ARGUMENTS)
        arguments: Any = (
            _arguments(call, native=self._native) if spelled is UNSET else UNSET if spelled == "absent" else None
        )
        function: Any = Function(call.name, arguments)
        inner = inner_extra(notes, "function")
        if inner is not None:
            function = spliced(function, inner)
        kind = note({FAMILY: notes}, FAMILY, TYPE)
        body = Call(
            call.id,
            function,
            "function" if kind is UNSET else UNSET if kind is None else kind,
        )
        return spliced(body, notes)

    def _encode_result(self, result: ToolResult) -> WireValue:
        metadata = result.metadata
        if result.cache is not None:
            drop_cache_mark(result, self._log)
        if metadata is None and result.kind == "text" and not result.parts:
            value = result.value_held
            return ToolMessage(result.tool_call_id, value if type(value) is str else result.value)
        notes: Extra = (metadata or {}).get(FAMILY, {})
        wire = ToolMessage(result.tool_call_id, self._result_content(result, notes))
        return spliced(wire, notes) if notes else wire

    def _result_content(self, result: ToolResult, notes: Extra) -> WireValue:
        kind = result.kind
        if result.parts or kind == "multimodal":
            return self._content_with_media(result, notes)
        if kind == "text":
            value = result.value_held
            return value if type(value) is str else result.value
        if kind == "error":
            return write_error(result.value)
        if DATA in notes:
            inner = inner_extra(notes, "document")
            body: Any = Raw(encode_json({"data": result.value_held}))
            return [DocumentPart(body if inner is None else spliced(body, inner))]  # type: ignore[arg-type]
        return compact_text(result.value_held)

    def _content_with_media(self, result: ToolResult, notes: Extra) -> WireValue:
        """Encode text and documents in the tool message; images follow in a tagged user turn."""
        texts: list[WireValue] = []
        media: list[WireValue] = []
        words: list[str] = []
        for part in result.parts:
            if type(part) is Text and part.citations:
                self._log.drop(part, "citations", "citations", "a tool message of this API has none")
            if not (self._native or self._is_taken(part)):
                continue
            if result.kind == "error" and type(part) is Document and part.text is not None:
                words.append(document_text(part, self._log))
                continue
            wire = ENCODE_PART[type(part)](part, self._log, self._to_client)
            if type(part) is Text or type(wire) is TextPart:
                words.append(part.text if type(part) is Text else wire.text)
            if wire is not None:
                (media if isinstance(part, Media) and type(part) is not Document else texts).append(wire)
        if media:
            self._waiting_media += [TextPart(media_tag(result.tool_call_id)), *media]
            if TAGGED not in notes:
                why = "it follows in a user message, tagged with its call"
                self._log.degrade(result, "", "media in a tool result", why)
            texts.append(TextPart(media_placeholder(len(media))))
        if result.kind == "error":
            return write_words(words, result, self._log)
        return texts if texts or self._native else ""


class _Turn:
    """The parts of an assistant message by the field that holds them."""

    def __init__(self, parts: tuple[AnyPart, ...], *, native: bool) -> None:
        self.content: list[AnyPart] = []
        self.plan: Text | None = None
        self.calls: list[ToolCall] = []
        self.late: list[AnyPart] = []
        """Parts that came after those of a later field."""
        rank = 0
        for part in parts:
            if type(part) is ToolCall:
                order = 2
                self.calls.append(part)
            elif type(part) is Text and self.plan is None and PLAN in (part.metadata or {}).get(FAMILY, {}):
                order = 1
                self.plan = part
            else:
                order = 0
                self.content.append(part)
            if order < rank:
                self.late.append(part)
            rank = max(rank, order)
        if not native and self.calls and self.plan is None and not self.late:
            self._plan_before_calls()

    def _plan_before_calls(self) -> None:
        """Move the only text before the calls of a turn to what this API calls its plan."""
        texts = [part for part in self.content if type(part) is Text]
        if len(texts) == 1 and self.content[-1] is texts[0] and texts[0].signature is None:
            self.plan = texts[0]
            self.content.pop()


def _arguments(call: ToolCall, *, native: bool) -> str:
    text = arguments_as_text(call, native=native)
    return text or "{}" if call.arguments_text is None else text


def _spell_content(wires: list[WireValue], notes: Extra) -> WireValue:
    """Return content in its original form; UNSET if there is none."""
    spelled = notes.get(CONTENT)
    if spelled is not None:
        word = bytes(spelled)
        if word == b'"string"' and len(wires) == 1 and type(wires[0]) is TextPart:
            return wires[0].text
        if not wires:
            return None if word == b"null" else []
    return wires or UNSET
