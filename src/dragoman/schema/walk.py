"""Walks a schema from the root: rewrites each node for the dialect, then checks its keywords."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from dragoman.schema.dialects import ROOT_COMBINATORS, SchemaDialect
from dragoman.schema.keywords import CHECKS, INERT, NEUTRAL, VISITS, rules_of
from dragoman.schema.root import object_root, without_alternatives
from dragoman.schema.source import MAX_SCHEMA_DEPTH, SchemaSource, json_type
from dragoman.schema.steps import STEPS, has_root_rules_only, is_normal, is_object
from dragoman.schema.values import Action, Json, Node, SchemaError, SchemaNote


def _while_open(method: Callable[[Walk, Node], Node]) -> Callable[[Walk, Node], Node]:
    """Marks the node as open while the method runs: a reference to an open node is recursion."""

    def run(self: Walk, node: Node) -> Node:
        if self.depth == MAX_SCHEMA_DEPTH:
            path = self.source.path_of(node)
            raise SchemaError(path=path, expected=f"at most {MAX_SCHEMA_DEPTH} nested schemas", got="deeper nesting")
        outer = len(self.open)
        self.depth += 1
        self.mark_open(node)
        result = method(self, node)
        self.depth -= 1
        while len(self.open) > outer:  # dictionaries end with what was added last
            self.open.popitem()
        return result

    return run


class Walk:
    def __init__(self, schema: Json, dialect: SchemaDialect, path: str) -> None:
        self.dialect = dialect
        self.source = SchemaSource(schema, path)
        self.notes: dict[SchemaNote, None] = {}  # ordered set
        self.depth = 0
        self.open: dict[int, None] = {}
        self.root_united = False
        self.properties = self.enum_values = self.object_depth = self.deepest_object = 0
        self._root_only = has_root_rules_only(dialect)
        self._checks = {} if self._root_only else CHECKS
        self._rules = rules_of(dialect)
        self._references: dict[int, str] = {}
        self._followed: set[int] = set()

    def mark_open(self, node: Node) -> None:
        """Mark a node and what it was made of, until the method that runs returns."""
        self.open.update(dict.fromkeys(self.source.identities(node)))

    def run(self) -> Json:
        root = self.source.root
        if self.dialect.root_object:
            root = object_root(self, root)
            if self._root_only and not self.root_united:
                return root
        adapted = self.adapt(root, {})
        self._check_limits()
        return adapted

    def note(self, node: Node, keyword: str, action: Action, reason: str, *, exact: bool = False) -> None:
        self.notes[SchemaNote(self.source.path_of(node, keyword), keyword, action, reason, exact)] = None

    def drop(self, node: Node, keyword: str, reason: str = "not a keyword of the target") -> UnsetType:
        exact = keyword in INERT or node[keyword] is NEUTRAL.get(keyword, UNSET)
        self.note(node, keyword, "dropped", reason, exact=exact)
        return UNSET

    def error(self, node: Node, keyword: str, expected: str, got: str) -> SchemaError:
        return self.source.error(node, keyword, expected, got)

    def merge(self, *nodes: Node) -> Node:
        reason = "cannot be joined with the same keyword of another schema that applies here"
        merged = self.source.merge(nodes, lambda node, keyword: self.note(node, keyword, "dropped", reason))
        for closed in nodes:
            others = (node for node in nodes if node is not closed)
            if closed.get("additionalProperties", True) is not True and any(map(is_object, others)):
                # Two closed objects have no common instance; the merged object is what was meant.
                self.note(
                    closed, "additionalProperties", "rewritten", "it now allows the properties of all merged schemas"
                )
        forbidden = self.dialect.single_type and any("type" in node and not node.get("nullable") for node in nodes)
        if not forbidden or merged.get("nullable") is not True:
            return merged
        self.note(merged, "nullable", "dropped", "another schema that applies here forbids null", exact=True)
        return self.source.without(merged, "nullable")

    def schemas(self, node: Node, keyword: str) -> list[Json]:
        if not isinstance(node[keyword], list):
            raise self.error(node, keyword, "a list of schemas", json_type(node[keyword]))
        return list(node[keyword])

    def adapt(self, schema: Json, holder: Node, place: str = "") -> Json:
        """Adapts a subschema, which may be any JSON; `place` is its path in the holder."""
        if isinstance(schema, dict):
            return self._members(schema if is_normal(schema) else self.normal(schema))
        if not isinstance(schema, bool):
            raise self.error(holder, place, "a schema", json_type(schema))
        if self.dialect.boolean_schemas:
            return schema
        if self.dialect.typed_nodes:
            self.note(holder, place, "kept", "every schema must declare its type")
            return schema
        self.note(holder, place, "rewritten", "every schema must be an object", exact=schema)
        return {}

    @_while_open
    def normal(self, node: Node) -> Node:
        """Rewrites the node's own keywords for the dialect, but not its subschemas."""
        node = self.inline(node)
        for step in () if self._root_only else STEPS:
            node = step(self, node)
        return node

    @_while_open
    def _members(self, node: Node) -> Node:
        members: Node = {}
        refused, keywords, checks = self.dialect.refused, self.dialect.keywords, self._checks
        for keyword, given in node.items():
            if keyword in refused or (keywords is not None and keyword not in keywords):
                self.drop(node, keyword)
                continue
            check = checks.get(keyword)
            value = given if check is None else check(self, node, keyword, given)
            visit = VISITS.get(keyword)
            if visit is not None and value is not UNSET:
                value = visit(self, node, keyword, value)
            if value is not UNSET:
                members[keyword] = value
        for rule in self._rules:
            rule(self, node, members)
        return members

    @_while_open
    def flat(self, node: Node) -> Node:
        """The node with its reference inlined and its allOf merged."""
        node = self.inline(node, always=True)
        if "allOf" not in node:
            return node
        members = [self.flat(member) for member in self.schemas(node, "allOf") if isinstance(member, dict)]
        self.note(node, "allOf", "rewritten", "its schemas are merged into one", exact=False not in node["allOf"])
        return self.merge(self.source.without(node, "allOf"), *members)

    @_while_open
    def without_alternatives(self, node: Node) -> Node:
        return without_alternatives(self, node)

    def inline(self, node: Node, *, always: bool = False) -> Node:
        while keyword := self._reference_to_inline(node, always=always):
            target = self._enter(node, keyword)
            self.source.charge(node, keyword, target)
            self.note(node, keyword, "rewritten", "the schema it names stands in its place", exact=target is not False)
            rest = self.source.without(node, keyword)
            if isinstance(target, dict):
                self.mark_open(target)
            node = rest if isinstance(target, bool) else self.merge(rest, target) if rest else target
        return self._checked_reference(node) if "$ref" in node and not self._root_only else node

    def _reference_to_inline(self, node: Node, *, always: bool) -> str:
        for keyword in ("$ref", "ref"):
            # `ref` is a keyword only in Gemini's proto; in other schemas it may be anything.
            known = keyword in node and (keyword == "$ref" or str(node[keyword]).startswith("#"))
            if known and keyword in self.dialect.inlined_references:
                return keyword
        if "$ref" not in node:
            return ""
        if always or self._target_moves(node["$ref"]):
            return "$ref"
        crowded = len(node) > 1 and not self.dialect.reference_siblings
        return "$ref" if crowded and id(self.source.target(node, "$ref")) not in self.open else ""

    def _target_moves(self, reference: Json) -> bool:
        """Whether the pointer leads through a keyword that is rewritten, and would break."""
        tokens = self.source.tokens(reference) if isinstance(reference, str) else None
        if not tokens:
            return False
        if tokens[0] in ROOT_COMBINATORS and self.root_united:
            return True
        if self._root_only:
            return False
        return any(name == "allOf" or (name in VISITS and not self.dialect.accepts(name)) for name in tokens)

    def _enter(self, node: Node, keyword: str) -> Json:
        target = self.source.target(node, keyword)
        reference = node[keyword]
        if id(target) in self.open:
            opened = list(self.open)
            between = (self._references.get(identity) for identity in opened[opened.index(id(target)) + 1 :])
            cycle = " -> ".join(dict.fromkeys(filter(None, (reference, *between))))
            raise self.error(node, keyword, "no recursion", f"{cycle} -> {reference}")
        self._references[id(target)] = reference
        return target

    def _checked_reference(self, node: Node) -> Node:
        """Checks a kept reference: it resolves, is not recursive if that is refused, and is alone if required."""
        if self.dialect.recursion:
            if id(self.source.target(node, "$ref")) in self.source.identities(node):
                raise self.error(node, "$ref", "a reference to another schema", f"{node['$ref']}, which is this one")
        elif id(target := self._enter(node, "$ref")) not in self._followed:
            self.adapt(target, node, "$ref")
            self._followed.add(id(target))
        if len(node) == 1 or self.dialect.reference_siblings:
            return node
        for keyword in node:
            if keyword != "$ref":
                self.note(node, keyword, "dropped", "a recursive reference stands alone")
        return self.source.derive({"$ref": node["$ref"]}, node)

    def _check_limits(self) -> None:
        for keyword, what, count, limit in (
            ("properties", "properties", self.properties, self.dialect.max_properties),
            ("properties", "levels of objects", self.deepest_object, self.dialect.max_object_depth),
            ("enum", "values in enums", self.enum_values, self.dialect.max_enum_values),
        ):
            if limit is not None and count > limit:
                self.note(self.source.root, keyword, "kept", f"{count} {what}, at most {limit} are accepted")
