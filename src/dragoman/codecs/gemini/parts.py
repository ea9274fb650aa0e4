"""Parts, both ways. A signature belongs to exactly the part it came on, whatever the part holds, even empty text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.arguments import EMPTY_OBJECT, UNPARSED_KEY, arguments_as_object, read_object, report_unparsed
from dragoman.codecs.base64_alphabets import read_base64, write_base64
from dragoman.codecs.common_losses import degrade_refusal, drop_cache_mark, drop_signature
from dragoman.codecs.gemini import foreign_signatures
from dragoman.codecs.gemini.foreign_signatures import HIDDEN, Bundle
from dragoman.codecs.gemini.hosted_tools import HOSTED
from dragoman.codecs.gemini.profile import FAMILY, GeminiProfile
from dragoman.codecs.gemini.wire import (
    Blob,
    CallOut,
    FileData,
    FunctionCall,
    FunctionCallOut,
    FunctionResponse,
    Part,
    ResponsePart,
    TextOut,
    blob_keys,
    call_keys,
    file_keys,
    part_keys,
    response_part_keys,
    snake_case,
)
from dragoman.codecs.google_media import fit_medium
from dragoman.codecs.google_services import is_any_unknown
from dragoman.codecs.google_signatures import NATIVE_THOUGHT, is_dummy, is_native_thought
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.media import document_text, type_of_address
from dragoman.codecs.part_handlers import PartHandlers
from dragoman.codecs.reading import WireValue, restore, spliced
from dragoman.codecs.search_results import search_text
from dragoman.codecs.shared_tools import cross_hosted, drawn_image, goes_back
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Metadata,
    Opaque,
    Reasoning,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.ir.notes import (
    CODE_LANGUAGE,
    MODELLED,
    NAMED,
    WITHIN,
    Extra,
    Spelling,
    family_notes,
    has_note,
    inner_extra,
)
from dragoman.ir.values import encode_json, note, parse_json
from dragoman.losses import LossLog

NULL = Raw(b"null")
TRUE = Raw(b"true")
ABSENT = Raw(b'"absent"')

NO_THOUGHT: Metadata = Spelling({FAMILY: {MODELLED + "thought": Raw(b"false")}})
"""On a text that was explicitly marked as not a thought, as some clients do."""
GIVEN_ID: Metadata = {FAMILY: {"~id": TRUE}}
"""On a call of an answer: Google issued its id, so the id may be sent back to Google."""

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────

_SERVER_CALLS = ("executableCode", "toolCall")
_SERVER_RESULTS = ("codeExecutionResult", "toolResponse")
_SERVER_MEMBERS = {
    spelling: name for name in (*_SERVER_CALLS, *_SERVER_RESULTS) for spelling in (name, snake_case(name))
}


_OBJECT = re.compile(rb'\{(?!"' + UNPARSED_KEY.encode() + rb")")


def _seed_text(seed: str | int) -> str:
    return f"$.contents[{seed}]" if type(seed) is int else seed  # type: ignore[return-value]


def _invent_call_id(seed: str | int, index: int) -> str:
    return _invent_call_id_at(seed, index) if type(seed) is int else invent_id(seed, index)


@lru_cache(maxsize=512)  # every request sends the history again
def _invent_call_id_at(place: int, index: int) -> str:
    return invent_id(_seed_text(place), index)


class PartDecoder:
    """Decodes the parts of one content, in order.

    `seed` identifies the content, for ids that the wire does not give; a number is the index of a content in a
    request. `marks_ids`: the content is an answer, whose ids Google issued.
    """

    _seed: str | int
    _path: str | None
    marks_ids: bool
    makes_calls: bool
    parts: list[AnyPart]
    _calls: int = 0
    _server_calls: int = 0
    _reasoning_end: int = 0
    """The parts before this index were put in order by an earlier bundle, so that each text moves at most once."""
    _overtaken_end: int = 0
    _seen: int = 0
    _unserved: dict[tuple[str, str], deque[int]]
    """Indices of the calls among the first `_seen` parts that no server response has answered."""

    def __init__(
        self, seed: str | int, path: str | None = None, *, marks_ids: bool = False, makes_calls: bool = True
    ) -> None:
        self._seed = seed
        self._path = path
        self.marks_ids = marks_ids
        self.makes_calls = makes_calls
        self.parts = []
        self._unserved = {}

    def decode(self, wires: Sequence[Part]) -> list[AnyPart]:
        """Decode the parts. The usual text and the usual call are read inline; `add` reads all others."""
        parts, makes_calls = self.parts, self.makes_calls
        for wire in wires:
            if is_plain_text(wire):
                parts.append(Text(wire.text) if wire.thought is UNSET else Text(wire.text, metadata=NO_THOUGHT))  # type: ignore[arg-type]
            elif wire.function_call is UNSET or not makes_calls or not self._add_call(wire, wire.function_call):
                self.add(wire)
        return parts

    def _add_call(self, wire: Part, call: FunctionCall) -> bool:
        """Add the call if it has only the usual fields, and return whether it did."""
        arguments, name, call_id, spelled = call.args, call.name, call.id, wire.thought_signature
        if (
            arguments is UNSET
            or name is UNSET
            or not is_only_call(wire)
            or call_keys(call) is not None
            or _OBJECT.match(arguments) is None
        ):
            return False
        signature = None
        if spelled is not UNSET:
            if is_dummy(spelled) or foreign_signatures.is_tagged(spelled):
                return False
            signature = Signature(FAMILY, spelled)
        metadata, invented = None, False
        if call_id is UNSET:
            call_id, invented = _invent_call_id(self._seed, self._calls), True
        elif not call_id or is_invented(call_id):
            return False
        elif self.marks_ids:
            metadata = GIVEN_ID
        self._calls += 1
        self.parts.append(ToolCall(call_id, name, arguments, None, False, invented, False, signature, None, metadata))  # noqa: FBT003
        return True

    @property
    def seed(self) -> str:
        return _seed_text(self._seed)

    def add(self, wire: Part) -> None:
        signature = wire.thought_signature
        if signature is not UNSET and foreign_signatures.is_tagged(signature):
            bundle = foreign_signatures.unpack(signature)
            if bundle is not None:
                self._add_carried(wire, signature, bundle)
                return
        self.parts.append(self._decode(wire))

    def _add_carried(self, wire: Part, spelling: str, bundle: Bundle) -> None:
        """Add a part whose signature carries reasoning of another family, which we packed for the client to echo."""
        own = self._decode(structs.replace(wire, thought_signature=UNSET))
        if bundle.last:
            if bundle.reasoning:
                self.parts.append(own)
                self.parts.extend(foreign_signatures.unshow(self.parts, bundle.reasoning, self._reasoning_end))
            if bundle.overtaken:
                foreign_signatures.put_back(self.parts, bundle.overtaken, self._overtaken_end)
                self._overtaken_end = len(self.parts)
            self._reasoning_end = len(self.parts)
            return
        self._put_reasoning(bundle)
        if bundle.hollow and type(own) is Text and not own.text:
            return
        if isinstance(own, Opaque):
            self.parts.append(structs.replace(own, signature=bundle.signature))
            return
        metadata = own.metadata
        if foreign_signatures.pack(bundle) != spelling:
            notes = {**(metadata or {}).get(FAMILY, {}), "~carried": Raw(encode_json(spelling))}
            metadata = {**(metadata or {}), FAMILY: notes}
        self.parts.append(structs.replace(own, signature=bundle.signature, metadata=metadata))

    def _put_reasoning(self, bundle: Bundle) -> None:
        """Insert a bundle's reasoning before the texts it precedes, but never before another bundle's reasoning."""
        start = len(self.parts)
        lowest = max(self._reasoning_end, start - bundle.early)
        while start > lowest and type(self.parts[start - 1]) is Text:
            start -= 1
        texts = self.parts[start:]
        del self.parts[start:]
        self.parts.extend(foreign_signatures.unshow(self.parts, bundle.reasoning, self._reasoning_end))
        if bundle.reasoning:
            self._reasoning_end = len(self.parts)
        self.parts.extend(texts)

    def _decode(self, wire: Part) -> AnyPart:
        given = (
            (wire.text is not UNSET)
            + (wire.function_call is not UNSET)
            + (wire.function_response is not UNSET)
            + (wire.inline_data is not UNSET)
            + (wire.file_data is not UNSET)
        )
        extra = part_keys(wire)
        server = None if extra is None else _server_member(extra)
        if given + (server is not None) != 1 or (wire.function_call is not UNSET and not self.makes_calls):
            return self._decode_odd(wire)
        if server is not None:
            return self._decode_server(wire, server, extra or {})
        if wire.text is not UNSET:
            return _decode_text(wire, wire.text)
        if wire.function_call is not UNSET:
            return self._decode_call(wire, wire.function_call)
        if wire.function_response is not UNSET:
            return self._decode_served(wire, wire.function_response)
        return decode_media(wire)

    def _decode_odd(self, wire: Part) -> AnyPart:
        """Decode a part with no known member, several members at once, or a call where users make none."""
        if wire.thought_signature is not UNSET and restore(structs.replace(wire, thought_signature=UNSET)) == Raw(
            b"{}"
        ):
            notes: Extra = {"~text": ABSENT} | (part_keys(wire) or {})
            return Text("", signature=_read_signature(wire, notes), metadata={FAMILY: notes})
        block = restore(wire)
        kind = "+".join(name for name in parse_json(block) if name not in {"thought", "thoughtSignature"})
        return Opaque(FAMILY, kind, block, _read_signature(wire, {}))

    def _decode_call(self, wire: Part, call: FunctionCall) -> ToolCall:
        index, self._calls = self._calls, self._calls + 1
        notes = part_notes(wire, functionCall=call_keys(call))
        signature = None if wire.thought_signature is UNSET else _read_signature(wire, notes)
        call_id, invented = call.id, False
        if call_id is UNSET or not call_id:
            if call_id is not UNSET:
                notes["~id"] = Raw(b'""')
            call_id, invented = invent_id(self.seed, index), True
        elif self.marks_ids or is_invented(call_id):
            notes["~id"], invented = TRUE, is_invented(call_id)
        name = call.name
        if name is UNSET:
            name, notes["~name"] = "", ABSENT
        arguments, text = self._arguments(call.args, notes)
        metadata = {FAMILY: notes} if notes else None
        return ToolCall(call_id, name, arguments, text, False, invented, False, signature, None, metadata)  # noqa: FBT003

    def _arguments(self, raw: Raw | UnsetType, notes: Extra) -> tuple[Raw | UnsetType, str | None]:
        if raw is UNSET or bytes(raw) == b"null":
            notes["~args"] = ABSENT if raw is UNSET else NULL
            return EMPTY_OBJECT, None
        path = f"{self._path or self.seed}.parts[{len(self.parts)}].functionCall.args"
        return read_object(raw, path, "gemini/vertex")

    def _decode_server(self, wire: Part, member: str, extra: Extra) -> ServerToolCall | ServerToolResult:
        """Decode code and searches that Google runs: kept verbatim, never executed or answered by the client."""
        block = extra.pop(member)
        notes = _with_thought(wire, extra)
        signature = _read_signature(wire, notes)
        parsed = parse_json(block)
        given = parsed.get("id") if isinstance(parsed, dict) else None
        tool = parsed.get("toolType", parsed.get("tool_type")) if isinstance(parsed, dict) else None
        name = tool.lower() if isinstance(tool, str) else "code_execution"
        is_call = _SERVER_MEMBERS[member] in _SERVER_CALLS
        self._server_calls += is_call
        call_id = given if isinstance(given, str) else invent_id(f"{self.seed} server", self._server_calls)
        metadata = {FAMILY: notes} if notes else None
        shown: Any = {member: parsed if isinstance(parsed, dict) else {}}
        fields = HOSTED.read_call(shown) if is_call else HOSTED.read_result(shown)
        kind = ServerToolCall if is_call else ServerToolResult
        return kind(call_id, name, FAMILY, Raw(encode_json({member: block})), signature, None, metadata, **fields)

    def _decode_served(self, wire: Part, answer: FunctionResponse) -> ServerToolResult:
        """Decode a response within the model's own content: an MCP server answered, not the client."""
        notes = part_notes(wire)
        signature = _read_signature(wire, notes)
        name = "" if answer.name is UNSET else answer.name
        call = self._served_call(answer.id, name)
        call_id = call.id if call is not None else "" if answer.id is UNSET else answer.id
        block = Raw(encode_json({"functionResponse": restore(answer)}))
        fields = HOSTED.read_result(parse_json(block))
        return ServerToolResult(
            call_id, name, FAMILY, block, signature, None, {FAMILY: notes} if notes else None, **fields
        )

    def _served_call(self, call_id: str | UnsetType, name: str) -> ToolCall | None:
        """Return the first call with that id (that name, if there is no id), and make it a server call."""
        if self._seen > len(self.parts):  # the parts were replaced
            self._seen, self._unserved = 0, {}
        parts, calls = self.parts, self._unserved
        for place in range(self._seen, len(parts)):
            part = parts[place]
            if type(part) is ToolCall:
                calls.setdefault(("id", part.id), deque()).append(place)
                calls.setdefault(("name", part.name), deque()).append(place)
        self._seen = len(parts)
        waiting = calls.get(("name", name) if call_id is UNSET else ("id", call_id), ())
        while waiting:
            call = parts[place := waiting.popleft()]
            if type(call) is ToolCall:
                parts[place] = server_call(call)
                return call
        return None


