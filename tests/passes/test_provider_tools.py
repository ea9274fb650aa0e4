"""Tools of other providers are converted once for each list of tools, and always with the same result."""

import json
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.losses import LossLog
from dragoman.passes import provider_tools
from dragoman.passes.provider_tools import cross_provider_tools
from tests.support.formats import FORMATS, MODELS, refusals
from tests.support.promises import promise

pytestmark = promise("core:tool-memo")

BODY = json.dumps(
    {
        "model": "gpt-5.5",
        "input": "What is new?",
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}},
            {"type": "web_search", "search_context_size": "high", "filters": {"allowed_domains": ["example.com"]}},
            {"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "linux"},
        ],
    }
).encode()


@pytest.mark.parametrize("target", ["anthropic-messages", "gemini", "openai-chat", "ollama-chat", "bedrock-converse"])
def test_a_cached_conversion_gives_the_same_result(target: str) -> None:
    provider_tools._crossings.clear()  # noqa: SLF001
    first, second = (
        dragoman.translate_request(BODY, source="openai-responses", target=target, model="some-model") for _ in range(2)
    )
    assert (first.json(), first.losses) == (second.json(), second.losses)
    assert first.losses
    assert all(loss.path != "$" for loss in first.losses)


def test_tools_are_converted_once_per_list_target_and_model() -> None:
    provider_tools._crossings.clear()  # noqa: SLF001
    request = dragoman.decode_request(BODY, "openai-responses")
    claude, gemini = codec("anthropic-messages").profile, codec("gemini").profile
    tools = cross_provider_tools(request, claude, LossLog()).tools
    assert cross_provider_tools(request, claude, LossLog()).tools is tools
    assert cross_provider_tools(request, gemini, LossLog()).tools is not tools
    again = dragoman.decode_request(BODY.replace(b'"f"', b'"g"'), "openai-responses")
    assert cross_provider_tools(again, claude, LossLog()).tools[0].name == "g"


def test_what_is_remembered_is_bounded() -> None:
    profile = codec("gemini").profile
    for number in range(200):
        tool = ir.ProviderTool(f"t{number}", "openai", {"type": "t"})
        cross_provider_tools(ir.Request("m", (), (tool,)), profile, LossLog())
    assert len(provider_tools._crossings) <= 64  # noqa: SLF001


NO_ARGUMENTS = {"type": "object", "properties": {}}


def function(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": NO_ARGUMENTS, **fields}


def namespace(*members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": "crm", "description": "customers", "tools": list(members)}


LOCAL_SHELL: dict[str, Any] = {"type": "shell", "environment": {"type": "local"}}
TOOLS_WITH_FUNCTIONS: dict[str, list[dict[str, Any]]] = {
    "a long name in a namespace": [namespace(function("y" * 120))],
    "an odd name in a namespace": [namespace(function("get.it"))],
    "a name twice in a namespace": [namespace(function("get"), {"type": "custom", "name": "get"})],
    "a function with the name of one in a namespace": [function("crm__get"), namespace(function("get"))],
    "a namespace before a function with its name": [namespace(function("get")), function("crm__get")],
    "a namespace twice": [namespace(function("get")), namespace(function("get"))],
    "a function with the name of the shell": [function("shell"), LOCAL_SHELL],
    "a function with the name of a hosted tool": [function("web_search"), {"type": "web_search"}],
    "two searches": [{"type": "web_search_preview"}, {"type": "web_search"}],
    "two searches of tools": [function("f", defer_loading=True), {"type": "tool_search"}, {"type": "tool_search"}],
}


@promise("law:3-legality")
@pytest.mark.parametrize("target", [name for name in FORMATS if name != "openai-responses"])
@pytest.mark.parametrize("case", TOOLS_WITH_FUNCTIONS)
def test_functions_that_come_from_other_tools_have_legal_and_distinct_names(case: str, target: str) -> None:
    body = {"model": "gpt-5.5", "input": "Hi", "tools": TOOLS_WITH_FUNCTIONS[case]}
    encoded = dragoman.translate_request(body, source="openai-responses", target=target, model=MODELS[target])
    assert refusals(encoded, target, model=MODELS[target]) == ()


@pytest.mark.parametrize("name", ["y" * 120, "get.it"])
def test_calls_of_such_functions_come_back_under_the_clients_name(name: str) -> None:
    tools = [namespace(function(name))]
    called = {"type": "function_call", "namespace": "crm", "call_id": "call_1", "name": name, "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    body = {"model": "m", "input": [{"role": "user", "content": "Hi"}, called, output], "tools": tools}
    request = dragoman.decode_request(body, "openai-responses")
    sent = dragoman.encode_request(request, "openai-chat").body
    alias = sent["tools"][0]["function"]["name"]
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == alias
    call = {"id": "call_2", "type": "function", "function": {"name": alias, "arguments": "{}"}}
    choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    back = dragoman.translate_response(answer, source="openai-chat", target="openai-responses", request=request)
    (item,) = back.body["output"]
    assert (item["namespace"], item["name"]) == ("crm", name)


@promise("law:2-nothing-vanishes")
def test_keys_of_a_namespace_member_beyond_a_function_are_losses() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: A"}
    members: list[dict[str, Any]] = [
        function("a", output_schema={"type": "string"}, defer_loading=True),
        {"type": "custom", "name": "b", "format": grammar},
        {"type": "custom", "name": "c", "format": {"type": "text"}, "allowed_callers": None},
    ]
    body = {"model": "gpt-5.5", "input": "Hi", "tools": [namespace(*members)]}
    encoded = dragoman.translate_request(body, source="openai-responses", target="openai-chat")
    lost = [loss.what for loss in encoded.losses]
    assert lost == [
        "tool 'crm'",
        "output_schema of tool 'crm__a'",
        "format of tool 'crm__b'",
        "deferred loading of tool 'crm__a'",
    ]
    searchable = {**body, "tools": [namespace(*members), {"type": "tool_search"}]}
    claude = dragoman.translate_request(searchable, source="openai-responses", target="anthropic-messages").body
    assert claude["tools"][0]["defer_loading"] is True


@promise("law:4-determinism")
def test_of_several_restrictions_the_same_one_is_named_every_time() -> None:
    """A set of words has another order in every process."""
    assert provider_tools.RESTRICTING == ("allowed_domains", "blocked_domains", "allowed_tools", "approval")
