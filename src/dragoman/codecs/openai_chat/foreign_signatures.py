"""Conventions that carry what Chat Completions has no field for.

Reasoning: `reasoning_content`, `reasoning` or `reasoning_text` (text), `reasoning_details` (OpenRouter's list, echoed
by clients), `thinking_blocks` (LiteLLM's list of Anthropic's own blocks), `reasoning_opaque` (Copilot's encrypted form
of the whole reasoning, which it expects back).
Gemini's signature of a call or an image: `extra_content.google.thought_signature` (Google's convention on this format).
Signatures on text: a `reasoning_details` entry whose id says at which character of the content the signed text starts.
Tool errors: the JSON text {"error": …}. Images of tools: a user turn after the results, tagged with the call's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from dragoman.codecs.listed_pages import LISTED
from dragoman.codecs.openai_chat.wire import ReasoningDetail
from dragoman.codecs.reading import WireReader, WireValue
from dragoman.codecs.thinking_blocks import BLOCKS, blocks_in, squeezed
from dragoman.ir import (
    AnyPart,
    Citation,
    Image,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from dragoman.ir.notes import MODELLED, WITHIN, Extra
from dragoman.ir.values import encode_json, parse_json

FAMILY = "openai"

_FORMAT_FAMILY = {
    "anthropic-claude-v1": "anthropic",
    "google-gemini-v1": "google",
    "openai-responses-v1": "openai-responses",
    "xai-responses-v1": "xai",
}
_FAMILY_FORMAT = {family: name for name, family in _FORMAT_FAMILY.items()}
COPILOT = "copilot"
"""The family of Copilot's encrypted reasoning, whichever model it serves."""
OPAQUE, OPAQUE_TEXT = "reasoning_opaque", "reasoning_text"
"""Copilot's keys for the encrypted reasoning and for its text."""
_OPAQUE_ALONE: Extra = {"~opaque": Raw(b"true")}
TEXT_AT = "text@"

_details = WireReader(list[ReasoningDetail], "openai-chat", path="$.reasoning_details")

# ── reasoning ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_reasoning(extra: Extra) -> list[Reasoning]:
    """Return reasoning parts from any vendor fields; removes the fields from `extra` and notes their spelling."""
    parts: list[Reasoning] = []
    entry = extra.get("reasoning_details")
    details = _details.read(bytes(entry)) if entry is not None and bytes(entry).startswith(b"[{") else []
    for detail, raw in zip(details, _raw_items(entry), strict=True) if details else ():
        if isinstance(detail.id, str) and detail.id.startswith(TEXT_AT):
            continue
        parts.append(structs.replace(reasoning_of(detail), metadata={FAMILY: {"~detail": raw}}))
    if parts:
        extra[MODELLED + "reasoning_details"] = extra.pop("reasoning_details")
    _read_blocks(extra, parts)
    known, plain = "".join(part.text for part in parts), 0
    for key in ("reasoning_content", "reasoning", OPAQUE_TEXT):
        text = extra.get(key)
        if text is None or bytes(text)[:1] != b'"':
            continue
        del extra[key]
        parsed = parse_json(text)
        if parts and (parsed in known or squeezed(parsed) in squeezed(known)):
            extra[MODELLED + key] = text  # the same reasoning again, as plain text
            continue
        # Before the details, as in a stream: this is the only readable text of encrypted reasoning.
        parts.insert(plain, Reasoning(parsed, metadata={FAMILY: {"~key": Raw(encode_json(key))}}))
        plain, known = plain + 1, known if known.strip() else parsed
    _read_opaque(extra, parts)
    return parts


def _read_opaque(extra: Extra, parts: list[Reasoning]) -> None:
    """Sign the reasoning with Copilot's encrypted form of it, which comes without a text too."""
    raw = extra.get(OPAQUE)
    data = None if raw is None else parse_json(raw)
    if raw is None or not isinstance(data, str) or not data:
        return
    extra[MODELLED + OPAQUE] = extra.pop(OPAQUE)
    signature = Signature(COPILOT, data)
    for index, part in enumerate(parts):
        if part.signature is None:
            parts[index] = structs.replace(part, signature=signature)
            return
    parts.append(Reasoning("", signature, redacted=True, metadata={FAMILY: _OPAQUE_ALONE}))


