"""MCP: the gateway runs tools of real servers for clients of every API, and is a server for the official client."""

import asyncio
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import mcp
import mcp_types
import openai
import pytest
from mcp.client.streamable_http import streamable_http_client

from dragoman.gateway.config import ConfigError, read_config
from dragoman.sim.server import Simulator
from tests.gateway.running import RunningGateway, configured, send, simulated
from tests.gateway.scripted_upstream import Reply, completion, reply, scripted
from tests.gateway.test_failures import chat
from tests.gateway.test_keys import create, key
from tests.support.promises import promise

pytestmark = promise("gateway:mcp")
SERVER = Path(__file__).parents[1] / "agent" / "fixtures" / "mcp_server.py"
TOOLS = f"[mcp.servers.tests]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
ALL = {"x-dragoman-mcp": "*"}


def calling(*calls: tuple[str, dict[str, Any]]) -> Reply:
    answer = completion("")
    entries = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, (name, arguments) in enumerate(calls)
    ]
    answer["choices"][0] |= {"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": entries}}
    return reply(answer)


ADD = calling(("add", {"a": 2, "b": 3}))


def test_calls_are_run_until_the_model_answers() -> None:
    with (
        scripted(ADD, calling(("greet", {"name": "Ada"})), reply(completion("It is 5, Ada."))) as upstream,
        RunningGateway(configured(TOOLS + upstream.table("p"))) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any") as client,
    ):
        raw = client.chat.completions.with_raw_response.create(
            model="p/m", messages=[{"role": "user", "content": "2 + 3?"}], extra_headers=ALL
        )
        assert raw.headers["x-dragoman-mcp-calls"] == "2"
        parsed = raw.parse()
        assert parsed.choices[0].message.content == "It is 5, Ada."
        assert parsed.usage is not None
        assert parsed.usage.total_tokens == 21, "of all three rounds"
        last = json.loads(upstream.bodies[-1])
        assert [one["role"] for one in last["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]
        assert json.loads(last["messages"][2]["content"]) == {"result": 5}
        assert "add" in {tool["function"]["name"] for tool in last["tools"]}
        (line,) = gateway.requests(1)
        assert line["mcp_calls"] == 2
        audit = [one for one in gateway.log.lines if one["event"] == "mcp_call"]
        assert [(one["server"], one["tool"], one["outcome"]) for one in audit] == [
            ("tests", "add", "data"),
            ("tests", "greet", "text"),
        ]
        assert "Ada" not in json.dumps(audit), "no arguments in the log"


def test_a_stream_in_the_clients_format() -> None:
    with (
        scripted(ADD, reply(completion("five"))) as upstream,
        RunningGateway(configured(TOOLS + upstream.table("p"))) as gateway,
        anthropic.Anthropic(base_url=gateway.url, api_key="any", default_headers=ALL) as client,
        client.messages.stream(model="p/m", max_tokens=9, messages=[{"role": "user", "content": "2 + 3?"}]) as stream,
    ):
        assert stream.get_final_text() == "five"


def test_a_hosted_tool_that_names_a_server_of_the_gateway() -> None:
    with (
        scripted(ADD, reply(completion("five"))) as upstream,
        RunningGateway(configured(TOOLS + upstream.table("p"))) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any") as client,
    ):
        response = client.responses.create(
            model="p/m",
            input="2 + 3?",
            store=False,
            tools=[
                {
                    "type": "mcp",
                    "server_label": "tests",
                    "server_url": "dragoman:tests",
                    "allowed_tools": ["add"],
                    "require_approval": "never",
                }
            ],
        )
        assert response.output_text == "five"
        offered = json.loads(upstream.bodies[0])["tools"]
        assert [tool["function"]["name"] for tool in offered] == ["add"]
        with pytest.raises(openai.BadRequestError, match="approved"):
            client.responses.create(
                model="p/m",
                input="2 + 3?",
                tools=[{"type": "mcp", "server_label": "tests", "server_url": "dragoman:"}],
            )


def test_a_server_of_the_gateway_in_a_request_of_anthropics() -> None:
    body = {
        "model": "p/m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "2 + 3?"}],
        "mcp_servers": [{"type": "url", "name": "tests", "url": "dragoman:tests"}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "tests"}],
    }
    with (
        scripted(ADD, reply(completion("five"))) as upstream,
        RunningGateway(configured(TOOLS + upstream.table("p"))) as gateway,
    ):
        got = send(gateway.url, "/v1/messages", body, {"anthropic-beta": "mcp-client-2025-11-20"})
        assert got.json["content"] == [{"type": "text", "text": "five"}], got.body
        assert got.headers["x-dragoman-mcp-calls"] == "1"


def test_a_stored_conversation_with_tool_calls_is_continued() -> None:
    with (
        scripted(ADD, reply(completion("five")), ADD, reply(completion("again"))) as upstream,
        RunningGateway(configured(TOOLS + upstream.table("p"))) as gateway,
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="any", default_headers=ALL) as client,
    ):
        first = client.responses.create(model="p/m", input="2 + 3?")
        second = client.responses.create(model="p/m", input="once more", previous_response_id=first.id)
        assert second.output_text == "again"
        sent = json.dumps([one["content"] for one in json.loads(upstream.bodies[2])["messages"]])
        assert [word in sent for word in ("2 + 3?", "five", "once more")] == [True] * 3
        with pytest.raises(openai.BadRequestError, match="background"):
            client.responses.create(model="p/m", input="x", background=True)


