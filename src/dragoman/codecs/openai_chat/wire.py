"""Chat Completions on the wire: every documented field, and the keys of servers that speak the format.

Fields we interpret are typed, other keys are exact JSON. Only fields added later become extras (codecs/reading.py).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dragoman.codecs.wire_values import UNKNOWN, MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Unmodelled, Wire


class Breakpoint(Wire, frozen=True):
    mode: str
    ttl: str | UnsetType = UNSET


class TextPart(Wire, frozen=True, tag="text"):
    text: str
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET
    # OpenRouter: Anthropic's cache breakpoint.
    cache_control: Raw | UnsetType = UNSET

    further: ClassVar = ("image_url",)  # Together's SDK sends the members of every part, null where they do not belong


class ImageUrl(Wire, frozen=True):
    url: str
    detail: str | UnsetType = UNSET


class ImagePart(Wire, frozen=True, tag="image_url"):
    # Ollama and llama.cpp also take a bare string.
    image_url: ImageUrl | str
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET

    further: ClassVar = ("text",)


class InputAudio(Wire, frozen=True):
    data: str
    format: str


class AudioPart(Wire, frozen=True, tag="input_audio"):
    input_audio: InputAudio | str
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET


class File(Wire, frozen=True):
    file_data: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    file_id: str | UnsetType = UNSET


class FilePart(Wire, frozen=True, tag="file"):
    file: File
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET


class DocumentUrlPart(Wire, frozen=True, tag="document_url"):
    """Mistral: a document by its address or as a data URL."""

    document_url: str
    document_name: str | None | UnsetType = UNSET


class RefusalPart(Wire, frozen=True, tag="refusal"):
    refusal: str


class ThinkingPart(Wire, frozen=True, tag="thinking"):
    """Mistral: reasoning as a content part, itself a text or a list of texts and references."""

    thinking: Raw

    further: ClassVar = ("closed", "signature")


ContentPart: TypeAlias = (
    TextPart | ImagePart | AudioPart | FilePart | DocumentUrlPart | RefusalPart | ThinkingPart | Unmodelled
)


class Function(Wire, frozen=True):
    name: str | UnsetType = UNSET
    # The specification says text; llama.cpp and Ollama also give an object, OpenRouter nothing for no-argument calls.
    arguments: str | dict[str, Raw] | None | UnsetType = UNSET
    # The vendor's SDK adds this to answers, and clients send it back.
    parsed_arguments: Raw | UnsetType = UNSET

    further: ClassVar = ("call_id",)  # Haystack


class Custom(Wire, frozen=True):
    name: str
    input: str


class Call(Wire, frozen=True):
    id: str | UnsetType = UNSET
    function: Function | UnsetType = UNSET
    type: str | UnsetType = UNSET
    custom: Custom | UnsetType = UNSET
    # The index from a stream, which some clients keep; OpenRouter's cache breakpoint; Google's signature.
    index: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET
    extra_content: Raw | UnsetType = UNSET


class ReasoningDetail(Wire, frozen=True):
    """OpenRouter's shape for reasoning that must come back; also our slot for signatures of other families."""

    type: str
    text: str | None | UnsetType = UNSET
    summary: str | None | UnsetType = UNSET
    data: str | None | UnsetType = UNSET
    signature: str | None | UnsetType = UNSET
    format: str | None | UnsetType = UNSET
    id: str | None | UnsetType = UNSET
    index: int | UnsetType = UNSET


class ChatMessage(Wire, frozen=True, tag_field="role"):
    pass


class SystemMessage(ChatMessage, frozen=True, tag="system"):
    content: str | list[ContentPart]
    name: str | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET

    further: ClassVar = ("tool_calls",)  # null, in bodies of Together's SDK


class DeveloperMessage(ChatMessage, frozen=True, tag="developer"):
    content: str | list[ContentPart]
    name: str | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET

    further: ClassVar = ("tool_calls",)  # null, in bodies of Together's SDK


class UserMessage(ChatMessage, frozen=True, tag="user"):
    content: str | list[ContentPart]
    name: str | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET

    further: ClassVar = ("tool_calls",)  # null, in bodies of Together's SDK


