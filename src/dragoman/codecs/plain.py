"""The short way, which most requests take: text, calls with their results in order, functions, a limit, a temperature.

Each codec's plain.py writes such a request in one walk, and leaves it to the long way (the passes, then request.py)
as soon as it meets anything else. Both ways write the same bytes: tests/laws/test_short_way.py holds them to it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from dragoman.ir import AnyTool, Request
from dragoman.ir.notes import Spelling
from dragoman.profile import Profile

_MOST_WORDS = 8192
_MOST_TOOLS = 64


def has_rare_settings(request: Request) -> bool:
    """Whether the request asks for more than a limit, a temperature, tools and a choice."""
    return not (
        request.top_p
        is request.top_k
        is request.parallel_tool_calls
        is request.seed
        is request.presence_penalty
        is request.frequency_penalty
        is request.candidates
        is request.reasoning
        is request.output
        is request.user
        is request.cache
        is None
        and request.stop == ()
        and (request.metadata is None or type(request.metadata) is Spelling)
    )


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
    """How tools are written. Values do not change, so the same tuple of tools is always written the same."""

    __slots__ = ("_known", "_write")

    def __init__(self, write: Callable[[tuple[AnyTool, ...]], Raw | None]) -> None:
        self._write = write
        self._known: dict[int, tuple[tuple[AnyTool, ...], Raw | None]] = {}

    def written(self, tools: tuple[AnyTool, ...]) -> Raw | None:
        """None when there is more to these tools than the short way can say."""
        known = self._known.get(id(tools))
        if known is not None and known[0] is tools:
            return known[1]
        if len(self._known) >= _MOST_TOOLS:
            self._known.clear()
        written = self._write(tools)
        self._known[id(tools)] = (tools, written)
        return written
