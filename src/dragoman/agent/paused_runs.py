"""Runs that wait for a client: kept between its requests, so that the next request continues the run.

A client does not see the whole conversation: results of the agent's own tools, waiting calls of sub-agents and
signatures of the model are not sent to it. So a paused run is kept here, and found again by what the client sends.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from dragoman.ir import Message
from dragoman.ir.values import encode_json

_LARGEST = 1 << 20
"""Bytes of one run, compressed. A larger run is not kept: the client's own conversation is used instead."""
_MOST = 1_000


class PausedRun(Struct, frozen=True):
    """A run that ended because calls wait."""

    history: tuple[Message, ...]
    calls: Mapping[str, str] = {}
    """Call ids known to the client -> the run's own ids, if they differ; in order."""


class PausedRuns(Protocol):
    """Stores paused runs by the keys that `keep` was given."""

    async def keep(self, keys: Sequence[str], run: PausedRun) -> None: ...
    async def find(self, keys: Sequence[str]) -> PausedRun | None:
        """Return the run of the first key that has one."""
        ...

    async def forget(self, keys: Sequence[str]) -> None:
        """Remove a run that continues: a decision that is sent twice must not run its call twice."""
        ...


def pack(run: PausedRun) -> bytes | None:
    """Return the run as bytes; None if it is too large to keep."""
    packed = zlib.compress(encode_json(run), 1)
    return packed if len(packed) <= _LARGEST else None


def unpack(data: bytes) -> PausedRun:
    return _decode(zlib.decompress(data))


_decode = msgspec.json.Decoder(PausedRun).decode


class MemoryRuns:
    """Paused runs of one process, the newest 1,000."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, bytes] = OrderedDict()

    async def keep(self, keys: Sequence[str], run: PausedRun) -> None:
        packed = pack(run)
        if packed is not None:
            for key in keys:
                self._runs[key] = packed
                self._runs.move_to_end(key)
            while len(self._runs) > _MOST:
                self._runs.popitem(last=False)

    async def find(self, keys: Sequence[str]) -> PausedRun | None:
        found = next((self._runs[key] for key in keys if key in self._runs), None)
        return None if found is None else unpack(found)

    async def forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._runs.pop(key, None)
