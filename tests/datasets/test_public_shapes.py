"""Records in the shapes of public sets, logs and exports: read as what they are, or refused, and never as another thing."""
# ruff: noqa: E501 - a record per line reads better

import json
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.batch import convert, convert_lines
from dragoman.batch.conversion import RecordRejected
from dragoman.batch.record_converter import without_packed_json
from dragoman.codecs.datasets.catalogue import is_session
from dragoman.codecs.registry import codec
from dragoman.detection import Detected, detect
from dragoman.errors import DecodeError
from dragoman.ir import Reasoning, Request, Text, ToolCall, ToolResult
from dragoman.translate import decode_request, translate_request
from tests.datasets.public_shapes import ANSWER, CLAUDE_CODE, QUESTION, RESULT, SHAPES, Shape
from tests.datasets.test_datasets import tell
from tests.support.promises import promise


def opened(shape: Shape) -> bytes:
    """The record, in which messages that are JSON text are parsed, as in a batch."""
    body = json.dumps(shape.record).encode()
    return body if detect(body) is not None else without_packed_json(body) or body


def read(shape: Shape) -> Request:
    assert shape.format is not None
    return codec(shape.format).decode_request(opened(shape))


@promise("batch:datasets")
def test_every_shape_is_read_as_what_it_is_or_refused() -> None:
    for name, shape in SHAPES.items():
        found = detect(opened(shape))
        assert (found and found.format) == shape.format, name
        if shape.story:
            assert found == Detected(shape.format or "", "request"), name
            assert tell(read(shape)) == list(shape.story), name
        elif found is not None and found.kind == "request":
            with pytest.raises(DecodeError):
                read(shape)


@promise("batch:datasets")
def test_every_shape_crosses_and_results_answer_their_calls() -> None:
    for name, shape in SHAPES.items():
        if not shape.story:
            continue
        request = read(shape)
        calls = [part.id for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
        answers = [
            part.tool_call_id for message in request.messages for part in message.parts if isinstance(part, ToolResult)
        ]
        assert set(answers) <= set(calls), name
        assert shape.format is not None
        encoded = translate_request(opened(shape), source=shape.format, target="anthropic-messages", model="m")
        assert QUESTION.split()[0].encode() in encoded.json(), name
        assert not [loss for loss in encoded.losses if loss.path != "$" and not loss.path.startswith(("$.", "$["))], (
            name
        )


@promise("batch:datasets")
def test_results_that_autogen_keeps_in_one_message_answer_their_own_calls() -> None:
    for name in ("AutoGen 0.2 messages", "AutoGen 0.2 chat result"):
        results = [result for message in read(SHAPES[name]).messages for result in message.tool_results]
        assert {result.tool_call_id: result.value for result in results} == {"c1": "3C", "c2": "4C"}, name


@promise("batch:datasets")
def test_a_file_of_every_shape_is_converted_or_rejected_with_a_reason(tmp_path: Path) -> None:
    for name, shape in SHAPES.items():
        lines = (
            shape.record
            if shape.format is not None and is_session(shape.format) and isinstance(shape.record, list)
            else [shape.record]
        )
        source, folder = tmp_path / f"{name.replace(' ', '-')}.jsonl", tmp_path / "out"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if name in {"Gemini CLI checkpoint", "OpenHands classic events"}:  # files of one array
            source.write_text(json.dumps(shape.record, indent=1))
        report = convert(str(source), str(folder / source.name), target="openai-chat", model="m")
        is_read = bool(shape.story) or name == "stored completion"
        assert (report.tally.converted, report.tally.rejected) == ((1, 0) if is_read else (0, 1)), name


@promise("batch:datasets")
def test_refusals_say_what_to_do() -> None:
    for name, words in {
        "llm logs --json": "llm logs path",
        "oasst1 row": "tree",
        "OpenTelemetry event of a message": "spans",
        "Anthropic hh-rlhf": "text",
    }.items():
        with pytest.raises(RecordRejected) as caught:
            convert_lines(json.dumps(SHAPES[name].record).encode(), target="openai-chat")
        assert words in caught.value.reject.reason, name


# ── Claude Code: parallel calls ──


def parallel(*, streamed: bool) -> list[dict[str, Any]]:
    """Two calls of one answer, in lines of their own; the results are children of their calls."""
    lines = {line["uuid"]: line for line in CLAUDE_CODE if "uuid" in line}
    first, result = lines["a2"], lines["r1"]
    call = {"type": "tool_use", "id": "call_2", "name": "weather", "input": {"city": "Bergen"}}
    second = {**first, "uuid": "a2b", "parentUuid": "a2", "message": {**first["message"], "content": [call]}}
    answer = {**result["message"]["content"][0], "tool_use_id": "call_2", "content": "9C"}
    other = {**result, "uuid": "r2", "parentUuid": "a2b", "message": {"role": "user", "content": [answer]}}
    last = {**lines["a3"], "parentUuid": "r2"}
    middle = [first, result, second, other] if streamed else [first, second, result, other]
    return [lines["u1"], lines["t1"], lines["a1"], lines["p1"], *middle, last]


@promise("batch:datasets")
@pytest.mark.parametrize("streamed", [True, False])
def test_parallel_calls_of_claude_code_keep_all_their_results(*, streamed: bool) -> None:
    """The chain of parents passes only one of the results; the model saw all of them."""
    request = codec("claude-code").decode_request(json.dumps(parallel(streamed=streamed)).encode())
    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "assistant"]
    assert [part.id for part in request.messages[1].tool_calls] == ["call_1", "call_2"]
    assert [(part.tool_call_id, part.value) for part in request.messages[2].tool_results] == [
        ("call_1", RESULT),
        ("call_2", "9C"),
    ]
    assert request.messages[3].text == ANSWER


