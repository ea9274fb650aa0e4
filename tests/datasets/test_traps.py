"""Traps of stored conversations: what published files look like, and what they must not be read as."""

import json
from typing import Any

import pytest

from dragoman import decode_request, detect, translate_request
from dragoman.batch import RecordRejected, convert_lines
from dragoman.errors import DecodeError
from dragoman.ir import Request
from tests.support.promises import promise

pytestmark = promise("batch:datasets")

SECRET = "sk-do-not-print-me"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
USER = {"role": "user", "content": "Weather?"}
ASSISTANT = {"role": "assistant", "content": "3 degrees."}


def read(record: Any, name: str) -> Request:
    return decode_request(json.dumps(record), name)


def crossed(record: Any, source: str, target: str) -> Any:
    return translate_request(json.dumps(record), source=source, target=target).body


def called(name: str, city: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": {"city": city}}, **more}


PARALLEL = {
    "messages": [
        USER,
        {"role": "assistant", "tool_calls": [called("weather", "Oslo"), called("time", "Oslo")]},
        {"role": "tool", "name": "time", "content": "noon"},
        {"role": "tool", "name": "weather", "content": "3C"},
        {"role": "assistant", "content": "3 degrees at noon."},
    ]
}


def test_invented_ids_are_the_same_every_time_and_fit_a_narrow_alphabet() -> None:
    assert crossed(PARALLEL, "trl", "openai-chat") == crossed(PARALLEL, "trl", "openai-chat")
    ids = [call["id"] for message in crossed(PARALLEL, "trl", "mistral")["messages"]
           for call in message.get("tool_calls") or ()]  # fmt: skip
    assert len(set(ids)) == 2
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in ids)


def test_parallel_results_in_another_order_are_paired_by_name() -> None:
    """In the order in which they were finished, as many sets store them."""
    results = {
        result.name: result.value for message in read(PARALLEL, "trl").messages for result in message.tool_results
    }
    assert results == {"weather": "3C", "time": "noon"}
    body = crossed(PARALLEL, "trl", "anthropic-messages")
    calls = {block["id"]: block["name"] for message in body["messages"] if isinstance(message["content"], list)
             for block in message["content"] if block["type"] == "tool_use"}  # fmt: skip
    contents = {calls[block["tool_use_id"]]: block["content"] for message in body["messages"]
            if isinstance(message["content"], list) for block in message["content"]
            if block["type"] == "tool_result"}  # fmt: skip
    assert contents == {"weather": "3C", "time": "noon"}


@pytest.mark.parametrize(
    ("tools", "count"), [("[]", 0), ("", 0), (None, 0), ([], 0), ([TOOL], 1), (json.dumps([TOOL]), 1)]
)
def test_tools_in_every_spelling(tools: Any, count: int) -> None:
    record = {"messages": [USER, {"role": "assistant", "content": "Mild."}], "tools": tools}
    assert len(read(record, "trl").tools or ()) == count
    bare = [TOOL["function"]] if count else tools
    shared = {
        "conversations": [{"from": "human", "value": "Weather?"}, {"from": "gpt", "value": "Mild."}],
        "tools": json.dumps(bare) if count else tools,
    }
    assert len(read(shared, "sharegpt").tools or ()) == count


def test_dotted_names_and_python_types_of_a_benchmark() -> None:
    record = {
        "id": "simple_0",
        "question": [[USER]],
        "function": [
            {
                "name": "weather.get",
                "description": "",
                "parameters": {
                    "type": "dict",
                    "properties": {"city": {"type": "string"}, "days": {"type": "float"}, "when": {"type": "any"}},
                    "required": ["city"],
                },
            }
        ],
    }
    (tool,) = crossed(record, "bfcl", "openai-chat")["tools"]
    assert "." not in tool["function"]["name"]
    schema = tool["function"]["parameters"]
    assert (schema["type"], schema["properties"]["days"]["type"]) == ("object", "number")


def test_thinking_in_text_stays_text() -> None:
    """As a thinking block without a signature, Anthropic would refuse it."""
    record = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "<think>Hm.</think>Hello"}]}
    body = crossed(record, "sharegpt", "anthropic-messages")
    assert "thinking" not in {block.get("type") for message in body["messages"] for block in _blocks(message)}


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return (
        message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
    )


def test_duplicates_of_codex_and_langchain_are_read_once() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}
    session = [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/p"}},
        {"timestamp": "t", "type": "response_item", "payload": item},
        {"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": "Weather?"}},
    ]
    assert [message.text for message in read(session, "codex").messages if message.role == "user"] == ["Weather?"]
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "c", "type": "tool_call"}
    same = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"type": "human", "data": {"content": "Weather?"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [call], "additional_kwargs": {"tool_calls": [same]}}},
    ]
    assert [one.name for message in read(messages, "langchain").messages for one in message.tool_calls] == ["weather"]


def test_rounds_of_one_ui_message_are_turns() -> None:
    parts = [
        {"type": "step-start"},
        {"type": "tool-weather", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"t": 3}},
        {"type": "step-start"},
        {"type": "text", "text": "3 degrees.", "state": "done"},
    ]
    messages = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Weather?"}]},
        {"id": "2", "role": "assistant", "parts": parts},
    ]
    assert [message.role for message in read(messages, "vercel-ui").messages] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


