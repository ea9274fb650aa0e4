"""The source schema: paths of its nodes, targets of references, and merging of nodes.

Adapting a schema makes new nodes out of given ones. Each new node is *derived*: it remembers its source nodes, so that
notes can name the path of a keyword in the source, and a reference back to them is detected as a cycle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal

from msgspec import UNSET

from dragoman.schema.values import Derived, Json, Node, SchemaError

MAX_JSON_DEPTH = 200
"""OpenAI refuses more than ten levels of objects; recorded schemas stay below thirty levels of brackets."""
MAX_SCHEMA_DEPTH = 64
"""Most nested schemas, following references. Leaves stack space for the caller."""
MAX_INLINED_BYTES = 512 * 1024
"""Limit of inlined bytes. Thirty definitions that each reference the next twice would add gigabytes."""

_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_ESCAPED_BYTE = re.compile(rb"%([0-9A-Fa-f]{2})")
_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    ((float, Decimal), "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


_CONTAINERS = (dict, list)


def json_type(value: Json) -> str:
    return next((name for kinds, name in _TYPES if isinstance(value, kinds)), "null")


def step_into(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_NAME.fullmatch(key) else f"{path}[{key!r}]"


class SchemaSource:
    def __init__(self, root: Json, path: str) -> None:
        self.root = root
        self._path = path
        self._places: dict[int, tuple[Json, str | int]] = {}
        self._derived: dict[int, Derived] = {}
        self._joined: dict[int, int] = {}
        """Pairs of schemas that apply to one place -> how many of them are nested."""
        self._sizes: dict[int, int] = {}
        self._inlined = 0
        self._survey()

    def _survey(self) -> None:
        root, places = self.root, self._places
        pending: list[tuple[Json, int]] = [(root, 0)]
        while pending:
            container, depth = pending.pop()
            if depth > MAX_JSON_DEPTH:
                raise SchemaError(path=self._path, expected=f"at most {MAX_JSON_DEPTH} levels", got="deeper nesting")
            for key, value in _entries(container):
                if isinstance(value, _CONTAINERS) and id(value) not in places and value is not root:
                    places[id(value)] = (container, key)
                    pending.append((value, depth + 1))

    def path_of(self, node: Json, keyword: str = "") -> str:
        """Path in the source of the node's keyword, or of the node it was derived from."""
        while (derived := self._derived.get(id(node))) is not None:
            node = derived.owners.get(keyword, derived.base)
        keys = []
        while (place := self._places.get(id(node))) is not None:
            node, key = place
            keys.append(key)
        path = self._path
        for key in reversed(keys):
            path = step_into(path, key)
        return path

    def error(self, node: Json, place: str, expected: str, got: str) -> SchemaError:
        """An error at a place in the node: a keyword, or a path such as `anyOf[1]`."""
        path = self.path_of(node, place)
        return SchemaError(path=f"{path}.{place}" if place else path, expected=expected, got=got, keyword=place)

    def derive(self, values: Node, base: Node, *others: Node, owners: Mapping[str, Node] | None = None) -> Node:
        made_of = dict.fromkeys(identity for node in (base, *others) for identity in self.identities(node))
        self._derived[id(values)] = Derived(values, base, owners or {}, tuple(made_of))
        return values

    def identities(self, node: Node) -> tuple[int, ...]:
        """Ids of the node and of its source nodes."""
        derived = self._derived.get(id(node))
        return (id(node),) if derived is None else (id(node), *derived.identities)

    def without(self, node: Node, *keywords: str) -> Node:
        return self.derive({keyword: value for keyword, value in node.items() if keyword not in keywords}, node)

    def any_of(self, schemas: list[Json]) -> Json:
        if len(schemas) == 1:
            return schemas[0]
        nodes = [schema for schema in schemas if isinstance(schema, dict)]
        return self.derive({"anyOf": schemas}, *(nodes or [{}]))

    def target(self, node: Node, keyword: str) -> Json:
        """The schema that the reference in this node points at."""
        reference = node[keyword]
        found = self._follow(reference) if isinstance(reference, str) else UNSET
        if not isinstance(found, dict | bool):
            raise self.error(node, keyword, "a reference to a schema within the same document", repr(reference))
        return found

    def tokens(self, reference: str) -> list[str] | None:
        base = self.root.get("$id") if isinstance(self.root, dict) else None
        document, mark, fragment = reference.partition("#")
        if document not in ("", base) or not (mark or document):
            return None
        try:
            pointer = _ESCAPED_BYTE.sub(lambda byte: bytes.fromhex(byte[1].decode()), fragment.encode()).decode()
        except UnicodeError:
            return None
        if pointer and not pointer.startswith("/"):
            return None  # an anchor
        return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]

    def _follow(self, reference: str) -> Json:
        tokens = self.tokens(reference)
        found: Json = UNSET if tokens is None else self.root
        for token in tokens or ():
            if isinstance(found, dict):
                found = found.get(token, UNSET)
            elif isinstance(found, list) and token.isascii() and token.isdigit() and int(token[:9]) < len(found):
                found = found[int(token[:9])]
            else:
                return UNSET
        return found

    def charge(self, node: Json, keyword: str, copied: Json) -> None:
        """Counts bytes that are about to be inlined, against the limit."""
        if id(copied) not in self._sizes or id(copied) in self._derived:
            self._sizes[id(copied)] = _size(copied)
        self._inlined += self._sizes[id(copied)]
        if self._inlined > MAX_INLINED_BYTES:
            raise self.error(node, keyword, f"at most {MAX_INLINED_BYTES} bytes of inlined schemas", "more")

    def merge(self, nodes: Iterable[Node], report: Callable[[Node, str], None]) -> Node:
        """Merges nodes into one. Keywords that cannot be merged are passed to `report`."""
        first, *others = nodes
        merged, owners = dict(first), {}
        made: set[str] = set()
        """Keywords whose maps were made here and are extended in place: copying one per node would be quadratic."""
        required: dict[str, None] = {}
        """The names of `required`, once there are several lists of them."""
        for other in others:
            for keyword, value in other.items():
                if keyword not in merged:
                    merged[keyword] = value
                    owners[keyword] = other
                    continue
                known = merged[keyword]
                if keyword in made and isinstance(known, dict) and isinstance(value, dict):
                    if len(known) != len(value) or known != value:
                        known |= self._joined_children(known, value)
                    continue
                if keyword == "required" and isinstance(known, list) and isinstance(value, list):
                    required = required or dict.fromkeys(type_names(known))
                    required.update(dict.fromkeys(type_names(value)))
                    continue
                joined = self._join(keyword, known, value)
                if joined is UNSET:
                    report(other, keyword)
                    continue
                merged[keyword] = joined
                if keyword in _CHILD_MAPS and joined is not known and joined is not value:
                    made.add(keyword)
        if required:
            merged["required"] = list(required)
        return self.derive(merged, first, *others, owners=owners)

    def _join(self, keyword: str, one: Json, other: Json) -> Json:
        if json_type(one) == json_type(other) and one == other:
            return one
        if keyword in _CHILD_MAPS and isinstance(one, dict) and isinstance(other, dict):
            return one | self._joined_children(one, other)
        if keyword in _CHILDREN:
            return self._both(one, other)
        join = _JOINS.get(keyword)
        return UNSET if join is None else join(one, other)

    def _joined_children(self, one: Node, other: Node) -> Node:
        return {name: self._both(one[name], other[name]) if name in one else other[name] for name in other}

    def _both(self, one: Json, other: Json) -> Json:
        if one is True or other is False or one is other:
            return other
        if one is False or other is True or not (isinstance(one, dict) and isinstance(other, dict)):
            return one
        depth = self._joined.get(id(one), 0) + 1
        # It would be refused later, but each pair holds the identities of all before it: that would be quadratic.
        if depth > MAX_SCHEMA_DEPTH:
            expected = f"at most {MAX_SCHEMA_DEPTH} nested schemas"
            raise SchemaError(path=self.path_of(other), expected=expected, got="deeper nesting")
        pair = self.derive({"allOf": [one, other]}, one, other)
        self._joined[id(pair)] = depth
        return pair