# ── content that no message holds is reported ──

UNREAD: tuple[tuple[str, Any, str], ...] = (
    (
        "chatgpt-export",
        {"current_node": "a", "mapping": {"a": {"parent": None, "message": {"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "sediment://f"}, "hi"]}}}}},
        "image in a message",
    ),
    (
        "claude-export",
        {"uuid": "c", "chat_messages": [{"uuid": "1", "sender": "human", "text": "hi", "content": [], "files": [{"file_name": "a.png"}]}]},
        "files of messages",
    ),
    (
        "pydantic-ai",
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}, {"part_kind": "new-part", "content": "x"}]}],
        "parts of the kind 'new-part'",
    ),
    (
        "pydantic-ai",
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}, {"kind": "response", "parts": [{"part_kind": "builtin-tool-call", "tool_name": "web_search"}, {"part_kind": "text", "content": "x"}]}],
        "parts of the kind 'builtin-tool-call'",
    ),
    (
        "llm",
        {"chain": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "parts": [{"type": "tool_call", "name": "web_search", "server_executed": True}, {"type": "text", "text": "x"}]}]},
        "tools that the provider ran",
    ),
    (
        "llm",
        {"chain": [{"role": "user", "parts": [{"type": "text", "text": "hi"}, {"type": "new", "text": "x"}]}]},
        "content of the kind 'new'",
    ),
    (
        "vercel-ui",
        [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "parts": [{"type": "tool-search", "toolCallId": "1", "providerExecuted": True, "state": "output-available", "input": {}, "output": {}}, {"type": "text", "text": "x"}]}],
        "tools that the provider ran",
    ),
    (
        "claude-export",
        {"uuid": "c", "chat_messages": [{"uuid": "1", "sender": "human", "text": "hi", "content": []}, {"uuid": "2", "sender": "assistant", "text": "", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}, {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}, {"type": "image", "file_uuid": "u"}]}]}]},
        "image in results",
    ),
    (
        "langsmith",
        {"run_type": "llm", "inputs": {"messages": [{"role": "user", "content": "hi"}]}, "outputs": {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}, {"index": 1, "message": {"role": "assistant", "content": "y"}}]}},
        "further answers",
    ),
    ("openassistant", SHAPES["oasst tree"].record, "other replies"),
    ("chatgpt-export", SHAPES["ChatGPT conversation"].record, "other branches"),
    ("claude-export", SHAPES["Claude conversation"].record, "other branches"),
    ("bfcl", SHAPES["BFCL v3 multi-turn"].record, "the tools"),
)  # fmt: skip


@promise("law:2-nothing-vanishes", "batch:datasets")
def test_content_that_no_message_can_hold_is_a_loss() -> None:
    for name, record, what in UNREAD:
        encoded = translate_request(json.dumps(record), source=name, target="openai-chat", model="m")
        assert what in {loss.what for loss in encoded.losses if loss.severity == "dropped"}, name


