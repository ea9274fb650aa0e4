"""Chat messages and their parts, both ways.

An assistant message keeps reasoning, text, refusal and calls in four separate fields, so the order between them is
lost on this wire: decoding gives them in that order, encoding reports when the source had another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs import cache_control
from dragoman.codecs.arguments import arguments_as_text, read_arguments
from dragoman.codecs.cache_breakpoints import takes_breakpoints, with_breakpoint
from dragoman.codecs.common_losses import NOT_SENT, drop_signature
from dragoman.codecs.ids import INVENTED_PREFIX, invent_id, is_invented
from dragoman.codecs.media import audio_format, is_refused_image, transcript
from dragoman.codecs.openai_chat import audio, foreign_signatures, images
from dragoman.codecs.openai_chat.hosted_tools import HOSTED
from dragoman.codecs.openai_chat.parts import decode_part, encode_part
from dragoman.codecs.openai_chat.profile import (
    AUDIO_MODELS,
    PROFILE,
    SPEAKER,
    ChatProfile,
    relayed_family_of,
    takes_plain_reasoning,
)
from dragoman.codecs.openai_chat.wire import (
    AnyMessage,
    AssistantMessage,
    Call,
    ContentPart,
    Custom,
    DeveloperMessage,
    Function,
    FunctionMessage,
    SystemMessage,
    TextPart,
    ToolMessage,
    UnknownMessage,
    UserMessage,
)
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import WireReader, WireValue, keep, restore, spliced
from dragoman.codecs.result_errors import ERROR_START, read_error, write_error, write_words
from dragoman.codecs.result_media import TAGGED, is_media_tag, media_placeholder, media_tag, rejoin_media
from dragoman.codecs.search_results import search_text
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.shared_tools import cross_hosted, drawn_image
from dragoman.codecs.wire_values import Wire
from dragoman.errors import DecodeError
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Media,
    Message,
    Metadata,
    Opaque,
    Reasoning,
    Refusal,
    ResultKind,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.messages import Role
from dragoman.ir.notes import MODELLED, WITHIN, Extra, Spelling, inner_extra
from dragoman.ir.traits import BLANK_TEXT, EMPTY_MESSAGE, NAMED_SPEAKER, TraitNotes
from dragoman.ir.values import compact_text, encode_json, note, parse_json
from dragoman.losses import LossLog

FAMILY = "openai"

_NO_PARTS = "~no_parts"
"""Note: the content of a tool message was an empty list."""

DEVELOPER: Extra = {"~role": Raw(b'"developer"')}
ONLY_DEVELOPER = Spelling({FAMILY: DEVELOPER})
TAGGED_MEDIA: Metadata = {FAMILY: {TAGGED: Raw(b"true")}}
OLD_MAXIMUM: Extra = {"~max_tokens": Raw(b"true")}
ONLY_OLD_MAXIMUM = Spelling({FAMILY: OLD_MAXIMUM})
CONTENT_ABSENT: Extra = {"~content": Raw(b'"absent"')}
CONTENT_PARTS: Extra = {"~content": Raw(b'"parts"')}
REFUSAL_KEY = MODELLED + "refusal"
BESIDE = "~beside"
"""Note on a refusal that is a key of its message, whose content is a list of parts."""
NULL = Raw(b"null")
NO_ANNOTATIONS = Raw(b"[]")

_LEGACY = WireReader(Function, "openai-chat", path="$.function_call")

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class MessageDecoder(TraitNotes):
    """Decodes the messages of one request, in order: results take their names from the calls before them.

    Notes the traits of the conversation as it reads. `tagged`: some media came in a separate turn.
    """

    tagged: bool = False
    _unanswered: list[str] | None = None
    """Calls without an id, which results without an id answer in order."""

    def decode(self, wires: list[AnyMessage]) -> tuple[Message, ...]:
        """Decode the messages. The usual ones are read inline, others by their own method.

        (An isinstance that fails on a struct costs seven times what `type(…) is` costs.)
        """
        messages: list[Message] = []
        content: Any
        for index, wire in enumerate(wires):
            kind = type(wire)
            if kind is UserMessage:
                if self._waiting:
                    self.turn("user")
                else:
                    self._previous = "user"
                content = wire.content  # type: ignore[union-attr]
                if type(content) is not str:
                    content = self._decode_parts(content, is_user=True)
                elif not content or content.isspace():
                    self.bits |= BLANK_TEXT
                if wire.name is wire.cache_control is wire.extra is UNSET:  # type: ignore[union-attr]
                    messages.append(Message("user", content))
                else:
                    messages.append(self._decode_noted("user", wire, content, {}))  # type: ignore[arg-type]
            elif kind is SystemMessage:
                messages.append(self._decode_system("system", wire))  # type: ignore[arg-type]
            elif kind is AssistantMessage:
                self.turn("assistant")
                messages.append(self._decode_assistant(wire, index))  # type: ignore[arg-type]
            elif kind is ToolMessage:
                messages.append(self._decode_result(wire))  # type: ignore[arg-type]
            else:
                messages.append(self._decode_rare(wire, index))
        return tuple(rejoin_media(messages, TAGGED_MEDIA) if self.tagged else messages)

    def _decode_system(self, role: Role, wire: SystemMessage) -> Message:
        """Apart from the user's: the interpreter reads members fastest where all objects have one type."""
        if self._waiting or self._previous:
            self.turn(role)
        content: Any = wire.content
        if type(content) is not str:
            content = self._decode_parts(content, is_user=False)
        elif not content or content.isspace():
            self.bits |= BLANK_TEXT
        if wire.name is wire.cache_control is wire.extra is UNSET:
            return Message(role, content)
        return self._decode_noted(role, wire, content, {})

    def _decode_parts(self, wires: list[ContentPart], *, is_user: bool) -> tuple[AnyPart, ...]:
        parts: list[AnyPart] = []
        for wire in wires:
            if type(wire) is TextPart and wire.prompt_cache_breakpoint is wire.cache_control is wire.extra is UNSET:
                text = wire.text
                if not text or text.isspace():
                    self.bits |= BLANK_TEXT
                parts.append(Text(text))
            else:
                part = decode_part(wire)
                self.part(part)
                parts.append(part)
        if not parts:
            self.bits |= EMPTY_MESSAGE
        elif is_user and type(parts[0]) is Text and is_media_tag(parts[0].text):
            self.tagged = True
        return tuple(parts)

    def _decode_noted(
        self, role: Role, wire: UserMessage | SystemMessage | DeveloperMessage, content: Any, spelled: Extra
    ) -> Message:
        """Decode a message that has a name or further keys."""
        extra: Extra = {} if wire.extra is UNSET else dict(wire.extra)
        if wire.cache_control is not UNSET:
            extra[cache_control.KEY] = wire.cache_control
            content = cache_control.mark_message(content, extra, role)
        extra.update(spelled)
        metadata: Metadata | None = {FAMILY: extra} if extra else None
        if metadata is not None:
            self.metadata(metadata)
        if wire.name is UNSET:
            return Message(role, content, None, metadata)
        self.bits |= NAMED_SPEAKER
        return Message(role, content, wire.name, metadata)

    def _decode_assistant(self, wire: AssistantMessage, index: int) -> Message:
        text = wire.content
        if (
            type(text) is str
            and wire.tool_calls is wire.refusal is wire.annotations is wire.name is UNSET
            and _assistant_keys(wire) is None
        ):
            if not text or text.isspace():
                self.bits |= BLANK_TEXT
            return Message("assistant", text)
        try:
            message = decode_assistant(wire, index)
        except DecodeError as error:
            raise error.within(f"$.messages[{index}]") from error
        self._note_assistant(message)
        return message

    def _note_assistant(self, message: Message) -> None:
        if message.name is not None:
            self.bits |= NAMED_SPEAKER
        self.message(message)
        content = message.content_held
        for part in () if type(content) is str else content:  # a text has no parts, only characters
            if type(part) is ToolCall and part.invented_id:
                self._unanswered = self._unanswered or []
                self._unanswered.append(part.id)

    def _decode_result(self, wire: ToolMessage) -> Message:
        call_id, content = wire.tool_call_id, wire.content
        if call_id and wire.name is wire.extra is UNSET and type(content) is str and content[:9] != ERROR_START:
            name = self.call_names.get(call_id, "")
            self.result(call_id, name)
            return Message("tool", (ToolResult(call_id, name, "text", content),))
        return self._decode_odd_result(wire)

    def _decode_odd_result(self, wire: ToolMessage) -> Message:
        call_id, content = wire.tool_call_id, wire.content
        extra: Extra = {}
        if call_id is UNSET or not call_id:
            # Gemini's compatible endpoint answers calls whose id is ""; pairing is by order there.
            extra["~id"] = NULL if call_id is UNSET else Raw(b'""')
            call_id = self._unanswered.pop(0) if self._unanswered else ""
        name = self.call_names.get(call_id, "")
        if wire.name is not UNSET:
            extra[MODELLED + "name"] = Raw(encode_json(wire.name))
            name = name or wire.name
        if wire.extra is not UNSET:
            extra.update(wire.extra)
        if isinstance(content, str):
            error = read_error(content)
            kind: Any = "text" if error is UNSET else "error"
            return self._add_result(call_id, name, kind, content if error is UNSET else error, extra)
        if not content:
            extra[_NO_PARTS] = Raw(b"true")
            return self._add_result(call_id, name, "text", "", extra)
        if not all(type(part) is TextPart for part in content):
            # Some servers take images in tool messages; images that came that way go back that way.
            extra["~inline"] = Raw(b"true")
        return self._add_result(call_id, name, "multimodal", None, extra, content)

    def _add_result(
        self,
        call_id: str,
        name: str,
        kind: ResultKind,
        value: Any,
        extra: Extra,
        content: Sequence[ContentPart] = (),
    ) -> Message:
        cache = cache_control.read_mark(extra)
        metadata: Metadata | None = {FAMILY: extra} if extra else None
        parts: Any = tuple([decode_part(piece) for piece in content])
        self.result(call_id, name)
        if metadata is not None:
            self.metadata(metadata)
        for piece in parts:
            if piece_metadata := getattr(piece, "metadata", None):
                self.metadata(piece_metadata)
        return Message("tool", (ToolResult(call_id, name, kind, value, parts, cache, metadata),))

    def _decode_rare(self, wire: AnyMessage, index: int) -> Message:
        if isinstance(wire, DeveloperMessage):
            self.turn("system")
            content: Any = wire.content
            if isinstance(content, str):
                self.text(content)
            else:
                content = self._decode_parts(content, is_user=False)
            if wire.name is wire.cache_control is wire.extra is UNSET:
                return Message("system", content, None, ONLY_DEVELOPER)
            return self._decode_noted("system", wire, content, DEVELOPER)
        if isinstance(wire, FunctionMessage):
            return self._decode_legacy_result(wire)
        role = parse_json(wire.raw).get("role") if isinstance(wire, UnknownMessage) else None
        raise DecodeError(
            path=f"$.messages[{index}].role",
            expected="system, developer, user, assistant, tool or function",
            got=repr(role),
            source="openai-chat",
        )

    def _decode_legacy_result(self, wire: FunctionMessage) -> Message:
        call_id = next((call_id for call_id in self._unanswered or () if self.call_names[call_id] == wire.name), "")
        if call_id and self._unanswered:
            self._unanswered.remove(call_id)
        extra = {"~role": Raw(b'"function"')} | ({} if wire.extra is UNSET else wire.extra)
        content = wire.content
        if isinstance(content, list):
            return self._add_result(call_id, wire.name, "multimodal", None, extra, content)
        if content is None:
            return self._add_result(call_id, wire.name, "data", None, extra | {"~null": NULL})
        return self._add_result(call_id, wire.name, "text", content, extra)


