"""Who may call what."""

from typing import Any

import pytest

from dragoman.agent import Allow, Ask, Deny, PermissionRequest, Rule, Rules, tool
from dragoman.drivers import Scripted
from dragoman.ir import ToolCall
from tests.support.agents import agent_of, final, result, results_in, run_events, step
from tests.support.promises import promise

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    RAN.clear()


@tool
def write(path: str) -> str:
    """Write."""
    RAN.append(path)
    return "written"


@tool(read_only=True)
def read(path: str) -> str:
    """Read."""
    return f"content of {path}"


CALLS = [("write", {"path": "a"}), ("read", {"path": "b"}), ("write", {"path": "c"})]
STARTS = [*step(1, "call_1", "write", {"path": "a"}), *step(2, "call_2", "read", {"path": "b"})]
REFUSED = "write was not permitted: {}; it did not run"


def story(**options: Any) -> Any:
    agent = agent_of([Scripted(calls=CALLS), "Done."], tools=[write, read], **options)
    return agent, run_events(agent)


@promise("agent:permission")
def test_denied_calls_are_error_results_and_the_run_goes_on() -> None:
    def decide(request: PermissionRequest) -> Allow | Deny:
        return Deny("not here") if request.arguments["path"] == "a" else Allow()

    _, events = story(permissions=decide)
    assert events == [
        *STARTS,
        *step(3, "call_3", "write", {"path": "c"}),
        *result("call_1", "write", REFUSED.format("not here"), error=True),
        *result("call_2", "read", "content of b"),
        *result("call_3", "write", "written"),
        *final("Done."),
    ]
    assert RAN == ["c"]


@promise("agent:permission", "agent:no-open-calls", "agent:only-final")
def test_denied_so_that_the_run_stops() -> None:
    async def decide(request: PermissionRequest) -> Allow | Deny:
        return Deny("enough", stop=True) if request.tool.read_only else Allow()

    agent, events = story(permissions=decide)
    assert events == [
        *STARTS,
        *result("call_1", "write", "written"),
        *result("call_2", "read", "read was not permitted: enough; it did not run", error=True),
        *final("Stopped: read was not permitted (enough)."),
    ]
    assert RAN == ["a"]
    assert results_in(agent.history)[2] == ("call_3", "error", "This call was not run: the run was stopped.")


@promise("agent:permission")
def test_the_user_decides_about_each_call() -> None:
    requests = []

    async def ask(request: PermissionRequest) -> bool:
        requests.append(request.call.name)
        return bool(request.arguments["path"] == "c")

    _, events = story(permissions=lambda _: Ask(), ask=ask)
    assert requests == ["write", "read", "write"]
    assert RAN == ["c"]
    assert events[6]["result"] == REFUSED.format("the user declined")


@promise("agent:permission-nobody")
def test_without_a_user_to_ask_permission_is_denied() -> None:
    _, events = story(permissions=Rules())
    assert RAN == []
    assert events[6]["result"] == REFUSED.format("it needs approval, and there is no user to ask")
    assert events[8]["result"] == "content of b"


@promise("agent:permission-nobody")
@pytest.mark.parametrize("part", ["permissions", "ask"])
def test_a_check_that_fails_is_an_error_result(part: str) -> None:
    def broken(_: PermissionRequest) -> Any:
        raise OSError("no terminal")

    options: dict[str, Any] = {"permissions": lambda _: Ask()} | {part: broken}
    _, events = story(**options)
    assert RAN == []
    assert events[6]["result"] == REFUSED.format("the permission check failed: OSError: no terminal")
    assert events[-1] == {"type": "final", "content": "Done."}


@promise("agent:permission-nobody")
def test_an_invalid_decision_is_not_a_permission() -> None:
    _, events = story(permissions=lambda _: "yes")
    assert RAN == []
    assert "must return a decision, not str" in events[6]["result"]


@promise("agent:permission")
def test_no_permission_is_asked_for_a_call_that_cannot_run() -> None:
    requests: list[PermissionRequest] = []
    agent = agent_of([Scripted(calls=[("write", {}), ("nope", {})]), "."], tools=[write], permissions=requests.append)
    run_events(agent)
    assert requests == []


def request(name: str, path: str = "a", *, read_only: bool = False) -> PermissionRequest:
    one = read if read_only else write
    return PermissionRequest(ToolCall("c", name, {"path": path}), one, {"path": path})


ROWS: list[tuple[Rules, PermissionRequest, type]] = [
    (Rules(deny=["write"], allow=["*"], ask=["*"]), request("write"), Deny),
    (Rules(allow=["wr*"], ask=["*"]), request("write"), Allow),
    (Rules(ask=["read"]), request("read", read_only=True), Ask),
    (Rules(), request("read", read_only=True), Allow),
    (Rules(allow_read_only=False), request("read", read_only=True), Ask),
    (Rules(deny=["read"]), request("read", read_only=True), Deny),
    (Rules(), request("write"), Ask),
    (Rules(otherwise="deny"), request("write"), Deny),
    (Rules(otherwise="allow"), request("write"), Allow),
    (
        Rules(deny=[Rule("write", lambda given: given["path"] == "/etc/x")], allow=["*"]),
        request("write", "/etc/x"),
        Deny,
    ),
    (Rules(deny=[Rule("write", lambda given: given["path"] == "/etc/x")], allow=["*"]), request("write"), Allow),
]


@promise("agent:permission-rules")
@pytest.mark.parametrize(("rules", "permission", "decision"), ROWS)
def test_deny_before_allow_before_ask(rules: Rules, permission: PermissionRequest, decision: type) -> None:
    assert isinstance(rules(permission), decision)
