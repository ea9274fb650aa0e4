"""The checker that is shipped: it finds nothing in our own codecs, and each broken law in a broken one."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.codecs.registry import Codec, codec
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog
from dragoman.testing import CodecFailed, check_codec
from tests.support.bodies import REQUESTS, RESPONSES

CHAT = codec("openai-chat")


def samples(name: str, known: Any) -> list[bytes]:
    return [sample.json() for sample in known if sample.format == name]


@pytest.mark.parametrize("name", dragoman.formats())
def test_our_own_codecs_keep_the_laws(name: str) -> None:
    report = check_codec(name, requests=samples(name, REQUESTS), responses=samples(name, RESPONSES))
    report.raise_if_failed()
    assert report.ok
    assert set(report.tried) == {
        "1 identity",
        "2 nothing vanishes",
        "4 determinism",
        "5 streams tell the same story",
        "8 pairs hold",
        "9 usage adds up",
        "10 bad input, good words",
    }
    assert all(tried >= 4 for tried in report.tried.values())


# What the checker finds in servers that speak Chat their own way, and in stored histories. Rows only leave this table.
KNOWN: dict[str, tuple[str, ...]] = {}


@pytest.mark.parametrize("name", [*dragoman.formats("compatible"), *dragoman.formats("record")])
def test_compatible_servers_and_record_formats_keep_the_laws(name: str) -> None:
    report = check_codec(name)
    assert [str(found) for found in report.findings if not found.subject.startswith(KNOWN.get(name, ()) or "-")] == []


def test_a_codec_that_is_not_registered_has_no_streams_unless_given() -> None:
    import dragoman.codecs.openai_chat.stream as module  # noqa: PLC0415

    assert "5 streams tell the same story" not in check_codec(CHAT).tried
    assert check_codec(CHAT, stream=module).tried["5 streams tell the same story"] > 20


# ── broken ones ───────────────────────────────────────────────────────────────────────────────────────────────


def _without_a_key(key: str) -> Callable[[ir.Request, LossLog], dragoman.Encoded]:
    def encode(request: ir.Request, log: LossLog) -> dragoman.Encoded:
        body = CHAT.encode_request(request, log).body
        body.pop(key, None)
        return dragoman.Encoded(encode_json(body))

    return encode


def _with_a_counter() -> Callable[[ir.Request, LossLog], dragoman.Encoded]:
    numbers = count()
    return lambda request, log: dragoman.Encoded(
        encode_json({**CHAT.encode_request(request, log).body, "nonce": next(numbers)})
    )


def _half_of_the_answer(body: bytes) -> ir.Completion:
    completion = CHAT.decode_response(body)
    usage = completion.usage
    return structs.replace(completion, usage=usage and structs.replace(usage, output=usage.output // 2))


def _results_of_one_call(body: bytes) -> ir.Request:
    request = CHAT.decode_request(body)
    parts = [part for message in request.messages for part in message.parts if isinstance(part, ir.ToolResult)]
    wrong = tuple(
        structs.replace(message, parts=tuple(structs.replace(parts[0], tool_call_id="x") for _ in message.parts))
        if message.role == "tool"
        else message
        for message in request.messages
    )
    return structs.replace(request, messages=wrong)


def _crashing(body: bytes) -> ir.Request:
    parse_json(body)["messages"][0]["role"].lower()
    return CHAT.decode_request(body)


BROKEN: dict[str, tuple[Codec, str, str]] = {
    "forgets the seed": (
        structs.replace(CHAT, encode_request=_without_a_key("seed")),
        "2 nothing vanishes",
        "request seed: lost without a report: 7 became None",
    ),
    "counts its requests": (
        structs.replace(CHAT, encode_request=_with_a_counter()),
        "4 determinism",
        "gives different bytes",
    ),
    "halves the bill": (
        structs.replace(CHAT, decode_response=_half_of_the_answer),
        "9 usage adds up",
        "wrote 5 became 10 and 2",
    ),
    "mixes results up": (
        structs.replace(CHAT, decode_request=_results_of_one_call),
        "8 pairs hold",
        "results of ['x'",
    ),
    "crashes on nonsense": (
        structs.replace(CHAT, decode_request=_crashing),
        "10 bad input, good words",
        "crashed: TypeError",
    ),
    "drops what it does not know": (
        structs.replace(CHAT, decode_request=lambda body: structs.replace(CHAT.decode_request(body), metadata=None)),
        "1 identity",
        "became",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_law_is_found(name: str) -> None:
    broken, law, words = BROKEN[name]
    report = check_codec(broken, requests=samples("openai-chat", REQUESTS))
    assert not report.ok
    assert any(finding.law == law and words in str(finding) for finding in report.findings), str(report)
    with pytest.raises(CodecFailed) as caught:
        report.raise_if_failed()
    assert caught.value.report is report


def test_a_stream_that_loses_content_is_found() -> None:
    """One that takes any end for a good one, and reads each piece by itself."""
    from types import SimpleNamespace  # noqa: PLC0415

    import dragoman.codecs.openai_chat.stream as honest  # noqa: PLC0415

    class Careless(honest.PayloadDecoder):
        def close(self) -> list[ir.AnyEvent]:
            return [event for event in super().close() if not isinstance(event, ir.StreamFailed)]

    module: Any = SimpleNamespace(PayloadDecoder=Careless, EventEncoder=honest.EventEncoder)
    found = [str(finding) for finding in check_codec(CHAT, stream=module).findings]
    assert any("truncated-stream" in finding and "breaks off" in finding for finding in found), found