_assistant_keys = collect_keys(
    AssistantMessage,
    (
        "audio",
        "function_call",
        "images",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "extra_content",
        "prefix",
        "cache_control",
        "provider_metadata",
        "parsed",
    ),
)


def decode_assistant(wire: AssistantMessage, seed: object) -> Message:
    """Decode an assistant message of a history or response; `seed`, its position, makes ids the wire does not give."""
    content, calls = wire.content, wire.tool_calls
    name = None if wire.name is UNSET else wire.name
    keys = _assistant_keys(wire)
    if keys is None and wire.refusal is wire.annotations is UNSET:
        if calls is UNSET and type(content) is str:
            return Message("assistant", content, name)
        if calls and (content is None or type(content) is str):
            texts: list[AnyPart] = [] if content is None else [Text(content)]
            return Message(
                "assistant", tuple(texts + [_decode_call(call, seed, i) for i, call in enumerate(calls)]), name
            )
    extra: Extra = keys or {}
    parts: list[AnyPart] = [] if keys is None else [*foreign_signatures.read_reasoning(extra)]
    if content is not None:
        _decode_content(content, parts, extra)
    if wire.refusal is not UNSET:
        if not wire.refusal:  # empty: Snowflake sends every optional member
            extra[REFUSAL_KEY] = NULL if wire.refusal is None else Raw(b'""')
        else:
            beside = {FAMILY: {BESIDE: Raw(b"true")}} if type(content) is list else None
            parts.append(Refusal(wire.refusal, metadata=beside))
    if calls:
        parts += [_decode_call(call, seed, index) for index, call in enumerate(calls)]
    elif calls is not UNSET:
        extra[MODELLED + "tool_calls"] = NULL if calls is None else Raw(b"[]")
    if wire.annotations is not UNSET:
        foreign_signatures.read_annotations(wire.annotations, parts, extra)
    if keys is not None:
        _decode_legacy_call(seed, parts, extra)
        audio.read_sound(parts, extra)
        images.read_images(parts, extra)
        foreign_signatures.restore_text_signatures(parts, extra)
        parts[:] = cache_control.mark_message(parts, extra, "assistant")
    return Message("assistant", tuple(parts), name, {FAMILY: extra} if extra else None)


