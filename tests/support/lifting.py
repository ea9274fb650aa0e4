"""Which keys of a body its wire structs do not model, so that its objects are lifted (see dragoman.codecs.reading)."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec

import dragoman
from benchmarks.corpus import Kind, Sample, with_new_tools
from dragoman.codecs import reading
from dragoman.codecs.wire_values import EXTRA, UNKNOWN
from dragoman.errors import DragomanError
from dragoman.ir.notes import RENAMED, SINGLE


def lifted_keys(sample: Sample, kind: Kind) -> Counter[str] | None:
    """`object.key` of everything that was lifted while decoding a body; empty if nothing was, None if it is refused.

    Caches of tools would hide that a tool is lifted, so a request is read with tools that no cache has seen.
    """
    fresh = with_new_tools(sample, 1) or [sample]
    decode = dragoman.decode_request if kind == "request" else dragoman.decode_response
    with _recorded() as found:
        try:
            decode(fresh[0].body, sample.source)
        except DragomanError:
            return None
    return found


def lifted_events(sample: Sample) -> int:
    """How many chunks of a recorded stream have an object that is lifted."""
    decoder = dragoman.StreamDecoder(sample.source)
    count = 0
    for chunk in sample.chunks:
        with _recorded() as found:
            try:
                decoder.feed(chunk)
            except DragomanError:
                return count
        count += bool(found)
    return count


@contextlib.contextmanager
def _recorded() -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()
    lift = reading._Lift._object  # noqa: SLF001 - the test is about what it moves aside

    def recording(self: Any, data: bytes, plan: Any, *arguments: Any, **options: Any) -> bytes:
        lifted = lift(self, data, plan, *arguments, **options)
        found.update(_names(data, lifted, plan))
        return lifted

    with mock.patch.object(reading._Lift, "_object", recording):  # noqa: SLF001
        yield found


def _names(data: bytes, lifted: bytes, plan: Any) -> Iterator[str]:
    entries = msgspec.json.decode(lifted)
    whole = msgspec.json.decode(data)
    name = plan.structs.__name__ if plan.structs is not None and not plan.tagged else str(whole.get(plan.tag_field))
    if entries.get(plan.tag_field) == UNKNOWN:
        yield f"{name} (unknown type)"
    for key in entries.get(EXTRA, ()):
        if key.startswith(RENAMED):
            yield f"{name}.{key.removeprefix(RENAMED)} (other spelling)"
        elif key.startswith(SINGLE):
            yield f"{name}.{key.removeprefix(SINGLE)} (an object for a list)"
        elif whole.get(key, ...) is None:
            yield f"{name}.{key} (null)"
        else:
            yield f"{name}.{key}"
