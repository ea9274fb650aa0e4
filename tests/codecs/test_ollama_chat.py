"""The ollama-chat codec: a row per piece of wire, what old and new servers say, and every trap of this format.

A row gives a piece of wire and the intermediate value it stands for. Reading the wire gives the value (spelling notes
aside); writing the value gives the canonical wire; and the wire itself, read and written, comes back as it was.
"""

import json
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.ids import is_invented
from dragoman.errors import DecodeError, EncodeError
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS
from tests.support.promises import promise
from tests.support.trees import difference, without_notes

NAME = "ollama-chat"
PIXEL = "iVBORw0KGgo="
JPEG = "/9j/4AAQSkZJRgAB"
WEBP = "UklGRhoAAABXRUJQVlA4"
WAVE = "UklGRiQAAABXQVZFZm10"
MP3 = "SUQzBAAAAAAAI1RT"


def request_body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages) or [{"role": "user", "content": "hi"}], "stream": False, **fields}


def decoded(body: dict[str, Any]) -> ir.Request:
    return dragoman.decode_request(body, NAME)


def returns(body: dict[str, Any]) -> str | None:
    again = dragoman.encode_request(decoded(body), NAME)
    assert again.losses == ()
    return difference(body, json.loads(again.json()))


def sent(*messages: ir.Message, **fields: Any) -> dragoman.Encoded:
    return dragoman.encode_request(ir.Request("m", messages or (USER,), **fields), NAME)


def loss_pairs(encoded: dragoman.Encoded) -> set[tuple[str, str]]:
    return {(loss.severity, loss.path) for loss in encoded.losses}


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────

USER = ir.Message("user", "hi")
CALL = ir.ToolCall("call_1", "f", {"a": 1})
WIRE_CALL = {"id": "call_1", "function": {"name": "f", "arguments": {"a": 1}}}
CALLING: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL]}
CALLED = ir.Message("assistant", (CALL,))
WIRE_RESULT = {"role": "tool", "tool_name": "f", "content": "ok", "tool_call_id": "call_1"}
ANSWERED = ir.Message("tool", (ir.ToolResult("call_1", "f", "text", "ok"),))

# name: (wire messages, intermediate messages). Canonical: both directions give exactly the other side.
MESSAGES: dict[str, tuple[list[dict[str, Any]], tuple[ir.Message, ...]]] = {
    "text": ([{"role": "user", "content": "hi"}], (USER,)),
    "system": (
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        (ir.Message("system", "Be brief."), USER),
    ),
    "images before the text": (
        [{"role": "user", "content": "hi", "images": [PIXEL, JPEG]}],
        (ir.Message("user", (ir.Image("image/png", PIXEL), ir.Image("image/jpeg", JPEG), ir.Text("hi"))),),
    ),
    "an image alone": (
        [{"role": "user", "content": "", "images": [WEBP]}],
        (ir.Message("user", (ir.Image("image/webp", WEBP),)),),
    ),
    "sound among the images": (
        [{"role": "user", "content": "hi", "images": [WAVE, MP3]}],
        (ir.Message("user", (ir.Audio("audio/wav", WAVE), ir.Audio("audio/mpeg", MP3), ir.Text("hi"))),),
    ),
    "a call and its result": (
        [{"role": "user", "content": "hi"}, CALLING, WIRE_RESULT],
        (USER, CALLED, ANSWERED),
    ),
    "text and calls": (
        [{"role": "user", "content": "hi"}, {**CALLING, "content": "Let me see."}, WIRE_RESULT],
        (USER, ir.Message("assistant", (ir.Text("Let me see."), CALL)), ANSWERED),
    ),
    "an error": (
        [{"role": "user", "content": "hi"}, CALLING, {**WIRE_RESULT, "content": '{"error":"no such city"}'}],
        (USER, CALLED, ir.Message("tool", (ir.ToolResult("call_1", "f", "error", "no such city"),))),
    ),
    "a result with an image": (
        [{"role": "user", "content": "hi"}, CALLING, {**WIRE_RESULT, "content": "a map", "images": [PIXEL]}],
        (
            USER,
            CALLED,
            ir.Message(
                "tool",
                (ir.ToolResult("call_1", "f", "multimodal", None, (ir.Text("a map"), ir.Image("image/png", PIXEL))),),
            ),
        ),
    ),
    "argument text that was no JSON": (
        [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "call_1", "function": {"name": "f", "arguments": {"unparsed_arguments": "{a"}}}],
            },
            WIRE_RESULT,
        ],
        (USER, ir.Message("assistant", (ir.ToolCall("call_1", "f", arguments_text="{a"),)), ANSWERED),
    ),
}


