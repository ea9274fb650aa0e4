"""Behaviours that no other test noticed when a mutation run broke them (scripts/mutate.py)."""

import json
from collections import UserDict, UserList
from itertools import product
from typing import Any, get_args

import pytest

import dragoman
from dragoman import StreamDecoder, accumulate, ir
from dragoman.codecs.claude_models import _MODELS, ALL_EFFORTS
from dragoman.codecs.claude_tools import functions_of
from dragoman.codecs.failures import kind_of_status, status_of_kind
from dragoman.codecs.framing import AwsEventStream, aws_frame, aws_headers, read_aws_headers
from dragoman.codecs.memo import ENTRY_BYTES, BoundedMemo
from dragoman.codecs.reasoning_tags import join_thinking, split_thinking
from dragoman.codecs.records.signs import _KINDS, known_record
from dragoman.codecs.stream_limits import Limits
from dragoman.codecs.wire_values import Wire, further_keys
from dragoman.errors import DecodeError, StreamError
from dragoman.ir.values import to_raw
from dragoman.streams import StreamEncoder
from tests.datasets.public_shapes import SHAPES
from tests.support import converse_streams
from tests.support.bodies import PIXEL
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS, refusals
from tests.support.golden import bodies_of
from tests.support.promises import promise
from tests.support.records import RECORDS


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", [name for name in FORMATS if name not in {"openai-chat", "openai-responses"}])
def test_a_custom_tool_that_is_reported_as_a_function_is_one(target: str) -> None:
    tool = ir.CustomTool(name="shell", description="Runs a line.")
    encoded = dragoman.encode_request(ir.Request("m", (ir.Message("user", "hi"),), tools=(tool,)), target)
    assert {loss.severity for loss in encoded.losses if loss.path == "$.tools[0]"} == {"degraded"}
    (sent,) = dragoman.decode_request(encoded.body, target).tools
    assert isinstance(sent, ir.ToolDefinition)
    assert (sent.name, sent.description) == ("shell", "Runs a line.")
    assert sent.parameters is not None
    assert sent.parameters["required"] == ["input"]


@promise("law:5-streams-tell-the-same-story")
@each("target", FORMATS)
@each("custom", [False, True])
def test_a_call_that_starts_whole_arrives_whole(target: str, custom: bool) -> None:  # noqa: FBT001
    arguments: dict[str, Any] = {"input": "ls -l"} if custom else {"city": "Rome", "days": [1, 2.5]}
    text = "ls -l" if custom else None
    call = ir.ToolCall(id="call_1", name="look", arguments=arguments, arguments_text=text, custom=custom)
    events: list[ir.AnyEvent] = [
        ir.StreamStart(id="id_1", model="m"),
        ir.PartStart(0, call),
        ir.PartEnd(0),
        ir.Finished(ir.Finish("tool_calls")),
    ]
    encoder, decoder = StreamEncoder(target), StreamDecoder(target)
    read = decoder.feed(encoder.encode(events) + encoder.close())
    (arrived,) = accumulate([*read, *decoder.close()]).tool_calls
    assert (arrived.name, arrived.arguments) == ("look", arguments)


@promise("law:1-identity")
@pytest.mark.parametrize("target", ["gemini", "vertex"])
@pytest.mark.parametrize("answered", [{"id": "fc_9"}, {}])
def test_a_gemini_result_without_a_known_call_keeps_its_id(target: str, answered: dict[str, str]) -> None:
    result = {"functionResponse": {"name": "look", "response": {"output": "sunny"}, **answered}}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": [result]}]}
    request = dragoman.decode_request(body, target)
    (found,) = [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolResult)]
    assert found.tool_call_id == answered.get("id", found.tool_call_id) != ""
    assert dragoman.encode_request(request, target).body == body


@promise("law:6-owed-back")
@pytest.mark.parametrize("target", ["anthropic-messages", "bedrock-converse"])
@pytest.mark.parametrize("owned", [True, False])
def test_blank_text_stays_only_if_its_own_family_signed_it(target: str, owned: bool) -> None:  # noqa: FBT001
    """These APIs refuse blank text; a signed blank part is data that its family wants back."""
    from dragoman.codecs.registry import codec  # noqa: PLC0415
    from dragoman.losses import LossLog  # noqa: PLC0415
    from dragoman.passes.turns import drop_blank_text  # noqa: PLC0415

    profile = codec(target).profile
    signature = ir.Signature(profile.family if owned else "google", "c2ln")
    blank, words = ir.Text(" \n", signature=signature), ir.Text("words")
    request = ir.Request("m", (ir.Message("assistant", (blank, words)), ir.Message("assistant", (ir.Text(" "),))))
    log = LossLog()
    (kept,) = drop_blank_text(request, profile, log).messages
    assert kept.parts == ((blank, words) if owned else (words,))
    lost = ["blank text"] if owned else ["blank text", "signature", "blank text"]
    assert [(what, severity) for _, _, what, severity, _ in log.entries] == [(what, "dropped") for what in lost]


@promise("law:2-nothing-vanishes")
def test_losses_of_an_answer_whose_calls_are_renamed_point_into_the_answer() -> None:
    tools = (ir.ToolDefinition("look.up"),)
    request = ir.Request("m", (ir.Message("user", "hi"),), tools=tools)
    call = {"content": {"role": "model", "parts": [{"functionCall": {"name": "look_up", "args": {}}}]}}
    body = {"candidates": [{**call, "index": 0}, {**call, "index": 1}]}
    encoded = dragoman.translate_response(body, source="gemini", target="anthropic-messages", request=request)
    assert [loss.path for loss in encoded.losses if "candidate" in loss.what] == ["$.candidates[1].content"]