def _decode_content(content: str | list[ContentPart] | UnsetType, parts: list[AnyPart], extra: Extra) -> None:
    if content is UNSET:
        extra.update(CONTENT_ABSENT)
    elif isinstance(content, str):
        parts.append(Text(content))
    else:
        extra.update(CONTENT_PARTS)
        parts.extend(decode_part(part) for part in content)


def _is_in_content(part: AnyPart) -> bool:
    """Whether a part is in its message's list of contents, and not a key of the message."""
    return not (audio.is_spoken(part) or images.is_made(part) or _is_beside_content(part))


def _is_beside_content(part: AnyPart) -> bool:
    return type(part) is Refusal and note(part.metadata, FAMILY, BESIDE) is not UNSET


def _decode_legacy_call(seed: object, parts: list[AnyPart], extra: Extra) -> None:
    raw = extra.get("function_call")
    if raw is None or bytes(raw) == b"null":
        return
    legacy = _LEGACY.read(raw)
    name = legacy.name
    if name is UNSET or not name:
        return  # Snowflake sends every optional member, even when empty
    del extra["function_call"]
    notes: Extra = {"~legacy": Raw(b"true")}
    text, arguments = _odd_arguments(legacy, notes)
    if any(type(part) is ToolCall and part.name == name and part.arguments_text == text for part in parts):
        extra[MODELLED + "function_call"] = raw  # one call in both spellings, for old clients: it is to run once
        return
    keys = _function_keys(legacy)
    if keys is not None:
        notes[WITHIN + "function"] = Raw(encode_json(keys))
    parts.append(ToolCall(invent_id(seed, 0), name, arguments, text, invented_id=True, metadata={FAMILY: notes}))


_function_keys = collect_keys(Function, ("parsed_arguments",))
_call_keys = collect_keys(Call, ("index", "cache_control", "extra_content"))


