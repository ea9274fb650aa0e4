"""Law 2. What the target cannot express is a loss with path and reason; strict mode refuses.

Two checks. Texts: each is marked, and every mark is found in the target's body or reported in a loss. Everything else:
a field is removed, and either the body changes, or a loss has reported that the target has no place for the field.
"""

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.errors import EncodeError, LossRefused
from dragoman.ir.values import Value
from dragoman.loss import Loss
from tests import strategies
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.cases import each
from tests.support.formats import CROSSINGS, FAMILY, FORMATS
from tests.support.promises import promise
from tests.support.records import RECORDS
from tests.support.trees import covers, leaves, plain, reaches, variants

pytestmark = promise("law:2-nothing-vanishes")

# ── marks ─────────────────────────────────────────────────────────────────────────────────────────────────────

# Words of a protocol, ids and names: they are not free text, and the second way of looking is for them.
_WORDS_OF_THE_FORMAT = re.compile(
    r"\.(type|role|kind|mode|origin|family|ttl|media_type|detail|effort|id|tool_call_id|name|names\[\d+\]|model|reason"
    r"|arguments_text|file_id|user|block\.(type|id|name|tool_use_id|\w+\.(language|outcome))"
    r"|(definition|parameters|schema)\..*)$"
)
_MARK = re.compile(r"mark[0-9]+x")


def marked(value: Any, kind: type[Any]) -> Any:
    """The same value with a mark of its own in every free text, base64 data included."""
    counter = iter(range(10**6))

    def mark(text: str, path: str) -> str:
        if _WORDS_OF_THE_FORMAT.search(path) or not text.strip():
            return text
        sign = f"mark{next(counter)}x"
        if path.endswith(".data"):
            return base64.b64encode(f"{sign:<12}".encode()).decode()
        return f"{text}{sign}"

    return msgspec.json.decode(msgspec.json.encode(_rewritten(msgspec.json.encode(value), mark)), type=kind)