@promise("law:2-nothing-vanishes")
def test_losses_of_an_answer_without_its_speaker_point_into_the_answer() -> None:
    messages = tuple(ir.Message("assistant", (ir.Text("hi"),), name=name) for name in ("claude", "gemini"))
    encoded = dragoman.encode_response(ir.Completion(messages, ir.Finish("stop")), "anthropic-messages")
    assert [(loss.path, loss.what) for loss in encoded.losses if "messages" in loss.path] == [
        ("$.messages[0].name", "name of the speaker"),
        ("$.messages[1].name", "name of the speaker"),
        ("$.messages[1]", "further candidate"),
    ]


@promise("law:7-no-guessing")
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_only_a_declared_custom_tool_is_called_as_one(target: str) -> None:
    """Also if a function has one text argument of the same name."""
    tools = (ir.ToolDefinition("ask"), ir.CustomTool("shell"))
    request = ir.Request("m", (ir.Message("user", "hi"),), tools=tools)
    block = {"type": "tool_use", "id": "toolu_1", "name": "ask", "input": {"input": "ls"}}
    body = {"role": "assistant", "content": [block, {**block, "id": "toolu_2", "name": "shell"}]}
    encoded = dragoman.translate_response(body, source="anthropic-messages", target=target, request=request)
    calls = dragoman.decode_response(encoded.json(), target).messages[0].tool_calls
    assert [(call.name, call.custom, call.arguments) for call in calls] == [
        ("ask", False, {"input": "ls"}),
        ("shell", True, {"input": "ls"}),
    ]


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize("kind", [kind for kind in get_args(ir.FailureKind) if kind != "truncated"])
def test_the_status_of_a_failure_says_its_kind(kind: ir.FailureKind) -> None:
    """ "truncated" is a word of ours: others read that the server failed."""
    assert kind_of_status(status_of_kind(kind)) == kind


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (None, "server"), (400, "invalid_request"), (408, "timeout"), (418, "invalid_request"),
        (422, "invalid_request"), (502, "server"), (504, "timeout"), (529, "overloaded"), (599, "server"),
    ],
)  # fmt: skip
def test_statuses_that_several_kinds_share(status: int | None, kind: ir.FailureKind) -> None:
    assert kind_of_status(status) == kind
    assert kind_of_status(status_of_kind("truncated")) == "server"


@promise("law:5-streams-tell-the-same-story")
def test_a_frame_whose_beginning_is_known_is_still_checked() -> None:
    """Of frames of one type and length the beginning is remembered. Their payload has a checksum too."""
    frame = converse_streams.stream(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "abc"}}))
    broken = bytearray(frame)
    broken[frame.index(b"abc")] ^= 1
    whole = [converse_streams.stream(("messageStart", {"role": "assistant"})), frame, frame]
    decoder = StreamDecoder("bedrock-converse")
    read = [event for one in whole for event in decoder.feed(one)]
    assert [event.text for event in read if isinstance(event, ir.PartDelta)] == ["abc", "abc"]
    assert any(isinstance(event, ir.StreamFailed) for event in decoder.feed(bytes(broken)))


def _asked(**settings: Any) -> ir.Request:
    return ir.Request("m", (ir.Message("user", "hi"),), **settings)


@promise("law:2-nothing-vanishes")
@each("target", FORMATS)
@each("mode", ["required", "auto", "none"])
def test_a_choice_without_tools_is_not_sent_and_only_a_demand_is_reported(target: str, mode: Any) -> None:
    """Without tools no API calls one: only who demands a call misses something."""
    encoded = dragoman.encode_request(_asked(tool_choice=ir.ToolChoice(mode)), target)
    assert dragoman.decode_request(encoded.body, target).tool_choice is None
    assert [loss.path for loss in encoded.losses if "tool_choice" in loss.path] == (
        ["$.tool_choice"] if mode == "required" else []
    )


@promise("law:2-nothing-vanishes")
@each("target", FORMATS)
@each("text", ["hi", "Answer in json, please."])
def test_words_that_we_add_are_reported(target: str, text: str) -> None:
    request = ir.Request("m", (ir.Message("user", text),), output=ir.StructuredOutput("json"))
    encoded = dragoman.encode_request(request, target)
    added = len(dragoman.decode_request(encoded.body, target).messages) > 1
    assert added == any(loss.path == "$.output" for loss in encoded.losses)


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
def test_text_behind_a_call_stays_there_or_its_move_is_reported(target: str) -> None:
    call = ir.ToolCall("call_1", "look", {})
    asked = ir.Message("assistant", (ir.Text("before"), call, ir.Text("behind")))
    done = ir.Message("tool", (ir.ToolResult("call_1", "look", "text", "sunny"),))
    messages = (ir.Message("user", "hi"), asked, done)
    encoded = dragoman.encode_request(ir.Request("m", messages, tools=(ir.ToolDefinition("look"),)), target)
    read = [part for message in dragoman.decode_request(encoded.body, target).messages for part in message.parts]
    kinds = [type(part).__name__ for part in read if isinstance(part, ir.ToolCall | ir.Text)]
    moved = [loss.path for loss in encoded.losses if "place among" in loss.what]
    assert bool(moved) == (kinds != ["Text", "Text", "ToolCall", "Text"])
    assert all(path.startswith("$.messages[1].parts[") for path in moved)


@promise("law:2-nothing-vanishes")
@each("target", FORMATS)
@each("content", ["Be brief.", (ir.Text("Be brief."),), (ir.Text("Be"), ir.Text("brief."))])
def test_system_text_arrives_however_it_is_held(target: str, content: Any) -> None:
    request = ir.Request("m", (ir.Message("system", content), ir.Message("user", "hi")))
    arrived = dragoman.decode_request(dragoman.encode_request(request, target).body, target).messages[0]
    text = " ".join(part.text for part in arrived.parts if isinstance(part, ir.Text))
    assert (arrived.role, text.split()) == ("system", ["Be", "brief."])


