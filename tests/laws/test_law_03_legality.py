"""Law 3. What is encoded obeys the target's own rules, or is refused with a reason.

The judge is dragoman.sim.rules, written from what the APIs refuse and without knowledge of the codecs.
"""

import pytest
from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import codec
from dragoman.errors import DecodeError, EncodeError
from tests import strategies
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.edits import edits
from tests.support.endings import unfair
from tests.support.formats import FAMILY, FORMATS, MODELS, complaints, refusals
from tests.support.promises import promise

pytestmark = promise("law:3-legality")

# Models that refuse what others take: prefills, forced choices, sampling, unsigned calls, switching thought off.
PICKY = (
    ("openai-chat", "gpt-4.1"),
    ("openai-chat", "gpt-5.1"),
    ("openai-chat", "o3"),
    ("openai-responses", "gpt-4.1"),
    ("openai-responses", "gpt-5"),
    ("openai-responses", "gpt-5.1"),
    ("openai-responses", "o3"),
    ("anthropic-messages", "claude-sonnet-4-5"),
    ("anthropic-messages", "claude-opus-4-8"),
    ("anthropic-messages", "claude-opus-5-5"),
    ("anthropic-messages", "claude-sonnet-5-5"),
    ("gemini", "gemini-2.5-flash"),
    ("gemini", "gemini-2.5-pro"),
    ("gemini", "gemini-3-pro-preview"),
    ("gemini", "gemini-3.6-flash"),
    ("gemini", "gemma-3-27b-it"),
    ("vertex", "gemini-2.5-flash"),
    ("vertex", "gemini-3-pro-preview"),
    ("bedrock-converse", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("bedrock-converse", "global.anthropic.claude-opus-4-8"),
    ("bedrock-converse", "us.amazon.nova-2-lite-v1:0"),
    ("bedrock-converse", "mistral.mistral-large-2407-v1:0"),
    ("gemini-interactions", "gemini-2.5-flash"),
    ("gemini-interactions", "gemini-3-pro-preview"),
    ("gemini-interactions", "gemini-3.6-flash"),
    ("ollama-chat", "qwen3"),
    ("ollama-chat", "llama3.2"),
    ("cohere-chat", "command-a-03-2025"),
    ("cohere-chat", "command-a-reasoning-08-2025"),
    ("cohere-chat", "command-r-08-2024"),
)


def assert_legal(request: ir.Request, target: str, model: str) -> None:
    sensible = structs.replace(strategies.public(request, FAMILY[target]), model=model)
    try:
        encoded = dragoman.encode_request(sensible, target)
    except EncodeError as refused:
        if not refused.reason or not refused.path.startswith("$") or refused.target != target:
            raise
        return
    assert refusals(encoded, target, model=model) == ()


@given(request=strategies.ANY_REQUESTS)
@each("target", FORMATS)
def test_any_conversation_becomes_legal_everywhere(target: str, request: ir.Request) -> None:
    assert_legal(request, target, "some-model")


@given(request=strategies.ANY_REQUESTS)
@each(("target", "model"), PICKY)
def test_any_conversation_becomes_legal_for_models_with_rules_of_their_own(
    target: str, model: str, request: ir.Request
) -> None:
    assert_legal(request, target, model)


@given(request=strategies.WILD_REQUESTS)
@each("target", FORMATS)
def test_even_a_senseless_history_becomes_legal_or_is_refused(target: str, request: ir.Request) -> None:
    assert_legal(request, target, "some-model")


@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_an_ordinary_conversation_is_never_refused(target: str, request: ir.Request) -> None:
    dragoman.encode_request(request, target)


@given(completion=strategies.COMPLETIONS)
@each("target", FORMATS)
def test_answers_please_a_strict_client(target: str, completion: ir.Completion) -> None:
    assert complaints(dragoman.encode_response(completion, target), target) == ()


@each("target", FORMATS)
@each("sample", REQUESTS)
def test_sample_requests_cross_legally(sample: Sample, target: str) -> None:
    encoded = dragoman.translate_request(sample.body, source=sample.format, target=target, model=MODELS[target])
    if target != sample.format:
        assert refusals(encoded, target, model=MODELS[target]) == ()


@each("target", FORMATS)
@each("sample", RESPONSES)
def test_sample_answers_cross_legally(sample: Sample, target: str) -> None:
    encoded = dragoman.translate_response(sample.body, source=sample.format, target=target)
    if target != sample.format:
        assert unfair(encoded, target, dragoman.decode_response(sample.body, sample.format)) == ()


BLANKLESS = tuple(name for name in FORMATS if not codec(name).profile.blank_text)


@each("target", BLANKLESS)
@each("sample", RESPONSES)
def test_an_answer_brings_no_empty_text_that_its_client_may_not_return(sample: Sample, target: str) -> None:
    """A client appends the answer to its history, and its own API would refuse that."""
    if FAMILY[sample.format] == FAMILY[target]:
        return
    for body in (sample.body, *(edit.body for edit in edits(sample.body) if edit.what == "emptied")):
        try:
            written = dragoman.translate_response(body, source=sample.format, target=target)
            read = dragoman.decode_response(written.content, target)
        except (DecodeError, EncodeError):
            continue  # refused, or an answer that failed, which is an error body there
        texts = [part for message in read.messages for part in message.parts if isinstance(part, ir.Text)]
        assert [part for part in texts if not part.text and part.signature is None] == []


@each("part", [ir.Text(""), ir.Refusal("")])
@each("target", [name for name in BLANKLESS if name != "cohere-chat"])  # its blocks start before their text is known
def test_a_stream_brings_no_empty_text_that_its_client_may_not_return(target: str, part: ir.AnyPart) -> None:
    call = ir.ToolCall("call_1", "f", {}, "{}")
    start: list[ir.AnyEvent] = [ir.StreamStart("r", "m"), ir.PartStart(0, part)]
    calling: list[ir.AnyEvent] = [ir.PartStart(1, call), ir.PartEnd(1)]
    for events in ([*start, ir.PartEnd(0), *calling], [*start, *calling, ir.PartEnd(0)]):
        encoder, decoder = dragoman.StreamEncoder(target), dragoman.StreamDecoder(target)
        data = encoder.encode([*events, ir.Finished(ir.Finish("tool_calls"))]) + encoder.close()
        answer = dragoman.accumulate([*decoder.feed(data), *decoder.close()])
        assert [type(one) for one in answer.messages[0].parts] == [ir.ToolCall]


TOOL = ir.ToolDefinition("f", None, {"type": "object", "properties": {}})


@pytest.mark.parametrize("target", FORMATS)
def test_of_two_tools_with_one_name_the_first_counts(target: str) -> None:
    twice = (TOOL, structs.replace(TOOL, description="the second"), structs.replace(TOOL, name="g"))
    request = ir.Request(MODELS[target], (ir.Message("user", "hi"),), twice, max_output_tokens=9)
    encoded = dragoman.encode_request(request, target)
    assert refusals(encoded, target) == ()
    assert b"the second" not in encoded.json()
    assert [loss.path for loss in encoded.losses if loss.severity == "dropped"] == ["$.tools[1]"]


@each("target", FORMATS)
@each("names", [("nobody",), ("f", "nobody")])
def test_a_tool_that_is_not_declared_cannot_be_chosen(target: str, names: tuple[str, ...]) -> None:
    choice = ir.ToolChoice("required", names)
    request = ir.Request(MODELS[target], (ir.Message("user", "hi"),), (TOOL,), choice, max_output_tokens=9)
    encoded = dragoman.encode_request(request, target)
    assert refusals(encoded, target) == ()
    assert b"nobody" not in encoded.json()
    assert "$.tool_choice" in {loss.path for loss in encoded.losses}
