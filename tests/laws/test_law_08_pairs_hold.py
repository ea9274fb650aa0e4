"""Law 8. Results follow calls, in order, in the right turn; repairs are reported and idempotent."""

from hypothesis import given

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.errors import EncodeError
from dragoman.losses import LossLog, intermediate_paths
from dragoman.passes.legalise import legalise
from dragoman.passes.pairing import NO_RESULT
from tests import strategies
from tests.support.cases import each
from tests.support.formats import CROSSINGS, FORMATS
from tests.support.promises import promise

pytestmark = promise("law:8-pairs-hold")


def assert_paired(messages: tuple[ir.Message, ...]) -> None:
    """Every call is answered by the messages right behind it, once, in order, by its own name; nothing else is."""
    waiting: list[ir.ToolCall] = []
    seen: set[str] = set()
    for message in messages:
        for result in message.tool_results:
            assert waiting, f"no call for {result}"
            call = waiting.pop(0)
            assert (result.tool_call_id, result.name) == (call.id, call.name)
        if message.role != "tool":
            assert not waiting, f"no result for {waiting}"
        for call in message.tool_calls:
            assert call.id not in seen, f"id {call.id} twice"
            seen.add(call.id)
            waiting.append(call)
    assert not waiting


@given(request=strategies.ANY_REQUESTS)
@each("target", FORMATS)
def test_what_the_target_reads_is_paired(target: str, request: ir.Request) -> None:
    try:
        body = dragoman.encode_request(request, target).json()
    except EncodeError:
        return
    assert_paired(dragoman.decode_request(body, target).messages)


@given(request=strategies.REQUESTS)
@each(("source", "target"), CROSSINGS)
def test_calls_and_results_cross_in_order_and_number(source: str, target: str, request: ir.Request) -> None:
    try:
        body = dragoman.encode_request(request, source).json()
        sent = dragoman.translate_request(body, source=source, target=target)
    except dragoman.EncodeError:
        return  # nothing was left to say, and it is refused with these words
    there = dragoman.decode_request(sent.json(), target)
    here = dragoman.decode_request(body, source)
    assert [call.name for message in there.messages for call in message.tool_calls] == [
        call.name for message in here.messages for call in message.tool_calls
    ]
    assert_paired(there.messages)


@given(request=strategies.UGLY_REQUESTS)
@each("target", FORMATS)
def test_healing_is_idempotent(target: str, request: ir.Request) -> None:
    profile = codec(target).profile
    try:
        once = legalise(request, profile, LossLog())
    except dragoman.EncodeError:
        return  # nothing to say, and refused with these words
    log = LossLog()
    assert legalise(once, profile, log).messages == once.messages
    # Metadata that the target does not understand stays, and is reported each time losses are read.
    private = ("only ", "this API has no such field")
    again = [loss for loss in log.resolve(once, intermediate_paths) if not loss.why.startswith(private)]
    assert again == []


@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_what_is_whole_is_not_healed(target: str, request: ir.Request) -> None:
    messages = dragoman.decode_request(dragoman.encode_request(request, target).json(), target).messages
    before = [result for message in request.messages for result in message.tool_results]
    after = [result for message in messages for result in message.tool_results]
    assert len(before) == len(after)
    assert NO_RESULT not in {result.value for result in after if isinstance(result.value, str)}


def call(number: int) -> ir.ToolCall:
    return ir.ToolCall(f"call_{number}", f"tool_{number}", {"n": number})


def answer(number: int, value: str = "") -> ir.ToolResult:
    return ir.ToolResult(f"call_{number}", "", "text", value or f"result {number}")


def conversation(*messages: ir.Message) -> ir.Request:
    tools = tuple(ir.ToolDefinition(f"tool_{number}") for number in (1, 2, 3))
    return ir.Request("some-model", (ir.Message("user", "go"), *messages), tools)


def tool(*results: ir.ToolResult) -> ir.Message:
    return ir.Message("tool", results)


