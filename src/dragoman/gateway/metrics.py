"""The counters that Prometheus reads. They hold neither keys nor bodies."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from dragoman.gateway.request_records import Record
from dragoman.ir import Usage

_UNRECORDED: Mapping[str, str] = {
    "usage_waiting": "Requests whose usage waits to be written to the database.",
    "usage_lost": "Requests whose usage could not be written to the database.",
    "log_lines_lost": "Log lines that could not be written.",
}
Labels: TypeAlias = tuple[str, ...]
# From the overhead of the gateway itself to the longest wait for a first byte.
_BOUNDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class _Histogram:
    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0


class _Counts:
    """Counters of the requests of one client format to one upstream."""

    __slots__ = ("cost", "details", "durations", "failures", "first_bytes", "input", "output", "retries", "statuses")

    def __init__(self) -> None:
        self.statuses: defaultdict[int, int] = defaultdict(int)
        self.durations = _Histogram()
        self.first_bytes = _Histogram()
        self.retries = 0
        self.failures: defaultdict[str, int] = defaultdict(int)
        self.input = 0
        self.output = 0
        self.details: defaultdict[str, int] = defaultdict(int)
        """Tokens of other kinds, by kind."""
        self.cost: float | None = None


class Metrics:
    """Counters by client format, upstream and status. Models are not labels, because clients could invent any number.

    What every request increments is in the slots of one object per pair; labels are built when metrics are read.
    """

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], _Counts] = {}
        self._losses: defaultdict[Labels, int] = defaultdict(int)
        self._cache: defaultdict[Labels, int] = defaultdict(int)
        self.in_flight = 0
        self.started = time.time()

    def add(self, record: Record) -> None:
        pair = (record.client, record.upstream)
        counts = self._pairs.get(pair)
        if counts is None:
            counts = self._pairs[pair] = _Counts()
        counts.statuses[record.status] += 1
        seconds, first, usage = record.seconds, record.first_byte, record.usage
        durations = counts.durations
        durations.counts[bisect_left(_BOUNDS, seconds)] += 1
        durations.sum += seconds
        if first is not None:
            durations = counts.first_bytes
            durations.counts[bisect_left(_BOUNDS, first)] += 1
            durations.sum += first
        if usage is not None:
            counts.input += usage.input
            counts.output += usage.output
            if usage.cached or usage.cache_written or usage.reasoning:
                _add_details(counts, usage)
        if record.cost is not None:
            counts.cost = record.cost if counts.cost is None else counts.cost + record.cost
        for loss in record.losses:
            self._losses[record.client, record.format, loss.severity] += 1
        if record.attempts > 1:
            counts.retries += record.attempts - 1
        if record.failure:
            counts.failures[record.failure] += 1
        if record.cache:
            self._cache[record.client, record.cache] += 1

    def _tokens(self) -> dict[Labels, int]:
        tokens: defaultdict[Labels, int] = defaultdict(int)
        for (_, upstream), counts in self._pairs.items():
            for kind, count in (("input", counts.input), ("output", counts.output), *counts.details.items()):
                if count:
                    tokens[upstream, kind] += count
        return tokens

    def _costs(self) -> dict[Labels, float]:
        costs: defaultdict[Labels, float] = defaultdict(float)
        for (_, upstream), counts in self._pairs.items():
            if counts.cost is not None:
                costs[(upstream,)] += counts.cost
        return costs

    def text(
        self,
        breakers: Mapping[str, str],
        not_closed: Mapping[tuple[str, str], str],
        unrecorded: Mapping[str, int] | None = None,
    ) -> str:
        """Return the metrics. `breakers` has states per upstream, `not_closed` those per model that are not closed."""
        pair, pairs = ("client", "upstream"), self._pairs.items()
        requests: dict[Labels, int] = {
            (*key, str(status)): n for key, counts in pairs for status, n in counts.statuses.items()
        }
        failures: dict[Labels, int] = {(*key, kind): n for key, counts in pairs for kind, n in counts.failures.items()}
        retries: dict[Labels, int] = {key: counts.retries for key, counts in pairs if counts.retries}
        first_bytes = {key: counts.first_bytes for key, counts in pairs if any(counts.first_bytes.counts)}
        durations = {key: counts.durations for key, counts in pairs}
        lines: list[str] = []
        add = lines.extend
        add(_counter("requests_total", "Requests served.", (*pair, "status"), requests))
        add(_counter("tokens_total", "Tokens as counted by upstreams.", ("upstream", "kind"), self._tokens()))
        add(_counter("losses_total", "Losses reported by conversions.", ("source", "target", "severity"), self._losses))
        add(_counter("failures_total", "Requests that failed.", (*pair, "kind"), failures))
        add(_counter("retries_total", "Retries of upstream requests.", pair, retries))
        add(_counter("cost_total", "Cost in USD, or in the currency of your prices.", ("upstream",), self._costs()))
        if self._cache:
            add(_counter("cache_total", "Requests by result of the response cache.", ("client", "result"), self._cache))
        add(
            _histogram(
                "first_byte_seconds", "Seconds from a request to the first byte of its answer.", pair, first_bytes
            )
        )
        add(_histogram("request_seconds", "Seconds from a request to the last byte of its answer.", pair, durations))
        lines += [*_head("in_flight", "Requests in progress.", "gauge"), f"dragoman_in_flight {self.in_flight}"]
        for name, count in (unrecorded or {}).items():
            lines += [*_head(name, _UNRECORDED[name], "gauge"), f"dragoman_{name} {count}"]
        lines += _head("breaker_open", "1 if the circuit breaker of a model of this upstream is open.", "gauge")
        for name, state in breakers.items():
            lines.append(f"dragoman_breaker_open{_labels(('upstream',), (name,))} {int(state == 'open')}")
        lines += _head(
            "model_breaker_open",
            "1 if the circuit breaker of this model is open; models with a closed one are left out.",
            "gauge",
        )
        for labels, state in not_closed.items():
            lines.append(f"dragoman_model_breaker_open{_labels(('upstream', 'model'), labels)} {int(state == 'open')}")
        return "\n".join(lines) + "\n"


def _add_details(counts: _Counts, usage: Usage) -> None:
    kinds = (("cached", usage.cached), ("cache_written", usage.cache_written), ("reasoning", usage.reasoning))
    for kind, count in kinds:
        if count:
            counts.details[kind] += count


def _head(name: str, words: str, kind: str) -> list[str]:
    return [f"# HELP dragoman_{name} {words}", f"# TYPE dragoman_{name} {kind}"]


def _labels(names: Iterable[str], values: Iterable[str], *more: str) -> str:
    pairs = [f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join([*pairs, *more]) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _counter(name: str, words: str, labels: Labels, counts: Mapping[Labels, float]) -> list[str]:
    samples = (f"dragoman_{name}{_labels(labels, key)} {count!r}" for key, count in counts.items())
    return [*_head(name, words, "counter"), *samples]


def _histogram(name: str, words: str, labels: Labels, histograms: Mapping[tuple[str, str], _Histogram]) -> list[str]:
    lines = _head(name, words, "histogram")
    for key, histogram in histograms.items():
        total = 0
        for bound, count in zip((*_BOUNDS, "+Inf"), histogram.counts, strict=True):
            total += count
            below = f'le="{bound}"'
            lines.append(f"dragoman_{name}_bucket{_labels(labels, key, below)} {total}")
        lines.append(f"dragoman_{name}_sum{_labels(labels, key)} {histogram.sum:.6f}")
        lines.append(f"dragoman_{name}_count{_labels(labels, key)} {total}")
    return lines
