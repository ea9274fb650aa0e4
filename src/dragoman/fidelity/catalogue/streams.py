"""Features of streams."""

from __future__ import annotations

from typing import Any

from dragoman.fidelity import facts
from dragoman.fidelity.cases import EVERYWHERE, Case, Example, Fact, Slots, slots
from dragoman.fidelity.catalogue.pieces import (
    CALLS,
    CITED,
    LIKELY,
    SECRET,
    SIGNED_BY_CLAUDE,
    SQL,
    ask,
    piecewise,
    stream,
)
from dragoman.ir import (
    AnyEvent,
    Failure,
    Finish,
    LogprobsDelta,
    PartDelta,
    PartEnd,
    PartStart,
    Reasoning,
    Refusal,
    Signature,
    StreamFailed,
    StreamStart,
    Text,
    ToolCall,
    Usage,
)


def _case(
    feature: str,
    example: tuple[AnyEvent, ...] | dict[str, Example],
    fact: Fact,
    found_in: Slots = EVERYWHERE,
    **options: Any,
) -> Case:
    return Case(feature, "stream", example, fact, found_in, **options)


_TOKYO = ToolCall("call_1", "get_weather")
_OSLO = ToolCall("call_2", "get_time")
_FIRST = piecewise(0, Text(""), "Let me ", "see.")
_PIECES = ('{"city":', ' "Tokyo"}')


def _stream_cited(part: Text) -> tuple[AnyEvent, ...]:
    cited = (PartDelta(0, "", citation) for citation in part.citations)
    return (PartStart(0, Text("")), PartDelta(0, part.text), *cited, PartEnd(0))


def _call(index: int, call: ToolCall) -> tuple[AnyEvent, ...]:
    return piecewise(index, call, '{"city":', '"Tokyo"}')


_INTERLEAVED = (
    PartStart(0, _TOKYO), PartStart(1, _OSLO), PartDelta(0, '{"city":'), PartDelta(1, '{"city":'),
    PartDelta(0, '"Tokyo"}'), PartDelta(1, '"Oslo"}'), PartEnd(0), PartEnd(1),
)  # fmt: skip
_BETWEEN = (*_FIRST, *_call(1, _TOKYO), *piecewise(2, Text(""), "Then", " that."), *_call(3, _OSLO))
_THOUGHT = piecewise(0, Reasoning(""), "Two ", "places.")
_HELLO = piecewise(0, Text(""), "Hel", "lo.")
_LIKELY = (
    PartStart(0, Text("")), PartDelta(0, "Hel"), LogprobsDelta(LIKELY[:1]), PartDelta(0, "lo."),
    LogprobsDelta(LIKELY[1:]), PartEnd(0),
)  # fmt: skip
_BROKEN = StreamFailed(Failure("server", "It broke.", 500))
_BUSY = StreamFailed(Failure("overloaded", "Overloaded", 529, raw_type="overloaded_error"))
_START = StreamStart()
_SECRETS = {"anthropic": SIGNED_BY_CLAUDE}


def _stream_thought(family: str, text: str = "Two places.", id: str | None = None) -> tuple[AnyEvent, ...]:
    pieces = (text,) if text else ()
    signed = piecewise(
        0,
        Reasoning(""),
        *pieces,
        signature=Signature(family, _SECRETS.get(family, SECRET), id),
    )
    return stream(*signed, *_call(1, _TOKYO), finish=CALLS)


