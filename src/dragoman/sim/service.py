"""All simulators as one service: finds the API and its operation, and records requests. Uses no sockets."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import msgspec

from dragoman.sim import catalogue
from dragoman.sim.apis import (
    anthropic_batches,
    anthropic_messages,
    azure,
    bedrock_converse,
    cohere_chat,
    embeddings,
    gemini,
    gemini_batches,
    gemini_interactions,
    ollama_chat,
    openai_batches,
    openai_chat,
    openai_responses,
)
from dragoman.sim.batches import read_batch_script
from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Answered, Api, Exchange, Problem, Refused, Reply, Route, json_reply
from dragoman.sim.faults import HEADER, NO_FAULT, Fault, parse_fault
from dragoman.sim.memory import Memory
from dragoman.sim.request_context import RequestContext
from dragoman.sim.script import Script, ScriptPlayer, read_script


def _add_routes(api: Api, routes: Sequence[Route]) -> Api:
    return replace(api, routes=(*routes, *api.routes))


APIS: tuple[Api, ...] = (
    _add_routes(openai_chat.API, (*openai_batches.ROUTES, *embeddings.OPENAI)),
    openai_responses.API,
    azure.API,
    _add_routes(anthropic_messages.API, anthropic_batches.ROUTES),
    anthropic_messages.VERTEX,
    _add_routes(gemini.GEMINI, (*gemini_batches.ROUTES, *embeddings.GEMINI)),
    gemini_interactions.API,
    gemini_interactions.VERTEX,
    _add_routes(gemini.VERTEX, embeddings.VERTEX),
    _add_routes(ollama_chat.API, embeddings.OLLAMA),
    _add_routes(bedrock_converse.API, embeddings.BEDROCK),
    _add_routes(cohere_chat.API, embeddings.COHERE),
)

# Every API is also mounted under its own name, for paths that several APIs share.
MOUNTS: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai-chat", "openai-responses"),
    "azure": ("azure-openai",),
    "anthropic": ("anthropic-messages",),
    "gemini": ("gemini", "gemini-interactions"),
    "vertex": ("vertex", "anthropic-vertex", "vertex-interactions"),
    "ollama": ("ollama-chat",),
    "bedrock": ("bedrock-converse",),
    "cohere": ("cohere-chat",),
}
# The handler of unknown paths.
_NEIGHBOURHOODS: tuple[tuple[str, str], ...] = (
    (r"/v1/messages", "anthropic-messages"),
    (r"/v1(?:beta|alpha)?/interactions", "gemini-interactions"),
    (r"/v1(?:beta1)?/projects/[^/]+/locations/[^/]+/interactions", "vertex-interactions"),
    (r"/v1(?:beta1)?/(?:projects|publishers)/", "vertex"),
    (r"/v1(?:beta|alpha)/|/v1/models/[^/]+:", "gemini"),
    (r"/api/", "ollama-chat"),
    (r"/model/", "bedrock-converse"),
    (r"/v2/", "cohere-chat"),
    (r"/v1/responses", "openai-responses"),
    (r"/openai/deployments/", "azure-openai"),
    (r"/", "openai-chat"),
)
_SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"}
)
_SECRET_QUERY = frozenset({"key", "access_token"})
HIDDEN = "[hidden]"
# Fixed time of all answers, so that the same request gets the same bytes.
EPOCH = 1_794_700_800
MINUTE = 60.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    # Accepted keys; if empty, any non-empty key is accepted.
    keys: frozenset[str] = frozenset()
    # Accept unknown model names.
    any_model: bool = False
    # Accept signatures not made here, as in recorded conversations.
    any_signature: bool = False
    # Lower than the API's own limit on the size of a body, for tests.
    max_body: int | None = None
    requests_per_minute: int | None = None
    # Smaller than the API's own, for tests.
    context_window: int | None = None
    # Behave like a new account, whose thinking blocks are bound to their conversation.
    binds_thinking: bool = False
    script: Script = Script()
    # Number of requests that are recorded.
    remembered: int = 1_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded request, without keys, and the status of its answer."""

    api: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    status: int

    @property
    def json(self) -> JsonObject:
        value: JsonObject = msgspec.json.decode(self.body)
        return value


