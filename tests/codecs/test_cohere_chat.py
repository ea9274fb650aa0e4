"""Cohere's chat v2: the traps of its wire, in the order of the notes about it; what happens is said beside each."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.codecs.reading import WireReader
from dragoman.errors import DecodeError
from dragoman.ir.traits import EMPTY_MESSAGE, traits_of
from dragoman.sim.rules import cohere_chat as judge
from tests.support.formats import refusals
from tests.support.promises import promise
from tests.support.recordings import load, recordings_dir

FORMAT = "cohere-chat"
MODEL = "command-a-03-2025"
REASONER = "command-a-reasoning-08-2025"
HI = ir.Message("user", "hi")
TOOL = ir.ToolDefinition("f", "does f", {"type": "object", "properties": {"a": {"type": "integer"}}})
Json = dict[str, Any]

pytestmark = promise("law:2-nothing-vanishes", "law:3-legality")


def sent(request: ir.Request) -> tuple[Json, set[tuple[str, str]]]:
    """The body, which the judge takes, and its losses."""
    encoded = dragoman.encode_request(request, FORMAT)
    assert judge.check_request(encoded.body) == ()
    return encoded.body, {(loss.severity, loss.path) for loss in encoded.losses}


def request(*messages: ir.Message, **settings: Any) -> ir.Request:
    return ir.Request(settings.pop("model", MODEL), messages or (HI,), **settings)


def read(message: Json, finish: str = "COMPLETE", **more: Any) -> ir.Completion:
    body = {"id": "x", "message": {"role": "assistant", **message}, "finish_reason": finish, **more}
    return dragoman.decode_response(body, FORMAT)


def call(arguments: str = "{}", id: str = "f_1") -> Json:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def stream(*events: Json | str) -> list[ir.AnyEvent]:
    decoder = dragoman.StreamDecoder(FORMAT)
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    return [*decoder.feed("".join(lines).encode()), *decoder.close()]


def event_of(kind: str, index: int | None = None, **message: Any) -> Json:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, "delta": {"message": message}}


START = {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant", "content": []}}}


def end(word: str = "COMPLETE", **more: Any) -> Json:
    return {"type": "message-end", "delta": {"finish_reason": word, **more}}


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_01_a_choice_is_one_of_two_words_in_capitals() -> None:
    for mode, word in (("required", "REQUIRED"), ("none", "NONE")):
        body, _ = sent(request(tools=(TOOL,), tool_choice=ir.ToolChoice(mode)))  # type: ignore[arg-type]
        assert body["tool_choice"] == word
    body, losses = sent(request(tools=(TOOL,), tool_choice=ir.ToolChoice("auto")))
    assert "tool_choice" not in body
    assert losses == set()
    with pytest.raises(DecodeError, match="REQUIRED or NONE"):
        dragoman.decode_request(
            {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "tool_choice": "auto"}, FORMAT
        )


def test_01_a_named_tool_is_the_only_one_declared() -> None:
    other = ir.ToolDefinition("g", "does g")
    body, losses = sent(request(tools=(TOOL, other), tool_choice=ir.ToolChoice("required", ("f",))))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["f"]
    assert body["tool_choice"] == "REQUIRED"
    assert losses == {("degraded", "$.tools[1]")}


def test_02_no_key_that_the_api_does_not_know_is_sent() -> None:
    foreign = {
        "model": "gpt-4.1",
        "messages": [
            {"role": "user", "content": "hi", "name": "ann"},
            {"role": "assistant", "content": None, "refusal": None, "tool_calls": [{**call(), "index": 0}]},
            {"role": "tool", "tool_call_id": "f_1", "name": "f", "content": "1"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}],
        "user": "u",
        "n": 1,
        "parallel_tool_calls": True,
    }
    encoded = dragoman.translate_request(foreign, source="openai-chat", target=FORMAT, model=MODEL)
    assert judge.check_request(encoded.body) == ()
    assert encoded.body["strict_tools"] is True
    unknown = judge.check_request({**encoded.body, "n": 1})
    assert [violation.status for violation in unknown] == [422]


def test_03_settings_outside_the_range_are_fitted_and_reported() -> None:
    body, losses = sent(
        request(
            temperature=1.5, top_p=1.0, top_k=900, presence_penalty=-0.5, frequency_penalty=1.5, stop=tuple("abcdefg")
        )
    )
    assert (body["temperature"], body["p"], body["k"], body["frequency_penalty"]) == (1, 0.99, 500, 1)
    assert body["stop_sequences"] == list("abcde")
    assert losses == {
        ("degraded", "$.temperature"),
        ("degraded", "$.top_p"),
        ("degraded", "$.top_k"),
        ("dropped", "$.presence_penalty"),
        ("degraded", "$.frequency_penalty"),
        ("dropped", "$.stop"),
    }


def test_04_names_with_hyphens_and_dots_get_an_alias_everywhere_and_come_back() -> None:
    name = "mcp.server-tool"
    given = request(
        HI,
        ir.Message("assistant", (ir.ToolCall("c1", name, {}),)),
        ir.Message("tool", (ir.ToolResult("c1", name, "text", "1"),)),
        tools=(ir.ToolDefinition(name, "does it"),),
    )
    body, _ = sent(given)
    alias = body["tools"][0]["function"]["name"]
    assert alias == body["messages"][1]["tool_calls"][0]["function"]["name"] != name
    answer = {
        "id": "x",
        "message": {"role": "assistant", "tool_calls": [{**call(), "function": {"name": alias, "arguments": "{}"}}]},
    }
    client = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": name}}],
    }
    back = dragoman.translate_response(
        {**answer, "finish_reason": "TOOL_CALL"},
        source=FORMAT,
        target="openai-chat",
        request=dragoman.decode_request(client, "openai-chat"),
    )
    assert back.body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == name


@pytest.mark.parametrize("text", ["", "null", "{}"])
def test_05_no_arguments_have_three_spellings_and_one_value(text: str) -> None:
    completion = read({"tool_calls": [call(text)]}, "TOOL_CALL")
    assert completion.tool_calls[0].arguments == {}
    again = dragoman.encode_response(completion, FORMAT).body
    assert again["message"]["tool_calls"][0]["function"]["arguments"] == text


def test_06_spacing_of_arguments_is_kept_where_it_came() -> None:
    for text in ('{"x": 2}', '{"x":2}', '{\n    "x": 2\n}'):
        completion = read({"tool_calls": [call(text)]}, "TOOL_CALL")
        assert completion.tool_calls[0].arguments == {"x": 2}
        assert completion.tool_calls[0].arguments_text == text


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_07_and_08_deltas_are_objects_and_blocks_and_calls_are_numbered_apart() -> None:
    events = stream(
        START,
        event_of("content-start", 0, content={"type": "thinking", "thinking": ""}),
        event_of("content-delta", 0, content={"thinking": "Hm."}),
        {"type": "content-end", "index": 0},
        event_of("tool-call-start", 0, tool_calls=call("", "f_1")),
        event_of("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"a"'}}),
        event_of("tool-call-delta", 0, tool_calls={"function": {"arguments": ": 1}"}}),
        {"type": "tool-call-end", "index": 0},
        event_of("tool-call-start", 1, tool_calls=call("", "f_2")),
        {"type": "tool-call-end", "index": 1},
        end("TOOL_CALL"),
        "[DONE]",
    )
    completion = dragoman.accumulate(events)
    assert completion.reasoning == "Hm."
    assert [(one.id, one.arguments) for one in completion.tool_calls] == [("f_1", {"a": 1}), ("f_2", {})]


def test_09_and_10_a_plan_ends_where_calls_start_and_is_not_an_answer() -> None:
    events = stream(
        START,
        event_of("tool-plan-delta", tool_plan="I will "),
        event_of("tool-plan-delta", tool_plan="look."),
        event_of("tool-call-start", 0, tool_calls=call("{}")),
        {"type": "tool-call-end", "index": 0},
        end("TOOL_CALL"),
    )
    completion = dragoman.accumulate(events)
    assert [type(part).__name__ for part in completion.messages[0].parts] == ["Text", "ToolCall"]
    back = dragoman.encode_response(completion, FORMAT).body["message"]
    assert (back["tool_plan"], "content" in back) == ("I will look.", False)


def test_09_a_plan_that_is_cut_off_is_kept() -> None:
    events = stream(START, event_of("tool-plan-delta", tool_plan="I will"), end("MAX_TOKENS"))
    assert dragoman.accumulate(events).text == "I will"


def test_10_a_plan_comes_back_as_a_plan_through_clients_of_other_formats() -> None:
    answer = {"id": "x", "message": {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [call('{"a":1}')]}}
    for client in ("openai-chat", "anthropic-messages", "gemini", "ollama-chat"):
        shown = dragoman.translate_response({**answer, "finish_reason": "TOOL_CALL"}, source=FORMAT, target=client)
        completion = dragoman.decode_response(shown.json(), client)
        history = ir.Request(
            "m",
            (
                HI,
                completion.messages[0],
                ir.Message("tool", (ir.ToolResult(completion.tool_calls[0].id, "f", "text", "1"),)),
            ),
            tools=(TOOL,),
        )
        again = dragoman.encode_request(history, client).json()
        body = dragoman.translate_request(again, source=client, target=FORMAT, model=MODEL).body
        assert body["messages"][1]["tool_plan"] == "I will look."
        assert "content" not in body["messages"][1]


def test_11_a_turn_with_calls_has_no_content() -> None:
    completion = read({"tool_calls": [call()]}, "TOOL_CALL")
    assert completion.text == ""
    thinking = read({"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]})
    assert (thinking.text, thinking.reasoning) == ("Yes.", "Hm.")


# ── thinking ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_12_absent_is_on_and_only_disabled_is_off() -> None:
    body, _ = sent(request(model=REASONER, reasoning=ir.ReasoningSettings("off")))
    assert body["thinking"] == {"type": "disabled"}
    body, _ = sent(request(model=REASONER))
    assert "thinking" not in body
    body, _ = sent(request(model=REASONER, reasoning=ir.ReasoningSettings("on", None, 2000)))
    assert body["thinking"] == {"type": "enabled", "token_budget": 2000}


def test_13_thinking_has_no_signature_and_no_signature_is_sent() -> None:
    claudes = ir.Reasoning("Hm.", ir.Signature("anthropic", "sig"))
    body, losses = sent(request(HI, ir.Message("assistant", (claudes, ir.Text("Yes."))), HI))
    assert "sig" not in json.dumps(body)
    assert ("dropped", "$.messages[1].parts[0]") in losses
    shown = dragoman.translate_response(
        {
            "id": "x",
            "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]},
            "finish_reason": "COMPLETE",
        },
        source=FORMAT,
        target="anthropic-messages",
    )
    assert not [block for block in shown.body["content"] if block.get("signature", "").startswith("Hm")]
    plain, _ = sent(request(HI, ir.Message("assistant", (ir.Reasoning("Hm."), ir.Text("Yes."))), HI))
    assert plain["messages"][1]["content"][0] == {"type": "thinking", "thinking": "Hm."}


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────


def cited(start: int, end: int, **more: Any) -> Json:
    return {
        "start": start,
        "end": end,
        "text": "x",
        "sources": [{"type": "document", "id": "d", "document": {"text": "s"}}],
        **more,
    }


def test_14_a_citation_without_an_index_is_of_the_first_text() -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes, it is."}]
    for citation in (cited(0, 3), cited(0, 3, content_index=1)):
        text = read({"content": content, "citations": [citation]}).messages[0].parts[1]
        assert isinstance(text, ir.Text)
        assert [(one.start, one.end) for one in text.citations] == [(0, 3)]


def test_15_ranges_are_of_the_answer() -> None:
    completion = read({"content": [{"type": "text", "text": "It is 22° now."}], "citations": [cited(6, 9)]})
    part = completion.messages[0].parts[0]
    assert isinstance(part, ir.Text)
    assert part.text[part.citations[0].start : part.citations[0].end] == "22°"


def test_16_and_17_sources_keep_their_ids_and_merged_documents_as_they_came() -> None:
    sources = [
        {"type": "tool", "id": "f_1:0", "tool_output": {"content": "22"}},
        {
            "type": "document",
            "id": "doc:0",
            "document": {"id": "doc:0", "title": "T", "text": "words", "url": "https://a.b"},
        },
    ]
    message = {"content": [{"type": "text", "text": "22."}], "citations": [cited(0, 2, sources=sources)]}
    completion = read(message)
    part = completion.messages[0].parts[0]
    assert isinstance(part, ir.Text)
    assert [(one.title, one.url, one.cited_text) for one in part.citations] == [
        ("f_1:0", None, "22"),
        ("T", "https://a.b", "words"),
    ]
    assert dragoman.encode_response(completion, FORMAT).body["message"]["citations"] == message["citations"]


def test_citations_of_a_stream_are_those_of_the_text() -> None:
    events = stream(
        START,
        event_of("content-start", 0, content={"type": "text", "text": ""}),
        event_of("content-delta", 0, content={"text": "It is 22."}),
        event_of("citation-start", 0, citations=cited(6, 8)),
        {"type": "citation-end", "index": 0},
        {"type": "content-end", "index": 0},
        event_of("citation-start", 1, citations=cited(0, 2)),
        {"type": "citation-end", "index": 1},
        end(),
    )
    (part,) = dragoman.accumulate(events).messages[0].parts
    assert isinstance(part, ir.Text)
    assert [one.start for one in part.citations] == [6, 0]


# ── usage, ends, errors ───────────────────────────────────────────────────────────────────────────────────────


def test_18_to_20_counts_are_tokens_and_billed_units_are_beside_them() -> None:
    usage = read(
        {"content": [{"type": "text", "text": "x"}]},
        usage={
            "billed_units": {"input_tokens": 11, "output_tokens": 3},
            "tokens": {"input_tokens": 506, "output_tokens": 40, "reasoning_tokens": 30, "image_tokens": 259},
            "cached_tokens": 448,
        },
    ).usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cached, usage.reasoning, usage.image) == (765, 40, 448, 30, 259)
    assert usage.metadata is not None
    assert json.loads(bytes(usage.metadata["cohere"]["billed_units"])) == {"input_tokens": 11, "output_tokens": 3}
    only_billed = read({"content": []}, usage={"billed_units": {"input_tokens": 2, "output_tokens": 1}}).usage
    assert only_billed is not None
    assert (only_billed.input, only_billed.output) == (2, 1)


def test_21_no_model_is_made_up() -> None:
    assert read({"content": []}).model is None
    encoded = dragoman.encode_response(
        ir.Completion((ir.Message("assistant", "x"),), ir.Finish("stop"), id="x", model="m"), FORMAT
    )
    assert "model" not in encoded.body
    assert [loss.severity for loss in encoded.losses] == ["noted"]


def test_22_which_stop_sequence_matched_is_not_reported() -> None:
    completion = read({"content": []}, "STOP_SEQUENCE")
    assert completion.finish == ir.Finish("stop", "STOP_SEQUENCE")
    ended = ir.Completion((ir.Message("assistant", "x"),), ir.Finish("stop", None, "END"), id="x")
    encoded = dragoman.encode_response(ended, FORMAT)
    assert encoded.body["finish_reason"] == "STOP_SEQUENCE"
    assert [loss.what for loss in encoded.losses] == ["matched stop sequence"]


def test_23_a_word_on_a_deny_list_is_not_an_expired_key() -> None:
    assert dragoman.decode_error(b'{"message": "invalid token"}', FORMAT, status=498).kind == "invalid_request"
    refused = ir.Completion((ir.Message("assistant", (ir.Refusal("No."),)),), ir.Finish("refusal"), id="x")
    encoded = dragoman.encode_response(refused, FORMAT)
    assert encoded.body["message"]["content"] == [{"type": "text", "text": "No."}]
    assert encoded.body["finish_reason"] == "COMPLETE"


def test_24_errors_are_flat() -> None:
    failure = ir.Failure("invalid_request", "too long", 400, code="context_length_exceeded")
    assert dragoman.encode_error(failure, FORMAT).body == {"message": "too long", "error_type": "TOO_MANY_TOKENS"}
    body = {"id": "x", "message": "too many tokens: size limit exceeded by 3 tokens"}
    assert dragoman.decode_error(body, FORMAT, status=400).code == "context_length_exceeded"


def test_log_probabilities_of_a_stream_are_a_list_as_in_a_whole_answer() -> None:
    pieces = [{"text": text, "token_ids": [number], "logprobs": [-0.5]} for number, text in enumerate(("a", "b"))]
    deltas = [event_of("content-delta", 0, content={"text": piece["text"]}) | {"logprobs": piece} for piece in pieces]
    events = stream(
        event_of("message-start", role="assistant"),
        event_of("content-start", 0, content={"type": "text", "text": ""}),
        *deltas,
        event_of("content-end", 0),
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    )
    answer = dragoman.accumulate(events)
    assert answer.text == "ab"
    assert json.loads(dragoman.encode_response(answer, FORMAT).json())["logprobs"] == pieces


def contents_of(data: bytes) -> dict[int, str]:
    """The blocks of a stream: their text, and whether they are signed."""
    blocks: dict[int, str] = {}
    for line in data.decode().splitlines():
        event = json.loads(line[6:]) if line.startswith("data: {") else {}
        if event.get("type") == "content-start":
            blocks[event["index"]] = ""
        elif event.get("type") == "content-delta":
            content = event["delta"]["message"]["content"]
            blocks[event["index"]] += content.get("text", "") + content.get("thinking", "")
            blocks[event["index"]] += "signed" if "signature" in content else ""
    return blocks


@pytest.mark.parametrize("kind", [ir.Text, ir.Reasoning, ir.Refusal])
def test_no_block_of_a_stream_is_empty(kind: type[Any]) -> None:
    """A client sends the answer back, and a blank text is refused."""
    late = ir.Signature("google", "c2ln")
    end = ir.Finished(ir.Finish("stop"))
    first, second = ir.PartStart(0, kind("")), ir.PartStart(1, kind("a"))
    cases: tuple[tuple[list[ir.AnyEvent], dict[int, str]], ...] = (
        ([first, ir.PartEnd(0)], {}),
        ([first, ir.PartDelta(0, ""), ir.PartEnd(0)], {}),
        ([first, ir.PartEnd(0, signature=late)], {0: "signed"}),
        ([first, second, ir.PartEnd(0), ir.PartEnd(1)], {0: "a"}),
        ([first, second, ir.PartDelta(0, "b"), ir.PartEnd(0), ir.PartEnd(1)], {0: "a", 1: "b"}),
    )
    for events, blocks in cases:
        encoder = dragoman.StreamEncoder(FORMAT)
        data = encoder.encode([ir.StreamStart("x"), *events, end]) + encoder.close()
        assert contents_of(data) == blocks
        assert data.count(b'"content-start"') == data.count(b'"content-end"')


def test_25_a_stream_that_fails_ends_its_message() -> None:
    events = stream(START, end("ERROR", error="it broke"))
    assert isinstance(events[-1], ir.StreamFailed)
    assert events[-1].failure.message == "it broke"
    encoder = dragoman.StreamEncoder(FORMAT)
    data = encoder.encode([ir.StreamStart("x"), ir.StreamFailed(ir.Failure("overloaded", "busy"))]) + encoder.close()
    assert b"event: error" not in data
    assert b'{"type":"message-end","delta":{"finish_reason":"ERROR","error":"busy"}}' in data
    assert isinstance(stream(START)[-1], ir.StreamFailed)


@pytest.mark.parametrize("done", ["[DONE]", '"[DONE]"'])
def test_26_the_last_word_may_have_quotes(done: str) -> None:
    assert isinstance(stream(START, end(), done)[-1], ir.Finished)


def test_unknown_events_are_skipped() -> None:
    events = stream(START, {"type": "debug", "prompt": "x"}, {"type": "of-tomorrow", "index": 3}, end())
    assert [type(event).__name__ for event in events] == ["StreamStart", "Finished"]


# ── output, safety, turns ─────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}


def test_27_a_format_beside_tools_is_left_out_and_reported() -> None:
    body, losses = sent(request(tools=(TOOL,), output=ir.StructuredOutput("schema", SCHEMA, "n")))
    assert "response_format" not in body
    assert ("dropped", "$.output") in losses


def test_27_documents_beside_a_format_are_text() -> None:
    given = request(ir.Message("user", (ir.Document(text="Facts."), ir.Text("?"))), output=ir.StructuredOutput("json"))
    body, losses = sent(given)
    assert "documents" not in body
    assert body["messages"][0]["content"][0] == {"type": "text", "text": "Facts."}
    assert ("degraded", "$.messages[0].parts[0]") in losses


def test_28_the_schema_is_not_wrapped() -> None:
    body, losses = sent(request(output=ir.StructuredOutput("schema", SCHEMA, "n", strict=True)))
    form = body["response_format"]
    assert (form["type"], form["json_schema"]["type"]) == ("json_object", "object")
    assert "minimum" not in form["json_schema"]["properties"]["a"]
    assert ("dropped", "$.output.name") in losses
    assert any(severity == "degraded" for severity, _ in losses)


def test_29_the_safety_mode_stays_with_its_family() -> None:
    given = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "safety_mode": "STRICT"}
    assert dragoman.translate_request(given, source=FORMAT, target=FORMAT).body == given
    (loss,) = dragoman.translate_request(given, source=FORMAT, target="openai-chat").losses
    assert (loss.severity, loss.path) == ("dropped", "$.safety_mode")


def test_30_there_is_no_prefill() -> None:
    body, losses = sent(request(HI, ir.Message("assistant", "The answer is")))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert ("invented", "$.messages[1]") in losses


def test_31_an_empty_turn_is_left_out() -> None:
    body, _ = sent(request(HI, ir.Message("assistant", ()), HI))
    assert [message["role"] for message in body["messages"]] == ["user", "user"]
    body, losses = sent(request(HI, ir.Message("assistant", (ir.Image("image/png", "AAAA"),)), HI))
    assert [message["role"] for message in body["messages"]] == ["user", "user"]
    assert ("dropped", "$.messages[1].parts[0]") in losses


def test_32_version_1_is_another_format() -> None:
    old = {"model": "command-r", "message": "hi", "chat_history": []}
    assert dragoman.detect(old) is None
    with pytest.raises(DecodeError, match="messages"):
        dragoman.decode_request(old, FORMAT)


def test_33_the_format_is_chosen_by_name_and_not_by_model() -> None:
    chat = {"model": "command-a-03-2025", "messages": [{"role": "user", "content": "x"}], "max_completion_tokens": 3}
    encoded = dragoman.translate_request(chat, source="openai-chat", target=FORMAT)
    assert encoded.body["max_tokens"] == 3
    assert encoded.path == "/v2/chat"


def test_34_an_image_stays_an_address_or_data() -> None:
    for url in ("https://example.org/a.png", "data:image/png;base64,AAAA"):
        given = {
            "model": MODEL,
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
        }
        assert dragoman.translate_request(given, source=FORMAT, target=FORMAT).body == given


def test_35_numbers_are_compared_as_numbers() -> None:
    counts = {"tokens": {"input_tokens": 3.0, "output_tokens": 2.0}, "cached_tokens": 1.0}
    completion = read({"content": []}, usage=counts)
    assert completion.usage is not None
    assert [completion.usage.input, completion.usage.output, completion.usage.cached] == [3, 2, 1]
    assert all(type(count) is int for count in (completion.usage.input, completion.usage.cached))
    large = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "seed": 2**64 - 1}
    assert dragoman.translate_request(large, source=FORMAT, target=FORMAT).body == large


# ── documents, strict tools ───────────────────────────────────────────────────────────────────────────────────


def test_documents_cross_as_documents_with_the_last_question() -> None:
    given = {
        "model": MODEL,
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
        "documents": [{"id": "d1", "data": {"title": "T", "text": "Facts."}}, "bare"],
    }
    encoded = dragoman.translate_request(given, source=FORMAT, target="anthropic-messages", model="claude-sonnet-4-5")
    blocks = encoded.body["messages"][2]["content"]
    assert [block["type"] for block in blocks] == ["document", "document", "text"]
    assert blocks[0]["title"] == "T"
    assert ("dropped", "$.documents[0].id") in {(loss.severity, loss.path) for loss in encoded.losses}
    assert dragoman.translate_request(given, source=FORMAT, target=FORMAT).body == given


def test_a_document_of_another_format_belongs_to_the_whole_request() -> None:
    body, losses = sent(request(ir.Message("user", (ir.Document(text="Facts.", title="T"), ir.Text("?")))))
    assert body["documents"] == [{"data": {"title": "T", "text": "Facts."}}]
    assert losses == {("degraded", "$.messages[0].parts[0]")}


def test_one_document_of_data_is_what_a_tool_gave_back() -> None:
    content = [{"type": "document", "document": {"id": "w1", "data": {"temp": "22C"}}}]
    given = {
        "model": MODEL,
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": [call()]},
            {"role": "tool", "tool_call_id": "f_1", "content": content},
        ],
    }
    result = dragoman.decode_request(given, FORMAT).messages[2].tool_results[0]
    assert (result.kind, result.value, result.name) == ("data", {"temp": "22C"}, "f")
    assert dragoman.translate_request(given, source=FORMAT, target=FORMAT).body == given


def test_strict_is_one_switch() -> None:
    strict, loose = (ir.ToolDefinition(name, "x", None, strict) for name, strict in (("f", True), ("g", None)))
    body, _ = sent(request(tools=(strict,)))
    assert body["strict_tools"] is True
    assert "strict" not in body["tools"][0]["function"]
    body, losses = sent(request(tools=(strict, loose)))
    assert "strict_tools" not in body
    assert ("degraded", "$.tools[0].strict") in losses


def test_a_tool_without_words_or_inputs_is_described_by_its_name() -> None:
    body, losses = sent(request(tools=(ir.ToolDefinition("f"),)))
    assert body["tools"][0]["function"]["description"] == "f"
    assert ("invented", "$.tools[0].description") in losses


# ── recorded traffic ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(recordings_dir() is None, reason="no recordings here")
def test_no_recorded_body_is_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key that was recorded is modelled."""
    lifted: list[str] = []
    original = WireReader._read_lifted  # noqa: SLF001

    def recording(reader: Any, body: Any, fault: str, path: str) -> Any:
        lifted.append(fault)
        return original(reader, body, fault, path)

    monkeypatch.setattr(WireReader, "_read_lifted", recording)
    seen = 0
    for record in load(FORMAT):
        if isinstance(record.response, dict) and record.status == 200:
            dragoman.decode_response(record.response, FORMAT)
            seen += 1
    assert seen > 70
    assert lifted == []


