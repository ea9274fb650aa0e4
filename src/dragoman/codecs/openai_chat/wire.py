"""Chat Completions wire types: every documented field, and the keys of servers that speak the format.

Fields we interpret are typed, other keys are exact JSON. Only fields added later become extras (codecs/reading.py).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.codecs.wire_values import UNKNOWN, MaybeBool, MaybeInt, MaybeNumber, MaybeRaw, MaybeStr, Unmodelled, Wire


class Breakpoint(Wire, frozen=True):
    mode: str
    ttl: str | UnsetType = UNSET


class TextPart(Wire, frozen=True, tag="text"):
    text: str
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET
    # OpenRouter: Anthropic's cache breakpoint.
    cache_control: Raw | UnsetType = UNSET


class ImageUrl(Wire, frozen=True):
    url: str
    detail: str | UnsetType = UNSET


class ImagePart(Wire, frozen=True, tag="image_url"):
    # Ollama and llama.cpp also take a bare string.
    image_url: ImageUrl | str
    prompt_cache_breakpoint: Breakpoint | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


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


class RefusalPart(Wire, frozen=True, tag="refusal"):
    refusal: str


class ThinkingPart(Wire, frozen=True, tag="thinking"):
    """Mistral: reasoning as a content part, itself a list of text parts."""

    thinking: str | list[TextPart | Unmodelled]


ContentPart: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | RefusalPart | ThinkingPart | Unmodelled


class Function(Wire, frozen=True):
    name: str | UnsetType = UNSET
    # The specification says text; llama.cpp and Ollama also give an object, OpenRouter nothing for no-argument calls.
    arguments: str | dict[str, Raw] | None | UnsetType = UNSET
    # The vendor's SDK adds this to answers, and clients send it back.
    parsed_arguments: Raw | UnsetType = UNSET


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


class DeveloperMessage(ChatMessage, frozen=True, tag="developer"):
    content: str | list[ContentPart]
    name: str | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class UserMessage(ChatMessage, frozen=True, tag="user"):
    content: str | list[ContentPart]
    name: str | UnsetType = UNSET
    cache_control: Raw | UnsetType = UNSET


class AssistantMessage(ChatMessage, frozen=True, tag="assistant"):
    content: str | list[ContentPart] | None | UnsetType = UNSET
    tool_calls: list[Call] | None | UnsetType = UNSET
    refusal: str | None | UnsetType = UNSET
    name: str | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET
    audio: Raw | UnsetType = UNSET
    function_call: Raw | UnsetType = UNSET
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


PASSED_ON = tuple(name for name in ChatBody.__struct_fields__ if name not in ChatRequest.__struct_fields__)
"""Keys of a request that only this family understands."""
USUALLY_PASSED_ON = tuple(name for name in PASSED_ON if name in UsualChatBody.__struct_fields__)


class PromptDetails(Struct, frozen=True, gc=False):
    cached_tokens: int | None | UnsetType = UNSET
    cache_write_tokens: int | None | UnsetType = UNSET
    image_tokens: int | None | UnsetType = UNSET
    audio_tokens: Any = UNSET


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
    """The counts we read. The whole object is also kept, byte for byte."""

    prompt_tokens: int | None | UnsetType = UNSET
    completion_tokens: int | None | UnsetType = UNSET
    total_tokens: int | None | UnsetType = UNSET
    prompt_tokens_details: PromptDetails | None | UnsetType = UNSET
    completion_tokens_details: CompletionDetails | None | UnsetType = UNSET
    server_tool_use_details: HostedCounts | None | UnsetType = UNSET
    server_side_tool_usage_details: HostedCounts | None | UnsetType = UNSET


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


class ChatResponse(Wire, frozen=True, omit_defaults=True):
    choices: list[ChoiceWire]
    id: MaybeStr = None
    object: Raw | UnsetType = UNSET
    created: MaybeInt = None
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


ANSWER_PASSED_ON = tuple(name for name in ChatAnswer.__struct_fields__ if name not in ChatResponse.__struct_fields__)
