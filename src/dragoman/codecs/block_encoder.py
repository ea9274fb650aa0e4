"""Encodes parts as blocks, for formats whose clients echo tagged reasoning blocks."""

from __future__ import annotations

from typing import ClassVar, Protocol

from dragoman.codecs.common_losses import drop_signature, invent_content
from dragoman.codecs.part_handlers import name_of_part
from dragoman.codecs.reading import WireValue, spliced
from dragoman.codecs.search_results import search_as_text
from dragoman.codecs.shared_tools import SharedTools, cross_hosted
from dragoman.ir import (
    AnyPart,
    Message,
    Opaque,
    Request,
    SearchResult,
    ServerToolCall,
    ServerToolResult,
    Signature,
    Text,
    ToolCall,
)
from dragoman.ir.notes import MODELLED, Extra
from dragoman.losses import LossLog


class Carriers(Protocol):
    """The family's blocks for a signature that has no field."""

    def tagged_signature(self, part: AnyPart, signature: Signature, /) -> WireValue: ...
    def trailing_signature(self, part: AnyPart, signature: Signature, /) -> WireValue: ...
    def stands_behind(self, part: Text | ToolCall, /) -> bool: ...


class BlockEncoder:
    """Encodes the parts of one body: of `request`, or of an answer to a client.

    A part that the format cannot hold is logged, and gives no block.
    """

    family: ClassVar[str]
    signatures: ClassVar[Carriers]
    hosted: ClassVar[SharedTools]

    _log: LossLog
    _request: Request | None
    _native: bool
    """The body came from this family: all of it may be sent again exactly as it was."""
    hoisted: tuple[Message, ...] = ()
    """System messages that cannot be sent where they are."""
    unsent: list[Message] | None = None
    """The model's turns of which nothing can be sent."""

    # By position: the interpreter makes a dictionary of keywords for every object of a class.
    def __init__(self, log: LossLog, request: Request | None = None, native: bool = False) -> None:  # noqa: FBT001, FBT002
        self._log = log
        self._request = request
        self._native = native

    @property
    def _to_client(self) -> bool:
        return self._request is None

    def with_carrier(self, part: Text | ToolCall, block: WireValue) -> list[WireValue]:
        """Return a block, and the one that carries its signature to a client and back, never to a provider (law 6)."""
        signature = part.signature
        if signature is None:
            return [block]
        notes = {} if part.metadata is None else part.metadata.get(self.family, {})
        if not self._to_client and "~tagged" not in notes:
            drop_signature(part, signature, self._log)
            return [block]
        if type(part) is Text and not part.text:
            return [self.signatures.tagged_signature(part, signature)]
        if self.signatures.stands_behind(part):
            return [block, self.signatures.trailing_signature(part, signature)]
        return [self.signatures.tagged_signature(part, signature), block]

    def encode_opaque(self, part: Opaque, role: str) -> list[WireValue]:  # noqa: ARG002
        if part.origin == self.family:
            return [part.block_held]
        return self._lose(part, "it belongs to the provider that made it")

    def encode_search_result(self, part: SearchResult, role: str) -> list[WireValue]:
        """Return the family's block, or text in assistant messages, which may not hold such a block."""
        if role == "assistant" and not self._native:
            return self.encode_part(search_as_text(part, self._log), role)
        return [self.write_search_result(part)]

    def write_search_result(self, part: SearchResult) -> WireValue:
        """Return the family's block for a search result."""
        raise NotImplementedError

    def encode_part(self, part: AnyPart, role: str) -> list[WireValue]:
        """Return the blocks of one part."""
        raise NotImplementedError

    def encode_hosted(self, part: ServerToolCall | ServerToolResult) -> list[WireValue]:
        """Encode a tool use that another provider ran: as a block of this format for a client, as text for the API."""
        wire = cross_hosted(part, self._log, self.hosted if self._to_client else None)
        if type(wire) is Text:
            return self.encode_part(wire, "assistant")
        return [] if wire is None else [wire]

    def refuse(self, part: AnyPart, role: str) -> list[WireValue]:
        return self._lose(part, f"a {role} message of this API cannot hold it")

    def _lose(self, part: AnyPart, why: str) -> list[WireValue]:
        self._log.drop(part, "", name_of_part(part), why)
        return []

    def _hoist(self, message: Message) -> None:
        self.hoisted = (*self.hoisted, message)
        self._log.degrade(message, "", "place of a system message", "it moves to the system field, at the front")

    def _lose_message(self, message: Message) -> bool:
        """Report a message that is empty or wholly lost; return whether a text must be sent in its place."""
        if not message.content_held:
            self._log.drop(message, "", "empty message", "this API refuses messages without content")
        elif message.role == "user":
            invent_content(message, self._log)
            return True
        elif self.unsent is None:
            self.unsent = [message]
        else:
            self.unsent.append(message)
        return False

    def _lose_keys(self, message: Message, notes: Extra | None) -> None:
        """Report the keys of a message that is not sent as a separate message."""
        for key in notes or ():
            if not key.startswith("~"):
                self._log.drop(message, key, key, "its message joins another one or is not sent")


def with_keys(wire: WireValue, notes: Extra) -> WireValue:
    """Return the message with its further keys; notes that are only about spelling add nothing."""
    return spliced(wire, notes) if any(key[:1] != "~" or key.startswith(MODELLED) for key in notes) else wire
