"""Embeddings of every API that has them. A vector depends only on its text: equal texts have equal vectors."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Mapping, Sequence

from dragoman.sim import tokens
from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Answered, Problem, Refused, Route, json_reply, route
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules.common import text_at

_MOST_TEXTS = {"openai": 2_048, "gemini": 100, "vertex": 250, "cohere": 96}
_LONGEST = 3_072
_TASKS = frozenset(
    {
        "RETRIEVAL_QUERY",
        "RETRIEVAL_DOCUMENT",
        "SEMANTIC_SIMILARITY",
        "CLASSIFICATION",
        "CLUSTERING",
        "QUESTION_ANSWERING",
        "FACT_VERIFICATION",
        "CODE_RETRIEVAL_QUERY",
    }
)
_INPUT_TYPES = frozenset({"search_document", "search_query", "classification", "clustering", "image"})
_TITAN_SIZES = (256, 512, 1_024)


def _invalid(message: str, param: str | None = None) -> Refused:
    return Refused(Problem("invalid", message, param=param))


def vector_of(text: str, size: int) -> list[float]:
    """A unit vector derived from the text."""
    needed = size * 2
    stream = hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(needed)
    numbers = [value / 32_768 - 1 for value in struct.unpack(f"<{size}H", stream)]
    length = math.sqrt(sum(one * one for one in numbers)) or 1.0
    return [one / length for one in numbers]


def count(texts: Sequence[object]) -> int:
    return sum(tokens.count(one) if isinstance(one, str) else len(one) if isinstance(one, list) else 1 for one in texts)


def _size(given: object, usual: int, param: str) -> int:
    if given is None:
        return usual
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= _LONGEST:
        raise _invalid(f"{param} must be a number from 1 to {_LONGEST}", param)
    return given


def _check_keys(body: JsonObject, known: frozenset[str]) -> None:
    for name in body:
        if name not in known:
            raise _invalid(f"Unknown parameter: {name!r}.", name)


def _texts(value: object, param: str, most: int) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise _invalid(f"{param} must be a list of texts", param)
    if len(value) > most:
        raise _invalid(f"{param}: at most {most} texts, got {len(value)}", param)
    return [str(one) for one in value]


# --- OpenAI -------------------------------------------------------------------------------------------------------

_OPENAI_KEYS = frozenset({"input", "model", "dimensions", "encoding_format", "user"})


def openai(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check_keys(body, _OPENAI_KEYS)
    model = text_at(body, "model")
    if not model:
        raise _invalid("you must provide a model parameter", "model")
    if "embedding" not in model and not context.any_model:
        raise Refused(Problem("no_model", f"The model `{model}` does not exist or you do not have access to it."))
    texts = _openai_inputs(body.get("input"))
    if body.get("dimensions") is not None and "ada" in model:
        raise _invalid("This model does not support specifying dimensions.", "dimensions")
    form = body.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise _invalid("encoding_format must be float or base64", "encoding_format")
    size = _size(body.get("dimensions"), 3_072 if "large" in model else 1_536, "dimensions")
    vectors = [vector_of(str(one), size) for one in texts]
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(one) if form == "base64" else one}
        for index, one in enumerate(vectors)
    ]
    used = count(texts)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return json_reply({"object": "list", "data": data, "model": model, "usage": usage})


def _openai_inputs(given: object) -> list[object]:
    texts: list[object] = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    if texts and all(isinstance(one, int) for one in texts):
        texts = [texts]
    if not texts or any(not isinstance(one, str | list) or not one for one in texts):
        raise _invalid("'$.input' is invalid. Please check the API reference.", "input")
    if len(texts) > _MOST_TEXTS["openai"]:
        raise _invalid("'$.input' is too long: at most 2048 entries", "input")
    return texts


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


# --- Gemini and Vertex --------------------------------------------------------------------------------------------


def _content(value: object) -> str:
    parts = value.get("parts") if isinstance(value, Mapping) else None
    if not isinstance(parts, list) or not parts:
        raise _invalid("content.parts: must not be empty")
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    if len(texts) != len(parts) or not all(isinstance(one, str) for one in texts):
        raise _invalid("content.parts: only texts are simulated")
    return "".join(str(one) for one in texts)


def _task(value: object, title: object) -> None:
    if value is not None and value not in _TASKS:
        raise _invalid(f"Invalid value at 'task_type': {value!r}")
    if title is not None and value != "RETRIEVAL_DOCUMENT":
        raise _invalid("title is allowed with the task type RETRIEVAL_DOCUMENT only")


def _gemini_vector(item: JsonObject) -> tuple[str, list[float]]:
    _check_keys(item, frozenset({"model", "content", "taskType", "title", "outputDimensionality"}))
    _task(item.get("taskType"), item.get("title"))
    text = _content(item.get("content"))
    return text, vector_of(text, _size(item.get("outputDimensionality"), 3_072, "outputDimensionality"))


def gemini_one(context: RequestContext) -> Answered:
    text, vector = _gemini_vector(context.exchange.json())
    return json_reply({"embedding": {"values": vector}, "usageMetadata": {"promptTokenCount": count([text])}})


def gemini_many(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check_keys(body, frozenset({"requests"}))
    items = body.get("requests")
    if not isinstance(items, list) or not items or len(items) > _MOST_TEXTS["gemini"]:
        raise _invalid("requests: from 1 to 100 are allowed")
    model = f"models/{context.exchange.params['model']}"
    found = []
    for item in items:
        if not isinstance(item, dict) or item.get("model") != model:
            raise _invalid(f"requests[].model must be {model!r}")
        found.append(_gemini_vector(item))
    used = count([text for text, _ in found])
    return json_reply(
        {"embeddings": [{"values": one} for _, one in found], "usageMetadata": {"promptTokenCount": used}}
    )


def vertex_predict(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check_keys(body, frozenset({"instances", "parameters"}))
    items, model = body.get("instances"), context.exchange.params["model"]
    most = 1 if model.startswith("gemini") else _MOST_TEXTS["vertex"]
    if not isinstance(items, list) or not items or len(items) > most:
        raise _invalid(f"instances: from 1 to {most} are allowed")
    given = body.get("parameters")
    parameters = given if isinstance(given, dict) else {}
    _check_keys(parameters, frozenset({"outputDimensionality", "autoTruncate"}))
    size = _size(parameters.get("outputDimensionality"), 768, "outputDimensionality")
    predictions = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("content"), str):
            raise _invalid("instances[].content must be a text")
        _check_keys(item, frozenset({"content", "task_type", "title", "mimeType"}))
        _task(item.get("task_type"), item.get("title"))
        text = str(item["content"])
        statistics = {"token_count": count([text]), "truncated": False}
        predictions.append({"embeddings": {"values": vector_of(text, size), "statistics": statistics}})
    return json_reply({"predictions": predictions, "metadata": {"billableCharacterCount": 0}})


def vertex_content(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check_keys(body, frozenset({"content", "embedContentConfig"}))
    given = body.get("embedContentConfig")
    config = given if isinstance(given, dict) else {}
    _task(config.get("taskType"), config.get("title"))
    text = _content(body.get("content"))
    vector = vector_of(text, _size(config.get("outputDimensionality"), 3_072, "outputDimensionality"))
    return json_reply({"embedding": {"values": vector}, "usageMetadata": {"promptTokenCount": count([text])}})


# --- Ollama -------------------------------------------------------------------------------------------------------


def ollama_embed(context: RequestContext) -> Answered:
    body = context.exchange.json()
    model, given = text_at(body, "model"), body.get("input")
    if not model:
        raise _invalid("model is required")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise _invalid("invalid input type")
    size = _size(body.get("dimensions"), 768, "dimensions")
    vectors = [vector_of(str(one), size) for one in texts]
    timing = {"total_duration": 14_143_917, "load_duration": 1_019_500, "prompt_eval_count": count(texts)}
    return json_reply({"model": model, "embeddings": vectors, **timing})


def ollama_older(context: RequestContext) -> Answered:
    body = context.exchange.json()
    if not text_at(body, "model"):
        raise _invalid("model is required")
    return json_reply({"embedding": vector_of(text_at(body, "prompt"), 768)})


# --- Cohere and Bedrock -------------------------------------------------------------------------------------------

_COHERE_KEYS = frozenset(
    {
        "model",
        "input_type",
        "texts",
        "inputs",
        "images",
        "embedding_types",
        "output_dimension",
        "truncate",
        "max_tokens",
    }
)


def _cohere(body: JsonObject, context: RequestContext) -> JsonObject:
    _check_keys(body, _COHERE_KEYS)
    if body.get("input_type") not in _INPUT_TYPES:
        raise _invalid("invalid request: valid input_type must be provided with the provided model", "input_type")
    if body.get("truncate") not in (None, "NONE", "START", "END"):
        raise _invalid("invalid request: truncate must be NONE, START or END", "truncate")
    texts = _texts(body.get("texts"), "texts", _MOST_TEXTS["cohere"])
    vectors = [vector_of(one, _size(body.get("output_dimension"), 1_536, "output_dimension")) for one in texts]
    types = body.get("embedding_types", ["float"])
    by_type: dict[str, object] = {"float": vectors, "base64": [_base64(one) for one in vectors]}
    if not isinstance(types, list) or any(one not in by_type for one in types):
        raise _invalid("invalid request: only float and base64 are simulated", "embedding_types")
    return {
        "id": context.exchange.mark()[:32],
        "embeddings": {str(one): by_type[str(one)] for one in types},
        "texts": texts,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": count(texts)}},
        "response_type": "embeddings_by_type",
    }


def cohere(context: RequestContext) -> Answered:
    body = context.exchange.json()
    if not text_at(body, "model"):
        raise _invalid("invalid request: model is required", "model")
    return json_reply(_cohere(body, context))


def bedrock(context: RequestContext) -> Answered:
    body, model = context.exchange.json(), context.exchange.params["model"]
    if "cohere." in model:
        _check_keys(body, _COHERE_KEYS - {"model"})
        answer = dict(_cohere(body, context))
        answer.pop("meta")
        texts = answer["texts"] if isinstance(answer["texts"], list) else []
        if "embedding_types" not in body and isinstance(vectors := answer["embeddings"], dict):
            answer |= {"embeddings": vectors["float"], "response_type": "embeddings_floats"}
        return json_reply(answer, headers={"x-amzn-bedrock-input-token-count": str(count(texts))})
    _check_keys(body, frozenset({"inputText", "dimensions", "normalize", "embeddingTypes"}))
    text, size = body.get("inputText"), body.get("dimensions", 1_024)
    if not isinstance(text, str) or not text:
        raise _invalid("Malformed input request: #/inputText: expected minLength: 1, please reformat your input.")
    if size not in _TITAN_SIZES or not isinstance(size, int):
        raise _invalid(f"Malformed input request: #/dimensions: {size!r} is not a valid enum value.")
    vector = vector_of(text, size)
    used = count([text])
    return json_reply({"embedding": vector, "embeddingsByType": {"float": vector}, "inputTextTokenCount": used})


_MODEL = r"(?P<model>[^/:]+)"
_VERTEX_MODEL = rf"/(?P<version>v1|v1beta1)(?:/projects/[^/]+/locations/[^/]+)?/publishers/google/models/{_MODEL}"
OPENAI: tuple[Route, ...] = (route("POST", r"/v1/embeddings", openai),)
GEMINI: tuple[Route, ...] = (
    route("POST", rf"/(?P<version>v1|v1beta|v1alpha)/models/{_MODEL}:embedContent", gemini_one),
    route("POST", rf"/(?P<version>v1|v1beta|v1alpha)/models/{_MODEL}:batchEmbedContents", gemini_many),
)
VERTEX: tuple[Route, ...] = (
    route("POST", rf"{_VERTEX_MODEL}:predict", vertex_predict),
    route("POST", rf"{_VERTEX_MODEL}:embedContent", vertex_content),
)
OLLAMA: tuple[Route, ...] = (
    route("POST", r"/api/embed", ollama_embed),
    route("POST", r"/api/embeddings", ollama_older),
)
COHERE: tuple[Route, ...] = (route("POST", r"/v2/embed", cohere),)
BEDROCK: tuple[Route, ...] = (
    route("POST", r"/model/(?P<model>(?:[\w-]+\.)?(?:amazon\.titan-embed|cohere\.embed)[^/]*)/invoke", bedrock),
)
