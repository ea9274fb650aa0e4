"""The newest boto3 as a client: Converse and ConverseStream, with checksums, and its own exception classes."""

from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import botocore.exceptions  # type: ignore[import-untyped]
import pytest
from botocore.config import Config  # type: ignore[import-untyped]

from dragoman.sim.server import Simulator
from tests.sim.wire import SCHEMA

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
QUESTION = "What is the weather in Paris and in Oslo?"
USER_TURN: Any = {"role": "user", "content": [{"text": QUESTION}]}
TOOLS: Any = {"tools": [{"toolSpec": {"name": "get_weather", "description": "W", "inputSchema": {"json": SCHEMA}}}]}
ANSWER = "get_weather (Paris) says: sky clear. get_weather (Oslo) failed: no station there."
WEATHER: dict[str, Any] = {
    "Paris": {"content": [{"json": {"sky": "clear"}}], "status": "success"},
    "Oslo": {"content": [{"text": "no station there"}], "status": "error"},
}
THINKING: Any = {
    "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "inferenceConfig": {"maxTokens": 4000},
}


def connect(simulator: Simulator, fault: str = "") -> Any:
    client: Any = boto3.client(
        "bedrock-runtime",
        endpoint_url=simulator.url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )
    if fault:
        client.meta.events.register("before-send.bedrock-runtime.*", _faulty(fault))
    return client


def _faulty(fault: str) -> Any:
    def add(request: Any, **_: Any) -> None:
        request.headers["x-sim-fault"] = fault

    return add


@pytest.fixture
def client(dragoman_sim: Simulator) -> Iterator[Any]:
    sdk = connect(dragoman_sim)
    yield sdk
    sdk.close()


def results(message: Any) -> Any:
    uses = (block["toolUse"] for block in message["content"] if "toolUse" in block)
    blocks = [{"toolResult": {"toolUseId": use["toolUseId"], **WEATHER[use["input"]["city"]]}} for use in uses]
    return {"role": "user", "content": blocks}


def gathered(stream: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message and the closing events of a stream, put together as the wire notes say."""
    import json  # noqa: PLC0415

    blocks: dict[int, dict[str, Any]] = {}
    closing: dict[str, Any] = {}
    for event in stream:
        (kind, data), *_ = event.items()
        if kind == "contentBlockStart":
            blocks[data["contentBlockIndex"]] = {"toolUse": {**data["start"]["toolUse"], "input": ""}}
        elif kind == "contentBlockDelta":
            _add(blocks, data["contentBlockIndex"], data["delta"])
        else:
            closing |= {kind: data}
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return {"role": "assistant", "content": [blocks[index] for index in sorted(blocks)]}, closing


def _add(blocks: dict[int, dict[str, Any]], index: int, delta: dict[str, Any]) -> None:
    if "text" in delta:
        block = blocks.setdefault(index, {"text": ""})
        block["text"] += delta["text"]
    elif "toolUse" in delta:
        blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
    else:
        block = blocks.setdefault(index, {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}})
        for key, piece in delta["reasoningContent"].items():
            block["reasoningContent"]["reasoningText"][key] += piece


@pytest.mark.parametrize(("model", "settings"), [(NOVA, {}), (CLAUDE, {}), (CLAUDE, THINKING)])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_loop(client: Any, model: str, settings: Any, *, streamed: bool) -> None:
    def answer(*messages: Any) -> Any:
        parameters = {"modelId": model, "messages": list(messages), "toolConfig": TOOLS, **settings}
        if streamed:
            message, closing = gathered(client.converse_stream(**parameters)["stream"])
            return message, closing["messageStop"]["stopReason"], closing["metadata"]["usage"]
        response = client.converse(**parameters)
        return response["output"]["message"], response["stopReason"], response["usage"]

    first, reason, usage = answer(USER_TURN)
    assert reason == "tool_use"
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]
    assert ("reasoningContent" in first["content"][0]) == bool(settings)
    second, reason, _ = answer(USER_TURN, first, results(first))
    assert reason == "end_turn"
    assert second["content"][-1]["text"] == ANSWER


def test_thinking_that_was_changed_is_refused(client: Any) -> None:
    parameters: Any = {"modelId": CLAUDE, "toolConfig": TOOLS, **THINKING}
    first = client.converse(messages=[USER_TURN], **parameters)["output"]["message"]
    first["content"][0]["reasoningContent"]["reasoningText"]["text"] = "Something else."
    with pytest.raises(client.exceptions.ValidationException, match="Invalid `signature`"):
        client.converse(messages=[USER_TURN, first, results(first)], **parameters)


def test_stops_and_limits(client: Any) -> None:
    count: Any = [{"role": "user", "content": [{"text": "Count to 50"}]}]
    stopped = client.converse(
        modelId=NOVA,
        messages=count,
        inferenceConfig={"stopSequences": [" 5"]},
        additionalModelResponseFieldPaths=["/stop_sequence"],
    )
    assert stopped["stopReason"] == "stop_sequence"
    assert stopped["additionalModelResponseFields"] == {"stop_sequence": " 5"}
    cut = client.converse(modelId=NOVA, messages=count, inferenceConfig={"maxTokens": 4})
    assert (cut["stopReason"], cut["usage"]["outputTokens"]) == ("max_tokens", 4)


def test_a_marked_prefix_is_written_then_read(client: Any) -> None:
    system: Any = [{"text": "Be brief. " * 2000}, {"cachePoint": {"type": "default"}}]
    first, second = (client.converse(modelId=CLAUDE, messages=[USER_TURN], system=system)["usage"] for _ in range(2))
    assert first["cacheWriteInputTokens"] == second["cacheReadInputTokens"] > 1024
    for usage in (first, second):
        parts = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
        assert usage["totalTokens"] == sum(usage[part] for part in parts)


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("status=400", "ValidationException"),
        ("status=403", "AccessDeniedException"),
        ("error=rate_limit; retry_after=1", "ThrottlingException"),
        ("error=server", "InternalServerException"),
        ("error=overloaded", "ServiceUnavailableException"),
        ("error=timeout", "ModelTimeoutException"),
    ],
)
def test_errors_have_their_class(dragoman_sim: Simulator, fault: str, name: str) -> None:
    client = connect(dragoman_sim, fault)
    with pytest.raises(getattr(client.exceptions, name)):
        client.converse(modelId=NOVA, messages=[USER_TURN])
    with pytest.raises(getattr(client.exceptions, name)):
        client.converse_stream(modelId=NOVA, messages=[USER_TURN])
    client.close()


def test_errors_inside_a_stream(dragoman_sim: Simulator) -> None:
    client = connect(dragoman_sim, "fail=2; error=rate_limit")
    with pytest.raises(botocore.exceptions.EventStreamError, match="throttlingException"):
        list(client.converse_stream(modelId=NOVA, messages=[USER_TURN])["stream"])
    client.close()
    client = connect(dragoman_sim, "garbage=2")
    with pytest.raises(Exception, match=r"[Cc]hecksum"):
        list(client.converse_stream(modelId=NOVA, messages=[USER_TURN])["stream"])
    client.close()


def test_an_unknown_model(client: Any) -> None:
    with pytest.raises(client.exceptions.ValidationException, match="model identifier is invalid"):
        client.converse(modelId="nobody", messages=[USER_TURN])
