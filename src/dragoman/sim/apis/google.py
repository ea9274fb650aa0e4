"""What the developer API and Vertex AI share: errors, keys, the list of models."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.sim import catalogue
from dragoman.sim.exchange import Answered, Exchange, Kind, Problem, Refused, Reply, json_reply
from dragoman.sim.request_context import RequestContext

MAX_BODY = 20 << 20
BAD_REQUEST = 400
CONTEXT_WINDOW = 1_048_576

# kind -> status, message
_USUAL: Mapping[Kind, tuple[int, str]] = {
    "invalid": (400, "Request contains an invalid argument."),
    "bad_json": (400, "Invalid JSON payload received."),
    "authentication": (
        403,
        (
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
            "other form of API consumer identity to call this API."
        ),
    ),
    "wrong_key": (400, "API key not valid. Please pass a valid API key."),
    "permission": (403, "The caller does not have permission"),
    "no_model": (404, "Requested entity was not found."),
    "no_route": (404, "Not Found"),
    "method": (404, "Not Found"),
    "too_large": (400, f"Request payload size exceeds the limit: {MAX_BODY} bytes."),
    "too_long": (400, "The input token count ({got}) exceeds the maximum number of tokens allowed ({limit})."),
    "conflict": (409, "The operation was aborted."),
    "rate_limit": (429, "You exceeded your current quota, please check your plan and billing details."),
    "quota": (429, "You exceeded your current quota, please check your plan and billing details."),
    "timeout": (504, "The request timed out. Please try again."),
    "server": (500, "An internal error has occurred. Please retry."),
    "unavailable": (503, "The service is currently unavailable."),
    "overloaded": (503, "The model is overloaded. Please try again later."),
}
_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_NO_SUCH_PAGE = (
    b"<!DOCTYPE html><title>Error 404 (Not Found)!!1</title><p>The requested URL was not found on this server."
)
UNAUTHENTICATED = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid "
    "authentication credential."
)
BAD_CREDENTIALS = "Request had invalid authentication credentials. Expected OAuth 2 access token."


def api_key(exchange: Exchange) -> str:
    return exchange.headers.get("x-goog-api-key", "") or exchange.query.get("key", "")


def authenticate_by_key(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    if exchange.path.startswith("/upload/") and "upload_id" in exchange.query:
        return None  # the URL of an upload is its credential
    key = api_key(exchange)
    if not key:
        return Problem("authentication")
    return Problem("wrong_key") if keys and key not in keys else None


def authenticate_by_token(exchange: Exchange, keys: frozenset[str]) -> Problem | None:
    """Projects need an OAuth token; express mode needs a key."""
    if "/projects/" not in exchange.path and api_key(exchange):
        return authenticate_by_key(exchange, keys)
    if not exchange.bearer:
        return Problem("authentication", UNAUTHENTICATED, 401)
    return Problem("wrong_key", BAD_CREDENTIALS, 401) if keys and exchange.bearer not in keys else None


def error_of(problem: Problem) -> tuple[int, dict[str, object]]:
    status, message = _USUAL[problem.kind]
    status = problem.status or status
    worded = problem.message or message.format(**problem.numbers)
    if problem.kind == "bad_json":
        worded = f"{message} {problem.message}"
    error: dict[str, object] = {"code": status, "message": worded, "status": _STATUS_NAMES.get(status, "UNKNOWN")}
    if details := _details(problem):
        error["details"] = details
    return status, {"error": error}


def _details(problem: Problem) -> list[dict[str, object]]:
    prefix = "type.googleapis.com/google.rpc."
    details: list[dict[str, object]] = []
    if problem.kind == "wrong_key" and problem.status is None:
        service = {"service": "generativelanguage.googleapis.com"}
        reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com", "metadata": service}
        details.append({"@type": f"{prefix}ErrorInfo", **reason})
    if problem.violations:
        fields = [{"field": one.path.removeprefix("$."), "description": one.message} for one in problem.violations]
        details.append({"@type": f"{prefix}BadRequest", "fieldViolations": fields})
    if problem.retry_after is not None:
        details.append({"@type": f"{prefix}RetryInfo", "retryDelay": f"{problem.retry_after:g}s"})
    return details


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    if problem.kind in ("no_route", "method"):
        return Reply(404, _NO_SUCH_PAGE, "text/html; charset=UTF-8")
    status, body = error_of(problem)
    headers = {} if problem.retry_after is None else {"retry-after": str(max(1, round(problem.retry_after)))}
    # Without alt=sse a stream is a JSON array, and its error is an element of it.
    streams = exchange.path.endswith(":streamGenerateContent") and exchange.query.get("alt") != "sse"
    return json_reply([body] if streams else body, status=status, headers=headers)


def failure_event(problem: Problem) -> bytes:
    return b"data: " + msgspec.json.encode(error_of(problem)[1]) + b"\r\n\r\n"


def _model(name: str) -> dict[str, object]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name.replace("-", " ").title(),
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": not name.startswith(("gemini-1", "gemini-2.0")),
    }


def list_models(context: RequestContext) -> Answered:
    models = [_model(name) for name in catalogue.LISTED["google"]]
    return json_reply({"publisherModels" if context.api == "vertex" else "models": models})


def check_model(context: RequestContext, name: str, method: str) -> None:
    if context.any_model or catalogue.exists("google", name):
        return
    version = context.exchange.params.get("version", "v1beta")
    message = (
        f"models/{name} is not found for API version {version}, or is not supported for {method}. Call ListModels to "
    )
    raise Refused(Problem("no_model", f"{message}see the list of available models and their supported methods."))


def show_model(context: RequestContext) -> Answered:
    name = context.exchange.params["model"]
    check_model(context, name, "getModel")
    return json_reply(_model(name))