def test_calls_of_the_clients_own_functions_are_left_to_the_client() -> None:
    own = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}}}
    with (
        scripted(calling(("mine", {}), ("add", {"a": 1}))) as upstream,
        RunningGateway(configured(TOOLS + upstream.table("p"))) as gateway,
    ):
        answer = send(gateway.url, "/v1/chat/completions", chat("p/m", tools=[own]), ALL)
        got = answer.json["choices"][0]
        assert [call["function"]["name"] for call in got["message"]["tool_calls"]] == ["mine"]
        assert got["finish_reason"] == "tool_calls"
        assert "call of the gateway's tool 'add' (the same turn" in answer.headers["x-dragoman-lost"]
        assert not [one for one in gateway.log.lines if one["event"] == "mcp_call"], "nothing was run half"


def test_limits_of_rounds_calls_and_results() -> None:
    text = "[mcp]\nrounds = 2\ncalls = 1\nmax_result = 8\n" + TOOLS
    with (
        scripted(calling(("greet", {"name": "a" * 50}))) as upstream,
        RunningGateway(configured(text + upstream.table("p"))) as gateway,
    ):
        got = send(gateway.url, "/v1/chat/completions", chat("p/m"), ALL)
        assert (got.status, upstream.count) == (200, 3)
        assert got.json["choices"][0]["finish_reason"] == "length", "an answer that was cut is not a success"
        assert "call of the gateway's tool 'greet' (the limit of tool rounds" in got.headers["x-dragoman-lost"]
        last = json.loads(upstream.bodies[-1])
        assert last["tool_choice"] == "none"
        results = [one["content"] for one in last["messages"] if one["role"] == "tool"]
        assert results[0].startswith("Hello, a… [cut by the gateway")
        assert "more than 1 calls" in results[1]


def test_tools_are_offered_by_name_and_key() -> None:
    keys = '[server]\nkeys = ["a-key", "b-key"]\n'
    text = keys + TOOLS + 'allow = ["gr*"]\nkeys = ["key-1"]\n'
    with (
        scripted(reply(completion("fine"))) as upstream,
        RunningGateway(configured(text + upstream.table("p"))) as gateway,
    ):
        for key in ("a-key", "b-key"):
            assert send(gateway.url, "/v1/chat/completions", chat("p/m"), {**ALL, "x-api-key": key}).status == 200
        first, second = (json.loads(body).get("tools", []) for body in upstream.bodies)
        assert [tool["function"]["name"] for tool in first] == ["greet"]
        assert second == [], "its key may not use the server"
        assert send(gateway.url, "/v1/chat/completions", chat("p/m"), ALL).status == 401