@dataclass(frozen=True, slots=True)
class Served:
    answered: Answered
    fault: Fault = NO_FAULT


@dataclass(slots=True)
class Service:
    settings: Settings = field(default_factory=Settings)
    clock: Callable[[], float] = time.monotonic
    memory: Memory = field(default_factory=Memory)
    requests: deque[Recorded] = field(init=False)
    prompter: ScriptPlayer = field(init=False)
    _arrivals: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.requests = deque(maxlen=self.settings.remembered)
        self.prompter = ScriptPlayer(self.settings.script)

    def play(self, script: object) -> None:
        """Starts a script from its first turn; with an empty script the model answers."""
        self.prompter = ScriptPlayer(read_script(script))

    def play_batches(self, script: object) -> None:
        """Scripts batch jobs created from now on."""
        self.memory.shelf.script = read_batch_script(script)

    def reset(self) -> None:
        self.requests.clear()
        self._arrivals.clear()
        self.memory = Memory()
        self.play(self.settings.script)

    def max_body(self, exchange: Exchange) -> int:
        if self.settings.max_body is not None:
            return self.settings.max_body
        found = find(exchange)
        own = None if found.operation is None else found.operation.max_body
        return found.api.max_body if own is None else own

    def respond(self, exchange: Exchange) -> Served:
        found = find(exchange)
        served = self._serve(found)
        status = served.answered.status if isinstance(served.answered, Reply) else 200
        self.requests.append(_record(found, status))
        return served

    def _serve(self, found: Found) -> Served:
        api, exchange = found.api, found.exchange
        context = RequestContext(
            exchange,
            api.name,
            self.prompter,
            self.memory,
            EPOCH,
            any_model=self.settings.any_model,
            any_signature=self.settings.any_signature,
            binds_thinking=self.settings.binds_thinking,
            context_window=self._context_window(api),
        )
        try:
            answered = self._answer(found, context)
        except Refused as refused:
            return Served(api.refusal(refused.problem, exchange), context.fault)
        except RecursionError:
            return Served(api.refusal(Problem("invalid", "The request is nested too deeply."), exchange), context.fault)
        # Without a stream, a failure inside the stream is answered at once.
        if isinstance(answered, Reply) and context.fault.fail is not None and context.fault.problem is not None:
            return Served(api.refusal(context.fault.problem, exchange), context.fault)
        return Served(answered, context.fault)

    def _context_window(self, api: Api) -> int | None:
        smaller = self.settings.context_window
        return api.context_window if smaller is None or api.context_window is None else smaller

    def _answer(self, found: Found, context: RequestContext) -> Answered:
        if found.operation is None:
            raise Refused(Problem("method" if found.other_method else "no_route"))
        if problem := found.api.authenticate(found.exchange, self.settings.keys):
            raise Refused(problem)
        if found.exchange.oversized:
            raise Refused(Problem("too_large"))
        self._admit()
        context.fault = _fault_of(found.exchange)
        if context.fault.refusal is not None:
            raise Refused(context.fault.refusal)
        return found.operation.operation(context)

    def _admit(self) -> None:
        limit = self.settings.requests_per_minute
        if limit is None:
            return
        now = self.clock()
        while self._arrivals and now - self._arrivals[0] >= MINUTE:
            self._arrivals.popleft()
        if len(self._arrivals) >= limit:
            raise Refused(Problem("rate_limit", retry_after=round(MINUTE - (now - self._arrivals[0]), 1)))
        self._arrivals.append(now)


def _fault_of(exchange: Exchange) -> Fault:
    try:
        return parse_fault(exchange.headers.get(HEADER, ""))
    except msgspec.ValidationError as error:
        raise Refused(Problem("invalid", f"{HEADER}: {error}")) from None


# --- finding the API ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    api: Api
    exchange: Exchange
    operation: Route | None
    # The path exists with another method.
    other_method: bool = False


def find(exchange: Exchange) -> Found:
    """The operation for a request; if there is none, the API that reports it."""
    found = _find_among(exchange, APIS)
    if found is not None:
        return found
    # `/openai/deployments/` is Azure's own path, not a mount.
    mounted = re.match(r"/([a-z]+)(/(?!deployments/).*)", exchange.path)
    if mounted and mounted[1] in MOUNTS:
        names = MOUNTS[mounted[1]]
        apis = [api for api in APIS if api.name in names]
        inner = replace(exchange, path=mounted[2])
        return _find_among(inner, apis) or Found(_closest_api(inner, apis), inner, None)
    return Found(_closest_api(exchange, APIS), exchange, None)


