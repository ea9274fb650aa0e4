"""Converse requests, both ways. The model and streaming are in the path, not in the body."""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.bedrock_converse.caching import with_automatic_points
from dragoman.codecs.bedrock_converse.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.bedrock_converse.profile import FAMILY, PROFILE, limits_of
from dragoman.codecs.bedrock_converse.thinking import ModelSettings, decode_reasoning, decode_top_k, encode_reasoning
from dragoman.codecs.bedrock_converse.tools import (
    NO_CALLS,
    called_tools,
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
    forbids_calls,
    has_calls,
)
from dragoman.codecs.bedrock_converse.wire import (
    PASSED_ON,
    Block,
    ConverseBody,
    ConverseRequest,
    InferenceConfig,
    MessageWire,
    OutputConfig,
    ToolConfig,
)
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS, DecodedTools
from dragoman.codecs.reading import WireReader, WireValue, restore, splice, spliced
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import (
    CONVERSE_TIERS,
    LabelRules,
    fit_labels,
    fit_others,
    fit_tier,
    json_instruction,
    read_tier,
)
from dragoman.codecs.system_text import count_leading_system
from dragoman.errors import EncodeError
from dragoman.ir import Message, ReasoningSettings, Request, StructuredOutput, ToolChoice
from dragoman.ir.notes import MODELLED, SINGLE, WITHIN, Extra, inner_extra
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

_reader = WireReader(ConverseRequest, "bedrock-converse request", wider=ConverseBody)
_keys = collect_keys(ConverseBody, PASSED_ON)
_entries = msgspec.json.Decoder(dict[str, Raw]).decode

_FIELDS = "additionalModelRequestFields"
_INFERENCE = "inferenceConfig"
_TOOLS = "toolConfig"
_OUTPUT = "outputConfig"
_NO_CONFIG = InferenceConfig()
_EMPTY_OBJECT = Raw(b"{}")

_LABELS = LabelRules(re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{1,256}"), re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}"))


SETTINGS = Settings(
    ConverseRequest,
    FAMILY,
    (
        Setting("model", "model_id", write=BY_HAND, path="modelId"),
        Setting("tool_choice", None, BY_HAND, path="toolConfig.toolChoice"),
        Setting("parallel_tool_calls", None),
        Setting("max_output_tokens", None, BY_HAND, path="inferenceConfig.maxTokens"),
        Setting("temperature", None, BY_HAND, path="inferenceConfig.temperature"),
        Setting("top_p", None, BY_HAND, path="inferenceConfig.topP"),
        Setting("top_k", None, BY_HAND, path="additionalModelRequestFields.top_k"),
        Setting("stop", None, BY_HAND, path="inferenceConfig.stopSequences"),
        Setting("candidates", None),
        Setting("reasoning", None, BY_HAND, path="additionalModelRequestFields"),
        Setting("output", None, BY_HAND, path="outputConfig.textFormat"),
        Setting("cache", None),  # written as points, see with_automatic_points
        # It selects one of two URLs.
        Setting("stream", None),
        Setting("labels", "requestMetadata", write=fit_others(partial(fit_labels, _LABELS), FAMILY)),
        Setting("service_tier", "serviceTier.type", read_tier(CONVERSE_TIERS), partial(fit_tier, CONVERSE_TIERS)),
        Setting("store", None, lost="this API stores nothing", anyway=False),
        Setting("modalities", None, lost=NO_SUCH_SETTING, anyway=("text",)),
        Setting("obfuscation", None, lost=NO_SUCH_SETTING, anyway=False),
        Setting("logprobs", None, lost=NO_SUCH_SETTING, anyway=False),
    ),
    content=(
        "messages",
        "system",
        "inference_config",
        "tool_config",
        "output_config",
        "additional_model_request_fields",
    ),
)

# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    notes: Extra = (_keys(wire) if type(wire) is ConverseBody else None) or {}
    decoder = MessageDecoder()
    if wire.system is not UNSET:
        if wire.system:
            decoder.decode_system(wire.system)
        else:
            notes[MODELLED + "system"] = Raw(b"[]")
    if wire.messages is UNSET:
        notes["~messages"] = Raw(b'"absent"')
    else:
        decoder.decode(wire.messages)
    messages = tuple(decoder.messages)
    if wire.model_id is not None:
        notes["~model"] = Raw(b"true")
    tools, choice = (NO_TOOLS, None) if wire.tool_config is UNSET else _decode_tool_config(wire.tool_config, notes)
    config = _NO_CONFIG if wire.inference_config is UNSET else wire.inference_config
    if wire.inference_config is not UNSET:
        _note_config(config, notes)
    reasoning = top_k = output = None
    if not wire.additional_model_request_fields is wire.output_config is UNSET:
        reasoning, top_k, output = _decode_settings(wire, notes)
    request: Request = SETTINGS.read(
        wire,
        messages,
        tools.tools,
        {FAMILY: notes} if notes else None,
        choice,
        config.max_tokens,
        config.temperature,
        config.top_p,
        top_k,
        () if config.stop_sequences is UNSET else tuple(config.stop_sequences),
        reasoning,
        output,
    )
    return decoder.noted_on(request, tools.names, tools.is_private)