_BLOCK = frozenset({"type", "thinking", "signature", "data"})


def _read_blocks(extra: Extra, parts: list[Reasoning]) -> None:
    """Add the reasoning of LiteLLM's blocks, unless the parts that were already read are the same reasoning."""
    raw = extra.get(BLOCKS)
    blocks = None if raw is None else blocks_in(raw)
    if raw is None or not blocks:
        return
    if not parts:
        parts += [
            structs.replace(block, metadata={FAMILY: {"~block": held, **_unknown(parse_json(held), _BLOCK)}})
            for block, held in zip(blocks, _raw_items(raw), strict=True)
        ]
    elif squeezed("".join(part.text for part in blocks)) != squeezed("".join(part.text for part in parts)):
        return
    extra[MODELLED + BLOCKS] = extra.pop(BLOCKS)


def _raw_items(raw: Raw | None) -> list[Raw]:
    return [] if raw is None else msgspec.json.decode(raw, type=list[Raw])


def reasoning_of(detail: ReasoningDetail) -> Reasoning:
    """Return the reasoning part for one entry of `reasoning_details`, or for a fragment of one."""
    family = _FORMAT_FAMILY.get(detail.format, detail.format) if isinstance(detail.format, str) else ""
    item_id = detail.id if isinstance(detail.id, str) and detail.id else None
    if detail.type == "reasoning.encrypted" and isinstance(detail.data, str):
        return Reasoning("", Signature(family, detail.data, item_id), redacted=True)
    text = detail.text if isinstance(detail.text, str) else detail.summary
    signature = Signature(family, detail.signature, item_id) if isinstance(detail.signature, str) else None
    return Reasoning(text if isinstance(text, str) else "", signature)


def goes_back(part: AnyPart, family: str | None, *, plain: bool) -> bool:
    """Whether a provider gets this part back although it did not come in this format.

    Signed parts go to the family that minted the signature; unsigned reasoning (`plain`) to servers that require it.
    """
    signature = getattr(part, "signature", None)
    if signature is None or not signature.data:
        return plain and type(part) is Reasoning and bool(part.text)
    return bool(signature.family == family)


_ENTRIES = {"~detail": "reasoning_details", "~block": BLOCKS}
"""Notes: the entry of one of these lists that a part was read from."""


def write_reasoning(
    parts: Sequence[AnyPart],
    *,
    to_client: bool,
    family: str | None = None,
    plain: bool = False,
    key: str = "reasoning_content",
) -> Extra:
    """Return the vendor fields for these parts; a provider gets those that came in this format or that `goes_back`."""
    text: list[str] = []
    details: list[Any] = []
    lists: dict[str, list[Any]] = {"reasoning_details": details, BLOCKS: []}
    keys: dict[str, str] = {}
    for part in parts:
        if type(part) is not Reasoning:
            continue
        if family == COPILOT and part.signature is not None and goes_back(part, COPILOT, plain=False):
            keys |= {OPAQUE_TEXT: keys.get(OPAQUE_TEXT, "") + part.text, OPAQUE: part.signature.data}
            continue
        notes = (part.metadata or {}).get(FAMILY, {})
        entry = next((key for key in _ENTRIES if key in notes), None)
        if entry is not None:
            lists[_ENTRIES[entry]].append(notes[entry])
        elif "~key" in notes:
            spelled = parse_json(notes["~key"])
            keys[spelled] = keys.get(spelled, "") + part.text
        elif to_client and notes.keys().isdisjoint(("~thinking", "~opaque")):
            text.append(part.text)
            if part.signature is not None and part.signature.data:
                details.append(detail_for(part, part.signature, len(details)))
        elif goes_back(part, family, plain=plain):
            if part.signature is None:
                keys[key] = keys.get(key, "") + part.text
            else:
                details.append(detail_for(part, part.signature, len(details)))
    fields: Extra = {name: Raw(encode_json(value)) for name, value in keys.items()}
    if any(text):
        fields[key] = Raw(encode_json("".join(text)))
    return fields | {name: Raw(encode_json(entries)) for name, entries in lists.items() if entries}


