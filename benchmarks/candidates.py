"""Libraries that are measured: dragoman and its Python peers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from benchmarks.bodies import FIRST, LATER, Format
from benchmarks.conversations import Assistant, Call

Translator = Callable[[bytes], bytes]
# Takes chunks of SSE; returns the bytes of another stream, or the answer with its calls.
Streamer = Callable[[Sequence[bytes]], bytes | Assistant]


class Job(Enum):
    """The kind of work: body to body, stream to stream, or stream to an answer with its calls."""

    REQUEST = "request"
    RESPONSE = "response"
    STREAM = "stream"
    CALLS = "calls"

    @property
    def streamed(self) -> bool:
        return self in {Job.STREAM, Job.CALLS}


def no_streams(job: Job, source: Format, target: Format) -> None:  # noqa: ARG001
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    name: str
    version: str
    # None if the library does not support the pair, which is shown as "-".
    translator: Callable[[Job, Format, Format], Translator | None]
    streamer: Callable[[Job, Format, Format], Streamer | None] = no_streams
    formats: frozenset[Format] = frozenset(FIRST)
    held_to_limits: bool = False


def dragoman() -> Candidate:
    """Dragoman through its public API, with passes and losses."""
    import dragoman as library  # noqa: PLC0415 - its import is measured too, in fresh interpreters
    from dragoman.installation import is_compiled  # noqa: PLC0415 - as above

    def translator(job: Job, source: Format, target: Format) -> Translator:
        if job is Job.RESPONSE:
            translate_response = library.translate_response
            return lambda body: translate_response(body, source=source, target=target).json()
        translate_request = library.translate_request
        return lambda body: translate_request(body, source=source, target=target).json()

    return Candidate(
        name="dragoman",
        version=f"{library.__version__} ({'compiled' if is_compiled() else 'source'})",
        translator=translator,
        streamer=_dragoman_streamer,
        formats=frozenset((*FIRST, *LATER)),
        held_to_limits=True,
    )


def _dragoman_streamer(job: Job, source: Format, target: Format) -> Streamer:
    from dragoman import StreamDecoder, StreamTranslator, accumulate  # noqa: PLC0415 - as above

    def translate(chunks: Sequence[bytes]) -> bytes:
        translator = StreamTranslator(source=source, target=target)
        feed = translator.feed
        out = [feed(chunk) for chunk in chunks]
        out.append(translator.close())
        return b"".join(out)

    def decode(chunks: Sequence[bytes]) -> Assistant:
        decoder = StreamDecoder(source)
        feed = decoder.feed
        events = [event for chunk in chunks for event in feed(chunk)]
        events += decoder.close()
        completion = accumulate(events)
        return Assistant(completion.text, tuple(Call(call.name, call.arguments) for call in completion.tool_calls))

    return translate if job is Job.STREAM else decode
