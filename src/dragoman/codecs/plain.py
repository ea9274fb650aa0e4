"""The short way, which most requests take: text, calls with their results in order, functions, a limit, a temperature.

Each codec's plain_request.py reads and writes such a request in one walk, and leaves it to the long way (the passes,
then request.py) as soon as it meets anything else; plain_response.py does the same for answers of text and calls. Both
ways read the same values and write the same bytes: tests/laws/test_short_way.py holds them to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Raw, Struct

from dragoman.codecs.encoded import UNTOLD
from dragoman.codecs.reading import WireValue
from dragoman.errors import EncodeError
from dragoman.ir import AnyPart, AnyTool, Request, Text, ToolDefinition
from dragoman.ir.notes import Spelling
from dragoman.ir.values import Metadata, encode_json
from dragoman.losses import LossLog
from dragoman.profile import Profile

_MOST_WORDS = 8192
_MOST_TOOLS = 64


def has_rare_settings(request: Request) -> bool:
    """Whether the request asks for more than a limit, a temperature, tools and a choice."""
    return (
        request.top_p is not None
        or request.top_k is not None
        or request.parallel_tool_calls is not None
        or request.seed is not None
        or request.presence_penalty is not None
        or request.frequency_penalty is not None
        or request.candidates is not None
        or request.reasoning is not None
        or request.output is not None
        or request.user is not None
        or request.cache is not None
        or request.stop != ()
        or (request.metadata is not None and type(request.metadata) is not Spelling)
    )


def tells(metadata: Metadata | None, family: str) -> bool:
    """Whether there is more in it than how a family other than this one spelled what is said anyway."""
    return metadata is not None and (type(metadata) is not Spelling or family in metadata)


T = TypeVar("T")

if TYPE_CHECKING:
    Given: TypeAlias = T | None
else:

    class Given:
        """A member that may be left out, and reads as None then; a null that stands there is left to the long way.

        (Python asks `is None` with one instruction, `is UNSET` with three.)
        """

        def __class_getitem__(cls, item: Any) -> Any:
            return item


class PlainWire(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What ordinary requests say and nothing else: whatever fits is read without a look at all that could be there."""


def is_object(data: bytes) -> bool:
    """Whether a piece that is carried unparsed is an object, in text, and none of our own wrappers."""
    return data[0] == _BRACE and data[:9] != b'{"unparse' and (data.isascii() or _is_text(data))


_BRACE = ord("{")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Accepted:
    """Ids and names that fit a profile's patterns; an agent sends the same ones with every request."""

    __slots__ = ("_profile", "ids", "names")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.ids: set[str] = set()
        self.names: set[str] = set()

    def takes(self, call_id: str, name: str) -> bool:
        return self.takes_id(call_id) and self.takes_name(name)

    def takes_id(self, call_id: str) -> bool:
        pattern = self._profile.call_id
        return _remember(self.ids, call_id, good=pattern is None or pattern.fullmatch(call_id) is not None)

    def takes_name(self, name: str) -> bool:
        return _remember(self.names, name, good=self._profile.tool_name.fullmatch(name) is not None)


def _remember(memory: set[str], text: str, *, good: bool) -> bool:
    if good:
        if len(memory) >= _MOST_WORDS:
            memory.clear()
        memory.add(text)
    return good


class ToolMemory:
    """How tools are written. Values do not change, so the same tuple of tools is always written the same.

    `encode` is the long way's own encoder of tools.
    """

    __slots__ = ("_accepted", "_encode", "_known")

    def __init__(self, encode: Callable[[Request, LossLog], list[WireValue]], accepted: Accepted) -> None:
        self._encode = encode
        self._accepted = accepted
        self._known: dict[int, tuple[tuple[AnyTool, ...], WrittenTools | None]] = {}

    def written(self, tools: tuple[AnyTool, ...]) -> WrittenTools | None:
        """None when there is more to these tools than the short way can say."""
        known = self._known.get(id(tools))
        if known is not None and known[0] is tools:
            return known[1]
        if len(self._known) >= _MOST_TOOLS:
            self._known.clear()
        written = self._write(tools)
        self._known[id(tools)] = (tools, written)
        return written

    def _write(self, tools: tuple[AnyTool, ...]) -> WrittenTools | None:
        if len({tool.name for tool in tools}) < len(tools):
            return None
        for tool in tools:
            if type(tool) is not ToolDefinition or tool.strict:
                return None
            if tool.cache is not None or tool.metadata is not None:
                return None
            if not self._accepted.takes_name(tool.name):
                return None
        log = LossLog()
        try:
            wires = self._encode(Request(None, (), tools), log)
        except EncodeError:
            return None
        return WrittenTools(Raw(encode_json(wires)), UNTOLD if log.entries else ())


class WrittenTools(Struct, frozen=True, gc=False):
    wire: Raw
    losses: Any
    """None are there, or `UNTOLD`: the long way tells them."""


def plain_texts(parts: tuple[AnyPart, ...]) -> list[str] | None:
    """The texts of parts that are texts and nothing else."""
    texts: list[str] = []
    for part in parts:
        if (
            type(part) is not Text
            or part.metadata is not None
            or part.cache is not None
            or part.signature is not None
            or part.citations
        ):
            return None
        texts.append(part.text)
    return texts