def detail_for(part: Reasoning, signature: Signature, index: int) -> ReasoningDetail:
    spelled = _FAMILY_FORMAT.get(signature.family, signature.family)
    item_id: str | UnsetType = UNSET if signature.id is None else signature.id
    if part.redacted or (signature.family == "openai-responses" and not part.text):
        return ReasoningDetail("reasoning.encrypted", data=signature.data, format=spelled, id=item_id, index=index)
    return ReasoningDetail(
        "reasoning.text", text=part.text, signature=signature.data, format=spelled, id=item_id, index=index
    )


# ── signatures on calls, images and text ──────────────────────────────────────────────────────────────────────


EXTRA_CONTENT = "extra_content"
_GOOGLE, _THOUGHT_SIGNATURE = "google", "thought_signature"


def read_signature(
    extra: Extra, call_id: str | UnsetType = UNSET, function: Extra | UnsetType = UNSET
) -> Signature | None:
    """Return the signature of a call or an image; its key in `extra` becomes a note.

    `function` are the further keys of a call's function.
    """
    raw = extra.get(EXTRA_CONTENT)
    if raw is None:
        return None if call_id is function is UNSET else _read_litellm(call_id, function, extra)
    signature, beside = signature_in(raw)
    if signature is not None:
        _note_signed(extra, beside)
    return signature


_LITELLM = "provider_specific_fields"
SIGNED_ID = "__thought__"
"""In an id: LiteLLM appends Gemini's signature, because clients return ids and no further keys."""
SIGNED_AT = "~signed_at"
"""Note on a call: its signature is in this field of LiteLLM's, or in the id, and stays there."""


def _read_litellm(call_id: str | UnsetType, function: Extra | UnsetType, extra: Extra) -> Signature | None:
    """Return Gemini's signature of a call as LiteLLM writes it: beside the call or its function, or in its id."""
    of_function = {} if function is UNSET else function
    for fields, place in ((extra, _LITELLM), (of_function, f"function.{_LITELLM}")):
        found = parse_json(fields[_LITELLM]) if _LITELLM in fields else None
        data = found.get(_THOUGHT_SIGNATURE) if isinstance(found, dict) else None
        if isinstance(found, dict) and isinstance(data, str) and data:
            if len(found) == 1:
                fields[MODELLED + _LITELLM] = fields.pop(_LITELLM)
            extra[SIGNED_AT] = Raw(encode_json(place))
            return Signature("google", data)
    if call_id is UNSET or not call_id or SIGNED_ID not in call_id:
        return None
    extra[SIGNED_AT] = Raw(b'"id"')
    return Signature("google", call_id.partition(SIGNED_ID)[2])


def _note_signed(extra: Extra, beside: dict[str, Any]) -> None:
    """Turn `extra_content` into a note, because a part has its signature; what it has beside that is kept."""
    extra[MODELLED + EXTRA_CONTENT] = extra.pop(EXTRA_CONTENT)
    if _GOOGLE in beside:
        beside[WITHIN + _GOOGLE] = beside.pop(_GOOGLE)
    if beside:
        extra[WITHIN + EXTRA_CONTENT] = Raw(encode_json(beside))


def signature_in(raw: Raw) -> tuple[Signature | None, dict[str, Any]]:
    """Return the signature in an `extra_content`, if it has one, and what else it has."""
    content = parse_json(raw)
    if not isinstance(content, Mapping):
        return None, {}
    beside = dict(content)
    data = _google_signature(content)
    if data is None:
        return None, beside
    google = {key: value for key, value in beside.pop(_GOOGLE).items() if key != _THOUGHT_SIGNATURE}
    if google:
        beside[_GOOGLE] = google
    return Signature("google", data), beside


def _google_signature(content: WireValue) -> str | None:
    google = content.get(_GOOGLE) if isinstance(content, Mapping) else None
    data = google.get(_THOUGHT_SIGNATURE) if isinstance(google, Mapping) else None
    return data if isinstance(data, str) and data else None


