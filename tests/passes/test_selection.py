"""Passes chosen by traits give what all passes together would give; and what single passes do, literally."""

import hashlib
import re

import pytest
from msgspec import Raw, structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.errors import EncodeError
from dragoman.losses import LossLog
from dragoman.passes import legalise as module
from dragoman.passes.legalise import legalise
from dragoman.passes.names import alias_names, name_alias
from dragoman.passes.pairing import pair_results
from dragoman.passes.turns import check_places
from dragoman.profile import Profile
from tests.support.cases import each
from tests.support.promises import promise

pytestmark = promise("core:traits")

HI = ir.Message("user", "hi")
ANSWER = ir.Message("assistant", "hello")
TOOL = ir.ToolDefinition("look")


def step(id: str, name: str = "look") -> tuple[ir.Message, ir.Message]:
    call, result = ir.ToolCall(id, name, {"a": 1}), ir.ToolResult(id, name, "text", "x")
    return ir.Message("assistant", (call,)), ir.Message("tool", (result,))


def request_of(*messages: ir.Message, **settings: object) -> ir.Request:
    return structs.replace(ir.Request("m", messages, (TOOL,)), **settings)


REQUESTS: dict[str, ir.Request] = {
    "plain": request_of(HI, tools=()),
    "calls": request_of(HI, *step("call_1"), HI),
    "an id with a space": request_of(HI, *step("call 1 é"), HI),
    "a long id": request_of(HI, *step("c" * 200), HI),
    "an empty id": request_of(HI, *step(""), HI),
    "the same id twice": request_of(HI, *step("a"), *step("a"), HI),
    "a name with a space": request_of(HI, *step("a", "look up"), tools=(ir.ToolDefinition("look up"),)),
    "a name that is too long": request_of(HI, tools=(ir.ToolDefinition("n" * 200),)),
    "a name that only calls have": request_of(HI, *step("a", "look up"), HI, tools=()),
    "calls without tools": request_of(HI, *step("a"), HI, tools=()),
    "two tools of one name": request_of(HI, tools=(TOOL, ir.ToolDefinition("look", "Another."))),
    "a call without result": request_of(HI, step("a")[0], HI),
    "a call without result at the end": request_of(HI, step("a")[0]),
    "a call before an empty message of results": request_of(HI, step("a")[0], ir.Message("tool", ())),
    "a result without call": request_of(HI, step("a")[1], HI),
    "system text alone": request_of(ir.Message("system", "be brief")),
    "system text in the middle": request_of(HI, ir.Message("system", "be brief"), HI),
    "the assistant first": request_of(ir.Message("assistant", "hello"), HI),
    "the assistant last": request_of(HI, ir.Message("assistant", "hello ")),
    "the assistant last, for a model without prefill": request_of(
        HI, ir.Message("assistant", "hello"), model="claude-opus-4-6"
    ),
    "the assistant twice": request_of(HI, ir.Message("assistant", "a"), ir.Message("assistant", "b"), HI),
    "blank text": request_of(HI, ir.Message("assistant", (ir.Text(" "), ir.Text("b"))), HI),
    # The result of one pass calls for a later one.
    "a result without call between answers": request_of(HI, ANSWER, step("a")[1], ANSWER, HI),
    "blank text between answers": request_of(HI, ANSWER, ir.Message("user", " "), ANSWER, HI),
    "system text between answers": request_of(HI, ANSWER, ir.Message("system", "be brief"), ANSWER, HI),
    "blank text before an answer": request_of(ir.Message("user", " "), ANSWER, HI),
    "blank text at the end": request_of(HI, ANSWER, ir.Message("user", " ")),
    "a result without call at the end": request_of(HI, ANSWER, step("a")[1]),
    "no candidates": request_of(HI, candidates=0),
    "one candidate": request_of(HI, candidates=1),
    "many stop sequences": request_of(HI, stop=tuple(f"s{n}" for n in range(20))),
    "a blank stop sequence": request_of(HI, stop=(" ", "s")),
    "a choice without tools": request_of(HI, tools=(), tool_choice=ir.ToolChoice("required")),
    "a choice of unknown tools": request_of(HI, tool_choice=ir.ToolChoice("required", ("other",))),
    "parallel calls without tools": request_of(HI, tools=(), parallel_tool_calls=False),
}


@each("target", [*dragoman.formats("wire"), *dragoman.formats("compatible")])
@each("name", REQUESTS)
def test_the_chosen_passes_do_what_all_would_do(name: str, target: str) -> None:
    profile = codec(target).profile
    module._TARGETS.clear()  # noqa: SLF001 - ids and names that were accepted before are remembered
    expected, every = _with_all(REQUESTS[name], profile)
    for _ in range(2):  # with and without what was remembered
        log = LossLog()
        assert legalise(REQUESTS[name], profile, log) == expected
        assert [entry[1:] for entry in log.entries] == every


def _with_all(request: ir.Request, profile: Profile) -> tuple[ir.Request, list[object]]:
    log = LossLog()
    for run in [one.run for one in module.STEPS]:
        request = run(request, profile, log)
    return request, [entry[1:] for entry in log.entries]


def test_an_accepted_id_does_not_make_others_accepted() -> None:
    profile = codec("anthropic-messages").profile
    for id in ("call_1", "call_1", "call 2", "call_1", "call 2"):
        calls = legalise(request_of(HI, *step(id), HI), profile, LossLog()).messages[1].tool_calls
        assert profile.call_id is not None
        assert profile.call_id.fullmatch(calls[0].id)
        assert (calls[0].id == id) == (id == "call_1")