@promise("law:4-determinism")
@pytest.mark.parametrize("target", FORMATS)
def test_an_answer_without_a_time_has_no_time_of_its_own(target: str) -> None:
    """The core asks no clock: where the API wants a time, it is the first moment of 1970."""
    answer = ir.Completion((ir.Message("assistant", "hi"),), ir.Finish("stop"), id="a", model="m")
    body = dragoman.encode_response(answer, target).body
    times = [body[key] for key in ("created", "created_at", "updated") if key in body]
    assert all(time in {0, "1970-01-01T00:00:00Z"} for time in times)


@promise("law:4-determinism")
def test_bodies_are_compared_with_their_losses() -> None:
    request = ir.Request("m", (ir.Message("user", "hi"),), seed=7)
    one, same = (dragoman.encode_request(request, "anthropic-messages") for _ in range(2))
    other = dragoman.encode_request(ir.Request("m", request.messages), "anthropic-messages")
    assert one == same
    assert one != other, "the same body with another loss"
    assert one.content == other.content
    text: object = "a text"
    assert one != text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<think>a</think>b", ("a", "b")),
        (" <think>\na\n</think>\n\nb", ("a", "b")),
        ("<think>never closed", ("", "<think>never closed")),
        ("says <think>a</think>", ("", "says <think>a</think>")),
        ("", ("", "")),
    ],
)
def test_only_closed_reasoning_at_the_beginning_is_split_off(text: str, parts: tuple[str, str]) -> None:
    assert split_thinking(text) == parts


def test_reasoning_that_is_joined_is_split_again() -> None:
    assert split_thinking(join_thinking("a", "b")) == ("a", "b")
    assert split_thinking(join_thinking("", "b")) == ("", "b")


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if FAMILY[name] != "cohere"])
@each("mode", ["required", "auto", "none"])
def test_a_choice_whose_tools_do_not_cross_goes_with_them(target: str, mode: Any) -> None:
    tool = ir.ProviderTool(name="hologram", origin="cohere", definition={"type": "hologram"})
    encoded = dragoman.encode_request(_asked(tools=(tool,), tool_choice=ir.ToolChoice(mode)), target)
    sent = dragoman.decode_request(encoded.body, target)
    assert (sent.tools, sent.tool_choice) == ((), None)
    assert [loss.path for loss in encoded.losses if "tool_choice" in loss.path] == (
        ["$.tool_choice"] if mode == "required" else []
    )


@pytest.mark.parametrize(("display", "visible"), [("summarized", True), ("updates", True), ("omitted", False)])
def test_how_thinking_is_displayed_says_whether_it_is_seen(display: str, visible: bool) -> None:  # noqa: FBT001
    thinking = {"type": "adaptive", "display": display}
    message = {"role": "user", "content": [{"text": "hi"}]}
    body = {"messages": [message], "additionalModelRequestFields": {"thinking": thinking}}
    reasoning = dragoman.decode_request(body, "bedrock-converse").reasoning
    assert reasoning is not None
    assert reasoning.visible is visible


@promise("law:9-usage-adds-up")
@pytest.mark.parametrize("count", [0, 3])
def test_tokens_cached_for_an_hour_are_counted_if_there_are_any(count: int) -> None:
    usage = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7, "cacheWriteInputTokens": count}
    details = [{"ttl": "1h", "inputTokens": count}]
    message = {"role": "assistant", "content": [{"text": "hi"}]}
    body = {"output": {"message": message}, "stopReason": "end_turn", "usage": {**usage, "cacheDetails": details}}
    found = dragoman.decode_response(body, "bedrock-converse").usage
    assert found is not None
    assert (found.details or {}).get("cache_written_1h") == (count or None)


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
def test_log_probabilities_of_a_stream_arrive_or_are_reported_once(target: str) -> None:
    token = ir.TokenLogprob("hi", -0.5)
    events: list[ir.AnyEvent] = [ir.StreamStart("a", "m"), ir.PartStart(0, ir.Text(""))]
    events += [ir.PartDelta(0, "hi"), ir.LogprobsDelta((token,))] * 2
    encoder, decoder = StreamEncoder(target), StreamDecoder(target)
    written = encoder.encode([*events, ir.PartEnd(0), ir.Finished(ir.Finish("stop"))]) + encoder.close()
    read = [*decoder.feed(written), *decoder.close()]
    tokens = [one.token for event in read if isinstance(event, ir.LogprobsDelta) for one in event.tokens]
    reported = [loss for loss in encoder.losses if "logprobs" in loss.path]
    assert (tokens, len(reported)) in ((["hi", "hi"], 0), ([], 1))


@promise("law:5-streams-tell-the-same-story")
def test_sound_in_pieces_is_joined_with_what_its_start_had() -> None:
    events: list[ir.AnyEvent] = [
        ir.StreamStart("a", "m"),
        ir.PartStart(0, ir.Audio(media_type="audio/wav", data="YWJj", transcript="a")),
        ir.MediaDelta(0, "ZGVm"),
        ir.PartDelta(0, "b"),
        ir.PartEnd(0),
        ir.Finished(ir.Finish("stop")),
    ]
    (sound,) = accumulate(events).messages[0].parts
    assert isinstance(sound, ir.Audio)
    assert (sound.data, sound.transcript) == ("YWJjZGVm", "ab")


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    ("details", "code"), [({"error_code": "e7"}, "e7"), ({"error_code": 7}, None), ({}, None), ([], None)]
)
def test_the_code_in_the_details_of_an_error_is_read(details: Any, code: str | None) -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "later", "details": details}}
    assert dragoman.decode_error(body, "anthropic-messages").code == code