def test_unknown_and_unreachable_servers() -> None:
    text = TOOLS + '[mcp.servers.broken]\ncommand = "/nonexistent/program"\n'
    with (
        scripted(reply(completion("fine"))) as upstream,
        RunningGateway(configured(text + upstream.table("p"))) as gateway,
    ):
        got = send(gateway.url, "/v1/chat/completions", chat("p/m"), {"x-dragoman-mcp": "elsewhere"})
        assert got.status == 400
        assert b"tests, broken" in got.body
        assert send(gateway.url, "/v1/chat/completions", chat("p/m"), ALL).status == 200
        assert send(gateway.url, "/v1/chat/completions", chat("p/m")).status == 200
        assert "tools" not in json.loads(upstream.bodies[-1]), "who does not ask gets none"
        assert [one["server"] for one in gateway.log.lines if one["event"] == "mcp_server_failed"] == ["broken"]
    with pytest.raises(ConfigError, match="either command or url"):
        read_config('[mcp.servers.x]\ncommand = "a"\nurl = "http://b"\n')


# ── the gateway as a server ──


def test_the_official_client_asks_converts_and_calls(dragoman_simulator: Simulator) -> None:
    async def session(url: str) -> None:
        http = httpx2.AsyncClient(headers={"authorization": "Bearer sesame"})
        async with http, mcp.Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert {"ask_model", "convert_body", "add"} <= listed
            requests = await client.call_tool("ask_model", {"model": "anthropic/claude-sonnet-5", "prompt": "hi"})
            assert not requests.is_error
            assert _text(requests)
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "seed": 1}
            given = {"body": body, "source": "openai-chat", "target": "anthropic-messages"}
            converted = json.loads(_text(await client.call_tool("convert_body", given)))
            assert converted["body"]["messages"][0]["role"] == "user"
            assert any("seed" in loss for loss in converted["losses"])
            assert json.loads(_text(await client.call_tool("add", {"a": 2, "b": 3}))) == {"result": 5}
            refused = await client.call_tool("ask_model", {"model": "nobody/x", "prompt": "hi"})
            assert refused.is_error
            assert (await client.call_tool("unheard_of", {})).is_error
            assert (await client.call_tool("convert_body", {"body": 5, "source": "x", "target": "y"})).is_error

    text = '[server]\nkeys = ["sesame"]\n[mcp]\nserve = true\n' + TOOLS
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:
        asyncio.run(session(gateway.url))
        requests = [
            line for line in gateway.log.lines if line["event"] == "request" and line["operation"] == "generate"
        ]
        assert requests[0]["key"] == "key-1", "asked with the key of the client"
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert send(gateway.url, "/mcp", body).status == 401
        assert send(gateway.url, "/mcp", method="GET").status == 405, "there are no sessions to listen to"


