"""What takes part in a measurement: dragoman, and the peers that speak the same language."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from benchmarks.bodies import Format

Translator = Callable[[bytes], bytes]


class Job(Enum):
    """What is translated. A stream becomes a third member: bytes of SSE in, bytes of SSE out."""

    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    name: str
    version: str
    # None where the library does not offer the pair: it is left out and shown as "-".
    translator: Callable[[Job, Format, Format], Translator | None]
    held_to_limits: bool = False


def dragoman() -> Candidate:
    """With passes and losses, as everybody gets it: the front door, no private shortcut."""
    import dragoman as library  # noqa: PLC0415 - its import is measured too, in fresh interpreters

    def translator(job: Job, source: Format, target: Format) -> Translator:
        if job is Job.RESPONSE:
            translate_response = library.translate_response
            return lambda body: translate_response(body, source=source, target=target).json()
        translate_request = library.translate_request
        return lambda body: translate_request(body, source=source, target=target).json()

    return Candidate(name="dragoman", version=library.__version__, translator=translator, held_to_limits=True)
