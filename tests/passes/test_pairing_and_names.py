"""Passes that pair results with calls, give aliases, and restore what a client declared; one at a time."""

import re
from typing import Any

import pytest

from dragoman import ir
from dragoman.losses import LossLog
from dragoman.passes.answers import RestoredEvents, legalise_answer
from dragoman.passes.names import alias_names, name_alias
from dragoman.passes.pairing import NO_RESULT, pair_results
from dragoman.profile import Profile
from tests.support.promises import promise

USER = ir.Message("user", "hi")


def profile(**flags: Any) -> Profile:
    return Profile(name="target", family="target", **flags)


def call(id: str, name: str = "look") -> ir.ToolCall:
    return ir.ToolCall(id=id, name=name, arguments={})


def result(id: str, value: str = "sunny", name: str = "look") -> ir.ToolResult:
    return ir.ToolResult(tool_call_id=id, name=name, kind="text", value=value)


def assistant(*parts: ir.AnyPart) -> ir.Message:
    return ir.Message("assistant", parts)


def answered(*results: ir.ToolResult) -> ir.Message:
    return ir.Message("tool", results)


def paired(*messages: ir.Message, **flags: Any) -> tuple[tuple[ir.Message, ...], list[tuple[str, str]]]:
    log = LossLog()
    request = pair_results(ir.Request("m", messages), profile(**flags), log)
    again = LossLog()
    assert pair_results(request, profile(**flags), again).messages == request.messages
    assert again.entries == []
    return request.messages, [(what, severity) for _, _, what, severity, _ in log.entries]


@promise("law:8-pairs-hold")
def test_results_follow_their_calls_in_call_order() -> None:
    one, two = call("a"), call("b")
    messages, losses = paired(USER, assistant(one, two), answered(result("b")), USER, answered(result("a")))
    assert messages == (USER, assistant(one, two), answered(result("a"), result("b")), USER)
    assert losses == [("place of a result", "degraded")]


@promise("law:8-pairs-hold")
def test_what_cannot_be_paired_is_repaired_and_reported() -> None:
    messages, losses = paired(USER, assistant(call("a"), call("b")), answered(result("a"), result("gone")))
    missing = ir.ToolResult("b", "look", "error", NO_RESULT)
    assert messages == (USER, assistant(call("a"), call("b")), answered(result("a"), missing))
    assert losses == [("result of call 'b'", "invented"), ("result for 'gone'", "dropped")]


@promise("law:8-pairs-hold")
def test_of_two_results_the_last_counts() -> None:
    messages, losses = paired(USER, assistant(call("a")), answered(result("a", "one"), result("a", "two")))
    assert messages == (USER, assistant(call("a")), answered(result("a", "two")))
    assert losses == [("earlier result of the same call", "dropped")]


@promise("law:8-pairs-hold")
def test_calls_that_share_an_id_get_their_results_in_order_and_ids_of_their_own() -> None:
    (_, turn, results), losses = paired(
        USER, assistant(call("a"), call("a")), answered(result("a", "1"), result("a", "2"))
    )
    ids = [one.id for one in turn.tool_calls]
    assert ids[0] == "a"
    assert re.fullmatch("call_[0-9a-f]{24}", ids[1])
    assert [(one.tool_call_id, one.value) for one in results.tool_results] == [("a", "1"), (ids[1], "2")]
    assert losses == []


@promise("law:8-pairs-hold")
def test_a_result_belongs_to_the_nearest_call_before_it() -> None:
    first, second = assistant(call("a")), assistant(call("a"))
    messages, losses = paired(USER, first, answered(result("a", "1")), USER, second, answered(result("a", "2")))
    assert [one.value for message in messages for one in message.tool_results] == ["1", "2"]
    assert losses == []
    early, losses = paired(USER, answered(result("a")), assistant(call("a")))
    assert [one.kind for message in early for one in message.tool_results] == ["error"]
    assert losses == [("result for 'a'", "dropped"), ("result of call 'a'", "invented")]


@promise("law:8-pairs-hold")
def test_calls_of_adjacent_turns_are_one_step() -> None:
    messages, _ = paired(USER, assistant(call("a")), assistant(call("b")), answered(result("a"), result("b")))
    assert messages == (USER, assistant(call("a"), call("b")), answered(result("a"), result("b")))
    apart, _ = paired(USER, assistant(ir.Text("so")), assistant(call("a")), answered(result("a")))
    assert apart == (USER, assistant(ir.Text("so")), assistant(call("a")), answered(result("a")))


@promise("law:8-pairs-hold")
def test_an_id_that_the_target_refuses_gets_the_same_alias_on_call_and_result() -> None:
    pattern = re.compile("[0-9a-zA-Z]{9}")
    (_, turn, results), losses = paired(
        USER, assistant(ir.Text("so"), call("A!")), answered(result("A!")), call_id=pattern, call_id_length=9
    )
    (alias,) = [one.id for one in turn.tool_calls]
    assert len(alias) == 9
    assert results.tool_results == (result(alias),)
    assert turn.parts[0] == ir.Text("so")
    assert losses == []


