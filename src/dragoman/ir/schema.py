"""The JSON Schema of the intermediate format, generated from its types."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, get_args

import msgspec

from dragoman.ir import VERSION, AnyEvent, Completion, Failure, Message, Request

ROOTS: tuple[type[msgspec.Struct], ...] = (Request, Completion, Failure, Message, *get_args(AnyEvent))
"""Types that are stored or sent on their own."""


def json_schema() -> dict[str, Any]:
    references, definitions = msgspec.json.schema_components(ROOTS, ref_template="#/$defs/{name}")
    for definition in definitions.values():
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dragoman:intermediate-format:{VERSION}",
        "title": "dragoman intermediate format",
        "version": VERSION,
        "anyOf": list(references),
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def schema_text() -> bytes:
    """The schema as in docs/intermediate-format.schema.json."""
    return msgspec.json.format(msgspec.json.encode(json_schema()), indent=2) + b"\n"
