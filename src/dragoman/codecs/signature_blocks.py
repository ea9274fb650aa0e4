"""Signatures in formats whose clients return reasoning blocks unchanged: tagged blocks hold those that have no field.

A tagged block is of one of these kinds: reasoning of another family, readable or redacted; the signature of the next
block, or, if a stream sent it last, of the previous block; or a signed empty text. The signature of a call names the
call, so that clients that move thinking to the front or the end do not separate the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from dragoman.codecs.signature_tags import (
    BOUND,
    BOUND_AFTER,
    SIGNED,
    SIGNED_AFTER,
    TAG,
    bind_to_call,
    bound_call,
    is_about,
    make_tag,
    read_tag,
)
from dragoman.ir import AnyPart, Metadata, Reasoning, Signature, Text, ToolCall
from dragoman.ir.notes import Extra

_READABLE = "reasoning"
_REDACTED = "redacted"
_NEXT = "next"
_PREVIOUS = "previous"
_EMPTY_TEXT = "text"

_UNBOUND = (SIGNED["~tagged"], SIGNED_AFTER["~tagged"])
_BEHIND = (SIGNED_AFTER["~tagged"], BOUND_AFTER["~tagged"])

Block = TypeVar("Block")


def _base(kind: str) -> str:
    return kind.partition("=")[0]


def beside_calls(
    blocks: Sequence[Block],
    tag_of: Callable[[Block], str | None],
    call_id_of: Callable[[Block], str | None],
    retagged: Callable[[Block, str], Block],
) -> Sequence[Block]:
    """Return the blocks or items of a message, with the signature of each call next to its call again.

    `tag_of` and `call_id_of` return None for blocks that have no tag or are not a call; `retagged` returns a carrier
    with another tag. A signature that names none of these calls stays where it is.
    """
    for block in blocks:
        if tag_of(block) is not None:
            break
    else:
        return blocks  # as in most messages
    tags = [tag_of(block) for block in blocks]
    owners = [None if tag is None else bound_call(tag) for tag in tags]
    if not any(owners):
        return blocks
    ids = [call_id_of(block) for block in blocks]
    strays, signed = _find_strays(tags, owners, ids)
    if not strays:
        return blocks
    # Ids may repeat in a long history: each call without a carrier takes the next one that names it.
    carriers: dict[int, int] = {}
    for place, call_id in enumerate(ids):
        if call_id is not None and place not in signed and strays.get(call_id):
            carriers[place] = strays[call_id].popleft()
    taken = set(carriers.values())
    copies = {tags[place] for place in taken}
    moved: list[Block] = []
    for place, block in enumerate(blocks):
        if place in carriers:
            carrier = blocks[carriers[place]]
            found = read_tag(str(tags[carriers[place]]))
            tag = None if found is None else make_tag(bind_to_call(_NEXT, str(ids[place])), found[1])
            moved.append(carrier if tag is None else retagged(carrier, tag))
        if place not in taken and not (owners[place] is not None and tags[place] in copies):
            moved.append(block)
    return moved


def _find_strays(
    tags: Sequence[str | None], owners: Sequence[str | None], ids: Sequence[str | None]
) -> tuple[dict[str, deque[int]], set[int]]:
    """Return carriers that are not next to their call, by call id; and the indices of calls whose carrier is."""
    strays: dict[str, deque[int]] = {}
    signed: set[int] = set()
    known = set(ids)
    for place, (tag, owner) in enumerate(zip(tags, owners, strict=True)):
        if tag is None or owner is None or owner not in known:
            continue
        beside = place + (-1 if tag.startswith(f"{TAG}{_PREVIOUS}=") else 1)
        if 0 <= beside < len(ids) and ids[beside] == owner and beside not in signed:
            signed.add(beside)
        else:
            strays.setdefault(owner, deque()).append(place)
    return strays, signed


class SignatureBlocks(Generic[Block]):
    """The tagged blocks of one family, built from the text and the signature of a reasoning block."""

    def __init__(self, family: str, block: Callable[[str, str], Block]) -> None:
        self._family = family
        self._block = block
        self._before: Metadata = {family: SIGNED}

    def tagged_reasoning(self, part: Reasoning, signature: Signature) -> Block:
        """Return a block for reasoning of another family."""
        return self._block(part.text, make_tag(_REDACTED if part.redacted else _READABLE, signature))

    def tagged_signature(self, part: AnyPart, signature: Signature) -> Block:
        """Return a block with the signature of a part that has no slot for one; it also replaces an empty text."""
        kind = _EMPTY_TEXT if self.stands_alone(part) else self._kind(_NEXT, part)
        return self._block("", make_tag(kind, signature))

    def stands_alone(self, part: AnyPart) -> bool:
        """Whether the block with its signature replaces this part: an empty text."""
        return type(part) is Text and not part.text

    def trailing_signature(self, part: AnyPart, signature: Signature) -> Block:
        """Return a block with the signature of the part before it: a stream may know it only after sending the part."""
        return self._block("", make_tag(self._kind(_PREVIOUS, part), signature))

    def _kind(self, kind: str, part: AnyPart) -> str:
        """Return the kind with the id of a call, unless its tag came without one: then it is sent back without."""
        is_named = isinstance(part, ToolCall) and self._note(part) not in _UNBOUND
        return bind_to_call(kind, part.id) if is_named and isinstance(part, ToolCall) else kind

    def _note(self, part: Text | ToolCall) -> Raw | None:
        return None if part.metadata is None else part.metadata.get(self._family, {}).get("~tagged")

    def stands_behind(self, part: Text | ToolCall) -> bool:
        """Whether the tagged block of this part came after it."""
        return self._note(part) in _BEHIND

    def read_trailing(self, text: str, tag: str) -> Signature | None:
        """Return the signature in a tagged block after its part; None for any other block."""
        found = None if text else read_tag(tag)
        return found[1] if found is not None and _base(found[0]) == _PREVIOUS else None

    def read_tagged(self, text: str, tag: str) -> Reasoning | Text | Signature | None:
        """Return the content of a tagged block; a bare `Signature` is the next part's. None: not one of ours."""
        found = read_tag(tag)
        if found is None:
            return None
        kind, signature = found
        if kind in {_READABLE, _REDACTED}:
            return Reasoning(text, signature, redacted=kind == _REDACTED, metadata=self._before)
        if text:
            return None
        if kind == _EMPTY_TEXT:
            return Text("", signature=signature, metadata=self._before)
        return signature if _base(kind) == _NEXT else None

    def signed(self, part: AnyPart, signature: Signature, tag: str = "") -> AnyPart | None:
        """Return the part with its signature; None if it cannot have had one, or the tag names another call."""
        how = BOUND if bound_call(tag) is not None else SIGNED
        return self._signed(part, signature, how) if is_about(tag, part) else None

    def sign_last(self, parts: list[AnyPart], signature: Signature | None, tag: str = "") -> bool:
        """Add the signature to the last part if it belongs to that part; return whether it does."""
        if signature is None or not parts or not is_about(tag, parts[-1]):
            return False
        signed = self._signed(parts[-1], signature, BOUND_AFTER if bound_call(tag) is not None else SIGNED_AFTER)
        if signed is None:
            return False
        parts[-1] = signed
        return True

    def _signed(self, part: AnyPart, signature: Signature, how: Extra) -> AnyPart | None:
        if not isinstance(part, Text | ToolCall) or part.signature is not None:
            return None
        if type(part) is Text and not part.text:
            return None
        known = part.metadata or {}
        notes = {**known.get(self._family, {}), **how}
        return replace(part, signature=signature, metadata={**known, self._family: notes})