def write_signature(part: ToolCall | Image) -> Extra:
    """Return the key that holds the signature, beside the call or image; empty without one."""
    if part.signature is None or not part.signature.data:
        return {}
    return {EXTRA_CONTENT: Raw(encode_json({part.signature.family: {_THOUGHT_SIGNATURE: part.signature.data}}))}


def restore_text_signatures(parts: list[AnyPart], extra: Extra) -> None:
    """Give text parts their signatures back: splits the content where each signed part began."""
    raw = extra.get(MODELLED + "reasoning_details") or extra.get("reasoning_details")
    marks: list[tuple[int, int, Signature]] = []
    if raw is not None and TEXT_AT.encode() in bytes(raw):
        for detail in _details.read(bytes(raw)):
            if isinstance(detail.id, str) and detail.id.startswith(TEXT_AT) and isinstance(detail.data, str):
                family = _FORMAT_FAMILY.get(detail.format or "", "") if detail.format is not UNSET else ""
                marks.append((*_place_of(detail.id), Signature(family, detail.data)))
        extra[MODELLED + "reasoning_details"] = raw
        extra.pop("reasoning_details", None)
    if marks:
        parts[:] = _split_text(parts, marks)
    elif "extra_content" in extra:
        _sign_last_text(parts, extra)


def _split_text(parts: list[AnyPart], marks: list[tuple[int, int, Signature]]) -> list[AnyPart]:
    """Split the first text into the signed pieces and the text between them."""
    split: list[AnyPart] = []
    for part in parts:
        if type(part) is not Text or not marks:
            split.append(part)
            continue
        place = 0
        for start, length, signature in sorted(marks, key=lambda mark: mark[:2]):
            if place < start:
                split.append(_piece(part, place, start))
            split.append(_piece(part, start, start + length, signature))
            place = max(place, start + length)
        if place < len(part.text):
            split.append(_piece(part, place, len(part.text)))
        marks = []
    return split


def _piece(part: Text, start: int, end: int, signature: Signature | None = None) -> Text:
    """Return a piece of a text, with the citations that begin in it."""
    text = part.text[start:end]
    if not part.citations:
        return Text(text, signature=signature)
    cited = [
        structs.replace(
            citation,
            start=None if citation.start is None else citation.start - start,
            end=None if citation.end is None else min(citation.end - start, len(text)),
        )
        for citation in part.citations
        if start <= (citation.start or 0) < end
    ]
    return Text(text, tuple(cited), signature=signature)


def _sign_last_text(parts: list[AnyPart], extra: Extra) -> None:
    """Sign the last text: Gemini's endpoint puts the signature of an answer without calls on the message itself."""
    signature, beside = signature_in(extra[EXTRA_CONTENT])
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        if signature is not None and type(part) is Text:
            parts[index] = structs.replace(part, signature=signature)
            _note_signed(extra, beside)
            return


def text_signature_details(parts: Sequence[AnyPart]) -> list[ReasoningDetail]:
    """Return one entry per signed text part, with the position of its text in the joined content."""
    details = []
    start = 0
    for part in parts:
        if type(part) is not Text:
            continue
        if part.signature is not None and part.signature.data:
            details.append(text_signature_detail(part.signature, start, len(part.text)))
        start += len(part.text)
    return details


def _place_of(place: str) -> tuple[int, int]:
    start, _, length = place.removeprefix(TEXT_AT).partition("+")
    return (int(start) if start.isdecimal() else 0, int(length) if length.isdecimal() else 0)


def text_signature_detail(signature: Signature, start: int, length: int) -> ReasoningDetail:
    """Encode a position as `text@5+3`, three signed characters at offset 5; `+0` is an empty part with a signature."""
    spelled = _FAMILY_FORMAT.get(signature.family, signature.family)
    return ReasoningDetail("reasoning.encrypted", data=signature.data, format=spelled, id=f"{TEXT_AT}{start}+{length}")


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────


_NO_ANNOTATIONS = Raw(b"[]")