def server_call(call: ToolCall) -> ServerToolCall:
    """Return the call as a server call, because the server answered it."""
    notes = family_notes(FAMILY, call.metadata)
    sends_id = not call.invented_id or notes.get("~id") == TRUE
    block = Raw(encode_json({"functionCall": _call_body(call, notes, sends_id=sends_id)}))
    fields = HOSTED.read_call(parse_json(block))
    return ServerToolCall(call.id, call.name, FAMILY, block, call.signature, None, call.metadata, **fields)


def _server_member(extra: Extra) -> str | None:
    return next((key for key, value in extra.items() if key in _SERVER_MEMBERS and bytes(value) != b"null"), None)


def part_notes(wire: Part | ResponsePart, **within: Extra | None) -> Extra:
    """Return a part's keys but its member, signature and thought: true; `within`: the extra keys of the member."""
    notes: Extra = (part_keys(wire) if isinstance(wire, Part) else response_part_keys(wire)) or {}
    for name, inner in within.items():
        if inner is not None:
            notes[WITHIN + name] = Raw(encode_json(inner))
    return _with_thought(wire, notes) if isinstance(wire, Part) else notes


def _with_thought(wire: Part, notes: Extra) -> Extra:
    if wire.thought is not UNSET:
        notes["thought" if wire.thought else MODELLED + "thought"] = TRUE if wire.thought else Raw(b"false")
    return notes