@pytest.mark.parametrize(("wires", "messages"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(wires: list[dict[str, Any]], messages: tuple[ir.Message, ...]) -> None:
    body = request_body(*wires)
    assert without_notes(decoded(body).messages) == messages
    encoded = sent(*messages)
    assert encoded.body["messages"] == wires
    is_wrapped = any(not call.parsed for message in messages for call in message.tool_calls)
    assert [loss.severity for loss in encoded.losses] == ["degraded"] * is_wrapped
    assert returns(body) is None


ODD: dict[str, list[dict[str, Any]]] = {
    "no content": [{"role": "user", "images": [PIXEL]}],
    "content that is null": [{"role": "assistant", "content": None, "tool_calls": [WIRE_CALL]}],
    "roles in capitals": [{"role": "User", "content": "hi"}, {"role": "ASSISTANT", "content": "ho"}],
    "a result in capitals": [CALLING, {**WIRE_RESULT, "role": "Tool"}],
    "empty lists": [{"role": "assistant", "content": "hi", "tool_calls": [], "images": []}],
    "null lists": [{"role": "assistant", "content": "hi", "tool_calls": None, "images": None, "thinking": None}],
    "an empty thought": [{"role": "assistant", "content": "hi", "thinking": ""}],
    "a thought alone": [{"role": "assistant", "thinking": "hm"}],
    "an id that is empty": [{"role": "assistant", "tool_calls": [{**WIRE_CALL, "id": ""}]}],
    "an id that we once invented": [
        {"role": "assistant", "tool_calls": [{**WIRE_CALL, "id": "dgm_0a1b_0"}]},
        {"role": "tool", "tool_call_id": "dgm_0a1b_0", "tool_name": "f", "content": "ok"},
    ],
    "no arguments": [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}],
    "arguments that are null": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": None}}]}],
    "arguments as text": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1'}}]}],
    "a type and an index": [
        {
            "role": "assistant",
            "tool_calls": [{"type": "function", "function": {"index": 3, "name": "f", "arguments": {}}}],
        }
    ],
    "a result of nothing": [{"role": "tool", "content": "ok", "tool_call_id": None}],
    "a result by the old key": [CALLING, {"role": "tool", "name": "f", "content": "ok"}],
    "a result by another name": [CALLING, {**WIRE_RESULT, "tool_name": "F"}],
    "a result without text": [CALLING, {"role": "tool", "tool_name": "f", "images": [PIXEL]}],
    "keys in capitals": [{"role": "user", "Content": "hi", "IMAGES": [PIXEL]}],
    "a user who thinks": [{"role": "user", "content": "hi", "thinking": "x", "tool_calls": [WIRE_CALL]}],
}


@each("wires", ODD.values(), ids=ODD.keys())
def test_what_the_server_also_reads_comes_back_as_it_was(wires: list[dict[str, Any]]) -> None:
    assert returns(request_body(*wires)) is None


def test_keys_are_read_in_any_case() -> None:
    (message,) = decoded(request_body({"role": "USER", "Content": "hi", "IMAGES": [PIXEL]})).messages
    assert message.role == "user"
    assert without_notes(message.parts) == (ir.Image("image/png", PIXEL), ir.Text("hi"))


@promise("report:57")
def test_calls_and_results_stay_what_they_are() -> None:
    """Other libraries retell the history as user text, and models then print JSON."""
    body = sent(USER, CALLED, ANSWERED, tools=(ir.ToolDefinition("f"),)).body
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert body["messages"][1]["tool_calls"] == [WIRE_CALL]
    assert body["messages"][2] == WIRE_RESULT


@promise("report:58")
def test_arguments_are_objects_whatever_they_were() -> None:
    calls = (
        ir.ToolCall("a", "f", arguments_text="[1]"),
        ir.ToolCall("b", "f", {}, ""),
        ir.ToolCall("c", "f", {"n": 0}),
    )
    results = tuple(ir.ToolResult(call.id, "f", "text", "") for call in calls)
    body = sent(USER, ir.Message("assistant", calls), ir.Message("tool", results)).body
    given = [call["function"]["arguments"] for call in body["messages"][1]["tool_calls"]]
    assert given == [{"unparsed_arguments": "[1]"}, {}, {"n": 0}]


# ── pairing ───────────────────────────────────────────────────────────────────────────────────────────────────


def wire_call(name: str, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {}}, **more}


