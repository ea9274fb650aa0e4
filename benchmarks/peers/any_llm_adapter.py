"""any-llm (any-llm-sdk): Chat Completions as the intermediate format, one converter for each provider.

It reads OpenAI Chat and Anthropic Messages; it writes requests for all three, and responses in the two it reads.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson
from anthropic._models import construct_type as construct_anthropic
from anthropic.types import Message, RawMessageStreamEvent
from any_llm.providers.anthropic.base import BaseAnthropicProvider
from any_llm.providers.gemini.base import GoogleProvider
from any_llm.providers.gemini.utils import _convert_response_to_response_dict
from any_llm.providers.openai.base import BaseOpenAIProvider
from any_llm.types.completion import CompletionParams
from any_llm.types.messages import MessagesParams
from any_llm.utils.messages_compat import chat_completion_to_message_response, messages_params_to_completion_params
from openai._models import construct_type as construct_openai
from openai.types.chat import ChatCompletion

from benchmarks.bodies import MODELS, Format
from benchmarks.candidates import Job, Streamer, Translator
from benchmarks.peers import google_wire, server_sent

Json = dict[str, Any]


def _read_openai(body: Json, model: str) -> CompletionParams:
    del body["model"]
    return CompletionParams(model_id=model, **body)


def _read_anthropic(body: Json, model: str) -> CompletionParams:
    body["model"] = model
    return CompletionParams(**messages_params_to_completion_params(MessagesParams(**body)))


def _write_openai(parameters: CompletionParams) -> bytes:
    body = BaseOpenAIProvider._convert_completion_params(parameters)
    return orjson.dumps({"model": parameters.model_id, "messages": parameters.messages, **body})


def _write_anthropic(parameters: CompletionParams) -> bytes:
    return orjson.dumps(BaseAnthropicProvider._convert_completion_params(parameters, provider_name="anthropic"))


def _write_gemini(parameters: CompletionParams) -> bytes:
    body = GoogleProvider._convert_completion_params(parameters, provider_name="gemini")
    return google_wire.request_json(body["contents"], body["config"])


_READ: Final = {"openai-chat": _read_openai, "anthropic-messages": _read_anthropic}
_WRITE: Final = {"openai-chat": _write_openai, "anthropic-messages": _write_anthropic, "gemini": _write_gemini}


def _completion_from_openai(body: Json) -> Any:
    return BaseOpenAIProvider._convert_completion_response(construct_openai(type_=ChatCompletion, value=body))


def _completion_from_anthropic(body: Json) -> Any:
    return BaseAnthropicProvider._convert_completion_response(construct_anthropic(type_=Message, value=body))


def _completion_from_gemini(body: Json) -> Any:
    answer = _convert_response_to_response_dict(google_wire.response(body), provider_name="gemini")
    return GoogleProvider._convert_completion_response((answer, MODELS["gemini"]))


_COMPLETION: Final = {
    "openai-chat": _completion_from_openai,
    "anthropic-messages": _completion_from_anthropic,
    "gemini": _completion_from_gemini,
}


def _request(source: Format, target: Format) -> Translator | None:
    read, write, model = _READ.get(source), _WRITE[target], MODELS[target]
    if read is None:
        return None
    return lambda body: write(read(orjson.loads(body), model))


def _response(source: Format, target: Format) -> Translator | None:
    completion = _COMPLETION[source]
    if target == "gemini":
        return None
    if target == "anthropic-messages":
        return lambda body: _json(chat_completion_to_message_response(completion(orjson.loads(body))))
    return lambda body: _json(completion(orjson.loads(body)))


def _json(model: Any) -> bytes:
    text: str = model.model_dump_json(exclude_none=True)
    return text.encode()


def _chunk_from_anthropic() -> Callable[[Json], Any]:
    convert = BaseAnthropicProvider._convert_completion_chunk_response
    return lambda event: convert(construct_anthropic(type_=RawMessageStreamEvent, value=event), model_id="claude")


def _chunk_from_gemini() -> Callable[[Json], Any]:
    convert, counter = GoogleProvider._convert_completion_chunk_response, [0]
    return lambda chunk: convert(google_wire.response(chunk), tool_call_counter=counter)


_CHUNK: Final = {"anthropic-messages": _chunk_from_anthropic, "gemini": _chunk_from_gemini}


def streamer(job: Job, source: Format, target: Format) -> Streamer | None:
    """To Chat chunks. The further conversion to Messages starts from these and is not measured."""
    if job is not Job.STREAM or target != "openai-chat":
        return None

    def translate(chunks: Sequence[bytes]) -> bytes:
        convert = _CHUNK[source]()
        return b"".join(server_sent.event(_json(convert(chunk))) for chunk in server_sent.read(chunks))

    return translate


def translator(job: Job, source: Format, target: Format) -> Translator | None:
    return _request(source, target) if job is Job.REQUEST else _response(source, target)
