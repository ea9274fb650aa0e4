"""The arithmetic of the benchmarks: each limit must make `--check` fail when it is exceeded."""

import gzip
from pathlib import Path

import orjson
import pytest

from benchmarks import corpus, limits, own_traffic, recorded, recorded_report
from benchmarks.bodies import Format
from benchmarks.corpus import Sample
from benchmarks.edges import Edge
from benchmarks.recorded import Figure, Row, overhead, percentile
from tests.support.promises import promise
from tests.support.recordings import VARIABLE, recordings_dir


def figure(*, body: float, losses: float, id: str = "a") -> Figure:
    sample = Sample(id, "openai-chat", (b"{}",), (b"{}",))
    return Figure(sample, int, int, floor=1.0, body=body, losses=losses, floor_once=1.0, losses_once=losses)


def row(suite: str, *figures: Figure, target: Format = "anthropic-messages") -> Row:
    return Row(suite, "openai-chat", target, figures=list(figures))


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (90, 90), (99, 99), (100, 100)])
def test_a_percentile_is_the_value_that_so_many_do_not_exceed(percent: int, value: float) -> None:
    assert percentile(range(1, 101), percent) == value
    assert percentile([7.0], percent) == 7.0


@promise("core:benchmarks")
@pytest.mark.parametrize("limit", limits.LIMITS, ids=lambda limit: f"{limit.suite} {limit.metric}")
def test_every_exceeded_limit_is_a_failure(limit: limits.Limit) -> None:
    most = limit.most if limit.reached is None else limit.reached
    under, over = (reaching(most * share, limit.metric) for share in (0.99, 1.01))
    assert recorded_report.failures([row(limit.suite, *under)], []) == []
    (found,) = recorded_report.failures([row(limit.suite, *over)], [])
    assert f"limit {limit.most:g}" in found


@promise("core:benchmarks")
def test_a_limit_that_is_known_not_to_be_met_is_reported() -> None:
    for limit in limits.LIMITS:
        over = row(limit.suite, *reaching(limit.most * 1.01, limit.metric))
        assert bool(recorded_report.known_misses([over])) == (limit.reached is not None), limit
        assert recorded_report.known_misses([row(limit.suite, *reaching(limit.most, limit.metric))]) == []


def reaching(value: float, metric: limits.Metric) -> list[Figure]:
    """A hundred bodies that have this value from the given percentile on, and cost nothing below."""
    cheap = {"p50": 49, "p90": 89, "p99": 98, "max": 99}[metric]
    return [figure(body=cost, losses=cost) for cost in [0.1] * cheap + [value] * (100 - cheap)]


@promise("core:benchmarks")
def test_reading_losses_has_a_limit_of_its_own() -> None:
    cheap, dear = figure(body=1.0, losses=1.14), figure(body=1.0, losses=1.16)
    assert overhead([cheap, dear]) == pytest.approx(0.15)
    assert recorded_report.failures([row(limits.VENDOR_REQUESTS, cheap)], []) == []
    (found,) = recorded_report.failures([row(limits.VENDOR_REQUESTS, dear)], [])
    assert "16% on top" in found
    for suite, reached in limits.READING_LOSSES_REACHED.items():
        below, above = (row(suite, figure(body=1.0, losses=1.0 + reached + off)) for off in (-0.01, 0.01))
        assert recorded_report.failures([below], []) == []
        (found,) = recorded_report.known_misses([below])
        assert "on top" in found
        assert recorded_report.failures([above], []) != []


@promise("core:benchmarks")
def test_a_faster_peer_is_a_failure() -> None:
    """Compared on the bodies that both convert, body only; without peers, with their stored figures."""
    ours = row(limits.VENDOR_REQUESTS, figure(body=5.0, losses=5.0), figure(body=1.0, losses=1.0, id="b"))
    ours.peers["other"] = {"a": 4.9}
    (found,) = recorded_report.failures([ours], [])
    assert "other 4.9 on the same 1 bodies" in found
    ours.peers["other"] = {"a": 5.1}
    assert recorded_report.failures([ours], []) == []
    for (source, target), (name, most) in limits.BEST_PEERS.items():
        file = next(file for file, format in corpus.VENDOR_FILES.items() if format == source)
        slow = Row(limits.VENDOR_REQUESTS, file, target, figures=[figure(body=most * 1.01, losses=most * 1.01)])
        assert any(name in text for text in recorded_report.failures([slow], []))


