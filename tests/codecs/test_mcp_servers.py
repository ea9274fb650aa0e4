"""MCP servers of a Messages request that no toolset names, as in the older version of the API."""

from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from tests.support.formats import FORMATS, MODELS
from tests.support.promises import promise
from tests.support.trees import reaches

pytestmark = promise("law:2-nothing-vanishes")

SERVER: dict[str, Any] = {"type": "url", "url": "https://mcp.example.com", "name": "shop"}
TOKEN: dict[str, Any] = {**SERVER, "authorization_token": "token"}
ONLY = {"tool_configuration": {"enabled": True, "allowed_tools": ["find"]}}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "shop"}


def body_of(*servers: Any, **further: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hi"}]
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": messages,
        "mcp_servers": list(servers),
        **further,
    }


# name: (servers, tools or none, allowed tools of those that are read)
READ: dict[str, tuple[list[dict[str, Any]], Any, list[tuple[str, ...]]]] = {
    "alone": ([SERVER], None, [()]),
    "with a token": ([TOKEN], [TOOL], [()]),
    "with some tools": ([SERVER | ONLY], None, [("find",)]),
    "null members": ([{**SERVER, "authorization_token": None, "tool_configuration": None}], [], [()]),
    "two": ([SERVER, {**TOKEN, "name": "other"} | ONLY], None, [(), ("find",)]),
    "one with a toolset": ([SERVER, {**SERVER, "name": "other"}], [TOOLSET], [(), ()]),
}
PASSED_ON: dict[str, Any] = {
    "switched off": [{**SERVER, "tool_configuration": {"enabled": False}}],
    "without a tool": [{**SERVER, "tool_configuration": {"allowed_tools": []}}],
    "an unknown member": [{**SERVER, "more": 1}],
    "an unknown setting": [{**SERVER, "tool_configuration": {"more": 1}}],
    "without an address": [{"type": "url", "name": "shop"}],
    "one that is none": [SERVER, "shop"],
}


def body_with(name: str) -> dict[str, Any]:
    servers, tools, _ = READ[name]
    return body_of(*servers) if tools is None else body_of(*servers, tools=tools)


@pytest.mark.parametrize("name", READ)
def test_a_server_without_a_toolset_is_a_tool(name: str) -> None:
    body = body_with(name)
    request = dragoman.decode_request(body, "anthropic-messages")
    tools = [tool for tool in request.tools if isinstance(tool, ir.ProviderTool)]
    assert sorted(tool.allowed_tools for tool in tools) == sorted(READ[name][2])
    assert {(tool.name, tool.server_url) for tool in tools} == {(one["name"], one["url"]) for one in READ[name][0]}
    again = dragoman.encode_request(request, "anthropic-messages")
    assert (again.body, again.losses) == (body, ())
    assert again.headers["anthropic-beta"] == "mcp-client-2025-04-04"


@pytest.mark.parametrize("name", READ)
def test_servers_cross_to_the_apis_that_have_them(name: str) -> None:
    body = body_with(name)
    for target in FORMATS:
        encoded = dragoman.translate_request(body, source="anthropic-messages", target=target, model=MODELS[target])
        assert all(loss.severity == "invented" or reaches(body, loss.path) for loss in encoded.losses)
        lost = {loss.path for loss in encoded.losses if loss.severity == "dropped"}
        if "mcp" in codec(target).profile.hosted:
            # Gemini calls no server whose tools may not all be called, and none beside functions.
            sent = encoded.json().decode().count(SERVER["url"])
            assert sent + sum(path.startswith("$.mcp_servers[") for path in lost) == len(body["mcp_servers"])
            assert not lost or target in {"gemini", "vertex"}
        else:
            places = {f"$.mcp_servers[{at}]" for at in range(len(body["mcp_servers"]))}
            assert lost == (places if name != "one with a toolset" else {"$.tools[0]", "$.mcp_servers[1]"})


@pytest.mark.parametrize("name", PASSED_ON)
def test_servers_that_say_something_else_are_only_passed_on(name: str) -> None:
    body = body_of(*PASSED_ON[name])
    request = dragoman.decode_request(body, "anthropic-messages")
    assert request.tools == ()
    assert dragoman.encode_request(request, "anthropic-messages").body == body
    elsewhere = dragoman.translate_request(body, source="anthropic-messages", target="openai-responses")
    assert [loss.path for loss in elsewhere.losses] == ["$.mcp_servers"]


def test_toolsets_are_of_the_newer_version() -> None:
    encoded = dragoman.translate_request(
        body_of(SERVER, tools=[TOOLSET]), source="anthropic-messages", target="anthropic-messages"
    )
    assert encoded.headers["anthropic-beta"] == "mcp-client-2025-11-20"
