"""Single items, both ways: calls, their outputs, reasoning, and the model's messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw

from dragoman.codecs.arguments import arguments_as_text, read_arguments
from dragoman.codecs.common_losses import drop_signature
from dragoman.codecs.ids import INVENTED_PREFIX, invent_id, is_invented
from dragoman.codecs.openai_client_items import (
    APPROVAL,
    SEARCH_CALL,
    WHOLE,
    approval_id,
    client_kind,
    item_prefix,
    write_approval,
    write_client_call,
    write_client_result,
)
from dragoman.codecs.openai_client_tools import NAMESPACE, SEPARATOR
from dragoman.codecs.openai_responses import foreign_signatures
from dragoman.codecs.openai_responses.parts import NOTHING, TRUE, PartEncoder, decode_part
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import Item, OutputText, SummaryText
from dragoman.codecs.reading import WireValue, as_json, restore, spliced
from dragoman.codecs.result_errors import ERROR_START, read_error, write_error, write_words
from dragoman.codecs.settings import collect_keys
from dragoman.codecs.signature_tags import is_tagged
from dragoman.ir import AnyPart, Image, Metadata, Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.ir.notes import MODELLED, Extra, Spelling, family_notes, inner_extra
from dragoman.ir.values import compact_text, encode_json, parse_json
from dragoman.losses import LossLog

# ── notes ─────────────────────────────────────────────────────────────────────────────────────────────────────

ITEM = "~item"
"""Note on the first part of a message item: how it was spelled."""
ID = "~id"
"""Note: the item's own id, which is not the id of a call."""
EASY, EASY_PARTS, TYPED, TYPED_PARTS = "easy", "easy parts", "typed", "typed parts"
SPELLING = {word: Raw(encode_json(word)) for word in (EASY, EASY_PARTS, TYPED, TYPED_PARTS)}
INSTRUCTIONS = Spelling({FAMILY: {"~instructions": TRUE}})
DEVELOPER = Raw(b'"developer"')
STATUS = MODELLED + "status"
COMPLETED = Raw(b'"completed"')
INCOMPLETE = Raw(b'"incomplete"')

_OF_THE_ITEM = frozenset(
    {ITEM, ID, "~status", "phase", "~in:item", foreign_signatures.CARRIER, foreign_signatures.CARRIER_BEHIND}
)


def spelling_of(notes: Extra) -> str | None:
    return parse_json(notes[ITEM]) if ITEM in notes else None


def own_part_notes(notes: Extra) -> Extra:
    """Return the notes of a part without those of the item it begins."""
    return {key: value for key, value in notes.items() if key not in _OF_THE_ITEM}


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def _keys_beyond(*interpreted: str) -> Callable[[Item], dict[str, Any] | None]:
    """Return a function from an item to its members other than these; it returns None for the usual item."""
    return collect_keys(Item, [name for name in Item.__struct_fields__ if name not in {*interpreted, "extra"}])


message_keys = _keys_beyond("type", "role", "content", "id", "status")
output_keys = _keys_beyond("type", "call_id", "output", "id", "name", "status")
call_keys = _keys_beyond("type", "call_id", "name", "arguments", "id", "status")
_custom_call_keys = _keys_beyond("type", "call_id", "name", "input", "id", "status")
_reasoning_keys = _keys_beyond("type", "summary", "content", "encrypted_content", "id", "status")


def as_notes(keys: dict[str, Any] | None) -> Extra:
    """Return such keys as notes: members that the item's type does not use are kept as they were read."""
    if keys is None:
        return {}
    return {key: value if type(value) is Raw else Raw(encode_json(restore(value))) for key, value in keys.items()}


