"""Messages requests, both ways."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.codecs.anthropic_messages.caching import FAMILY, decode_mark, encode_mark
from dragoman.codecs.anthropic_messages.hosted_tools import HOSTED
from dragoman.codecs.anthropic_messages.messages import MessageDecoder, MessageEncoder
from dragoman.codecs.anthropic_messages.profile import NEWEST_VERSION, PATH, PROFILE, SAMPLING_VERSION
from dragoman.codecs.anthropic_messages.thinking import decode_reasoning, encode_reasoning
from dragoman.codecs.anthropic_messages.tools import (
    decode_output,
    decode_tool_choice,
    decode_tools,
    encode_output,
    encode_tool_choice,
    encode_tools,
)
from dragoman.codecs.anthropic_messages.wire import (
    PASSED_ON,
    USUALLY_PASSED_ON,
    MessagesBody,
    MessagesRequest,
    MessageWire,
    MetadataWire,
    OutputConfig,
    TextBlock,
    UsualMessagesBody,
)
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.memo import NO_TOOLS
from dragoman.codecs.reading import WireReader, WireValue, encode_with_extra, splice, spliced
from dragoman.codecs.settings import BY_HAND, NO_SUCH_SETTING, Setting, Settings, collect_keys
from dragoman.codecs.shared_settings import MESSAGES_TIERS, fit_tier, json_instruction, read_tier
from dragoman.codecs.system_text import count_leading_system
from dragoman.errors import EncodeError
from dragoman.ir import Message, Request, StructuredOutput
from dragoman.ir.notes import MODELLED, WITHIN, Extra, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_reader = WireReader(UsualMessagesBody, "anthropic-messages request", wider=MessagesBody)
_usual_keys = collect_keys(UsualMessagesBody, USUALLY_PASSED_ON)
_keys = collect_keys(MessagesBody, PASSED_ON)
_metadata = msgspec.json.Decoder(dict[str, Any]).decode


def _write_stop(stop: tuple[str, ...], request: Request, log: LossLog) -> list[str] | UnsetType:  # noqa: ARG001
    return list(stop) if stop or request.origin == FAMILY else UNSET


SETTINGS = Settings(
    MessagesRequest,
    FAMILY,
    (
        Setting("model"),
        Setting("tool_choice", read=BY_HAND, write=BY_HAND),
        Setting("parallel_tool_calls", None, BY_HAND, path="tool_choice.disable_parallel_tool_use"),
        Setting("max_output_tokens", "max_tokens", write=BY_HAND),
        Setting("temperature", write=BY_HAND),
        Setting("top_p", write=BY_HAND),
        Setting("top_k", write=BY_HAND),
        Setting("stop", "stop_sequences", tuple, _write_stop),
        Setting("candidates", None),
        Setting("reasoning", "thinking", BY_HAND, BY_HAND),
        Setting("output", "output_config", BY_HAND, BY_HAND, "output_config.format"),
        Setting("stream"),
        Setting("safety_identifier", "metadata", BY_HAND, BY_HAND, "metadata.user_id"),
        Setting("user", None),  # the same field as the safety identifier, unless both are given
        Setting("cache", "cache_control", BY_HAND, BY_HAND),
        Setting("service_tier", "service_tier", read_tier(MESSAGES_TIERS), partial(fit_tier, MESSAGES_TIERS)),
        Setting("store", None, lost="this API stores nothing", anyway=False),
        Setting("modalities", None, lost=NO_SUCH_SETTING, anyway=("text",)),
        Setting("obfuscation", None, lost=NO_SUCH_SETTING, anyway=False),
        Setting("logprobs", None, lost=NO_SUCH_SETTING, anyway=False),
    ),
    content=("messages", "system", "tools", "output_format"),
)


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def decode_request(body: bytes) -> Request:
    wire = _reader.read(body)
    extra: Extra = (_keys(wire) if type(wire) is MessagesBody else _usual_keys(wire)) or {}
    decoder = MessageDecoder()
    if wire.system is not UNSET:
        if wire.system:
            decoder.decode_system(wire.system)
        else:
            extra[MODELLED + "system"] = Raw(encode_json(wire.system))
    decoder.decode(wire.messages)
    messages = decoder.messages
    tools = NO_TOOLS if wire.tools is UNSET else decode_tools(wire.tools)
    if wire.tools is not UNSET and not tools.tools:
        extra[MODELLED + "tools"] = wire.tools
    if "mcp_servers" in extra:
        tools = HOSTED.join_servers(tools, extra)
    choice = parallel = output = None
    effort: str | UnsetType = UNSET
    if wire.tool_choice is not UNSET:
        choice, disabled = decode_tool_choice(wire.tool_choice), wire.tool_choice.disable_parallel_tool_use
        parallel = None if disabled is UNSET else not disabled
    if not wire.output_config is wire.output_format is UNSET:
        output, effort = _decode_output(wire, extra)
    if wire.stop_sequences == []:
        extra[MODELLED + "stop_sequences"] = Raw(b"[]")
    reasoning = None if wire.thinking is effort is UNSET else decode_reasoning(wire.thinking, effort)
    user = None if wire.metadata is UNSET else _decode_user(wire.metadata, extra)
    cache = None if wire.cache_control is UNSET else decode_mark(wire.cache_control, extra)
    request: Request = SETTINGS.read(
        wire,
        tuple(messages),
        tools.tools,
        {FAMILY: extra} if extra else None,
        choice,
        parallel,
        reasoning,
        output,
        user,
        cache,
    )
    return decoder.noted_on(request, tools.names, tools.is_private)


def _decode_output(wire: MessagesRequest, extra: Extra) -> tuple[StructuredOutput | None, str | UnsetType]:
    """Return format and effort: both in `output_config`; `output_format` is the format's old key."""
    output = None
    config, old = wire.output_config, wire.output_format
    if config is not UNSET:
        rest: Extra = {} if config.extra is UNSET else dict(config.extra)
        if config.format is not UNSET:
            output = decode_output(config.format)
            if output is None:
                rest["format"] = encode_with_extra(config.format)
        if rest:
            extra[WITHIN + "output_config"] = Raw(encode_json(rest))
        elif output is None and config.effort is UNSET:
            extra[MODELLED + "output_config"] = Raw(b"{}")
    if old is not UNSET:
        output = output or decode_output(old)
        if output is None or (config is not UNSET and config.format is not UNSET):
            extra["output_format"] = encode_with_extra(old)
        else:
            extra["~output_format"] = Raw(b"true")
    return output, UNSET if config is UNSET else config.effort