CALLS = ir.Message("assistant", (call(1), call(2)))
TEXT = ir.Message("user", "and then?")

# name: (what happened, result values in the order they must have, (severity, word in the report) of each loss)
ACCIDENTS: dict[str, tuple[ir.Request, list[str], list[tuple[str, str]]]] = {
    "in order": (conversation(CALLS, tool(answer(1), answer(2))), ["result 1", "result 2"], []),
    "out of order": (conversation(CALLS, tool(answer(2), answer(1))), ["result 1", "result 2"], []),
    "in messages of their own": (conversation(CALLS, tool(answer(2)), tool(answer(1))), ["result 1", "result 2"], []),
    "text between the results": (
        conversation(CALLS, tool(answer(2)), TEXT, tool(answer(1))),
        ["result 1", "result 2"],
        [("degraded", "place of a result")],
    ),
    "text before all results": (
        conversation(CALLS, TEXT, tool(answer(2), answer(1))),
        ["result 1", "result 2"],
        [("degraded", "place of a result"), ("degraded", "place of a result")],
    ),
    "a later result for a call that has one": (
        conversation(CALLS, tool(answer(1), answer(2)), TEXT, tool(answer(2, "second"))),
        ["result 1", "second"],
        [("degraded", "place of a result"), ("dropped", "earlier result")],
    ),
    "one call without a result": (
        conversation(CALLS, tool(answer(2)), TEXT),
        [NO_RESULT, "result 2"],
        [("invented", "call_1")],
    ),
    "a result without a call": (
        conversation(CALLS, tool(answer(1), answer(2), answer(3))),
        ["result 1", "result 2"],
        [("dropped", "call_3")],
    ),
    "a result before its call": (
        conversation(tool(answer(1)), CALLS, tool(answer(2))),
        [NO_RESULT, "result 2"],
        [("dropped", "call_1"), ("invented", "call_1")],
    ),
    "two results for one call": (
        conversation(CALLS, tool(answer(1), answer(2), answer(1, "second"))),
        ["second", "result 2"],
        [("dropped", "earlier result")],
    ),
    "calls in two messages": (
        conversation(
            ir.Message("assistant", (call(1),)), ir.Message("assistant", (call(2),)), tool(answer(2), answer(1))
        ),
        ["result 1", "result 2"],
        [],
    ),
}


@promise("report:46", "report:47", "report:48", "report:53")
@each("target", FORMATS)
@each("name", ACCIDENTS)
def test_accidents(name: str, target: str) -> None:
    request, expected, reports = ACCIDENTS[name]
    encoded = dragoman.encode_request(request, target)
    messages = dragoman.decode_request(encoded.json(), target).messages
    assert_paired(messages)
    values = [result.value for message in messages for result in message.tool_results]
    assert [str(value) for value in values] == expected
    reported = [loss for loss in encoded.losses if "result" in loss.what]
    assert len(reported) == len(reports)
    for (severity, word), loss in zip(sorted(reports), sorted(reported, key=lambda loss: loss.severity), strict=True):
        assert loss.severity == severity
        assert word in loss.what


@promise("report:60", "report:26")
@given(odd=strategies.ODD_IDS)
@each("target", FORMATS)
def test_an_odd_id_gets_the_same_alias_on_call_and_result(target: str, odd: str) -> None:
    calling = ir.Message("assistant", (ir.ToolCall(odd, "tool_1", {}),))
    request = conversation(calling, tool(ir.ToolResult(odd, "tool_1", "text", "done")))
    encoded = dragoman.encode_request(request, target)
    messages = dragoman.decode_request(encoded.json(), target).messages
    assert_paired(messages)
    pattern = codec(target).profile.call_id
    if pattern is not None and pattern.fullmatch(odd) and not odd.startswith("dgm_"):
        assert [found.id for message in messages for found in message.tool_calls] == [odd]
    assert encoded.json() == dragoman.encode_request(request, target).json()