@promise("core:benchmarks")
def test_an_unusual_trait_that_costs_too_much_is_a_failure() -> None:
    edges = [
        Edge("slow", "a -> b", 3.0, 1.0, 2.0),
        Edge("fine", "a -> b", 1.0, 1.0, 2.0),
        Edge("free", "", 9.0, 1.0, None),
    ]
    assert recorded_report.failures([], edges) == ["slow, a -> b: 3.00, limit 2"]


@pytest.mark.parametrize(
    "body",
    [
        {"tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]},
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "s"}]},
        {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}]},
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}},
    ],
)
def test_new_tools_are_new_every_time_and_equally_long(body: dict[str, object]) -> None:
    content = orjson.dumps(body)
    copies = corpus.with_new_tools(Sample("a", "openai-chat", (content,), (content,)), 3)
    assert len({copy.body for copy in copies}) == 3
    assert len({len(copy.body) for copy in copies}) == 1
    assert all(orjson.loads(copy.body).keys() == body.keys() for copy in copies)


def test_a_body_without_functions_has_no_new_tools() -> None:
    content = orjson.dumps({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})
    assert corpus.with_new_tools(Sample("a", "openai-chat", (content,), (content,)), 3) == []


@pytest.mark.skipif(recordings_dir() is None, reason=f"no recordings beside this repository, and {VARIABLE} is not set")
def test_real_bodies_of_every_kind_are_measured_and_the_choice_is_fixed() -> None:
    selection = recorded.Selection(sources=("ollama-chat",), targets=("openai-chat",), bodies=3, rounds=1)
    rows = recorded.measure(selection)
    assert {row.suite for row in rows} >= {limits.VENDOR_REQUESTS, limits.VENDOR_RESPONSES, limits.VENDOR_STREAMS}
    assert all(one.floor < one.body for row in rows for one in row.figures)
    first, second = (corpus.recorded("ollama-chat", "ollama-chat", "request", 3) for _ in range(2))
    assert [sample.id for sample in first] == [sample.id for sample in second]


@promise("core:benchmarks")
def test_own_files_are_measured_by_the_format_and_kind_of_each_body(tmp_path: Path) -> None:
    chat = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hello"}], "seed": 1}
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hello"}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4.1",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    }
    lines, stream, packed = tmp_path / "bodies.jsonl", tmp_path / "stream.txt", tmp_path / "one.json.gz"
    lines.write_bytes(b"\n".join([orjson.dumps(chat), b'{"neither": 1}', orjson.dumps(answer), b"{cut"]))
    stream.write_bytes(b"data: " + orjson.dumps(chunk) + b"\r\n\r\ndata: [DONE]\r\n\r\n")
    packed.write_bytes(gzip.compress(orjson.dumps(chat)))

    found, remarks = own_traffic.read([lines, stream, packed])
    assert {key: [sample.id for sample in samples] for key, samples in found.items()} == {
        ("openai-chat", "request"): ["bodies.jsonl:1", "one.json.gz"],
        ("anthropic-messages", "response"): ["bodies.jsonl:3"],
        ("openai-chat", "stream"): ["stream.txt"],
    }
    assert [remark.partition(": ")[0] for remark in remarks] == ["bodies.jsonl:2", "bodies.jsonl:4"]
    assert found["openai-chat", "stream"][0].payloads == (orjson.dumps(chunk),)

    rows = recorded.measure(recorded.Selection(own=(lines, stream), targets=("gemini",), rounds=1))
    assert {(row.suite, row.source, len(row.figures)) for row in rows} == {
        ("your own requests", "openai-chat", 1),
        ("your own responses", "anthropic-messages", 1),
        ("your own streams", "openai-chat", 1),
    }
