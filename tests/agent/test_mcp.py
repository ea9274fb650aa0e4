"""MCP servers as sources of tools: a real server of the official SDK, over stdio and over HTTP."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import mcp_types
import pytest

from dragoman.agent import Agent, Rules
from dragoman.agent.mcp import HttpServer, McpFailed, McpServers, StdioServer, output_of, read_servers, tool_names
from dragoman.agent.tools import NAME
from dragoman.drivers import Scripted, ScriptedDriver
from dragoman.errors import NotConfigured
from dragoman.installation import install_command
from dragoman.ir import Audio, Document, Image, Text
from tests.support.agents import CLOCK, Story, final, result, results_in, run, step, story_of, types
from tests.support.promises import promise
from tests.support.waiting import PATIENCE

SERVER = Path(__file__).parent / "fixtures" / "mcp_server.py"
STDIO = StdioServer(command=sys.executable, args=[str(SERVER)], env={"MCP_TEST": "yes"})


LEGACY = StdioServer(command=sys.executable, args=[str(SERVER)], env={"PYTHONWARNINGS": "ignore"}, protocol="legacy")


async def run_with(servers: McpServers, *calls: tuple[str, dict[str, Any]], **options: Any) -> tuple[Agent, Story]:
    script: list[Any] = [*(Scripted(calls=[call]) for call in calls), "Done."]
    agent = Agent(ScriptedDriver(script), tools=servers.tools(), clock=CLOCK, **options)
    return agent, await story_of(agent.run_stream("Go"))


@promise("agent:mcp", "agent:mcp-results", "agent:mcp-failures")
def test_a_server_over_stdio(tmp_path: Path) -> None:
    async def session() -> None:
        address = StdioServer(command=STDIO.command, args=STDIO.args, env=STDIO.env, cwd=str(tmp_path))
        async with McpServers({"tests": address}, timeout=3) as servers:
            tools = {tool.name: tool for tool in servers.tools()}
            assert tools["add"].definition.description == "Add two numbers."
            assert (tools["add"].title, tools["add"].read_only) == ("Addition", True)
            assert (tools["weather_now"].title, tools["weather_now"].read_only) == (None, False)
            agent, story = await run_with(
                servers,
                ("add", {"a": 2, "b": 3}),
                ("greet", {"name": "Ada"}),
                ("weather_now", {"city": "Rome"}),
                ("draw", {}),
                ("resources", {}),
                ("fail", {"reason": "no luck"}),
                ("add", {"a": "two"}),
                ("where", {}),
                ("hang", {}),
                ("die", {}),
            )
        assert results_in(agent.history)[:6] == [
            ("call_1", "data", {"result": 5}),
            ("call_2", "text", "Hello, Ada!"),
            ("call_3", "data", {"city": "Rome", "degrees": 18.5}),
            ("call_4", "multimodal", (Text("Here:"), Image("image/png", "aGk="))),
            ("call_5", "multimodal", EVERYTHING),
            ("call_6", "error", "Error executing tool fail: no luck"),
        ]
        kinds = [(kind, str(value)) for _, kind, value in results_in(agent.history)[6:]]
        assert "$.a: expected integer, got string" in kinds[0][1]
        assert kinds[1][0] == "data"
        assert results_in(agent.history)[7][2]["variable"] == "yes"
        assert results_in(agent.history)[7][2]["folder"] == str(tmp_path)
        assert kinds[2] == ("error", "MCP server 'tests' gave no answer within 3 seconds")
        assert kinds[3][0] == "error"
        assert "MCP server 'tests'" in kinds[3][1]
        assert story[-1:] == final("Done.")
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    run(session())


EVERYTHING = (
    Text("first"),
    Text("second"),
    Document("application/pdf", "cGRm", title="file:///a.pdf"),
    Image("image/png", "cG5n"),
    Audio("audio/mpeg", "bXAz"),
    Text("[resource file:///b.txt] b another file"),
)


@promise("agent:mcp")
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer key"}])
def test_a_server_over_http(mcp_server_url: str, headers: dict[str, str]) -> None:
    async def session() -> None:
        async with McpServers({"tests": HttpServer(url=mcp_server_url, headers=headers)}) as servers:
            _, story = await run_with(servers, ("greet", {"name": "Bo"}), permissions=Rules(allow=["greet"]))
        assert story == [
            *step(1, "call_1", "greet", {"name": "Bo"}),
            *result("call_1", "greet", "Hello, Bo!"),
            *final("Done."),
        ]
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    run(session())


@promise("agent:mcp-failures")
@pytest.mark.parametrize(
    ("address", "words"),
    [
        (StdioServer(command="no-such-program-anywhere"), "the command 'no-such-program-anywhere' was not found"),
        (StdioServer(command=sys.executable, args=["-c", "pass"]), "cannot be reached"),
        (
            StdioServer(command=sys.executable, args=["-c", "import time; time.sleep(60)"]),
            "gave no answer in 2 seconds",
        ),
        (HttpServer(url="http://127.0.0.1:9/mcp"), "cannot be reached"),
    ],
)
def test_an_unreachable_server_is_reported_at_once(address: Any, words: str) -> None:
    async def session() -> None:
        with pytest.raises(McpFailed, match=words):
            # Short only where nothing answers: on a busy machine the others take longer to fail.
            async with McpServers({"broken": address}, connect_timeout=2 if "2 seconds" in words else PATIENCE):
                pass
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []

    run(session())


@promise("agent:mcp-failures")
def test_without_the_sdk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    async def session() -> None:
        async with McpServers({}) as none:  # no servers, no need
            assert none.tools() == []
        with pytest.raises(NotConfigured, match=re.escape(install_command("mcp"))):
            async with McpServers({"tests": STDIO}):
                pass

    run(session())


@promise("agent:mcp-failures")
def test_a_run_that_is_cancelled_during_a_call_leaves_the_server_usable() -> None:
    async def session() -> None:
        async with McpServers({"tests": STDIO}) as servers:
            agent = Agent(
                ScriptedDriver([Scripted(calls=[("hang", {})]), Scripted(calls=[("add", {"a": 1})]), "Two."]),
                tools=servers.tools(),
            )
            asyncio.get_running_loop().call_later(0.2, agent.cancel)
            assert types(await story_of(agent.run_stream("Go")))[-1] == "step_complete"
            assert (await agent.run("Again")).text == "Two."
            assert results_in(agent.history)[1] == ("call_2", "data", {"result": 2})

    run(session())


@promise("agent:mcp")
def test_names_stay_within_the_rule_and_clashes_are_resolved() -> None:
    long = "x" * 70
    offered = [
        ("git", "status"),
        ("files", "read"),
        ("notes", "read"),
        ("notes", "read.all"),
        ("notes", "read/all"),
        ("übung", "hören"),
        ("a", long),
        ("b", long),
        ("a", "auto"),
        ("a", "mine"),
    ]
    names = tool_names(offered, taken=["mine"])
    assert names[:6] == ["status", "files__read", "notes__read", "notes__read_all", names[4], "h_ren"]
    assert names[8:] == ["a__auto", "a__mine"]
    assert len(set(names)) == len(names)
    assert all(NAME.fullmatch(name) for name in names)
    assert tool_names(offered, taken=["mine"]) == names  # the same every time


@promise("agent:mcp-results")
@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ({"content": []}, "text", ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "text", "a\nb"),
        ({"content": [{"type": "text", "text": "a"}], "structuredContent": {"result": "a"}}, "text", "a"),
        ({"content": [{"type": "text", "text": "[1]"}], "structuredContent": {"result": [1]}}, "data", {"result": [1]}),
        ({"content": [], "structuredContent": {"a": 1}}, "data", {"a": 1}),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, "error", "no"),
    ],
)
def test_results_keep_their_kind(given: dict[str, Any], kind: str, value: Any) -> None:
    output = output_of(mcp_types.CallToolResult.model_validate(given))
    assert (output.kind, output.value, output.parts) == (kind, value, ())


@promise("agent:mcp-results")
def test_an_error_with_a_picture_is_an_error_with_parts() -> None:
    given = {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}], "isError": True}
    output = output_of(mcp_types.CallToolResult.model_validate(given))
    assert (output.kind, output.parts) == ("error", (Image("image/png", "aGk="),))


@promise("agent:mcp-json")
def test_the_usual_shape_of_mcp_json(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        """{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server", "${HOME}"],
                      "env": {"KEY": "${KEY:-none}"}, "cwd": "/srv"},
            "web": {"type": "http", "url": "https://mcp.example/mcp",
                    "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
            "off": {"command": "x", "disabled": true}
        }}"""
    )
    assert read_servers(path, {"HOME": "/home/ada", "TOKEN": "t"}) == {
        "files": StdioServer(command="npx", args=("-y", "server", "/home/ada"), env={"KEY": "none"}, cwd="/srv"),
        "web": HttpServer(url="https://mcp.example/mcp", headers={"Authorization": "Bearer t"}),
    }
    assert read_servers({"servers": {"a": {"command": "b"}}}) == {"a": StdioServer(command="b")}


@promise("agent:mcp-json")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, 'expected {"mcpServers": {...}}'),
        ({"mcpServers": {"a": []}}, "'a': expected an object, got list"),
        ({"mcpServers": {"a": {}}}, "'a': expected a command or a url"),
        ({"mcpServers": {"a": {"type": "sse", "url": "x"}}}, "no longer supported"),
    ],
)
def test_an_invalid_mcp_json_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r"server|expected") as caught:
        read_servers(given)
    assert words in str(caught.value)


@promise("agent:mcp-requests")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_servers_ask_for_a_model_and_for_the_user(transport: str, request: pytest.FixtureRequest) -> None:
    address: StdioServer | HttpServer = LEGACY
    if transport == "http":
        address = HttpServer(url=request.getfixturevalue("mcp_server_url"), protocol="legacy")

    async def elicit(message: str, schema: Any) -> dict[str, Any] | None:
        assert message == "How many seats?"
        assert "seats" in schema["properties"]
        return {"seats": 3}

    async def session() -> None:
        model = ScriptedDriver(["Yes."], name="scripted/model")
        async with McpServers({"tests": address}, sampling=model, elicit=elicit) as servers:
            agent, _ = await run_with(servers, ("ask_model", {"question": "Is it?"}), ("book", {}))
        assert [value for _, _, value in results_in(agent.history)] == ["scripted/model says Yes.", "accept 3"]
        assert model.requests[0].messages[0].text == "Be brief."
        assert model.requests[0].max_output_tokens == 50

    run(session())


@promise("agent:mcp-requests")
def test_without_them_servers_are_refused_and_a_user_may_decline() -> None:
    async def session() -> None:
        async with McpServers({"tests": LEGACY}) as servers:
            agent, _ = await run_with(servers, ("ask_model", {"question": "Is it?"}), ("book", {}))
            assert [kind for _, kind, _ in results_in(agent.history)] == ["error", "error"]
        async with McpServers({"tests": LEGACY}, elicit=lambda _message, _schema: None) as servers:
            agent, _ = await run_with(servers, ("book", {}))
            assert results_in(agent.history)[0][2] == "decline"
        async with McpServers({"tests": LEGACY}, elicit=lambda _message, _schema: {"seats": "many"}) as servers:
            agent, _ = await run_with(servers, ("book", {}))
            assert results_in(agent.history)[0][1] == "error"

    run(session())


@promise("agent:mcp-resources")
def test_resources_and_prompts() -> None:
    async def session() -> None:
        async with McpServers({"tests": STDIO}) as servers:
            (one,) = await servers.resources()
            assert (one.server, one.uri, one.name, one.media_type) == ("tests", "notes://today", "today", "text/plain")
            assert await servers.read_resource("tests", one.uri) == (Text("Buy milk."),)
            (prompt,) = await servers.prompts()
            assert (prompt.name, prompt.arguments) == ("greeting", ("name",))
            (message,) = await servers.prompt("tests", "greeting", name="Ada")
            assert (message.role, message.text) == ("user", "Greet Ada.")
            with pytest.raises(McpFailed, match="no MCP server is named 'other'"):
                await servers.read_resource("other", one.uri)
            with pytest.raises(McpFailed, match="tests"):
                await servers.read_resource("tests", "notes://never")

    run(session())


@promise("agent:mcp-reconnect")
def test_a_server_that_died_is_started_again_at_the_next_call() -> None:
    async def session() -> None:
        async with McpServers({"tests": STDIO}, timeout=5) as servers:
            agent, _ = await run_with(servers, ("add", {"a": 1}), ("die", {}), ("add", {"a": 2}))
            assert [kind for _, kind, _ in results_in(agent.history)] == ["data", "error", "data"]

    run(session())


# ── the protocol of 2026: what a server needs comes with the result of the call ───────────────────────────────

MODERN = ["stdio", "http"]


def _modern(transport: str, request: pytest.FixtureRequest) -> Any:
    return HttpServer(url=request.getfixturevalue("mcp_server_url")) if transport == "http" else STDIO


@promise("agent:mcp-requests")
@pytest.mark.parametrize("transport", MODERN)
def test_forms_and_models_in_the_protocol_of_2026(transport: str, request: pytest.FixtureRequest) -> None:
    address = _modern(transport, request)
    received: list[Any] = []

    async def elicit(message: str, schema: Any) -> dict[str, Any] | None:
        received.append((message, sorted(schema["properties"])))
        return {"seats": 3}

    async def session() -> None:
        model = ScriptedDriver(["Yes."], name="scripted/model")
        async with McpServers({"tests": address}, sampling=model, elicit=elicit) as servers:
            agent, _ = await run_with(servers, ("order", {}))
        assert results_in(agent.history)[0][2] == "3 seats, says the model: Yes."
        assert received == [("How many seats?", ["seats"])]
        assert model.requests[0].messages[0].text == "Be brief."

    run(session())


@promise("agent:mcp-requests")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "error"),
        ({"sampling": ScriptedDriver(lambda _: "Yes.")}, "error"),
        ({"sampling": ScriptedDriver(lambda _: "Yes."), "elicit": lambda _message, _schema: None}, "error"),
        ({"sampling": ScriptedDriver(lambda _: "Yes."), "elicit": lambda _message, _schema: {"seats": "x"}}, "error"),
    ],
    ids=["neither", "no user", "declined", "does not fit"],
)
def test_what_is_refused_in_the_protocol_of_2026_is_an_error_of_the_call(options: Any, words: str) -> None:
    async def session() -> None:
        async with McpServers({"tests": STDIO}, **options) as servers:
            agent, _ = await run_with(servers, ("order", {}), ("add", {"a": 1}))
        assert [kind for _, kind, _ in results_in(agent.history)] == [words, "data"]

    run(session())


@promise("agent:mcp-requests")
@pytest.mark.parametrize(("agreed", "action"), [(True, "accept"), (False, "decline"), (None, "cancel")])
def test_users_are_sent_to_addresses_of_servers(*, agreed: bool | None, action: str) -> None:
    """With the result of the call (2026), by a request in between (2025), and by an error that wants it first."""
    shown: list[tuple[str, str]] = []

    def open_url(message: str, url: str) -> bool | None:
        shown.append((message, url))
        return agreed

    async def session() -> None:
        async with McpServers({"tests": STDIO}, open_url=open_url) as servers:
            agent, _ = await run_with(servers, ("log_in", {}), ("log_in", {"url": "file:///etc/passwd"}), ("files", {}))
        first, other, needed = results_in(agent.history)
        assert first[2] == f"login: {action}"
        assert other[2] == "login: decline"
        assert needed[1] == "error"
        assert ("call again" in needed[2]) is (agreed is True)
        assert "https://example.com/grant" in needed[2]
        async with McpServers({"tests": LEGACY}, open_url=open_url) as servers:
            agent, _ = await run_with(servers, ("log_in_before", {}))
        assert results_in(agent.history)[0][2] == f"login: {action}"

    run(session())
    assert shown == [
        ("Please log in.", "https://example.com/login"),
        ("Grant access.", "https://example.com/grant"),
        ("Please log in.", "https://example.com/login"),
    ]


@promise("agent:mcp-requests")
def test_without_a_way_to_open_addresses_they_are_declined() -> None:
    async def session() -> None:
        async with McpServers({"tests": STDIO}, elicit=lambda _message, _schema: {}) as servers:
            agent, _ = await run_with(servers, ("log_in", {}), ("files", {}))
        assert [value for _, _, value in results_in(agent.history)] == [
            "login: decline",
            "MCP server 'tests' needs the user to go to https://example.com/grant, which the user did not do",
        ]

    run(session())
