"""OpenTelemetry spans: they follow the conventions for generative AI, and contain no prompts or answers."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dragoman.gateway.config import ConfigError, TelemetryTable, read_config
from dragoman.gateway.telemetry import open_tracing
from dragoman.gateway.tracing import Tracing, provider_of_spans
from dragoman.installation import install_command
from dragoman.sim.server import Simulator
from tests.gateway.running import Lines, RunningGateway, configured, send
from tests.gateway.test_failures import chat, provider
from tests.support.promises import promise
from tests.support.waiting import until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
SECRET = "Hello, this is between us."


@contextmanager
def traced(text: str) -> Iterator[tuple[RunningGateway, InMemorySpanExporter]]:
    exporter = InMemorySpanExporter()
    with RunningGateway(configured(text)) as gateway:
        assert gateway.running is not None
        assert gateway.running.gateway.tracing is None, "off without configuration"
        gateway.running.gateway.tracing = Tracing(provider_of_spans("test", 1.0, SimpleSpanProcessor(exporter)))
        yield gateway, exporter


def spans(exporter: InMemorySpanExporter, count: int) -> Sequence[ReadableSpan]:
    """Wait for the spans. That of the request ends last, a moment after the answer."""
    until(lambda: len(exporter.get_finished_spans()) >= count, f"fewer than {count} spans", pause=0.002)
    assert len(exporter.get_finished_spans()) == count
    return exporter.get_finished_spans()


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


@promise("gateway:telemetry")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "vendor", "model"), [("anthropic", "anthropic", "claude-sonnet-5"), ("openai-chat", "openai", "gpt-5.6")]
)
def test_spans_of_a_request_and_its_attempt(
    dragoman_simulator: Simulator, kind: str, vendor: str, model: str, *, stream: bool
) -> None:
    text = provider("p", dragoman_simulator.url, kind=kind)
    more = {"stream_options": {"include_usage": True}} if stream else {}
    body = chat(f"p/{model}", stream=stream, **more, messages=[{"role": "user", "content": SECRET}])
    with traced(text) as (gateway, exporter):
        assert send(gateway.url, "/v1/chat/completions?key=hush", body, PARENT).status == 200
        asking, serving = spans(exporter, 2)
    assert (asking.kind, serving.kind) == (SpanKind.CLIENT, SpanKind.SERVER)
    assert (asking.name, serving.name) == (f"chat {model}", "POST /v1/chat/completions")
    assert serving.parent is not None
    assert asking.parent is not None
    assert serving.context is not None
    assert f"{serving.context.trace_id:032x}" == TRACE, "the client's trace goes on"
    assert f"{serving.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert asking.parent.span_id == serving.context.span_id
    attributes = attributes_of(asking)
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": vendor,
        "gen_ai.request.model": model,
        "gen_ai.request.stream": stream,
        "server.address": "127.0.0.1",
        "dragoman.attempt": 1,
    }
    assert {name: attributes[name] for name in expected} == expected
    assert isinstance(attributes["gen_ai.usage.output_tokens"], int)
    assert attributes["gen_ai.response.model"]
    assert attributes["gen_ai.response.finish_reasons"] in (("stop",), ("end_turn",))
    assert [event.name for event in asking.events] == (["gen_ai.first_chunk"] if stream else [])
    assert ("gen_ai.response.time_to_first_chunk" in attributes) is stream
    assert attributes_of(serving)["http.response.status_code"] == 200
    everything = "".join(span.to_json() for span in (asking, serving))
    assert not any(word in everything for word in (SECRET, "any-key", "hush"))


@promise("gateway:telemetry")
def test_each_attempt_has_a_span_with_the_reason_of_its_failure(dragoman_simulator: Simulator) -> None:
    url = dragoman_simulator.url
    text = provider("bad", url, fault="status=529") + provider("good", url)
    text += '[routes.smart]\nto = "bad/claude-sonnet-5"\nfallback = ["good/claude-sonnet-5"]\n'
    with traced(text) as (gateway, exporter):
        assert send(gateway.url, "/v1/chat/completions", chat("smart")).status == 200
        bad, good, serving = spans(exporter, 3)
    assert attributes_of(bad)["error.type"] == "overloaded"
    assert attributes_of(bad)["http.response.status_code"] == 529
    assert bad.status.status_code is StatusCode.ERROR
    assert "error.type" not in attributes_of(good)
    assert (attributes_of(good)["dragoman.attempt"], attributes_of(serving)["dragoman.attempts"]) == (2, 2)
    assert serving.status.status_code is StatusCode.UNSET


@promise("gateway:telemetry")
def test_spans_of_a_broken_stream_have_a_route_without_names(dragoman_simulator: Simulator) -> None:
    text = provider("p", dragoman_simulator.url, fault="cut=8")
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    with traced(text) as (gateway, exporter):
        send(gateway.url, "/v1beta/models/p/claude-sonnet-5:streamGenerateContent?alt=sse", body)
        asking, serving = spans(exporter, 2)
    assert serving.name == "POST /v1beta/models/{}:streamGenerateContent"
    for span in (asking, serving):
        assert attributes_of(span)["error.type"] == "truncated"
        assert span.status.status_code is StatusCode.ERROR


class Collector(BaseHTTPRequestHandler):
    """An OpenTelemetry collector that records what it receives over HTTP."""

    received: list[ExportTraceServiceRequest]
    seen: list[str | None]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append(self.headers["authorization"])
        self.received.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def collector() -> Iterator[tuple[str, type[Collector]]]:
    class Own(Collector):
        """A separate class for each test, because the class holds what was received."""

    Own.received, Own.seen = [], []
    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", Own
        finally:
            server.shutdown()


@promise("gateway:telemetry")
@pytest.mark.parametrize("by", ["file", "environment"])
def test_spans_reach_a_collector_over_http(dragoman_simulator: Simulator, by: str) -> None:
    """Spans are sent in batches, the last ones before the gateway ends."""
    with collector() as (url, exporter):
        text = provider("p", dragoman_simulator.url)
        environment = {"TOKEN": "Bearer let-me-in"}
        if by == "file":
            text += f'[telemetry]\nendpoint = "{url}"\nservice = "front"\nheaders = {{ authorization = "env:TOKEN" }}\n'
        else:
            environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": url + "/"}
        with RunningGateway(configured(text, environment)) as gateway:
            assert send(gateway.url, "/v1/chat/completions", chat("p/claude-sonnet-5")).status == 200
            assert send(gateway.url, "/health", method="GET").status == 200
        (request,) = exporter.received
        assert exporter.seen == ["Bearer let-me-in" if by == "file" else None]
    (resource,) = request.resource_spans
    service = {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"]
    assert service == ("front" if by == "file" else "dragoman")
    assert sorted(span.name for scope in resource.scope_spans for span in scope.spans) == [
        "POST /v1/chat/completions",
        "chat claude-sonnet-5",
    ]


@promise("gateway:telemetry")
def test_the_trace_context_is_sent_upstream() -> None:
    class Upstream(BaseHTTPRequestHandler):
        traceparent = ""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            Upstream.traceparent = self.headers["traceparent"]
            self.send_error(400)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with traced(f'[providers.p]\nkind = "openai-chat"\nbase_url = "{url}"\napi_key = "k"\n') as (gateway, exporter):
            assert send(gateway.url, "/v1/chat/completions", chat("p/m"), PARENT).status == 400
            asking, serving = spans(exporter, 2)
        server.shutdown()
    assert asking.context is not None
    assert Upstream.traceparent == f"00-{TRACE}-{asking.context.span_id:016x}-01"
    assert attributes_of(serving)["error.type"] == "invalid_request"
    assert serving.status.status_code is StatusCode.UNSET, "the client's mistake is not a server error"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_without_an_exporter_nothing_is_traced(environment: dict[str, str]) -> None:
    assert open_tracing(TelemetryTable(), environment, Lines()) is None


def test_an_invalid_sampling_ratio_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"2:1: telemetry.ratio: a ratio is a number from 0 to 1"):
        read_config("[telemetry]\nratio = 2.0\n")


@promise("gateway:telemetry")
def test_without_tracing_opentelemetry_is_not_imported() -> None:
    script = (
        "import sys, dragoman.gateway.serving\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'zstandard'))])"
    )
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.strip() == "[]"


def test_missing_opentelemetry_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    log = Lines()
    with pytest.raises(ConfigError, match=re.escape(install_command("otel"))):
        open_tracing(TelemetryTable(endpoint="http://x"), {}, log)
    assert open_tracing(TelemetryTable(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, log) is None
    assert install_command("otel") in log.lines[-1]["reason"]