@promise("law:8-pairs-hold")
def test_a_result_takes_the_name_of_its_call() -> None:
    messages, _ = paired(USER, assistant(call("a", "look")), answered(result("a", name="other")))
    assert messages[2] == answered(result("a", name="look"))


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("law:3-legality")
def test_a_name_gets_one_alias_everywhere() -> None:
    odd, log = "näme with spaces", LossLog()
    alias = name_alias(odd, profile())
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", alias)
    tools = (ir.ToolDefinition(name=odd), ir.ToolDefinition(name="look"), ir.ProviderTool(odd, "x", {"type": "x"}))
    messages = (USER, assistant(call("a", odd), call("b")), answered(result("a", name=odd), result("b")))
    choice = ir.ToolChoice("required", (odd, "look"))
    legal = alias_names(ir.Request("m", messages, tools=tools, tool_choice=choice), profile(), log)
    assert [tool.name for tool in legal.tools] == [alias, "look", odd]
    assert legal.tool_choice == ir.ToolChoice("required", (alias, "look"))
    assert legal.messages[0] is USER
    assert [one.name for one in legal.messages[1].tool_calls] == [alias, "look"]
    assert [one.name for one in legal.messages[2].tool_results] == [alias, "look"]
    assert [(field, severity) for _, field, _, severity, _ in log.entries] == [("name", "degraded")]


@promise("law:4-determinism")
@pytest.mark.parametrize("name", ["1st", "-x", "", "ü", "a.b", "x" * 80])
def test_aliases_are_legal_and_distinct(name: str) -> None:
    alias = name_alias(name, profile())
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]{1,63}", alias) or alias == name
    assert alias == name_alias(name, profile())
    assert alias != name_alias(f"{name}.", profile())


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────

TOOLS = (ir.CustomTool(name="shell"), ir.ToolDefinition(name="näme"))
CLIENT = ir.Request("m", (USER,), tools=TOOLS)
SHELL = ir.ToolCall(id="a", name="shell", arguments={"input": "ls"})
ALIASED = ir.ToolCall(id="b", name=name_alias("näme", profile()), arguments={})


@promise("law:6-owed-back")
def test_an_answer_has_names_and_kinds_as_the_client_declared_them() -> None:
    answer = assistant(ir.Text("so"), SHELL, ALIASED, call("c", "unknown"))
    completion = ir.Completion((answer,), finish=ir.Finish("tool_calls"))
    (message,) = legalise_answer(completion, profile(), CLIENT, LossLog()).messages
    text, shell, named, unknown = message.parts
    assert text == ir.Text("so")
    assert isinstance(shell, ir.ToolCall)
    assert (shell.custom, shell.arguments_text) == (True, "ls")
    assert isinstance(named, ir.ToolCall)
    assert named.name == "näme"
    assert unknown == call("c", "unknown")
    assert legalise_answer(completion, profile(), None, LossLog()) is completion


@promise("law:6-owed-back")
@pytest.mark.parametrize("arguments", [{"input": 1}, {"input": "ls", "more": 1}, {}])
def test_a_call_that_is_not_one_text_stays_a_function(arguments: dict[str, Any]) -> None:
    completion = ir.Completion((assistant(ir.ToolCall(id="a", name="shell", arguments=arguments)),))
    (message,) = legalise_answer(completion, profile(), CLIENT, LossLog()).messages
    assert not message.tool_calls[0].custom


@promise("law:6-owed-back")
def test_a_streamed_custom_call_waits_until_it_is_whole() -> None:
    restore = RestoredEvents(CLIENT)
    start = ir.PartStart(0, ir.ToolCall(id="a", name="shell", arguments={}))
    assert restore([start, ir.PartDelta(0, '{"input":'), ir.PartDelta(0, '"ls"}')]) == []
    opened, text, end = restore([ir.PartEnd(0)])
    assert isinstance(opened, ir.PartStart)
    assert isinstance(opened.part, ir.ToolCall)
    assert opened.part.custom
    assert (text, end) == (ir.PartDelta(0, "ls"), ir.PartEnd(0))


@promise("law:6-owed-back")
def test_a_streamed_custom_call_that_is_cut_stays_a_function() -> None:
    restore = RestoredEvents(CLIENT)
    start = ir.PartStart(0, ir.ToolCall(id="a", name="shell", arguments={}))
    finished = ir.Finished(ir.Finish("length"))
    events = restore([start, ir.PartDelta(0, '{"input":"l'), finished])
    assert events == [start, ir.PartDelta(0, '{"input":"l'), ir.PartEnd(0, incomplete=True), finished]


@promise("law:6-owed-back")
def test_other_events_of_a_stream_pass_as_they_are() -> None:
    restore = RestoredEvents(CLIENT)
    text: list[ir.AnyEvent] = [ir.PartStart(1, ir.Text("")), ir.PartDelta(1, "hi"), ir.PartEnd(1)]
    assert restore(list(text)) == text
    (named,) = restore([ir.PartStart(2, ALIASED)])
    assert isinstance(named, ir.PartStart)
    assert isinstance(named.part, ir.ToolCall)
    assert named.part.name == "näme"
    assert restore([ir.PartDelta(2, "{}"), ir.PartEnd(2)]) == [ir.PartDelta(2, "{}"), ir.PartEnd(2)]