def _decode_user(raw: Raw, extra: Extra) -> str | None:
    try:
        metadata = _metadata(raw)
    except msgspec.ValidationError:
        metadata = {}
    user = metadata.get("user_id")
    if not isinstance(user, str):
        extra["metadata"] = raw
        return None
    if len(metadata) > 1:
        extra["metadata"] = raw
    return user


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────


def encode_request(request: Request, log: LossLog) -> Encoded:
    native = request.origin == FAMILY
    metadata = request.metadata
    extra: Extra = SETTINGS.add_keys(request, log, {} if metadata is None else metadata.get(FAMILY, {}))
    encoder = MessageEncoder(log, request, native)
    messages = request.messages
    leading = count_leading_system(messages, FAMILY) if messages and messages[0].role == "system" else 0
    wires = encoder.encode(messages[leading:] if leading else messages)
    settings = encode_reasoning(request, log, encoder.unsent)
    tools: WireValue = None
    if request.tools:
        tools, servers = encode_tools(request, encoder.mark, log)
        if servers:
            extra = {**extra, **servers}
    output = UNSET if request.output is None else encode_output(request.output, request, log)
    if not native:
        if request.candidates is not None or tools is None:
            _report_missing(request, log, has_tools=tools is not None)
        if not wires or output is not UNSET or settings.thinks:
            _end_with_user(wires, request, log)
    effort = settings.effort
    system: WireValue = UNSET
    if leading or encoder.hoisted:
        system = _encode_system(messages[:leading] + encoder.hoisted, encoder)
    if output is UNSET and request.output is not None:
        system = _asking_for_json(system, request.output)
    wire = SETTINGS.write(
        request,
        log,
        wires,
        system,
        UNSET if tools is None else tools,
        output if "~output_format" in extra else UNSET,
        UNSET if tools is None and not native else encode_tool_choice(request, log),
        settings.max_tokens,
        settings.temperature,
        settings.top_p,
        settings.top_k,
        settings.thinking,
        UNSET if effort is output is UNSET and not extra else _output_config(effort, output, extra),
        UNSET if request.safety_identifier is request.user is None else _encode_user(request, extra, log),
        UNSET if request.cache is None and not extra else encode_mark(request),
    )
    sampling = not (settings.temperature is settings.top_p is settings.top_k is None)
    version = SAMPLING_VERSION if sampling or encoder.needs_old_version else NEWEST_VERSION
    if not extra:
        return Encoded(encode_json(wire), (), PATH, {"anthropic-version": version})
    further = {key: value for key, value in extra.items() if key != "output_config"}
    return Encoded(splice(wire, further), (), PATH, _headers(extra, version))


