"""HTTP requests and replies as plain values, without sockets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.rules import Violation

if TYPE_CHECKING:
    from dragoman.sim.request_context import RequestContext

Kind: TypeAlias = Literal[
    "invalid",
    "bad_json",
    "authentication",
    "wrong_key",
    "permission",
    "no_model",
    "no_route",
    "method",
    "too_large",
    "too_long",
    "conflict",
    "rate_limit",
    "quota",
    "timeout",
    "server",
    "unavailable",
    "overloaded",
]

KIND_OF_STATUS: Mapping[int, Kind] = {
    400: "invalid",
    401: "wrong_key",
    403: "permission",
    404: "no_model",
    405: "method",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    429: "rate_limit",
    500: "server",
    503: "unavailable",
    504: "timeout",
    529: "overloaded",
}
FIRST_SERVER_ERROR = 500


def kind_of(status: int) -> Kind:
    return KIND_OF_STATUS.get(status, "server" if status >= FIRST_SERVER_ERROR else "invalid")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request is refused. Omitted fields get the API's usual message and status."""

    kind: Kind
    message: str = ""
    status: int | None = None
    param: str | None = None
    code: str | None = None
    retry_after: float | None = None
    violations: tuple[Violation, ...] = ()
    # Values for the placeholders of the usual message; the defaults are those of a large model.
    numbers: Mapping[str, int] = field(default_factory=lambda: {"got": 200_001, "limit": 200_000})


class Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message or problem.kind)
        self.problem = problem


def refusal_for(violations: Sequence[Violation]) -> Refused:
    """An error for the first violation, as servers report only one."""
    first = violations[0]
    path = first.path.removeprefix("$").removeprefix(".") or None
    problem = Problem("invalid", first.message, first.status, path, first.code, violations=tuple(violations))
    return Refused(problem)


@dataclass(frozen=True)
class Exchange:
    method: str
    path: str
    query: Mapping[str, str]
    # Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    # The body exceeded the limit and was discarded.
    oversized: bool = False
    # Named groups of the route's pattern.
    params: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> JsonObject:
        try:
            value = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(Problem("bad_json", str(error))) from None
        if not isinstance(value, dict):
            raise Refused(Problem("bad_json", "expected an object"))
        return value

    @property
    def bearer(self) -> str:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def mark(self, *more: object) -> str:
        """Hexadecimal digits derived from the request: the same request gets the same ids."""
        digest = hashlib.sha256(self.path.encode() + b"\0" + self.body)
        for item in more:
            digest.update(f"\0{item}".encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Streamed:
    """Events as they go over the wire, one at a time."""

    events: Iterable[bytes]
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    # A broken event in this framing.
    garbage: bytes = b'data: {"unfinished": \n\n'
    # How this API reports an error after the status was sent.
    failure: Callable[[Problem], bytes] | None = None


Answered: TypeAlias = Reply | Streamed


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    pattern: re.Pattern[str]
    operation: Callable[[RequestContext], Answered]
    # If it differs from the API's.
    max_body: int | None = None


def route(
    method: str, pattern: str, operation: Callable[[RequestContext], Answered], max_body: int | None = None
) -> Route:
    return Route(method, re.compile(pattern), operation, max_body)


@dataclass(frozen=True, slots=True)
class Api:
    name: str
    routes: tuple[Route, ...]
    authenticate: Callable[[Exchange, frozenset[str]], Problem | None]
    refusal: Callable[[Problem, Exchange], Reply]
    max_body: int
    # Context window in tokens; None: it drops the oldest messages instead of refusing.
    context_window: int | None


def json_reply(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, msgspec.json.encode(body), headers=headers or {})