_SIGNED = {MODELLED + foreign_signatures.EXTRA_CONTENT, foreign_signatures.SIGNED_AT}


def _decode_call(call: Call, seed: object, index: int) -> ToolCall:
    call_id, function = call.id, call.function
    if (
        call_id
        and function is not UNSET
        and type(function.arguments) is str
        and function.name is not UNSET
        and call.type == "function"
        and call.index is call.cache_control is call.extra_content is call.custom is UNSET
        and call.extra is function.extra is function.parsed_arguments is UNSET
        and foreign_signatures.SIGNED_ID not in call_id
    ):
        text = function.arguments
        arguments = read_arguments(text)
        return ToolCall(call_id, function.name, arguments, text, invented_id=call_id[:4] == INVENTED_PREFIX)
    return _decode_odd_call(call, seed, index)


def _decode_odd_call(call: Call, seed: object, index: int) -> ToolCall:
    """Decode a call with more or fewer keys than specified, as compatible servers send it."""
    extra: Extra = _call_keys(call) or {}
    function, custom = call.function, call.custom
    call_id, invented = call.id, False
    if call_id is UNSET or not call_id:
        extra["~id"] = NULL if call_id is UNSET else Raw(b'""')
        call_id, invented = invent_id(seed, index), True
    if call.type != "function" and custom is UNSET:
        extra[_TYPE] = Raw(b'"absent"') if call.type is UNSET else Raw(encode_json(call.type))
    signature = foreign_signatures.read_signature(extra, call.id, UNSET if function is UNSET else function.extra)
    cache = cache_control.read_mark(extra)
    # Snowflake sends every optional member, so `type` decides which one counts.
    if custom is not UNSET and (function is UNSET or call.type == "custom"):
        metadata = _merge_extra(extra, keep(FAMILY, UNSET, custom=custom.extra))
        wrapped = Raw(encode_json({"input": custom.input}))
        return ToolCall(
            call_id,
            custom.name,
            wrapped,
            custom.input,
            custom=True,
            invented_id=invented,
            signature=signature,
            cache=cache,
            metadata=metadata,
        )
    if custom is not UNSET:
        extra[MODELLED + "custom"] = restore(custom)
    if function is UNSET:
        function = _flat_function(extra)
        extra["~function"] = Raw(b'"absent"')
    name = function.name
    if name is UNSET:
        name = ""
        extra["~name"] = Raw(b'"absent"')
    text, arguments = _odd_arguments(function, extra)
    keys = _function_keys(function)
    metadata = _merge_extra(extra, keep(FAMILY, UNSET, function=UNSET if keys is None else keys))
    return ToolCall(
        call_id,
        name,
        arguments,
        text,
        invented_id=invented or is_invented(call_id),
        signature=signature,
        cache=cache,
        metadata=metadata,
    )


_TYPE = "~type"
"""Note: the call has another type (Kimi's `builtin_function`), or none ("absent")."""
FLAT = "~flat"
"""Note: name and arguments were in the call itself, without an object around them."""
_flat = msgspec.json.Decoder(Function).decode


def _flat_function(extra: Extra) -> Function:
    """Take name and arguments out of the keys of a call without `function`."""
    members = {key: extra[key] for key in ("name", "arguments") if key in extra}
    try:
        function = _flat(encode_json(members))
    except msgspec.ValidationError:
        function = Function()
    if not function.name:
        return Function("", "")
    for key in members:
        del extra[key]
    extra[FLAT] = Raw(b"true")
    return function


def _odd_arguments(function: Function, extra: Extra) -> tuple[str | None, Raw | UnsetType]:
    given = function.arguments
    if type(given) is str:
        return given, read_arguments(given)
    if isinstance(given, dict):
        extra["~arguments"] = Raw(b'"object"')
        return None, Raw(encode_json(given))
    extra["~arguments"] = Raw(b'"absent"') if given is UNSET else NULL
    return None, Raw(b"{}")


def _merge_extra(extra: Extra, metadata: Metadata | None) -> Metadata | None:
    if metadata is not None:
        extra.update(metadata[FAMILY])
    return {FAMILY: extra} if extra else None


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_ROLE_WIRE: dict[str, Callable[..., Wire]] = {"system": SystemMessage, "user": UserMessage}
_ALWAYS = {"refusal": NULL, "annotations": NO_ANNOTATIONS}
_UNSPEAKABLE = re.compile(r"[^a-zA-Z0-9_-]")
_WORDS = frozenset({Text, SearchResult, Opaque})
"""Parts that are text on this wire."""
_ORDER = {Reasoning: 0, Text: 1, Refusal: 2, Image: 3, ToolCall: 4}
"""In which order the parts of an assistant message are read: any other order is not kept."""


def _is_own(metadata: Metadata | None) -> bool:
    return metadata is not None and FAMILY in metadata