def _rewritten(encoded: bytes, change: Callable[[str, str], str]) -> Any:
    def walk(value: Any, path: str) -> Any:
        if isinstance(value, str):
            return change(value, path)
        if isinstance(value, list):
            return [walk(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
        if isinstance(value, dict):
            # Where there is exact argument text, the object beside it must stay the same arguments.
            fixed = "arguments" if "arguments_text" in value else None
            return {key: inner if key == fixed else walk(inner, f"{path}.{key}") for key, inner in value.items()}
        return value

    return walk(plain(encoded), "$")


def silent_marks(value: Value, encoded: dragoman.Encoded) -> list[str]:
    """Marks that neither arrive nor are reported."""
    arrived = encoded.json().decode()
    return [
        f"{path}: {leaf!r}"
        for path, leaf in leaves(value)
        if isinstance(leaf, str) and _is_lost(path, leaf, arrived) and not is_reported(path, encoded.losses)
    ]


def _is_lost(path: str, leaf: str, arrived: str) -> bool:
    if path.endswith(".signature.data"):  # may travel within a tag, and law 6 follows it there
        return False
    if path.endswith(".data"):
        return leaf not in arrived
    found = _MARK.search(leaf)
    return found is not None and found[0] not in arrived


_OF_A_FAMILY = re.compile(r"\.metadata\.[a-z-]+\.")


def is_reported(path: str, losses: tuple[Loss, ...]) -> bool:
    # A key that only one vendor understands is reported at the object that carried it.
    plain_path = _OF_A_FAMILY.sub(".", path)
    if plain_path != path:
        plain_path = re.sub(r"^\$\.(tool_choice|reasoning|output)\.", "$.", plain_path)
    return any(covers(loss.path, plain_path) for loss in losses)


@given(request=strategies.ANY_REQUESTS)
@each("target", (*FORMATS, *RECORDS))
def test_every_text_of_a_request_arrives_or_is_reported(target: str, request: ir.Request) -> None:
    value = marked(request, ir.Request)
    try:
        encoded = dragoman.encode_request(value, target)
    except EncodeError:
        return
    assert silent_marks(value, encoded) == []


@given(completion=strategies.COMPLETIONS)
@each("target", (*FORMATS, *RECORDS))
def test_every_text_of_an_answer_arrives_or_is_reported(target: str, completion: ir.Completion) -> None:
    value = marked(completion, ir.Completion)
    encoded = dragoman.encode_response(value, target)
    assert silent_marks(value, encoded) == []


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────

# (kind, field): why taking it away may change nothing although nothing is lost.
NOT_SAID_ON_THE_WIRE = {
    ("Request", "origin"): "where a request came from is our own note",
    ("ToolCall", "arguments"): "the text says the same",
    ("ToolCall", "arguments_text"): "object formats carry the same arguments as an object",
    ("ToolCall", "invented_id"): "our own note",
    ("ToolResult", "name"): "the call it answers has the name",
    ("ToolDefinition", "strict"): "false is what every API assumes",
    ("Request", "parallel_tool_calls"): "true is what every API assumes",
    ("Request", "stream"): "false is what every API assumes",
    ("Request", "candidates"): "one is what every API assumes",
    ("Reasoning", "redacted"): "redacted reasoning has no text to show the difference",
    ("StructuredOutput", "strict"): "false is what every API assumes; Anthropic and Google are always strict",
    ("Request", "tool_choice"): "auto is what every API assumes",
    ("Completion", "finish"): "formats that demand a finish reason get the ordinary one",
    ("Completion", "usage"): "formats that demand counts get zeros",
    ("Completion", "created"): "a date that is absent is sent as zero where the format demands one",
    ("Usage", "total"): "the sum of the two",
    ("Usage", "input"): "less than the cached tokens in it is nothing a provider counts",
    ("Image", "media_type"): "a type that is missing is taken for the commonest",
    ("Document", "media_type"): "a type that is missing is taken for the commonest",
    ("Audio", "media_type"): "a type that is missing is taken for the commonest",
}


SAYS_NOTHING = (0, "", (), {"type": "object", "properties": {}}, ("text",), "auto")


def without_one_field(value: Any) -> Iterator[tuple[str, Any]]:
    """The value once more for every field that says something, with that field back at its default."""
    yield from _variants(value, "$")


def _variants(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for index, inner in enumerate(value):
            for where, variant in _variants(inner, f"{path}[{index}]"):
                yield where, (*value[:index], variant, *value[index + 1 :])
    if not isinstance(value, Value):
        return
    kind = type(value).__name__
    for field in structs.fields(value):
        current = getattr(value, field.name) if field.name != "arguments" else None
        where = f"{path}.{field.name}"
        exempt = (kind, field.name) in NOT_SAID_ON_THE_WIRE or field.name in {"metadata", "messages"}
        if field.default is not msgspec.NODEFAULT and current not in (field.default, *SAYS_NOTHING) and not exempt:
            yield where, structs.replace(value, **{field.name: field.default})
        if isinstance(current, Value | tuple) and not (kind == "Message" and isinstance(value.content_held, str)):  # type: ignore[attr-defined]
            for place, variant in _variants(current, where):
                yield place, structs.replace(value, **{field.name: variant})


def told_at_all(path: str, losses: tuple[Loss, ...]) -> bool:
    """Reported as a whole, or by what was in it."""
    return is_reported(path, losses) or any(covers(path, loss.path) for loss in losses)


def _names_every_tool(request: ir.Request) -> bool:
    chosen = request.tool_choice.names if request.tool_choice is not None else ()
    return {tool.name for tool in request.tools if not isinstance(tool, ir.ProviderTool)} <= set(chosen)


def says(encoded: dragoman.Encoded) -> tuple[Any, ...]:
    return encoded.json(), encoded.path, sorted(encoded.headers.items())


def silent_fields(value: Any, whole: dragoman.Encoded, encode: Callable[[Any], dragoman.Encoded | None]) -> list[str]:
    """Paths of the fields without which the same is written, and which no loss names. None: it cannot be written."""
    expected = says(whole)
    return [
        path
        for path, variant in without_one_field(value)
        if (poorer := encode(variant)) is not None and says(poorer) == expected and not told_at_all(path, whole.losses)
    ]


def encode_if_possible(request: ir.Request, target: str) -> dragoman.Encoded | None:
    try:
        return dragoman.encode_request(request, target)
    except EncodeError:
        return None


@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_every_field_of_a_request_matters_or_is_reported(target: str, request: ir.Request) -> None:
    request = msgspec.json.decode(msgspec.json.encode(request), type=ir.Request)  # no two places share one value
    whole = encode_if_possible(request, target)
    if whole is None:
        return
    silent = silent_fields(request, whole, lambda variant: encode_if_possible(variant, target))
    if _names_every_tool(request):
        silent = [path for path in silent if path != "$.tool_choice.names"]
    assert [path for path in silent if not _implied(path, request, target)] == []


ALWAYS_SHOWS_REASONING = {"ollama-chat", "cohere-chat"}


def _implied(path: str, request: ir.Request, target: str) -> bool:
    """A budget says that reasoning is on, settings without a mode leave it to the model, Gemini 3 decides unasked."""
    settings = request.reasoning
    if settings is not None and path == "$.reasoning.visible":
        return bool(settings.visible) and target in ALWAYS_SHOWS_REASONING
    if settings is None or path not in {"$.reasoning", "$.reasoning.mode"}:
        return False
    if settings.mode == "adaptive":
        return path == "$.reasoning.mode" or FAMILY[target] == "google"
    return path == "$.reasoning.mode" and settings.mode == "on" and bool(settings.budget_tokens)


@given(completion=strategies.COMPLETIONS)
@each("target", FORMATS)
def test_every_field_of_an_answer_matters_or_is_reported(target: str, completion: ir.Completion) -> None:
    whole = dragoman.encode_response(completion, target)
    assert silent_fields(completion, whole, lambda variant: dragoman.encode_response(variant, target)) == []


# ── losses themselves ─────────────────────────────────────────────────────────────────────────────────────────


# What an answer must say there, though the source did not: noted, not invented.
DEMANDED = re.compile(r"^\$\.(id|model|responseId|modelVersion|metrics)$")


def assert_well_told(losses: tuple[Loss, ...], body: bytes) -> None:
    source = plain(body)
    for loss in losses:
        assert loss.what
        assert loss.why
        assert reaches(source, loss.path) or loss.severity == "invented" or DEMANDED.search(loss.path), loss


@given(request=strategies.ANY_REQUESTS)
@each(("source", "target"), CROSSINGS)
def test_losses_point_into_the_source_body(source: str, target: str, request: ir.Request) -> None:
    try:
        body = dragoman.encode_request(request, source).json()
        encoded = dragoman.translate_request(body, source=source, target=target)
    except EncodeError:
        return
    assert_well_told(encoded.losses, body)


@given(completion=strategies.COMPLETIONS)
@each(("source", "target"), CROSSINGS)
def test_losses_point_into_the_source_answer(source: str, target: str, completion: ir.Completion) -> None:
    body = dragoman.encode_response(completion, source).json()
    assert_well_told(dragoman.translate_response(body, source=source, target=target).losses, body)


@given(request=strategies.REQUESTS)
@each("target", FORMATS)
def test_strict_refuses_exactly_what_has_losses(target: str, request: ir.Request) -> None:
    try:
        encoded = dragoman.encode_request(request, target)
    except EncodeError:
        return
    if not encoded.losses:
        assert dragoman.encode_request(request, target, strict=True).json() == encoded.json()
        return
    with pytest.raises(LossRefused) as refused:
        dragoman.encode_request(request, target, strict=True)
    assert refused.value.losses == encoded.losses
    assert refused.value.target == target
    assert refused.value.path == encoded.losses[0].path


@given(completion=strategies.COMPLETIONS)
@each("target", FORMATS)
def test_strict_refuses_an_answer_that_loses_more_than_bookkeeping(target: str, completion: ir.Completion) -> None:
    encoded = dragoman.encode_response(completion, target)
    refusable = tuple(loss for loss in encoded.losses if loss.severity != "noted")
    if not refusable:
        strictly = dragoman.encode_response(completion, target, strict=True)
        assert (strictly.json(), strictly.losses) == (encoded.json(), encoded.losses)
        return
    with pytest.raises(LossRefused) as refused:
        dragoman.encode_response(completion, target, strict=True)
    assert refused.value.losses == refusable


# Ordinary answers with all the bookkeeping that each provider writes beside them, by format.
ORDINARY_ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1763000000,
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
                "native_finish_reason": "STOP",
            }
        ],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "total_tokens": 13,
            "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2, "accepted_prediction_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_1",
        "provider": "OpenAI",
        "x_groq": {"id": "req_1"},
    },
    "anthropic-messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 6,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 1,
            "output_tokens": 4,
            "service_tier": "standard",
        },
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
                "finishReason": "STOP",
                "finishMessage": "Model generated function call(s).",
                "avgLogprobs": -0.1,
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 9,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 1,
            "totalTokenCount": 13,
            "trafficType": "ON_DEMAND",
            "serviceTier": "standard",
        },
        "modelVersion": "gemini-3-flash",
        "responseId": "r1",
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1763000000,
        "status": "completed",
        "model": "gpt-5",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
            }
        ],
        "service_tier": "default",
        "billing": {"payer": "developer"},
        "tool_usage": {"web_search": {"num_requests": 0}},
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 13,
        },
    },
    "bedrock-converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
        "metrics": {"latencyMs": 700},
        "performanceConfig": {"latency": "standard"},
    },
    "gemini-interactions": {
        "id": "v1_r",
        "object": "interaction",
        "status": "completed",
        "model": "gemini-3-flash",
        "created": "2026-08-21T10:00:00Z",
        "updated": "2026-08-21T10:00:01Z",
        "service_tier": "standard",
        "steps": [
            {"type": "thought", "signature": "CtkB"},
            {"type": "model_output", "content": [{"type": "text", "text": "Hello"}]},
        ],
        "usage": {
            "total_input_tokens": 9,
            "total_output_tokens": 4,
            "total_thought_tokens": 0,
            "total_tool_use_tokens": 0,
            "total_cached_tokens": 0,
            "total_tokens": 13,
        },
    },
    "ollama-chat": {
        "model": "qwen3",
        "created_at": "2026-08-21T10:00:00.1Z",
        "message": {"role": "assistant", "content": "Hello"},
        "done": True,
        "done_reason": "stop",
        "total_duration": 7,
        "load_duration": 1,
        "prompt_eval_count": 9,
        "eval_count": 4,
    },
    "cohere-chat": {
        "id": "6a25b227-ab2f-4049-95cb-15e8fb05d116",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
        "finish_reason": "COMPLETE",
        "usage": {
            "billed_units": {"input_tokens": 2, "output_tokens": 3},
            "tokens": {"input_tokens": 9, "output_tokens": 4},
            "cached_tokens": 0,
        },
    },
}


