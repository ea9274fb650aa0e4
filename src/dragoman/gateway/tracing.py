"""Spans for OpenTelemetry: one per request, with a child span per attempt at an upstream.

Names and attributes follow its conventions for generative AI. Spans never contain prompts, answers, keys or queries.
This module is loaded only if telemetry is configured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import structs
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import dragoman
from dragoman.drivers.remote import Call, Channel
from dragoman.drivers.telemetry_names import vendor_of
from dragoman.gateway.http_request import Head
from dragoman.ir import Completion

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

    from dragoman.gateway.request_records import Record

_SERVER_ERROR = 500
_OPERATIONS: Mapping[str, str] = {
    "gemini": "generate_content",
    "vertex": "generate_content",
    "gemini-interactions": "generate_content",
}
# Names are removed from routes, because there may be any number of models.
_NAMED = re.compile(r"(?<=/deployments/)[^/]+|(?<=/projects/)[^/]+")
_NAMED_UP_TO = (("/models/", ":"), ("/model/", "/"))


def route_of(path: str) -> str:
    """Return the path without the names in it. A model's name may have slashes and colons: it ends at the last one."""
    for prefix, end in _NAMED_UP_TO:
        before, _, after = path.partition(prefix)
        name, found, rest = after.rpartition(end)
        if name:
            path = f"{before}{prefix}{{}}{found}{rest}"
    return _NAMED.sub("{}", path)


def provider_of_spans(service: str, ratio: float, processor: SpanProcessor) -> TracerProvider:
    """Return a tracer provider separate from the global one, which belongs to the program that embeds a gateway."""
    resource = Resource.create({"service.name": service, "service.version": dragoman.__version__})
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence: they are set for this very process.
    resource = resource.merge(OTELResourceDetector().detect())
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)), resource=resource)
    provider.add_span_processor(processor)
    return provider


class Tracing:
    """The tracing of one gateway."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self.tracer: Tracer = provider.get_tracer("dragoman", dragoman.__version__)
        self.headers = TraceContextTextMapPropagator()

    def begin(self, record: Record, head: Head) -> Trace:
        """Start the span of a request, in the client's trace if it sent one."""
        route = route_of(head.path)
        attributes = {
            "http.request.method": head.method,
            "http.route": route,
            "url.path": head.path,
            "url.scheme": "http",
            "dragoman.request.id": record.id,
            "dragoman.client.format": record.client,
        }
        name = f"{head.method} {route}"
        context = self.headers.extract(head.headers)
        span = self.tracer.start_span(name, context=context, kind=SpanKind.SERVER, attributes=attributes)
        return Trace(self, span)

    def close(self) -> None:
        self._provider.shutdown()


class Trace:
    """The spans of one request."""

    __slots__ = ("_asking", "_span", "_tracing")

    def __init__(self, tracing: Tracing, span: Span) -> None:
        self._tracing = tracing
        self._span = span
        self._asking: Span | None = None

    def fork(self) -> Trace:
        """Return a trace for work that continues after the client was answered."""
        context = set_span_in_context(self._span)
        return Trace(self._tracing, self._tracing.tracer.start_span("background", context=context))

    def record_attempt(self, record: Record, channel: Channel, call: Call) -> None:
        """Start the span of an attempt, and add the trace headers to the upstream call."""
        format = channel.provider.format
        operation = _OPERATIONS.get(format, "chat")
        host, port = _address(channel.base_url)
        attributes: dict[str, str | int | bool] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": vendor_of(channel.provider.name),
            "gen_ai.request.model": record.target,
            "gen_ai.request.stream": record.stream,
            "server.address": host,
            "server.port": port,
            "dragoman.upstream": record.upstream,
            "dragoman.upstream.format": format,
            "dragoman.attempt": record.attempts,
        }
        context = set_span_in_context(self._span)
        name = f"{operation} {record.target}"
        tracer = self._tracing.tracer
        self._asking = tracer.start_span(name, context=context, kind=SpanKind.CLIENT, attributes=attributes)
        headers = dict(call.http.headers)
        self._tracing.headers.inject(headers, set_span_in_context(self._asking))
        call.http = structs.replace(call.http, headers=headers)

    def began(self, seconds: float) -> None:
        """Record the time of the first chunk of an answer."""
        if self._asking is not None:
            self._asking.add_event("gen_ai.first_chunk")
            self._asking.set_attribute("gen_ai.response.time_to_first_chunk", seconds)

    def record_refusal(self, kind: str, status: int | None) -> None:
        if self._asking is not None and status is not None:
            self._asking.set_attribute("http.response.status_code", status)
        self._end_asking(kind)

    def record_answer(self, completion: Completion | None, failure: str = "") -> None:
        """End the span of an attempt with the upstream's answer."""
        if self._asking is not None and completion is not None:
            self._asking.set_attributes(_completion_attributes(completion))
        self._end_asking(failure)

    def _end_asking(self, failure: str) -> None:
        span, self._asking = self._asking, None
        if span is not None:
            if failure:
                span.set_attribute("error.type", failure)
                span.set_status(StatusCode.ERROR)
            span.end()

    def record_end(self, record: Record) -> None:
        self._end_asking(record.failure)
        span = self._span
        span.set_attributes(
            {
                "http.response.status_code": record.status,
                "gen_ai.request.model": record.model,
                "dragoman.route": record.route,
                "dragoman.attempts": record.attempts,
                "dragoman.losses": len(record.losses),
            }
        )
        if record.failure:
            span.set_attribute("error.type", record.failure)
            if record.status >= _SERVER_ERROR or record.stream:
                span.set_status(StatusCode.ERROR)
        span.end()


def _completion_attributes(completion: Completion) -> dict[str, str | int | list[str]]:
    usage, finish = completion.usage, completion.finish
    attributes: dict[str, str | int | list[str] | None] = {
        "gen_ai.response.id": completion.id,
        "gen_ai.response.model": completion.model,
        "gen_ai.response.finish_reasons": None if finish is None else [finish.raw or finish.reason],
    }
    if usage is not None:
        attributes |= {
            "gen_ai.usage.input_tokens": usage.input,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_written,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        }
    return {name: value for name, value in attributes.items() if value is not None}


@lru_cache(maxsize=256)
def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
