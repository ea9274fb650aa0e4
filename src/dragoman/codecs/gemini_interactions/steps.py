"""Single steps, both ways: thoughts, calls, and tools that Google runs; and the citations of a text.

A thought's signature belongs to the step that follows it. In the intermediate format it is on that part, where
generateContent has it too; a signature that neither a call nor a text follows is that of an empty text.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.annotations import AnnotationFormat
from dragoman.codecs.arguments import EMPTY_OBJECT, arguments_as_object, read_object, report_unparsed
from dragoman.codecs.common_losses import drop_cache_mark, drop_signature
from dragoman.codecs.gemini_interactions import foreign_signatures
from dragoman.codecs.gemini_interactions.hosted_tools import HOSTED
from dragoman.codecs.gemini_interactions.profile import FAMILY
from dragoman.codecs.gemini_interactions.wire import (
    FunctionCallStep,
    ModelOutputStep,
    StepHead,
    TextContent,
    ThoughtStep,
)
from dragoman.codecs.google_signatures import GOOGLE, NATIVE_THOUGHT, is_native_thought, is_signed_medium
from dragoman.codecs.google_vocabulary import beside_text, language_note, part_as_step, report_beyond_step, step_as_part
from dragoman.codecs.ids import invent_id, is_invented
from dragoman.codecs.reading import WireValue, restore, spliced
from dragoman.codecs.shared_tools import cross_hosted, goes_back
from dragoman.ir import (
    AnyPart,
    Audio,
    Document,
    Image,
    Opaque,
    Reasoning,
    Refusal,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
)
from dragoman.ir.notes import MODELLED, WITHIN, Extra, family_notes, with_notes
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

SIGNATURE = MODELLED + "signature"
SUMMARY = MODELLED + "summary"
TRUE = Raw(b"true")

STEP = "~step"
"""Note: this part begins a separate step although the one before could have held it; or the step itself."""
SPELLED = "~content"
"""Note: the content of the step was a bare string."""
APART = "~apart"
"""Note on a signed part: the thought with its signature is a separate step, after one with a summary."""
BEFORE = "~before"
"""Note on a part: the thought before it had only an empty signature, or a placeholder."""
ON_CALL = "~own"
"""Note on a call: its signature was on the call itself."""
SUMMARY_BREAK = "\n\n"

CONTENT = "content:"
"""Prefix of the kind of an opaque content; without it, an opaque part is a whole step."""
_OUTPUT = (Text, Refusal, Image, Document, Audio, SearchResult)

_heads = msgspec.json.Decoder(StepHead).decode


noted = partial(with_notes, FAMILY)

# ── thoughts ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_thought(step: ThoughtStep) -> Reasoning | None:
    """Return the summary of a thought; None without one. The thought's signature is the next part's."""
    summary = step.summary
    notes: Extra = {} if step.extra is UNSET else dict(step.extra)
    texts = [] if summary is UNSET else [piece.text for piece in summary if type(piece) is TextContent]
    if summary is not UNSET and (len(summary) != 1 or not any(texts) or not is_plain_text(summary[0])):
        notes[SUMMARY] = Raw(encode_json(restore(summary)))
        notes.update({f"{WITHIN}summary[{place}]": keys for place, keys in beside_text(notes[SUMMARY]).items()})
    if not notes and not texts:
        return None
    return Reasoning(SUMMARY_BREAK.join(texts), metadata=noted(NATIVE_THOUGHT, notes))


def is_plain_text(content: Any) -> bool:
    return type(content) is TextContent and content.extra is UNSET and content.annotations is UNSET


def encode_thought(
    part: Reasoning, follower: Signature | None, log: LossLog, *, to_client: bool, native: bool
) -> WireValue:
    """Encode the thought that shows this reasoning, with the signature of the next part; None if lost (logged)."""
    notes = family_notes(FAMILY, part.metadata)
    is_own = is_native_thought(part) or any(key[:1] != "~" for key in notes)
    if (to_client or native) and ("~tagged" in notes or not is_own or part.signature is not None):
        return foreign_signatures.tagged_reasoning(part)
    if not is_own:
        log.drop(part, "", "reasoning", "reasoning of another provider has no place here")
        return None
    signature = follower if part.signature is None else part.signature
    data: Any = UNSET if signature is None or not signature.data else signature.data
    summary: Any = UNSET if SUMMARY in notes or not part.text else [TextContent(part.text)]
    return spliced(ThoughtStep(data, summary), notes) if notes else ThoughtStep(data, summary)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────


def decode_call(step: FunctionCallStep, seed: object, index: int, path: str) -> ToolCall:
    notes: Extra = {} if step.extra is UNSET else dict(step.extra)
    call_id, invented = step.id, False
    if call_id is UNSET or not call_id:
        notes["~id"] = TRUE if call_id is UNSET else Raw(b'""')
        call_id, invented = invent_id(seed, index), True
    arguments, text = _decode_arguments(step.arguments, notes, path)
    signature = None
    if step.signature is not UNSET:
        if step.signature:
            signature = Signature(GOOGLE, step.signature)
            notes[ON_CALL] = TRUE
        else:
            notes[SIGNATURE] = Raw(b'""')  # a placeholder of streams, without meaning
    return ToolCall(
        call_id,
        step.name,
        arguments,
        text,
        invented_id=invented or is_invented(call_id),
        signature=signature,
        metadata={FAMILY: notes} if notes else None,
    )


def _decode_arguments(raw: Raw | UnsetType, notes: Extra, path: str) -> tuple[Raw | UnsetType, str | None]:
    if raw is UNSET or bytes(raw) == b"null":
        notes["~arguments"] = TRUE if raw is UNSET else Raw(b"null")
        return EMPTY_OBJECT, None
    return read_object(raw, f"{path}.arguments", "gemini-interactions")


def encode_call(call: ToolCall, log: LossLog, *, native: bool) -> WireValue:
    if call.cache is not None:
        drop_cache_mark(call, log)
    if not call.parsed and not native:
        report_unparsed(call, log)
    notes = family_notes(FAMILY, call.metadata)
    arguments: Any = arguments_as_object(call)
    call_id: Any = call.id
    if not notes:
        return FunctionCallStep(call.name, call_id, arguments)
    if native:
        if "~id" in notes:
            call_id = UNSET if notes["~id"] == TRUE else ""
        if "~arguments" in notes and call.parsed and not call.arguments:
            arguments = UNSET if notes["~arguments"] == TRUE else notes["~arguments"]
    on_call: Any = call.signature.data if ON_CALL in notes and call.signature is not None else UNSET
    further = {key: value for key, value in notes.items() if key != SIGNATURE or native}
    return spliced(FunctionCallStep(call.name, call_id, arguments, on_call), further)


# ── tools that Google runs ────────────────────────────────────────────────────────────────────────────────────


def decode_other(raw: Raw) -> AnyPart:
    """Decode a call or a result of a tool that Google runs, in generateContent's form if it has one."""
    try:
        head = _heads(raw)
    except msgspec.ValidationError:
        return Opaque(FAMILY, "", raw)
    is_call = head.type.endswith("_call") and bool(head.id)
    if not is_call and not (head.type.endswith("_result") and head.call_id):
        return Opaque(FAMILY, head.type, raw)
    signature = Signature(GOOGLE, head.signature) if head.signature else None
    parsed = parse_json(raw)
    parsed.pop("signature", None)
    block = step_as_part(parsed)
    name = head.name or head.type.removesuffix("_call" if is_call else "_result")
    kind: Any = ServerToolCall if is_call else ServerToolResult
    call_id = head.id if is_call else head.call_id
    fields: dict[str, Any] = HOSTED.read_call(parsed) if is_call else HOSTED.read_result(parsed)
    part: AnyPart = kind(call_id, name, FAMILY, raw, signature, **fields)
    if block is not None:
        given = Raw(encode_json(block))
        notes: Extra = {STEP: raw, **language_note(parsed)}
        part = kind(call_id, name, GOOGLE, given, signature, metadata={FAMILY: notes}, **fields)
    return part