def _encode_user(request: Request, extra: Extra, log: LossLog) -> WireValue:
    identifier, user = request.safety_identifier, request.user
    if identifier is not None and user is not None and user != identifier:
        log.drop(request, "user", "end user's id", "this API has one field, which holds the safety identifier")
    return UNSET if "metadata" in extra else MetadataWire(user if identifier is None else identifier)


def _end_with_user(messages: list[WireValue], request: Request, log: LossLog) -> None:
    """Add a user turn after a final assistant turn: with thinking or a format, this API does not accept a prefill."""
    if not messages:
        path, reason = "$.messages", "this API requires at least one message with content"
        raise EncodeError(path=path, reason=reason, target=PROFILE.name)
    if isinstance(messages[-1], MessageWire) and messages[-1].role == "assistant":
        why = "this API continues no answer while it thinks or follows a schema"
        log.invent(request.messages[-1], "", "a user turn after it", why)
        messages.append(MessageWire("user", "Continue."))


def _headers(extra: Extra, version: str) -> dict[str, str]:
    headers = {"anthropic-version": version}
    # Bedrock's key for what is a header elsewhere.
    betas = parse_json(extra["anthropic_beta"]) if "anthropic_beta" in extra else None
    if isinstance(betas, list) and betas:
        headers["anthropic-beta"] = ",".join(str(beta) for beta in betas)
    elif (beta := HOSTED.beta_of_servers(extra)) is not None:
        headers["anthropic-beta"] = beta
    return headers


def _encode_system(messages: tuple[Message, ...], encoder: MessageEncoder) -> str | list[WireValue] | UnsetType:
    """Encode a single string as a string, anything else as blocks."""
    if len(messages) == 1 and type(content := messages[0].content_held) is str:
        return content
    blocks: list[WireValue] = []
    for message in messages:
        content = message.content_held
        blocks += [TextBlock(content)] if isinstance(content, str) else encoder.encode_blocks(content, "system")
    return blocks or UNSET


def _asking_for_json(system: WireValue, output: StructuredOutput) -> WireValue:
    instruction = json_instruction(output)
    if system is UNSET:
        return instruction
    return [*([TextBlock(system)] if isinstance(system, str) else system), TextBlock(instruction)]


def _output_config(effort: str | UnsetType, output: WireValue, extra: Extra) -> WireValue:
    config = OutputConfig(effort, UNSET if "~output_format" in extra else output)
    # A program may give further keys as metadata.
    given = extra.get("output_config")
    further = {**(parse_json(given) or {} if given is not None else {}), **(inner_extra(extra, "output_config") or {})}
    if further:
        return spliced(config, further)
    is_empty = config.effort is config.format is UNSET
    return (UNSET if given is None else given) if is_empty else config


def _report_missing(request: Request, log: LossLog, *, has_tools: bool) -> None:
    if request.candidates is not None and request.candidates != 1:
        log.drop(request, "candidates", f"{request.candidates} candidates", "this API gives one answer")
    if has_tools:
        return
    if request.tool_choice is not None:
        log.drop(request, "tool_choice", "tool choice", "this API refuses it without tools")
    if request.parallel_tool_calls is not None:
        log.drop(request, "parallel_tool_calls", "switch for parallel calls", "this API refuses it without tools")
