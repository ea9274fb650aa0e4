"""Spans of an agent."""

import asyncio

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dragoman
from dragoman.drivers import ScriptedDriver


async def main() -> list[str]:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    agent = dragoman.Agent(ScriptedDriver(["Hello"]), tracer=provider.get_tracer("app"))
    await agent.run("Hello")
    return [span.name for span in kept.get_finished_spans()]


names = asyncio.run(main())
assert any(name.startswith("invoke_agent") for name in names), names
assert OTLPSpanExporter.__name__