def _find_among(exchange: Exchange, apis: Sequence[Api]) -> Found | None:
    matches = [
        (api, one, match) for api in apis for one in api.routes if (match := one.pattern.fullmatch(exchange.path))
    ]
    if not matches:
        return None
    preferred = _api_by_headers(exchange)
    known = [found for found in matches if found[0].name == preferred] or matches
    for api, one, match in known:
        if one.method == exchange.method:
            params = {name: unquote(value) for name, value in match.groupdict(default="").items()}
            return Found(api, replace(exchange, params=params), one)
    return Found(known[0][0], exchange, None, other_method=True)


def _api_by_headers(exchange: Exchange) -> str:
    """Distinguishes APIs with the same path by headers that only one of them has."""
    if "x-goog-api-key" in exchange.headers or "key" in exchange.query:
        return "gemini"
    if "anthropic-version" in exchange.headers or "x-api-key" in exchange.headers:
        return "anthropic-messages"
    return "ollama-chat" if catalogue.local_model(_model_of(exchange)) else "openai-chat"


class _Named(msgspec.Struct):
    model: str = ""


def _model_of(exchange: Exchange) -> str:
    """The model name, which selects one of the OpenAI-compatible servers."""
    if not exchange.path.endswith("/chat/completions"):
        return ""
    try:
        return msgspec.json.decode(exchange.body, type=_Named).model
    except (msgspec.DecodeError, RecursionError):
        return ""


def _closest_api(exchange: Exchange, apis: Iterable[Api]) -> Api:
    named = {api.name: api for api in apis}
    if _api_by_headers(exchange) in named and _api_by_headers(exchange) != "openai-chat":
        return named[_api_by_headers(exchange)]
    names = (name for pattern, name in _NEIGHBOURHOODS if re.match(pattern, exchange.path))
    return next((named[name] for name in names if name in named), next(iter(named.values())))


# --- the record ---------------------------------------------------------------------------------------------------


def _record(found: Found, status: int) -> Recorded:
    exchange = found.exchange
    headers = {name: HIDDEN if name in _SECRET_HEADERS else value for name, value in exchange.headers.items()}
    query = {name: HIDDEN if name in _SECRET_QUERY else value for name, value in exchange.query.items()}
    return Recorded(found.api.name, exchange.method, exchange.path, query, headers, exchange.body, status)


# --- the simulator's own endpoint ---------------------------------------------------------------------------------

CONTROL = "/_sim"


def control(service: Service, exchange: Exchange) -> Reply:
    """`GET` and `DELETE /_sim/requests`, `PUT /_sim/script`, `PUT /_sim/batches`: for tests in other languages."""
    match exchange.method, exchange.path.removeprefix(CONTROL):
        case "GET", "/requests":
            return json_reply([_request_fields(recorded) for recorded in service.requests])
        case "DELETE", "/requests":
            service.reset()
            return json_reply({})
        case "PUT", "/script":
            return _play(service.play, exchange)
        case "PUT", "/batches":
            return _play(service.play_batches, exchange)
    ways = "GET /_sim/requests, DELETE /_sim/requests, PUT /_sim/script, PUT /_sim/batches"
    return json_reply({"error": f"see {ways}"}, status=404)


def _play(play: Callable[[object], None], exchange: Exchange) -> Reply:
    try:
        play(msgspec.json.decode(exchange.body))
    except msgspec.DecodeError as error:
        return json_reply({"error": str(error)}, status=400)
    return json_reply({})


def _request_fields(recorded: Recorded) -> dict[str, object]:
    try:
        body: object = msgspec.json.decode(recorded.body)
    except msgspec.DecodeError:
        body = recorded.body.decode("utf-8", "replace")
    return {
        "api": recorded.api,
        "method": recorded.method,
        "path": recorded.path,
        "query": recorded.query,
        "headers": recorded.headers,
        "status": recorded.status,
        "body": body,
    }
