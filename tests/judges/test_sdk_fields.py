"""Our wire structs against the vendors' newest SDK types: every documented field is modelled, or listed."""

import json
from pathlib import Path
from typing import Literal, TypedDict

from msgspec import Raw, Struct

from tests.judges.sdk_fields import ROOTS, gaps, root_gaps
from tests.support.cases import each
from tests.support.promises import promise

TABLE = Path(__file__).with_name("sdk_gaps.json")
REASONS = {
    "lifted": "not modelled yet: a body that has it is lifted, and only its own family gets it back",
    "sdk": "a field of the SDK's own objects that is never on the wire",
}
ACCEPTED: dict[str, dict[str, list[str]]] = json.loads(TABLE.read_text())


def accepted(root: str) -> set[str]:
    return {path for paths in ACCEPTED.get(root, {}).values() for path in paths}


@promise("core:vendor-fields")
@each("root", ROOTS)
def test_every_documented_field_is_modelled_or_listed(root: str) -> None:
    missing = set(root_gaps(root)) - accepted(root)
    assert not missing, f"{root}: add to the wire structs, or to {TABLE.name} with a reason: {sorted(missing)}"


@promise("core:vendor-fields")
@each("root", ROOTS)
def test_no_listed_field_is_modelled_by_now(root: str) -> None:
    """The table may only shrink: `python scripts/sdk_gaps.py` removes what no longer belongs in it."""
    stale = accepted(root) - set(root_gaps(root))
    assert not stale, f"{root}: modelled now, remove from {TABLE.name}: {sorted(stale)}"


def test_the_table_names_known_roots_and_reasons_only() -> None:
    assert ACCEPTED.keys() <= ROOTS.keys()
    assert {reason for groups in ACCEPTED.values() for reason in groups} <= REASONS.keys()


def test_the_page_of_what_is_opaque_lists_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "opaque-fields.md").read_text(encoding="utf-8")
    listed = {line for line in page.splitlines() if line.startswith("| ")}
    for root, groups in ACCEPTED.items():
        if "lifted" in groups:
            fields = ", ".join(f"`{path}`" for path in groups["lifted"])
            assert f"| {root} | {len(groups['lifted'])} | {fields} |" in listed, "run scripts/opaque_fields.py"


class Inner(Struct):
    known: str = ""


class Text(Struct, tag="text"):
    text: str = ""


class Outer(Struct):
    inner: Inner
    inners: list[Inner]
    parts: list[Text]
    whole: Raw


class SdkInner(TypedDict):
    known: str
    new: str


class SdkText(TypedDict):
    type: Literal["text"]
    text: str
    mark: str


class SdkImage(TypedDict):
    type: Literal["image"]


class SdkOuter(TypedDict):
    inner: SdkInner
    parts: list[SdkText | SdkImage]
    whole: SdkInner
    top: str


class SdkList(TypedDict):
    inners: list[SdkInner]


def test_the_walk_finds_fields_wherever_they_are() -> None:
    """At the top, in objects, in lists, in unions by their tag; what is kept whole has everything."""
    assert gaps(SdkOuter, Outer) == ["$.inner.new", "$.parts[][type=image]", "$.parts[][type=text].mark", "$.top"]
    assert gaps(SdkList, Outer) == ["$.inners[].new"]
