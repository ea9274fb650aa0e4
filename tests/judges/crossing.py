"""What crosses to a vendor from the other formats: recorded requests and answers, every twenty-fifth of them."""

from collections.abc import Callable, Iterator
from typing import Any

import dragoman
from dragoman import ir
from tests.accepted_differences import NOT_DECODED, REFUSED
from tests.support.calls import all_calls
from tests.support.formats import FAMILY, FORMATS, MODELS
from tests.support.recordings import FORMAT_OF, Record
from tests.support.trees import difference

Recordings = Callable[[str], Iterator[Record]]
# (severity, path in the source) of each loss
LossPairs = set[tuple[str, str]]

FILES = {
    name: format
    for name, format in FORMAT_OF.items()
    if format in {"openai-chat", "gemini", "vertex"} or name == "anthropic-messages"
}
EVERY = 25
_NO_CROSSING = {row.id for row in (*NOT_DECODED, *REFUSED)}


def _sampled(recordings: Recordings, target: str) -> Iterator[tuple[str, Record]]:
    for file, source in FILES.items():
        if FAMILY[source] == FAMILY[target]:
            continue
        taken = [record for record in recordings(file) if record.status == 200 and record.request is not None]
        yield from ((source, record) for record in taken[::EVERY] if record.id not in _NO_CROSSING)


def crossed_requests(recordings: Recordings, target: str) -> Iterator[tuple[str, dragoman.Encoded]]:
    """(record id, what we send) for requests that were recorded in formats of the other vendors."""
    for source, record in _sampled(recordings, target):
        assert record.request is not None
        model = MODELS[target]
        yield record.id, dragoman.translate_request(record.request, source=source, target=target, model=model)


def crossed_answers(recordings: Recordings, target: str) -> Iterator[tuple[str, ir.Completion, dragoman.Encoded]]:
    """(record id, what was answered, what we pass on) for answers of the other vendors."""
    for source, record in _sampled(recordings, target):
        if isinstance(record.response, dict):
            completion = dragoman.decode_response(record.response, source)
            yield record.id, completion, dragoman.translate_response(record.response, source=source, target=target)


def content_of(completion: ir.Completion) -> tuple[Any, ...]:
    """What a client of any format wants to know: text, calls, tokens read and written."""
    usage = completion.usage
    calls = [(call.name, call.arguments) for call in all_calls(completion)]
    return completion.text, calls, None if usage is None else (usage.input, usage.output)


def assert_comes_back(sent: bytes, body: dict[str, Any], source: str) -> None:
    """A body that an SDK sent, decoded and encoded, is that body."""
    again = dragoman.encode_request(dragoman.decode_request(sent, source), source)
    assert difference(body, again.body) is None
    assert again.losses == ()


def losses_elsewhere(sent: bytes, source: str) -> dict[str, LossPairs]:
    """What does not cross from this body to each other format."""
    return {
        target: {
            (loss.severity, loss.path)
            for loss in dragoman.translate_request(sent, source=source, target=target, model=MODELS[target]).losses
        }
        for target in FORMATS
        if target != source
    }


def turns_of(request: ir.Request) -> list[Any]:
    """Who says what, part by part: turns are cut differently in each format, thoughts stay at home."""
    parts = ((message.role, part) for message in request.messages for part in message.parts)
    return [(role, *_content(part)) for role, part in parts if not isinstance(part, ir.Reasoning)]


def _content(part: ir.AnyPart) -> tuple[Any, ...]:
    match part:
        case ir.Text():
            return (part.text,)
        case ir.Image() | ir.Audio() | ir.Document():
            return part.media_type, part.data, part.url
        case ir.ToolCall():
            return part.name, part.arguments
        case ir.ToolResult():
            return part.name, part.kind, part.value, [_content(inner) for inner in part.parts]
        case _:
            return (type(part).__name__,)