def _chat_stream(*deltas: dict[str, Any], finish: str = "stop") -> ir.Completion:
    choices = [*({"index": 0, "delta": delta} for delta in deltas), {"index": 0, "delta": {}, "finish_reason": finish}]
    chunks = [{"id": "c", "model": "m", "choices": [choice]} for choice in choices]
    decoder = StreamDecoder("openai-chat")
    read = decoder.feed(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks))
    return accumulate([*read, *decoder.feed(b"data: [DONE]\n\n"), *decoder.close()])


@promise("law:5-streams-tell-the-same-story")
def test_a_legacy_call_is_streamed() -> None:
    pieces = [{"name": "look", "arguments": ""}, {"arguments": '{"a":'}, {"arguments": "1}"}]
    answer = _chat_stream(*({"function_call": piece} for piece in pieces), finish="function_call")
    (call,) = answer.tool_calls
    assert (call.name, call.arguments, call.invented_id) == ("look", {"a": 1}, True)


@promise("law:5-streams-tell-the-same-story")
def test_content_is_streamed_in_parts() -> None:
    """As Mistral streams it: text and thinking, each a list or a text."""
    answer = _chat_stream(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, {"type": "text", "text": ""}, 7]}
            ]
        },
        {"content": [{"type": "thinking", "thinking": ", yes"}, {"type": "text", "text": "It"}, {"type": "text"}]},
        {"content": [{"type": "text", "text": " rains."}]},
    )
    (message,) = answer.messages
    assert (message.reasoning, message.text) == ("Hm, yes", "It rains.")


@promise("law:5-streams-tell-the-same-story")
def test_fragments_without_an_index_belong_to_the_call_of_their_id() -> None:
    def fragment(text: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
        function = {"arguments": text} | ({} if name is None else {"name": name})
        return {"tool_calls": [{"function": function} | ({} if id is None else {"id": id, "type": "function"})]}

    answer = _chat_stream(
        fragment('{"a":', "call_1", "look"),
        fragment('{"b":', "call_2", "find"),
        fragment("1}", "call_1"),
        fragment("2}", "call_2"),
        finish="tool_calls",
    )
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("call_1", "look", {"a": 1}),
        ("call_2", "find", {"b": 2}),
    ]


@promise("law:8-pairs-hold")
def test_outputs_without_an_id_answer_calls_without_one_in_order() -> None:
    calls = [{"type": "function_call", "call_id": "", "name": name, "arguments": "{}"} for name in ("look", "find")]
    outputs = [{"type": "function_call_output", "call_id": "", "output": text} for text in ("one", "two")]
    body = {"model": "m", "input": [{"role": "user", "content": "hi"}, *calls, *outputs]}
    request = dragoman.decode_request(body, "openai-responses")
    parts = [part for message in request.messages for part in message.parts]
    asked = [part.id for part in parts if isinstance(part, ir.ToolCall)]
    answered = [(part.tool_call_id, part.name, part.value) for part in parts if isinstance(part, ir.ToolResult)]
    assert answered == [(asked[0], "look", "one"), (asked[1], "find", "two")]
    assert len({*asked}) == 2
    assert dragoman.encode_request(request, "openai-responses").body["input"] == body["input"]


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize(("error", "text"), [(None, "3"), ("it broke", ""), ("it broke", "3"), (None, "")])
def test_what_code_printed_or_why_it_failed_reaches_gemini(error: str | None, text: str) -> None:
    result = ir.ServerToolResult(
        tool_call_id="c1", name="code_execution", origin="anthropic", block={"type": "x"}, kind="code_execution",
        parts=(ir.Text(text),) if text else (), error=error,
    )  # fmt: skip
    call = ir.ServerToolCall(
        id="c1", name="code_execution", origin="anthropic", block={"type": "x"}, kind="code_execution",
        input={"code": "print(3)"},
    )  # fmt: skip
    answer = ir.Completion((ir.Message("assistant", (call, result)),), ir.Finish("stop"))
    parts = dragoman.encode_response(answer, "gemini").body["candidates"][0]["content"]["parts"]
    (found,) = [part["codeExecutionResult"] for part in parts if "codeExecutionResult" in part]
    assert found["output"] == (text or error or "")
    assert found["outcome"] == ("OUTCOME_OK" if error is None else "OUTCOME_FAILED")


@promise("law:3-legality")
@pytest.mark.parametrize("model", ["us.amazon.nova-pro-v1:0", "us.amazon.nova-2-lite-v1:0"])
def test_a_limit_that_allows_no_answer_is_not_sent(model: str) -> None:
    request = ir.Request(model, (ir.Message("user", "hi"),), max_output_tokens=0)
    encoded = dragoman.encode_request(request, "bedrock-converse")
    assert "maxTokens" not in encoded.body.get("inferenceConfig", {})
    assert [loss.severity for loss in encoded.losses if loss.path == "$.max_output_tokens"] == ["dropped"]


_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
_OUTPUT_KEYS: dict[str, tuple[Any, ...]] = {
    "responseMimeType": ("application/json", "text/plain", "text/x.enum"),
    "responseJsonSchema": (_SCHEMA, None),
    "responseSchema": ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},),
    "responseFormat": (
        [{"text": {"mimeType": "APPLICATION_JSON", "schema": _SCHEMA}}],
        {"text": {"mime_type": "APPLICATION_JSON"}},
        [{"text": {"mimeType": "TEXT_PLAIN"}}],
        [{"audio": {}}, {"text": {"mimeType": "APPLICATION_JSON"}}],
        [{"text": "odd"}],
        [],
    ),
}
_ABSENT = object()


