"""Passes over turns and settings, one at a time, against a profile made for the case."""

import re
from typing import Any

import pytest

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError
from dragoman.losses import LossLog, intermediate_paths
from dragoman.passes import turns
from dragoman.passes.pairing import pair_results
from dragoman.profile import Profile
from tests.support.formats import FORMATS
from tests.support.promises import promise

pytestmark = promise("law:3-legality")

USER, MODEL, SYSTEM = (ir.Message(role, role) for role in ("user", "assistant", "system"))
CALL = ir.ToolCall(id="call_1", name="look", arguments={})
CALLED = ir.Message("assistant", (CALL,))
ANSWERED = ir.Message("tool", (ir.ToolResult("call_1", "look", "text", "sunny"),))
LOOK = ir.ToolDefinition(name="look")


def profile(**flags: Any) -> Profile:
    return Profile(name="target", family="target", **flags)


def request_of(*messages: ir.Message, **settings: Any) -> ir.Request:
    return ir.Request("some-model", messages, **settings)


def entries(log: LossLog) -> list[tuple[str, str]]:
    return [(what, severity) for _, _, what, severity, _ in log.entries]


def test_system_text_in_the_middle_moves_to_the_front() -> None:
    log = LossLog()
    request = request_of(SYSTEM, USER, SYSTEM, MODEL)
    assert turns.hoist_system(request, profile(system="field"), log).messages == (SYSTEM, SYSTEM, USER, MODEL)
    assert entries(log) == [("place of a system message", "degraded")]
    assert turns.hoist_system(request, profile(), LossLog()) is request


@pytest.mark.parametrize(
    ("messages", "stays"),
    [
        ((USER, SYSTEM, MODEL), True),
        ((USER, SYSTEM), True),
        ((USER, SYSTEM, SYSTEM, MODEL), True),
        ((USER, CALLED, ANSWERED, SYSTEM, MODEL), True),
        ((USER, SYSTEM, USER), False),
        ((USER, MODEL, SYSTEM, USER), False),
        ((USER, MODEL, SYSTEM), False),
        ((USER, CALLED, SYSTEM, ANSWERED), False),
    ],
)
def test_system_text_stays_where_the_model_takes_it_inline(messages: tuple[ir.Message, ...], stays: bool) -> None:  # noqa: FBT001
    log = LossLog()
    target = profile(system="field", inline_system_models=re.compile("some-model"))
    placed = turns.hoist_system(request_of(*messages), target, log).messages
    assert (placed == messages) is stays
    assert bool(log) is not stays
    assert sorted(message.role for message in placed) == sorted(message.role for message in messages)


def test_blank_text_goes_where_the_api_refuses_it() -> None:
    log = LossLog()
    blank, empty = ir.Message("user", " \n"), ir.Message("user", (ir.Text(""), ir.Text("words")))
    request = request_of(blank, empty, MODEL)
    kept = turns.drop_blank_text(request, profile(blank_text=False), log)
    assert kept.messages == (ir.Message("user", (ir.Text("words"),)), MODEL)
    assert entries(log) == [("blank text", "dropped")]  # an empty text says nothing that could be lost
    assert turns.drop_blank_text(request, profile(), LossLog()).messages == request.messages


def test_adjacent_model_turns_become_one() -> None:
    request = request_of(USER, USER, MODEL, CALLED, ANSWERED, MODEL)
    merged = turns.merge_model_turns(request, profile(merge_model_turns=True), LossLog()).messages
    joined = ir.Message("assistant", (*MODEL.parts, CALL))
    assert merged == (USER, USER, joined, ANSWERED, MODEL)
    assert turns.merge_model_turns(request, profile(), LossLog()) is request


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(EncodeError, match="no message has content"):
        turns.ensure_turns(request_of(), profile(), LossLog())


def test_a_request_without_messages_left_is_refused_with_the_reason() -> None:
    """Clients that continue a stored conversation may send only the result of a call."""
    result = {"type": "function_call_output", "call_id": "c", "output": "x"}
    body = {"model": "m", "input": [result, result], "previous_response_id": "resp_1"}
    for target in FORMATS:
        if target != "openai-responses":
            with pytest.raises(EncodeError, match=r"no message has content: dropped result for .*, and 1 more"):
                dragoman.translate_request(body, source="openai-responses", target=target)