@promise("batch:datasets")
def test_images_of_openhands_and_calls_in_langchain_content_are_read() -> None:
    image = {"type": "image", "image_urls": ["data:image/png;base64,aGk="]}
    call = {"name": "f", "arguments": "{}", "id": "c"}
    events = [
        {"kind": "MessageEvent", "id": "1", "llm_message": {"role": "user", "content": [{"type": "text", "text": "a"}, image]}},
        {"kind": "ActionEvent", "id": "2", "thought": [], "tool_name": "f", "tool_call_id": "c", "tool_call": call},
        {"kind": "ObservationEvent", "id": "3", "tool_name": "f", "tool_call_id": "c", "observation": {"kind": "FObservation", "content": [image, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}},
    ]  # fmt: skip
    asked, _, answered = codec("openhands").decode_request(json.dumps(events).encode()).messages
    assert [type(part).__name__ for part in asked.parts] == ["Text", "Image"]
    (result,) = answered.tool_results
    assert [type(part).__name__ for part in result.parts] == ["Image", "Text"]
    assert result.parts[1] == Text("b\nc")
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}, "cache_control": {"type": "ephemeral"}}
    for listed in ([], [{"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}]):
        messages = [{"type": "ai", "data": {"content": [block], "tool_calls": listed}}]
        body = codec("langchain").decode_request(json.dumps(messages).encode())
        assert [(part.name, part.id) for part in body.messages[0].tool_calls] == [("f", "c")]
        encoded = translate_request(json.dumps(messages), source="langchain", target="openai-chat", model="m")
        assert "$[0].data.content[0].cache_control" in {loss.path for loss in encoded.losses}


@promise("batch:datasets")
def test_calls_in_text_cost_what_their_length_costs() -> None:
    """Every bracket was tried as the end."""

    def seconds(size: int) -> float:
        turns = [{"from": "user", "value": "q"}, {"from": "assistant", "value": f"[f(a='{')' * size}')]"}]
        record = {"system": f"as [func1(x)]: [{{{']' * size}", "conversations": turns}
        raw = json.dumps(record).encode()
        start = time.process_time()
        codec("toolace").decode_request(raw)
        return time.process_time() - start

    assert seconds(400_000) < 8 * max(seconds(100_000), 0.05)


@promise("batch:datasets")
def test_a_long_branch_costs_what_its_length_costs() -> None:
    """Every message was looked for among all after it."""

    def seconds(size: int) -> float:
        known = {
            f"a long id of message {n}": {"parentId": f"a long id of message {n - 1}", "role": "user", "content": "x"}
            for n in range(size)
        }
        history = {"currentId": f"a long id of message {size - 1}", "messages": known}
        raw = json.dumps({"title": "t", "models": [], "history": history}).encode()
        start = time.process_time()
        codec("open-webui").decode_request(raw)
        return time.process_time() - start

    assert seconds(16_000) < 8 * max(seconds(4_000), 0.05)


@promise("batch:datasets")
def test_attachments_of_claude_are_what_the_model_read() -> None:
    record = {
        "uuid": "c",
        "chat_messages": [
            {
                "uuid": "1",
                "sender": "human",
                "text": "Read it.",
                "content": [],
                "attachments": [{"file_name": "a.txt", "extracted_content": "It rains."}],
            }
        ],
    }
    body = translate_request(json.dumps(record), source="claude-export", target="anthropic-messages", model="m").json()
    assert b"It rains." in body


# ── keys of logs, and paths of errors ──


@promise("batch:datasets")
def test_keys_that_a_log_has_beside_its_messages_are_reported_and_not_sent() -> None:
    """An API refuses them; the same format gets them back."""
    messages = [
        {"role": "user", "content": QUESTION, "timestamp": 1},
        {"role": "assistant", "content": ANSWER, "id": "m"},
    ]
    crossed = translate_request(json.dumps(messages), source="message-list", target="openai-chat", model="m")
    assert crossed.body["messages"] == [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
    assert [(loss.severity, loss.path, loss.what) for loss in crossed.losses] == [
        ("noted", "$[0].timestamp", "timestamp"),
        ("noted", "$[1].id", "id"),
    ]
    same = translate_request(json.dumps(messages), source="message-list", target="message-list")
    assert json.loads(same.json()) == messages
    assert same.losses == ()
    history = SHAPES["Cline history"].record
    sent = translate_request(
        json.dumps(history), source="anthropic-message-list", target="anthropic-messages", model="m"
    )
    assert all(message.keys() == {"role", "content"} for message in sent.body["messages"])
    kept = {loss.path: loss.severity for loss in sent.losses if loss.severity in {"dropped", "noted"}}
    assert {path: kept.get(path) for path in ("$[0].ts", "$[1].modelInfo")} == {
        "$[0].ts": "noted",
        "$[1].modelInfo": "dropped",
    }
    assert [path for path, severity in kept.items() if severity == "dropped"] == ["$[1].modelInfo"]


@promise("batch:datasets", "law:10-bad-input-good-words")
def test_errors_and_losses_have_the_paths_of_the_file() -> None:
    for name, record, path in (
        ("message-list", [{"role": "user", "content": 1}], "$[0].content"),
        ("anthropic-message-list", [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": 1}]}], "$[0].content[0].tool_use_id"),
        ("bedrock-message-list", [{"role": "user", "content": [{"text": 1}]}], "$[0].content[0].text"),
        ("adk", [{"author": "a", "content": {"role": "user", "parts": [{"text": 1}]}}], "$[0].content.parts[0].text"),
        ("claude-code", [{"uuid": "1", "parentUuid": None, "message": {"role": "user", "content": [{"type": "text", "text": 1}]}}], "$[0].message.content[0].text"),
    ):  # fmt: skip
        with pytest.raises(DecodeError) as caught:
            codec(name).decode_request(json.dumps(record).encode())
        assert (caught.value.source, caught.value.path) == (name, path)
    unnamed = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "file", "file": {"file_id": "f"}}]}
    ]
    losses = translate_request(json.dumps(unnamed), source="message-list", target="ollama-chat", model="m").losses
    assert [loss.path for loss in losses] == ["$[0].content[1]"]


@promise("batch:datasets", "law:3-legality")
def test_a_stored_list_becomes_a_request_that_its_own_api_accepts() -> None:
    """The file has no token limit, and its last call has no result; signatures return to their provider."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    call = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}
    history = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": [thought, call]}]
    encoded = translate_request(
        json.dumps(history), source="anthropic-message-list", target="anthropic-messages", model="m"
    )
    body = encoded.body
    assert "max_tokens" in body
    assert body["messages"][1]["content"] == [thought, call]
    assert body["messages"][2]["content"][0]["tool_use_id"] == "call_1"
    assert {loss.severity for loss in encoded.losses} == {"invented", "noted"}


@promise("batch:datasets")
def test_attachments_of_inspect_are_read_in_their_places() -> None:
    record = {**SHAPES["Inspect sample"].record, "attachments": {"a1": QUESTION}, "events": [{"event": "model"}]}
    messages = [{**record["messages"][0], "content": "attachment://a1"}, *record["messages"][1:]]
    encoded = translate_request(
        json.dumps({**record, "messages": messages}), source="inspect", target="openai-chat", model="m"
    )
    assert encoded.body["messages"][0]["content"] == QUESTION
    assert "events" in {loss.what for loss in encoded.losses}


@promise("batch:datasets")
@pytest.mark.parametrize("depth", [1, 40, 60, 200])
def test_attachments_of_inspect_are_looked_for_in_fifty_levels(depth: int) -> None:
    arguments: Any = "attachment://a1"
    for level in range(depth):
        arguments = {"a": arguments} if level % 2 else [arguments]
    record = {**SHAPES["Inspect sample"].record, "attachments": {"a1": "found"}}
    call = {"id": "call_9", "function": "look", "arguments": {"given": arguments}}
    messages = [*record["messages"], {"role": "assistant", "content": "", "tool_calls": [call]}]
    text = json.dumps(decode_request({**record, "messages": messages}, "inspect").messages[-1].tool_calls[0].arguments)
    assert ("found" in text, "attachment://a1" in text) == (depth < 50, depth > 50)


@promise("batch:datasets")
def test_what_a_tracer_keeps_beside_the_messages_is_read() -> None:
    """Tools among the parameters, the system prompt of Anthropic's API, and signatures."""
    for name in ("LangSmith run with tools", "LangSmith run of Anthropic's client", "Phoenix span", "Phoenix row"):
        assert [tool.name for tool in read(SHAPES[name]).tools] == ["weather"], name
    for name in ("LangSmith run of Anthropic's client", "Langfuse generation of Anthropic's client"):
        assert read(SHAPES[name]).messages[0].text == "Be brief.", name
    thought = read(SHAPES["Langfuse generation of Anthropic's client"]).messages[2].parts[0]
    assert isinstance(thought, Reasoning)
    assert thought.signature is not None
