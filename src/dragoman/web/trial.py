"""A request of the playground, sent to a model through the gateway."""

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
from dragoman.web.crossing import LONGEST, Unclear
from dragoman.web.live_view import Problem, Told, problem_of, text_of, told
from dragoman.web.models import Asking

_TIMEOUT = 300.0


class Trial(Struct, frozen=True):
    """What to send, and to which model."""

    text: str
    model: str
    format: str = "auto"


class Tried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it."""

    model: str
    source: str
    """The format of what was sent."""
    format: str
    """The format that the model's provider speaks."""
    milliseconds: float
    text: str = ""
    reasoning: str = ""
    calls: list[dict[str, Any]] = []
    finish: str = ""
    input: int | None = None
    output: int | None = None
    cost: float | None = None
    losses: list[Told] = []
    body: str = ""
    """The answer as the provider wrote it."""
    request: str = ""
    """Its id among the live requests."""
    is_simulated: bool = False
    error: str = ""


async def try_out(trial: Trial, asking: Asking, *, is_simulated: bool) -> Tried:
    """Raises `Unclear` for what is no request."""
    content = trial.text.encode("utf-8", "surrogatepass")
    if len(content) > LONGEST:
        raise Unclear(Problem(type="LimitExceeded", message=f"expected at most {LONGEST} bytes"), status=413)
    source = _source(content, trial.format)
    try:
        request = structs.replace(translate.decode_request(content, source), model=None)
        driver = asking.participant("trial", trial.model).connect()
    except DragomanError as error:
        raise Unclear(problem_of(error)) from error
    assert isinstance(driver, RemoteDriver)  # noqa: S101 - what asks a gateway
    async with driver:
        target = driver.channel.codec.name
        call = driver.prepare(request, {"timeout": _TIMEOUT}, stream=False)
        started = time.monotonic()
        known: dict[str, Any] = {"model": trial.model, "source": source, "format": target, "is_simulated": is_simulated}
        # With paths in the body that was given, and not in the intermediate format.
        losses = told(translate.translate_request(content, source=source, target=target).losses)
        try:
            response = await send(driver.channel, call)
            body = await read_whole(response, driver.channel.limits.response)
            completion = driver.channel.codec.decode_response(body)
        except ProviderError as error:
            spent = _milliseconds(started)
            return Tried(**known, milliseconds=spent, losses=losses, error=error.failure.message)
        headers = response.headers
        return Tried(
            **known,
            **_shown(completion),
            milliseconds=_milliseconds(started),
            losses=losses,
            body=text_of(body),
            request=headers.get("x-request-id", ""),
            cost=float(headers["x-dragoman-cost"]) if headers.get("x-dragoman-cost") else None,
        )


def _source(content: bytes, given: str) -> str:
    if given != "auto":
        if given not in formats(None):
            raise Unclear(Problem(type="UnknownFormat", message=f"no format is called {given!r}"))
        return given
    found = detect(content)
    if found is None or found.kind != "request":
        kind = "not detected" if found is None else f"taken for a {found.kind}"
        raise Unclear(Problem(type="NotARequest", message=f"only a request can be sent to a model; this is {kind}"))
    return found.format


def _milliseconds(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 1)


def _shown(completion: Completion) -> dict[str, Any]:
    usage, finish = completion.usage, completion.finish
    return {
        "text": completion.text,
        "reasoning": completion.reasoning,
        "calls": [{"name": one.name, "arguments": one.arguments} for one in completion.tool_calls],
        "finish": "" if finish is None else str(finish.reason),
        "input": None if usage is None else usage.input,
        "output": None if usage is None else usage.output,
    }