def _read_signature(wire: Part, notes: Extra) -> Signature | None:
    """Return the signature; placeholders for signatures that never existed are only kept in the notes."""
    data = wire.thought_signature
    if data is UNSET:
        return None
    if is_dummy(data):
        notes["~signature"] = Raw(encode_json(data))
        return None
    # A tagged signature that cannot be unpacked is still ours, so no provider needs it back.
    return Signature("dragoman" if foreign_signatures.is_tagged(data) else FAMILY, data)


def is_plain_text(wire: Part) -> bool:
    """Whether a part holds only text, at most beside a mark that it is not a thought."""
    kind, text = type(wire), wire.text
    if text is UNSET:
        return False
    return wire == kind(text) or (wire.thought is False and wire == kind(text, thought=False))


def is_only_call(wire: Part) -> bool:
    """Whether a part with a call or a result holds only that and its signature."""
    return (
        wire.text is wire.thought is wire.inline_data is wire.file_data is UNSET
        and (wire.function_call is UNSET) is not (wire.function_response is UNSET)
        and (type(wire) is Part or part_keys(wire) is None)
    )


def _decode_text(wire: Part, text: str) -> Text | Reasoning:
    if wire.thought is True:
        notes = part_notes(wire)
        del notes["thought"]
        signature = _read_signature(wire, notes)
        if signature is None and not notes:
            return Reasoning(text, metadata=NATIVE_THOUGHT)
        return Reasoning(text, signature, metadata={FAMILY: notes | NATIVE_THOUGHT[FAMILY]})
    notes = part_notes(wire)
    return Text(text, signature=_read_signature(wire, notes), metadata={FAMILY: notes} if notes else None)


