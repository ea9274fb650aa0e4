"""pydantic-ai: its own messages as the intermediate format, one model class for each provider.

It has no reader for a provider's request, so this adapter reads OpenAI Chat into its messages, in the simplest way.
It writes requests for all three formats but no responses: a response pair would end at its own message.
"""

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, Final

import orjson
from anthropic import NotGiven, Omit
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.tools import ToolDefinition

from benchmarks.bodies import MODELS, Format
from benchmarks.candidates import Job, Translator

Json = dict[str, Any]


async def _handed_over(**request: object) -> dict[str, object]:
    """Replaces the sending function of the vendor's SDK: its arguments are the result of pydantic-ai's conversion."""
    return request


_ANTHROPIC_CLIENT: Final = SimpleNamespace(
    base_url="https://offline.invalid", beta=SimpleNamespace(messages=SimpleNamespace(create=_handed_over))
)
_ANTHROPIC: Final = AnthropicModel(
    MODELS["anthropic-messages"], provider=AnthropicProvider(anthropic_client=_ANTHROPIC_CLIENT)
)
_GOOGLE: Final = GoogleModel(MODELS["gemini"], provider=GoogleProvider(api_key="offline"))


def _finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Its mapping functions are async because they may download; without downloads they end at the first step."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("pydantic-ai waited although there is nothing to download")


def _message(message: Json, names: dict[str, str]) -> ModelMessage:
    match message["role"]:
        case "system":
            return ModelRequest(parts=[SystemPromptPart(message["content"])])
        case "user":
            return ModelRequest(parts=[UserPromptPart(message["content"])])
        case "tool":
            id = message["tool_call_id"]
            return ModelRequest(parts=[ToolReturnPart(names[id], message["content"], id)])
    parts: list[TextPart | ToolCallPart] = [TextPart(message["content"])] if message["content"] else []
    for call in message.get("tool_calls", ()):
        names[call["id"]] = call["function"]["name"]
        parts.append(ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"]))
    return ModelResponse(parts=parts)


def _read(body: Json) -> tuple[list[ModelMessage], Json, ModelRequestParameters]:
    names: dict[str, str] = {}
    tools = [
        ToolDefinition(
            name=tool["function"]["name"],
            description=tool["function"]["description"],
            parameters_json_schema=tool["function"]["parameters"],
        )
        for tool in body.get("tools", ())
    ]
    settings = {"max_tokens": body["max_tokens"], "temperature": body["temperature"]}
    return (
        [_message(message, names) for message in body["messages"]],
        settings,
        ModelRequestParameters(function_tools=tools),
    )


def _to_anthropic(body: bytes) -> bytes:
    messages, settings, parameters = _read(orjson.loads(body))
    prepared, parameters = _ANTHROPIC.prepare_request(settings, parameters)
    request = _finished(_ANTHROPIC._messages_create(messages, False, prepared, parameters))  # noqa: FBT003
    return orjson.dumps({key: value for key, value in request.items() if not isinstance(value, Omit | NotGiven)})


def _to_gemini(body: bytes) -> bytes:
    messages, settings, parameters = _read(orjson.loads(body))
    prepared, parameters = _GOOGLE.prepare_request(settings, parameters)
    contents, config = _finished(_GOOGLE._build_content_and_config(messages, prepared, parameters))
    return orjson.dumps({"contents": contents, "config": config}, default=bytes.decode)


_TO: Final = {"anthropic-messages": _to_anthropic, "gemini": _to_gemini}


def translator(job: Job, source: Format, target: Format) -> Translator | None:
    return _TO[target] if job is Job.REQUEST and source == "openai-chat" else None