def _plain_assistant(content: tuple[AnyPart, ...], name: str | UnsetType, *, native: bool) -> AssistantMessage | None:
    """Encode the usual agent turn, text then calls and nothing else; return None for any other."""
    text: str | None = None
    calls: list[WireValue] = []
    for part in content:
        kind = type(part)
        if kind is ToolCall:
            call: ToolCall = part  # type: ignore[assignment]
            if call.signature is not None or call.cache is not None or call.custom or _is_own(call.metadata):
                return None
            calls.append(Call(call.id, Function(call.name, arguments_as_text(call, native=native)), "function"))
        elif kind is Text and text is None and not calls:
            only: Text = part  # type: ignore[assignment]
            if only.signature is not None or only.cache is not None or only.citations or _is_own(only.metadata):
                return None
            text = only.text
        else:
            return None
    if calls:
        return AssistantMessage(text, calls, UNSET, name)
    return None if text is None else AssistantMessage(text, UNSET, UNSET, name)


def _is_blank(parts: tuple[AnyPart, ...]) -> bool:
    return not any(type(part) is not Text or part.text.strip() for part in parts)


_MARKED = frozenset({Text, Image, Document, Audio})
_SOUNDS = frozenset({"wav", "mp3"})
_NO_FILES = ("audio/", "video/")


