"""Sets up the export of spans, from the configuration or OpenTelemetry's environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dragoman.gateway.config import ConfigError, TelemetryTable
from dragoman.gateway.request_log import Log
from dragoman.gateway.routing import revealed_key
from dragoman.installation import install_command

if TYPE_CHECKING:
    from dragoman.gateway.tracing import Tracing

_PROTOCOL = "http/protobuf"


def open_tracing(table: TelemetryTable, environment: Mapping[str, str], log: Log) -> Tracing | None:
    """Return the tracing, or None if it is off. Raises `ConfigError` if the file asks for something unavailable."""
    endpoint = _endpoint(table, environment)
    if not endpoint:
        return None
    protocol = environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if not table.endpoint and protocol not in {None, "", _PROTOCOL}:
        log.event("telemetry_off", reason=f"{protocol} is not supported, only {_PROTOCOL}")
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from dragoman.gateway.tracing import Tracing, provider_of_spans  # noqa: PLC0415
    except ImportError:
        missing = f"spans need more packages: {install_command('otel')}"
        if table.endpoint:
            raise ConfigError(f"telemetry.endpoint: {missing}") from None
        # The variable may be meant for other programs: start anyway.
        log.event("telemetry_off", reason=missing)
        return None
    headers = {name: revealed_key(value, environment) for name, value in table.headers.items()}
    exporter = OTLPSpanExporter(endpoint=endpoint, headers=headers or None)
    return Tracing(provider_of_spans(table.service, table.ratio, BatchSpanProcessor(exporter)))


def _endpoint(table: TelemetryTable, environment: Mapping[str, str]) -> str:
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    base = table.endpoint
    if not base:
        if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
            return ""
        exact = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        if exact:
            return exact
        base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return f"{base.rstrip('/')}/v1/traces" if base else ""