@each("source", ORDINARY_ANSWERS)
@each("target", FORMATS)
def test_strict_takes_an_ordinary_answer_of_every_provider(source: str, target: str) -> None:
    encoded = dragoman.translate_response(ORDINARY_ANSWERS[source], source=source, target=target, strict=True)
    assert {loss.severity for loss in encoded.losses} <= {"noted"}


def test_bookkeeping_is_reported_though_strict_does_not_refuse_it() -> None:
    body = ORDINARY_ANSWERS["openai-chat"]
    encoded = dragoman.translate_response(body, source="openai-chat", target="bedrock-converse", strict=True)
    assert {loss.path for loss in encoded.losses} == {
        "$.id",
        "$.model",
        "$.created",
        "$.metrics",
        "$.system_fingerprint",
        "$.provider",
        "$.x_groq",
        "$.choices[0].native_finish_reason",
        "$.usage.completion_tokens_details.reasoning_tokens",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [("logprobs", {"content": [{"token": "a", "logprob": -0.1, "bytes": None, "top_logprobs": []}]}), ("x_new", 1)],
)
def test_strict_refuses_lost_content_and_unknown_losses(key: str, value: Any) -> None:
    (choice,) = ORDINARY_ANSWERS["openai-chat"]["choices"]
    body = {**ORDINARY_ANSWERS["openai-chat"], "choices": [{**choice, key: value}]}
    with pytest.raises(LossRefused) as refused:
        dragoman.translate_response(body, source="openai-chat", target="anthropic-messages", strict=True)
    assert [loss.path for loss in refused.value.losses] == [f"$.choices[0].{key}"]