def paired(*messages: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(id of the call, name, value) of every result; an id is written as the name and position of its call."""
    request = decoded(request_body(*messages))
    calls = [call for message in request.messages for call in message.tool_calls]
    places = {call.id: f"{call.name}{number}" for number, call in enumerate(calls)}
    results = [result for message in request.messages for result in message.tool_results]
    return [(places.get(result.tool_call_id, "?"), result.name, result.value) for result in results]


def test_results_without_ids_pair_by_name_and_order() -> None:
    calls = {"role": "assistant", "tool_calls": [wire_call("f"), wire_call("g"), wire_call("f")]}
    assert paired(
        calls,
        {"role": "tool", "tool_name": "g", "content": "second"},
        {"role": "tool", "tool_name": "f", "content": "first"},
        {"role": "tool", "tool_name": "f", "content": "third"},
    ) == [("g1", "g", "second"), ("f0", "f", "first"), ("f2", "f", "third")]


def test_results_with_nothing_pair_by_order() -> None:
    calls = {"role": "assistant", "tool_calls": [wire_call("f"), wire_call("g")]}
    assert paired(calls, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}) == [
        ("f0", "f", "1"),
        ("g1", "g", "2"),
    ]


def test_an_id_counts_more_than_a_place() -> None:
    calls = {"role": "assistant", "tool_calls": [wire_call("f", id="a"), wire_call("f", id="b")]}
    assert paired(
        calls,
        {"role": "tool", "tool_name": "f", "tool_call_id": "b", "content": "b"},
        {"role": "tool", "tool_name": "f", "tool_call_id": "a", "content": "a"},
    ) == [("f1", "f", "b"), ("f0", "f", "a")]


def test_a_result_of_calls_that_lost_their_ids_finds_them_by_name() -> None:
    """The Python client removes the ids of calls, not those that a program put into its results."""
    calls = {"role": "assistant", "tool_calls": [wire_call("f"), wire_call("g")]}
    result = {"role": "tool", "tool_name": "g", "tool_call_id": "call_9", "content": "ok"}
    assert paired(calls, result) == [("g1", "g", "ok")]
    assert returns(request_body(calls, result)) is None


def test_a_result_never_answers_a_call_of_an_earlier_turn() -> None:
    assert paired(
        {"role": "assistant", "tool_calls": [wire_call("f")]},
        {"role": "user", "content": "never mind"},
        {"role": "assistant", "tool_calls": [wire_call("g")]},
        {"role": "tool", "content": "ok"},
    ) == [("g1", "g", "ok")]


@promise("report:62", "report:63")
def test_invented_ids_follow_from_the_place_and_stay_here() -> None:
    body = request_body(
        {"role": "assistant", "tool_calls": [wire_call("f"), wire_call("f")]},
        {"role": "tool", "tool_name": "f", "content": "1"},
        {"role": "tool", "tool_name": "f", "content": "2"},
    )
    first, second = (decoded(body).messages[0].tool_calls for _ in range(2))
    assert [call.id for call in first] == [call.id for call in second]
    assert len({call.id for call in first}) == 2
    assert all(call.invented_id and is_invented(call.id) for call in first)
    there = dragoman.translate_request(body, source=NAME, target="openai-chat").body["messages"]
    assert [call["id"] for call in there[0]["tool_calls"]] == [result["tool_call_id"] for result in there[1:]]
    gemini = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}]},
        ]
    }
    back = dragoman.translate_request(gemini, source="gemini", target=NAME, model="m").body["messages"]
    assert "id" not in back[1]["tool_calls"][0]
    assert back[2] == {"role": "tool", "tool_name": "f", "content": "ok"}


# ── what a message cannot hold ────────────────────────────────────────────────────────────────────────────────


def test_interleaved_text_and_images_are_flattened_and_reported() -> None:
    parts = (ir.Text("this"), ir.Image("image/png", PIXEL), ir.Text("and that"), ir.Image("image/png", PIXEL))
    encoded = sent(ir.Message("user", parts))
    assert encoded.body["messages"] == [{"role": "user", "content": "this\nand that", "images": [PIXEL, PIXEL]}]
    assert loss_pairs(encoded) == {
        ("degraded", "$.messages[0]"),
        ("degraded", "$.messages[0].parts[1]"),
        ("degraded", "$.messages[0].parts[3]"),
    }


UNSAID: dict[str, tuple[ir.AnyPart, str, str]] = {
    "an image by URL": (ir.Image(url="https://example.org/a.png"), "dropped", ""),
    "an image by id": (ir.Image(file_id="file-1"), "dropped", ""),
    "the detail of an image": (ir.Image("image/png", PIXEL, detail="low"), "dropped", ".detail"),
    "a PDF": (ir.Document("application/pdf", "JVBERi0="), "dropped", ""),
    "a text document": (ir.Document(text="words"), "degraded", ""),
    "sound of another kind": (ir.Audio("audio/flac", "ZkxhQw=="), "dropped", ""),
    "a cache mark": (ir.Text("x", cache=ir.Cache()), "dropped", ".cache"),
    "a citation": (ir.Text("x", (ir.Citation("https://example.org"),)), "dropped", ".citations"),
    "a block of another vendor": (ir.Opaque("anthropic", "x", {"type": "x"}), "dropped", ""),
}


@pytest.mark.parametrize(("part", "severity", "field"), UNSAID.values(), ids=UNSAID.keys())
def test_what_has_no_place_is_reported(part: ir.AnyPart, severity: str, field: str) -> None:
    encoded = sent(ir.Message("user", (part, ir.Text("hi"))))
    assert (severity, f"$.messages[0].parts[0]{field}") in loss_pairs(encoded)


@promise("report:31")
def test_reasoning_goes_back_to_the_format_it_came_from_only() -> None:
    thought = {"role": "assistant", "content": "ho", "thinking": "hm, hm"}
    body = request_body({"role": "user", "content": "hi"}, thought, {"role": "user", "content": "go on"})
    assert dragoman.encode_request(decoded(body), NAME).body["messages"][1] == thought
    for target in ("openai-chat", "gemini", "anthropic-messages"):
        there = dragoman.translate_request(body, source=NAME, target=target, model="some-model")
        assert b"hm, hm" not in there.json()
        assert ("dropped", "$.messages[1].thinking") in loss_pairs(there)
    foreign = sent(USER, ir.Message("assistant", (ir.Reasoning("secret"), ir.Text("ho"))))
    assert "thinking" not in foreign.body["messages"][1]
    assert loss_pairs(foreign) == {("dropped", "$.messages[1].parts[0]")}


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────

# name: (wire fields, fields of the request). Both directions.
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "limits": ({"options": {"num_predict": 24}}, {"max_output_tokens": 24}),
    "sampling": (
        {"options": {"temperature": 0.1, "top_p": 0.9, "top_k": 40, "seed": 7}},
        {"temperature": 0.1, "top_p": 0.9, "top_k": 40, "seed": 7},
    ),
    "stop": ({"options": {"stop": ["a", "b"]}}, {"stop": ("a", "b")}),
    "penalties": (
        {"options": {"presence_penalty": 1, "frequency_penalty": -1}},
        {"presence_penalty": 1, "frequency_penalty": -1},
    ),
    "thinking": ({"think": True}, {"reasoning": ir.ReasoningSettings("on", visible=True)}),
    "no thinking": ({"think": False}, {"reasoning": ir.ReasoningSettings("off")}),
    "a level": ({"think": "low"}, {"reasoning": ir.ReasoningSettings(None, "low", visible=True)}),
    "the highest level": ({"think": "max"}, {"reasoning": ir.ReasoningSettings(None, "max", visible=True)}),
    "JSON": ({"format": "json"}, {"output": ir.StructuredOutput("json")}),
    "a schema": (
        {"format": {"type": "object", "properties": {}}},
        {"output": ir.StructuredOutput("schema", {"type": "object", "properties": {}})},
    ),
    "streaming": ({"stream": True}, {"stream": True}),
    "no streaming": ({"stream": False}, {"stream": False}),
    "a tool": (
        {
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "F", "parameters": {"type": "object"}}}
            ]
        },
        {"tools": (ir.ToolDefinition("f", "F", {"type": "object"}),)},
    ),
}


@pytest.mark.parametrize(("wire", "fields"), SETTINGS.values(), ids=SETTINGS.keys())
def test_settings(wire: dict[str, Any], fields: dict[str, Any]) -> None:
    body = request_body(**wire)
    request = without_notes(decoded(body))
    assert {name: getattr(request, name) for name in fields} == fields
    encoded = sent(**fields)
    assert {key: encoded.body[key] for key in wire} == wire
    assert encoded.losses == ()
    assert returns(body) is None


ODD_SETTINGS: dict[str, dict[str, Any]] = {
    "options of the runner": {"options": {"num_ctx": 8192, "num_gpu": 1, "min_p": 0.05, "think": True}},
    "no options": {"options": {}},
    "no limit": {"options": {"num_predict": -1}},
    "the whole context": {"options": {"num_predict": -2}},
    "a seed by chance": {"options": {"seed": -1}},
    "fractions": {"options": {"num_predict": 24.0, "top_k": 40.5, "seed": 3.0}},
    "one stop sequence": {"options": {"stop": "END"}},
    "no stop sequence": {"options": {"stop": []}},
    "nulls": {"options": {"temperature": None}, "keep_alive": None, "format": None, "think": None, "tools": None},
    "an empty format": {"format": ""},
    "no tools": {"tools": []},
    "seconds": {"keep_alive": 0},
    "a duration": {"keep_alive": "5m"},
    "switches": {"truncate": False, "shift": False, "logprobs": True, "top_logprobs": 3, "_debug_render_only": True},
    "keys that the server ignores": {"tool_choice": "required", "max_tokens": 5, "response_format": {}},
    "a tool without a type": {"tools": [{"function": {"name": "f"}}]},
    "a tool of another type": {"tools": [{"type": "x", "function": {"name": "f", "strict": True}, "name": "f"}]},
    "something that is not a function": {"tools": [{"type": "web_search", "name": "w"}]},
}


@each("wire", ODD_SETTINGS.values(), ids=ODD_SETTINGS.keys())
def test_settings_of_this_server_alone_come_back_as_they_were(wire: dict[str, Any]) -> None:
    assert returns(request_body(**wire)) is None


@pytest.mark.parametrize("body", [{"model": "m"}, {"model": "m", "messages": []}, {"model": "m", "keep_alive": 0}])
def test_a_request_without_messages_loads_a_model(body: dict[str, Any]) -> None:
    assert returns(body) is None
    with pytest.raises(EncodeError):
        dragoman.translate_request(body, source=NAME, target="openai-chat")


def test_this_api_streams_by_default() -> None:
    silent = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert decoded(silent).stream is True
    assert returns(silent) is None
    assert dragoman.translate_request(silent, source=NAME, target="openai-chat").body["stream"] is True
    assert dragoman.translate_request(silent, source="openai-chat", target=NAME).body["stream"] is False


def test_limits_that_say_nothing_do_not_cross() -> None:
    body = request_body(options={"num_predict": -1, "seed": -1, "num_ctx": 4096})
    there = dragoman.translate_request(body, source=NAME, target="openai-chat")
    assert there.body.keys() == {"model", "messages", "stream"}
    assert loss_pairs(there) == {("dropped", "$.options.num_ctx")}


EFFORTS = [
    ("minimal", "low", {"degraded"}),
    ("low", "low", set[str]()),
    ("high", "high", set[str]()),
    ("xhigh", "max", {"degraded"}),
    ("none", False, set[str]()),
    ("colossal", True, {"degraded"}),
]


@pytest.mark.parametrize(("effort", "level", "severities"), EFFORTS)
def test_efforts_of_others_become_levels(effort: str, level: Any, severities: set[str]) -> None:
    encoded = sent(reasoning=ir.ReasoningSettings(None, effort))
    assert encoded.body["think"] == level
    assert {loss.severity for loss in encoded.losses} == severities


def test_a_budget_is_reported_and_an_adaptive_mode_left_to_the_model() -> None:
    budget = sent(reasoning=ir.ReasoningSettings("on", budget_tokens=2048))
    assert budget.body["think"] is True
    assert loss_pairs(budget) == {("degraded", "$.reasoning.budget_tokens")}
    adaptive = sent(reasoning=ir.ReasoningSettings("adaptive"))
    assert "think" not in adaptive.body
    assert loss_pairs(adaptive) == {("degraded", "$.reasoning.mode")}


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        *((name, False) for name in ("llama3.2", "mistral", "gemma3:4b", "qwen2.5")),
        *((name, True) for name in ("qwen3:4b", "gpt-oss:20b", "deepseek-r1", "gemma4", "magistral")),
    ],
)
def test_models_that_do_not_think_are_not_asked_to(model: str, thinks: bool) -> None:  # noqa: FBT001
    request = ir.Request(model, (USER,), reasoning=ir.ReasoningSettings(None, "high"))
    encoded = dragoman.encode_request(request, NAME)
    assert ("think" in encoded.body) == thinks
    assert bool(encoded.losses) != thinks
    off = dragoman.encode_request(structs.replace(request, reasoning=ir.ReasoningSettings("off")), NAME)
    assert off.body["think"] is False


def test_settings_without_a_place_are_reported() -> None:
    encoded = sent(user="u", candidates=2, cache=ir.Cache(), parallel_tool_calls=False, tools=(ir.ToolDefinition("f"),))
    assert loss_pairs(encoded) == {
        ("dropped", "$.user"),
        ("dropped", "$.candidates"),
        ("dropped", "$.cache"),
        ("dropped", "$.parallel_tool_calls"),
    }


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────

F, G = ir.ToolDefinition("f"), ir.ToolDefinition("g")


@promise("report:68", "report:69")
@pytest.mark.parametrize(
    ("choice", "names", "losses"),
    [
        (ir.ToolChoice("auto"), ["f", "g"], set[str]()),
        (ir.ToolChoice("required"), ["f", "g"], {"$.tool_choice"}),
        (ir.ToolChoice("required", ("g",)), ["g"], {"$.tool_choice", "$.tools[0]"}),
        (ir.ToolChoice("auto", ("f",)), ["f"], {"$.tools[1]"}),
        (ir.ToolChoice("none"), [], {"$.tools[0]", "$.tools[1]"}),
    ],
)
def test_a_choice_is_expressed_by_the_declared_tools(choice: ir.ToolChoice, names: list[str], losses: set[str]) -> None:
    encoded = sent(tools=(F, G), tool_choice=choice)
    assert [tool["function"]["name"] for tool in encoded.body.get("tools", ())] == names
    assert {loss.path for loss in encoded.losses} == losses
    assert "tool_choice" not in encoded.body


def parameters_sent(schema: dict[str, Any]) -> tuple[Any, list[str]]:
    encoded = sent(tools=(ir.ToolDefinition("f", parameters=schema),))
    return encoded.body["tools"][0]["function"]["parameters"], [loss.what for loss in encoded.losses]


@promise("report:64", "report:65")
def test_what_the_server_would_drop_is_written_into_text_that_it_reads() -> None:
    schema = {
        "type": "object",
        "properties": {
            "where": {"$ref": "#/$defs/place"},
            "kind": {"const": "x"},
            "size": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        },
        "$defs": {"place": {"type": "string", "description": "a city"}},
    }
    found, losses = parameters_sent(schema)
    assert found["properties"]["where"] == {"type": "string", "description": "a city"}
    assert found["properties"]["kind"]["enum"] == ["x"]
    assert found["properties"]["size"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert losses == []


def test_schema_keywords_that_the_server_drops_stay_and_are_reported() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "T",
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1, "default": 2}},
        "additionalProperties": False,
    }
    found, losses = parameters_sent(schema)
    assert found == schema
    assert losses == ["schema keywords additionalProperties, default, minimum"]


def test_a_schema_that_refers_to_itself_is_sent_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}},
    }
    found, losses = parameters_sent(schema)
    assert found == schema
    assert losses == ["schema keywords $ref"]


def test_a_custom_tool_crosses_as_a_function_of_one_text() -> None:
    call = ir.ToolCall("c", "sql", {"input": "select 1"}, "select 1", custom=True)
    result = ir.ToolResult("c", "sql", "text", "1")
    encoded = sent(
        USER, ir.Message("assistant", (call,)), ir.Message("tool", (result,)), tools=(ir.CustomTool("sql", "SQL"),)
    )
    assert encoded.body["tools"][0]["function"]["parameters"]["required"] == ["input"]
    assert encoded.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"input": "select 1"}
    assert loss_pairs(encoded) == {("degraded", "$.tools[0]")}


@pytest.mark.parametrize("schema", [True, [1]])
def test_a_format_must_be_an_object(schema: Any) -> None:
    encoded = sent(output=ir.StructuredOutput("schema", schema, "n", "d"))
    assert encoded.body["format"] == "json"
    assert loss_pairs(encoded) == {
        ("degraded", "$.output"),
        ("dropped", "$.output.name"),
        ("dropped", "$.output.description"),
    }


# ── responses ─────────────────────────────────────────────────────────────────────────────────────────────────

ANSWER: dict[str, Any] = {
    "model": "m",
    "created_at": "2026-08-21T10:00:00.123456789Z",
    "message": {"role": "assistant", "content": "hi"},
    "done": True,
    "done_reason": "stop",
    "total_duration": 9,
    "load_duration": 1,
    "prompt_eval_count": 10,
    "prompt_eval_duration": 3,
    "eval_count": 5,
    "eval_duration": 5,
}


def answered(**fields: Any) -> dict[str, Any]:
    return {**ANSWER, **fields}


def without(*keys: str) -> dict[str, Any]:
    return {key: value for key, value in ANSWER.items() if key not in keys}


ANSWERS: dict[str, dict[str, Any]] = {
    "text": ANSWER,
    "no reason": without("done_reason"),
    "no counts": without("prompt_eval_count", "eval_count"),
    "one count": without("prompt_eval_count"),
    "counts of zero": answered(prompt_eval_count=0, eval_count=0),
    "no times": without("total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "created_at"),
    "another time zone": answered(created_at="2026-08-21T10:00:00.1+02:00"),
    "no time at all": answered(created_at="yesterday"),
    "a loaded model": answered(message={"role": "assistant", "content": ""}, done_reason="load"),
    "an unloaded model": answered(message={"role": "assistant", "content": ""}, done_reason="unload"),
    "a word of tomorrow": answered(done_reason="bored"),
    "not done": answered(done=False),
    "no message": without("message"),
    "from the cloud": answered(remote_model="m", remote_host="https://ollama.com:443"),
    "logprobs": answered(logprobs=[{"token": "hi", "logprob": -0.1, "bytes": [104, 105]}]),
    "calls": answered(
        message={
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1.0}}}],
        }
    ),
    "calls of an old server": answered(
        message={"role": "assistant", "content": "", "tool_calls": [wire_call("f"), wire_call("f")]}
    ),
    "an answer in capitals": {"Model": "m", "MESSAGE": {"role": "assistant", "Content": "hi"}, "Done": True},
}


@each("body", ANSWERS.values(), ids=ANSWERS.keys())
def test_answers_come_back_as_they_were(body: dict[str, Any]) -> None:
    again = dragoman.encode_response(dragoman.decode_response(body, NAME), NAME)
    assert difference(body, again.body) is None
    assert again.losses == ()


def completion_of(**fields: Any) -> ir.Completion:
    return dragoman.decode_response(answered(**fields), NAME)


def test_an_answer_is_read() -> None:
    completion = completion_of()
    assert (completion.text, completion.model, completion.created) == ("hi", "m", 1787306400)
    assert completion.usage is not None
    assert (completion.usage.input, completion.usage.output) == (10, 5)
    assert completion.finish == ir.Finish("stop", "stop")
    assert completion.metadata is not None
    assert bytes(completion.metadata["ollama"]["eval_duration"]) == b"5"


@promise("report:79")
@pytest.mark.parametrize(
    ("word", "calls", "reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("length", False, "length"),
        ("load", False, "stop"),
        ("bored", False, "unknown"),
        (None, False, "stop"),
        (None, True, "tool_calls"),
    ],
)
def test_calls_are_the_reason_when_there_are_any(word: str | None, calls: bool, reason: str) -> None:  # noqa: FBT001
    message = {"role": "assistant", "content": "", **({"tool_calls": [wire_call("f")]} if calls else {})}
    body = {**without("done_reason"), "message": message, **({} if word is None else {"done_reason": word})}
    completion = dragoman.decode_response(body, NAME)
    assert completion.finish == ir.Finish(reason, word)  # type: ignore[arg-type]


def test_two_answers_never_share_an_invented_id() -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [wire_call("f"), wire_call("f")]}
    early = completion_of(message=message).tool_calls
    late = completion_of(message=message, created_at="2026-08-21T10:00:09Z").tool_calls
    assert len({call.id for call in (*early, *late)}) == 4


def test_an_answer_for_a_client_of_this_format() -> None:
    message = ir.Message("assistant", (ir.Reasoning("hm"), ir.Text("Let me see."), CALL, structs.replace(CALL, id="b")))
    completion = ir.Completion((message,), ir.Finish("tool_calls"), ir.Usage(10, 5), None, "m", 1787306400)
    encoded = dragoman.encode_response(completion, NAME)
    assert encoded.losses == ()
    assert encoded.body == {
        "model": "m",
        "created_at": "2026-08-21T10:00:00Z",
        "message": {
            "role": "assistant",
            "content": "Let me see.",
            "thinking": "hm",
            "tool_calls": [
                {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
                {"id": "b", "function": {"index": 1, "name": "f", "arguments": {"a": 1}}},
            ],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 10,
        "eval_count": 5,
        # Clients divide by them.
        **dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1),
    }


def test_counts_that_this_api_adds_up_are_reported_as_losses() -> None:
    usage = ir.Usage(10, 5, cached=4, cache_written=1, reasoning=2, image=3, total=99)
    completion = ir.Completion((ir.Message("assistant", "hi"),), ir.Finish("stop"), usage, None, "m")
    encoded = dragoman.encode_response(completion, NAME)
    assert {loss.path for loss in encoded.losses} == {
        f"$.usage.{name}" for name in ("cached", "cache_written", "reasoning", "image", "total")
    }


@promise("report:25", "report:38", "report:41")
def test_what_others_signed_rides_in_the_message_and_returns() -> None:
    parts = (
        ir.Reasoning("one", ir.Signature("anthropic", "sig-1")),
        ir.Reasoning("", ir.Signature("anthropic", "hidden"), redacted=True),
        ir.Reasoning("two", ir.Signature("anthropic", "sig-2")),
        ir.Text("ho", signature=ir.Signature("google", "sig-3")),
        structs.replace(CALL, signature=ir.Signature("google", "sig-4", "id-4")),
    )
    completion = ir.Completion((ir.Message("assistant", parts),), ir.Finish("tool_calls"), None, None, "m")
    message = dragoman.encode_response(completion, NAME).body["message"]
    assert (message["thinking"], message["content"]) == ("onetwo", "ho")
    body = request_body({"role": "user", "content": "hi"}, message, WIRE_RESULT)
    assert without_notes(decoded(body).messages[1].parts) == parts
    assert returns(body) is None


@pytest.mark.parametrize("held", ["x", [1], [{"field": "thinking"}], {}, None])
def test_a_key_that_only_looks_like_ours_is_left_alone(held: Any) -> None:
    call = {**WIRE_CALL, "signature": held}
    body = request_body({"role": "assistant", "content": "hi", "signatures": held, "tool_calls": [call]})
    assert returns(body) is None
    assert decoded(body).messages[0].tool_calls[0].signature is None


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (404, {"error": "model 'x' not found"}, "not_found", "model 'x' not found"),
        (400, {"error": "x does not support tools"}, "invalid_request", "x does not support tools"),
        (401, {"error": "unauthorized", "signin_url": "https://example.org"}, "authentication", "unauthorized"),
        (503, {"error": "server busy"}, "overloaded", "server busy"),
        (400, {"error": {"message": "of the other endpoint", "type": "x"}}, "invalid_request", "of the other endpoint"),
        (502, {"detail": "a proxy"}, "server", '{"detail":"a proxy"}'),
    ],
)
def test_errors(status: int, body: dict[str, Any], kind: str, message: str) -> None:
    failure = dragoman.decode_error(body, NAME, status=status)
    assert (failure.kind, failure.message, failure.status) == (kind, message, status)
    again = dragoman.encode_error(failure, NAME)
    assert (again.body, again.status) == (body, status)


def test_an_error_of_another_vendor_is_a_text_here() -> None:
    failure = ir.Failure("rate_limit", "slow down", retry_after=2.5)
    encoded = dragoman.encode_error(failure, NAME)
    assert (encoded.body, encoded.status, encoded.headers) == (
        {"error": "slow down"},
        429,
        {"retry-after": "3", "retry-after-ms": "2500"},
    )


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:10-bad-input-good-words")
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (request_body({"role": "user", "content": [{"type": "text", "text": "hi"}]}), "$.messages[0].content"),
        (request_body({"role": "wizard", "content": "hi"}), "$.messages[0].role"),
        (request_body({"content": "hi"}), "$.messages[0].role"),
        (request_body({"role": 3}), "$.messages[0].role"),
        (
            request_body({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}),
            "$.messages[0].tool_calls[0].function.arguments",
        ),
        (request_body({"role": "user", "images": [{"url": "x"}]}), "$.messages[0].images[0]"),
        (request_body(format="yaml"), "$.format"),
        (request_body(think=3), "$.think"),
        (request_body(options={"temperature": "hot"}), "$.options.temperature"),
        (request_body(options=[]), "$.options"),
    ],
)
def test_what_the_server_refuses_is_an_error_with_a_path(body: dict[str, Any], path: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decoded(body)
    assert raised.value.path == path


@promise("law:8-pairs-hold", "law:7-no-guessing")
def test_calls_of_one_turn_may_come_in_messages_of_their_own() -> None:
    """Strands sends each call in a message of its own, then the results, which name neither call nor function."""
    calls = [{"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {}}}]} for name in "fgf"]
    results = [{"role": "tool", "content": text} for text in ("one", "two", "three")]
    body = {"model": "m", "messages": [{"role": "user", "content": "go"}, *calls, *results]}
    messages = dragoman.decode_request(body, "ollama-chat").messages
    made = [call.id for message in messages for call in message.tool_calls]
    given = [(result.tool_call_id, result.value) for message in messages for result in message.tool_results]
    assert given == list(zip(made, ("one", "two", "three"), strict=True))
    assert dragoman.translate_request(body, source="ollama-chat", target="ollama-chat").body == body
    for target in FORMATS:
        encoded = dragoman.translate_request(body, source="ollama-chat", target=target, model=MODELS[target])
        assert [loss.path for loss in encoded.losses if loss.path.startswith("$.messages")] == []
    answered = [*body["messages"], {"role": "user", "content": "more"}, calls[0], results[0]]
    later = dragoman.decode_request({**body, "messages": answered}, "ollama-chat").messages
    assert later[-1].tool_results[0].tool_call_id == later[-2].tool_calls[0].id
