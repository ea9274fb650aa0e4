"""Things Responses has no field for, and the tagged reasoning items that carry them.

A client of this format replays reasoning items untouched, so `encrypted_content` of one is where data of other families
travels: dragoman:1:<kind>:<family>:<id>:<data>. The kinds: the item is reasoning of that family, readable or redacted;
it is the signature of the item that follows it, or, where a stream told it last, of the item before it; it is a text
without any characters, signed. `kind=<call id>` is about that call, wherever the client has put it. Such an item is
never sent to a provider unless it came in a request of this very format. Errors of tools are, as in Chat, the JSON text
{"error": …}.
"""

from __future__ import annotations

from msgspec import Raw, UnsetType
from msgspec.structs import replace

from dragoman.codecs.openai_responses.parts import own
from dragoman.codecs.openai_responses.profile import FAMILY
from dragoman.codecs.openai_responses.wire import Item, SummaryText
from dragoman.codecs.signature_tags import bound, is_tagged, read_tag, tagged
from dragoman.ir import AnyPart, Reasoning, Signature, Text, ToolCall
from dragoman.ir.notes import Extra

TAGGED = "~tagged"
"""Note on reasoning: its encrypted content is a tag of ours."""
CARRIER = "~carrier"
"""Note on a signed part: the item that carried the signature, before it."""
CARRIER_BEHIND = "~carrier:behind"
"""The same, where that item stood behind it."""

_READABLE = "reasoning"
_REDACTED = "redacted"
_NEXT = "next"
_PREVIOUS = "previous"
_EMPTY_TEXT = "text"


def tag_of_reasoning(part: Reasoning, signature: Signature) -> str:
    """The encrypted content for reasoning that another family signed."""
    return tagged(_REDACTED if part.redacted else _READABLE, signature)


def carrier_of(part: AnyPart, signature: Signature, item_id: str | UnsetType) -> Item:
    """The item that carries the signature of the next one. An empty text is represented by it alone."""
    empty = type(part) is Text and not part.text
    return _carrier(_EMPTY_TEXT if empty else _kind(_NEXT, part), signature, item_id)


def trailing_carrier(part: AnyPart, signature: Signature, item_id: str | UnsetType) -> Item:
    """The signature of the item before it, for streams: there it may be known only when that item has been told."""
    return _carrier(_kind(_PREVIOUS, part), signature, item_id)


def _kind(kind: str, part: AnyPart) -> str:
    """The signature of a call names the call: clients may move the one away from the other."""
    return bound(kind, part.id) if isinstance(part, ToolCall) else kind


def _carrier(kind: str, signature: Signature, item_id: str | UnsetType) -> Item:
    return Item("reasoning", id=item_id, summary=[], encrypted_content=tagged(kind, signature))


def read_reasoning_tag(text: str) -> tuple[Signature, bool] | None:
    """The signature of reasoning of another family, and whether it is redacted; None for every other tag."""
    found = read_tag(text)
    return (found[1], found[0] == _REDACTED) if found is not None and found[0] in {_READABLE, _REDACTED} else None


def read_carrier(item: Item) -> tuple[str, Signature] | None:
    """(kind, signature) of an item that only carries a signature; None for every other item."""
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
    """The part with its signature back; None when it cannot have had one."""
    if not isinstance(part, Text | ToolCall) or part.signature is not None:
        return None
    notes: Extra = {**own(part.metadata), note: carrier}
    return replace(part, signature=signature, metadata={**(part.metadata or {}), FAMILY: notes})


def summary_of(text: str) -> list[SummaryText]:
    return [SummaryText(text)] if text else []