def _entries(container: Json) -> Iterable[tuple[str | int, Json]]:
    if isinstance(container, dict):
        return container.items()
    return enumerate(container) if isinstance(container, list) else ()


def _size(value: Json) -> int:
    """Approximate size of the value as JSON, without recursion."""
    total, pending = 0, [value]
    while pending:
        found = pending.pop()
        total += len(found) + 3 if isinstance(found, str) else 5
        if isinstance(found, dict):
            pending.extend(found.keys())
            pending.extend(found.values())
        elif isinstance(found, list):
            pending.extend(found)
    return total


def type_names(given: Json) -> list[str]:
    return [name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)]


def _common_types(one: Json, other: Json) -> Json:
    first, second = ({name.lower() for name in type_names(given)} for given in (one, other))
    common = [
        name
        for name in dict.fromkeys(type_names(one) + type_names(other))
        if all(name.lower() in names or (name.lower() == "integer" and "number" in names) for names in (first, second))
    ]
    return UNSET if not common else common[0] if len(common) == 1 else common


def _common_values(one: Json, other: Json) -> Json:
    if not (isinstance(one, list) and isinstance(other, list)):
        return UNSET
    others = {identity_of(value) for value in other}
    return [value for value in one if identity_of(value) in others] or UNSET


def identity_of(value: Json) -> Hashable:
    """A key that equal values of one type share."""
    if isinstance(value, dict):
        return "object", frozenset((name, identity_of(member)) for name, member in value.items())
    return json_type(value), tuple(map(identity_of, value)) if isinstance(value, list) else value


def _greatest(one: Json, other: Json) -> Json:
    return max(one, other) if _are_numbers(one, other) else UNSET


def _least(one: Json, other: Json) -> Json:
    return min(one, other) if _are_numbers(one, other) else UNSET


def _are_numbers(*values: Json) -> bool:
    return all(json_type(value) in ("integer", "number") for value in values)


def _all_names(one: Json, other: Json) -> Json:
    return list(dict.fromkeys(type_names(one) + type_names(other))) if isinstance(other, list) else UNSET


def _both_texts(one: Json, other: Json) -> Json:
    return f"{one}\n{other}" if isinstance(one, str) and isinstance(other, str) else UNSET


_CHILD_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "defs", "dependentSchemas"})
_CHILDREN = frozenset({"items", "additionalProperties", "contains", "propertyNames", "unevaluatedProperties"})
_JOINS: dict[str, Callable[[Json, Json], Json]] = {
    "type": _common_types,
    "enum": _common_values,
    "required": _all_names,
    "description": _both_texts,
    "nullable": lambda one, other: one is True and other is True,
    "uniqueItems": lambda one, other: one is True or other is True,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _greatest),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _least),
}
