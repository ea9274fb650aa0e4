"""Tagged reasoning items, which carry what Responses has no field for.

Clients of this format replay reasoning items untouched, so data of other families travels in `encrypted_content`:
dragoman:1:<kind>:<family>:<id>:<data>. By its kind, the item is reasoning of that family, readable or redacted; or the
signature of the next item, or of the previous one if a stream sent it last; or an empty text that is signed.
`kind=<call id>` refers to that call, wherever the client has put it. Such an item is never sent to a provider unless
it came in a request of this same format. As in Chat, tool errors are the JSON text {"error": …}.
"""

from __future__ import annotations

from msgspec import Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import Item, SummaryText
from dragoman.codecs.signature_tags import bind_to_call, is_tagged, make_tag, read_tag
from dragoman.ir import AnyPart, Image, Reasoning, Signature, Text, ToolCall
from dragoman.ir.notes import Extra, family_notes

TAGGED = "~tagged"
"""Note on reasoning: its encrypted content is a tag of ours."""
CARRIER = "~carrier"
"""Note on a signed part: the item that carried the signature, before it."""
CARRIER_BEHIND = "~carrier:behind"
"""The same if that item came after the part."""

_READABLE = "reasoning"
_REDACTED = "redacted"
_NEXT = "next"
_PREVIOUS = "previous"
_EMPTY_TEXT = "text"


def tag_of_reasoning(part: Reasoning, signature: Signature) -> str:
    """Return the encrypted content for reasoning that another family signed."""
    return make_tag(_REDACTED if part.redacted else _READABLE, signature)


def carrier_of(part: AnyPart, signature: Signature, item_id: str | UnsetType) -> Item:
    """Return the item that carries the signature of the next one; it alone represents an empty text."""
    empty = type(part) is Text and not part.text
    return _carrier(_EMPTY_TEXT if empty else _kind(_NEXT, part), signature, item_id)


def trailing_carrier(part: AnyPart, signature: Signature, item_id: str | UnsetType) -> Item:
    """Return the item that carries the signature of the previous one, for streams, where it may come last."""
    return _carrier(_kind(_PREVIOUS, part), signature, item_id)


def _kind(kind: str, part: AnyPart) -> str:
    """Return the kind, with the id of a call: clients may move the signature away from its call."""
    return bind_to_call(kind, part.id) if isinstance(part, ToolCall) else kind


def _carrier(kind: str, signature: Signature, item_id: str | UnsetType) -> Item:
    return Item("reasoning", id=item_id, summary=[], encrypted_content=make_tag(kind, signature))


def read_reasoning_tag(text: str) -> tuple[Signature, bool] | None:
    """Return the signature of another family's reasoning, and whether it is redacted; None for any other tag."""
    found = read_tag(text)
    return (found[1], found[0] == _REDACTED) if found is not None and found[0] in {_READABLE, _REDACTED} else None


def read_carrier(item: Item) -> tuple[str, Signature] | None:
    """Return (kind, signature) of an item that only carries a signature; None for any other item."""
    if item.summary or not is_tagged(item.encrypted_content):
        return None
    found = read_tag(str(item.encrypted_content))
    return found if found is not None and _base(found[0]) in {_NEXT, _PREVIOUS, _EMPTY_TEXT} else None


def _base(kind: str) -> str:
    return kind.partition("=")[0]


def is_behind(kind: str) -> bool:
    return _base(kind) == _PREVIOUS


def is_empty_text(kind: str) -> bool:
    return kind == _EMPTY_TEXT


def signed(part: AnyPart, signature: Signature, carrier: Raw, note: str = CARRIER) -> AnyPart | None:
    """Return the part with its signature; None if it cannot have had one."""
    if not isinstance(part, Text | Image | ToolCall) or part.signature is not None:
        return None
    notes: Extra = {**family_notes(FAMILY, part.metadata), note: carrier}
    return replace(part, signature=signature, metadata={**(part.metadata or {}), FAMILY: notes})


def summary_of(text: str) -> list[SummaryText]:
    return [SummaryText(text)] if text else []
