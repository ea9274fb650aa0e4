"""A citation of a whole block cites that block's text in every format, also where it arrives before the text."""

from typing import Any

import pytest

import dragoman
from dragoman import StreamDecoder, StreamTranslator, accumulate, ir
from tests.support import converse_streams, messages_streams
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise

FIRST, CITED = "I looked. ", "Ruby is by Matz °é𝄞."
PAGE = {"type": "web_search_result_location", "url": "https://example.org", "title": "Ruby", "cited_text": "by Matz"}
CITATION = {**PAGE, "encrypted_index": "aWR4"}
SOURCE = {"title": "Ruby", "location": {"web": {"url": "https://example.org", "domain": "example.org"}}}

_MESSAGES: list[dict[str, Any]] = [
    messages_streams.started(),
    *messages_streams.text(0, FIRST),
    messages_streams.start(1, type="text", text="", citations=[]),
    messages_streams.delta(1, "citations_delta", citation=CITATION),
    messages_streams.delta(1, "text_delta", text=CITED[:7]),
    messages_streams.delta(1, "text_delta", text=CITED[7:]),
    messages_streams.stop(1),
    *messages_streams.ended("end_turn"),
]
_CONVERSE: list[tuple[str, Any]] = [
    ("messageStart", {"role": "assistant"}),
    converse_streams.delta(0, text=FIRST),
    converse_streams.stop(0),
    converse_streams.delta(1, citation=SOURCE),
    converse_streams.delta(1, text=CITED[:7]),
    converse_streams.delta(1, text=CITED[7:]),
    converse_streams.stop(1),
    *converse_streams.ended("end_turn"),
]
STREAMS = {
    "anthropic-messages": messages_streams.sse(_MESSAGES),
    "bedrock-converse": converse_streams.stream(*_CONVERSE),
}


def cited_texts(answer: ir.Completion) -> list[tuple[str | None, str]]:
    """Return the page of each citation, and the text that it stands for."""
    texts = [part for part in answer.messages[0].parts if isinstance(part, ir.Text)]
    return [
        (one.url, part.text[0 if one.start is None else one.start : one.end])
        for part in texts
        for one in part.citations
    ]


@promise("law:5-streams-tell-the-same-story")
@each("target", FORMATS)
@pytest.mark.parametrize("source", STREAMS)
def test_a_citation_before_its_text_cites_that_text(source: str, target: str) -> None:
    translator = StreamTranslator(source=source, target=target)
    decoder = StreamDecoder(target)
    written = translator.feed(STREAMS[source]) + translator.close()
    answer = accumulate([*decoder.feed(written), *decoder.close()])
    if target == "ollama-chat":  # has no citations
        assert "citation" in {loss.what for loss in translator.losses}
        return
    assert cited_texts(answer) == [("https://example.org", CITED)]


@promise("law:2-nothing-vanishes")
def test_a_cited_text_that_breaks_off_keeps_its_citations() -> None:
    decoder = StreamDecoder("anthropic-messages")
    events = decoder.feed(messages_streams.sse(_MESSAGES[:7])) + decoder.close()
    assert [event.citation.url for event in events if isinstance(event, ir.PartDelta) and event.citation] == [
        "https://example.org"
    ]
    assert isinstance(events[-1], ir.StreamFailed)


@promise("law:2-nothing-vanishes")
def test_citations_of_a_further_candidate_are_not_written() -> None:
    encoder = dragoman.StreamEncoder("openai-chat")
    citation = ir.Citation("https://example.org")
    written = encoder.encode(
        [ir.StreamStart(), ir.PartStart(0, ir.Text(""), candidate=1), ir.PartDelta(0, "", citation), ir.PartEnd(0)]
    )
    assert b"example.org" not in written
    assert [loss.what for loss in encoder.losses] == ["a further candidate"]
