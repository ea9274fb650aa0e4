"""LangChain: its own messages as the intermediate format, one package for each provider.

`convert_to_messages` reads OpenAI's messages, `convert_to_openai_messages` Anthropic's; nothing reads Gemini's. It
writes requests for all three formats but no responses: a response pair would end at its own message.
"""

from typing import Any, Final

import orjson
from langchain_anthropic import ChatAnthropic, convert_to_anthropic_tool
from langchain_core.messages import BaseMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_google_genai import ChatGoogleGenerativeAI

from benchmarks.bodies import MODELS, Format
from benchmarks.candidates import Job, Translator
from benchmarks.peers import google_wire

Json = dict[str, Any]

_ANTHROPIC: Final = ChatAnthropic(model=MODELS["anthropic-messages"], api_key="offline")
_GOOGLE: Final = ChatGoogleGenerativeAI(model=MODELS["gemini"], api_key="offline")


def _messages_from_anthropic(body: Json) -> list[Json]:
    messages = convert_to_openai_messages(body["messages"])
    return [{"role": "system", "content": body["system"]}, *messages] if "system" in body else messages


def _to_anthropic(messages: list[BaseMessage], body: Json) -> bytes:
    tools = {}
    if "tools" in body:
        tools = {"tools": [convert_to_anthropic_tool(tool) for tool in body["tools"]], "tool_choice": {"type": "auto"}}
    settings = {"max_tokens": body["max_tokens"], "temperature": body["temperature"]}
    return orjson.dumps(_ANTHROPIC._get_request_payload(messages, **settings, **tools))


def _to_gemini(messages: list[BaseMessage], body: Json) -> bytes:
    settings = {"max_output_tokens": body["max_tokens"], "temperature": body["temperature"]}
    tools = {"tools": body["tools"], "tool_choice": "auto"} if "tools" in body else {}
    request = _GOOGLE._prepare_request(messages, **tools, generation_config=settings)
    return google_wire.request_json(request["contents"], request["config"])


def _openai_to_anthropic(body: bytes) -> bytes:
    request = orjson.loads(body)
    return _to_anthropic(convert_to_messages(request["messages"]), request)


def _openai_to_gemini(body: bytes) -> bytes:
    request = orjson.loads(body)
    return _to_gemini(convert_to_messages(request["messages"]), request)


def _anthropic_to_openai(body: bytes) -> bytes:
    request = orjson.loads(body)
    tools = {}
    if "tools" in request:
        tools = {"tools": [convert_to_openai_tool(tool) for tool in request["tools"]], "tool_choice": "auto"}
    settings = {"max_tokens": request["max_tokens"], "temperature": request["temperature"]}
    return orjson.dumps(
        {"model": MODELS["openai-chat"], "messages": _messages_from_anthropic(request), **settings, **tools}
    )


def _anthropic_to_gemini(body: bytes) -> bytes:
    request = orjson.loads(body)
    if "tools" in request:
        request["tools"] = [convert_to_openai_tool(tool) for tool in request["tools"]]
    return _to_gemini(convert_to_messages(_messages_from_anthropic(request)), request)


_REQUESTS: Final[dict[tuple[Format, Format], Translator]] = {
    ("openai-chat", "anthropic-messages"): _openai_to_anthropic,
    ("openai-chat", "gemini"): _openai_to_gemini,
    ("anthropic-messages", "openai-chat"): _anthropic_to_openai,
    ("anthropic-messages", "gemini"): _anthropic_to_gemini,
}


def translator(job: Job, source: Format, target: Format) -> Translator | None:
    return _REQUESTS.get((source, target)) if job is Job.REQUEST else None
