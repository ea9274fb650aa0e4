"""Features of answers."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, structs

from dragoman.fidelity import facts
from dragoman.fidelity.cases import EVERYWHERE, Case, Example, Fact, Slots, slots
from dragoman.fidelity.catalogue.pieces import (
    CITED,
    COUNTS,
    END,
    LIKELY,
    OSLO,
    SECRET,
    SIGNED_BY_CLAUDE,
    SQL,
    TOKYO,
    answer,
    ask,
    assistant,
)
from dragoman.ir import (
    Completion,
    Finish,
    Logprobs,
    Reasoning,
    Refusal,
    Signature,
    Text,
    ToolCall,
    Usage,
)


def _case(
    feature: str, example: Completion | dict[str, Example], fact: Fact, found_in: Slots = EVERYWHERE, **options: Any
) -> Case:
    return Case(feature, "response", example, fact, found_in, **options)


def _returned_case(feature: str, example: dict[str, Example], fact: Fact, found_in: Slots) -> Case:
    return Case(feature, "response", example, fact, found_in, in_next_request=True, private=True)


_EXACT = '{"days": 1.0, "city": "Zürich" }'
_NUMBERS = '{"id":9007199254740993,"ratio":1.0}'
_HELLO = Text("Hello.")
_TWO = structs.replace(
    answer(_HELLO), messages=(assistant(Text("Hello.")), assistant(Text("Good day."))), finishes=(END, Finish("length"))
)
_IDS = {"openai": "chatcmpl-1", "openai-responses": "resp_1", "anthropic": "msg_1", "google": "r1"}
_RESERVED = Signature("google", SECRET)


def _with_arguments(text: str) -> Completion:
    return answer(ToolCall("call_1", "get_weather", Raw(text.encode()), text))


def _with_finish(reason: Finish) -> Completion:
    return answer(_HELLO, finish=reason)


def _with_usage(**counts: Any) -> Completion:
    return answer(_HELLO, usage=Usage(100, 50, total=150, **counts))


_SIGNED = slots(
    responses="encrypted_content",
    messages="signature",
    gemini="thoughtSignature",
    converse="signature",
    interactions="signature",
)

ANSWERS: tuple[Case, ...] = (
    _case("parallel-calls", answer(TOKYO, OSLO), facts.calls),
    _case("call-ids", answer(TOKYO, OSLO), facts.call_ids),
    _case("argument-text", _with_arguments(_EXACT), facts.argument_text),
    _case("argument-numbers", _with_arguments(_NUMBERS), facts.argument_text),
    _case("no-arguments", answer(ToolCall("call_1", "get_weather", {})), facts.calls),
    _case("unparsable-arguments", answer(ToolCall("call_1", "get_weather", arguments_text='{"city": "Tok')),
          facts.unparsed_arguments, slots(cohere="", chat="", responses="")),
    _case("text-before-calls", answer(Text("Let me see."), TOKYO), facts.story),
    _case("text-between-calls", answer(Text("First this."), TOKYO, Text("Then that."), OSLO), facts.story,
          slots(responses="", messages="", gemini="", converse="", interactions="")),
    _case("custom-calls", answer(ToolCall("call_1", "run_sql", {"input": "SELECT 1"}, "SELECT 1", custom=True)),
          facts.custom_calls, slots(chat="type=custom", responses="type=custom_tool_call"), request=ask(tools=(SQL,))),
    _case("citations", {family: answer(cited) for family, cited in CITED.items()}, facts.citations,
          slots(interactions="type=url_citation",
                cohere="citations",
                chat="url_citation", responses="type=url_citation", messages="citations", gemini="groundingMetadata",
                converse="citationsContent")),
    _case("refusals", answer(Refusal("I will not.")), facts.refusals,
          slots(chat="refusal=I will not.", responses="type=refusal")),
    _case("reasoning-text", answer(Reasoning("Two places."), _HELLO), facts.reasoning,
          slots(interactions="type=thought",
                cohere="thinking",
                responses="type=reasoning", messages="thinking", gemini="thought=true", converse="reasoningContent",
                ollama="thinking")),
    _case("reasoning-between-calls", answer(Reasoning("First."), TOKYO, Reasoning("Then."), OSLO), facts.story,
          slots(responses="", messages="", gemini="", converse="", interactions="")),
    _returned_case(
        "signatures",
        {
            "openai-responses": answer(Reasoning("", Signature("openai-responses", SECRET, "rs_1")), TOKYO),
            "anthropic": answer(Reasoning("hm", Signature("anthropic", SIGNED_BY_CLAUDE)), TOKYO),
            "bedrock": answer(Reasoning("hm", Signature("anthropic", SIGNED_BY_CLAUDE)), TOKYO),
            "google": answer(ToolCall("call_1", "get_weather", {"city": "Tokyo"}, signature=_RESERVED), OSLO),
        },
        facts.signatures,
        _SIGNED,
    ),
    _returned_case(
        "signed-text",
        {"google": answer(Text("Hello.", signature=_RESERVED))},
        facts.signatures,
        slots(gemini="thoughtSignature", interactions="signature"),
    ),
    _returned_case(
        "redacted-reasoning",
        {
            "anthropic": answer(Reasoning("", Signature("anthropic", SIGNED_BY_CLAUDE), redacted=True), TOKYO),
            "bedrock": answer(Reasoning("", Signature("anthropic", SIGNED_BY_CLAUDE), redacted=True), TOKYO),
        },
        facts.redacted_reasoning,
        slots(messages="redacted_thinking", converse="redactedContent"),
    ),
    _case("several-candidates", _TWO, facts.candidates, slots(chat="", gemini="")),
    _case("answer-ids", {
            family: structs.replace(answer(_HELLO), id=id, model="a-model")
            for family, id in _IDS.items()
        }, facts.identity,
          bare=True, found_in=slots(interactions="id",
                cohere="id", chat="id", responses="id", messages="id", gemini="responseId")),
    _case("stop-length", _with_finish(Finish("length")), facts.finish),
    _case("stop-calls", answer(TOKYO), facts.finish),
    _case("stop-filter", _with_finish(Finish("content_filter")), facts.finish,
          slots(chat="", responses="", gemini="", converse="")),
    _case("stop-refusal", _with_finish(Finish("refusal")), facts.finish, slots(messages="stop_reason=refusal")),
    _case("stop-pause", _with_finish(Finish("pause")), facts.finish, slots(messages="stop_reason=pause_turn")),
    _case("stop-sequence", _with_finish(Finish("stop", "stop_sequence", "END")), facts.stop_sequence,
          slots(messages="stop_sequence=END", converse="stop_sequence=END")),
    _case("usage", answer(_HELLO, usage=COUNTS), facts.usage("input", "output", "total")),
    _case("usage-cached", _with_usage(cached=40), facts.usage("input", "output", "cached"),
          slots(interactions="total_cached_tokens",
                cohere="cached_tokens",
                chat="cached_tokens", responses="cached_tokens", messages="cache_read_input_tokens",
                gemini="cachedContentTokenCount", converse="cacheReadInputTokens")),
    _case("usage-cache-written", _with_usage(cached=20, cache_written=30),
          facts.usage("input", "output", "cached", "cache_written"),
          slots(chat="cache_write_tokens", responses="cache_write_tokens", messages="cache_creation_input_tokens",
                converse="cacheWriteInputTokens")),
    _case("log-probabilities", structs.replace(answer(_HELLO), logprobs=(Logprobs(LIKELY),)), facts.logprobs,
          slots(chat="top_logprobs", responses="top_logprobs", gemini="chosenCandidates", ollama="top_logprobs")),
    _case("usage-searches", _with_usage(searches=2), facts.usage("input", "output", "searches"),
          slots(responses="num_requests", messages="web_search_requests")),
    _case("usage-tier", _with_usage(service_tier="priority"), facts.usage("input", "output", "service_tier"),
          slots(chat="service_tier=priority", responses="service_tier=priority", messages="service_tier=priority",
                converse="serviceTier", interactions="service_tier=priority")),
    _case("usage-cache-hour", _with_usage(cache_written=30, details={"cache_written_1h": 20}),
          facts.usage("input", "output", "cache_written", "details"),
          slots(messages="ephemeral_1h_input_tokens", converse="cacheDetails")),
    _case("usage-reasoning", _with_usage(reasoning=20), facts.usage("input", "output", "reasoning"),
          slots(interactions="total_thought_tokens",
                cohere="reasoning_tokens",
                chat="reasoning_tokens", responses="reasoning_tokens", messages="thinking_tokens",
                gemini="thoughtsTokenCount")),
)  # fmt: skip
PLAIN_ANSWER = Case("plain-text", "response", answer(_HELLO), facts.story)