def decode_call(item: Item, seed: object) -> ToolCall:
    """Decode a function call or custom tool call; the item's own id is a note, `call_id` links call and output."""
    call_id, name, given = item.call_id, item.name, item.arguments
    custom = item.type == "custom_tool_call"
    keys = _custom_call_keys(item) if custom else call_keys(item)
    if keys is None and call_id and type(given) is str and name is not UNSET and item.id is item.status is UNSET:
        return ToolCall(call_id, name, read_arguments(given), given, invented_id=call_id[:4] == INVENTED_PREFIX)
    notes = as_notes(keys)
    if "namespace" in notes:
        name = qualified_name(item)
        if name is not item.name or bytes(notes["namespace"])[:1] == b'"':
            notes[NAMESPACE] = notes.pop("namespace")
    if item.id is not UNSET:
        notes[ID] = as_json(item.id)
    if item.status is not UNSET:
        notes[STATUS] = item.status
    invented = False
    if call_id is UNSET or not call_id:
        notes["~call_id"] = TRUE if call_id is UNSET else Raw(b'""')
        call_id, invented = invent_id(seed, 0), True
    if name is UNSET:
        notes["~name"] = TRUE
        name = ""
    metadata = {FAMILY: notes} if notes else None
    if custom:
        text = "" if item.input is UNSET else item.input
        if item.input is UNSET:
            notes["~input"] = TRUE
        arguments = Raw(encode_json({"input": text}))
        return ToolCall(call_id, name, arguments, text, custom=True, invented_id=invented, metadata={FAMILY: notes})
    if type(given) is str:
        return ToolCall(
            call_id,
            name,
            read_arguments(given),
            given,
            invented_id=invented or is_invented(call_id),
            metadata=metadata,
        )
    notes["~arguments"] = TRUE if given is UNSET else Raw(b'"object"')
    arguments = Raw(b"{}") if given is UNSET else Raw(encode_json(given))
    return ToolCall(call_id, name, arguments, None, invented_id=invented, metadata={FAMILY: notes})


def qualified_name(item: Item) -> Any:
    """Return the function name with its namespace; a single function found by tool search is its own namespace."""
    space = parse_json(item.namespace) if item.namespace is not UNSET else None
    if not isinstance(space, str) or item.name is UNSET or space == item.name:
        return item.name
    return f"{space}{SEPARATOR}{item.name}"


def named_in_space(call: ToolCall, notes: Extra) -> tuple[str, Extra]:
    """Return the name of a call within its namespace, and the key that names the namespace."""
    space = notes.get(NAMESPACE)
    if space is None:
        return call.name, {}
    return call.name.removeprefix(f"{parse_json(space)}{SEPARATOR}"), {"namespace": space}


def decode_reasoning(item: Item) -> Reasoning:
    notes = as_notes(_reasoning_keys(item))
    if item.status is not UNSET:
        notes[STATUS] = item.status
    text = _reasoning_text(item, notes)
    encrypted = item.encrypted_content
    signature = None
    redacted = False
    if isinstance(encrypted, str) and encrypted:
        tagged = foreign_signatures.read_reasoning_tag(encrypted) if is_tagged(encrypted) else None
        if tagged is None:
            signature = Signature(FAMILY, encrypted, None if item.id is UNSET else item.id)
        else:
            signature, redacted = tagged
            notes[foreign_signatures.TAGGED] = TRUE
    elif encrypted is not UNSET:
        notes[MODELLED + "encrypted_content"] = Raw(encode_json(encrypted))
    if item.id is not UNSET and (signature is None or foreign_signatures.TAGGED in notes):
        notes[ID] = as_json(item.id)
    return Reasoning(text, signature, redacted, {FAMILY: notes} if notes else None)


_SUMMARY = MODELLED + "summary"
_CONTENT = MODELLED + "content"


def _noted_summary(notes: Extra) -> Raw | None:
    """Return the summary as it was written, if the text of the reasoning does not say it."""
    return notes.get(_SUMMARY, notes.get("summary"))


def _reasoning_text(item: Item, notes: Extra) -> str:
    """Return the summaries, or the reasoning itself if an open model shows it; notes lists that hold more than text."""
    summary, content = item.summary, item.content
    if summary is UNSET:
        notes["~summary"] = TRUE
        summary = []
    texts = [part.text for part in summary if isinstance(part, SummaryText)]
    if len(summary) > 1 or not all(map(_is_plain, summary)):
        notes[_SUMMARY] = Raw(encode_json(restore(summary)))
    if content is UNSET:
        return SUMMARY_BREAK.join(texts)
    notes[_CONTENT] = Raw(encode_json(restore(content)))
    text = content if isinstance(content, str) else "".join(getattr(part, "text", "") for part in content)
    shown = SUMMARY_BREAK.join(texts)
    if text and shown not in {"", text}:
        notes.pop(_SUMMARY, None)
        notes["summary"] = Raw(encode_json(restore(summary)))  # one text crosses, and the reasoning says more
    elif text and _SUMMARY not in notes:
        notes[_SUMMARY] = Raw(encode_json(restore(summary)))
    return text or shown