def decode_media(wire: Part | ResponsePart) -> Image | Audio | Document | Opaque:
    blob, file = wire.inline_data, wire.file_data
    signed = isinstance(wire, Part)
    notes = part_notes(wire)
    signature = _read_signature(wire, notes) if isinstance(wire, Part) else None
    if blob is not UNSET and file is UNSET and blob.data is not UNSET:
        media_type = None if blob.mime_type is UNSET else blob.mime_type
        if media_type is None:
            notes["~mime"] = ABSENT
        inner = blob_keys(blob)
        if inner is not None:
            notes[WITHIN + "inlineData"] = Raw(encode_json(inner))
        data = read_base64(blob.data, notes)
        return _media(media_type, data, None, signature, notes)
    if file is not UNSET and blob is UNSET and file.file_uri is not UNSET:
        media_type = None if file.mime_type is UNSET else file.mime_type
        inner = file_keys(file)
        if inner is not None:
            notes[WITHIN + "fileData"] = Raw(encode_json(inner))
        return _media(media_type, None, file.file_uri, signature, notes)
    return Opaque(FAMILY, "media" if signed else "result media", restore(wire), signature)


def _media(
    media_type: str | None, data: str | None, url: str | None, signature: Signature | None, notes: Extra
) -> Image | Audio | Document:
    head = (media_type or type_of_address(url or "") or "").partition("/")[0].lower()
    detail = _read_resolution(notes) if head == "image" and notes else None
    metadata = {FAMILY: notes} if notes else None
    if head == "image":
        return Image(media_type, data, url, None, None, signature, metadata, detail=detail)
    if head == "audio":
        return Audio(media_type, data, url, None, None, signature, metadata)
    return Document(media_type, data, url, None, None, signature, metadata)


