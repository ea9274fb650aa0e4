"""Steps that rewrite the keywords of one node for the dialect. A step without work returns the node itself."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from dragoman.schema.source import identity_of, json_type, step_into, type_names
from dragoman.schema.values import Json, Node

if TYPE_CHECKING:
    from dragoman.schema.dialects import SchemaDialect
    from dragoman.schema.walk import Walk

TYPE_OF_KEYWORD: dict[str, str] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "propertyOrdering", "minProperties", "maxProperties"),
        "object",
    ),
}
_ANNOTATIONS = ("description", "title", "default", "example", "examples")
_STEPPED = frozenset(
    {"$ref", "ref", "allOf", "anyOf", "oneOf", "const", "enum", "prefixItems", "exclusiveMinimum", "exclusiveMaximum"}
)
_LARGEST_LIMIT = 2**63


def has_root_rules_only(dialect: SchemaDialect) -> bool:
    """Whether only the root has rules."""
    return dialect.keywords is None and not dialect.refused and dialect.array_items == "optional"


def is_verbatim(dialect: SchemaDialect) -> bool:
    """Whether the dialect takes every schema as it is."""
    return has_root_rules_only(dialect) and not dialect.root_object


def is_normal(node: Node) -> bool:
    """Whether no step and no inlining applies, as for most nodes."""
    plain = isinstance(node.get("type"), str) and not isinstance(node.get("items"), list)
    return plain and node.keys().isdisjoint(_STEPPED)


def is_object(node: Node) -> bool:
    return "properties" in node or "object" in [name.lower() for name in type_names(node.get("type"))]


def main_type(node: Node) -> str:
    """The first type that is not null, in lower case; empty if none is named."""
    return next((name.lower() for name in type_names(node.get("type")) if name.lower() != "null"), "")


def merge_all_of(walk: Walk, node: Node) -> Node:
    if "allOf" not in node:
        return node
    members = [member for member in walk.schemas(node, "allOf") if isinstance(member, dict)]
    # Closing an object inside allOf would forbid properties of the other members.
    if walk.dialect.accepts("allOf") and not any("$ref" in x or is_object(x) for x in map(walk.normal, members)):
        return node
    rest = walk.source.without(node, "allOf")
    if len(members) == len(node["allOf"]) == 1 and rest.keys().isdisjoint(members[0]):
        walk.note(node, "allOf", "rewritten", "its only schema stands in its place", exact=True)
        return merge_all_of(walk, walk.inline(walk.merge(rest, members[0])))
    return walk.flat(node)


def one_of_to_any_of(walk: Walk, node: Node) -> Node:
    if "oneOf" not in node or walk.dialect.accepts("oneOf") or "anyOf" in node:
        return node
    walk.note(node, "oneOf", "rewritten", "written as anyOf: more than one schema may match")
    return walk.source.derive({("anyOf" if name == "oneOf" else name): value for name, value in node.items()}, node)


def const_to_enum(walk: Walk, node: Node) -> Node:
    if "const" not in node or walk.dialect.accepts("const"):
        return node
    walk.note(node, "const", "rewritten", "written as an enum of one value", exact=True)
    return walk.merge(walk.source.without(node, "const"), walk.source.derive({"enum": [node["const"]]}, node))


def tuple_to_items(walk: Walk, node: Node) -> Node:
    keyword = "prefixItems" if "prefixItems" in node else "items"
    if not isinstance(node.get(keyword), list) or (keyword == "prefixItems" and walk.dialect.accepts(keyword)):
        return node
    # Before 2020-12, the list was under `items`, and the rest under `additionalItems`.
    positions = walk.schemas(node, keyword)
    following = node.get("items" if keyword == "prefixItems" else "additionalItems")
    rest = walk.source.without(node, "items", "prefixItems", "additionalItems")
    if "additionalItems" in node:
        walk.note(node, "additionalItems", "rewritten", "written as items", exact=walk.dialect.accepts("prefixItems"))
    if walk.dialect.accepts("prefixItems"):
        walk.note(node, "items", "rewritten", "a list of schemas is written as prefixItems", exact=True)
        tail = {} if following is None else {"items": following}
        return walk.source.derive({**rest, "prefixItems": positions, **tail}, node)
    walk.note(node, keyword, "rewritten", "each item may match the schema of any position")
    different: dict[Hashable, Json] = {}
    for schema in (*positions, following):
        if isinstance(schema, dict):
            different.setdefault(identity_of(schema), schema)
    items = walk.source.any_of([*different.values()]) if different else {}
    return walk.source.derive({**rest, "items": items}, node)


def one_type(walk: Walk, node: Node) -> Node:
    """Rewrites to one type, with `nullable` for null, or to anyOf for several types."""
    listed = node.get("enum")
    values = listed if isinstance(listed, list) else None
    names = type_names(node.get("type")) or list(dict.fromkeys(json_type(value) for value in values or ()))
    if not walk.dialect.single_type or not names:
        return node
    others = [name for name in names if name.lower() != "null"]
    null = len(others) < len(names) and (values is None or None in values)
    if len(others) > 1:
        return _split_types(walk, node, others, null=null)
    remaining = [value for value in values or () if value is not None]
    if values is not None and null and not remaining:
        others = []
    single = node | {"type": others[0] if others else "null"} | ({"nullable": True} if others and null else {})
    if remaining and others:
        single["enum"] = remaining
    elif values is not None:
        del single["enum"]
    if single == node:
        return node
    # Keep an enum that its type forbids, since no value fits; null beside anyOf depends on its schemas.
    meaning_kept = ("enum" in single or values is None or null) and not (null and "anyOf" in node)
    for keyword in ("type", "enum"):
        if single.get(keyword) != node.get(keyword):
            walk.note(node, keyword, "rewritten", "written as one type, with nullable for null", exact=meaning_kept)
    return walk.source.derive(single, node)


def _split_types(walk: Walk, node: Node, names: list[str], *, null: bool) -> Node:
    if "anyOf" in node and "type" not in node:
        return node
    if "anyOf" in node:
        walk.note(node, "type", "dropped", "only one type may be named, and the alternatives beside it name theirs")
        return one_type(walk, walk.source.without(node, "type"))
    kinds = {name.lower() for name in names}
    if "enum" in node and not any(_is_a(value, kind, kinds) for value in node["enum"] for kind in kinds):
        walk.drop(node, "enum", "none of its values has one of the types")
        node = walk.source.without(node, "enum")
    rest = {key: value for key, value in node.items() if key not in ("type", "enum") and not _constrains(key, kinds)}
    branches = []
    for name in names:
        branch: Node = {"type": name} | {key: value for key, value in node.items() if _constrains(key, {name.lower()})}
        if "enum" in node:
            branch["enum"] = [value for value in node["enum"] if _is_a(value, name.lower(), kinds)]
        if branch.get("enum", True):
            branches.append(walk.source.derive(branch, node))
    if null:
        branches.append(walk.source.derive({"type": "null"}, node))
    walk.note(node, "type", "rewritten", "several types are written as anyOf", exact=True)
    return walk.source.derive({**rest, "anyOf": branches}, node)


def _constrains(keyword: str, kinds: set[str]) -> bool:
    kind = TYPE_OF_KEYWORD.get(keyword)
    return kind in kinds or (kind == "number" and "integer" in kinds)


def _is_a(value: Json, kind: str, kinds: set[str]) -> bool:
    found = json_type(value)
    return found == kind or (found == "integer" and kind == "number" and "integer" not in kinds)


def null_to_nullable(walk: Walk, node: Node) -> Node:
    """Normalises the branches of anyOf; X or null becomes X with nullable."""
    if "anyOf" not in node or not walk.dialect.single_type:
        return node
    given = walk.schemas(node, "anyOf")
    branches = [
        walk.normal(branch) if isinstance(branch, dict) else walk.adapt(branch, node, step_into("anyOf", index))
        for index, branch in enumerate(given)
        if branch is not False
    ]
    others = [branch for branch in branches if not _is_null(branch)]
    rest = walk.source.without(node, "anyOf")
    if not branches:
        walk.drop(node, "anyOf", "it has no schema that anything could match")
        return rest
    if len(others) == 1 and len(branches) > 1:
        walk.note(node, "anyOf", "rewritten", "null among its schemas is written as nullable", exact=True)
        for branch in branches:
            for keyword in _ANNOTATIONS if branch is not others[0] else ():
                if keyword in branch:
                    walk.drop(branch, keyword, "it applies to null only")
        merged = walk.merge(rest, others[0])
        # Beside a type that is not nullable, null was never allowed.
        nullable = {"nullable": True} if "type" not in rest or rest.get("nullable") is True else {}
        return walk.normal(walk.source.derive(merged | nullable, merged))
    if len(branches) < len(given):
        walk.note(node, "anyOf", "rewritten", "a schema that nothing matches is not an alternative", exact=True)
    elif all(branch is was for branch, was in zip(branches, given, strict=True)):
        return node
    return walk.source.derive(node | {"anyOf": branches}, node)


def _is_null(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    alternatives = schema.get("anyOf")
    if isinstance(alternatives, list) and alternatives and all(_is_null(branch) for branch in alternatives):
        return True
    return [name.lower() for name in type_names(schema.get("type"))] == ["null"]


def any_of_alone(walk: Walk, node: Node) -> Node:
    """Moves keywords beside anyOf into its schemas: A and (B or C) is (A and B) or (A and C)."""
    may_move = (walk.dialect.keywords or frozenset()) - {"anyOf", "defs"}
    beside = {keyword: value for keyword, value in node.items() if keyword in may_move}
    if "anyOf" not in node or not beside or not walk.dialect.any_of_alone:
        return node
    branches = walk.schemas(node, "anyOf")
    nullable = beside.pop("nullable", None)
    if nullable is False:
        walk.drop(node, "nullable", "nothing may stand beside anyOf")
    if nullable and len(branches) > 1:
        walk.note(node, "nullable", "rewritten", "written as a schema of null", exact=True)
    if nullable and len(branches) > 1 and not any(_is_null(branch) for branch in branches):
        branches.append(walk.source.derive({"type": "null"}, node))
    moved = walk.source.derive(beside, node)
    only_null = all(_is_null(branch) for branch in branches)
    joined: list[Node] = []
    for branch in branches:
        walk.source.charge(node, "anyOf", moved)
        if not _is_null(branch) or only_null:
            joined.append(walk.normal(walk.merge(moved, branch)))
        elif nullable or "type" not in beside:  # beside a type, null was never allowed
            joined.append(branch)
    walk.note(node, "anyOf", "rewritten", "it must stand alone: what is beside it moves into it", exact=bool(joined))
    rest = walk.source.without(node, "anyOf", *may_move)
    if len(joined) == 1:
        merged = walk.merge(rest, *joined)
        return any_of_alone(walk, walk.source.derive(merged | {"nullable": True}, merged)) if nullable else merged
    if not joined:
        return walk.merge(rest, moved)
    return null_to_nullable(walk, walk.source.derive(rest | {"anyOf": joined}, node))


def inclusive_limits(walk: Walk, node: Node) -> Node:
    if main_type(node) != "integer":
        return node
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        limit: Json = node.get(exclusive)
        known = walk.dialect.accepts(exclusive) or not walk.dialect.accepts(inclusive)
        if known or json_type(limit) not in ("integer", "number") or abs(limit) >= _LARGEST_LIMIT:
            continue
        walk.note(node, exclusive, "rewritten", f"written as {inclusive} of the next integer", exact=True)
        following = math.floor(limit) + 1 if inclusive == "minimum" else math.ceil(limit) - 1
        node = walk.merge(walk.source.without(node, exclusive), walk.source.derive({inclusive: following}, node))
    return node


STEPS: Final = (
    merge_all_of,
    one_of_to_any_of,
    const_to_enum,
    tuple_to_items,
    one_type,  # after const, whose value names a type
    null_to_nullable,  # after one_type, which makes anyOf out of several types
    any_of_alone,  # last of those that make or move anyOf
    inclusive_limits,
)
