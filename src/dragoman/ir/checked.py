"""The classes that `dragoman` exports: those of `dragoman.ir`, with checks where a value is built.

`dragoman.Text("hi")` checks its arguments and returns a `dragoman.ir.Text`, the very class that decoders build without
checks. Everywhere else the exported class stands for that class: `isinstance`, `match`, `issubclass`, singledispatch,
`==` and the types that msgspec decodes treat both alike. Only `type(value) is dragoman.Text` does not hold. See
docs/decisions/0020-checked-values.md.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from dragoman import ir
from dragoman.ir.values import construct_checked

NAMES: Final = (
    "Audio",
    "Cache",
    "Citation",
    "Completion",
    "CustomTool",
    "Document",
    "Failure",
    "Finish",
    "Image",
    "Location",
    "Logprobs",
    "Message",
    "Opaque",
    "ProviderTool",
    "Reasoning",
    "ReasoningSettings",
    "Refusal",
    "Request",
    "SearchResult",
    "ServerToolCall",
    "ServerToolResult",
    "Signature",
    "StructuredOutput",
    "Text",
    "TokenLogprob",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolResult",
    "Usage",
    "WithheldCall",
)
"""The exported classes. Their types for type checkers stand in dragoman/__init__.py."""


class Checked(type):
    """Metaclass of the exported classes. `__supertype__` is the class of the values, as in a `typing.NewType`."""

    __supertype__: type[Struct]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return construct_checked(cls.__supertype__, *args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__supertype__)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(getattr(subclass, "__supertype__", subclass), cls.__supertype__)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.__dict__["__supertype__"], name)

    def __dir__(cls) -> list[str]:
        return dir(cls.__supertype__)

    def __eq__(cls, other: object) -> bool:
        return cls is other or other is cls.__supertype__

    def __hash__(cls) -> int:
        return hash(cls.__supertype__)


def _checked(kind: type[Struct]) -> Checked:
    described = {"__doc__": kind.__doc__, "__module__": "dragoman", "__slots__": (), "__supertype__": kind}
    return Checked(kind.__name__, (), described)


globals().update({name: _checked(getattr(ir, name)) for name in NAMES})
