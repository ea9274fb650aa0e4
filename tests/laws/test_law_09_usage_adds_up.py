"""Law 9. Token counts keep their sums from every format to every other."""

from typing import Any

import pytest
from hypothesis import given
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.loss import Loss
from tests import strategies
from tests.support.cases import each
from tests.support.formats import FORMATS, PAIRS
from tests.support.promises import promise

pytestmark = promise("law:9-usage-adds-up")

ANSWER = ir.Completion((ir.Message("assistant", "hi"),), ir.Finish("stop"), ir.Usage(), "r", "m", 1)


def is_reported(losses: tuple[Loss, ...], field: str) -> bool:
    return any(loss.path.endswith(field) for loss in losses)


@given(usage=strategies.USAGES)
@each("target", FORMATS)
def test_counts_arrive(target: str, usage: ir.Usage) -> None:
    encoded = dragoman.encode_response(structs.replace(ANSWER, usage=usage), target)
    found = dragoman.decode_response(encoded.json(), target).usage
    assert found is not None
    assert found.input == usage.input
    assert found.output == usage.output
    assert found.total in {None, usage.input + usage.output}
    for field in ("cached", "cache_written", "reasoning"):
        before, after = getattr(usage, field) or 0, getattr(found, field) or 0
        assert before == after or is_reported(encoded.losses, field)
    assert found.uncached_input >= 0


@each("target", FORMATS)
def test_more_cached_tokens_than_input_do_not_make_the_input_longer(target: str) -> None:
    """As xAI counts: the tokens of earlier turns are cached, and only the last one is the prompt."""
    usage = ir.Usage(24, 2, cached=161, total=26)
    encoded = dragoman.encode_response(structs.replace(ANSWER, usage=usage), target)
    found = dragoman.decode_response(encoded.json(), target).usage
    assert found is not None
    assert (found.input, found.output) == (24, 2)
    assert is_reported(encoded.losses, "cached") or found.cached == usage.cached


@given(usage=strategies.USAGES)
@each(("source", "target"), PAIRS)
def test_counts_cross_and_return(source: str, target: str, usage: ir.Usage) -> None:
    body = dragoman.encode_response(structs.replace(ANSWER, usage=usage), source).json()
    there = dragoman.translate_response(body, source=source, target=target).json()
    back = dragoman.decode_response(dragoman.translate_response(there, source=target, target=source).json(), source)
    assert back.usage is not None
    assert (back.usage.input, back.usage.output) == (usage.input, usage.output)