def with_content_left_out(metadata: Metadata | None) -> Metadata | None:
    """Return the notes on reasoning whose summary crossed: a stream that had it first cannot replace it."""
    notes = family_notes(FAMILY, metadata)
    if "summary" not in notes:
        return metadata
    swapped = {"summary": _SUMMARY, _CONTENT: "content"}
    return {FAMILY: {swapped.get(key, key): value for key, value in notes.items()}}


SUMMARY_BREAK = "\n\n"
"""The separator between the parts of a summary in one text."""


def _is_plain(part: Any) -> bool:
    return isinstance(part, SummaryText) and part.extra is UNSET and bool(part.text)


def decode_result(call_id: str, name: str, output: Any, metadata: Metadata | None) -> ToolResult:
    if type(output) is str:
        error = read_error(output) if output.startswith(ERROR_START) else UNSET
        if error is not UNSET:
            return ToolResult(call_id, name, "error", error, metadata=metadata)
        return ToolResult(call_id, name, "text", output, metadata=metadata)
    parts: Any = tuple([decode_part(part) for part in output])
    first = parts[0] if len(parts) > 1 else None
    if type(first) is Text and first.metadata is None:
        error = read_error(first.text)
        if isinstance(error, str):
            return ToolResult(call_id, name, "error", None, (Text(error), *parts[1:]), metadata=metadata)
    return ToolResult(call_id, name, "multimodal", None, parts, metadata=metadata)


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