def _decode_settings(
    wire: ConverseRequest, notes: Extra
) -> tuple[ReasoningSettings | None, int | None, StructuredOutput | None]:
    """Decode reasoning, top_k and the output format; the first two are fields of the vendor behind this API."""
    reasoning = top_k = None
    fields: Extra = {}
    if wire.additional_model_request_fields is not UNSET:
        fields = _decode_fields(wire.additional_model_request_fields, notes)
        top_k = decode_top_k(fields, notes)
    output, effort = (None, UNSET) if wire.output_config is UNSET else _decode_output(wire.output_config, notes)
    if fields or effort is not UNSET:
        reasoning = decode_reasoning(fields, effort)
    if fields:
        notes[WITHIN + _FIELDS] = Raw(encode_json(fields))
    return reasoning, top_k, output


def _decode_tool_config(wire: ToolConfig, notes: Extra) -> tuple[DecodedTools, ToolChoice | None]:
    further: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    tools = NO_TOOLS if wire.tools is UNSET else _decode_tools(wire.tools, further)
    choice = None if wire.tool_choice is UNSET else decode_tool_choice(wire.tool_choice)
    if wire.tool_choice is not UNSET and choice is None:
        further["toolChoice"] = restore(wire.tool_choice)
    if further or (not tools.tools and choice is None):
        notes[WITHIN + _TOOLS] = Raw(encode_json(further))
    return tools, choice


def _decode_tools(raw: Raw, further: Extra) -> DecodedTools:
    first = bytes(memoryview(raw)[:1])
    if first == b"n":
        further["tools"] = raw
        return NO_TOOLS
    if first == b"{":  # a single element in place of the list
        further[SINGLE + "tools"] = Raw(b"true")
        return decode_tools(Raw(b"[" + bytes(raw) + b"]"))
    tools = decode_tools(raw)
    if not tools.tools:
        further["~tools"] = Raw(b"[]")
    return tools


def _note_config(config: InferenceConfig, notes: Extra) -> None:
    further: Extra = {} if config.extra is UNSET else dict(config.extra)
    if config.stop_sequences == []:
        further["~stop"] = Raw(b"[]")
    if further or config == _NO_CONFIG:
        notes[WITHIN + _INFERENCE] = Raw(encode_json(further))


def _decode_fields(raw: Raw, notes: Extra) -> Extra:
    """Decode the additional fields for the vendor, beside the common settings."""
    try:
        fields = _entries(raw)
    except msgspec.ValidationError:
        notes[_FIELDS] = raw
        return {}
    if not fields:
        notes[WITHIN + _FIELDS] = _EMPTY_OBJECT
    return fields


def _decode_output(wire: OutputConfig, notes: Extra) -> tuple[StructuredOutput | None, str | UnsetType]:
    further: Extra = {} if wire.extra is UNSET else dict(wire.extra)
    output = None if wire.text_format is UNSET else decode_output(wire.text_format)
    if output is None and wire.text_format is not UNSET:
        further["textFormat"] = wire.text_format
    if further or (output is None and wire.effort is UNSET):
        notes[WITHIN + _OUTPUT] = Raw(encode_json(further))
    return output, wire.effort


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    native = request.origin == FAMILY
    if request.cache is not None:
        request = with_automatic_points(request, log)
    metadata = request.metadata
    notes: Extra = SETTINGS.add_keys(request, log, {} if metadata is None else metadata.get(FAMILY, {}))
    encoder = MessageEncoder(log, request, native)
    messages = request.messages
    leading = count_leading_system(messages, FAMILY) if messages and messages[0].role == "system" else 0
    wires: WireValue = encoder.encode(messages[leading:] if leading else messages)
    settings = encode_reasoning(request, log, encoder.unsent)
    output = UNSET if request.output is None else encode_output(request.output, request, log)
    system: WireValue = UNSET
    if leading or encoder.hoisted:
        system = _encode_system([*messages[:leading], *encoder.hoisted], encoder) or UNSET
    if output is UNSET and request.output is not None:
        system = [*([] if system is UNSET else system), Block(json_instruction(request.output))]
    tools: WireValue = UNSET
    if request.tools or request.tool_choice is not None or notes:
        tools = _encode_tool_config(request, encoder, log, inner_extra(notes, _TOOLS) if notes else None)
    if not native:
        if request.candidates is not None or request.parallel_tool_calls is False:
            _report_missing(request, log)
        _start_with_user(wires, request, log)
        if output is not UNSET or settings.thinks:
            _end_with_user(wires, request, log)
        if forbids_calls(request) and tools is not UNSET:
            system = [*([] if system is UNSET else system), Block(NO_CALLS)]
    elif not wires and "~messages" in notes:
        wires = UNSET
    wire = SETTINGS.write(
        request,
        log,
        wires,
        system,
        _encode_config(request, settings, log, inner_extra(notes, _INFERENCE) if notes else None),
        tools,
        _encode_output_config(output, settings, inner_extra(notes, _OUTPUT) if notes else None),
        _encode_fields(settings, inner_extra(notes, _FIELDS) if notes else None),
        request.model if "~model" in notes else None,
    )
    content = splice(wire, notes) if notes else encode_json(wire)
    return Encoded(content, (), _path_of(request.model, request.stream))


