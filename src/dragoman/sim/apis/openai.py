"""What all of OpenAI's endpoints share: keys, errors, headers, the list of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dragoman.sim import catalogue
from dragoman.sim.exchange import Answered, Exchange, Kind, Problem, Refused, Reply, json_reply
from dragoman.sim.request_context import RequestContext

MAX_BODY = 64 << 20
CONTEXT_WINDOW = 400_000
CREATED = 1_700_000_000

# kind -> status, type, code, message
_USUAL: Mapping[Kind, tuple[int, str, str | None, str]] = {
    "invalid": (400, "invalid_request_error", None, "Invalid request."),
    "bad_json": (400, "invalid_request_error", None, "We could not parse the JSON body of your request."),
    "authentication": (
        401,
        "invalid_request_error",
        None,
        (
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
            "auth (i.e. Authorization: Bearer YOUR_KEY)."
        ),
    ),
    "wrong_key": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "permission": (403, "invalid_request_error", None, "You are not allowed to do this with this API key."),
    "no_model": (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    "no_route": (404, "invalid_request_error", None, "Invalid URL"),
    "method": (405, "invalid_request_error", "method_not_supported", "Not allowed."),
    "too_large": (413, "invalid_request_error", None, "The request body is too large."),
    "too_long": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        (
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {got} tokens. "
            "Please reduce the length of the messages."
        ),
    ),
    "conflict": (409, "invalid_request_error", None, "Conflict."),
    "rate_limit": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    "quota": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "timeout": (408, "server_error", None, "The request timed out."),
    "server": (500, "server_error", None, "The server had an error while processing your request. Sorry about that!"),
    "unavailable": (503, "server_error", None, "The server is temporarily unavailable."),
    "overloaded": (503, "server_error", None, "The engine is currently overloaded, please try again later."),
}


def authenticate(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    # Azure's header.
    key = exchange.bearer or exchange.headers.get("api-key", "")
    if not key:
        return Problem("authentication")
    if keys and key not in keys:
        hidden = f"{key[:3]}{'*' * 8}{key[-4:]}" if len(key) > 12 else "*" * len(key)  # noqa: PLR2004
        where = "You can find your API key at https://platform.openai.com/account/api-keys."
        return Problem("wrong_key", f"Incorrect API key provided: {hidden}. {where}")
    return None


def error_of(problem: Problem) -> tuple[int, dict[str, object]]:
    status, error_type, code, message = _USUAL[problem.kind]
    error: dict[str, object] = {
        "message": problem.message or message.format(**problem.numbers),
        "type": error_type,
        "param": problem.param,
        "code": problem.code or code,
    }
    return problem.status or status, error


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    problem = _with_message(problem, exchange)
    status, error = error_of(problem)
    headers = dict(headers_of(exchange))
    if problem.retry_after is not None:
        headers |= {
            "retry-after": str(max(1, round(problem.retry_after))),
            "retry-after-ms": str(round(problem.retry_after * 1000)),
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": f"{problem.retry_after:g}s",
        }
    return json_reply({"error": error}, status=status, headers=headers)


def _with_message(problem: Problem, exchange: Exchange) -> Problem:
    if problem.kind == "bad_json":
        return replace(problem, message="")
    request = f"{exchange.method} {exchange.path}"
    messages: dict[Kind, str] = {
        "no_route": f"Invalid URL ({request})",
        "method": f"Not allowed to {exchange.method} on {exchange.path}. "
        "(HINT: Perhaps you meant to make a different HTTP request?)",
    }
    return problem if problem.message else replace(problem, message=messages.get(problem.kind, ""))


def headers_of(exchange: Exchange) -> Mapping[str, str]:
    return {
        "x-request-id": f"req_{exchange.mark('request')[:32]}",
        "openai-version": "2020-10-01",
        "openai-organization": "dragoman-simulator",
        "openai-processing-ms": "1",
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-reset-requests": "6ms",
    }


def failure_event(problem: Problem) -> bytes:
    _, error = error_of(problem)
    return b"data: " + json_reply({"error": error}).body + b"\n\n"


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "system"}


def list_models(context: RequestContext) -> Answered:
    models = [_model(name) for name in catalogue.LISTED["openai"]]
    return json_reply({"object": "list", "data": models}, headers=headers_of(context.exchange))


def show_model(context: RequestContext) -> Answered:
    name = context.exchange.params["model"]
    if not context.any_model and not catalogue.exists("openai", name):
        raise Refused(Problem("no_model", f"The model '{name}' does not exist", param="model"))
    return json_reply(_model(name), headers=headers_of(context.exchange))