def test_a_request_has_no_bookkeeping() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "service_tier": "scale"}
    with pytest.raises(LossRefused):
        dragoman.translate_request(body, source="openai-chat", target="gemini", strict=True)


UNKNOWN_KEY = "x_unknown"
UNKNOWN_VALUE = "kept-as-it-is"


# What a provider says beside its token counts (prices, tiers, timings) stays with the usage object of its own family.
# It comes with every answer, and a loss for each would bury the others.
UNTOLD = re.compile(r"\$\.(usage|usageMetadata)(\..*)?$")


def silent_keys(sample: Sample, translate: Callable[..., dragoman.Encoded]) -> list[str]:
    silent = []
    for path, body in variants(sample.body, lambda found: {**found, UNKNOWN_KEY: UNKNOWN_VALUE}):
        for target in FORMATS:
            try:
                encoded = translate(body, source=sample.format, target=target)
            except EncodeError:  # the new key made nonsense of a schema
                continue
            arrived = UNKNOWN_VALUE.encode() in encoded.json()
            if (
                not arrived
                and not UNTOLD.match(path)
                and not any(same_place(loss.path, f"{path}.{UNKNOWN_KEY}") for loss in encoded.losses)
            ):
                silent.append(f"{path} -> {target}: {[loss.path for loss in encoded.losses]}")
    return silent