@lru_cache(maxsize=256)
def _path_of(model: str | None, stream: bool | None) -> str:  # noqa: FBT001
    """Return the URL path of a request. The id is one segment of it, so `:` and the slashes of an ARN are escaped."""
    method = "converse-stream" if stream else "converse"
    return f"/model/{'{model}' if model is None else quote(model, safe='')}/{method}"


def _encode_system(messages: list[Message], encoder: MessageEncoder) -> list[WireValue]:
    blocks: list[WireValue] = []
    for message in messages:
        content = message.content_held
        blocks += [Block(content)] if isinstance(content, str) else encoder.encode_blocks(content, "system")
    return blocks


def _start_with_user(wires: list[WireValue], request: Request, log: LossLog) -> None:
    """Ensure that a user message comes first.

    «A conversation must start with a user message»: true for most vendors; Claude and Qwen take it as it is.
    """
    if not wires:
        path, reason = "$.messages", "this API requires at least one message with content"
        raise EncodeError(path=path, reason=reason, target=PROFILE.name)
    first = wires[0]
    if isinstance(first, MessageWire) and first.role == "assistant" and not limits_of(request.model).assistant_first:
        opening = next(message for message in request.messages if message.role == "assistant")
        log.invent(opening, "", "a user turn before it", "this model requires a user turn first")
        wires.insert(0, MessageWire("user", [Block("Continue.")]))


def _end_with_user(wires: list[WireValue], request: Request, log: LossLog) -> None:
    """Add a user message after a final assistant message.

    Claude does not continue an answer in another form than it began: not while it thinks, not under a schema.
    """
    last = wires[-1]
    if isinstance(last, MessageWire) and last.role == "assistant":
        why = "no answer is continued while the model thinks or follows a schema"
        log.invent(request.messages[-1], "", "a user turn after it", why)
        wires.append(MessageWire("user", [Block("Continue.")]))


def _encode_tool_config(request: Request, encoder: MessageEncoder, log: LossLog, further: Extra | None) -> WireValue:
    native = request.origin == FAMILY
    if not native and forbids_calls(request) and not has_calls(request):
        if request.tools:
            log.degrade(
                request, "tool_choice", "choice of no tool", "the tools are left out: this API has no such choice"
            )
        for tool in request.tools:
            log.drop(tool, "", f"tool {tool.name!r}", "left out: no tool may be called")
        return UNSET
    tools: WireValue = encode_tools(request, encoder, log) if request.tools else None
    if tools is None and not native and has_calls(request):
        log.invent(
            request, "tools", "tool definitions", "this API refuses calls in the history without any tool declared"
        )
        return ToolConfig(called_tools(request))  # type: ignore[arg-type]
    if tools is None and not native:
        if request.tool_choice is not None:
            log.drop(request, "tool_choice", "tool choice", "this API takes none without tools")
        return UNSET
    choice = encode_tool_choice(request, log)
    if tools is None:
        tools = [] if further is not None and "~tools" in further else UNSET
    if tools is choice is UNSET and further is None:
        return UNSET
    wire = ToolConfig(tools, choice)
    return wire if further is None else spliced(wire, further)


def _encode_config(request: Request, settings: ModelSettings, log: LossLog, further: Extra | None) -> WireValue:
    stop = list(request.stop) if request.stop else []
    if stop and request.origin != FAMILY:
        stop = [text for text in stop if text.strip()]
        if len(stop) < len(request.stop):
            log.drop(request, "stop", "blank stop sequence", "models refuse stop sequences of white space only")
    kept: Any = stop or (stop if further is not None and "~stop" in further else UNSET)
    maximum, temperature, top_p = settings.max_tokens, settings.temperature, settings.top_p
    if further is not None:
        return spliced(InferenceConfig(maximum, temperature, top_p, kept), further)
    if maximum is temperature is top_p is None and kept is UNSET:
        return UNSET
    return InferenceConfig(maximum, temperature, top_p, kept)


def _encode_output_config(output: WireValue, settings: ModelSettings, further: Extra | None) -> WireValue:
    if output is settings.effort is UNSET and further is None:
        return UNSET
    config = OutputConfig(output, settings.effort)
    return config if further is None else spliced(config, further)


def _encode_fields(settings: ModelSettings, further: Extra | None) -> WireValue:
    if not settings.fields and further is None:
        return UNSET
    return {**(settings.fields or {}), **(further or {})}


def _report_missing(request: Request, log: LossLog) -> None:
    if request.candidates is not None and request.candidates != 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one answer")
    if request.parallel_tool_calls is False:
        log.drop(request, "parallel_tool_calls", "switch for parallel calls", "this API has no such setting")
