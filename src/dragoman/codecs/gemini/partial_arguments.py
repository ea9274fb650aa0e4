"""Arguments that Vertex streams leaf by leaf: `{"jsonPath": "$.a.b[0]", "stringValue": "Bos", "willContinue": true}`.

Strings come in pieces that are concatenated per path; numbers, booleans and null come once. Only leaves have a path,
so an empty object or an empty list cannot be expressed; if a list has such a gap, its content is not guessed.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.errors import DecodeError
from dragoman.ir.values import encode_json


class PartialArgument(Struct, gc=False, rename="camel"):
    """One leaf, or a piece of one. `willContinue` of a string adds nothing: its next piece shows the same."""

    json_path: str
    string_value: str | UnsetType = UNSET
    number_value: Raw | UnsetType = UNSET
    bool_value: bool | UnsetType = UNSET
    null_value: Raw | UnsetType = UNSET


_STEP = re.compile(
    r"""\.([^.\[\]]+)                  # .name
      | \[(\d{1,9})\]                  # [0]
      | \['((?:[^'\\]|\\.)*)'\]        # ['any name']
      | \["((?:[^"\\]|\\.)*)"\]        # ["any name"]
    """,
    re.VERBOSE,
)
_decode_entries = msgspec.json.Decoder(dict[str, Raw]).decode
_ESCAPED = re.compile(r"\\(.)")

Step: TypeAlias = str | int
Node: TypeAlias = "_Branch | list[str] | Raw"


class _Branch:
    """An object or a list, depending on the first step into it."""

    __slots__ = ("is_list", "items")

    def __init__(self, *, is_list: bool) -> None:
        self.is_list = is_list
        self.items: dict[Step, Node] = {}


class PartialArguments:
    """The arguments of one call while their leaves arrive."""

    def __init__(self, given: str = "") -> None:
        """Begin with `given`, the arguments that came whole before the leaves."""
        self._root = _Branch(is_list=False)
        self._path = ""
        self._pieces: list[str] | None = None
        self.sound = True
        """Whether all leaves fit together. If not, the call must not be run."""
        if given:
            try:
                self._root.items.update(_decode_entries(given))
            except msgspec.DecodeError:
                self.sound = False

    def add(self, leaf: PartialArgument) -> None:
        text = leaf.string_value
        if text is not UNSET:
            if leaf.json_path != self._path or self._pieces is None:
                self._pieces = self._string_at(leaf.json_path)
                self._path = leaf.json_path
            if text:
                self._pieces.append(text)
            return
        self._pieces = None
        self._put(leaf.json_path, _scalar(leaf))

    def text(self) -> str:
        """Return the arguments as JSON text.

        Recursion is safe: msgspec refuses input that is too deep for Python to walk.
        """
        return encode_json(self._value(self._root)).decode()

    def _string_at(self, path: str) -> list[str]:
        branch, step = self._branch(path)
        node = branch.items.get(step)
        if node is None:
            node = []
            self._set(branch, step, node)
        if not isinstance(node, list):
            self.sound = False
            return []
        return node

    def _put(self, path: str, value: Raw) -> None:
        branch, step = self._branch(path)
        if isinstance(branch.items.get(step), _Branch | list):
            self.sound = False
        else:
            self._set(branch, step, value)

    def _branch(self, path: str) -> tuple[_Branch, Step]:
        """Return the object or list that holds the leaf, and the leaf's key or index in it."""
        steps = _steps(path)
        branch = self._root
        for step, following in pairwise(steps):
            node = branch.items.get(step)
            if not isinstance(node, _Branch):
                self.sound = self.sound and node is None
                node = _Branch(is_list=isinstance(following, int))
                self._set(branch, step, node)
            branch = node
        return branch, steps[-1]

    def _set(self, branch: _Branch, step: Step, node: Node) -> None:
        if branch.is_list != isinstance(step, int) or (
            isinstance(step, int) and step not in branch.items and step != len(branch.items)
        ):
            self.sound = False
        branch.items[step] = node

    def _value(self, node: Node) -> Any:
        if isinstance(node, _Branch):
            if node.is_list:
                return [self._value(item) for item in node.items.values()]
            return {str(step): self._value(item) for step, item in node.items.items()}
        return "".join(node) if isinstance(node, list) else node


def _scalar(leaf: PartialArgument) -> Raw:
    if leaf.number_value is not UNSET:
        return leaf.number_value
    if leaf.bool_value is not UNSET:
        return Raw(b"true" if leaf.bool_value else b"false")
    return Raw(b"null")


_MAX_STEPS = 200


def _steps(path: str) -> list[Step]:
    steps: list[Step] = []
    place = 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            break
        place = found.end()
        name, index, single, double = found.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(name if name is not None else _ESCAPED.sub(r"\1", single if single is not None else double))
    if path[:1] != "$" or place != len(path) or not steps or len(steps) > _MAX_STEPS:
        raise DecodeError(
            path="$..partialArgs", expected="the JSON path of a leaf", got=path[:80], source="gemini stream"
        )
    return steps
