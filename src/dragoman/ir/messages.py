"""Messages: a role and ordered parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dragoman.ir.parts import AnyPart, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.ir.values import Metadata, Value

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

if TYPE_CHECKING:

    class Parts:
        def __get__(self, instance: object, owner: type | None = None, /) -> tuple[AnyPart, ...]: ...
        def __set__(self, instance: object, value: str | tuple[AnyPart, ...], /) -> None: ...

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

    @property
    def text(self) -> str:
        """All text, joined without separators."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def refusal(self) -> str | None:
        texts = [part.text for part in self.parts if isinstance(part, Refusal)]
        return "".join(texts) if texts else None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


content_held: Callable[[Message], str | tuple[AnyPart, ...]] = Message.__dict__["parts"].__get__
"""The parts as they are held: a bare string, or the tuple."""


def _read_parts(message: Message) -> tuple[AnyPart, ...]:
    content = content_held(message)
    return (Text(content),) if type(content) is str else content  # type: ignore[return-value]


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
_message.parts = property(_read_parts)
_message.__eq__ = _same_message
_message.__hash__ = None
