"""Functions from source that our own tables give: straight code, where a loop over the rows would cost more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET


def compiled(source: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Return the function `generated` that the source defines; `names` are its globals, `name` is for tracebacks."""
    # The source consists of names in our own tables, never of content of a body.
    names["UNSET"] = UNSET
    exec(compile(source, f"<{name}>", "exec"), names)  # noqa: S102
    function: Callable[..., Any] = names["generated"]
    return function
