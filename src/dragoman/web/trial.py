"""Sends a request of the playground to a model through the gateway."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct, structs

from dragoman import translate
from dragoman.codecs.registry import formats
from dragoman.detection import detect
from dragoman.drivers.remote import RemoteDriver, send
from dragoman.drivers.transport import read_whole
from dragoman.errors import DragomanError, ProviderError
from dragoman.ir import Completion
from dragoman.web.all_formats import LONGEST, UnreadableInput
from dragoman.web.body_views import LossRow, Problem, loss_rows, problem_of, text_of
from dragoman.web.models import GatewayModels

_TIMEOUT = 300.0


class TrialRequest(Struct, frozen=True):
    """The body to send, and the model."""

    text: str
    model: str
    format: str = "auto"


class TrialResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result: requests, answers, losses and times."""

    model: str
    source: str
    """Format of the body that was given."""
    format: str
    """Format of the model's provider."""
    milliseconds: float
    text: str = ""
    reasoning: str = ""
    calls: list[dict[str, Any]] = []
    finish: str = ""
    input: int | None = None
    output: int | None = None
    cost: float | None = None
    losses: list[LossRow] = []
    body: str = ""
    """The answer as the provider wrote it."""
    request: str = ""
    """Its id among the live requests."""
    is_simulated: bool = False
    error: str = ""


async def try_out(trial: TrialRequest, gateway_models: GatewayModels, *, is_simulated: bool) -> TrialResult:
    """Sends the request to the model. Raises `UnreadableInput` if the body is not a request."""
    content = trial.text.encode("utf-8", "surrogatepass")
    if len(content) > LONGEST:
        raise UnreadableInput(Problem(type="LimitExceeded", message=f"expected at most {LONGEST} bytes"), status=413)
    source = _source(content, trial.format)
    try:
        request = structs.replace(translate.decode_request(content, source), model=None)
        driver = gateway_models.participant("trial", trial.model).connect()
    except DragomanError as error:
        raise UnreadableInput(problem_of(error)) from error
    assert isinstance(driver, RemoteDriver)  # noqa: S101 - a gateway participant
    async with driver:
        target = driver.channel.codec.name
        call = driver.prepare(request, {"timeout": _TIMEOUT}, stream=False)
        started = time.monotonic()
        known: dict[str, Any] = {"model": trial.model, "source": source, "format": target, "is_simulated": is_simulated}
        # Translate again for losses with paths in the given body.
        losses = loss_rows(translate.translate_request(content, source=source, target=target).losses)
        try:
            response = await send(driver.channel, call)
            body = await read_whole(response, driver.channel.limits.response)
            completion = driver.channel.codec.decode_response(body)
        except ProviderError as error:
            spent = _milliseconds(started)
            return TrialResult(**known, milliseconds=spent, losses=losses, error=error.failure.message)
        headers = response.headers
        return TrialResult(
            **known,
            **_completion_fields(completion),
            milliseconds=_milliseconds(started),
            losses=losses,
            body=text_of(body),
            request=headers.get("x-request-id", ""),
            cost=float(headers["x-dragoman-cost"]) if headers.get("x-dragoman-cost") else None,
        )


def _source(content: bytes, given: str) -> str:
    if given != "auto":
        if given not in formats(None):
            raise UnreadableInput(Problem(type="UnknownFormat", message=f"there is no format named {given!r}"))
        return given
    found = detect(content)
    if found is None or found.kind != "request":
        kind = "not detected" if found is None else f"taken for a {found.kind}"
        raise UnreadableInput(
            Problem(type="NotARequest", message=f"only a request can be sent to a model; this is {kind}")
        )
    return found.format


def _milliseconds(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 1)


def _completion_fields(completion: Completion) -> dict[str, Any]:
    usage, finish = completion.usage, completion.finish
    return {
        "text": completion.text,
        "reasoning": completion.reasoning,
        "calls": [{"name": one.name, "arguments": one.arguments} for one in completion.tool_calls],
        "finish": "" if finish is None else str(finish.reason),
        "input": None if usage is None else usage.input,
        "output": None if usage is None else usage.output,
    }