class MessageEncoder:
    """Encodes messages in order; images of results wait until the last result of the turn is written."""

    _log: LossLog
    _profile: ChatProfile
    _model: str
    _native: bool
    _to_client: bool
    _waiting_media: list[WireValue] | None

    # By position: the interpreter makes a dictionary of keywords for every object of a class.
    def __init__(
        self,
        log: LossLog,
        profile: ChatProfile = PROFILE,
        model: str = "",
        native: bool = False,  # noqa: FBT001, FBT002
        to_client: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        self._log = log
        self._profile = profile
        self._model = model
        self._native = native
        self._to_client = to_client
        self._waiting_media = None

    @property
    def _family(self) -> str | None:
        """Return the family whose signatures the provider accepts."""
        return None if self._to_client else self._profile.minted or relayed_family_of(self._model)

    @property
    def _takes_plain_reasoning(self) -> bool:
        return not self._to_client and (self._profile.returns_reasoning or takes_plain_reasoning(self._model))

    def encode(self, messages: Iterable[Message]) -> list[WireValue]:
        wires: list[WireValue] = []
        for message in messages:
            role = message.role
            content: Any = message.content_held
            if role == "tool":
                wires += [self._encode_result(part) for part in content]
                continue
            if self._waiting_media:
                self._flush_media(wires)
            if role == "assistant":
                wires.append(self.encode_assistant(message))
            elif message.metadata is None and message.name is None:
                if type(content) is not str:
                    content = self._encode_content(content, role)
                wires.append(UserMessage(content) if role == "user" else SystemMessage(content))
            else:
                wires.append(self._encode_noted(message))
        if self._waiting_media:
            self._flush_media(wires)
        return wires

    def _flush_media(self, wires: list[WireValue]) -> None:
        # Results must be contiguous, and this API takes images only from users.
        wires.append(UserMessage(self._waiting_media or []))
        self._waiting_media = None

    def _encode_content(self, parts: tuple[AnyPart, ...], role: str) -> WireValue:
        wires: list[WireValue] = []
        for part in parts:
            if (
                type(part) is Text
                and part.metadata is None
                and part.cache is None
                and part.signature is None
                and not part.citations
            ):
                wires.append(TextPart(part.text))
            elif self._native or self._fits(part, role):
                wire = self._encode_part(part)
                if wire is not None:
                    wires.append(wire)
        # Parts without an equivalent are logged, and the API refuses an empty list.
        return wires if wires or self._native else "" if _is_blank(parts) else NOT_SENT

    def _encode_noted(self, message: Message) -> WireValue:
        """Encode a message that has a name or further keys."""
        role, content = message.role, message.content_held
        extra = (message.metadata or {}).get(FAMILY)
        wires: Any = content
        if type(content) is not str:
            is_text = extra is not None and cache_control.is_text(content, extra)  # type: ignore[arg-type]
            wires = message.text if is_text else self._encode_content(content, role)  # type: ignore[arg-type]
        name = UNSET if message.name is None else self._speaker(message, message.name)
        if extra is None:
            return _ROLE_WIRE[role](wires, name)
        kind = DeveloperMessage if "~role" in extra else _ROLE_WIRE[role]
        return spliced(kind(wires, name), extra)

    def _speaker(self, message: Message, name: str) -> str:
        """Return a name this API accepts: others fail with «string does not match pattern» or «maximum length 64»."""
        if self._native or SPEAKER.fullmatch(name) is not None:
            return name
        sent = _UNSPEAKABLE.sub("_", name)[:64] or "_"
        self._log.degrade(message, "name", f"name {name!r} of the speaker", f"sent as {sent!r}: this API refuses it")
        return sent

    def encode_assistant(self, message: Message) -> WireValue:
        content = message.content_held
        name = UNSET if message.name is None else self._speaker(message, message.name)
        metadata = message.metadata
        if metadata is None or FAMILY not in metadata:
            if type(content) is str:
                return AssistantMessage(content, UNSET, UNSET, name)
            plain = _plain_assistant(content, name, native=self._native)  # type: ignore[arg-type]
            if plain is not None:
                return plain
        extra = (metadata or {}).get(FAMILY, {})
        parts = tuple(self._sayable(part) for part in message.parts)
        in_parts = note(metadata, FAMILY, "~content") == "parts"
        texts: list[Text] = []
        calls: list[WireValue] = []
        refusals: list[str] = []
        others: list[AnyPart] = []
        for part in parts:
            kind = type(part)
            if kind is Text:
                texts.append(part)  # type: ignore[arg-type]
            elif kind is ToolCall:
                calls.append(self._encode_call(part))  # type: ignore[arg-type]
            elif kind is Refusal and not (in_parts and _is_in_content(part)):
                refusals.append(part.text)  # type: ignore[union-attr, arg-type]
            elif kind is not Reasoning or "~thinking" in (part.metadata or {}).get(FAMILY, {}):  # type: ignore[union-attr]
                others.append(part)
        self._report_order(parts, others, in_parts=in_parts)
        body = AssistantMessage(
            self._assistant_content(parts, texts, others, extra),
            calls or UNSET,
            "".join(refusals) if refusals else UNSET,
            name,
        )
        further = self._further_fields(parts, extra)
        legacy = _legacy_call(parts)
        if legacy is not None:
            made = [part for part in parts if type(part) is ToolCall]
            kept = [call for part, call in zip(made, calls, strict=True) if not _is_legacy(part)]
            body = AssistantMessage(body.content, kept or UNSET, body.refusal, name)
            further = {**further, "function_call": legacy}
        return spliced(body, further) if further else body

    def _report_order(self, parts: tuple[AnyPart, ...], others: list[AnyPart], *, in_parts: bool) -> None:
        """Report parts whose place is not kept: text, images and calls are separate fields of a message."""
        apart = {id(part) for part in others}
        rank = 0
        for part in parts:
            kind: type[AnyPart] = type(part)
            if id(part) in apart:
                if in_parts and not images.is_made(part):
                    kind = Text  # in the list of contents, at its place
                elif not (self._speaks(part) or self._shows(part)):
                    continue  # it is dropped, and that is reported
            order = _ORDER.get(kind, 1)
            if order < rank:
                self._log.degrade(part, "", "place among the other parts", "a chat message keeps text and calls apart")
            rank = max(rank, order)

    def encode_answer(self, message: Message) -> WireValue:
        """Encode an answer for strict clients, which expect `refusal` and `annotations` on every message."""
        content = message.content_held
        if isinstance(content, str):
            return AssistantMessage(content, UNSET, None, UNSET, NO_ANNOTATIONS)
        body = self.encode_assistant(message)
        if isinstance(body, Raw):
            absent = {key: value for key, value in _ALWAYS.items() if f'"{key}":'.encode() not in bytes(body)}
            return spliced(body, absent) if absent else body
        refusal = None if body.refusal is UNSET else body.refusal
        return AssistantMessage(body.content, body.tool_calls, refusal, body.name, NO_ANNOTATIONS)

    def _fits(self, part: AnyPart, role: str) -> bool:
        """Whether the role may send the part: users send any media; a system message is text."""
        if type(part) in _WORDS or (type(part) is Document and part.text is not None):
            return True
        if role == "user" and isinstance(part, Media):
            return True
        self._log.drop(part, "", type(part).__name__.lower(), f"a {role} message of this API cannot hold it")
        return False

    def _encode_part(self, part: AnyPart) -> WireValue:
        if type(part) is Text and part.citations:
            self._log.drop(part, "citations", "citations", "only the assistant's messages have annotations in this API")
        if type(part) is Audio and not self._native and AUDIO_MODELS.search(self._model) is None:
            self._log.drop(part, "", "audio", "this model does not take audio")
            return None
        if self._profile is PROFILE and not self._native and not self._is_taken(part):
            return None
        if type(part) in _MARKED and part.cache is not None:  # type: ignore[union-attr]
            if self._takes_marks:
                part = with_breakpoint(part, FAMILY, self._log)  # type: ignore[type-var]
            elif self._profile.cache_control:
                part = cache_control.with_mark(part, self._log)  # type: ignore[type-var]
        return encode_part(part, self._log)

    def _is_taken(self, part: AnyPart) -> bool:
        """Whether this API reads media of this type; refused ones are reported."""
        why = ""
        if type(part) is Image and is_refused_image(part.media_type, part.url):
            why = "this API takes PNG, JPEG, GIF and WebP"
        elif type(part) is Audio and part.data is not None and audio_format(part.media_type or "") not in _SOUNDS:
            why = "this API takes wav and mp3"
        elif type(part) is Document and (part.media_type or "").startswith(_NO_FILES):
            why = f"this API takes no {part.media_type} files"
        elif type(part) is Document and part.file_id is not None and not part.file_id.startswith("file-"):
            why = "its file id belongs to another provider"
        if why:
            self._log.drop(part, "", type(part).__name__.lower(), why)
        return not why

    @property
    def _takes_marks(self) -> bool:
        return not self._native and self._profile is PROFILE and takes_breakpoints(self._model)

    def _assistant_content(
        self, parts: tuple[AnyPart, ...], texts: list[Text], others: list[AnyPart], extra: Extra
    ) -> WireValue:
        spelled = note({FAMILY: extra}, FAMILY, "~content")
        if spelled == "parts":
            listed = [part for part in parts if type(part) is not ToolCall and _is_in_content(part)]
            return [wire for part in listed if (wire := encode_part(part, self._log)) is not None]
        for part in others:
            if not (self._speaks(part) or self._shows(part)):
                self._refuse_in_assistant(part)
        if texts:
            for part in texts:
                self._report_text(part)
            return texts[0].text if len(texts) == 1 else "".join(part.text for part in texts)
        if spelled == "absent":
            return UNSET
        # null is for messages with calls or a refusal; without them the API requires a string.
        says_more = self._native or any(isinstance(part, ToolCall | Refusal) for part in parts)
        return None if says_more or self._to_client else ""

    def _report_text(self, part: Text) -> None:
        for citation in part.citations:
            if FAMILY in (citation.metadata or {}):
                continue
            if citation.url is None:
                self._log.drop(part, "citations", "citation of a document", "chat annotations cite web pages only")
            elif citation.cited_text is not None:
                self._log.degrade(part, "citations", "text of a citation", "chat annotations name the page only")
        if not self._profile.cache_control:
            self._mark(part, "an assistant message takes no cache breakpoint")

    def _refuse_in_assistant(self, part: AnyPart) -> None:
        if isinstance(part, ServerToolCall | ServerToolResult):
            if self._to_client:
                cross_hosted(part, self._log, HOSTED)
        elif isinstance(part, Opaque):
            self._log.drop(part, "", name_of_part(part), "it belongs to the provider that made it")
        else:
            self._log.drop(part, "", name_of_part(part), "an assistant message holds text and calls only")

    def _further_fields(self, parts: tuple[AnyPart, ...], extra: Extra) -> Extra:
        fields = dict(extra)
        plain = self._takes_plain_reasoning and any(type(part) is ToolCall for part in parts)
        written = foreign_signatures.write_reasoning(
            parts,
            to_client=self._to_client,
            family=self._family,
            plain=plain,
            key=self._profile.reasoning_key,
        )
        for key, value in written.items():
            if MODELLED + key not in fields:
                fields[key] = value
        speech = [part for part in parts if self._speaks(part)]
        if speech:
            fields[audio.KEY] = self._encode_sound(*speech)
        in_parts = note({FAMILY: extra}, FAMILY, "~content") == "parts"
        shown: list[Any] = [part for part in parts if self._shows(part, in_parts=in_parts)]
        if shown and (written_images := images.write_images(shown, self._log)):
            fields[images.KEY] = Raw(encode_json(written_images))
        if self._profile.cache_control and not in_parts:
            for part in parts:
                if type(part) is Text:
                    fields.update(self._mark(part, ""))
        annotations = foreign_signatures.write_annotations(parts, extra=extra)
        if annotations:
            fields["annotations"] = Raw(encode_json(annotations))
        if self._to_client:
            details = foreign_signatures.text_signature_details(parts)
            if details and MODELLED + "reasoning_details" not in fields and MODELLED + "extra_content" not in fields:
                before = msgspec.json.decode(fields.get("reasoning_details", b"[]"), type=list[Raw])
                fields["reasoning_details"] = Raw(encode_json([*before, *details]))
        else:
            self._report_withheld(parts, extra, plain=plain)
        return fields

    def _speaks(self, part: AnyPart) -> bool:
        """Whether to write this part as `audio`: clients get any audio, the API only its own, by id."""
        return audio.is_spoken(part) or (self._to_client and type(part) is Audio and part.data is not None)

    def _shows(self, part: AnyPart, *, in_parts: bool = False) -> bool:
        """Whether to write this part under `images`: clients get any not among the content, a server only its own."""
        if images.is_made(part):
            return self._to_client or self._native
        return self._to_client and type(part) is Image and not in_parts

    def _sayable(self, part: AnyPart) -> AnyPart:
        """For a provider, replace foreign audio by its transcript, and server tools that others ran by text."""
        if type(part) is ServerToolCall or type(part) is ServerToolResult:
            if self._to_client:
                return drawn_image(part, self._log) or part
            shown = cross_hosted(part, self._log, None)
            if type(shown) is not Text:
                return part
            text = Text(f"\n{shown.text}\n")
            self._log.replaced(text, part)
            return text
        if type(part) is SearchResult:
            text = Text(f"\n{search_text(part, self._log)}\n", cache=part.cache)
            self._log.replaced(text, part)
            return text
        if type(part) is not Audio or not part.transcript or self._speaks(part):
            return part
        text = Text(transcript(part, self._log, "an assistant message holds text and calls only"))
        self._log.replaced(text, part)
        return text

    def _encode_sound(self, first: Any, *others: AnyPart) -> Raw:
        for other in others:
            self._log.drop(other, "", "further audio", "a message of this API holds one")
        return audio.write_sound(first, self._log) if self._to_client or self._native else audio.handle_of(first)

    def _report_withheld(self, parts: tuple[AnyPart, ...], extra: Extra, *, plain: bool) -> None:
        """Report what a provider does not get: reasoning and signatures that did not come in this format (law 6)."""
        for part in parts:
            if type(part) is Reasoning and foreign_signatures.goes_back(part, self._family, plain=plain):
                continue
            if type(part) is Reasoning and FAMILY not in (part.metadata or {}):
                self._log.drop(part, "", "reasoning", "this API has no field for reasoning of another provider")
            elif type(part) is Text and part.signature is not None:
                drop_signature(part, part.signature, self._log)
            elif type(part) is Reasoning and part.signature is not None:
                is_opaque = foreign_signatures.goes_back(part, foreign_signatures.COPILOT, plain=False)
                if is_opaque and MODELLED + foreign_signatures.OPAQUE not in extra:
                    drop_signature(part, part.signature, self._log)

    def _encode_call(self, call: ToolCall) -> WireValue:
        metadata = call.metadata
        if call.signature is None and call.cache is None and not call.custom and not _is_own(metadata):
            return Call(call.id, Function(call.name, arguments_as_text(call, native=self._native)), "function")
        extra = dict((metadata or {}).get(FAMILY, {}))
        extra.update(self._mark(call, "a tool call takes no cache breakpoint"))
        if call.signature is not None and extra.keys().isdisjoint(_SIGNED):
            if self._to_client or foreign_signatures.goes_back(call, self._family, plain=False):
                extra.update(foreign_signatures.write_signature(call))
            else:
                drop_signature(call, call.signature, self._log)
        spelled_id = note(metadata, FAMILY, "~id")
        call_id: Any = call.id if spelled_id is UNSET else UNSET if spelled_id is None else spelled_id
        if call.custom:
            body = Call(call_id, type="custom", custom=self._custom(call, extra))
        else:
            kind = note(metadata, FAMILY, _TYPE)
            spelled: Any = UNSET if kind == "absent" else "function" if kind is UNSET else kind
            body = Call(call_id, _function(call, extra), spelled)
        return spliced(body, extra)

    def _mark(self, node: Text | ToolCall | ToolResult, why: str) -> Extra:
        """Return the key of a cache mark for a relay that takes it; elsewhere the mark is reported as lost."""
        if node.cache is None or cache_control.is_written(node):
            return {}
        if self._profile.cache_control:
            return cache_control.mark_for_relay(node, node.cache, self._log)
        self._log.drop(node, "cache", "cache mark", why)
        return {}

    def _custom(self, call: ToolCall, extra: Extra) -> WireValue:
        custom = Custom(call.name, call.arguments_text or "")
        inner = inner_extra(extra, "custom")
        return custom if inner is None else spliced(custom, inner)

    def _encode_result(self, result: ToolResult) -> WireValue:
        metadata = result.metadata
        if result.kind == "text" and result.cache is None and not result.parts and not _is_own(metadata):
            value = result.value_held
            return ToolMessage(value if type(value) is str else result.value, result.tool_call_id)
        mark = self._mark(result, "a tool message takes no cache breakpoint")
        content = self._result_content(result)
        if metadata is None or FAMILY not in metadata:
            message = ToolMessage(content, result.tool_call_id)
            return spliced(message, mark) if mark else message
        extra = {**metadata[FAMILY], **mark}
        if "~role" in extra:
            return spliced(FunctionMessage(result.name, None if "~null" in extra else content), extra)
        spelled_id = note(metadata, FAMILY, "~id")
        call_id: Any = result.tool_call_id if spelled_id is UNSET else UNSET if spelled_id is None else spelled_id
        return spliced(ToolMessage([] if _NO_PARTS in extra and content == "" else content, call_id), extra)

    def _result_content(self, result: ToolResult) -> WireValue:
        kind = result.kind
        if result.parts or kind == "multimodal":
            return self._content_with_media(result) if result.parts else ""
        if kind == "text":
            return result.value_held if type(result.value_held) is str else result.value
        return write_error(result.value) if kind == "error" else compact_text(result.value_held)

    def _content_with_media(self, result: ToolResult) -> WireValue:
        """Encode text in the tool message; images and files follow in a tagged user turn."""
        texts: list[WireValue] = []
        media: list[WireValue] = []
        notes = (result.metadata or {}).get(FAMILY, {})
        inline = "~inline" in notes
        words: list[str] = []
        for part in result.parts:
            wire = self._encode_part(part)
            if wire is not None:
                is_text = type(part) in _WORDS or type(wire) is TextPart
                (texts if inline or is_text else media).append(wire)
            if isinstance(part, Text):
                words.append(part.text)
            elif type(wire) is TextPart:
                words.append(wire.text)
        if media:
            self._waiting_media = self._waiting_media or []
            self._waiting_media += [TextPart(media_tag(result.tool_call_id)), *media]
            if TAGGED not in notes:
                self._log.degrade(
                    result, "", "media in a tool result", "it follows in a user message, tagged with its call"
                )
            texts.append(TextPart(media_placeholder(len(media))))
        if result.kind == "error":
            return write_words(words, result, self._log)
        return texts or ""


def _function(call: ToolCall, extra: Extra) -> WireValue:
    spelled = note({FAMILY: extra}, FAMILY, "~arguments")
    arguments: Any = arguments_as_text(call, native=_is_own(call.metadata))
    if spelled == "object":
        arguments = call.arguments
    elif spelled is not UNSET:
        arguments = UNSET if spelled == "absent" else None
    function: Any = Function(UNSET if "~name" in extra else call.name, arguments)
    inner = inner_extra(extra, "function")
    if FLAT in extra:
        extra |= _members(encode_json(function))
    if "~function" in extra:
        return UNSET
    return function if inner is None else spliced(function, inner)


_members = msgspec.json.Decoder(dict[str, Raw]).decode


def _is_legacy(call: ToolCall) -> bool:
    return "~legacy" in (call.metadata or {}).get(FAMILY, {})


def _legacy_call(parts: tuple[AnyPart, ...]) -> WireValue:
    for part in parts:
        if type(part) is ToolCall and _is_legacy(part):
            function = _function(part, (part.metadata or {})[FAMILY])
            return function if type(function) is Raw else Raw(encode_json(function))
    return None