_RESOLUTIONS = ("mediaResolution", "media_resolution")
_ONE_RESOLUTION = "this model takes one resolution for all media"
_LEVELS = {"low": "MEDIA_RESOLUTION_LOW", "high": "MEDIA_RESOLUTION_HIGH"}
_DETAILS: dict[Any, str] = {level: detail for detail, level in _LEVELS.items()}


def _read_resolution(notes: Extra) -> str | None:
    """Return the resolution of an image, and note it as modelled; others than low and high are kept as they are."""
    key = next((key for key in _RESOLUTIONS if key in notes), None)
    detail = None if key is None else _detail_of(notes[key])
    if key is not None and detail is not None:
        notes[MODELLED + key] = notes.pop(key)
    return detail


def _detail_of(raw: Raw) -> str | None:
    resolution = parse_json(raw)
    if not isinstance(resolution, dict) or resolution.keys() != {"level"} or not isinstance(resolution["level"], str):
        return None
    return _DETAILS.get(resolution["level"])


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _call_body(call: ToolCall, notes: Extra, *, sends_id: bool) -> WireValue:
    """Encode the functionCall object of a call."""
    arguments: Any = arguments_as_object(call)
    if "~args" in notes and call.parsed and not call.arguments:
        arguments = UNSET if notes["~args"] == ABSENT else NULL
    name: Any = UNSET if "~name" in notes else call.name
    call_id: Any = call.id if sends_id else ""
    body = FunctionCall(name, arguments, call_id if sends_id or notes.get("~id") == Raw(b'""') else UNSET)
    return spliced(body, inner_extra(notes, "functionCall") or {})


