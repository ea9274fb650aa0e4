"""OpenTelemetry spans by the conventions for generative AI: `invoke_agent`, `chat`, `execute_tool`.

The caller supplies the tracer (`Agent(tracer=opentelemetry.trace.get_tracer("app"))`); nothing is imported here, and
without a tracer nothing is measured. No span contains what people and models wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from dragoman.drivers.telemetry_names import vendor_of
from dragoman.ir import ToolCall, ToolResult

if TYPE_CHECKING:
    from dragoman.agent.setup import Setup
    from dragoman.drivers.base import QueryResult


class Tracer(Protocol):
    """The part of OpenTelemetry's tracer that this module needs."""

    def start_as_current_span(
        self, name: str, *, attributes: Mapping[str, Any] | None = ...
    ) -> AbstractContextManager[Any]: ...


class Traced:
    """A span around one piece of work; without a tracer it does nothing."""

    def __init__(self, tracer: Tracer | None, name: str = "", attributes: Mapping[str, Any] | None = None) -> None:
        self._context = None if tracer is None else tracer.start_as_current_span(name, attributes=attributes)
        self._span: Any = None

    def __enter__(self) -> Self:
        if self._context is not None:
            self._span = self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._context is not None:
            if error is not None:
                self._span.set_attribute("error.type", type(error).__name__)
            self._context.__exit__(kind, error, trace)

    def record_answer(self, answer: QueryResult) -> None:
        if self._span is None:
            return
        completion = answer.completion
        attributes: dict[str, Any] = {"gen_ai.response.finish_reasons": [answer.finish_reason]}
        if completion.model:
            attributes["gen_ai.response.model"] = completion.model
        if completion.id:
            attributes["gen_ai.response.id"] = completion.id
        if answer.usage is not None:
            attributes["gen_ai.usage.input_tokens"] = answer.usage.input
            attributes["gen_ai.usage.output_tokens"] = answer.usage.output
        self._span.set_attributes(attributes)

    def record_result(self, result: ToolResult) -> None:
        if self._span is not None and result.is_error:
            self._span.set_attribute("error.type", "tool_error")

    def record_end(self, reason: str, usage: Any) -> None:
        if self._span is not None:
            self._span.set_attributes(
                {
                    "gen_ai.usage.input_tokens": usage.input,
                    "gen_ai.usage.output_tokens": usage.output,
                    "dragoman.agent.end_reason": reason,
                }
            )


_NOTHING = Traced(None)


def trace_agent(setup: Setup, model: str) -> Traced:
    if setup.tracer is None:
        return _NOTHING
    return Traced(
        setup.tracer,
        f"invoke_agent {setup.name}",
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": setup.name,
            **_model_attributes(model),
        },
    )


def trace_model(setup: Setup, model: str, messages: Sequence[Any]) -> Traced:
    if setup.tracer is None:
        return _NOTHING
    attributes = {"gen_ai.operation.name": "chat", "dragoman.messages": len(messages), **_model_attributes(model)}
    for name in ("temperature", "top_p", "max_output_tokens"):
        value = setup.settings.get(name)
        if value is not None:
            attributes[f"gen_ai.request.{_SPELLED.get(name, name)}"] = value
    return Traced(setup.tracer, f"chat {model.partition('/')[2] or model}", attributes)


def trace_tool(setup: Setup, call: ToolCall) -> Traced:
    if setup.tracer is None:
        return _NOTHING
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
    }
    return Traced(setup.tracer, f"execute_tool {call.name}", attributes)


_SPELLED: Mapping[str, str] = {"max_output_tokens": "max_tokens"}


def _model_attributes(model: str) -> dict[str, Any]:
    provider, slash, name = model.partition("/")
    if not slash:
        return {"gen_ai.request.model": model}
    return {"gen_ai.provider.name": vendor_of(provider), "gen_ai.request.model": name}