@promise("law:1-identity")
@pytest.mark.parametrize(("source", "target"), list(product(("gemini", "vertex"), repeat=2)))
def test_every_way_to_ask_gemini_for_json_comes_back(source: str, target: str) -> None:
    differing = []
    for values in product(*((_ABSENT, *given) for given in _OUTPUT_KEYS.values())):
        config = {key: value for key, value in zip(_OUTPUT_KEYS, values, strict=True) if value is not _ABSENT}
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config}
        request = dragoman.decode_request(body, source)
        again = dragoman.encode_request(request, target)
        known, lost = (config, []) if source == target else _known_to(target, config)
        if again.body != ({**body, "generationConfig": known} if known or not config else _without_config(body)):
            differing.append(config)
        if [loss.path for loss in again.losses] != lost:
            differing.append({"losses": again.losses, **config})
        kind = None if request.output is None else request.output.kind
        if kind != _asked_kind(config):
            differing.append({"kind": kind, **config})
    assert differing == []


def _without_config(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "generationConfig"}


def _known_to(service: str, config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What is sent, and the paths that are reported: the developer API does not know the newer form."""
    if service == "vertex" or "responseFormat" not in config:
        return config, []
    kind = _asked_kind(config)
    if config.keys() == {"responseFormat"} and kind is not None:
        schema = {"responseJsonSchema": _SCHEMA} if kind == "schema" else {}
        return {"responseMimeType": "application/json", **schema}, []
    rest = {key: value for key, value in config.items() if key != "responseFormat"}
    return rest, ["$.generationConfig.responseFormat"]


def _asked_kind(config: dict[str, Any]) -> str | None:
    """By the rules of the API: the newer form alone, or the type JSON (which a schema implies) and perhaps a schema."""
    mime, form = config.get("responseMimeType"), config.get("responseFormat")
    if config.keys() == {"responseFormat"}:
        known = _OUTPUT_KEYS["responseFormat"]
        return "schema" if form == known[0] else "json" if form == known[1] else None
    given = config.get("responseJsonSchema", config.get("responseSchema", _ABSENT))
    if mime not in {None, "application/json"} or given is None:
        return None
    if given is _ABSENT:
        return "json" if mime else None
    return "schema"


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("it broke", "it broke"), ("", None), (None, None), ({"message": "it broke"}, "it broke"),
        ({"type": "mcp_tool_error", "content": [{"type": "text", "text": "it broke"}]}, "it broke"),
        ({"type": "mcp_tool_error", "content": [{"text": ""}, 7]}, "mcp_tool_error"), ({}, "the tool failed"),
    ],
)  # fmt: skip
def test_why_an_mcp_tool_failed_is_read(error: Any, words: str | None) -> None:
    item = {
        "type": "mcp_call",
        "id": "m1",
        "name": "look",
        "server_label": "s",
        "arguments": "{}",
        "output": None,
        "error": error,
    }
    body = {"id": "r", "model": "m", "status": "completed", "output": [item]}
    parts = dragoman.decode_response(body, "openai-responses").messages[0].parts
    assert [part.error for part in parts if isinstance(part, ir.ServerToolResult)] == ([words] if words else [None])


# ── found by the golden pages of mixed bodies and of all that the code names ──────────────────────────────────


@promise("law:2-nothing-vanishes", "law:10-bad-input-good-words")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize(
    "block",
    [{"type": "refusal", "refusal": "I will not."}, {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}],
    ids=["refusal", "thinking"],
)
def test_what_only_an_assistant_says_arrives_from_a_result_or_is_reported(target: str, block: dict[str, Any]) -> None:
    function = {"name": "f", "arguments": "{}"}
    call = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    result = {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "a"}, block]}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, call, result]}
    encoded = dragoman.translate_request(body, source="openai-chat", target=target)
    words = "I will not." if block["type"] == "refusal" else "Hm"
    kind = "refusal" if block["type"] == "refusal" else "reasoning"
    assert words in encoded.json().decode() or kind in [loss.what for loss in encoded.losses]


@promise("law:1-identity")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "content", "content": "a", "further": 1}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"type": "odd"}}]},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, "cache_control": {"type": "ephemeral", "further": 1}},
    ],
    ids=lambda block: str(block["type"]),
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_blocks_with_further_keys_come_back_where_they_do_not_belong(role: str, block: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": role, "content": [block]}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}
    request = dragoman.decode_request(body, "anthropic-messages")
    assert dragoman.encode_request(request, "anthropic-messages").body == body


@promise("law:1-identity")
def test_a_call_that_is_both_a_function_and_custom_comes_back() -> None:
    both = {"custom": {"name": "sql", "input": "x", "further": 1}, "function": {"name": "f", "arguments": "{}"}}
    call = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", **both}]}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, call]}
    request = dragoman.decode_request(body, "openai-chat")
    assert dragoman.encode_request(request, "openai-chat").body == body


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_choice_may_name_no_tool_of_the_request(target: str, mode: Any) -> None:
    tools, choice = (ir.ToolDefinition("look"),), ir.ToolChoice(mode, ("gone", "lost"))
    request = ir.Request("m", (ir.Message("user", "hi"),), tools, choice, origin=FAMILY[target])
    encoded = dragoman.encode_request(request, target)
    assert "gone" in encoded.json().decode() or encoded.losses


@promise("law:10-bad-input-good-words")
@each("name", [*FORMATS, *RECORDS])
@each("kind", ["request", "response"])
def test_bodies_that_are_not_utf_8_are_refused_as_such(name: str, kind: str) -> None:
    with pytest.raises(DecodeError, match="expected UTF-8 text"):
        getattr(dragoman, f"decode_{kind}")(b'{"role":"assistant","content":"a\xff"}', name)


@promise("law:2-nothing-vanishes")
@each(
    ("document", "title", "text"),
    [
        ({"source": {"type": "text", "data": "words"}, "title": "T"}, "T", ["words"]),
        ({"source": {"type": "base64", "data": "AAAA"}}, None, []),
        ({"source": "odd", "title": 7}, None, []),
        ("odd", None, []),
    ],
)
def test_a_fetched_page_is_read(document: Any, title: str | None, text: list[str]) -> None:
    found = {"type": "web_fetch_result", "url": "https://example.org", "content": document}
    call = {"type": "server_tool_use", "id": "s", "name": "web_fetch", "input": {"url": "https://example.org"}}
    blocks = [call, {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": found}]
    body = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
    _, result = dragoman.decode_response(body, "anthropic-messages").messages[0].parts
    assert isinstance(result, ir.ServerToolResult)
    assert [(one.url, one.title) for one in result.sources] == [("https://example.org", title)]
    assert [part.text for part in result.parts if isinstance(part, ir.Text)] == text


@promise("law:2-nothing-vanishes")
def test_reasoning_in_tags_stays_where_it_was_in_a_training_file() -> None:
    tagged = {"role": "assistant", "content": "<think>Hm</think>yes"}
    body = {"messages": [{"role": "user", "content": "hi"}, tagged]}
    request = dragoman.decode_request(body, "trl")
    assert (request.messages[1].reasoning, request.messages[1].text) == ("Hm", "yes")
    assert dragoman.encode_request(request, "trl").body["messages"][1] == tagged


def test_a_memo_that_was_cleared_has_room_again() -> None:
    memo: BoundedMemo[str, str] = BoundedMemo(3 * ENTRY_BYTES)
    for name in ("a", "b"):
        memo.put(name, name, 1)
    memo.clear()
    assert (len(memo), memo.get("a")) == (0, None)
    for name in ("c", "d"):
        memo.put(name, name, 1)
    assert len(memo) == 2


def test_an_event_may_have_64_mib_and_a_stream_1_gib() -> None:
    assert Limits() == Limits(event_bytes=67_108_864, stream_bytes=1_073_741_824)


CLAUDE = (
    "claude-mythos-preview", "claude-mythos-5", "claude-fable-5", "claude-opus-5-5", "claude-sonnet-5-5",
    "claude-haiku-5-5", "claude-opus-5", "claude-sonnet-5", "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5",
    "claude-opus-4-1", "claude-sonnet-4-0", "claude-3-7-sonnet-latest", "claude-3-5-haiku-latest",
    "claude-3-opus-20240229",
)  # fmt: skip
"""A model for each row of the rules about models of Claude."""


@promise("law:3-legality")
@each("target", ["anthropic-messages", "bedrock-converse"])
@each("model", CLAUDE)
def test_every_claude_accepts_how_reasoning_is_set(target: str, model: str) -> None:
    name = model if target == "anthropic-messages" else f"us.anthropic.{model}-v1:0"
    refused: set[Any] = set()
    modes: tuple[Any, ...] = (None, "off", "on", "adaptive")
    for mode, effort, budget, most in product(modes, (None, "none", *ALL_EFFORTS), (None, 0, 1, 4000), (None, 900)):
        reasoning = ir.ReasoningSettings(mode, effort, budget)
        settings: dict[str, Any] = {"max_output_tokens": most, "temperature": 0.5, "top_p": 0.5}
        request = ir.Request(name, (ir.Message("user", "hi"),), reasoning=reasoning, **settings)
        refused.update(refusals(dragoman.encode_request(request, target), target, model=name))
    assert refused == set()


def test_every_rule_about_claude_has_a_model_here() -> None:
    def rule_of(model: str) -> str:
        return next((pattern.pattern for pattern, _ in _MODELS if pattern.search(model)), "")

    assert {rule_of(model) for model in CLAUDE} == {pattern.pattern for pattern, _ in _MODELS}


@promise("law:2-nothing-vanishes")
def test_an_encoded_body_shows_what_it_has() -> None:
    encoded = dragoman.encode_request(ir.Request("m", (ir.Message("user", "hi"),), seed=3), "anthropic-messages")
    shown = repr(encoded)
    assert shown.startswith("Encoded(content=b'{")
    assert all(f"{name}=" in shown for name in ("losses", "path", "headers", "status"))


@each(("version", "undoes"), {"20241022": True, "20250124": True, "20250429": False, "20250728": False}.items())
def test_editors_since_april_2025_undo_nothing(version: str, undoes: bool) -> None:  # noqa: FBT001
    (function,) = functions_of({"type": f"text_editor_{version}", "name": "editor"})
    assert (b"undo_edit" in bytes(to_raw(function.parameters))) is undoes


@promise("law:10-bad-input-good-words")
@each("name", FORMATS)
def test_collections_that_json_lacks_are_read_like_those_that_it_has(name: str) -> None:
    for body in bodies_of("request", name):
        assert dragoman.decode_request(_odd_collections(body), name) == dragoman.decode_request(body, name)


def _odd_collections(value: Any) -> Any:
    if isinstance(value, dict):
        return UserDict({key: _odd_collections(inner) for key, inner in value.items()})
    return UserList([_odd_collections(inner) for inner in value]) if isinstance(value, list) else value


def test_the_rare_keys_of_a_struct_are_those_without_a_member() -> None:
    class Outer(Wire, frozen=True):
        known: int = 0

        further = ("known", "rare")

    assert further_keys(Outer) == ("rare",)


def test_every_type_of_header_of_an_event_stream_is_read() -> None:
    """The lengths of values are those of AWS's table of types."""
    values = {0: b"", 1: b"", 2: b"a", 3: b"ab", 4: b"abcd", 5: b"abcdefgh", 8: b"abcdefgh", 9: b"0123456789abcdef"}
    headers = b"".join(b"\x01%c%c%b" % (97 + kind, kind, value) for kind, value in values.items())
    text = b"\x00\x02ok"
    assert read_aws_headers(headers + b"\x01y\x06" + text + b"\x01z\x07" + text) == {"z": "ok"}


@each("given", [{"name": "x"}, {"kind": "odd", "value": 1}, {"kind": "text"}, {"value": 1}, {"role": "user"}])
def test_records_without_a_sign_are_of_no_record_format(given: dict[str, Any]) -> None:
    assert known_record([given]) is None


@each("given", [{"toolCalls": []}, {"toolCallId": "1"}, *({"kind": kind, "value": 1} for kind in _KINDS)])
def test_each_sign_of_a_stored_prompt_is_enough(given: dict[str, Any]) -> None:
    assert known_record([given]) == ("modular-prompt", "request")
    assert known_record([given, {"raw_context": {}}]) is None, "signs of two formats are no sign"


@promise("law:6-owed-back")
@each(
    "part",
    [
        ir.Text("words", signature=ir.Signature("google", "c2ln")),
        ir.ToolCall("call_1", "look", {"a": 1}, signature=ir.Signature("google", "c2ln")),
    ],
)
def test_a_signature_returns_though_the_client_kept_only_the_content(part: ir.Text | ir.ToolCall) -> None:
    """Clients of the Responses API often leave out ids and statuses of the items that they send back."""
    answer = ir.Completion((ir.Message("assistant", (part,)),), ir.Finish("stop"))
    items = dragoman.encode_response(answer, "openai-responses").body["output"]
    kept = [{key: value for key, value in item.items() if key not in {"id", "status"}} for item in items]
    for item in kept:
        if item["type"] == "message":
            item["content"] = [{"type": "output_text", "text": "words"}]
    body = {"model": "m", "input": [{"role": "user", "content": "hi"}, *kept]}
    (again,) = dragoman.decode_request(body, "openai-responses").messages[-1].parts
    assert isinstance(again, type(part))
    assert again.signature == part.signature


@promise("law:1-identity")
def test_a_call_that_a_user_sends_to_gemini_beside_a_result_is_no_call() -> None:
    call, result = {"name": "f", "args": {}}, {"name": "f", "response": {"output": "y"}}
    turns = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": result}, {"functionCall": call}]},
    ]
    request = dragoman.decode_request({"contents": turns}, "gemini")
    assert [type(part) for part in request.messages[-1].parts] == [ir.Opaque]
    assert dragoman.encode_request(request, "gemini").body == {"contents": turns}


