"""Features of requests."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from dragoman.fidelity import facts
from dragoman.fidelity.cases import (
    EVERYWHERE,
    LISTENING_MODELS,
    MODELS,
    THINKING_MODELS,
    Case,
    Example,
    Fact,
    Slots,
    slots,
)
from dragoman.fidelity.catalogue.pieces import (
    CITED,
    CITY,
    OSLO,
    PDF,
    PIXEL,
    QUESTION,
    SECRET,
    SIGNED_BY_CLAUDE,
    SQL,
    THANKS,
    THOUGHTS,
    TOKYO,
    TOOLS,
    WAV,
    ask,
    assistant,
    history,
    result,
)
from dragoman.ir import (
    Audio,
    Cache,
    Document,
    Image,
    Message,
    Reasoning,
    ReasoningSettings,
    Request,
    SearchResult,
    Signature,
    StructuredOutput,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
)

_MODELS = {
    "reasoning-effort": THINKING_MODELS,
    "reasoning-budget": THINKING_MODELS,
    "reasoning-off": THINKING_MODELS,
    "audio": LISTENING_MODELS,
    "verbosity": THINKING_MODELS,
    "cache-marks-of-openai": {**MODELS, "openai-chat": "gpt-5.6", "openai-responses": "gpt-5.6"},
}


def _case(
    feature: str, example: Request | dict[str, Example], fact: Fact, found_in: Slots = EVERYWHERE, **options: Any
) -> Case:
    return Case(feature, "request", example, fact, found_in, **options, models=_MODELS.get(feature, MODELS))


_REFERRING = {
    "type": "object",
    "properties": {"home": {"$ref": "#/$defs/place"}, "work": {"$ref": "#/$defs/place"}},
    "required": ["home"],
    "$defs": {"place": CITY},
}
_KEYWORDS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "exclusiveMaximum": 15},
        "unit": {"enum": ["celsius", "kelvin"], "type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "place": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
_ANSWER = {
    "type": "object",
    "properties": {"degrees": {"type": "integer"}},
    "required": ["degrees"],
    "additionalProperties": False,
}
_EXACT = '{"days": 1.0, "city": "Zürich" }'
_NUMBERS = '{"id":9007199254740993,"ratio":1.0}'
_BROKEN = ToolCall("call_1", "get_weather", arguments_text='{"city": "Tok')
_ODD = ToolDefinition("weather.v2:now", "The weather", CITY)
_ODD_CALL = ToolCall("call_1", "weather.v2:now", {"city": "Tokyo"})
_SHOWN = (Text("The map:"), Image("image/png", PIXEL))
_MIDDLE = ask(
    Message("system", "Be brief."), QUESTION, assistant(Text("Sunny.")), Message("system", "Now be polite."), THANKS
)


def _with_arguments(text: str) -> Request:
    return history(ToolCall("call_1", "get_weather", Raw(text.encode()), text))


def _show(*parts: Text | Image | Document | Audio | SearchResult) -> Request:
    return ask(Message("user", (*parts, Text("What is this?"))))


_CALLS: tuple[Case, ...] = (
    _case("parallel-calls", history(TOKYO, OSLO), facts.calls_and_results),
    _case("argument-text", _with_arguments(_EXACT), facts.argument_text),
    _case("argument-numbers", _with_arguments(_NUMBERS), facts.argument_text),
    _case("no-arguments", history(ToolCall("call_1", "get_weather", {})), facts.calls),
    _case("unparsable-arguments", history(_BROKEN), facts.unparsed_arguments, slots(chat="", cohere="", responses="")),
    _case("odd-tool-names", history(_ODD_CALL, tools=(_ODD,)), facts.tool_names,
          slots(gemini="name=weather.v2:now", interactions="name=weather.v2:now")),
    _case("text-before-calls", history(Text("Let me see."), TOKYO), facts.story_with_results),
    _case("text-between-calls", history(Text("First this."), TOKYO, Text("Then that."), OSLO), facts.story_with_results,
          slots(responses="", messages="", gemini="", converse="", interactions="")),
    _case(
        "custom-calls",
        history(
            ToolCall("call_1", "run_sql", {"input": "SELECT 1"}, "SELECT 1", custom=True),
            tools=(SQL,),
        ),
        facts.custom_calls,
        slots(chat="type=custom", responses="type=custom_tool_call"),
    ),
)  # fmt: skip

_RESULTS: tuple[Case, ...] = (
    _case("text-results", history(TOKYO, answers=(result(TOKYO, '22 °C, "clear"'),)), facts.result_texts),
    _case("data-results", history(TOKYO, answers=(result(TOKYO, {"celsius": 22.5, "sky": ["clear"]}, "data"),)),
          facts.result_values, slots(gemini="celsius", converse="celsius", interactions="celsius")),
    _case("error-results", history(TOKYO, answers=(result(TOKYO, "no such city", "error"),)), facts.result_errors,
          slots(messages="is_error=true", gemini="error", converse="status=error", interactions="is_error=true")),
    _case("image-results", history(TOKYO, answers=(result(TOKYO, None, "multimodal", parts=_SHOWN),)),
          facts.result_parts, slots(responses="type=input_image", messages="type=image", converse="image",
                      interactions="type=image")),
)  # fmt: skip

_TOOLS: tuple[Case, ...] = (
    _case("strict-tools", ask(tools=(ToolDefinition("get_weather", "Weather", _ANSWER, strict=True),)),
          facts.strictness, slots(interactions="tool_choice=validated", cohere="strict_tools=true",
                chat="strict=true", responses="strict=true", messages="strict=true",
                                  gemini="mode=VALIDATED", converse="strict=true")),
    _case("schema-references", ask(tools=(ToolDefinition("move", "Moves", _REFERRING),)), facts.resolved_parameters,
          slots(interactions="$ref",
                cohere="$ref", chat="$ref", responses="$ref", messages="$ref", gemini="$ref", converse="$ref")),
    _case("schema-keywords", ask(tools=(ToolDefinition("plan", "Plans", _KEYWORDS),)), facts.parameters),
    _case("bare-tools", ask(tools=(ToolDefinition("ping"),)), facts.tools),
    _case("custom-tools", ask(tools=(SQL,)), facts.tools,
          slots(chat="type=custom", responses="type=custom")),
    _case("forced-tool", ask(tools=TOOLS, tool_choice=ToolChoice("required", ("get_time",))), facts.choice,
          slots(chat="tool_choice", responses="tool_choice", messages="type=tool", gemini="allowedFunctionNames",
                interactions="allowed_tools",
                converse="tool")),
    _case("required-tool", ask(tools=TOOLS, tool_choice=ToolChoice("required")), facts.choice,
          slots(interactions="tool_choice=any",
                cohere="tool_choice=REQUIRED",
                chat="tool_choice=required", responses="tool_choice=required", messages="type=any",
                gemini="mode=ANY", converse="any")),
    _case("no-tool", ask(tools=TOOLS, tool_choice=ToolChoice("none")), facts.choice,
          slots(interactions="tool_choice=none",
                cohere="tool_choice=NONE",
                chat="tool_choice=none", responses="tool_choice=none", messages="type=none", gemini="mode=NONE")),
    _case("allowed-tools", ask(tools=TOOLS, tool_choice=ToolChoice("required", ("get_weather", "get_time"))),
          facts.choice, slots(chat="allowed_tools", responses="type=allowed_tools", gemini="allowedFunctionNames",
                              interactions="allowed_tools")),
    _case("parallel-switch", ask(tools=TOOLS, parallel_tool_calls=False), facts.setting("parallel_tool_calls"),
          slots(chat="parallel_tool_calls=false", responses="parallel_tool_calls=false",
                messages="disable_parallel_tool_use=true")),
)  # fmt: skip

_CONTENT: tuple[Case, ...] = (
    _case("system-prompt", ask(Message("system", "Be brief."), QUESTION), facts.conversation),
    _case("system-in-the-middle", _MIDDLE, facts.conversation, slots(cohere="", chat="", responses="", ollama="")),
    _case("prefill", ask(QUESTION, assistant(Text("The weather in Tokyo is"))), facts.conversation,
          slots(chat="", responses="", messages="", gemini="", converse="", ollama="")),
    _case("image-data", _show(Image("image/png", PIXEL)), facts.media),
    _case("image-addresses", _show(Image(url="https://example.org/a.png")), facts.image_urls,
          slots(interactions="uri",
                cohere="image_url", chat="image_url", responses="image_url", messages="type=url", gemini="fileUri")),
    _case("image-detail", _show(Image("image/png", PIXEL, detail="high")), facts.attribute(Image, "detail"),
          slots(interactions="resolution=high",
                cohere="detail=high", chat="detail=high", responses="detail=high", gemini="mediaResolution")),
    _case("documents", _show(Document("application/pdf", PDF)), facts.media,
          slots(chat="file", responses="input_file", messages="document", gemini="inlineData", converse="document",
                interactions="type=document")),
    _case("text-documents", _show(Document("text/plain", text="Dear reader,", title="letter")), facts.media,
          slots(cohere="documents", messages="text/plain", converse="document")),
    _case("audio", _show(Audio("audio/wav", WAV)), facts.media,
          slots(chat="input_audio", responses="input_audio", gemini="inlineData", converse="audio", ollama="images",
                interactions="type=audio")),
    _case("search-results", _show(SearchResult("kb://1", "Rain", ("Rain falls.",), cite=True)),
          facts.search_results, slots(messages="search_result", converse="searchResult")),
    _case("cache-marks-of-openai", ask(Message("user", (Text("A long text.", cache=Cache()), Text("Go on.")))),
          facts.cache_marks, slots(chat="prompt_cache_breakpoint", responses="prompt_cache_breakpoint",
                                   messages="cache_control", converse="cachePoint")),
    _case("cache-marks", ask(Message("user", (Text("A long text.", cache=Cache()), Text("Go on.")))),
          facts.cache_marks, slots(messages="cache_control", converse="cachePoint")),
    _case("citations", {family: history(cited) for family, cited in CITED.items()}, facts.citations,
          slots(interactions="annotations",
                cohere="citations",
                chat="annotations", responses="annotations", messages="citations", converse="citationsContent")),
    _case("speaker-names", ask(Message("user", "Hello", name="ann")), facts.names, slots(chat="name=ann")),
    _case("reasoning-text", {family: history(thought, Text("Sunny.")) for family, thought in THOUGHTS.items()},
          facts.reasoning, slots(interactions="type=thought",
                cohere="thinking", gemini="thought=true", ollama="thinking")),
    _case(
        "signatures",
        {
            "openai-responses": history(Reasoning("", Signature("openai-responses", SECRET, "rs_1")), TOKYO),
            "anthropic": history(Reasoning("hm", Signature("anthropic", SIGNED_BY_CLAUDE)), TOKYO),
            "bedrock": history(Reasoning("hm", Signature("anthropic", SIGNED_BY_CLAUDE)), TOKYO),
            "google": history(
                ToolCall("call_1", "get_weather", {"city": "Tokyo"}, signature=Signature("google", SECRET))
            ),
        },
        facts.signatures,
        slots(responses="encrypted_content", messages="signature", gemini="thoughtSignature", converse="signature",
              interactions="signature"),
        private=True,
    ),
)  # fmt: skip

_SETTINGS: tuple[Case, ...] = (
    _case("sampling", ask(temperature=0.5), facts.setting("temperature")),
    _case("nucleus", ask(top_p=0.5), facts.setting("top_p")),
    _case("top-k", ask(top_k=5), facts.setting("top_k"), slots(cohere="k=5",
                messages="top_k=5", gemini="topK=5", ollama="top_k=5")),
    _case("penalties", ask(presence_penalty=0.5, frequency_penalty=0.25),
          lambda asked: (asked.presence_penalty, asked.frequency_penalty),
          slots(cohere="presence_penalty",
                chat="presence_penalty", gemini="presencePenalty", ollama="presence_penalty")),
    _case("token-limit", ask(max_output_tokens=500), facts.setting("max_output_tokens")),
    _case("stop-sequences", ask(stop=("END", "STOP")), facts.setting("stop"),
          slots(interactions="stop_sequences",
                cohere="stop_sequences",
                chat="stop", messages="stop_sequences", gemini="stopSequences", converse="stopSequences",
                ollama="stop")),
    _case("seed", ask(seed=7), facts.setting("seed"), slots(interactions="seed=7",
                cohere="seed=7",
                chat="seed=7", gemini="seed=7", ollama="seed=7")),
    _case("several-candidates", ask(candidates=2), facts.setting("candidates"),
          slots(chat="n=2", gemini="candidateCount=2")),
    _case("verbosity", ask(verbosity="low"), facts.setting("verbosity"),
          slots(chat="verbosity=low", responses="verbosity=low")),
    _case("user-ids", ask(user="u-1"), facts.end_user,
          slots(chat="user=u-1", responses="user=u-1", messages="user_id=u-1")),
    _case("safety-identifiers", ask(safety_identifier="u-1"), facts.end_user,
          slots(chat="safety_identifier=u-1", responses="safety_identifier=u-1", messages="user_id=u-1")),
    _case("request-labels", ask(labels={"team": "a"}), facts.setting("labels"),
          slots(chat="metadata", responses="metadata", converse="requestMetadata", gemini="labels")),
    _case("service-tier", ask(service_tier="flex"), facts.setting("service_tier"),
          slots(chat="service_tier=flex", responses="service_tier=flex", gemini="serviceTier=flex",
                converse="serviceTier")),
    _case("standard-tier", ask(service_tier="default"), facts.setting("service_tier"),
          slots(chat="service_tier=default", responses="service_tier=default", messages="service_tier=standard_only",
                gemini="serviceTier=standard", converse="serviceTier")),
    _case("stored-answers", ask(store=True), facts.setting("store"),
          slots(chat="store=true", responses="store=true", gemini="store=true")),
    _case("prompt-cache-keys", ask(prompt_cache_key="k-1"), facts.setting("prompt_cache_key"),
          slots(chat="prompt_cache_key=k-1", responses="prompt_cache_key=k-1")),
    _case("prompt-cache-options", ask(prompt_cache_options={"mode": "explicit"}, prompt_cache_retention="24h"),
          lambda asked: (asked.prompt_cache_options, asked.prompt_cache_retention),
          slots(chat="prompt_cache_options", responses="prompt_cache_options")),
    _case("moderation", ask(moderation={"model": "omni-moderation-latest"}), facts.setting("moderation"),
          slots(chat="moderation", responses="moderation")),
    _case("log-probabilities", ask(logprobs=True, top_logprobs=3), lambda asked: (asked.logprobs, asked.top_logprobs),
          slots(chat="top_logprobs=3", responses="top_logprobs=3", gemini="logprobs=3", ollama="top_logprobs=3")),
    _case("modalities", ask(modalities=("text", "audio")), facts.setting("modalities"),
          slots(chat="modalities", gemini="responseModalities")),
    _case("stream-padding", ask(stream=True, obfuscation=True), facts.setting("obfuscation"),
          slots(chat="include_obfuscation=true", responses="include_obfuscation=true")),
    _case("reasoning-effort", ask(reasoning=ReasoningSettings(effort="low")), facts.effort,
          slots(chat="reasoning_effort", responses="effort", messages="effort", gemini="thinkingLevel",
                interactions="thinking_level",
                ollama="think")),
    _case("reasoning-budget", ask(max_output_tokens=8000, reasoning=ReasoningSettings("on", budget_tokens=2000)),
          facts.budget, slots(cohere="token_budget=2000",
                messages="budget_tokens=2000", gemini="thinkingBudget=2000", converse="budget_tokens")),
    _case("reasoning-off", ask(reasoning=ReasoningSettings("off")), facts.reasoning_mode,
          slots(cohere="type=disabled",
                chat="reasoning_effort", responses="effort", messages="type=disabled", gemini="thinkingBudget=0",
                converse="type=disabled", ollama="think=false")),
    _case("structured-output", ask(output=StructuredOutput("schema", _ANSWER)), facts.output,
          slots(interactions="schema",
                cohere="json_schema", chat="json_schema", responses="type=json_schema", messages="type=json_schema",
                gemini="application/json", converse="outputConfig", ollama="format")),
    _case("schema-names", ask(output=StructuredOutput("schema", _ANSWER, name="weather")),
          lambda asked: asked.output and (asked.output.name or (asked.output.schema or {}).get("title")),
          slots(chat="name=weather", responses="name=weather", gemini="title=weather", converse="name=weather")),
    _case("json-mode", ask(output=StructuredOutput("json")), facts.output,
          slots(interactions="application/json",
                cohere="type=json_object",
                chat="type=json_object", responses="type=json_object", gemini="application/json", ollama="format")),
)  # fmt: skip

REQUESTS: tuple[Case, ...] = (*_CALLS, *_RESULTS, *_TOOLS, *_CONTENT, *_SETTINGS)
PLAIN_REQUESTS: tuple[Case, ...] = (
    _case("plain-text", ask(), facts.conversation),
    _case("plain-call", history(TOKYO), facts.calls),
)
