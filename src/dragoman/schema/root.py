"""Roots that must be one plain object: references are inlined, allOf and alternatives are merged."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from dragoman.schema.source import identity_of, json_type, type_names
from dragoman.schema.values import Json, Node

if TYPE_CHECKING:
    from dragoman.schema.walk import Walk

_UNITED = ("type", "properties", "required", "additionalProperties")


def object_root(walk: Walk, root: Json) -> Node:
    given = {} if root is True else root
    if not isinstance(given, dict):
        raise walk.error({}, "", "a schema of objects", "false" if root is False else json_type(root))
    node = walk.without_alternatives(given)
    if node.get("type") == "object":
        return node
    if not _may_be_object(node):
        raise walk.error(node, "type", '"object" at the root', repr(node["type"]))
    walk.note(node, "type", "rewritten", "the root must declare that it is an object", exact="type" not in node)
    typed = {"type": "object"} | {keyword: value for keyword, value in node.items() if keyword != "type"}
    return walk.source.derive(typed, node)


def _may_be_object(node: Node) -> bool:
    return "object" in [name.lower() for name in type_names(node.get("type", "object"))]


def without_alternatives(walk: Walk, given: Node) -> Node:
    node = walk.flat(given)
    walk.mark_open(node)
    walk.root_united = walk.root_united or "allOf" in given
    while keyword := next((name for name in ("anyOf", "oneOf") if name in node), ""):
        walk.root_united = True
        node = _merge_alternatives(walk, node, keyword)
    return node


def _merge_alternatives(walk: Walk, node: Node, keyword: str) -> Node:
    rest = walk.source.without(node, keyword)
    branches = [
        walk.without_alternatives({} if branch is True else branch)
        for branch in walk.schemas(node, keyword)
        if branch is True or isinstance(branch, dict)
    ]
    objects = [branch for branch in branches if _may_be_object(branch)]
    if not objects:
        raise walk.error(node, keyword, "an alternative that is an object", "none")
    if len(objects) == 1:
        exact = len(branches) == 1
        walk.note(node, keyword, "rewritten", "its one schema of objects stands at the root", exact=exact)
        return walk.merge(rest, objects[0])
    reason = "no alternatives at the root: all properties are offered, those that all alternatives require are required"
    walk.note(node, keyword, "rewritten", reason)
    for branch in objects:
        for lost in branch:
            if lost not in _UNITED:
                walk.drop(branch, lost, "declared by one alternative only")
    return walk.merge(rest, _union(walk, objects))


def _union(walk: Walk, objects: list[Node]) -> Node:
    offered: dict[str, dict[Hashable, Json]] = {}
    for branch in objects:
        properties = branch.get("properties") or {}
        if not isinstance(properties, dict):
            raise walk.error(branch, "properties", "an object of schemas", json_type(properties))
        for name, schema in properties.items():
            offered.setdefault(name, {}).setdefault(identity_of(schema), schema)
    union: Node = {"type": "object"}
    if offered:
        union["properties"] = {name: walk.source.any_of([*known.values()]) for name, known in offered.items()}
    demanded = [dict.fromkeys(type_names(branch.get("required", []))) for branch in objects]
    if common := [name for name in demanded[0] if all(name in names for names in demanded)]:
        union["required"] = common
    if all(branch.get("additionalProperties") is False for branch in objects):
        union["additionalProperties"] = False
    return walk.source.derive(union, *objects)