def test_an_error_that_came_in_an_array_is_an_object_in_a_stream() -> None:
    body = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    failure = dragoman.decode_error(json.dumps([body]).encode(), "gemini", status=503)
    written = StreamEncoder("gemini").encode([ir.StreamStart(id="id_1", model="m"), ir.StreamFailed(failure)])
    assert json.loads(written.rstrip().splitlines()[-1].removeprefix(b"data: ")) == body


@each(
    ("headers", "payload", "event"),
    [
        ({":event-type": "a"}, b"{}", b'{"a":{}}'),
        ({":exception-type": "a"}, b"{}", b'{"a":{}}'),
        ({":event-type": "a", ":error-code": "b"}, b"{}", b'{"a":{}}'),
        ({":message-type": "event"}, b"{}", b'{"":{}}'),
        ({":error-code": "b", ":error-message": "m"}, b"", b'{"b":{"message":"m"}}'),
        ({":error-code": "b"}, b"", b'{"b":{"message":""}}'),
    ],
)
def test_a_frame_is_named_by_its_headers(headers: dict[str, str], payload: bytes, event: bytes) -> None:
    assert list(AwsEventStream(Limits(), "test").feed(aws_frame(aws_headers(headers), payload))) == [event]


def test_a_memo_admits_what_came_before() -> None:
    memo: BoundedMemo[str, str] = BoundedMemo()
    assert [memo.admits(number) for number in (1, 2, 1, 2, 3)] == [False, False, True, True, False]
    memo.clear()
    assert [memo.admits(number) for number in (1, 2, 3)] == [False, False, False]


