"""The gateway's own errors, with the messages, types and codes that clients of each format expect."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from dragoman.codecs.encoded import Encoded
from dragoman.errors import DecodeError, EncodeError, LimitExceeded
from dragoman.gateway.http_request import BadRequest, Head
from dragoman.ir import Failure, FailureKind
from dragoman.translate import encode_error

_NO_MODEL: Mapping[str, Failure] = {
    "openai-chat": Failure(
        "not_found",
        "The model `{model}` does not exist or you do not have access to it.",
        404,
        code="model_not_found",
        raw_type="invalid_request_error",
    ),
    "openai-responses": Failure(
        "invalid_request",
        "The requested model '{model}' does not exist.",
        400,
        code="model_not_found",
        parameter="model",
        raw_type="invalid_request_error",
    ),
    "anthropic-messages": Failure("not_found", "model: {model}", 404),
    "gemini": Failure(
        "not_found",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
        "ListModels to see the list of available models and their supported methods.",
        404,
    ),
    "vertex": Failure("not_found", "Publisher Model `{model}` was not found or you have no access to it.", 404),
    "ollama-chat": Failure("not_found", "model '{model}' not found", 404),
    "cohere-chat": Failure(
        "not_found",
        "model '{model}' not found, make sure the correct model ID was used and that you have access to the model.",
        404,
    ),
    "bedrock-converse": Failure("invalid_request", "The provided model identifier is invalid.", 400),
}
_NO_KEY: Mapping[str, Failure] = {
    "openai-chat": Failure(
        "authentication",
        "You didn't provide an API key. Provide it in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY).",
        401,
        raw_type="invalid_request_error",
    ),
    "anthropic-messages": Failure("authentication", "x-api-key header is required", 401),
    "gemini": Failure(
        "permission",
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
        "other form of API consumer identity to call this API.",
        403,
    ),
    "ollama-chat": Failure("authentication", "unauthorized", 401),
    "cohere-chat": Failure("authentication", "no api key supplied", 401),
    "bedrock-converse": Failure("permission", "Missing Authentication Token", 403),
}
_WRONG_KEY: Mapping[str, Failure] = {
    "openai-chat": Failure(
        "authentication",
        "Incorrect API key provided.",
        401,
        code="invalid_api_key",
        raw_type="invalid_request_error",
    ),
    "anthropic-messages": Failure("authentication", "invalid x-api-key", 401),
    "gemini": Failure(
        "invalid_request",
        "API key not valid. Please pass a valid API key.",
        400,
        details=[
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }
        ],
    ),
    "ollama-chat": Failure("authentication", "unauthorized", 401),
    "cohere-chat": Failure("authentication", "invalid api token", 401),
    "bedrock-converse": Failure("permission", "The security token included in the request is invalid.", 403),
}
# Formats that share the messages of another one.
_LIKE: Mapping[str, str] = {
    "openai-responses": "openai-chat",
    "vertex": "gemini",
    "gemini-interactions": "gemini",
}


def _error_for(table: Mapping[str, Failure], format: str) -> Failure:
    return table.get(format) or table[_LIKE[format]]


def unknown_model(format: str, model: str, hint: str = "") -> Failure:
    failure = _error_for(_NO_MODEL, format)
    message = failure.message.replace("{model}", model)
    return structs.replace(failure, message=f"{message} ({hint})" if hint else message)


def missing_key(format: str) -> Failure:
    return _error_for(_NO_KEY, format)


def wrong_key(format: str) -> Failure:
    return _error_for(_WRONG_KEY, format)


def unknown_path(format: str, head: Head, *, other_method: bool) -> Failure:  # noqa: ARG001
    if other_method:
        return Failure("invalid_request", f"Method {head.method} is not allowed for {head.path}", 405)
    return Failure("not_found", f"Unknown request URL: {head.method} {head.path}", 404)


_KIND_OF_BAD: Mapping[int, FailureKind] = {413: "too_large", 408: "timeout", 431: "too_large", 503: "overloaded"}


def bad_request(bad: BadRequest) -> Failure:
    kind = _KIND_OF_BAD.get(bad.status, "invalid_request")
    return Failure(kind, str(bad), bad.status, retry_after=1.0 if kind == "overloaded" else None)


def unreadable_request(error: DecodeError) -> Failure:
    """Return the error for a body that does not match its format."""
    kind: FailureKind = "too_large" if isinstance(error, LimitExceeded) else "invalid_request"
    parameter = error.path.removeprefix("$").removeprefix(".") or None
    return Failure(kind, f"expected {error.expected}, got {error.got} - at {error.path}", None, parameter=parameter)


def unencodable_request(error: EncodeError) -> Failure:
    parameter = error.path.removeprefix("$").removeprefix(".") or None
    return Failure("invalid_request", str(error), 400, parameter=parameter)


def encode_failure(failure: Failure, format: str) -> Encoded:
    return encode_error(failure, format)
