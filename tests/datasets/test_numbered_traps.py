"""The thirty traps of stored conversations: a row per trap, and a test that fails if a number has no row."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman import decode_request, detect, translate_request
from dragoman.batch import RecordRejected, Reject, convert_lines
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.google_signatures import is_dummy
from dragoman.codecs.registry import codec
from dragoman.detection import Detected
from dragoman.errors import DecodeError, LossRefused
from dragoman.ir import Image, Request
from tests.datasets.stories import STORIES
from tests.datasets.test_datasets import WRITTEN
from tests.support.cases import each
from tests.support.promises import promise
from tests.support.traps import Traps

pytestmark = promise("batch:datasets")
trap = Traps(30)

USER = {"role": "user", "content": "Weather?"}
DONE = {"role": "assistant", "content": "Mild."}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "note": {"type": ["string", "null"]}}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}


@each("number", range(1, trap.count + 1))
def test_trap(number: int) -> None:
    trap.run(number)


def test_every_number_has_a_row() -> None:
    assert trap.missing == []


def read(record: Any, name: str) -> Request:
    return decode_request(json.dumps(record), name)


def crossed(record: Any, source: str, target: str) -> Encoded:
    return translate_request(json.dumps(record), source=source, target=target, model="m")


def again(record: Any, name: str) -> Any:
    return json.loads(translate_request(json.dumps(record), source=name, target=name).json())


def call(city: Any = "Oslo", name: str = "weather", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": {"city": city}}, **more}


def asked(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(calls)}


def result(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


def arguments_of(request: Request) -> list[dict[str, Any]]:
    return [dict(one.arguments) for message in request.messages for one in message.tool_calls]


def pairs_of(request: Request) -> dict[str, Any]:
    """City of each call -> its result."""
    results = {one.tool_call_id: one.value for message in request.messages for one in message.tool_results}
    calls = [one for message in request.messages for one in message.tool_calls]
    return {str(one.arguments["city"]): results.get(one.id) for one in calls}


def turn(speaker: str, value: Any) -> dict[str, Any]:
    return {"from": speaker, "value": value}


@trap(
    1,
    "Arguments are an object, JSON text, or JSON text of JSON text: an API gets the same call, the file its own depth.",
)
def _depths() -> None:
    held: Any = {"city": "Oslo"}
    for _ in range(4):
        value = json.dumps({"name": "weather", "arguments": held})
        sharegpt = {"conversations": [turn("human", "?"), turn("function_call", value)]}
        one = {"type": "function", "function": {"name": "weather", "arguments": held}}
        trl = {"messages": [USER, asked(one)], "tools": "[]"}
        written = again(sharegpt, "sharegpt")["conversations"][1]
        assert json.loads(written["value"]) == {"name": "weather", "arguments": held}
        assert again(trl, "trl") == trl
        for record, name in ((sharegpt, "sharegpt"), (trl, "trl")):
            assert arguments_of(read(record, name)) == [{"city": "Oslo"}]
            sent = crossed(record, name, "openai-chat").body["messages"][1]["tool_calls"][0]["function"]["arguments"]
            assert json.loads(sent) == {"city": "Oslo"}
            assert crossed(record, name, "gemini").body["contents"][1]["parts"][0]["functionCall"]["args"] == {
                "city": "Oslo"
            }
            (other,) = {"trl", "sharegpt"} - {name}
            assert arguments_of(decode_request(crossed(record, name, other).json(), other)) == [{"city": "Oslo"}]
        held = json.dumps(held)


@pytest.mark.parametrize("text", ["", "null", "[]", "5", "{", '"x"', "{'city': 'Oslo'}"])
def test_text_that_is_not_an_object_at_any_depth_stays_text(text: str) -> None:
    quoted = json.dumps(text)
    one = {"type": "function", "function": {"name": "weather", "arguments": quoted}}
    record = {"messages": [USER, asked(one)], "tools": "[]"}
    (found,) = [part for message in read(record, "trl").messages for part in message.tool_calls]
    assert not found.parsed
    assert found.arguments_text == quoted
    assert again(record, "trl") == record


@trap(2, "Nulls that a table added to arguments are removed; a null that the schema allows is kept.")
def _padding() -> None:
    padded = call()
    padded["function"]["arguments"] = {"city": None, "note": None, "path": None}
    assert arguments_of(read({"messages": [USER, asked(padded)], "tools": [TOOL]}, "trl")) == [{"note": None}]
    nested = {"type": "object", "properties": {"at": {"type": "array", "items": PARAMETERS}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": nested}}
    padded["function"]["arguments"] = {"at": [{"city": "Oslo", "note": None, "path": None}]}
    request = read({"messages": [USER, asked(padded)], "tools": json.dumps([tool])}, "trl")
    assert arguments_of(request) == [{"at": [{"city": "Oslo", "note": None}]}]
    kept = {"city": None, "note": None, "path": None}
    padded["function"]["arguments"] = kept
    assert arguments_of(read({"messages": [USER, asked(padded)]}, "trl")) == [kept], "no schema says what is padding"


@trap(3, "One id may stand for several calls; after reading each call has its own, and its result has the same.")
def _constant_ids() -> None:
    messages = [USER]
    for city in ("Oslo", "Rome"):
        messages += [asked(call(city, id="call_id")), result(city[0], tool_call_id="call_id")]
    request = read({"messages": messages}, "trl")
    ids = [one.id for message in request.messages for one in message.tool_calls]
    assert len(set(ids)) == 2
    assert pairs_of(request) == {"Oslo": "O", "Rome": "R"}


@trap(4, "Invented ids depend on the position alone, and fit the alphabet of the target.")
def _invented_ids() -> None:
    record = {"messages": [USER, asked(call("Oslo"), call("Rome")), result("1"), result("2"), DONE]}
    for target in ("openai-chat", "mistral", "anthropic-messages", "bedrock-converse"):
        assert crossed(record, "trl", target).json() == crossed(record, "trl", target).json()
    ids = [one["id"] for message in crossed(record, "trl", "mistral").body["messages"]
           for one in message.get("tool_calls") or ()]  # fmt: skip
    assert len(set(ids)) == 2
    assert all(len(one) == 9 and one.isascii() and one.isalnum() for one in ids)


@trap(
    5, "Parallel results that are stored in another order belong to the call of their name; a missing one is reported."
)
def _parallel() -> None:
    calls = asked(call("Oslo"), call("Rome", "time"))
    record = {"messages": [USER, calls, result("noon", name="time"), result("3C", name="weather"), DONE]}
    assert pairs_of(read(record, "trl")) == {"Oslo": "3C", "Rome": "noon"}
    record["messages"].pop(3)
    assert pairs_of(read(record, "trl")) == {"Oslo": None, "Rome": "noon"}
    losses = crossed(record, "trl", "openai-chat").losses
    assert [(loss.severity, loss.path) for loss in losses] == [("invented", "$.messages[1].tool_calls[0]")]
    assert ambiguous_results(record, "trl") == [], "the name says which call it answers"


def ambiguous_results(record: Any, name: str) -> list[str]:
    """The paths of results that were paired by a guess."""
    losses = crossed(record, name, "openai-chat").losses
    return [loss.path for loss in losses if loss.what == "which call this result answers"]


def test_fewer_results_than_calls_without_ids_are_reported() -> None:
    calls = asked(call("Oslo"), call("Rome"), call("Bonn"))
    for named in ({}, {"name": "weather"}):
        answers = [result("1", **named), result("2", **named), result("3", **named)]
        whole = {"messages": [USER, calls, *answers, DONE]}
        assert pairs_of(read(whole, "trl")) == {"Oslo": "1", "Rome": "2", "Bonn": "3"}
        assert ambiguous_results(whole, "trl") == []
        fewer = {"messages": [USER, calls, *answers[:2], DONE]}
        assert ambiguous_results(fewer, "trl") == ["$.messages[2]", "$.messages[3]"]
        assert crossed(fewer, "trl", "trl").losses == (), "the file itself says no more and no less"
        with pytest.raises(LossRefused):
            translate_request(json.dumps(fewer), source="trl", target="openai-chat", strict=True)
    some = asked(call("Oslo", id="c1"), call("Rome", id="c2"))
    assert ambiguous_results({"messages": [USER, some, result("2", tool_call_id="c2"), DONE]}, "trl") == []


def test_a_result_answers_the_calls_of_its_own_round() -> None:
    def calls(*cities: str) -> dict[str, Any]:
        found = [{"name": "weather", "arguments": {"city": city}} for city in cities]
        return turn("function_call", json.dumps(found))

    unanswered = [turn("human", "?"), calls("Oslo"), turn("gpt", "Later."), turn("human", "And?"), calls("Rome")]
    record = {"conversations": [*unanswered, turn("observation", "R")]}
    assert pairs_of(read(record, "sharegpt")) == {"Oslo": None, "Rome": "R"}
    joined = [turn("human", "?"), calls("Oslo", "Rome"), turn("observation", "O, R"), calls("Bonn")]
    record = {"conversations": [*joined, turn("observation", "B"), turn("gpt", "Done.")]}
    assert pairs_of(read(record, "sharegpt")) == {"Oslo": "O, R", "Rome": None, "Bonn": "B"}
    assert ambiguous_results(record, "sharegpt") == ["$.conversations[2]"]


@trap(6, "A call at the end has no result; where an API requires one, the invented one is reported.")
def _trailing_call() -> None:
    record = {"messages": [USER, asked(call())]}
    assert again(record, "trl") == record
    for target in ("openai-chat", "anthropic-messages", "gemini"):
        severities = {loss.severity for loss in crossed(record, "trl", target).losses if "result of call" in loss.what}
        assert severities == {"invented"}, target


@pytest.mark.parametrize("target", WRITTEN)
def test_no_file_gets_a_result_that_was_never_there(target: str) -> None:
    for ending in ([asked(call())], [asked(call()), DONE, USER, DONE]):
        record = {"messages": [USER, *ending]}
        encoded = crossed(record, "trl", target)
        request = decode_request(encoded.json(), target)
        assert arguments_of(request) == [{"city": "Oslo"}]
        assert [one for message in request.messages for one in message.tool_results] == []
        assert not [loss for loss in encoded.losses if loss.severity == "invented"]


@trap(7, "Content that is null, empty or absent beside calls stays what it was.")
def _content_beside_calls() -> None:
    one = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    for content in ({"content": None}, {"content": ""}, {}):
        answer = {"role": "assistant", **content, "tool_calls": [one]}
        record = {"messages": [USER, answer, result("3C", tool_call_id="c")]}
        assert again(record, "openai-finetuning")["messages"][1] == answer


@trap(8, "Calls of the old style become calls with their results, and go back in the old style.")
def _legacy_calls() -> None:
    record = {
        "messages": [
            USER,
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "weather", "arguments": '{"city":"Oslo"}'},
            },
            {"role": "function", "name": "weather", "content": "3C"},
        ],
        "functions": [{"name": "weather", "parameters": PARAMETERS}],
    }
    assert pairs_of(read(record, "openai-finetuning")) == {"Oslo": "3C"}
    assert again(record, "openai-finetuning") == record
    (called,) = [one for message in crossed(record, "openai-finetuning", "openai-responses").body["input"]
                 if message.get("type") == "function_call" for one in [message]]  # fmt: skip
    assert called["call_id"]


@trap(9, "Tools in the prose of a system prompt are read, and the prompt keeps its every character.")
def _prose_tools() -> None:
    prompt = 'Intro <tools>[{"type": "function",  "function": {"name": "weather"}}]</tools> outro'
    record = {"conversations": [turn("system", prompt), turn("human", "?"), turn("gpt", "<tool_call>{}</tool_call>")]}
    request = read(record, "hermes")
    assert [tool.name for tool in request.tools] == ["weather"]
    assert request.messages[0].text == prompt
    assert again(record, "hermes")["conversations"][0] == turn("system", prompt)


def schema_of(**types: str) -> Any:
    function = {
        "name": "weather",
        "parameters": {"type": "dict", "properties": {name: {"type": kind} for name, kind in types.items()}},
    }
    record = {"id": "simple_0", "question": [[USER]], "function": [function]}
    return crossed(record, "bfcl", "openai-chat").body["tools"][0]["function"]["parameters"]


@trap(10, "Python's names of types become JSON Schema's; a name that is in neither stays.")
def _python_types() -> None:
    schema = schema_of(a="str", b="float", c="List[int]", d="str, optional", e="any", f="duration", g="Optional[bool]")
    assert schema["type"] == "object"
    assert schema["properties"] == {
        "a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "array", "items": {"type": "integer"}},
        "d": {"type": "string"}, "e": {}, "f": {"type": "duration"}, "g": {"type": "boolean"},
    }  # fmt: skip


@trap(11, "A name that an API refuses gets another one, which no other tool has, and that is reported.")
def _dotted_names() -> None:
    functions = [{"name": name, "parameters": {"type": "dict"}} for name in ("weather.get", "weather_get")]
    encoded = crossed({"id": "simple_0", "question": [[USER]], "function": functions}, "bfcl", "openai-chat")
    names = [tool["function"]["name"] for tool in encoded.body["tools"]]
    assert len(set(names)) == 2
    assert names[1] == "weather_get"
    assert not any("." in name for name in names)
    assert [loss.what for loss in encoded.losses if loss.severity == "degraded"] == ["tool name 'weather.get'"]


@trap(12, "A call that controls a harness is kept as a call; a message that only ends a run is left out.")
def _control_flow() -> None:
    finish = {"name": "Finish", "arguments": '{"return_type": "give_answer", "final_answer": "Mild."}'}
    messages = [USER, {"role": "assistant", "content": None, "function_call": finish}]
    record = {"answer_generation": {"function": [{"name": "Finish"}], "train_messages": [messages]}}
    assert [one.name for message in read(record, "toolbench").messages for one in message.tool_calls] == ["Finish"]
    run = {"trajectory_format": "mini-swe-agent-1", "messages": [USER, DONE, {"role": "exit", "content": "submitted"}]}
    assert [message.role for message in read(run, "swe-agent").messages] == ["user", "assistant"]


@trap(13, "Lines of one answer are one message; rounds within one message are several.")
def _grouping() -> None:
    parts = [
        {"type": "step-start"},
        {"type": "tool-weather", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"t": 3}},
        {"type": "step-start"},
        {"type": "text", "text": "Mild."},
    ]
    messages = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "?"}]},
        {"id": "2", "role": "assistant", "parts": parts},
    ]
    roles = [message.role for message in read(messages, "vercel-ui").messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    session = [
        claude(1, "user", "Weather?"),
        claude(2, "assistant", [{"type": "text", "text": "I look."}], id="m"),
        claude(3, "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}], id="m"),
    ]
    assert [message.role for message in read(session, "claude-code").messages] == ["user", "assistant"]


def claude(number: int, role: str, content: Any, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """Line `number` of a session; its parent is the line before unless another one is named."""
    before = number - 1 if parent is None else parent
    return {
        "type": role, "uuid": f"u{number}", "parentUuid": f"u{before}" if before else None, "sessionId": "s",
        "message": {"role": role, "content": content, **more},
    }  # fmt: skip


@trap(14, "Of a tree one branch is read: that of the newest line, or the longest path of a search.")
def _trees() -> None:
    session = [
        claude(1, "user", "Weather?"),
        claude(2, "assistant", [{"type": "text", "text": "left behind"}], id="a"),
        claude(3, "user", "Weather in Rome?", parent=1),
        claude(4, "assistant", [{"type": "text", "text": "Warm."}], id="b"),
    ]
    texts = [message.text for message in read(session, "claude-code").messages]
    assert "left behind" not in texts
    assert texts[-1] == "Warm."
    search = {"train_messages": [[USER], [USER, DONE]], "function": []}
    assert len(read({"answer_generation": search, "tree": {"dead": ["ends"]}}, "toolbench").messages) == 2


@trap(15, "Compactions and rewinds are applied: what is read is what the model saw last.")
def _compactions() -> None:
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "summary"}]}
    codex = [*STORIES["codex"], {"type": "compacted", "payload": {"message": "", "replacement_history": [kept]}}]
    texts = [message.text for message in read(codex, "codex").messages if message.role != "system"]
    assert texts == ["summary"]
    lines = [
        {"sessionId": "s", "projectHash": "p", "startTime": "t"},
        {"id": "1", "type": "user", "content": "Weather?", "timestamp": "t"},
        {"id": "2", "type": "gemini", "content": "taken back", "timestamp": "t"},
        {"$rewindTo": "2"},
        {"id": "3", "type": "gemini", "content": "Mild.", "timestamp": "t"},
    ]
    assert [message.text for message in read(lines, "gemini-cli").messages] == ["Weather?", "Mild."]


@trap(16, "What a log has twice is read once.")
def _duplicates() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}
    session = [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/p"}},
        {"timestamp": "t", "type": "response_item", "payload": item},
        {"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": "Weather?"}},
    ]
    assert [message.text for message in read(session, "codex").messages if message.role == "user"] == ["Weather?"]
    same = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    ai = {
        "content": [{"type": "tool_use", "id": "c", "name": "weather", "input": {"city": "Oslo"}}],
        "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "c", "type": "tool_call"}],
        "additional_kwargs": {"tool_calls": [same]},
    }
    messages = [{"type": "human", "data": {"content": "Weather?"}}, {"type": "ai", "data": ai}]
    assert arguments_of(read(messages, "langchain")) == [{"city": "Oslo"}]
    lines = [
        claude(1, "user", "Weather?"),
        claude(2, "assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}], id="m"),
        {**claude(3, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "3C"}]), "toolUseResult": "3C"},
    ]
    results = [one.value for message in read(lines, "claude-code").messages for one in message.tool_results]
    assert results == ["3C"]


LACKING = {
    "claude-code": "the system prompt and the tools", "gemini-cli": "the system prompt and the tools",
    "codex": "the tools", "openai-agents": "the instructions and the tools", "tau-bench": "the tools",
    "swe-agent": "the tools", "chatgpt-export": "the system prompt and the tools",
    "claude-export": "the system prompt and the tools",
}  # fmt: skip


@trap(17, "Logs of agents lack the system prompt and the tools: none is invented, and every conversion reports it.")
def _missing_prompt() -> None:
    for name, story in STORIES.items():
        request = read(story, name)
        for target in ("openai-chat", "anthropic-messages", "trl"):
            if target == name:
                continue
            losses = crossed(story, name, target).losses
            noted = [(loss.severity, loss.path, loss.what) for loss in losses if "not what was sent" in loss.why]
            assert noted == ([("noted", "$", LACKING[name])] if name in LACKING else []), (name, target)
        if name in LACKING:
            assert not request.tools, name
    for name in ("claude-code", "gemini-cli"):
        assert "system" not in {message.role for message in read(STORIES[name], name).messages}
        body = crossed(STORIES[name], name, "openai-chat").body
        assert body["messages"][0]["role"] == "user"
        assert "tools" not in body
    agents = "openai-agents"
    assert crossed(STORIES[agents], agents, agents).losses == (), "nothing is lost on the way into the same format"


SIGNED = "c2lnbmVkLXJlYXNvbmluZy1ieXRlcw=="


def signed_records() -> Iterator[tuple[str, Any, str, str]]:
    """Format, record with signed or encrypted reasoning, family of the signature, its path."""
    with_thought = json.loads(json.dumps(STORIES["pydantic-ai"]))
    thinking = {"part_kind": "thinking", "content": "hm", "signature": SIGNED, "provider_name": "anthropic"}
    with_thought[1]["parts"].insert(0, thinking)
    yield "pydantic-ai", with_thought, "anthropic", "$[1].parts[0]"
    page = json.loads(json.dumps(STORIES["vercel-ui"]))
    metadata = {"anthropic": {"signature": SIGNED}}
    page[1]["parts"].insert(1, {"type": "reasoning", "text": "hm", "providerMetadata": metadata})
    yield "vercel-ui", page, "anthropic", "$[1].parts[1]"
    blocks = [{"type": "thinking", "thinking": "hm", "signature": SIGNED}, {"type": "text", "text": "Mild."}]
    session = [claude(1, "user", "Weather?"), claude(2, "assistant", blocks, id="m"), claude(3, "user", "And now?")]
    yield "claude-code", session, "anthropic", "$[1].message.content[0]"
    encrypted = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SIGNED}
    rollout = list(STORIES["codex"])
    rollout.insert(6, {"timestamp": "t", "type": "response_item", "payload": encrypted})
    yield "codex", rollout, "openai-responses", "$[6].payload"
    items = list(STORIES["openai-agents"])
    items.insert(1, encrypted)
    yield "openai-agents", items, "openai-responses", "$[1]"


@trap(18, "Signatures and encrypted reasoning reach their own vendor, and are reported as dropped anywhere else.")
def _signatures() -> None:
    for name, record, family, path in signed_records():
        for target in dragoman.formats():
            encoded = crossed(record, name, target)
            dropped = [loss.path for loss in encoded.losses if loss.severity == "dropped" and "reasoning" in loss.what]
            is_own = codec(target).profile.signs_as == family
            assert (SIGNED.encode() in encoded.json()) is is_own, (name, target)
            assert dropped == ([] if is_own else [path]), (name, target)
    for name in ("gemini-cli", "opentelemetry", "trl", "codex"):  # their calls are unsigned, and Gemini 3 refuses those
        sent = translate_request(json.dumps(STORIES[name]), source=name, target="gemini", model="gemini-3-pro")
        (signed,) = [part for turn in sent.body["contents"] for part in turn["parts"] if "functionCall" in part]
        assert is_dummy(signed["thoughtSignature"]), name
        older = translate_request(json.dumps(STORIES[name]), source=name, target="gemini", model="gemini-2.5-pro")
        assert b"thoughtSignature" not in older.json(), name


@trap(19, "Thinking in the text of an answer does not become a thinking block without a signature.")
def _thinking() -> None:
    record = {"conversations": [turn("human", "Hi"), turn("gpt", "<think>Hm.</think>Hello")]}
    body = crossed(record, "sharegpt", "anthropic-messages").body
    kinds = {block["type"] for message in body["messages"] if isinstance(message["content"], list)
             for block in message["content"]}  # fmt: skip
    assert "thinking" not in kinds
    for answer in ("<think>Hm.</think>Hello", "<think>\n\n</think>\n\nHello", "<think>\nHm.\n</think>\n\nHello"):
        record = {"conversations": [turn("human", "Hi"), turn("gpt", answer)]}
        assert again(record, "sharegpt") == record
        messages = {"messages": [USER, {"role": "assistant", "content": answer}], "tools": "[]"}
        assert again(messages, "trl") == messages


@trap(20, "Facts about training return to the file that had them, and no API sees them.")
def _training_facts() -> None:
    record = {"messages": [USER, {**DONE, "weight": 0}]}
    assert again(record, "openai-finetuning") == record
    noted = {"conversations": [turn("human", "Hi"), turn("gpt", "Hello")], "loss": [0, 1], "mask": "last"}
    assert again(noted, "sharegpt") == noted
    for target in ("openai-chat", "anthropic-messages", "gemini", "bedrock-converse", "ollama-chat"):
        assert b"weight" not in crossed(record, "openai-finetuning", target).json()
        assert not {"loss", "mask"} & crossed(noted, "sharegpt", target).body.keys()


@trap(
    21, "Tools may be a list, JSON text, an empty text, null or absent; each is read, and no tools stay what they were."
)
def _spellings_of_tools() -> None:
    turns = [turn("human", "Hi"), turn("gpt", "Hello")]
    spellings: tuple[Any, ...] = ([], "[]", "", None)
    for tools in spellings:
        for name, record in (("trl", {"messages": [USER, DONE]}), ("sharegpt", {"conversations": turns})):
            assert read({**record, "tools": tools}, name).tools == ()
            assert again({**record, "tools": tools}, name)["tools"] == tools
            assert "tools" not in again(record, name)
    for tools in ([TOOL], json.dumps([TOOL])):
        assert [tool.name for tool in read({"messages": [USER, DONE], "tools": tools}, "trl").tools] == ["weather"]


@trap(22, "Placeholders take the images of the list beside them in order; a wrong number of them is refused.")
def _placeholders() -> None:
    urls = ["https://a.example/1.png", "https://a.example/2.png"]
    turns = [turn("human", "<image>What is this, and <image>?"), turn("gpt", "Two pictures.")]
    asked_about = [{"type": "image"}, {"type": "text", "text": "and <image>?"}, {"type": "image"}]
    chat = [{"role": "user", "content": asked_about}, DONE]
    records: list[tuple[str, dict[str, Any]]] = [("sharegpt", {"conversations": turns}), ("trl", {"messages": chat})]
    for name, record in records:
        request = read({**record, "images": urls}, name)
        assert [part.url for part in request.messages[0].parts if isinstance(part, Image)] == urls
        assert again({**record, "images": urls}, name) == {**record, "images": urls}
        for images in (urls[:1], [*urls, urls[0]]):
            with pytest.raises(DecodeError) as caught:
                read({**record, "images": images}, name)
            assert caught.value.path in {"$.images", "$.messages[0].content[2]"}
    plain = {"conversations": [turn("human", "The tag <image> is text."), turn("gpt", "Yes.")]}
    assert again(plain, "sharegpt") == plain
    assert read(plain, "sharegpt").messages[0].text == "The tag <image> is text."
    ambiguous = crossed({"messages": chat, "images": urls}, "trl", "sharegpt")
    assert [loss.what for loss in ambiguous.losses] == ["image", "image"], "a text has the placeholder in it"


@trap(23, "The better of two answers is read, whatever its key is called; the other one stays in the file.")
def _preferences() -> None:
    good, bad = [DONE], [{"role": "assistant", "content": "No idea."}]
    for better, worse in (("preferred_output", "non_preferred_output"),
                          ("preferred_completion", "non_preferred_completion")):  # fmt: skip
        record = {"input": {"messages": [USER]}, better: good, worse: bad}
        assert read(record, "openai-finetuning").messages[-1].text == "Mild."
        assert again(record, "openai-finetuning")["non_preferred_output"] == bad
    chosen = {"prompt": [USER], "chosen": good, "rejected": bad}
    assert [message.text for message in read(chosen, "trl").messages] == ["Weather?", "Mild."]
    assert again(chosen, "trl")["rejected"] == bad
    scored: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
        "completions": [
            {"score": 0.0, "completion": {"role": "model", "parts": [{"text": "No idea."}]}},
            {"score": 1.0, "completion": {"role": "model", "parts": [{"text": "Mild."}]}},
        ],
    }
    assert read(scored, "gemini-tuning").messages[-1].text == "Mild."
    assert again(scored, "gemini-tuning")["completions"] == scored["completions"]
    for none in ([], [{"score": 1.0}]):  # then the last content is no answer
        unanswered = {**scored, "completions": none}
        assert again(unanswered, "gemini-tuning") == unanswered
        lone = {"contents": scored["contents"][0], "completions": none}
        assert again(lone, "gemini-tuning") == lone


@trap(24, "Names of roles belong to their format, and an unknown one is refused.")
def _roles() -> None:
    answered = read({"messages": [USER, {"role": "model", "content": "x"}]}, "trl")
    assert [message.role for message in answered.messages] == ["user", "assistant"]
    called = {"messages": [USER, asked(call()), {"role": "ipython", "content": "3C"}]}
    assert pairs_of(read(called, "trl")) == {"Oslo": "3C"}
    for speaker in ("gpt", "chatgpt", "bing", "bard", "assistant"):
        record = {"conversations": [turn("human", "Hi"), turn(speaker, "Hello")]}
        assert read(record, "sharegpt").messages[1].role == "assistant"
    with pytest.raises(DecodeError, match="human, gpt"):
        read({"conversations": [turn("human", "Hi"), turn("stranger", "Hello")]}, "sharegpt")
    with pytest.raises(DecodeError):
        read({"messages": [USER, {"role": "gpt", "content": "x"}]}, "trl")


@trap(25, "Rules about first and last turns repair nothing in a file; for an API the repair is reported.")
def _first_and_last() -> None:
    record = {"messages": [DONE, DONE, USER]}
    assert again(record, "trl") == record
    encoded = crossed(record, "trl", "gemini")
    assert ("invented", "$.messages[0]") in {(loss.severity, loss.path) for loss in encoded.losses}


@trap(26, "A part whose content was withheld is not an empty text.")
def _withheld() -> None:
    with pytest.raises(DecodeError, match="privacy settings") as caught:
        read([{"role": "user", "parts": [{"type": "text"}]}], "opentelemetry")
    assert caught.value.path == "$[0].parts[0]"
    empty = [
        {"role": "user", "parts": [{"type": "text", "content": ""}]},
        {"role": "user", "parts": [{"type": "text", "content": "x"}]},
    ]
    assert read(empty, "opentelemetry").messages[-1].text == "x"


@trap(27, "A value that was cut off is refused where it shows, and otherwise passes as it is.")
def _cut_off() -> None:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}])
    for length in (1, len(messages) // 2, len(messages) - 1):
        span = {"gen_ai.input.messages": messages[:length], "gen_ai.request.model": "m"}
        with pytest.raises(DecodeError, match="cut") as caught:
            read(span, "opentelemetry")
        assert caught.value.path == "$['gen_ai.input.messages']"
        assert "Weather" not in str(caught.value)
    flat = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Weather?",
        "llm.request.functions.0.name": "weather",
        "llm.request.functions.0.parameters": '{"type": "obj',
    }
    assert detect(json.dumps({"attributes": flat})) == Detected("opentelemetry", "request")
    with pytest.raises(DecodeError, match="cut"):
        read({"attributes": flat}, "opentelemetry")
    one = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "Os'}}
    (cut,) = [part for message in read({"messages": [USER, asked(one)]}, "trl").messages for part in message.tool_calls]
    assert not cut.parsed, "arguments that were cut are not repaired"


@each("mark", ["", "... [truncated]", "[50000 characters left out]"])
@each("name", [name for name in STORIES if name != "bfcl"])
def test_a_result_that_was_cut_crosses_letter_by_letter(name: str, mark: str) -> None:
    """A text that was cut looks like a short one, so it is neither repaired nor marked."""
    cut = "x" * 10_000 + mark
    record = json.loads(json.dumps(STORIES[name]).replace("3C", json.dumps(cut)[1:-1]))
    (one,) = [part for message in read(record, name).messages for part in message.tool_results]
    assert one.value == cut
    sent = decode_request(crossed(record, name, "anthropic-messages").json(), "anthropic-messages")
    assert [part.value for message in sent.messages for part in message.tool_results] == [cut]


@trap(28, "Each record of a file is judged alone, and one that fits no format, or two, is refused.")
def _mixed_styles() -> None:
    lines = [STORIES["sharegpt"], {"messages": [USER, DONE], "model": "m"}, STORIES["trl"], {"text": "hi", "label": 1}]
    rejects: list[Reject] = []
    converted = convert_lines("\n".join(map(json.dumps, lines)).encode(), target="gemini", on_reject=rejects.append)
    assert len(converted.splitlines()) == 3
    assert [reject.line for reject in rejects] == [4]
    assert detect(json.dumps({"input": "b", "output": "c"})) is None
    assert detect(json.dumps(STORIES["trl"])) == Detected("trl", "request")


@trap(
    29,
    "Lines are read strictly: marks and line ends of other systems are ignored, and dialects of JSON are refused.",
)
def _dialects() -> None:
    good = json.dumps({"model": "m", "messages": [USER]}).encode()
    assert len(convert_lines(b"\xef\xbb\xbf" + good + b"\r\n\r\n" + good, target="gemini").splitlines()) == 2
    for bad in (
        b'{"model":"m","messages":[],}',
        b"{'model': 'm', 'messages': []}",
        b'{"model":"m","top_p":NaN,"messages":[]}',
    ):
        rejects: list[Reject] = []
        assert convert_lines(bad + b"\n" + good, target="gemini", on_reject=rejects.append).count(b"\n") == 1
        assert [reject.line for reject in rejects] == [1], bad


@trap(30, "A reject names the place and the reason, and nothing of the record.")
def _secrets() -> None:
    secret = "sk-do-not-print-me"
    for record in ({"messages": [secret]}, {"conversations": [turn(secret, 1)]}, {"contents": secret},
                   {"conversations": [turn("human", "<image>")], "images": [secret, secret]},
                   {"messages": [{"role": secret, "content": "x"}], "tools": "[]"}):  # fmt: skip
        with pytest.raises(RecordRejected) as caught:
            convert_lines(json.dumps(record).encode(), target="anthropic-messages")
        assert secret not in str(caught.value), record
