"""Traits: what decoders note about a conversation is what a survey of it finds, and only the passes it needs run."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.errors import EncodeError
from dragoman.ir import traits
from dragoman.ir.traits import traits_of
from dragoman.losses import LossLog
from dragoman.passes import legalise as module
from dragoman.passes.legalise import legalise
from dragoman.passes.survey import survey
from tests import strategies
from tests.support.bodies import REQUESTS, Sample
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.recordings import Record, share

Recordings = Callable[[str], Iterator[Record]]

pytestmark = promise("core:traits")


def by_hand(request: ir.Request) -> ir.Request:
    """The same request without what its decoder noted."""
    return structs.replace(request)


def check_noted(request: ir.Request) -> None:
    noted = traits_of(request)
    if noted is None:
        return  # a decoder that leaves it to the survey
    found = survey(by_hand(request))
    assert (found[0] & ~noted[0]) == 0, "a trait that the decoder did not note"
    assert noted[0] == found[0], "a trait that is not there"
    assert dict(noted[1]) == dict(found[1])
    assert set(noted[2]) == set(found[2])


@given(request=strategies.ANY_REQUESTS)
@each("name", FORMATS)
def test_decoders_note_what_a_survey_finds(name: str, request: ir.Request) -> None:
    try:
        body = dragoman.encode_request(request, name).json()
    except EncodeError:
        return
    check_noted(codec(name).decode_request(body))


@each("sample", REQUESTS, ids=str)
def test_decoders_note_the_traits_of_sample_bodies(sample: Sample) -> None:
    check_noted(codec(sample.format).decode_request(sample.json()))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("openai-chat", "openai-chat"),
        ("openai-compat-chat", "openai-chat"),
        ("openrouter-chat", "openai-chat"),
        ("mistral-chat", "openai-chat"),
        ("anthropic-messages", "anthropic-messages"),
        ("gemini-generate", "gemini"),
        ("bedrock-converse", "bedrock-converse"),
        ("openai-responses", "openai-responses"),
        ("ollama-chat", "ollama-chat"),
        ("cohere-chat", "cohere-chat"),
    ],
)
def test_decoders_note_the_traits_of_recorded_bodies(file: str, name: str, recordings: Recordings) -> None:
    for record in share(recordings(file), name):
        if isinstance(record.request, dict) and record.status < 400:
            try:
                check_noted(codec(name).decode_request(json.dumps(record.request).encode()))
            except dragoman.DecodeError:
                continue


TEXT = ir.Message("user", "hi")
CALL = ir.ToolCall("c1", "f", {})
RESULT = ir.ToolResult("c1", "f", "text", "ok")
ANSWER = ir.Message("assistant", (CALL,))
DONE = ir.Message("tool", (RESULT,))
KEY = {"openai": {"store": msgspec.Raw(b"true")}}

CASES: list[tuple[tuple[ir.Message, ...], int]] = [
    ((TEXT,), 0),
    ((), traits.NO_MESSAGES),
    ((ir.Message("system", "s"),), traits.ONLY_SYSTEM),
    ((TEXT, ANSWER, DONE, TEXT), 0),
    ((TEXT, ANSWER, TEXT), traits.UNPAIRED),
    ((TEXT, ANSWER), traits.UNANSWERED_END),
    ((TEXT, ANSWER, ir.Message("tool", ())), traits.UNPAIRED | traits.EMPTY_MESSAGE | traits.LAST_ASSISTANT),
    ((TEXT, ANSWER, ANSWER), traits.UNPAIRED | traits.UNANSWERED_END | traits.ADJACENT_ASSISTANT),
    ((TEXT, DONE), traits.UNPAIRED),
    ((TEXT, ANSWER, DONE, TEXT, ANSWER, DONE), traits.UNPAIRED),
    ((TEXT, ANSWER, ir.Message("tool", (structs.replace(RESULT, name="g"),))), traits.UNPAIRED),
    ((ir.Message("user", " "),), traits.BLANK_TEXT),
    ((ir.Message("user", (ir.Text("a"), ir.Text(""))),), traits.BLANK_TEXT),
    ((TEXT, ir.Message("user", ())), traits.EMPTY_MESSAGE),
    ((TEXT, ir.Message("system", "s")), traits.LATE_SYSTEM),
    ((TEXT, ir.Message("assistant", "a"), ir.Message("assistant", "b"), TEXT), traits.ADJACENT_ASSISTANT),
    ((ir.Message("assistant", "a"), TEXT), traits.FIRST_ASSISTANT),
    ((ir.Message("system", "s"), ir.Message("assistant", "a"), TEXT), traits.FIRST_ASSISTANT),
    ((TEXT, ir.Message("assistant", "a")), traits.LAST_ASSISTANT),
    ((ir.Message("user", (CALL,)),), traits.MISPLACED_PART | traits.UNANSWERED_END),
    ((ir.Message("user", (RESULT,)),), traits.MISPLACED_PART),
    ((TEXT, ANSWER, ir.Message("tool", (RESULT, ir.Text("x")))), traits.MISPLACED_PART),
    ((ir.Message("user", "hi", None, KEY),), traits.PRIVATE_CONTENT),
    ((ir.Message("user", (ir.Text("hi", metadata=KEY),)),), traits.PRIVATE_CONTENT),
    ((ir.Message("user", (ir.Text("hi", (ir.Citation(metadata=KEY),)),)),), traits.PRIVATE_CONTENT),
    ((TEXT, ANSWER, ir.Message("tool", (structs.replace(RESULT, metadata=KEY),))), traits.PRIVATE_CONTENT),
    (
        (
            TEXT,
            ANSWER,
            ir.Message("tool", (ir.ToolResult("c1", "f", "multimodal", None, (ir.Text("a", metadata=KEY),)),)),
        ),
        traits.PRIVATE_CONTENT,
    ),
]


@each(("messages", "bits"), CASES)
def test_what_a_survey_finds(messages: tuple[ir.Message, ...], bits: int) -> None:
    assert survey(ir.Request("m", messages))[0] == bits


def test_private_settings() -> None:
    tool = ir.ToolDefinition("f", metadata=KEY)
    for request in (
        ir.Request("m", (TEXT,), metadata=KEY),
        ir.Request("m", (TEXT,), (tool,)),
        ir.Request("m", (TEXT,), tool_choice=ir.ToolChoice("auto", metadata=KEY)),
        ir.Request("m", (TEXT,), reasoning=ir.ReasoningSettings(metadata=KEY)),
        ir.Request("m", (TEXT,), output=ir.StructuredOutput("json", metadata=KEY)),
    ):
        assert survey(request)[0] == traits.PRIVATE_SETTING


def test_traits_are_not_part_of_the_request() -> None:
    request = ir.Request("m", (TEXT,))
    notes = traits.TraitNotes()
    notes.bits = traits.BLANK_TEXT
    noted = notes.noted_on(structs.replace(request), frozenset(), 0)
    assert traits_of(noted) is not None
    assert noted == request
    assert msgspec.json.encode(noted) == msgspec.json.encode(request)
    assert traits_of(structs.replace(noted, model="n")) is None
    assert repr(noted) == repr(request)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def spy(step: module.Step) -> module.Step:
        def run(*given: Any) -> ir.Request:
            names.append(step.run.__name__)
            return step.run(*given)

        return step._replace(run=run)

    monkeypatch.setattr(module, "STEPS", tuple(spy(step) for step in module.STEPS))
    monkeypatch.setattr(module, "_TARGETS", {})
    return names


NEEDED: list[tuple[ir.Request, str, list[str]]] = [
    (ir.Request("m", (TEXT, ANSWER, DONE, TEXT), (ir.ToolDefinition("f"),)), "anthropic-messages", []),
    (ir.Request("m", (TEXT, ir.Message("assistant", "a"))), "anthropic-messages", ["ensure_turns"]),
    (ir.Request("m", (TEXT, ir.Message("assistant", "a"))), "openai-chat", []),
    (ir.Request("m", (ir.Message("assistant", "a"), TEXT)), "openai-chat", []),
    (ir.Request("m", (ir.Message("assistant", "a"), TEXT)), "gemini", ["ensure_turns"]),
    (ir.Request("m", (TEXT,), metadata=KEY), "anthropic-messages", ["report_private_settings"]),
    (ir.Request("m", (TEXT, ir.Message("system", "s"), TEXT)), "openai-chat", []),
    (
        ir.Request("m", (TEXT, ir.Message("system", "s"), TEXT)),
        "anthropic-messages",
        ["hoist_system", "merge_model_turns", "ensure_turns"],
    ),
    (ir.Request("m", (TEXT,), stop=("a",)), "openai-chat", []),
    (ir.Request("m", (TEXT,), stop=("a", "b", "c", "d", "e")), "openai-chat", ["legal_settings"]),
    (ir.Request("m", (TEXT,), (ir.ToolDefinition("f"),), ir.ToolChoice("required", ("f",))), "openai-chat", []),
    (ir.Request("m", (TEXT,), (ir.ToolDefinition("a.b"),)), "openai-chat", ["alias_names"]),
]


@pytest.mark.parametrize(("request_", "target", "names"), NEEDED)
def test_only_the_passes_that_are_needed_run(
    request_: ir.Request, target: str, names: list[str], ran: list[str]
) -> None:
    legal = legalise(request_, codec(target).profile, LossLog())
    assert ran == names
    assert names or legal is request_