# ── its own requests ──────────────────────────────────────────────────────────────────────────────────────────

FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
UNKNOWN = {"type": "later", "name": "g"}


@promise("law:1-identity")
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("tools", [[], [FUNCTION], [UNKNOWN], [FUNCTION, UNKNOWN]])
def test_strict_tools_stays_beside_tools_of_any_type(tools: list[Json], *, strict: bool) -> None:
    given = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "tools": tools, "strict_tools": strict}
    again = dragoman.encode_request(dragoman.decode_request(given, FORMAT), FORMAT)
    assert again.body == given
    assert again.losses == ()


@promise("core:traits")
@pytest.mark.parametrize("earlier", [[], [{"type": "text", "text": "x"}]])
def test_documents_fill_only_the_message_they_are_for(earlier: list[Json]) -> None:
    messages = [{"role": "user", "content": earlier}, {"role": "user", "content": []}]
    given = {"model": MODEL, "messages": messages, "documents": [{"data": {"text": "d"}}]}
    traits = traits_of(dragoman.decode_request(given, FORMAT))
    assert traits is not None
    assert bool(traits[0] & EMPTY_MESSAGE) == (earlier == [])


def test_a_choice_of_tools_that_are_not_there_is_reported_and_not_sent() -> None:
    body, losses = sent(request(tool_choice=ir.ToolChoice("required", ("f",)), origin="cohere"))
    assert "tool_choice" not in body
    assert losses == {("dropped", "$.tool_choice")}


@promise("law:3-legality", "law:2-nothing-vanishes")
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_an_array_that_declares_no_items_gets_any(target: str) -> None:
    """OpenAI refuses it («array schema missing items»); LangChain's tools for Cohere have such arrays."""
    bare: dict[str, Any] = {"type": "array"}
    schemas = (
        {"type": "object", "properties": {"a": bare}},
        {"type": "object", "properties": {"a": {"type": ["array", "null"]}}},
        {"type": "object", "properties": {"a": {"anyOf": [bare, {"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/l"}}, "$defs": {"l": bare}},
        {"properties": {"a": bare}},
    )
    for schema in schemas:
        tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
        body = {"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [tool]}
        encoded = dragoman.translate_request(body, source="cohere-chat", target=target, model="gpt-4.1")
        assert refusals(encoded, target) == ()
        assert {(loss.severity, loss.what) for loss in encoded.losses} >= {("invented", "schema keyword 'items'")}
    listed = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": listed}}
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [tool]}
    encoded = dragoman.translate_request(body, source="cohere-chat", target=target, model="gpt-4.1")
    assert b'"items":{"type":"string"}' in encoded.json()
    assert encoded.losses == ()