class AssistantMessage(ChatMessage, frozen=True, tag="assistant"):
    content: str | list[ContentPart] | None | UnsetType = UNSET
    tool_calls: list[Call] | None | UnsetType = UNSET
    refusal: str | None | UnsetType = UNSET
    name: str | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET
    audio: Raw | UnsetType = UNSET
    function_call: Raw | UnsetType = UNSET
    # OpenRouter, LiteLLM: what the model drew.
    images: Raw | UnsetType = UNSET
    # Vendors' fields for reasoning, and what they expect back.
    reasoning_content: Raw | UnsetType = UNSET
    reasoning: Raw | UnsetType = UNSET
    reasoning_details: Raw | UnsetType = UNSET
    extra_content: Raw | UnsetType = UNSET
    # Mistral, DeepSeek: the answer begins with this message.
    prefix: Raw | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET
    provider_metadata: Raw | UnsetType = UNSET
    # The vendor's SDK adds this to answers, and clients send it back.
    parsed: Raw | UnsetType = UNSET

    # Groq, Copilot, Gemini's endpoint, LiteLLM, Venice
    further: ClassVar = (
        "executed_tools",
        "padding",
        "reasoning_encrypted",
        "reasoning_opaque",
        "reasoning_signature",
        "reasoning_text",
        "thinking_blocks",
        "thought_signature",
    )


class ToolMessage(ChatMessage, frozen=True, tag="tool"):
    content: str | list[ContentPart]
    tool_call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class FunctionMessage(ChatMessage, frozen=True, tag="function"):
    name: str
    content: str | list[ContentPart] | None


class UnknownMessage(ChatMessage, frozen=True, tag=UNKNOWN):
    raw: Raw


AnyMessage: TypeAlias = (
    SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage | UnknownMessage
)


