"""Functions generated as source from our own tables: straight-line code costs less than a loop over the rows.

A compiled wheel contains these functions too (compiling/generated.py). They are found by their source, so a table that
was changed since the build never gets a function of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from msgspec import UNSET

_BUILT = "dragoman.codecs.generated_functions"


def _made_by_the_build() -> Mapping[str, Callable[[dict[str, Any]], Callable[..., Any]]]:
    """Return what a compiled wheel contains: source -> a maker, which returns the function for given globals."""
    try:
        makers: Mapping[str, Callable[[dict[str, Any]], Callable[..., Any]]] = import_module(_BUILT).MAKERS
    except ModuleNotFoundError as error:
        if error.name != _BUILT:
            raise
        return {}
    return makers


_makers = _made_by_the_build()


def compile_function(source: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Return the function `generated` that the source defines; `names` are its globals, `name` is for tracebacks."""
    # The source consists of names in our own tables, never of content of a body.
    names["UNSET"] = UNSET
    make = _makers.get(source)
    if make is not None:
        return make(names)
    exec(compile(source, f"<{name}>", "exec"), names)  # noqa: S102
    function: Callable[..., Any] = names["generated"]
    return function