def test_lines_of_one_claude_code_answer_are_one_message() -> None:
    def line(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
        parent = None if number == 1 else f"u{number - 1}"
        message = {"role": role, "content": content, **more}
        return {"type": role, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s", "message": message}

    answer = {"id": "msg_1", "type": "message", "model": "claude-x"}
    session = [
        line(1, "user", "Weather?"),
        line(2, "assistant", [{"type": "text", "text": "I look."}], **answer),
        line(3, "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}], **answer),
        line(4, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "3C"}]),
    ]
    assert [message.role for message in read(session, "claude-code").messages] == ["user", "assistant", "tool"]


def test_parts_that_were_cut_for_privacy_are_not_empty_texts() -> None:
    messages = [{"role": "user", "parts": [{"type": "text"}]}]
    with pytest.raises(DecodeError, match="privacy settings") as caught:
        read(messages, "opentelemetry")
    assert caught.value.path == "$[0].parts[0]"


def test_demonstrations_are_not_part_of_a_run() -> None:
    history = [
        {"role": "system", "content": "Fix it.", "message_type": "system_prompt"},
        {"role": "user", "content": "A demonstration", "is_demo": True, "message_type": "demonstration"},
        {"role": "user", "content": "The task", "message_type": "observation"},
        {"role": "assistant", "content": "Done.", "message_type": "action"},
    ]
    record = {"environment": "e", "trajectory": [], "history": history, "info": {}}
    assert "A demonstration" not in [message.text for message in read(record, "swe-agent").messages]


def test_a_step_of_smolagents_without_calls_and_with_an_empty_observation_is_read() -> None:
    steps = [{"step_number": 1, "model_output": "Mild.", "observations": ""}]
    assert [message.text for message in read(steps, "smolagents").messages] == ["Mild."]


@promise("law:7-no-guessing")
def test_a_signed_call_of_a_ui_message_keeps_arguments_that_are_not_json() -> None:
    signed = {"google": {"thoughtSignature": "c2ln"}}
    part = {"type": "tool-weather", "toolCallId": "c", "state": "input-available", "input": '{"city": "Os'}
    messages = [{"role": "assistant", "parts": [{**part, "callProviderMetadata": signed}]}]
    (call,) = read(messages, "vercel-ui").messages[0].tool_calls
    assert (call.parsed, call.arguments_text) == (False, '{"city": "Os')
    assert call.signature is not None


def test_two_readings_are_not_guessed() -> None:
    """A list of messages without a sign of a format is a `message-list`; rows without a known key are no format."""
    assert detect(json.dumps({"text": "hi", "label": 1})) is None
    assert detect(json.dumps({"input": "b", "output": "c"})) is None


def test_rejects_do_not_print_the_record() -> None:
    for record in ({"messages": [SECRET]}, {"conversations": [{"from": SECRET, "value": 1}]}, {"contents": SECRET}):
        with pytest.raises(RecordRejected) as caught:
            convert_lines(json.dumps(record).encode(), target="anthropic-messages")
        assert SECRET not in caught.value.reject.reason, record


def test_failed_requests_that_claude_code_shows_are_not_words_of_the_model() -> None:
    def line(number: int, role: str, content: str, **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": content if role == "user" else [{"type": "text", "text": content}]}
        parent = f"u{number - 1}" if number else None
        return {"type": role, "uuid": f"u{number}", "parentUuid": parent, "message": message, **more}

    session = [
        line(0, "user", "Weather?"),
        line(1, "assistant", "API Error: 529 overloaded", isApiErrorMessage=True),
        line(2, "user", "Again."),
        line(3, "assistant", "3 degrees."),
    ]
    request = read(session, "claude-code")
    assert [message.text for message in request.messages] == ["Weather?", "Again.", "3 degrees."]
    losses = translate_request(json.dumps(session), source="claude-code", target="openai-chat", model="m").losses
    assert "$[1].isApiErrorMessage" in {loss.path for loss in losses}


def test_a_summary_of_openhands_is_where_the_model_saw_it() -> None:
    def message_event(number: int, role: str, text: str) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"kind": "MessageEvent", "id": f"e{number}", "source": "user", "llm_message": message}

    first = [
        message_event(0, "user", "Task"),
        message_event(1, "assistant", "One"),
        message_event(2, "user", "Two"),
        message_event(3, "assistant", "Three"),
    ]
    state = {"kind": "ConversationStateUpdateEvent", "id": "s", "key": "k", "value": 1}
    cut = {"kind": "Condensation", "id": "c", "forgotten_event_ids": ["e1"], "summary": "Before.", "summary_offset": 1}
    events = [*first, state, cut]
    assert [message.text for message in read(events, "openhands").messages] == ["Task", "Before.", "Two", "Three"]
    again = {**cut, "id": "d", "forgotten_event_ids": ["c-summary", "e2"], "summary": "All."}
    texts = [message.text for message in read([*events, message_event(4, "user", "Four"), again], "openhands").messages]
    assert texts == ["Task", "All.", "Three", "Four"]
    nowhere = json.dumps([*first, {key: value for key, value in cut.items() if key != "summary_offset"}])
    losses = translate_request(nowhere, source="openhands", target="openai-chat", model="m").losses
    assert any("summary" in loss.what for loss in losses)


def test_the_model_does_not_see_what_the_simulated_user_of_tau2_does() -> None:
    call = {"name": "weather", "arguments": {"city": "Oslo"}}
    own = {"id": "u", "name": "look", "arguments": {}, "requestor": "user"}
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "user", "content": None, "tool_calls": [own]},
        {"role": "tool", "id": "u", "content": "rain", "requestor": "user", "error": False},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", **call, "requestor": "assistant"}]},
        {"role": "tool", "id": "c", "content": "no such city", "requestor": "assistant", "error": True},
    ]  # fmt: skip
    record = {"id": "s", "task_id": "1", "reward_info": {}, "messages": messages}
    encoded = translate_request(json.dumps(record), source="tau-bench", target="anthropic-messages", model="m")
    assert len(encoded.body["messages"]) == 3
    assert encoded.body["messages"][2]["content"][0]["is_error"] is True
    assert any("simulated user" in loss.what for loss in encoded.losses)