# The same bill as each API writes it: 100 tokens read (80 of them from a cache), 50 written (20 of them reasoning).
BILL: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 150,
            "prompt_tokens_details": {"cached_tokens": 80},
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
    },
    "anthropic-messages": {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 20,
            "cache_read_input_tokens": 80,
            "cache_creation_input_tokens": 0,
            "output_tokens": 50,
            "output_tokens_details": {"thinking_tokens": 20},
        },
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 80,
            "candidatesTokenCount": 30,
            "thoughtsTokenCount": 20,
            "totalTokenCount": 150,
        },
        "modelVersion": "m",
        "responseId": "r",
    },
}
BILL["vertex"] = BILL["gemini"]
BILL["bedrock-converse"] = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
    "usage": {
        "inputTokens": 20,
        "outputTokens": 50,
        "totalTokens": 150,
        "cacheReadInputTokens": 80,
    },
    "metrics": {"latencyMs": 1},
}
BILL["openai-responses"] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        }
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 80},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 150,
    },
}
BILL["gemini-interactions"] = {
    "id": "v1_r",
    "object": "interaction",
    "status": "completed",
    "model": "m",
    "steps": [{"type": "model_output", "content": [{"type": "text", "text": "hi"}]}],
    "usage": {
        "total_input_tokens": 100,
        "total_cached_tokens": 80,
        "total_output_tokens": 30,
        "total_thought_tokens": 20,
        "total_tool_use_tokens": 0,
        "total_tokens": 150,
    },
}
BILL["ollama-chat"] = {
    "model": "m",
    "created_at": "2026-08-21T10:00:00Z",
    "message": {"role": "assistant", "content": "hi"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 100,
    "eval_count": 50,
}
BILL["cohere-chat"] = {
    "id": "r",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    "finish_reason": "COMPLETE",
    "usage": {
        "billed_units": {"input_tokens": 100, "output_tokens": 50},
        "tokens": {"input_tokens": 100, "output_tokens": 50, "reasoning_tokens": 20},
        "cached_tokens": 80,
    },
}
# These count nothing apart: what they pay for is there, the details are not.
ROUGH = {"ollama-chat", "bedrock-converse"}
_COUNTED = dict.fromkeys(
    (
        *("openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse"),
        *("cohere-chat", "gemini-interactions"),
    ),
    "usage",
)
_COUNTED |= dict.fromkeys(("gemini", "vertex"), "usageMetadata")
_BESIDE_THE_MESSAGE = ("prompt_eval_count", "eval_count")


def counts(body: dict[str, Any], name: str) -> dict[str, int]:
    """All counts that are not zero, details included."""
    found: dict[str, int] = {}
    raw_counts = body[_COUNTED[name]] if name in _COUNTED else {key: body[key] for key in _BESIDE_THE_MESSAGE}
    for key, value in raw_counts.items():
        inner = value if isinstance(value, dict) else {key: value}
        found |= {name: count for name, count in inner.items() if isinstance(count, int) and count}
    return found


@promise("report:76", "report:77")
@each(("source", "target"), PAIRS)
def test_one_bill_in_every_currency(source: str, target: str) -> None:
    there = dragoman.translate_response(BILL[source], source=source, target=target).body
    if source not in ROUGH:
        assert counts(there, target) == counts(BILL[target], target)
    usage = dragoman.decode_response(there, target).usage
    assert usage is not None
    assert (usage.input, usage.output) == (100, 50)


@promise("report:77")
@pytest.mark.parametrize(
    ("source", "usage", "expected"),
    [
        pytest.param(
            "openai-chat",
            {
                "prompt_tokens": 291,
                "completion_tokens": 26,
                "total_tokens": 513,
                "completion_tokens_details": {"reasoning_tokens": 196},
            },
            ir.Usage(291, 222, reasoning=196, total=513),
            id="xAI keeps reasoning outside completion tokens",
        ),
        pytest.param(
            "openai-chat",
            {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "prompt_tokens_details": None},
            ir.Usage(3, 4, total=7),
            id="details that are null",
        ),
        pytest.param("openai-chat", {}, ir.Usage(), id="an empty object"),
        pytest.param(
            "anthropic-messages",
            {"input_tokens": 1, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 5},
            ir.Usage(111, 5, cached=100, cache_written=10),
            id="Anthropic keeps the cache outside input tokens",
        ),
        pytest.param(
            "anthropic-messages",
            {
                "input_tokens": 1,
                "cache_creation_input_tokens": None,
                "cache_read_input_tokens": None,
                "output_tokens": 5,
            },
            ir.Usage(1, 5),
            id="counts that are null",
        ),
        pytest.param(
            "gemini",
            {"promptTokenCount": 5, "candidatesTokenCount": 1, "thoughtsTokenCount": 20, "totalTokenCount": 26},
            ir.Usage(5, 21, reasoning=20, total=26),
            id="Gemini keeps thoughts outside candidates",
        ),
        pytest.param(
            "gemini",
            {
                "promptTokenCount": 5,
                "toolUsePromptTokenCount": 7,
                "candidatesTokenCount": 1,
                "totalTokenCount": 13,
            },
            ir.Usage(12, 1, total=13),
            id="Gemini counts what its tools read apart",
        ),
        pytest.param("gemini", {"totalTokenCount": 0}, ir.Usage(total=0), id="zero counts are left out"),
    ],
)
def test_each_way_of_counting(source: str, usage: dict[str, Any], expected: ir.Usage) -> None:
    body = {**BILL[source], _COUNTED[source]: usage}
    found = dragoman.decode_response(body, source).usage
    assert found is not None
    assert structs.replace(found, metadata=None, total=None) == structs.replace(expected, total=None)
    assert found.total in {expected.total, None} or expected.total is None