@pytest.mark.parametrize(("blank_text", "opening"), [(True, ""), (False, turns.CONTINUE)])
def test_a_history_that_opens_with_the_model_gets_a_user_turn(blank_text: bool, opening: str) -> None:  # noqa: FBT001
    log = LossLog()
    target = profile(first_turn_user=True, blank_text=blank_text)
    opened = turns.ensure_turns(request_of(SYSTEM, MODEL, USER), target, log)
    assert opened.messages == (SYSTEM, ir.Message("user", opening), MODEL, USER)
    assert entries(log) == [("a user turn before it", "invented")]
    assert log.entries[0][0] is MODEL


@pytest.mark.parametrize("messages", [(USER, MODEL, USER), (SYSTEM, USER)])
def test_a_history_that_opens_with_the_user_stays(messages: tuple[ir.Message, ...]) -> None:
    log = LossLog()
    assert turns.ensure_turns(request_of(*messages), profile(first_turn_user=True), log).messages == messages
    assert turns.ensure_turns(request_of(MODEL, USER), profile(), log).messages == (MODEL, USER)
    assert entries(log) == []


def test_system_text_alone_is_sent_as_a_user_turn_where_it_has_a_field() -> None:
    log = LossLog()
    first, last = ir.Message("system", "one"), ir.Message("system", "two")
    turned = turns.ensure_turns(request_of(first, last), profile(system="field"), log).messages
    assert turned == (first, ir.Message("user", "two"))
    assert entries(log) == [("role system", "degraded")]
    assert turns.ensure_turns(request_of(first), profile(), LossLog()).messages == (first,)


def test_a_final_assistant_turn_is_trimmed_or_followed() -> None:
    log = LossLog()
    spaced = ir.Message("assistant", "so far \n")
    trimmed = turns.ensure_turns(request_of(USER, spaced), profile(final_assistant="trimmed"), log).messages
    assert trimmed == (USER, ir.Message("assistant", (ir.Text("so far"),)))
    assert entries(log) == [("white space at the end", "degraded")]
    for messages in ((USER, MODEL), (USER, CALLED), (USER, ir.Message("assistant", ()))):
        assert turns.ensure_turns(request_of(*messages), profile(final_assistant="trimmed"), log).messages == messages
    assert turns.ensure_turns(request_of(USER, spaced), profile(), LossLog()).messages == (USER, spaced)
    refused = LossLog()
    target = profile(no_prefill_models=re.compile("some-model"))
    followed = turns.ensure_turns(request_of(USER, MODEL), target, refused).messages
    assert followed == (USER, MODEL, ir.Message("user", turns.CONTINUE))
    assert entries(refused) == [("beginning of an answer", "degraded"), ("a user turn after it", "invented")]


def test_called_tools_are_declared_and_switched_off() -> None:
    log = LossLog()
    target = profile(tools_with_calls=True)
    declared = turns.declare_called_tools(request_of(USER, CALLED, ANSWERED, CALLED), target, log)
    assert [tool.name for tool in declared.tools] == ["look"]
    assert declared.tool_choice == ir.ToolChoice("none")
    assert entries(log) == [("tool definitions", "invented")]
    for request, flags in (
        (request_of(USER, CALLED, ANSWERED, tools=(LOOK,)), {"tools_with_calls": True}),
        (request_of(USER), {"tools_with_calls": True}),
        (request_of(USER, CALLED, ANSWERED), {}),
    ):
        assert turns.declare_called_tools(request, profile(**flags), log) is request


def test_of_tools_with_one_name_the_first_counts() -> None:
    log = LossLog()
    other, hosted = ir.ToolDefinition(name="look", description="again"), ir.ProviderTool("look", "x", {"type": "look"})
    distinct = turns.distinct_tools(request_of(USER, tools=(LOOK, other, hosted)), profile(), log)
    assert distinct.tools == (LOOK, hosted)
    assert entries(log) == [("tool 'look'", "dropped")]
    request = request_of(USER, tools=(LOOK,))
    assert turns.distinct_tools(request, profile(), log) is request