IMAGES_BY_ADDRESS: dict[str, Any] = {
    "trl": {"prompt": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "{}"}}]}],
            "completion": [{"role": "assistant", "content": "A map."}]},
    "sharegpt": {"conversations": [{"from": "human", "value": "<image>What?"}, {"from": "gpt", "value": "A map."}],
                 "images": ["{}"]},
    "langchain": [{"type": "human", "data": {"content": [{"type": "image_url", "image_url": {"url": "{}"}}]}}],
    "pydantic-ai": [{"kind": "request", "parts": [
        {"part_kind": "user-prompt", "content": [{"kind": "image-url", "url": "{}"}]}]}],
    "opentelemetry": [{"role": "user", "parts": [{"type": "uri", "modality": "image", "uri": "{}"}]}],
}  # fmt: skip


@pytest.mark.parametrize("source", IMAGES_BY_ADDRESS)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic-messages", "gemini", "vertex"])
def test_images_by_address_reach_apis_that_fetch_them(source: str, target: str) -> None:
    """Files of a trainer's own disk do not."""
    for address, arrives in (("https://host/map.png", True), ("images/map.png", False), ("file:///map.png", False)):
        record = json.dumps(IMAGES_BY_ADDRESS[source]).replace("{}", address)
        encoded = translate_request(record, source=source, target=target, model="m")
        assert (address.encode() in encoded.content) is arrives, address
        assert any("image" in loss.what for loss in encoded.losses) is not arrives


def test_what_only_a_trainer_reads_is_reported_when_it_is_lost() -> None:
    answers = {"preferred_output": [ASSISTANT], "non_preferred_output": [{"role": "assistant", "content": "Warm."}]}
    weighted = {"messages": [USER, {**ASSISTANT, "weight": 0}]}
    for record, path in (
        ({"input": {"messages": [USER]}, **answers}, "$.non_preferred_output"),
        ({"input": {"messages": [USER]}, **answers, "grade": 1}, "$.grade"),
        (weighted, "$.messages[1].weight"),
    ):
        for target in ("trl", "sharegpt", "openai-chat", "anthropic-messages"):
            losses = translate_request(record, source="openai-finetuning", target=target, model="m").losses
            assert path in {loss.path for loss in losses}, (target, path)
    assert not translate_request(weighted, source="openai-finetuning", target="openai-finetuning").losses


def test_images_in_results_of_atif_are_not_lost_silently_and_its_tools_are_read() -> None:
    content = [
        {"type": "text", "text": "3C"},
        {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
    ]
    call = {"tool_call_id": "c", "function_name": "weather", "arguments": {}}
    results = [{"source_call_id": "c", "content": content}]
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    record = {
        "schema_version": "ATIF-v1.5",
        "agent": {"name": "a", "model_name": "m", "tool_definitions": [tool]},
        "steps": [
            {"source": "user", "message": "Weather?"},
            {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": results}},
        ],
    }
    assert [one.name for one in read(record, "atif").tools] == ["weather"]
    losses = translate_request(record, source="atif", target="anthropic-messages").losses
    assert any("image" in loss.what for loss in losses)


def test_messages_that_goose_took_from_the_model_are_left_out() -> None:
    hidden = {"role": "user", "content": [{"type": "text", "text": "Long."}], "metadata": {"agentVisible": False}}
    call = {
        "type": "toolRequest",
        "id": "c",
        "toolCall": {"status": "success", "value": {"name": "w", "arguments": {}}},
    }
    record = [hidden, {"role": "user", "content": [{"type": "text", "text": "Short."}]}]
    record += [{"role": "assistant", "content": [call], "metadata": {"agentVisible": True}}]
    request = read(record, "goose")
    assert [message.text for message in request.messages if message.role == "user"] == ["Short."]
    losses = translate_request(json.dumps(record), source="goose", target="openai-chat", model="m").losses
    assert any("only the user saw" in loss.what for loss in losses)
