"""llm-rosetta: an intermediate format with converters, as in dragoman. One pipeline per exchange."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from llm_rosetta import ConversionContext, ConversionPipeline, get_converter_for_provider

from benchmarks.bodies import MODELS, Format
from benchmarks.candidates import Job, Streamer, Translator
from benchmarks.peers import server_sent

_NAMES: Final[dict[str, str]] = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",  # only for fidelity_peers.py
    "anthropic-messages": "anthropic",
    "gemini": "google",
}


def _request(source: Format, target: Format) -> Translator:
    names, model = (_NAMES[source], _NAMES[target]), MODELS.get(target, "gpt-4.1")

    def translate(body: bytes) -> bytes:
        request: dict[str, Any] = orjson.loads(body)
        request["model"] = model
        return orjson.dumps(ConversionPipeline(*names, upstream_model=model).convert_request(request))

    return translate


def _response(source: Format, target: Format) -> Translator:
    """The two halves of the pipeline's response step, because the pipeline has to convert a request first."""
    reader, writer = (get_converter_for_provider(_NAMES[format]) for format in (source, target))

    def translate(body: bytes) -> bytes:
        context = ConversionContext()
        answer = reader.response_from_provider(orjson.loads(body), context=context)
        return orjson.dumps(writer.response_to_provider(answer, context=context))

    return translate


def streamer(job: Job, source: Format, target: Format) -> Streamer | None:
    """The two halves of its stream processor, which requires a request first, too."""
    if job is not Job.STREAM:
        return None
    reader, writer = (get_converter_for_provider(_NAMES[format]) for format in (source, target))

    def translate(chunks: Sequence[bytes]) -> bytes:
        reading, writing = reader.create_stream_context(), writer.create_stream_context()
        written: list[bytes] = []
        for chunk in server_sent.read(chunks):
            for event in reader.stream_response_from_provider(chunk, context=reading):
                answers = writer.stream_response_to_provider(event, context=writing)
                for payload in answers if isinstance(answers, list) else [answers]:
                    if payload:
                        name = payload["type"] if target == "anthropic-messages" else None
                        written.append(server_sent.event(orjson.dumps(payload), name))
        return b"".join(written)

    return translate


def translator(job: Job, source: Format, target: Format) -> Translator | None:
    return _request(source, target) if job is Job.REQUEST else _response(source, target)
