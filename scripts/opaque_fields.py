"""Write docs/opaque-fields.md: wire fields that the intermediate format does not model, most frequent first.

    python scripts/opaque_fields.py        # needs the recorded traffic that the tests use

The counts are of recorded requests and answers that contain such a key or block. The second list comes from the
vendors' SDK types (tests/judges/sdk_gaps.json): documented fields that the wire structs do not even name.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from msgspec import structs

import dragoman
from dragoman.errors import DragomanError
from dragoman.ir import Opaque, ProviderTool
from dragoman.ir.notes import WITHIN, inner_extra
from dragoman.ir.values import Value, encode_json
from tests.support.recordings import load

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "opaque-fields.md"
GAPS = ROOT / "tests" / "judges" / "sdk_gaps.json"
FILES = {
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic-messages",
    "gemini-generate": "gemini",
    "bedrock-converse": "bedrock-converse",
    "ollama-chat": "ollama-chat",
    "cohere-chat": "cohere-chat",
}
"""File of recordings -> format."""
_MOST_ROWS = 60
_SAYS_NOTHING = {b"null", b"[]", b"{}", b'""'}
_NODES = {"Request": "request", "Completion": "answer", "Usage": "usage", "Finish": "finish"}

INTRODUCTION = """\
# What is still opaque

<!-- Written by `python scripts/opaque_fields.py`; do not edit. -->

A wire key without a field in the intermediate format stays in `metadata`; a block without a part is an `Opaque`. Both
return to their own family unchanged; every other family loses them, and the loss is reported. These lists rank them:
the first entries are the next to be modelled.

## By recorded traffic

{bodies} recorded requests and answers of the vendors' own endpoints were read. The numbers are bodies in which the key
or block occurs with a value.

| format | where | key or block | bodies |
|---|---|---|---:|
"""
DOCUMENTED = """
## Documented, and not named by our wire structs

Fields of the vendors' newest SDK types that the usual wire structs do not name: a body that has one is read a second
time, with a wider struct or by lifting. A test compares this list with the SDKs (`tests/judges/test_sdk_fields.py`).
Types with the most fields come first.

| types | fields | |
|---|---:|---|
"""


def opaque_in(value: Any) -> Iterator[tuple[str, str]]:
    """(where, what) of everything in the value that is not modelled."""
    if isinstance(value, tuple | list):
        for inner in value:
            yield from opaque_in(inner)
    if not isinstance(value, Value):
        return
    if isinstance(value, Opaque):
        yield "block", value.kind
        return
    if isinstance(value, ProviderTool) and value.definition is not None and value.kind is None and not value.functions:
        yield "tool", str(value.definition.get("type", value.name))
    where = _NODES.get(type(value).__name__, type(value).__name__)
    for entries in (getattr(value, "metadata", None) or {}).values():
        yield from ((where, key) for key in _keys(entries))
    for field in structs.fields(value):
        if field.name != "metadata" and field.name not in getattr(type(value), "__exact__", {}):
            yield from opaque_in(getattr(value, field.name))


def _keys(entries: dict[str, Any], within: str = "") -> Iterator[str]:
    for key, value in entries.items():
        if key.startswith(WITHIN):
            name = key.removeprefix(WITHIN)
            yield from _keys(inner_extra(entries, name) or {}, f"{within}{name}.")
        elif not key.startswith("~") and bytes(value) not in _SAYS_NOTHING:
            yield within + key


def count() -> tuple[int, Counter[tuple[str, str, str]]]:
    bodies, found = 0, Counter[tuple[str, str, str]]()
    for file, format in FILES.items():
        for record in load(file):
            for content, decode in (
                (record.request, dragoman.decode_request),
                (record.response if record.status == HTTPStatus.OK else None, dragoman.decode_response),
            ):
                if not isinstance(content, dict):
                    continue
                try:
                    value = decode(encode_json(content), format)
                except DragomanError:
                    continue
                bodies += 1
                found.update({(format, where, key) for where, key in opaque_in(value)})
    return bodies, found


def main() -> int:
    bodies, found = count()
    rows = [
        f"| {format} | {where} | `{key}` | {number} |"
        for (format, where, key), number in sorted(found.items(), key=lambda row: (-row[1], row[0]))
    ]
    gaps: dict[str, dict[str, list[str]]] = json.loads(GAPS.read_text())
    lifted = {root: groups["lifted"] for root, groups in gaps.items() if groups.get("lifted")}
    documented = [
        f"| {root} | {len(paths)} | {', '.join(f'`{path}`' for path in paths)} |"
        for root, paths in sorted(lifted.items(), key=lambda entry: -len(entry[1]))
    ]
    rest = (
        f"\n{len(rows) - _MOST_ROWS} further keys and blocks occur in fewer bodies.\n" if len(rows) > _MOST_ROWS else ""
    )
    page = INTRODUCTION.format(bodies=f"{bodies:,}") + "\n".join(rows[:_MOST_ROWS]) + "\n" + rest
    PAGE.write_text(page + DOCUMENTED + "\n".join(documented) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