def encode_server_step(part: ServerToolCall | ServerToolResult, log: LossLog, *, to_client: bool) -> WireValue:
    block = part.block_held
    if part.cache is not None:
        drop_cache_mark(part, log)
    if goes_back(part, FAMILY, to_client=to_client):
        return block
    given = family_notes(FAMILY, part.metadata).get(STEP)
    if given is not None and goes_back(part, GOOGLE, to_client=to_client):
        return given
    call_id = part.id if isinstance(part, ServerToolCall) else part.tool_call_id
    # Older models of generateContent give no ids; here a call has one.
    step = (
        part_as_step(part.block or {}, call_id or invent_id("server call", 0))
        if goes_back(part, GOOGLE, to_client=to_client)
        else None
    )
    if step is None:
        wire = cross_hosted(part, log, HOSTED if to_client else None)
        return ModelOutputStep([TextContent(wire.text)]) if type(wire) is Text else wire
    report_beyond_step(part, step, log)
    if part.signature is not None and part.signature.family == GOOGLE:
        return {**step, "signature": part.signature.data}
    if part.signature is not None:
        drop_signature(part, part.signature, log)
    return step


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────

CITATIONS = AnnotationFormat(
    FAMILY,
    frozenset({"type", "url", "title", "start_index", "end_index"}),
    ("url", "document_uri"),
    ("title", "file_name", "name"),
    "this API cites its own files and web pages",
)
"""Offsets count UTF-8 bytes on this wire."""


def is_signed_by_google(part: AnyPart) -> bool:
    """Whether a thought before this part carries its signature, as Google writes it."""
    return (
        isinstance(part, Text | ToolCall)
        and part.signature is not None
        and part.signature.family == GOOGLE
        and bool(part.signature.data)
        and ON_CALL not in family_notes(FAMILY, part.metadata)
    )


def shares_thought(part: AnyPart | None, following: AnyPart | None) -> bool:
    """Whether one thought shows this reasoning and carries the signature of the next part."""
    return (
        isinstance(part, Reasoning)
        and part.signature is None
        and following is not None
        and is_signed_by_google(following)
        and not {APART, "~tagged"} & family_notes(FAMILY, getattr(following, "metadata", None)).keys()
        and not {"~tagged", "~raw:signature"} & family_notes(FAMILY, part.metadata).keys()
        and is_native_thought(part)
    )


def is_output(part: AnyPart | None) -> bool:
    """Whether this is a content of a `model_output` step."""
    return isinstance(part, _OUTPUT) or (
        isinstance(part, Opaque) and part.origin == FAMILY and part.kind.startswith(CONTENT)
    )


def begins_step(part: AnyPart, previous: AnyPart | None) -> bool:
    """Whether a part of the model's turn begins a step, or continues the one before it."""
    if not is_output(part) or not is_output(previous):
        return True
    notes = family_notes(FAMILY, getattr(part, "metadata", None))
    signed = (isinstance(part, Text) and part.signature is not None) or is_signed_medium(part)
    before = isinstance(previous, Text) and previous.signature is not None and foreign_signatures.stands_alone(previous)
    return signed or before or STEP in notes or BEFORE in notes