@promise("law:2-nothing-vanishes")
def test_a_strict_server_is_sent_no_unknown_key_of_a_message() -> None:
    message = {"role": "developer", "content": "Be brief.", "first": 1, "second": 2}
    body = {"model": "m", "messages": [message, {"role": "user", "content": "hi", "third": 3, "fourth": 4}]}
    encoded = dragoman.translate_request(body, source="openai-chat", target="mistral")
    assert [list(sent) for sent in encoded.body["messages"]] == [["role", "content"]] * 2
    lost = {loss.what for loss in encoded.losses if loss.severity == "dropped"}
    assert lost == {"first", "second", "third", "fourth"}


@promise("law:10-bad-input-good-words")
@each(
    ("body", "message"),
    [
        ({"message": "words"}, "words"),
        ({"error": "words"}, "words"),
        ({"error": {"message": "words"}}, "words"),
        ({"error": {"code": 1}}, '{"error":{"code":1}}'),
    ],
)
def test_the_message_of_an_error_is_found_where_proxies_of_cohere_put_it(body: Any, message: str) -> None:
    assert dragoman.decode_error(json.dumps(body).encode(), "cohere-chat", status=400).message == message


@promise("law:10-bad-input-good-words")
@each(
    ("code", "kind"),
    {"zq_image": "invalid_request", "invalid_zq": "invalid_request", "zq": "server", "404": "not_found"}.items(),
)
def test_the_code_of_an_error_in_a_stream_names_its_kind(code: str, kind: str) -> None:
    event = {"type": "error", "code": code, "message": "words", "param": None, "sequence_number": 0}
    decoder = StreamDecoder("openai-responses")
    (failed,) = [
        one for one in decoder.feed(b"data: %b\n\n" % json.dumps(event).encode()) if isinstance(one, ir.StreamFailed)
    ]
    assert failed.failure.kind == kind