def read_annotations(raw_value: Raw | UnsetType, parts: list[AnyPart], extra: Extra) -> None:
    """Turn url_citation annotations into citations of the last text; others stay in `extra`."""
    if raw_value is UNSET:
        return
    if raw_value == _NO_ANNOTATIONS:
        extra[MODELLED + "annotations"] = raw_value
        return
    found, others = citations_in(raw_value)
    texts = [index for index, part in enumerate(parts) if type(part) is Text]
    if not found or not texts:
        extra["annotations"] = raw_value
        return
    part = parts[texts[-1]]
    parts[texts[-1]] = structs.replace(part, citations=tuple(found))
    if others:
        extra["annotations"] = Raw(encode_json(list(others.values())))
        extra[_OTHERS] = Raw(encode_json(list(others)))


_OTHERS = "~annotations"
"""Note: the places of the other annotations, such as OpenRouter's files, among all."""


def citations_in(raw_value: Raw) -> tuple[list[Citation], dict[int, Raw]]:
    """Return the web citations among these annotations, and the others by their place."""
    found: list[Citation] = []
    others: dict[int, Raw] = {}
    for place, raw in enumerate(_raw_items(raw_value) if bytes(raw_value)[:1] == b"[" else ()):
        citation = _citation(raw)
        if citation is None:
            others[place] = raw
        else:
            found.append(citation)
    return found, others


def _with_others(annotations: list[Any], extra: Extra) -> list[Any]:
    """Return the citations with the other annotations of the message, each at its place."""
    merged: list[Any] = []
    taken = 0
    places = msgspec.json.decode(extra[_OTHERS], type=list[int])
    for place, other in zip(places, _raw_items(extra.get("annotations")), strict=False):
        cited = annotations[taken : taken + max(place - len(merged), 0)]
        taken += len(cited)
        merged += [*cited, other]
    return merged + annotations[taken:]


def _citation(raw: Raw) -> Citation | None:
    annotation = parse_json(raw)
    cited = annotation.get("url_citation") if isinstance(annotation, dict) else None
    if not isinstance(cited, dict):
        return None

    def get(key: str, kind: type) -> WireValue:
        return cited[key] if isinstance(cited.get(key), kind) else None

    return Citation(
        get("url", str),
        get("title", str),
        get("content", str),
        get("start_index", int),
        get("end_index", int),
        {FAMILY: {"~annotation": raw} | _unknown(annotation, _ANNOTATION) | _unknown(cited, _CITED)},
    )


_ANNOTATION = frozenset({"type", "url_citation"})
_CITED = frozenset({"url", "title", "content", "start_index", "end_index"})


def _unknown(found: Mapping[str, Any], known: frozenset[str]) -> Extra:
    return {key: Raw(encode_json(value)) for key, value in found.items() if key not in known}


def write_annotations(
    parts: Sequence[AnyPart], offset: int = 0, length: int | None = None, *, extra: Extra | None = None
) -> list[Any]:
    """Return annotations for all cited texts, with offsets into the joined content; empty if nothing is cited.

    `extra` has the other annotations of the message; `length` is that of a text which was streamed, and is not in the
    part.
    """
    annotations: list[Any] = []
    for part in parts:
        if type(part) is not Text:
            continue
        for citation in part.citations:
            annotation = _write_annotation(citation, offset, len(part.text) if length is None else length)
            if annotation is not None:
                annotations.append(annotation)
        offset += len(part.text)
    return _with_others(annotations, extra) if annotations and extra and _OTHERS in extra else annotations


def _write_annotation(citation: Citation, offset: int, length: int) -> Any:
    """Return the annotation for a citation of a text of this length at this offset; None without a web page."""
    notes = (citation.metadata or {}).get(FAMILY, {})
    noted = notes.get("~annotation")
    if noted is not None or citation.url is None or LISTED in notes:
        return noted
    start = 0 if citation.start is None else citation.start
    end = length if citation.end is None else citation.end
    span = {"start_index": offset + start, "end_index": offset + end}
    return {"type": "url_citation", "url_citation": {**span, "url": citation.url, "title": citation.title or ""}}
