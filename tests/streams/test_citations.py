"""A citation of a whole block cites that block's text in every format, also where it arrives before the text."""

import json
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


# ── places in documents, which Messages and Converse both have ────────────────────────────────────────────────


def _in_document(kind: str, start: str, end: str, *, index: int = 1) -> dict[str, Any]:
    place = {"document_index": index, start: 3, end: 7}
    return {"type": kind, "cited_text": "by Matz", "document_title": "Ruby", **place}


_FOUND = {"type": "search_result_location", "cited_text": "by Matz", "search_result_index": 2, "title": "Ruby"}
PLACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    name: (citation, {"title": "Ruby", "sourceContent": [{"text": "by Matz"}], **place})
    for name, citation, place in (
        (
            "characters",
            _in_document("char_location", "start_char_index", "end_char_index"),
            {"location": {"documentChar": {"documentIndex": 1, "start": 3, "end": 7}}},
        ),
        (
            "pages",
            _in_document("page_location", "start_page_number", "end_page_number", index=0),
            {"location": {"documentPage": {"documentIndex": 0, "start": 3, "end": 7}}},
        ),
        (
            "chunks",
            _in_document("content_block_location", "start_block_index", "end_block_index"),
            {"location": {"documentChunk": {"documentIndex": 1, "start": 3, "end": 7}}},
        ),
        (
            "search result",
            {**_FOUND, "source": "https://example.org", "start_block_index": 0, "end_block_index": 1},
            {
                "source": "https://example.org",
                "location": {"searchResultLocation": {"searchResultIndex": 2, "start": 0, "end": 1}},
            },
        ),
    )
}


def _text_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    ours, theirs = PLACES[name]
    content = {"content": [{"text": CITED}], "citations": [theirs]}
    return {"type": "text", "text": CITED, "citations": [ours]}, {"citationsContent": content}


@promise("law:2-nothing-vanishes", "law:6-owed-back")
@each("name", PLACES)
def test_a_citation_of_a_document_crosses_in_a_request(name: str) -> None:
    ours, theirs = _text_of(name)
    asked, further = {"type": "text", "text": "q"}, {"text": "q"}
    messages = [("user", asked, further), ("assistant", ours, theirs), ("user", asked, further)]
    one = {"max_tokens": 99, "messages": [{"role": role, "content": [block]} for role, block, _ in messages]}
    other = {
        "inferenceConfig": {"maxTokens": 99},
        "messages": [{"role": role, "content": [block]} for role, _, block in messages],
    }
    sent = dragoman.translate_request({"model": "m", **one}, source="anthropic-messages", target="bedrock-converse")
    assert (sent.body, sent.losses) == (other, ())
    back = dragoman.translate_request(other, source="bedrock-converse", target="anthropic-messages", model="m")
    assert [message["content"] for message in back.body["messages"]][1] == [ours]
    assert back.losses == ()


@promise("law:2-nothing-vanishes", "law:5-streams-tell-the-same-story")
@each("name", PLACES)
def test_a_citation_of_a_document_crosses_in_an_answer(name: str) -> None:
    ours, theirs = _text_of(name)
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    answer = {**head, "content": [ours], "stop_reason": "end_turn", "stop_sequence": None}
    sent = dragoman.translate_response(answer, source="anthropic-messages", target="bedrock-converse")
    assert sent.body["output"]["message"]["content"] == [theirs]
    assert [loss for loss in sent.losses if loss.path.startswith("$.content")] == []
    back = dragoman.translate_response(sent.body, source="bedrock-converse", target="anthropic-messages")
    assert back.body["content"] == [ours]
    events = [
        ("messageStart", {"role": "assistant"}),
        converse_streams.delta(0, citation=PLACES[name][1]),
        converse_streams.delta(0, text=CITED),
        converse_streams.stop(0),
        *converse_streams.ended("end_turn"),
    ]
    translator = StreamTranslator(source="bedrock-converse", target="anthropic-messages")
    written = translator.feed(converse_streams.stream(*events)) + translator.close()
    decoder = StreamDecoder("anthropic-messages")
    streamed = accumulate([*decoder.feed(written), *decoder.close()])
    assert dragoman.encode_response(streamed, "anthropic-messages").body["content"] == [ours]
    assert [loss for loss in translator.losses if "citation" in loss.path] == []


@promise("law:2-nothing-vanishes")
def test_what_messages_cannot_say_about_a_cited_document_is_reported() -> None:
    cited = {**PLACES["pages"][1], "source": "s3://bucket/a.pdf"}
    content = {"content": [{"text": CITED}], "citations": [cited]}
    body = {"messages": [{"role": "user", "content": [{"text": "q"}]}]}
    body["messages"].append({"role": "assistant", "content": [{"citationsContent": content}]})
    encoded = dragoman.translate_request(body, source="bedrock-converse", target="anthropic-messages")
    assert "source of a citation" in {loss.what for loss in encoded.losses}
    for target in ("openai-chat", "openai-responses", "gemini"):
        losses = dragoman.translate_request(body, source="bedrock-converse", target=target).losses
        assert {"location", "source"} <= {loss.what for loss in losses}


def _of_cohere(kind: str, index: int | None = None, **message: Any) -> bytes:
    event = {"type": kind, "delta": {"message": message}} | ({} if index is None else {"index": index})
    return f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode()


@promise("law:2-nothing-vanishes")
def test_a_citation_of_streamed_reasoning_is_reported() -> None:
    """The intermediate format has none; the same format gets it back."""
    cited = {"start": 0, "end": 2, "text": "Hm", "type": "THINKING_CONTENT", "content_index": 0, "sources": []}
    ended = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    stream = (
        _of_cohere("message-start", role="assistant")
        + _of_cohere("content-start", 0, content={"type": "thinking", "thinking": "Hm"})
        + _of_cohere("citation-start", 0, citations=cited)
        + _of_cohere("content-end", 0)
        + f"event: message-end\ndata: {json.dumps(ended)}\n\n".encode()
    )
    other = StreamTranslator(source="cohere-chat", target="openai-chat")
    other.feed(stream)
    other.close()
    assert [loss.what for loss in other.losses if loss.severity == "dropped"] == ["citations"]
    decoder = StreamDecoder("cohere-chat")
    events = decoder.feed(stream) + decoder.close()
    encoder = dragoman.StreamEncoder("cohere-chat")
    assert json.dumps([cited], separators=(",", ":")).encode() in (encoder.encode(events) + encoder.close()).replace(
        b" ", b""
    )


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if name != "gemini-interactions"])
def test_an_image_with_which_a_summary_begins_is_reported(target: str) -> None:
    image = {"type": "image", "data": "AAAA", "mime_type": "image/png"}
    stream = b"".join(
        f"event: {event['event_type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in (
            {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress", "model": "m"}},
            {"event_type": "step.start", "index": 0, "step": {"type": "thought", "summary": [image]}},
            {"event_type": "step.stop", "index": 0},
            {"event_type": "interaction.completed", "interaction": {"id": "i", "status": "completed"}},
        )
    )
    translator = StreamTranslator(source="gemini-interactions", target=target)
    translator.feed(stream)
    translator.close()
    assert "summary" in {loss.what for loss in translator.losses if loss.severity == "dropped"}