def same_place(loss_path: str, path: str) -> bool:
    """Proto3 JSON knows a field by two names, and a list of one by its element: either spelling leads there."""
    return covers(
        *(re.sub(r"(?<=[a-z])([A-Z])", r"_\1", each).lower().replace("[0]", "") for each in (loss_path, path))
    )


@each("sample", REQUESTS, ids=str)
def test_an_unknown_key_is_reported_wherever_it_is_in_a_request(sample: Sample) -> None:
    assert silent_keys(sample, dragoman.translate_request) == []


@each("sample", RESPONSES, ids=str)
def test_an_unknown_key_is_reported_wherever_it_is_in_an_answer(sample: Sample) -> None:
    assert silent_keys(sample, dragoman.translate_response) == []


def test_losses_are_readable() -> None:
    losses = (
        Loss("$.top_k", "top_k", "dropped", "no such setting"),
        Loss("$.messages[0]", "place", "degraded", "another order"),
        Loss("$.max_tokens", "max_tokens", "invented", "demanded"),
        Loss("$.created", "time", "noted", "untold"),
    )
    assert dragoman.render_losses(losses[::-1]).splitlines() == [
        "dropped   $.top_k        top_k       no such setting",
        "degraded  $.messages[0]  place       another order",
        "invented  $.max_tokens   max_tokens  demanded",
        "noted     $.created      time        untold",
    ]
    assert dragoman.render_losses(()) == "nothing was lost"
    assert str(losses[0]) == "dropped   $.top_k: top_k (no such setting)"
