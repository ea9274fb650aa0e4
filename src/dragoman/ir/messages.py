"""Messages: a role and ordered parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from dragoman.ir.content import read_parts
from dragoman.ir.parts import AnyPart, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.ir.values import Held, Metadata, Value, construct_checked

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

Content: TypeAlias = str | AnyPart | Mapping[str, Any]
"""One piece of a message: text, a part, or a mapping of the fields of a part, as in {"type": "text", "text": "hi"}."""

if TYPE_CHECKING:

    class Parts:
        def __get__(self, instance: object, owner: type | None = None, /) -> tuple[AnyPart, ...]: ...
        def __set__(self, instance: object, value: str | AnyPart | Sequence[Content], /) -> None: ...

else:
    Parts = str | tuple[AnyPart, ...]


class Message(Value, frozen=True):
    """One message. Content given as a bare string is one `Text`; which of the two it was is kept, because wires differ.

    >>> Message("user", "hi").parts
    (Text(text='hi'),)
    """

    role: Role
    parts: Parts
    name: str | None = None
    metadata: Metadata | None = None

    content_held: ClassVar[Held[str | tuple[AnyPart, ...]]]
    """The parts as they are held: a bare string, or the tuple."""

    @classmethod
    def system(cls, *content: Content | Sequence[Content], name: str | None = None) -> Message:
        """Instructions for the model."""
        return construct_checked(Message, "system", _join_content(content), name)

    @classmethod
    def user(cls, *content: Content | Sequence[Content], name: str | None = None) -> Message:
        """A user message: text, images, documents and audio, as several arguments or as one list."""
        return construct_checked(Message, "user", _join_content(content), name)

    @classmethod
    def assistant(
        cls, *content: Content | Sequence[Content] | None, tool_calls: Sequence[ToolCall] = (), name: str | None = None
    ) -> Message:
        """The model's text and calls: as content in order, or the calls after the text as `tool_calls`."""
        pieces = [piece for piece in content if piece is not None]
        if tool_calls:  # drop an empty text beside calls, which most APIs refuse
            pieces = [*(piece for piece in pieces if piece != ""), list(tool_calls)]
        return construct_checked(Message, "assistant", _join_content(pieces), name)

    @classmethod
    def tool(cls, *results: ToolResult | Mapping[str, Any] | Sequence[ToolResult | Mapping[str, Any]]) -> Message:
        """The results of one turn's calls."""
        return construct_checked(Message, "tool", _join_content(results))

    @property
    def text(self) -> str:
        """All text, joined without separators."""
        content = self.content_held
        if isinstance(content, str):
            return content
        return "".join([part.text for part in content if type(part) is Text])

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def refusal(self) -> str | None:
        texts = [part.text for part in self.parts if isinstance(part, Refusal)]
        return "".join(texts) if texts else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        content = self.content_held
        return () if isinstance(content, str) else tuple([part for part in content if type(part) is ToolCall])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        content = self.content_held
        return () if isinstance(content, str) else tuple([part for part in content if type(part) is ToolResult])


def _join_content(content: Sequence[Any]) -> Any:
    """The pieces as one list; a single string stays a string."""
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    pieces: list[Any] = []
    for piece in content:
        pieces += piece if isinstance(piece, list | tuple) else [piece]
    return pieces


def _same_message(self: Message, other: object) -> bool:
    if type(other) is not Message:
        return NotImplemented  # type: ignore[no-any-return]
    return (
        self.role == other.role
        and self.parts == other.parts
        and self.name == other.name
        and self.metadata == other.metadata
    )


_message: Any = Message
_message.content_held = Message.__dict__["parts"]
_message.parts = property(read_parts)
_message.__eq__ = _same_message
_message.__hash__ = None
