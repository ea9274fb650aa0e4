"""Objects of the vendors' SDKs, as bodies or in them. Not compiled: a compiled class cannot be a runtime protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SdkObject(Protocol):
    """An object of a vendor's SDK: a Pydantic model, which can write itself as JSON values."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool, warnings: bool) -> Any: ...


def as_json_values(value: Any) -> Any:
    """Return an object that JSON does not have as values that it has."""
    if isinstance(value, SdkObject) and not isinstance(value, type):
        try:
            return value.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
        except ValueError as error:  # a field has a value that JSON does not have
            raise TypeError(str(error)) from error
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"an object of {type(value).__module__}.{type(value).__qualname__}")