@promise("law:2-nothing-vanishes")
@each("target", ["gemini", "vertex"])
@each("content", ["seen", ""])
def test_a_loss_in_a_result_of_ollama_points_to_its_image(target: str, content: str) -> None:
    call = {"function": {"name": "look", "arguments": {}}}
    result = {"role": "tool", "tool_name": "look", "content": content, "images": ["AAAA"]}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}, result]
    body = {"model": "m", "messages": messages}
    encoded = dragoman.translate_request(body, source="ollama-chat", target=target, model="some-model")
    assert [loss.path for loss in encoded.losses if "image" in loss.what] == ["$.messages[2].images[0]"]


@promise("law:10-bad-input-good-words")
def test_an_unknown_role_is_named() -> None:
    body = {"model": "m", "messages": [{"role": "robot", "content": "hi"}]}
    with pytest.raises(DecodeError) as refused:
        dragoman.decode_request(body, "cohere-chat")
    assert (refused.value.path, refused.value.got) == ("$.messages[0].role", "'robot'")


@promise("law:2-nothing-vanishes")
@each("kind", ["url_context", "google_search", "code_execution", "file_search"])
def test_texts_of_a_list_are_the_output_of_a_hosted_tool(kind: str) -> None:
    found = [{"url": "https://a.example", "text": "some"}, {"text": "words"}]
    step = {"type": f"{kind}_result", "call_id": "c", "result": found}
    answer = dragoman.decode_response({"model": "m", "status": "completed", "steps": [step]}, "gemini-interactions")
    (result,) = answer.messages[0].parts
    assert isinstance(result, ir.ServerToolResult)
    assert result.parts == (ir.Text("some\nwords"),)
    assert [source.url for source in result.sources] == ["https://a.example"]


def test_a_call_written_as_code_ends_with_its_own_parenthesis() -> None:
    shape = next(shape for shape in SHAPES.values() if shape.format == "toolace")
    record: dict[str, Any] = json.loads(json.dumps(shape.record))
    record["conversations"][1]["value"] = '[weather(city="Oslo", days=[1, [2]]), weather(city="Rome")]'
    request = dragoman.decode_request(record, "toolace")
    calls = [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolCall)]
    assert [call.arguments for call in calls] == [{"city": "Oslo", "days": [1, [2]]}, {"city": "Rome"}]


def test_a_correction_that_names_no_tool_is_text_of_the_user() -> None:
    part = {"part_kind": "retry-prompt", "content": "Answer in JSON."}
    messages = [{"kind": "request", "parts": [part]}, {"kind": "request", "parts": [{**part, "tool_name": "look"}]}]
    request = dragoman.decode_request(messages, "pydantic-ai")
    text, corrected = (message.parts[0] for message in request.messages)
    assert text == ir.Text("Answer in JSON.")
    assert isinstance(corrected, ir.ToolResult)
    assert (corrected.name, corrected.kind) == ("look", "error")


def test_reasoning_of_semantic_kernel_is_read() -> None:
    item = {"content_type": "reasoning", "text": "Hm"}
    message = {"content_type": "message", "role": "assistant", "items": [item, {**item, "content_type": "text"}]}
    request = dragoman.decode_request({"messages": [message]}, "semantic-kernel")
    assert request.messages[0].parts == (ir.Reasoning("Hm"), ir.Text("Hm"))


@promise("law:2-nothing-vanishes")
@each("results", [1, 2])
def test_a_loss_behind_media_of_results_points_to_its_message(results: int) -> None:
    """The media travel in a user turn of their own, which the conversation does not have."""
    calls = tuple(ir.ToolCall(f"call_{number}", "look", {}) for number in range(results))
    image = ir.Image("image/png", data=PIXEL)
    answers = tuple(ir.ToolResult(call.id, "look", "multimodal", parts=(image,)) for call in calls)
    turns = (ir.Message("assistant", calls), *(ir.Message("tool", (answer,)) for answer in answers))
    user = ir.Message("user", "hi", name="ann")
    request = ir.Request("m", (user, *turns, user, *turns, user), tools=(ir.ToolDefinition("look"),))
    body = json.loads(dragoman.encode_request(request, "openai-chat").json())
    named = [f"$.messages[{place}].name" for place, message in enumerate(body["messages"]) if "name" in message]
    encoded = dragoman.translate_request(body, source="openai-chat", target="anthropic-messages", model="some-model")
    assert [loss.path for loss in encoded.losses if loss.path.endswith(".name")] == named


@promise("law:5-streams-tell-the-same-story")
@each("end", [{"error": {"message": "overloaded", "code": 529}}, None])
def test_a_call_without_an_id_is_in_what_a_failed_stream_brought(end: Any) -> None:
    call = {"index": 0, "function": {"name": "look", "arguments": '{"city":'}}
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}, *([end] if end else [])]
    decoder = StreamDecoder("openai-chat")
    events = decoder.feed(b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks))
    with pytest.raises(StreamError) as failed:
        accumulate([*events, *decoder.close()])
    (begun,) = failed.value.partial.messages[0].parts
    assert isinstance(begun, ir.ToolCall)
    assert (begun.name, begun.arguments_text, begun.incomplete) == ("look", '{"city":', True)


@promise("law:1-identity")
def test_a_call_of_a_namespace_is_streamed_with_it_from_the_start() -> None:
    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "b",
        "namespace": "n",
        "arguments": "{}",
    }
    body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
    (call,) = dragoman.decode_response(body, "openai-responses").messages[0].parts
    encoder = StreamEncoder("openai-responses")
    events: list[ir.AnyEvent] = [ir.StreamStart("r", "m"), ir.PartStart(0, call), ir.PartEnd(0)]
    sent = encoder.encode([*events, ir.Finished(ir.Finish("tool_calls"))]) + encoder.close()
    data = [json.loads(line.removeprefix(b"data: ")) for line in sent.splitlines() if line.startswith(b"data: {")]
    items = [event["item"] for event in data if event["type"].startswith("response.output_item")]
    assert [(one["name"], one["namespace"]) for one in items] == [("b", "n"), ("b", "n")]