def test_a_key_with_one_slot_may_ask_a_model(dragoman_simulator: Simulator, tmp_path: Path) -> None:
    address = str(tmp_path / "gateway.db")
    create(address, key("one", concurrent=1))
    text = f'[server]\ndatabase = "{address}"\n[mcp]\nserve = true\n'
    question = {"name": "ask_model", "arguments": {"model": "anthropic/claude-sonnet-5", "prompt": "Say: yes"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": question}
    headers = {"authorization": "Bearer k-one", "accept": "application/json, text/event-stream"}
    with RunningGateway(simulated(dragoman_simulator.url, configured(text).config)) as gateway:
        got = send(gateway.url, "/mcp", body, headers)
        assert got.status == 200
        assert (got.json["result"].get("isError", False), got.json["result"]["content"][0]["text"]) == (False, "yes")


def _text(result: Any) -> str:
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


def test_the_mcp_server_is_off_by_default() -> None:
    with RunningGateway(configured("")) as gateway:
        assert send(gateway.url, "/mcp", {}).status == 404


ODD_ARGUMENTS = ('{"model":"p/m","prompt":"x","max_output_tokens":1e999}', '{"prompt":1}', '{"model":[],"prompt":{}}')


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS)
def test_invalid_arguments_are_an_error_of_the_call(arguments: str, caplog: pytest.LogCaptureFixture) -> None:
    call = f'{{"name":"ask_model","arguments":{arguments}}}'
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{call}}}'
    with RunningGateway(configured("[mcp]\nserve = true\n")) as gateway:
        got = send(gateway.url, "/mcp", body.encode(), {"accept": "application/json"})
    assert got.json["result"]["isError"] is True
    assert "raised" not in caplog.text


ODD_ANSWERS = {
    "no choices": (reply({**completion(), "choices": []}), ""),
    "parts": (
        reply({**completion(), "choices": [{"message": {"content": [{"type": "text", "text": "fine"}]}}]}),
        "fine",
    ),
    "text as an error": (reply({"error": "no"}, "400 Bad Request"), "no"),
    "a list of errors": (reply([{"error": {"message": "no"}}], "400 Bad Request"), "no"),
    "null as an error": (reply({"error": None}, "400 Bad Request"), ""),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_odd_answers_of_a_model_are_results_of_the_tool(name: str) -> None:
    """The key may be in the query, as for all endpoints."""
    answer, words = ODD_ANSWERS[name]
    asking = {"name": "ask_model", "arguments": {"model": "p/m", "prompt": "x"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asking}
    accepted = {"accept": "application/json, text/event-stream"}
    serving = '[server]\nkeys = ["a-long-key"]\n[mcp]\nserve = true\n'
    with scripted(answer) as upstream, RunningGateway(configured(serving + upstream.table("p"))) as gateway:
        got = send(gateway.url, "/mcp?key=a-long-key", message, accepted)
    result = got.json["result"]
    assert (result["content"][0]["text"], result["isError"]) == (words, "400" in str(answer.data[:20]))


@promise("gateway:limits")
def test_mcp_requests_reserve_no_budget(tmp_path: Path) -> None:
    """A reservation ends when the usage of its request is written. These requests have none, so it would never end."""
    address = str(tmp_path / "gateway.db")
    create(address, key("ada", budget=0.001))
    text = f'[server]\ndatabase = "{address}"\n[mcp]\nserve = true\n[prices."m"]\ninput = 1000\noutput = 1000\n'
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"x-api-key": "k-ada", "accept": "application/json, text/event-stream"}
    with scripted(reply(completion())) as upstream, RunningGateway(configured(text + upstream.table("p"))) as gateway:
        for _ in range(3):
            assert send(gateway.url, "/mcp", listing, headers).status == 200
        estimate = {**headers, "x-dragoman-estimate": "1"}
        assert send(gateway.url, "/v1/chat/completions", chat("p/m"), estimate).status == 200
        assert gateway.running is not None
        only = send(gateway.url, "/v1/chat/completions", chat("p/m"), headers)
        assert only.status == 200, "more than the budget, but the only running request of the key"


def test_servers_are_connected_to_concurrently() -> None:
    """Five servers that do not answer delay the start only by the time limit of one."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        dead = "".join(f'[mcp.servers.dead{number}]\nurl = "{url}"\n' for number in range(5))
        started = time.monotonic()
        with RunningGateway(configured(f"[mcp]\nconnect_seconds = 3\n{dead}")) as gateway:
            assert time.monotonic() - started < 12, "one after the other they take 15 seconds"
            failed = [line["server"] for line in gateway.log.lines if line["event"] == "mcp_server_failed"]
    assert sorted(failed) == [f"dead{number}" for number in range(5)]