class PartEncoder:
    """Encodes parts, one after the other.

    `carries`: signatures of other families are carried in tagged signatures, for a client to echo. They are not sent
    to a provider. `native`: the request came in this format, so its ids are kept as the provider issued them.
    """

    _log: LossLog
    _profile: GeminiProfile
    _carries: bool
    _native: bool
    carried: list[Reasoning]
    """Reasoning that waits for a part to carry it."""
    saves: bool = False
    """The reasoning waits for a call: the next part is a text, and only texts come before the call."""
    passed: int = 0
    """Number of texts encoded since."""
    dropped_foreign: bool = False
    crosses: bool = False
    """Encodes a request that was not written for this service: what only the other one knows is left out."""
    _model: str | None = None

    # By position: the interpreter makes a dictionary of keywords for every object of a class.
    def __init__(self, log: LossLog, profile: GeminiProfile, carries: bool = False, native: bool = False) -> None:  # noqa: FBT001, FBT002
        self._log = log
        self._profile = profile
        self._carries = carries
        self._native = native
        self.carried = []

    def encode(self, part: AnyPart) -> WireValue:
        """Return the wire part, or None if nothing is left of it."""
        return _ENCODE[type(part)](self, part)

    def sends_id(self, call: ToolCall) -> bool:
        notes = (call.metadata or {}).get(FAMILY, {})
        if notes.get("~id") == TRUE:
            return True
        if call.invented_id or is_invented(call.id):
            return False
        return self._native or self._carries or self._profile.sends_foreign_ids

    def _signature(self, part: Any) -> str | UnsetType:
        """Return the wire signature of a part: its own, or a bundle with the reasoning that it carries."""
        signature: Signature | None = part.signature
        notes = (part.metadata or {}).get(FAMILY, {})
        takes = bool(self.carried) and not self.saves
        self.passed += self.saves and bool(self.carried)
        if takes or (signature is not None and signature.family != FAMILY and self._carries):
            bundle = Bundle(tuple(self.carried) if takes else (), signature, early=self.passed if takes else 0)
            if takes:
                self.carried, self.passed = [], 0
            spelled = note(part.metadata, FAMILY, "~carried")
            return (
                spelled
                if spelled is not UNSET and foreign_signatures.unpack(spelled) == bundle
                else foreign_signatures.pack(bundle)
            )
        if signature is None:
            spelled = note(part.metadata, FAMILY, "~signature") if "~signature" in notes else UNSET
            return spelled if isinstance(spelled, str) else UNSET
        if signature.family == FAMILY and signature.data:
            return signature.data
        self.dropped_foreign = True
        drop_signature(part, signature, self._log)
        return UNSET

    def _report(self, part: Any, *fields: str) -> None:
        if part.cache is not None:
            drop_cache_mark(part, self._log)
        for field in fields:
            if getattr(part, field) is not None:
                self._log.drop(part, field, f"{type(part).__name__.lower()} {field}", "this API has no such field")

    def _text(self, part: Text) -> WireValue:
        signature = self._signature(part)
        self._report(part)
        if part.citations and not self._carries:
            self._log.drop(part, "citations", "citations", "a request of this API has no place for them")
        notes = (part.metadata or {}).get(FAMILY)
        if not notes:
            return TextOut(part.text) if signature is UNSET else Part(part.text, UNSET, signature)
        return spliced(Part(UNSET if "~text" in notes else part.text, UNSET, signature), notes)

    def _reasoning(self, part: Reasoning) -> WireValue:
        notes = (part.metadata or {}).get(FAMILY, {})
        if is_native_thought(part):
            return spliced(Part(part.text, True, self._signature(part)), notes)  # noqa: FBT003
        if not self._carries:
            self.dropped_foreign = True
            self._log.drop(part, "", "reasoning", "reasoning of another provider has no place here")
            return None
        self.carried.append(foreign_signatures.carried_form(part))
        return Part(part.text, True) if part.text and HIDDEN not in notes else None  # noqa: FBT003

    def finish(self, wires: list[WireValue]) -> None:
        """Put reasoning that no part followed on its own last thought."""
        if not self.carried:
            return
        last = self.carried[-1]
        shown = Part(last.text, True)  # noqa: FBT003
        text = last.text
        if text and wires and wires[-1] == shown:
            wires.pop()
        elif shown in wires:
            text = ""  # parts without a signature follow the thought
        wires.append(Part(text, True, foreign_signatures.pack(Bundle(tuple(self.carried), last=True))))  # noqa: FBT003
        self.carried = []

    def _call(self, call: ToolCall) -> WireValue:
        self._report(call)
        # An answer does not say whether it is ours; in a request the wrapper is new.
        if call.arguments_held is UNSET and not (self._native or self._carries):
            report_unparsed(call, self._log)
        signature = self._signature(call)
        sends_id = self.sends_id(call)
        notes = (call.metadata or {}).get(FAMILY)
        if not notes:
            body = FunctionCallOut(call.name, arguments_as_object(call), call.id if sends_id else UNSET)
            return CallOut(body, signature)
        return spliced(CallOut(_call_body(call, notes, sends_id=sends_id), signature), notes)

    def _server_call(self, part: ServerToolCall) -> WireValue:
        return self._server_block(part, part.block_held)

    def _server_result(self, part: ServerToolResult) -> WireValue:
        return self._server_block(part, part.block_held)

    def _server_block(self, part: ServerToolCall | ServerToolResult, value: Any) -> WireValue:
        if not goes_back(part, FAMILY, to_client=self._carries):
            image = drawn_image(part, self._log)
            if image is not None:
                return self.media(image)
            wire = cross_hosted(part, self._log, HOSTED if self._carries else None)
            return self._text(wire) if type(wire) is Text else wire
        if self.crosses and is_any_unknown(self._profile.unknown_keys, "Part", part.block or ()):
            self._log.drop(part, "", f"step of {part.name!r}", "this service does not report what its tools did")
            return None
        if has_note(part.metadata, CODE_LANGUAGE):
            self._log.degrade(part, "", "language of the code", "this API can only say Python")
        signature = self._signature(part)
        fields = dict((part.metadata or {}).get(FAMILY, {}))
        block = value if isinstance(value, Raw) else Raw(encode_json(value))
        signed = block if signature is UNSET else spliced(block, {"thoughtSignature": Raw(encode_json(signature))})
        return spliced(signed, fields)

    def _document(self, part: Document) -> WireValue:
        if part.text is None:
            return self.media(part)
        return self._text(Text(document_text(part, self._log)))

    def media(self, part: Any, wire: type[Part | ResponsePart] = Part) -> WireValue:
        if not self._native and not self._carries:
            fitted = fit_medium(part, self._log)
            if fitted is None or type(fitted) is Text:
                self._report(part, *_UNSAID.get(type(part), ()))
                if fitted is None or wire is Part:
                    return None if fitted is None else self._text(fitted)
                return ResponsePart(inline_data=Blob("text/plain", part.data))
            part = fitted
        self._report(part, *_UNSAID.get(type(part), ()))
        notes = (part.metadata or {}).get(FAMILY, {})
        if isinstance(part, Image) and (part.detail is not None or notes):
            notes = self._with_resolution(part, notes, in_result=wire is ResponsePart)
        if notes and not self._native and not self._carries:
            notes = self._without_unfit(part, notes, in_result=wire is ResponsePart)
        extra: Extra = {}
        body: Any
        if part.data is not None:
            media_type = part.media_type
            if media_type is None and "~mime" not in notes:
                media_type = "image/png" if isinstance(part, Image) else "application/octet-stream"
                self._log.invent(part, "media_type", f"media type {media_type}", "this API requires one")
            body = Blob(UNSET if media_type is None else media_type, write_base64(part.data, notes))
            member, extra = "inline_data", inner_extra(notes, "inlineData") or {}
        elif part.url is not None and self._fetches(part.url):
            body = FileData(part.url, self._type_of_file(part))
            member, extra = "file_data", inner_extra(notes, "fileData") or {}
        else:
            given = "file id" if part.url is None else "URL"
            self._log.drop(part, "", f"{type(part).__name__.lower()} by {given}", _why_unreachable(part.url))
            return None
        body = spliced(body, extra) if extra else body
        if wire is ResponsePart:
            if part.signature is not None:
                self._log.drop(part, "signature", "signature", "parts of a function response have none in this API")
            return spliced(ResponsePart(**{member: body}), notes) if notes else ResponsePart(**{member: body})
        signed = Part(thought_signature=self._signature(part), **{member: body})
        return spliced(signed, notes) if notes else signed

    def _fetches(self, url: str) -> bool:
        """Whether the address can be sent. Those in answers are read by the client."""
        if not self.crosses and (self._native or self._carries):
            return True
        return self._profile.unreachable_files.match(url) is None

    def _with_resolution(self, part: Image, notes: Extra, *, in_result: bool) -> Extra:
        """Return the notes with the resolution of the image."""
        noted = next((MODELLED + key for key in _RESOLUTIONS if MODELLED + key in notes), None)
        if noted is not None:
            if _detail_of(notes[noted]) == part.detail:
                return notes
            notes = {key: value for key, value in notes.items() if key != noted}
        if part.detail is None or part.detail == "auto":
            return notes
        level = _LEVELS.get(part.detail)
        if level is None or in_result:
            self._log.drop(part, "detail", f"image detail {part.detail!r}", "this API has no such field")
        elif not self._takes_resolution():
            self._log.drop(part, "detail", f"image detail {part.detail!r}", _ONE_RESOLUTION)
        else:
            return {**notes, _RESOLUTIONS[0]: Raw(encode_json({"level": level}))}
        return notes

    def _without_unfit(self, part: Any, notes: Extra, *, in_result: bool) -> Extra:
        """Return the notes of a part of Interactions without keys that a part here, or the model, does not take."""
        unfit = [key for key in ("mediaResolution", "videoMetadata") if key in notes and in_result]
        if not in_result and "mediaResolution" in notes and not self._takes_resolution():
            unfit = ["mediaResolution"]
        for key in unfit:
            why = "parts of a function response have none in this API" if in_result else _ONE_RESOLUTION
            self._log.drop(part, key, str(parse_json(notes.get(NAMED + key, Raw(encode_json(key))))), why)
        return {key: value for key, value in notes.items() if key not in unfit} if unfit else notes

    def _takes_resolution(self) -> bool:
        return self._profile.image_detail_models.search(self._model or "") is not None

    def _type_of_file(self, part: Image | Audio | Document) -> str | UnsetType:
        """Return the media type of a part that refers to a URL; without one, guess it from the URL."""
        if part.media_type is not None:
            return part.media_type
        if self._native:
            return UNSET
        found = type_of_address(str(part.url))
        if found is None:
            why = "this API requires one, and the address does not show it"
            self._log.degrade(part, "url", f"media type of {part.url}", why)
            return UNSET
        return found

    def _refusal(self, part: Refusal) -> WireValue:
        if not self._native:
            degrade_refusal(part, self._log)
        return self._text(Text(part.text))

    def _search_result(self, part: SearchResult) -> WireValue:
        if part.cache is not None:
            drop_cache_mark(part, self._log)
        return self._text(Text(search_text(part, self._log)))

    def _opaque(self, part: Opaque) -> WireValue:
        if part.origin == FAMILY:
            return part.block_held
        self._log.drop(part, "", f"{part.origin} block {part.kind!r}", "it belongs to the provider that made it")
        return None

    def _refuse_result(self, part: ToolResult) -> WireValue:
        self._log.drop(part, "", "tool result", "this message cannot hold it")


def _why_unreachable(url: str | None) -> str:
    scheme = "" if url is None else url.partition(":")[0]
    return f"this API fetches no {scheme}: addresses" if scheme in {"gs", "s3", "file"} else "this API cannot fetch it"


_UNSAID: dict[type[Any], tuple[str, ...]] = {Audio: ("transcript",), Document: ("title", "context", "cite")}

_ENCODE = PartHandlers[Callable[[Any, Any], WireValue]](
    text=PartEncoder._text,
    reasoning=PartEncoder._reasoning,
    refusal=PartEncoder._refusal,
    image=PartEncoder.media,
    audio=PartEncoder.media,
    document=PartEncoder._document,
    tool_call=PartEncoder._call,
    tool_result=PartEncoder._refuse_result,
    server_tool_call=PartEncoder._server_call,
    server_tool_result=PartEncoder._server_result,
    search_result=PartEncoder._search_result,
    opaque=PartEncoder._opaque,
).by_type()