@pytest.mark.parametrize(
    ("names", "kept", "missing"),
    [((), (), None), (("look",), ("look",), None), (("look", "gone"), ("look",), "gone"), (("gone",), None, "gone")],
)
def test_a_choice_names_declared_tools_only(
    names: tuple[str, ...], kept: tuple[str, ...] | None, missing: str | None
) -> None:
    log = LossLog()
    choice = turns.declared_choice(request_of(USER, tools=(LOOK,), tool_choice=ir.ToolChoice("required", names)), log)
    assert (None if choice is None else choice.names) == kept
    assert entries(log) == ([] if missing is None else [(f"choice of {missing}", "dropped")])


def test_settings_for_tools_are_dropped_without_tools() -> None:
    log = LossLog()
    request = request_of(USER, tool_choice=ir.ToolChoice("required"), parallel_tool_calls=False)
    legal = turns.legal_settings(request, profile(), log)
    assert (legal.tool_choice, legal.parallel_tool_calls) == (None, None)
    assert entries(log) == [("tool choice", "dropped")]
    silent = LossLog()
    assert (
        turns.legal_settings(request_of(USER, tool_choice=ir.ToolChoice("none")), profile(), silent).tool_choice is None
    )
    assert entries(silent) == []
    named = LossLog()
    turns.legal_settings(request_of(USER, tool_choice=ir.ToolChoice("auto", ("look",))), profile(), named)
    assert entries(named) == [("tool choice", "dropped")]
    kept = turns.legal_settings(
        request_of(USER, tools=(LOOK,), tool_choice=ir.ToolChoice("required"), parallel_tool_calls=False),
        profile(),
        silent,
    )
    assert (kept.tool_choice, kept.parallel_tool_calls) == (ir.ToolChoice("required"), False)


@pytest.mark.parametrize(("given", "kept"), [(None, None), (1, 1), (3, 3), (0, None), (-1, None)])
def test_every_api_gives_at_least_one_answer(given: int | None, kept: int | None) -> None:
    log = LossLog()
    assert turns.legal_settings(request_of(USER, candidates=given), profile(), log).candidates == kept
    assert bool(log) is (given != kept)


def test_stop_sequences_obey_the_target() -> None:
    log = LossLog()
    request = request_of(USER, stop=("a", " ", "b", "c"))
    assert turns.legal_settings(request, profile(), log).stop == request.stop
    assert turns.legal_settings(request, profile(stop_limit=4), log).stop == request.stop
    assert entries(log) == []
    assert turns.legal_settings(request, profile(blank_stop=False, stop_limit=2), log).stop == ("a", "b")
    assert entries(log) == [("blank stop sequence", "dropped"), ("1 of 3 stop sequences", "dropped")]


def test_a_stop_sequence_that_is_not_blank_is_not_a_loss() -> None:
    log = LossLog()
    assert turns.legal_settings(request_of(USER, stop=("a",)), profile(blank_stop=False), log).stop == ("a",)
    assert entries(log) == []


def path_of(new: ir.Message, request: ir.Request, log: LossLog) -> str:
    """Where a later loss of a message that a pass made points to."""
    log.drop(new, "name", "name", "a test")
    return log.resolve(request, intermediate_paths)[-1].path


def test_losses_of_a_message_that_a_pass_replaced_point_to_the_original() -> None:
    log, request = LossLog(), request_of(ir.Message("system", "one"), ir.Message("system", "two"))
    turned = turns.ensure_turns(request, profile(system="field"), log).messages[1]
    assert path_of(turned, request, log) == "$.messages[1].name"
    log, request = LossLog(), request_of(USER, MODEL, CALLED)
    joined = turns.merge_model_turns(request, profile(merge_model_turns=True), log).messages[1]
    assert path_of(joined, request, log) == "$.messages[1].name"
    log, request = LossLog(), request_of(USER, ir.Message("assistant", "so far "))
    trimmed = turns.ensure_turns(request, profile(final_assistant="trimmed"), log).messages[1]
    assert path_of(trimmed, request, log) == "$.messages[1].name"
    log, request = LossLog(), request_of(USER, ir.Message("user", (ir.Text(" "), ir.Text("words"))))
    kept = turns.drop_blank_text(request, profile(blank_text=False), log).messages[1]
    assert path_of(kept, request, log) == "$.messages[1].name"
    log, request = LossLog(), request_of(USER, CALLED, MODEL)
    paired = pair_results(request, profile(), log).messages[1]
    assert path_of(paired, request, log) == "$.messages[1].name"