class FunctionDefinition(Wire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class FunctionTool(Wire, frozen=True, tag="function"):
    function: FunctionDefinition

    # OpenRouter takes Anthropic's keys; some clients give the name of the Responses API too.
    further: ClassVar = ("cache_control", "defer_loading", "eager_input_streaming", "name")


class UntypedTool(Wire, frozen=True):
    """A function without a type, as Mistral allows."""

    function: FunctionDefinition


class CustomDefinition(Wire, frozen=True):
    name: str
    description: str | UnsetType = UNSET
    format: Raw | UnsetType = UNSET


class CustomTool(Wire, frozen=True, tag="custom"):
    custom: CustomDefinition


AnyTool: TypeAlias = FunctionTool | CustomTool | Unmodelled


class FlatTool(Wire, frozen=True, tag="function"):
    """A function in this shape, or as the Responses API writes it: Cursor sends such tools."""

    function: FunctionDefinition | UnsetType = UNSET
    name: str | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    parameters: Raw | UnsetType = UNSET
    strict: bool | None | UnsetType = UNSET

    further: ClassVar = ("cache_control", "defer_loading", "eager_input_streaming")


WiderTool: TypeAlias = FlatTool | CustomTool | Unmodelled


class Named(Wire, frozen=True):
    name: str


class AllowedTool(Wire, frozen=True):
    type: str
    function: Named | UnsetType = UNSET
    custom: Named | UnsetType = UNSET


class AllowedTools(Wire, frozen=True):
    mode: str
    tools: list[AllowedTool]


class ChoiceObject(Wire, frozen=True):
    type: str | UnsetType = UNSET
    function: Named | UnsetType = UNSET
    custom: Named | UnsetType = UNSET
    allowed_tools: AllowedTools | UnsetType = UNSET

    further: ClassVar = ("name",)  # clients with the object of Anthropic's API or of the Responses API


class JsonSchemaFormat(Wire, frozen=True):
    name: str | UnsetType = UNSET
    schema: Raw | UnsetType = UNSET
    description: str | UnsetType = UNSET
    strict: bool | UnsetType = UNSET


class ResponseFormat(Wire, frozen=True):
    type: str
    json_schema: JsonSchemaFormat | UnsetType = UNSET


class ChatRequest(Wire, frozen=True, omit_defaults=True):
    messages: list[AnyMessage]
    model: MaybeStr = None
    tools: Raw | UnsetType = UNSET
    tool_choice: str | ChoiceObject | UnsetType = UNSET
    parallel_tool_calls: MaybeBool = None
    max_completion_tokens: MaybeInt = None
    max_tokens: MaybeInt = None
    temperature: MaybeNumber = None
    top_p: MaybeNumber = None
    stop: str | list[str] | UnsetType = UNSET
    seed: MaybeInt = None
    presence_penalty: MaybeNumber = None
    frequency_penalty: MaybeNumber = None
    n: MaybeInt = None
    reasoning_effort: str | UnsetType = UNSET
    response_format: ResponseFormat | UnsetType = UNSET
    stream: MaybeBool = None
    stream_options: Raw | UnsetType = UNSET
    user: MaybeStr = None


FURTHER = (
    # Groq
    "citation_options", "compound_custom", "disable_tool_validation", "documents", "exclude_domains",
    "include_domains", "search_settings",
    # Mistral
    "guardrails", "prompt_mode",
    # xAI
    "deferred", "search_parameters",
    # Together
    "compliance", "context_length_exceeded_behavior", "echo", "safety_model",
    # OpenRouter
    "debug", "session_id", "top_a", "trace",
    # Perplexity
    "disable_search", "enable_search_classifier", "last_updated_after_filter", "last_updated_before_filter",
    "media_response", "return_images", "return_related_questions", "search_after_date_filter",
    "search_before_date_filter", "search_context_size", "search_domain_filter", "search_mode",
    "search_recency_filter",
    # Venice, Cerebras and Z.ai
    "clear_thinking", "venice_parameters",
    # Qwen
    "thinking_budget",
    # vLLM
    "add_generation_prompt", "add_special_tokens", "bad_words", "best_of", "chat_template",
    "continue_final_message", "ignore_eos", "include_stop_str_in_output", "kv_transfer_params", "length_penalty",
    "min_tokens", "mm_processor_kwargs", "priority", "prompt_logprobs", "request_id", "return_token_ids",
    "return_tokens_as_token_ids", "skip_special_tokens", "spaces_between_special_tokens", "stop_token_ids",
    "structured_outputs", "truncate_prompt_tokens", "use_beam_search", "guided_choice", "guided_grammar",
    "guided_json", "guided_regex",
    # llama.cpp
    "cache_prompt", "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n", "dynatemp_exponent",
    "dynatemp_range", "grammar", "id_slot", "json_schema", "lora", "mirostat", "mirostat_eta", "mirostat_tau",
    "n_keep", "n_predict", "n_probs", "reasoning_in_content", "repeat_last_n", "repeat_penalty", "samplers",
    "timings_per_token", "typical_p", "xtc_probability", "xtc_threshold",
    # Ollama's own API, sent to its endpoint of this format
    "keep_alive", "options",
)  # fmt: skip
"""Settings of compatible servers that are too rare for members (see `Wire.further`)."""


class ReasoningObject(Struct, frozen=True):
    """OpenRouter's settings of reasoning, in one object."""

    effort: MaybeStr = None
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    enabled: bool | None = None
    exclude: bool | None = None


class ThinkingObject(Struct, frozen=True):
    """Anthropic's switch of reasoning, which DeepSeek, GLM, Kimi and LiteLLM take too."""

    type: Literal["enabled", "disabled"]
    budget_tokens: Annotated[int, Meta(gt=0)] | None = None


class UsualChatBody(ChatRequest, frozen=True, omit_defaults=True):
    """A request as it is usually read: with the frequent keys that the intermediate format does not model."""

    logprobs: MaybeRaw = None
    service_tier: MaybeRaw = None
    store: MaybeRaw = None
    top_logprobs: MaybeRaw = None
    # OpenRouter, DeepSeek
    models: MaybeRaw = None
    provider: MaybeRaw = None
    reasoning: MaybeRaw = None
    usage: MaybeRaw = None
    thinking: MaybeRaw = None


class ChatBody(UsualChatBody, frozen=True, omit_defaults=True):
    """A request with all keys that the intermediate format does not model."""

    audio: MaybeRaw = None
    function_call: MaybeRaw = None
    functions: MaybeRaw = None
    logit_bias: MaybeRaw = None
    metadata: MaybeRaw = None
    modalities: MaybeRaw = None
    moderation: MaybeRaw = None
    prediction: MaybeRaw = None
    prompt_cache_key: MaybeRaw = None
    prompt_cache_options: MaybeRaw = None
    prompt_cache_retention: MaybeRaw = None
    safety_identifier: MaybeRaw = None
    verbosity: MaybeRaw = None
    web_search_options: MaybeRaw = None
    # OpenRouter
    include_reasoning: MaybeRaw = None
    plugins: MaybeRaw = None
    route: MaybeRaw = None
    transforms: MaybeRaw = None
    # DeepSeek, Groq, Mistral, vLLM, llama.cpp and others
    chat_template_kwargs: MaybeRaw = None
    enable_thinking: MaybeRaw = None
    min_p: MaybeRaw = None
    random_seed: MaybeRaw = None
    reasoning_format: MaybeRaw = None
    repetition_penalty: MaybeRaw = None
    safe_prompt: MaybeRaw = None
    top_k: MaybeRaw = None

    further: ClassVar = FURTHER


PASSED_ON = tuple(name for name in ChatBody.__struct_fields__ if name not in ChatRequest.__struct_fields__)
"""Keys of a request that only this family understands."""
USUALLY_PASSED_ON = tuple(name for name in PASSED_ON if name in UsualChatBody.__struct_fields__)


class PromptDetails(Struct, frozen=True, gc=False):
    cached_tokens: int | None | UnsetType = UNSET
    cache_write_tokens: int | None | UnsetType = UNSET
    image_tokens: int | None | UnsetType = UNSET
    audio_tokens: Any = UNSET
    # LiteLLM, Qwen: tokens written to a cache.
    cache_creation_tokens: Any = UNSET
    cache_creation_input_tokens: Any = UNSET
    # LiteLLM's and any-llm's: how Anthropic splits the tokens written to a cache by their lifetime.
    cache_creation_token_details: Any = UNSET


class CompletionDetails(Struct, frozen=True, gc=False):
    reasoning_tokens: int | None | UnsetType = UNSET
    audio_tokens: Any = UNSET
    accepted_prediction_tokens: Any = UNSET
    rejected_prediction_tokens: Any = UNSET


class HostedCounts(Struct, frozen=True, gc=False, omit_defaults=True):
    """Counts of hosted tools, with OpenRouter's and xAI's names."""

    web_search_requests: int | None = None
    web_search_calls: int | None = None


class UsageWire(Struct, frozen=True, gc=False):
    """The counts we read. The whole object is kept beside them, byte for byte."""

    prompt_tokens: int | None | UnsetType = UNSET
    completion_tokens: int | None | UnsetType = UNSET
    total_tokens: int | None | UnsetType = UNSET
    prompt_tokens_details: PromptDetails | None | UnsetType = UNSET
    completion_tokens_details: CompletionDetails | None | UnsetType = UNSET
    server_tool_use_details: HostedCounts | None | UnsetType = UNSET
    server_side_tool_usage_details: HostedCounts | None | UnsetType = UNSET
    # Kimi and Together, DeepSeek, LiteLLM: where they count cached tokens, some beside the details.
    cached_tokens: Any = UNSET
    prompt_cache_hit_tokens: Any = UNSET
    cache_read_input_tokens: Any = UNSET
    cache_creation_input_tokens: Any = UNSET


CACHE_COUNTS = frozenset(
    {"cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
)
"""Counts of a usage object that we read and never write."""


class ChoiceWire(Wire, frozen=True):
    message: AssistantMessage | UnsetType = UNSET
    index: int | UnsetType = UNSET
    finish_reason: str | None | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET
    # Azure, OpenRouter, vLLM, Together
    content_filter_results: Raw | UnsetType = UNSET
    native_finish_reason: Raw | UnsetType = UNSET
    stop_reason: Raw | UnsetType = UNSET
    seed: Raw | UnsetType = UNSET

    # Perplexity; SGLang; vLLM; Azure
    further: ClassVar = (
        "delta",
        "matched_stop",
        "routed_experts",
        "token_ids",
        "content_filter_result",
        "finish_details",
    )


class ChatResponse(Wire, frozen=True, omit_defaults=True):
    choices: list[ChoiceWire]
    id: MaybeStr = None
    object: Raw | UnsetType = UNSET
    created: MaybeNumber = None
    model: MaybeStr = None
    usage: Raw | UnsetType = UNSET
    service_tier: Raw | UnsetType = UNSET
    system_fingerprint: Raw | UnsetType = UNSET


class ChatAnswer(ChatResponse, frozen=True, omit_defaults=True):
    """A response as it is read: with the keys that the intermediate format does not model."""

    metadata: MaybeRaw = None
    moderation: MaybeRaw = None
    # Azure, OpenRouter, Groq, Cerebras, llama.cpp, Perplexity, Together
    citations: MaybeRaw = None
    prompt: MaybeRaw = None
    prompt_filter_results: MaybeRaw = None
    provider: MaybeRaw = None
    request_id: MaybeRaw = None
    search_results: MaybeRaw = None
    time_info: MaybeRaw = None
    timings: MaybeRaw = None
    usage_breakdown: MaybeRaw = None
    x_groq: MaybeRaw = None

    further: ClassVar = (
        # llama.cpp
        "__verbose",
        # Copilot, Vercel's gateway, Venice
        "copilot_usage",
        "cost",
        "generationId",
        "venice_parameters",
        # Perplexity
        "images",
        "related_questions",
        # vLLM
        "kv_transfer_params",
        "metrics",
        "prompt_logprobs",
        "prompt_text",
        "prompt_token_ids",
    )


ANSWER_PASSED_ON = tuple(name for name in ChatAnswer.__struct_fields__ if name not in ChatResponse.__struct_fields__)