class ItemEncoder(PartEncoder):
    """Encodes items in order: for the input of a request, or for the output to a client."""

    _to_client: bool
    _seed: str
    _custom: set[str]
    _client: dict[str, str] | None = None
    """Ids of calls that are items of tools run by the client -> type of the item."""
    _approvals: dict[str, str] | None = None
    """Ids of calls that ask for an approval -> ids of the approval requests they represent."""
    _invented: int = 0
    _ids: str = ""
    """Prefix of the ids invented for items without one."""

    def __init__(
        self, log: LossLog, *, native: bool = False, marks: bool = False, to_client: bool = False, seed: str = ""
    ) -> None:
        super().__init__(log, native, marks)
        self._to_client = to_client
        self._seed = seed
        self._custom = set()

    def usual_text(self, text: str) -> WireValue:
        """Encode a text of the model that has no notes of this family."""
        if not self._to_client:
            return Item(UNSET, "assistant", text)
        if self._native:
            return Item(UNSET, "assistant", [OutputText(text)])
        # A strict client expects both lists on every text.
        content: list[Any] = [OutputText(text, NOTHING, NOTHING)]
        return Item("message", "assistant", content, self._item_id("msg"), status=COMPLETED)

    def usual_call(self, call: ToolCall) -> WireValue:
        """Encode a complete function call that has no notes of this family."""
        if call.name == APPROVAL and not self._to_client and approval_id(call) is not None:
            return self._client_call(call, APPROVAL, {})
        text = arguments_as_text(call, native=self._native)
        if not self._to_client:
            return Item("function_call", UNSET, UNSET, UNSET, call.id, call.name, text)
        if self._native:
            return Item("function_call", UNSET, UNSET, UNSET, call.id, call.name, text or "{}")
        item_id = self._item_id("fc")
        return Item("function_call", UNSET, UNSET, item_id, call.id, call.name, text or "{}", status=COMPLETED)

    def message(self, content: Any, notes: Extra) -> WireValue:
        spelled = spelling_of(notes)
        further: Extra = {"phase": notes["phase"]} if "phase" in notes else {}
        if self._to_client and not self._native:
            item_id: Any = parse_json(notes[ID]) if ID in notes else self._item_id("msg")
            item = Item("message", "assistant", content, item_id, status=COMPLETED)
            return spliced(item, further) if further else item
        if not self._native:
            # Ids name stored items: if nothing is stored, the API would look for an item that does not exist.
            item = Item(role="assistant", content=content)
            return spliced(item, further) if further else item
        typed = spelled in {TYPED, TYPED_PARTS} or (spelled is None and ID in notes)
        item = Item(
            "message" if typed else UNSET,
            "assistant",
            content,
            parse_json(notes[ID]) if ID in notes else UNSET,
            status=notes.get("~status", UNSET),
        )
        further.update(inner_extra(notes, "item") or {})
        return spliced(item, further) if further else item

    def _item_id(self, prefix: str) -> str:
        if not self._ids:
            self._ids = invent_id(self._seed, 0).removesuffix("0")
        self._invented += 1
        return f"{prefix}_{self._ids}{self._invented - 1}"

    def with_carrier(self, part: Text | Image | ToolCall, item: WireValue) -> list[WireValue]:
        """Return an item, and the one that carries its signature to a client and back, never to a provider (law 6)."""
        signature = part.signature
        items = [] if item is None else [item]
        if signature is None:
            return items
        notes = family_notes(FAMILY, part.metadata)
        if foreign_signatures.CARRIER in notes and (self._native or self._to_client):
            return [notes[foreign_signatures.CARRIER], *items]
        if foreign_signatures.CARRIER_BEHIND in notes and (self._native or self._to_client):
            return [*items, notes[foreign_signatures.CARRIER_BEHIND]]
        if not self._to_client:
            drop_signature(part, signature, self._log)
            return items
        return [foreign_signatures.carrier_of(part, signature, self._item_id("rs")), *items]

    def call(self, call: ToolCall) -> WireValue:
        if call.custom:
            self._custom.add(call.id)
        if call.cache is not None:
            self._log.drop(call, "cache", "cache mark", "a call takes no cache breakpoint")
        notes = family_notes(FAMILY, call.metadata)
        if not (notes or call.custom or call.incomplete):
            return self.usual_call(call)
        kind = client_kind(call, notes)
        if kind is not None:
            return self._client_call(call, kind, notes)
        item_id: Any = UNSET
        status: Any = UNSET
        if self._native:
            item_id = parse_json(notes[ID]) if ID in notes else UNSET
        elif self._to_client:
            item_id = parse_json(notes[ID]) if ID in notes else self._item_id("ctc" if call.custom else "fc")
            status = INCOMPLETE if call.incomplete else COMPLETED
        name, space = named_in_space(call, notes)
        further = (notes if self._native else _public(notes)) | space
        item = Item(
            "custom_tool_call" if call.custom else "function_call",
            id=item_id,
            call_id=_call_id(call.id, notes) if self._native else call.id,
            name=UNSET if "~name" in notes and self._native else name,
            arguments=UNSET if call.custom else self._arguments(call, notes),
            input=(UNSET if "~input" in notes else call.arguments_text or "") if call.custom else UNSET,
            status=status,
        )
        return spliced(item, further) if further else item

    def _client_call(self, call: ToolCall, kind: str, notes: Extra) -> WireValue:
        if self._client is None:
            self._client = {}
        if kind != SEARCH_CALL:  # some clients answer it like a function
            self._client[call.id] = kind
        if kind == APPROVAL:
            self._approvals = {**(self._approvals or {}), call.id: approval_id(call) or call.id}
        if WHOLE in notes and (self._native or not self._to_client):
            return notes[WHOLE]
        new_id = self._item_id(item_prefix(kind)) if self._to_client and kind != APPROVAL else None
        return write_client_call(call, kind, new_id)

    def _client_result(self, result: ToolResult, kind: str, notes: Extra) -> WireValue:
        if WHOLE in notes:
            return notes[WHOLE]
        if kind == APPROVAL:
            return write_approval(result, (self._approvals or {})[result.tool_call_id])
        written = write_client_result(result, kind)
        if written is None:
            self._log.drop(
                result, "", "result", "this API takes a picture of the screen, and nothing else, as the answer"
            )
        return written

    def _arguments(self, call: ToolCall, notes: Extra) -> Any:
        spelled = parse_json(notes["~arguments"]) if "~arguments" in notes and self._native else None
        if spelled == "object":
            return call.arguments
        text = arguments_as_text(call, native=self._native)
        if spelled is True:
            return UNSET
        return text or ("{}" if self._to_client and not self._native and not call.incomplete else "")

    def reasoning(self, part: Reasoning, following: AnyPart | None) -> list[WireValue]:
        notes, signature = family_notes(FAMILY, part.metadata), part.signature
        if self._native:
            return [self._native_reasoning(part, notes)]
        minted = signature is not None and signature.family == FAMILY and bool(signature.data)
        if self._to_client:
            return [self._encode_reasoning_item(part, notes)]
        if signature is None or not minted:
            owner = "another provider" if signature is None or not signature.data else signature.family
            self._log.drop(
                part, "", "reasoning", f"only {owner} can verify it; this API takes back only what it encrypted"
            )
            return []
        if following is None:
            self._log.drop(part, "", "reasoning", "this API refuses reasoning that nothing follows")
            return []
        item_id: Any = signature.id if signature.id is not None and signature.id.startswith("rs") else UNSET
        summary = _noted_summary(notes)
        written: Any = foreign_signatures.summary_of(part.text) if summary is None else summary
        return [Item("reasoning", id=item_id, summary=written, encrypted_content=signature.data)]

    def _native_reasoning(self, part: Reasoning, notes: Extra) -> WireValue:
        signature = part.signature
        encrypted: Any = UNSET
        item_id: Any = UNSET
        if signature is not None and foreign_signatures.TAGGED in notes:
            encrypted = foreign_signatures.tag_of_reasoning(part, signature)
        elif signature is not None:
            encrypted = signature.data
            item_id = UNSET if signature.id is None else signature.id
        if ID in notes:
            item_id = parse_json(notes[ID])
        absent = "~summary" in notes or _noted_summary(notes) is not None
        summary: Any = UNSET if absent else foreign_signatures.summary_of(part.text)
        item = Item("reasoning", id=item_id, summary=summary, encrypted_content=encrypted)
        if "~summary" in notes:  # the noted list only says that the text is not a summary
            notes = {key: value for key, value in notes.items() if key != _SUMMARY}
        return spliced(item, notes) if notes else item

    def _encode_reasoning_item(self, part: Reasoning, notes: Extra) -> WireValue:
        signature = part.signature
        encrypted: Any = UNSET
        item_id = self._item_id("rs")
        if signature is not None and signature.data:
            encrypted = foreign_signatures.tag_of_reasoning(part, signature)
            if signature.family == FAMILY:
                encrypted = signature.data
                item_id = signature.id or item_id
        summary = _noted_summary(notes)
        written: Any = foreign_signatures.summary_of(part.text) if summary is None else summary
        return Item("reasoning", id=item_id, summary=written, encrypted_content=encrypted)

    def result(self, result: ToolResult) -> WireValue:
        if result.metadata is None and result.kind == "text" and not result.parts and result.cache is None:
            value = result.value_held
            if type(value) is str and not self._custom and self._client is None:
                call_id = result.tool_call_id
                return Item("function_call_output", UNSET, UNSET, UNSET, call_id, UNSET, UNSET, UNSET, value)
        if result.cache is not None:
            self._log.drop(result, "cache", "cache mark", "an output takes no cache breakpoint")
        notes = family_notes(FAMILY, result.metadata)
        if WHOLE in notes or (self._client is not None and result.tool_call_id in self._client):
            return self._client_result(result, (self._client or {}).get(result.tool_call_id, ""), notes)
        kind = "custom_tool_call_output" if result.tool_call_id in self._custom else "function_call_output"
        output = self._output(result)
        if not notes or not self._native:
            return Item(kind, call_id=result.tool_call_id, output=output)
        if "~type" in notes:
            kind = parse_json(notes["~type"])
        return spliced(Item(kind, call_id=_call_id(result.tool_call_id, notes), output=output), notes)

    def _output(self, result: ToolResult) -> Any:
        kind = result.kind
        if result.parts or kind == "multimodal":
            return self._output_parts(result)
        if kind == "text":
            return result.value_held if type(result.value_held) is str else result.value
        return write_error(result.value) if kind == "error" else compact_text(result.value_held)

    def _output_parts(self, result: ToolResult) -> Any:
        if result.kind != "error":
            wires = [wire for part in result.parts if (wire := self.encode_part(part, "tool")) is not None]
            return wires if wires or self._native else ""
        text = write_words([part.text for part in result.parts if isinstance(part, Text)], result, self._log)
        others = [part for part in result.parts if not isinstance(part, Text)]
        media = [wire for part in others if (wire := self.encode_part(part, "tool")) is not None]
        return [self.encode_part(Text(text), "tool"), *media] if media else text


def _public(notes: Extra) -> Extra:
    """Return the further keys of an item, without spelling and state: `namespace`, `caller`."""
    return {key: value for key, value in notes.items() if not key.startswith("~")}


def _call_id(call_id: str, notes: Extra) -> Any:
    spelled = notes.get("~call_id")
    return call_id if spelled is None else UNSET if bytes(spelled) == b"true" else ""
