"""Azure OpenAI: Chat Completions by deployment, with results of its content filter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from dragoman.sim import catalogue
from dragoman.sim.apis import openai, openai_chat
from dragoman.sim.conversation_view import Answer, JsonObject
from dragoman.sim.exchange import (
    Answered,
    Api,
    Exchange,
    Problem,
    Refused,
    Reply,
    Streamed,
    json_reply,
    refusal_for,
    route,
)
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules import openai_chat as rules
from dragoman.sim.rules.common import number_at, text_at

NAME = "azure-openai"

_SAFE = {"filtered": False, "severity": "safe"}
_FILTERED: JsonObject = dict.fromkeys(("hate", "self_harm", "sexual", "violence"), _SAFE)
_PROMPT: list[JsonObject] = [
    {"prompt_index": 0, "content_filter_results": {**_FILTERED, "jailbreak": {"filtered": False, "detected": False}}}
]
_NO_ENTRY = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an "
    "active subscription and use a correct regional API endpoint for your resource."
)
_NO_DEPLOYMENT = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, "
    "please wait a moment and try again."
)
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?|preview|latest|v1")


def refusal(problem: Problem, exchange: Exchange) -> Reply:
    """Azure's gateway has its own messages for keys and paths; other errors are OpenAI's."""
    if problem.kind in ("authentication", "wrong_key") and problem.status is None:
        return json_reply({"error": {"code": "401", "message": _NO_ENTRY}}, status=401)
    if problem.kind in ("no_route", "method"):
        return json_reply({"error": {"code": "404", "message": "Resource not found"}}, status=404)
    return openai.refusal(problem, exchange)


class Writer(openai_chat.Writer):
    def whole(self, answers: list[Answer]) -> JsonObject:
        return {**super().whole(answers), "prompt_filter_results": _PROMPT}

    def _choice(self, answer: Answer, index: int) -> JsonObject:
        return {**super()._choice(answer, index), "content_filter_results": {} if answer.calls else _FILTERED}

    def events(self, answers: list[Answer]) -> Iterator[bytes]:
        empty = {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": _PROMPT}
        yield b"data: " + msgspec.json.encode(empty) + b"\n\n"
        yield from super().events(answers)

    def _delta(self, index: int, delta: JsonObject, finish: str | None = None) -> JsonObject:
        filtered = _FILTERED if text_at(delta, "content") else {}
        return {**super()._delta(index, delta, finish), "content_filter_results": filtered}


def complete(context: RequestContext) -> Answered:
    deployment = context.exchange.params["deployment"]
    if not _VERSION.fullmatch(context.exchange.query.get("api-version", "")):
        raise Refused(Problem("no_route"))
    body: Mapping[str, object] = {**context.exchange.json(), "model": deployment}
    if violations := rules.check_request(body):
        raise refusal_for(violations)
    if not context.any_model and not catalogue.exists("openai", deployment):
        raise Refused(Problem("no_model", _NO_DEPLOYMENT, code="DeploymentNotFound"))
    answers = context.answer_cached(openai_chat.read(body), int(number_at(body, "n")) or 1)
    writer = Writer(context, body)
    headers = {**openai.headers_of(context.exchange), "x-ms-region": "Sweden Central"}
    if body.get("stream"):
        return Streamed(writer.events(answers), "text/event-stream", headers, failure=openai.failure_event)
    return json_reply(writer.whole(answers), headers=headers)


API = Api(
    name=NAME,
    routes=(route("POST", r"/openai/deployments/(?P<deployment>[^/]+)/chat/completions", complete),),
    authenticate=openai.authenticate,
    refusal=refusal,
    max_body=openai.MAX_BODY,
    context_window=openai.CONTEXT_WINDOW,
)
