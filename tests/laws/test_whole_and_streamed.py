"""Law 5 by construction: an answer that is streamed reads like the same answer sent whole.

Every sample answer of every format, and every field of the intermediate format set alone, is written to every format
three ways: whole, as a stream of whole parts, as a stream of small pieces. What is read back must be the same.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from msgspec import UNSET, structs

import dragoman
from dragoman import StreamDecoder, accumulate, ir
from dragoman.errors import DecodeError, EncodeError, StreamError
from dragoman.ir.values import compact_text
from dragoman.streams import StreamEncoder
from tests.laws.test_every_field import WORLDS, in_answer
from tests.support.bodies import RESPONSES
from tests.support.formats import FORMATS
from tests.support.ir_examples import EXAMPLES, resolved
from tests.support.promises import promise
from tests.support.ugly import UGLY_ANSWERS

SIZE = 5
"""Characters of a piece."""
_COUNTED = [name for name in ir.Usage.__struct_fields__ if name not in {"metadata", "service_tier"}]

FAILED = {"error", "content_filter", "refusal"}
"""A stream whose format has no word for such an end says that it failed."""

# (target, answer, what differs): today's differences. A row that no longer differs must go.
_SENT = "the text was sent before the refusal was known"
_PLACE = "a citation that follows its text is placed there"
_CUT = "the whole answer has arguments where the stream has none"
_SOUND = "sound that is not sent as data"
_WHOLE = "what the stream has no event for"
_JOINED = "texts in a row are one part of the stream, in which the citations are placed"
_ENDED = "the citations come with the last chunk, and a signature has ended their text"
_QUOTE = "the body of the whole answer is kept as it was, with the quote of a page"
KNOWN: dict[tuple[str, str, str], str] = {
    ("openai-chat", "Audio.file_id", "others"): _SOUND,
    ("openai-chat", "Audio.url", "others"): _SOUND,
    ("openai-chat", "openai-chat: parts", "others"): _WHOLE,
    ("openai-responses", "anthropic-messages: cited", "citations"): _PLACE,
    ("gemini", "gemini-interactions: grounded, not stored", "citations"): _PLACE,
    ("gemini", "openai-chat: refusal and content", "citations"): _SENT,
    ("gemini", "openai-chat: refusal and content", "finish"): _SENT,
    ("gemini", "openai-chat: refusal and content", "others"): _SENT,
    ("gemini", "openai-chat: refusal and content", "refusal"): _SENT,
    ("gemini", "openai-chat: refusal and content", "text"): _SENT,
    ("gemini", "openai-responses: mixed", "citations"): _PLACE,
    ("gemini", "gemini-interactions: summary with an image", "citations"): _ENDED,
    ("gemini", "gemini: files and places", "citations"): _QUOTE,
    ("gemini", "openai-responses: messages", "citations"): _JOINED,
    ("vertex", "gemini-interactions: grounded, not stored", "citations"): _PLACE,
    ("vertex", "openai-chat: refusal and content", "citations"): _SENT,
    ("vertex", "openai-chat: refusal and content", "finish"): _SENT,
    ("vertex", "openai-chat: refusal and content", "others"): _SENT,
    ("vertex", "openai-chat: refusal and content", "refusal"): _SENT,
    ("vertex", "openai-chat: refusal and content", "text"): _SENT,
    ("vertex", "openai-responses: mixed", "citations"): _PLACE,
    ("vertex", "gemini-interactions: summary with an image", "citations"): _ENDED,
    ("vertex", "gemini: files and places", "citations"): _QUOTE,
    ("vertex", "openai-responses: messages", "citations"): _JOINED,
    ("bedrock-converse", "SearchResult.cache", "others"): _WHOLE,
    ("bedrock-converse", "gemini: audio", "others"): _SOUND,
    ("ollama-chat", "ToolCall.incomplete", "calls"): _CUT,
    ("ollama-chat", "ollama-chat: all", "others"): _WHOLE,
    ("ollama-chat", "ollama-chat: not done", "finish"): _WHOLE,
    ("ollama-chat", "openai-chat: length in call", "calls"): _CUT,
    ("ollama-chat", "openai-responses: incomplete", "calls"): _CUT,
    ("cohere-chat", "Audio.transcript", "text"): _SOUND,
    ("cohere-chat", "cohere-chat: all at once", "citations"): _PLACE,
    ("cohere-chat", "cohere-chat: plan", "citations"): _PLACE,
    ("cohere-chat", "openai-chat: audio", "text"): _SOUND,
    ("cohere-chat", "openai-chat: refusal and content", "citations"): _SENT,
}


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def answers() -> dict[str, ir.Completion]:
    """Name -> an answer with one candidate."""
    found = {f"{one.format}: {one.name}": dragoman.decode_response(one.body, one.format) for one in RESPONSES}
    for name, bodies in UGLY_ANSWERS.items():
        for of, body in bodies.items():
            try:
                found[f"{name}: {of}"] = dragoman.decode_response(body, name)
            except DecodeError:
                continue
    for kind in WORLDS["answer"][2]:
        plain: Any = resolved(EXAMPLES[kind].plain, "google", "anthropic")
        for field, changes in EXAMPLES[kind].fields.items():
            given = {key: resolved(value, "google", "anthropic") for key, value in changes.items()}
            found[f"{kind.__name__}.{field}"] = in_answer(structs.replace(plain, **given)).whole
    return {name: one for name, one in found.items() if len(one.messages) == 1 and one.finish}


def whole_parts(answer: ir.Completion) -> Iterator[ir.AnyEvent]:
    """Every part complete in its first event."""
    for index, part in enumerate(answer.messages[0].parts):
        cut = isinstance(part, ir.ToolCall) and part.incomplete
        yield from (ir.PartStart(index, part), ir.PartEnd(index, incomplete=cut))


def small_pieces(answer: ir.Completion) -> Iterator[ir.AnyEvent]:
    """Text and arguments in pieces; citations and signatures behind them."""
    for index, part in enumerate(answer.messages[0].parts):
        match part:
            case ir.Text() | ir.Reasoning() if part.text:
                first = structs.replace(part, text="", signature=None)
                cited = part.citations if isinstance(part, ir.Text) else ()
                yield ir.PartStart(index, structs.replace(first, citations=()) if cited else first)
                yield from (ir.PartDelta(index, text) for text in pieces(part.text))
                yield from (ir.PartDelta(index, "", citation) for citation in cited)
                yield ir.PartEnd(index, part.signature)
            case ir.ToolCall() if part.parsed:
                text = part.arguments_text or compact_text(part.arguments)
                yield ir.PartStart(
                    index, structs.replace(part, arguments=UNSET, arguments_text=None, signature=None, incomplete=False)
                )
                yield from (ir.PartDelta(index, text) for text in pieces(text))
                yield ir.PartEnd(index, part.signature, incomplete=part.incomplete)
            case _:
                yield from (ir.PartStart(index, part), ir.PartEnd(index))


def pieces(text: str) -> list[str]:
    return [text[start : start + SIZE] for start in range(0, len(text), SIZE)]


def stream_of(answer: ir.Completion, parts: Iterator[ir.AnyEvent]) -> list[ir.AnyEvent]:
    events: list[ir.AnyEvent] = [ir.StreamStart(answer.id, answer.model, answer.created, answer.metadata), *parts]
    events += [] if answer.usage is None else [ir.UsageUpdate(answer.usage)]
    return [*events, ir.Finished(answer.finish or ir.Finish("stop"))]


def streamed(answer: ir.Completion, parts: Iterator[ir.AnyEvent], target: str) -> ir.Completion:
    encoder, decoder = StreamEncoder(target), StreamDecoder(target)
    read = decoder.feed(encoder.encode(stream_of(answer, parts)) + encoder.close())
    return accumulate([*read, *decoder.close()])


# ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────


def story(answer: ir.Completion) -> dict[str, Any]:
    """What both must say: a stream cannot put text before a call that it has already sent, so the order may differ."""
    parts = answer.messages[0].parts
    calls = [part for part in parts if isinstance(part, ir.ToolCall)]
    usage = answer.usage
    cited = [one for part in parts if isinstance(part, ir.Text) for one in part.citations]
    signed = [getattr(part, "signature", None) for part in parts]
    return {
        "text": "".join(part.text for part in parts if isinstance(part, ir.Text)),
        "refusal": "".join(part.text for part in parts if isinstance(part, ir.Refusal)),
        "reasoning": "".join(part.text for part in parts if isinstance(part, ir.Reasoning)),
        "redacted": sum(part.redacted for part in parts if isinstance(part, ir.Reasoning)),
        "calls": [(call.name, call.custom, call.arguments if call.parsed else call.arguments_text) for call in calls],
        "ids": [call.id for call in calls if not call.invented_id and not call.id.startswith("dgm_")],
        "citations": [(one.url, one.title, one.cited_text, one.start, one.end) for one in cited],
        "signatures": Counter((one.family, one.data) for one in signed if one is not None),
        "others": Counter(type(part).__name__ for part in parts if not isinstance(part, ir.Text | ir.Reasoning)),
        "finish": answer.finish and answer.finish.reason,
        "usage": {name: getattr(usage, name, None) or 0 for name in _COUNTED},
        "tier": getattr(usage, "service_tier", None) or "default",
    }


def differences(target: str) -> Iterator[tuple[str, str]]:
    """(answer, what differs)."""
    for name, answer in answers().items():
        try:
            written = dragoman.encode_response(answer, target).json()
            expected = story(dragoman.decode_response(written, target))
        except (EncodeError, DecodeError):  # an answer that failed is an error body
            continue
        for parts in (whole_parts, small_pieces):
            try:
                found = story(streamed(answer, parts(answer), target))
            except StreamError:
                if answer.finish is None or answer.finish.reason not in FAILED:
                    yield name, "failure"
                continue
            yield from ((name, what) for what in expected if expected[what] != found[what])


@promise("law:5-streams-tell-the-same-story")
@pytest.mark.parametrize("target", FORMATS)
def test_an_answer_reads_the_same_whole_and_streamed(target: str) -> None:
    found = set(differences(target))
    known = {(name, what) for format, name, what in KNOWN if format == target}
    assert sorted(found - known) == []
    assert sorted(known - found) == [], "no longer different: remove these rows"
