"""functionResponse and results, both ways.

`response` is always an object. {"output": …} and {"error": …}, each as the only key, wrap values that were not
objects; any other object is the result itself. Since Gemini 3, media are beside the response; before, they follow in
a user turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.arguments import EMPTY_OBJECT
from dragoman.codecs.common_losses import drop_cache_mark
from dragoman.codecs.gemini.parts import ABSENT, NULL, TRUE, PartEncoder, decode_media, is_only_call, part_notes
from dragoman.codecs.gemini.profile import FAMILY
from dragoman.codecs.gemini.wire import (
    FunctionResponse,
    Output,
    Part,
    ResponsePart,
    ResultOut,
    TextOut,
    TextWrapper,
    Wrapper,
    answer_keys,
)
from dragoman.codecs.reading import WireValue, spliced
from dragoman.codecs.result_media import media_placeholder, media_tag
from dragoman.codecs.search_results import search_words
from dragoman.ir import AnyPart, Audio, Document, Image, Opaque, Refusal, ResultKind, SearchResult, Text, ToolResult
from dragoman.ir.notes import DATA_TEXT, Extra, inner_extra, is_data_text
from dragoman.ir.values import compact_text, encode_json, exact_json, note, parse_json, to_raw
from dragoman.losses import LossLog

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def is_plain_result(wire: Part, answer: FunctionResponse) -> bool:
    """Whether the part holds only a response."""
    return (
        answer.response is not UNSET
        and answer.parts is wire.thought_signature is UNSET
        and is_only_call(wire)
        and (type(answer) is FunctionResponse or answer_keys(answer) is None)
    )


def result_notes(wire: Part, answer: FunctionResponse) -> Extra:
    """Return the keys of the part and its functionResponse that a result has no field for."""
    notes = part_notes(wire, functionResponse=answer_keys(answer))
    if wire.thought_signature is not UNSET:
        notes["thoughtSignature"] = Raw(encode_json(wire.thought_signature))
    return notes


def decode_result(answer: FunctionResponse, call_id: str, name: str, notes: Extra) -> ToolResult:
    response = answer.response
    if response is UNSET or bytes(response) == b"null":
        notes["~response"] = ABSENT if response is UNSET else NULL
        response = EMPTY_OBJECT
    kind, value = read_response(response, bytes(response))
    if answer.parts is not UNSET:
        parts = _decode_parts(answer.parts, response, kind, value, notes)
        kind = "error" if kind == "error" else "multimodal"
        return ToolResult(call_id, name, kind, None, parts, None, {FAMILY: notes} if notes else None)
    if kind == "data" and has_reference(bytes(response)):
        notes["~ref"] = TRUE
    return ToolResult(call_id, name, kind, value, (), None, {FAMILY: notes} if notes else None)


def _decode_parts(
    wires: Sequence[ResponsePart], response: Raw, kind: ResultKind, value: Any, notes: Extra
) -> tuple[Any, ...]:
    """Decode a result with media: first the text of the response, then the media."""
    media = [decode_media(wire) for wire in wires]
    if not wires:
        notes["~media"] = Raw(b"[]")
    if kind in {"text", "error"} and isinstance(value, str):
        return (Text(value), *media)
    if bytes(response) == b"{}":
        return tuple(media)
    notes["~response"] = response
    return (Text(compact_text(response), metadata={FAMILY: {DATA_TEXT: TRUE}}), *media)


decode_text_wrapper = msgspec.json.Decoder(TextWrapper).decode
_decode_wrapped = msgspec.json.Decoder(Wrapper).decode
_WRAPPER = re.compile(rb'\{\s*"(?:output|error)"\s*:')
_TEXT_WRAPPER = re.compile(rb'\{\s*"output"\s*:\s*"')
_FIRST_LETTERS = (b"o", b"e")
_REFERENCE = b'"$ref"'
_DOLLAR = ord("$")  # searching for a single byte is much faster


def read_response(response: Raw, data: bytes) -> tuple[ResultKind, Any]:
    """Return kind and value of a response object (`data`: its bytes). Only what we would have wrapped is unwrapped."""
    if (data[:2] == b'{"' and data[2:3] not in _FIRST_LETTERS) or _WRAPPER.match(data) is None:
        return "data", response
    try:
        if _TEXT_WRAPPER.match(data) is not None:
            return "text", decode_text_wrapper(data).output
        return _unwrap(_decode_wrapped(response), response)
    except msgspec.DecodeError:
        return "data", response


def _unwrap(wrapped: Wrapper, response: Raw) -> tuple[ResultKind, Any]:
    output, error = wrapped.output, wrapped.error
    if error is UNSET and isinstance(output, Raw):
        first = bytes(output)[:1]
        if first == b'"':
            return "text", parse_json(output)
        return "data", response if first == b"{" else output
    if output is UNSET and isinstance(error, Raw) and bytes(error) != b"null":
        return "error", parse_json(error) if bytes(error)[:1] == b'"' else error
    return "data", response


def has_reference(data: bytes) -> bool:
    """Whether an object inside the value has a key "$ref"; a string that contains it is a harmless false positive."""
    return _DOLLAR in data and _REFERENCE in data


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def write_response(result: ToolResult, log: LossLog, *, as_given: bool) -> WireValue:
    """Encode the response object of a result without media. `as_given`: this family wrote it, including references."""
    value = result.value_held
    if result.kind == "text" and type(value) is str:
        return Output(value)
    raw = to_raw(value)
    if not as_given and has_reference(bytes(raw)):
        # Gemini 3 reads {"$ref": …} as the name of a part of the response: 400 "does not match to a display_name".
        log.degrade(result, "value", "JSON result with references", "sent as JSON text: this API would follow them")
        raw = to_raw(compact_text(raw))
    if result.kind == "error":
        return {"error": raw}
    return raw if result.kind == "data" and bytes(raw)[:1] == b"{" else Output(raw)


class ResultEncoder:
    """Encodes a result. For older models, `media` must follow in a separate user content."""

    def __init__(self, log: LossLog, parts: PartEncoder, *, takes_media: bool) -> None:
        self._log = log
        self._parts = parts
        self._takes_media = takes_media
        self.media: list[WireValue] = []

    def encode(self, result: ToolResult, name: str, call_id: str | UnsetType) -> WireValue:
        if result.cache is not None:
            drop_cache_mark(result, self._log)
        notes: Extra = (result.metadata or {}).get(FAMILY, {})
        given_id = note(result.metadata, FAMILY, "~id")
        if given_id is not UNSET:
            call_id = UNSET if given_id is None else given_id
        spelled = note(result.metadata, FAMILY, "~name")
        given_name: Any = name if spelled is UNSET else UNSET if spelled is None else spelled
        media: Any = UNSET
        if result.parts or "~media" in notes:
            response, media = self._encode_media(result, notes)
        elif "~response" in notes and result.kind == "data" and result.value == {}:
            response = UNSET if notes["~response"] == ABSENT else NULL
        else:
            response = write_response(result, self._log, as_given="~ref" in notes)
        body: Any = FunctionResponse(given_name, response, call_id, media)
        inner = inner_extra(notes, "functionResponse")
        return spliced(ResultOut(spliced(body, inner) if inner else body), notes)

    def _encode_media(self, result: ToolResult, notes: Extra) -> tuple[WireValue, WireValue]:
        """Encode the response and the parts beside it."""
        texts = self._texts(result)
        tagged = "~tagged" in notes or not (self._takes_media or notes)
        wires: list[WireValue] = []
        for part in result.parts:
            if _text_of(part) is not None:
                continue
            wire: WireValue = None
            if isinstance(part, Opaque):
                wire = self._parts.encode(part)
            elif isinstance(part, Image | Document | Audio):
                wire = self._parts.media(part, Part if tagged else ResponsePart)
            else:
                self._log.drop(part, "", type(part).__name__.lower(), "a tool message of this API cannot hold it")
            if wire is not None:
                wires.append(wire)
        if tagged and wires:
            if "~tagged" not in notes:
                why = "it follows in a user turn, tagged with its call"
                self._log.degrade(result, "", "media in a tool result", why)
            self.media += [TextOut(media_tag(result.tool_call_id)), *wires]
            texts = media_placeholder(len(wires)) if texts is None else texts
        beside: Any = UNSET if tagged or not (wires or "~media" in notes) else wires
        value = exact_json(texts) if texts is not None and "~response" not in notes and _is_data(result) else None
        if value is not None:
            return self._data_beside_media(result, value), beside
        return _response_beside_media(result, texts, notes.get("~response")), beside

    def _data_beside_media(self, result: ToolResult, value: Raw) -> WireValue:
        """Encode the response for a JSON value, by the rules for results without media."""
        kind: ResultKind = "error" if result.kind == "error" else "data"
        alone = ToolResult(result.tool_call_id, result.name, kind, value)
        self._log.replaced(alone, result)
        return write_response(alone, self._log, as_given=False)

    def _texts(self, result: ToolResult) -> str | None:
        texts: list[str] = []
        for part in result.parts:
            if (text := _text_of(part)) is not None:
                self._parts.encode(part)  # only to report its losses
                texts.append(text)
        if len(texts) > 1:
            self._log.degrade(result, "parts", f"{len(texts)} texts", "joined by line breaks: a response holds one")
        return "\n".join(texts) if texts else None


def _is_data(result: ToolResult) -> bool:
    """Whether the only text beside the media is a JSON value."""
    texts = [part for part in result.parts if _text_of(part) is not None]
    return len(texts) == 1 and isinstance(texts[0], Text) and is_data_text(texts[0].metadata)


def _text_of(part: AnyPart) -> str | None:
    if isinstance(part, SearchResult):
        return search_words(part)
    return part.text if isinstance(part, Text | Document | Refusal) else None


def _response_beside_media(result: ToolResult, texts: str | None, given: Raw | None) -> WireValue:
    """Return the original response if it still has the same content, else a new one."""
    if given is not None and bytes(given)[:1] == b"{" and compact_text(given) == texts:
        return given
    if result.kind == "error":
        return {"error": texts or ""}
    if texts is not None:
        return Output(texts)
    return UNSET if given == ABSENT else NULL if given == NULL else EMPTY_OBJECT