STREAMS: tuple[Case, ...] = (
    _case("parallel-calls", stream(*_call(0, _TOKYO), *_call(1, _OSLO), finish=CALLS), facts.calls),
    _case("interleaved-calls", stream(*_INTERLEAVED, finish=CALLS), facts.calls),
    _case("call-ids", stream(*_call(0, _TOKYO), finish=CALLS), facts.call_ids),
    _case("argument-text", stream(*piecewise(0, _TOKYO, *_PIECES), finish=CALLS), facts.argument_text),
    _case("argument-numbers", stream(*piecewise(0, _TOKYO, '{"id":90071992547', '40993,"ratio":1.0}'), finish=CALLS),
          facts.argument_text),
    _case("no-arguments", stream(*piecewise(0, _TOKYO), finish=CALLS), facts.calls),
    _case("unparsable-arguments", stream(*piecewise(0, _TOKYO, '{"city": "Tok'), finish=CALLS),
          facts.unparsed_arguments,
          slots(interactions="",
                cohere="", chat="", responses="", messages="", converse="")),
    _case("text-before-calls", stream(*_FIRST, *_call(1, _TOKYO), finish=CALLS), facts.story),
    _case("text-between-calls", stream(*_BETWEEN, finish=CALLS), facts.story,
          slots(responses="", messages="", gemini="", converse="", ollama="", interactions="")),
    _case("custom-calls", stream(*piecewise(0, ToolCall("call_1", "run_sql", custom=True), "SELECT", " 1"),
                                 finish=CALLS),
          facts.custom_calls, slots(chat="custom", responses="type=custom_tool_call"), request=ask(tools=(SQL,))),
    _case("reasoning-text", stream(*_THOUGHT, *piecewise(1, Text(""), "Sunny.")), facts.story,
          slots(interactions="type=thought",
                cohere="thinking",
                responses="type=reasoning", messages="thinking", gemini="thought=true", converse="reasoningContent",
                ollama="thinking")),
    _case(
        "signatures",
        {
            "openai-responses": _stream_thought("openai-responses", "", "rs_1"),
            "anthropic": _stream_thought("anthropic"),
            "bedrock": _stream_thought("anthropic"),
            "google": stream(
                PartStart(0, ToolCall("call_1", "get_weather", signature=Signature("google", SECRET))),
                PartDelta(0, '{"city":"Tokyo"}'),
                PartEnd(0),
                finish=CALLS,
            ),
        },
        facts.signatures,
        slots(responses="encrypted_content", messages="signature", gemini="thoughtSignature", converse="signature",
              interactions="signature"),
        private=True,
    ),
    _case("citations", {family: stream(*_stream_cited(cited)) for family, cited in CITED.items()}, facts.citations,
          slots(interactions="type=url_citation",
                cohere="citation-start",
                chat="url_citation", responses="type=url_citation", messages="citation", gemini="groundingMetadata",
                converse="citation")),
    _case("refusals", stream(*piecewise(0, Refusal(""), "I will ", "not.")), facts.refusals,
          slots(chat="refusal", responses="type=refusal")),
    _case("stop-length", stream(*_HELLO, finish=Finish("length")), facts.finish),
    _case("stop-filter", stream(*_HELLO, finish=Finish("content_filter")), facts.finish,
          slots(chat="", responses="", gemini="", converse="")),
    _case("stop-sequence", stream(*_HELLO, finish=Finish("stop", "stop_sequence", "END")), facts.stop_sequence,
          slots(messages="stop_sequence=END", converse="stop_sequence=END")),
    _case("usage", stream(*_HELLO, usage=Usage(10, 5, total=15)), facts.usage("input", "output", "total")),
    _case("usage-cached", stream(*_HELLO, usage=Usage(100, 50, cached=40, total=150)),
          facts.usage("input", "output", "cached"),
          slots(interactions="total_cached_tokens",
                cohere="cached_tokens",
                chat="cached_tokens", responses="cached_tokens", messages="cache_read_input_tokens",
                gemini="cachedContentTokenCount", converse="cacheReadInputTokens")),
    _case("usage-tier", stream(*_HELLO, usage=Usage(10, 5, total=15, service_tier="priority")),
          facts.usage("input", "output", "service_tier"),
          slots(chat="service_tier=priority", responses="service_tier=priority", messages="service_tier=priority",
                converse="serviceTier", interactions="service_tier=priority")),
    _case("log-probabilities", stream(*_LIKELY), facts.logprobs,
          slots(chat="top_logprobs", responses="top_logprobs", gemini="chosenCandidates", ollama="top_logprobs")),
    _case("truncated-stream", stream(*_call(0, _TOKYO), finish=CALLS), facts.truncation, cut=3),
    _case("error-in-the-stream", (_START, *_HELLO, _BROKEN), facts.failure),
    _case("overload-in-the-stream", (_START, *_HELLO, _BUSY), facts.failure),
)  # fmt: skip
PLAIN_STREAM = Case("plain-text", "stream", stream(*_HELLO), facts.story)
