"""litellm: Chat Completions as the intermediate format; a config object per provider, an adapter per client format.

Measured are the mapping of the parameters and the conversion of the body, not the code around them in `completion`:
routing, logging, cost tracking, and a filter of parameters that would take as long again.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import httpx
import litellm
import orjson
from litellm.google_genai.adapters.transformation import GoogleGenAIAdapter
from litellm.litellm_core_utils.llm_response_utils.convert_dict_to_response import convert_to_model_response_object
from litellm.llms.anthropic.chat.handler import ModelResponseIterator as AnthropicChunks
from litellm.llms.anthropic.pass_through.adapters.transformation import AnthropicAdapter
from litellm.llms.vertex_ai.gemini.transformation import transform_request_body
from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import ModelResponseIterator as GeminiChunks

from benchmarks.bodies import MODELS, Format
from benchmarks.candidates import Job, Streamer, Translator
from benchmarks.peers import server_sent

Json = dict[str, Any]

_OPENAI: Final = litellm.OpenAIGPTConfig()
_ANTHROPIC: Final = litellm.AnthropicConfig()
_GEMINI: Final = litellm.GoogleAIStudioGeminiConfig()
_CONVERSE: Final = litellm.AmazonConverseConfig()
_OLLAMA: Final = litellm.OllamaChatConfig()
_ANTHROPIC_CLIENT: Final = AnthropicAdapter()
_GEMINI_CLIENT: Final = GoogleGenAIAdapter()
# What the response readers need of the HTTP exchange and of the call: headers, status, parameters.
_EXCHANGE: Final = SimpleNamespace(headers={}, status_code=200)
_LOGGING: Final = SimpleNamespace(optional_params={}, model_call_details={}, post_call=lambda **_: None)


def _read_openai(body: Json, model: str) -> Json:
    return {**body, "model": model}


def _read_anthropic(body: Json, model: str) -> Json:
    return dict(_ANTHROPIC_CLIENT.translate_completion_input_params({**body, "model": model}))


def _read_gemini(body: Json, model: str) -> Json:
    contents, config = body.pop("contents"), body.pop("generationConfig", {})
    completion: Json = _GEMINI_CLIENT.translate_generate_content_to_completion(model, contents, config, **body)
    return completion


def _write_openai(request: Json) -> Json:
    model, messages = request.pop("model"), request.pop("messages")
    parameters = _OPENAI.map_openai_params(request, {}, model, False)  # noqa: FBT003 - their signature
    body: Json = _OPENAI.transform_request(model, messages, parameters, {}, {})
    return body


def _write_anthropic(request: Json) -> Json:
    model, messages = request.pop("model"), request.pop("messages")
    parameters = _ANTHROPIC.map_openai_params(request, {}, model, False)  # noqa: FBT003 - their signature
    body: Json = _ANTHROPIC.transform_request(model, messages, parameters, {}, {})
    return body


def _write_gemini(request: Json) -> Json:
    model, messages = request.pop("model"), request.pop("messages")
    body: Json = transform_request_body(
        messages=messages,
        model=model,
        optional_params=_GEMINI.map_openai_params(request, {}, model, False),  # noqa: FBT003 - their signature
        custom_llm_provider="gemini",
        litellm_params={},
        cached_content=None,
    )
    return body


def _write_converse(request: Json) -> Json:
    model, messages = request.pop("model"), request.pop("messages")
    parameters = _CONVERSE.map_openai_params(request, {}, model, False)  # noqa: FBT003 - their signature
    body: Json = _CONVERSE.transform_request(model, messages, parameters, {}, {})
    return body


def _write_ollama(request: Json) -> Json:
    model, messages = request.pop("model"), request.pop("messages")
    parameters = _OLLAMA.map_openai_params(request, {}, model, False)  # noqa: FBT003 - their signature
    body: Json = _OLLAMA.transform_request(model, messages, parameters, {}, {})
    return body


_READ: Final = {"openai-chat": _read_openai, "anthropic-messages": _read_anthropic, "gemini": _read_gemini}
_WRITE: Final = {
    "openai-chat": _write_openai,
    "anthropic-messages": _write_anthropic,
    "gemini": _write_gemini,
    "bedrock-converse": _write_converse,  # only for fidelity_peers.py, like the next one
    "ollama-chat": _write_ollama,
}


def _answer_from_openai(body: Json) -> Any:
    return convert_to_model_response_object(response_object=body, model_response_object=litellm.ModelResponse())


def _answer_from_anthropic(body: Json) -> Any:
    return _ANTHROPIC.transform_parsed_response(body, _EXCHANGE, litellm.ModelResponse())


def _answer_from_gemini(body: Json) -> Any:
    return _GEMINI.transform_google_generate_content_to_openai_model_response(
        body, litellm.ModelResponse(), MODELS["gemini"], _LOGGING, _EXCHANGE
    )


def _answer_from_converse(body: Json) -> Any:
    given, model = _exchanged(body), MODELS["bedrock-converse"]
    empty = litellm.ModelResponse()
    return _CONVERSE._transform_response(model, given, empty, False, _LOGGING, {}, "", {}, [], None)  # noqa: FBT003


def _answer_from_ollama(body: Json) -> Any:
    given, model = _exchanged(body), MODELS["ollama-chat"]
    return _OLLAMA.transform_response(model, given, litellm.ModelResponse(), _LOGGING, {}, [], {}, {}, None)


def _exchanged(body: Json) -> httpx.Response:
    return httpx.Response(200, json=body, request=httpx.Request("POST", "https://offline.invalid"))


def _answer_to_openai(answer: Any) -> bytes:
    text: str = answer.model_dump_json(exclude_none=True)
    return text.encode()


def _answer_to_anthropic(answer: Any) -> bytes:
    return orjson.dumps(_ANTHROPIC_CLIENT.translate_completion_output_params(answer))


def _answer_to_gemini(answer: Any) -> bytes:
    return orjson.dumps(_GEMINI_CLIENT.translate_completion_to_generate_content(answer))


_ANSWER_FROM: Final = {
    "openai-chat": _answer_from_openai,
    "anthropic-messages": _answer_from_anthropic,
    "gemini": _answer_from_gemini,
    "bedrock-converse": _answer_from_converse,
    "ollama-chat": _answer_from_ollama,
}
_ANSWER_TO: Final = {
    "openai-chat": _answer_to_openai,
    "anthropic-messages": _answer_to_anthropic,
    "gemini": _answer_to_gemini,
}


_CHUNKS: Final[dict[Format, Callable[[], Any]]] = {
    "anthropic-messages": lambda: AnthropicChunks(None, sync_stream=True),
    "gemini": lambda: GeminiChunks(None, sync_stream=True, logging_obj=_LOGGING),
}


def streamer(job: Job, source: Format, target: Format) -> Streamer | None:
    """Its chunk parsers alone, to Chat chunks, without the wrapper around them that every caller needs."""
    if job is not Job.STREAM or target != "openai-chat" or source not in _CHUNKS:
        return None

    def translate(chunks: Sequence[bytes]) -> bytes:
        parse = _CHUNKS[source]().chunk_parser
        parsed = (parse(chunk) for chunk in server_sent.read(chunks))
        return b"".join(server_sent.event(_answer_to_openai(chunk)) for chunk in parsed if chunk is not None)

    return translate


def translator(job: Job, source: Format, target: Format) -> Translator | None:
    if job is Job.RESPONSE:
        answer_from, answer_to = _ANSWER_FROM[source], _ANSWER_TO[target]
        return lambda body: answer_to(answer_from(orjson.loads(body)))
    read, write, model = _READ[source], _WRITE[target], MODELS[target]
    return lambda body: orjson.dumps(write(read(orjson.loads(body), model)))