def test_cached_profiles_are_bounded() -> None:
    for number in range(300):
        legalise(REQUESTS["calls"], Profile(name=f"p{number}", family="p"), LossLog())
        assert len(module._TARGETS) <= 256  # noqa: SLF001


def test_what_is_remembered_is_bounded() -> None:
    memory: set[str] = set()
    assert module._accepts((f"id_{number}" for number in range(20_000)), None, memory)  # noqa: SLF001
    assert 0 < len(memory) <= 8_192
    for number in range(8_200):
        assert module._accepts((f"more_{number}",), None, memory)  # noqa: SLF001
        assert len(memory) <= 8_192
    memory.clear()
    assert module._accepts(("a" * 1_000, "b"), None, memory)  # noqa: SLF001
    assert memory == {"b"}
    assert not module._accepts(("c", "c c"), re.compile(r"\w+"), memory)  # noqa: SLF001
    assert memory == {"b", "c"}


# ── parts in the wrong message ──

RESULT, CALL = ir.ToolResult("a", "look", "text", "x"), ir.ToolCall("a", "look", {})


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        ((), "$.messages"),
        ((ir.Message("user", (ir.Text("x"), RESULT)),), "$.messages[0].parts[1]"),
        ((ir.Message("assistant", (RESULT,)),), "$.messages[0].parts[0]"),
        ((HI, ir.Message("tool", (RESULT, ir.Text("x")))), "$.messages[1].parts[1]"),
        ((HI, ir.Message("tool", (CALL,))), "$.messages[1].parts[0]"),
        ((ir.Message("user", (CALL,)),), "$.messages[0].parts[0]"),
        ((HI, ir.Message("system", (ir.Text("x"), CALL))), "$.messages[1].parts[1]"),
    ],
)
def test_a_part_in_the_wrong_message_is_an_error_with_its_path(messages: tuple[ir.Message, ...], path: str) -> None:
    profile = codec("openai-chat").profile
    with pytest.raises(EncodeError) as caught:
        check_places(ir.Request("m", messages), profile, LossLog())
    assert (caught.value.path, caught.value.target) == (path, "openai-chat")
    with pytest.raises(EncodeError):
        dragoman.encode_request(ir.Request("m", messages), "anthropic-messages")


def test_a_part_in_its_place_passes() -> None:
    request = request_of(ir.Message("system", "x"), HI, *step("a"), ir.Message("assistant", (ir.Text("x"), CALL)))
    assert check_places(request, codec("openai-chat").profile, LossLog()) is request


# ── names and ids ──


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("look up", "look_up"),
        ("look-up!" * 10, ("look_up_" * 10)[:48]),
        ("1 look", "t_1_look"),
        ("", "t_"),
        ("天気", "__"),
    ],
)
def test_an_alias_is_readable_and_ends_in_a_hash_of_the_name(name: str, readable: str) -> None:
    profile = structs.replace(codec("openai-chat").profile, tool_name=re.compile("[a-z]"))
    digest = hashlib.blake2s(name.encode(), digest_size=4).hexdigest()
    assert name_alias(name, profile) == f"{readable}_{digest}"
    assert name_alias("x", profile) == "x"


def test_losses_of_a_renamed_tool_point_to_the_tool() -> None:
    encoded = dragoman.encode_request(request_of(HI, tools=(TOOL, ir.CustomTool("look up"))), "gemini")
    assert len(encoded.losses) > 1
    assert [loss.path for loss in encoded.losses if not loss.path.startswith("$.tools[1]")] == []


def test_a_choice_names_its_tool_as_the_tool_is_sent() -> None:
    tools = (TOOL, ir.ToolDefinition("look up"))
    for names in (("look up",), ("look up", "look")):
        request = request_of(HI, tools=tools, tool_choice=ir.ToolChoice("required", names))
        sent = alias_names(request, codec("openai-chat").profile, LossLog())
        assert sent.tool_choice is not None
        assert sent.tool_choice.names == (sent.tools[1].name, "look")[: len(names)]
        assert sent.tools[1].name != "look up"


def test_repeated_ids_are_numbered_from_two() -> None:
    profile = codec("openai-chat").profile
    request = pair_results(request_of(HI, *step("a"), *step("a"), *step("a")), profile, LossLog())
    ids = [call.id for message in request.messages for call in message.tool_calls]
    assert ids == ["a", _digest("a 2"), _digest("a 3")]


def _digest(text: str) -> str:
    return f"call_{hashlib.blake2s(text.encode(), digest_size=12).hexdigest()}"


# ── keys that only one family understands ──


@pytest.mark.parametrize("target", ["openai-chat", "groq"])
def test_keys_of_the_same_family_are_written_and_not_reported(target: str) -> None:
    part = ir.Text("hi", metadata={"openai": {"own_part": Raw(b"1")}, "elsewhere": {"other_part": Raw(b"2")}})
    metadata = {"openai": {"own": Raw(b"1")}, "elsewhere": {"other": Raw(b"2")}}
    encoded = dragoman.encode_request(ir.Request("m", (ir.Message("user", (part,)),), metadata=metadata), target)
    assert [loss.what for loss in encoded.losses] == ["other", "other_part"]
    assert encoded.body["own"] == 1
    assert encoded.body["messages"][0]["content"][0]["own_part"] == 1
