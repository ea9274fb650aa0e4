"""The rules on the model id, tools and settings, and what Claude itself refuses underneath."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from dragoman.sim.rules.anthropic_messages_models import Sampling
from dragoman.sim.rules.bedrock_converse_request import Request, Rule, model_refuses, place, refuse
from dragoman.sim.rules.bedrock_converse_turns import NO_OBJECT
from dragoman.sim.rules.common import Path, Violation, json_type, number_at, object_at, objects_at, text_at, types_of

# --- the model id -------------------------------------------------------------------------------------------------

# vendor.model, perhaps after a region and before a version; anything else is an ARN.
MODEL_ID = re.compile(r"([a-z-]+\.)?[a-z0-9]+\.[a-z0-9][a-z0-9.-]*(:[0-9]+)?(:[0-9]+k|:mm|:[0-9]+)?")
# Called by an inference profile only; what was recorded, no more.
NEEDS_PROFILE = re.compile(r"deepseek\.r1")
NOT_WITH_PROMPT = ("additionalModelRequestFields", "inferenceConfig", "system", "toolConfig")


def model_id_has_its_form(request: Request) -> Iterator[Violation]:
    if request.model and not request.model.startswith("arn:") and not MODEL_ID.fullmatch(request.model):
        yield refuse(("modelId",), "The provided model identifier is invalid.")


def model_runs_on_demand(request: Request) -> Iterator[Violation]:
    if NEEDS_PROFILE.match(request.model):
        message = (
            f"Invocation of model ID {request.model} with on-demand throughput isn\u2019t supported. "
            "Retry your request with the ID or ARN of an inference profile that contains this model."
        )
        yield refuse(("modelId",), message)


def prompt_resources_set_everything(request: Request) -> Iterator[Violation]:
    if not request.uses_prompt:
        if request.model and request.body.get("promptVariables") is not None:
            yield refuse(("promptVariables",), "promptVariables can only be used with a prompt resource.")
        return
    for name in NOT_WITH_PROMPT:
        if request.body.get(name) is not None:
            yield refuse((name,), f"{name} can't be used with a prompt resource.")


# --- tools and settings -------------------------------------------------------------------------------------------


def tool_schemas_describe_objects(request: Request) -> Iterator[Violation]:
    for index, tool in enumerate(objects_at(request.body, "toolConfig", "tools")):
        if "toolSpec" not in tool:
            continue
        where: Path = ("toolConfig", "tools", index, "toolSpec", "inputSchema", "json")
        schema = object_at(tool, "toolSpec", "inputSchema").get("json")
        if not isinstance(schema, Mapping):
            yield refuse(where, NO_OBJECT.format(place(where)))
        elif types_of(schema) != {"object"}:
            message = f"The value at {place(where)}.type must be one of the following: object."
            yield refuse((*where, "type"), message)


def tool_names_differ(request: Request) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, tool in enumerate(objects_at(request.body, "toolConfig", "tools")):
        name = text_at(tool, "toolSpec", "name") or text_at(tool, "systemTool", "name")
        if name in seen:
            where: Path = ("toolConfig", "tools", index, "toolSpec", "name")
            yield refuse(where, f"The tool {name} is already defined at {place(where)}.")
        seen.add(name or f"cachePoint {index}")


def chosen_tool_exists(request: Request) -> Iterator[Violation]:
    name = text_at(request.body, "toolConfig", "toolChoice", "tool", "name")
    declared = {
        text_at(tool, kind, "name")
        for tool in objects_at(request.body, "toolConfig", "tools")
        for kind in ("toolSpec", "systemTool")
    }
    if name and name not in declared:
        where: Path = ("toolConfig", "toolChoice", "tool", "name")
        yield refuse(where, f"The tool {name} at {place(where)} is not among toolConfig.tools.")


def named_choice_is_supported(request: Request) -> Iterator[Violation]:
    if not request.family or request.family.takes_named_choice:
        return
    if object_at(request.body, "toolConfig", "toolChoice").get("tool") is not None:
        where: Path = ("toolConfig", "toolChoice", "tool")
        message = f"This model doesn't support the {place(where)} field. Remove {place(where)} and try again."
        yield refuse(where, message)


def extra_fields_are_an_object(request: Request) -> Iterator[Violation]:
    extra = request.body.get("additionalModelRequestFields")
    if extra is not None and not isinstance(extra, Mapping):
        name = "additionalModelRequestFields"
        yield refuse((name,), NO_OBJECT.format(name))


def field_paths_are_pointers(request: Request) -> Iterator[Violation]:
    paths = request.body.get("additionalModelResponseFieldPaths")
    for index, pointer in enumerate(paths if isinstance(paths, list) else []):
        if isinstance(pointer, str) and not re.fullmatch(r"(/([^~/]|~[01])*)+", pointer):
            where: Path = ("additionalModelResponseFieldPaths", index)
            yield refuse(where, f"The value at {place(where)} is not a valid JSON Pointer: {pointer}")


def output_schema_is_json(request: Request) -> Iterator[Violation]:
    where: Path = ("outputConfig", "textFormat", "structure", "jsonSchema", "schema")
    if not object_at(request.body, "outputConfig", "textFormat"):
        return
    try:
        schema = json.loads(text_at(request.body, *map(str, where)))
    except ValueError:
        schema = None
    except RecursionError:
        return
    if not isinstance(schema, dict):
        yield refuse(where, NO_OBJECT.format(place(where)))


def metadata_is_small(request: Request) -> Iterator[Violation]:
    metadata = request.body.get("requestMetadata")
    if not isinstance(metadata, Mapping):
        return
    if not metadata:
        message = (
            "1 validation error detected: Value at 'requestMetadata' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        )
        yield refuse(("requestMetadata",), message)
    for key in metadata:
        if not re.fullmatch(r"[a-zA-Z0-9\s:_@$#=/+,-.]{1,256}", key):
            message = (
                f"1 validation error detected: Value '{key}' at 'requestMetadata' failed to satisfy constraint: "
                "Map keys must satisfy regular expression pattern: [a-zA-Z0-9\\s:_@$#=/+,-.]{1,256}"
            )
            yield refuse(("requestMetadata", key), message)


# --- Claude underneath --------------------------------------------------------------------------------------------

SAMPLING = {
    "temperature": ("inferenceConfig", "temperature"),
    "top_p": ("inferenceConfig", "topP"),
    "top_k": ("additionalModelRequestFields", "top_k"),
}
SAMPLING_DEFAULTS = {"temperature": 1, "top_p": 1}
LEAST_TOP_P = 0.95


def _sampling(request: Request) -> dict[str, object]:
    found = {name: object_at(request.body, holder).get(key) for name, (holder, key) in SAMPLING.items()}
    return {name: value for name, value in found.items() if value is not None}


def claude_thinking_is_supported(request: Request) -> Iterator[Violation]:
    if not request.thinking or request.limits is None or request.thinking in request.limits.thinking:
        return
    message = f"{request.thinking} thinking is not supported on this model"
    if request.thinking == "enabled" and "adaptive" in request.limits.thinking:
        message = (
            '"thinking.type.enabled" is not supported for this model. '
            'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    yield model_refuses(("additionalModelRequestFields", "thinking", "type"), message)


def claude_budget_fits(request: Request) -> Iterator[Violation]:
    budget = number_at(request.body, "additionalModelRequestFields", "thinking", "budget_tokens")
    most = number_at(request.body, "inferenceConfig", "maxTokens")
    # Without maxTokens the model's maximum holds.
    if request.is_claude and budget and most and budget >= most:
        where = ("additionalModelRequestFields", "thinking", "budget_tokens")
        yield model_refuses(where, "`max_tokens` must be greater than `thinking.budget_tokens`.")


def claude_effort_is_supported(request: Request) -> Iterator[Violation]:
    effort = text_at(request.body, "outputConfig", "effort")
    where: Path = ("outputConfig", "effort")
    if not effort:
        where = ("additionalModelRequestFields", "output_config", "effort")
        effort = text_at(request.body, *map(str, where))
    if not effort or request.limits is None:
        return
    levels = request.limits.efforts
    if request.thinking == "disabled":
        levels &= request.limits.efforts_without_thinking
    if effort not in levels:
        supported = ", ".join(sorted(levels))
        yield model_refuses(
            where, f"This model does not support effort level '{effort}'. Supported levels: {supported}."
        )


def claude_sampling_is_supported(request: Request) -> Iterator[Violation]:
    if request.limits is None:
        return
    given = _sampling(request)
    if request.limits.sampling in (Sampling.FIXED, Sampling.FIXED_ONE_AT_A_TIME):
        for name, value in given.items():
            if value != SAMPLING_DEFAULTS.get(name):
                yield model_refuses(SAMPLING[name], f"`{name}` is deprecated for this model.")
    elif request.limits.sampling is Sampling.ONE_OF_TWO and {"temperature", "top_p"} <= given.keys():
        message = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        yield model_refuses(SAMPLING["top_p"], message)


def claude_thinking_fixes_sampling(request: Request) -> Iterator[Violation]:
    if not request.is_claude or request.thinking not in ("enabled", "adaptive"):
        return
    if request.limits and request.limits.sampling is Sampling.FIXED:
        return
    given = _sampling(request)
    if given.get("temperature", 1) != 1:
        message = "`temperature` may only be set to 1 when thinking is enabled."
        yield model_refuses(SAMPLING["temperature"], message)
    if "top_k" in given:
        yield model_refuses(SAMPLING["top_k"], "`top_k` must be unset when thinking is enabled.")
    if number_at({"top_p": given.get("top_p", 1)}, "top_p") < LEAST_TOP_P:
        message = f"`top_p` must be greater than or equal to {LEAST_TOP_P} or unset when thinking is enabled."
        yield model_refuses(SAMPLING["top_p"], message)


def claude_forced_choice_is_supported(request: Request) -> Iterator[Violation]:
    choice = object_at(request.body, "toolConfig", "toolChoice")
    forced = next((name for name in ("any", "tool") if choice.get(name) is not None), None)
    if forced is None or not request.is_claude:
        return
    where: Path = ("toolConfig", "toolChoice", forced)
    if request.limits and not request.limits.forced_choice:
        yield model_refuses(where, f"tool_choice: type '{forced}' is not supported on this model")
    elif request.thinking == "enabled":
        yield model_refuses(where, "Thinking may not be enabled when tool_choice forces tool use.")


def claude_prefill_is_supported(request: Request) -> Iterator[Violation]:
    if not request.is_claude or not request.turns or request.turns[-1].role != "assistant":
        return
    turn = request.turns[-1]
    where: Path = ("messages", turn.first_message)
    if request.limits and not request.limits.prefill:
        message = (
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
        yield model_refuses(where, message)
    elif request.thinking in ("enabled", "adaptive"):
        message = "When thinking is enabled, the conversation must end with a user message."
        yield model_refuses(where, message)
    elif turn.blocks and turn.blocks[-1].kind == "text":
        text = turn.blocks[-1].value
        if isinstance(text, str) and text.strip() and text != text.rstrip():
            message = "messages: final assistant content cannot end with trailing whitespace"
            yield model_refuses(turn.blocks[-1].path, message)


def claude_thoughts_are_signed(request: Request) -> Iterator[Violation]:
    for block in request.blocks("reasoningContent"):
        thought = object_at(block.value, "reasoningText")
        if request.is_claude and thought and not thought.get("signature"):
            where: Path = (*block.path, "reasoningContent", "reasoningText", "signature")
            yield model_refuses(where, f"{place((*block.path, 'thinking', 'signature'))}: Field required")


def claude_thinks_before_calls(request: Request) -> Iterator[Violation]:
    """With manual thinking, the turn whose calls are being answered begins with its thinking."""
    if not request.is_claude or request.thinking != "enabled":
        return
    for turn, following in zip(request.turns, request.turns[1:], strict=False):
        calls = turn.role == "assistant" and turn.of_kind("toolUse")
        answered_last = following is request.turns[-1] and following.of_kind("toolResult")
        if calls and answered_last and turn.blocks[0].kind != "reasoningContent":
            found = {"toolUse": "tool_use"}.get(turn.blocks[0].kind, turn.blocks[0].kind)
            message = (
                f"{place(turn.blocks[0].path)}.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. "
                "When `thinking` is enabled, a final `assistant` message must start with a thinking block."
            )
            yield model_refuses(turn.blocks[0].path, message)


def claude_accepts_call_ids(request: Request) -> Iterator[Violation]:
    """Converse takes dots and colons in an id, Claude does not."""
    for block in request.blocks("toolUse") if request.is_claude else ():
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", text_at(block.value, "toolUseId")):
            where: Path = (*block.path, "toolUse", "toolUseId")
            message = f"{place((*block.path, 'tool_use', 'id'))}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield model_refuses(where, message)


def claude_instructions_are_not_blank(request: Request) -> Iterator[Violation]:
    for index, entry in enumerate(objects_at(request.body, "system")):
        if request.is_claude and json_type(entry.get("text")) == "string" and not text_at(entry, "text").strip():
            message = "system: text content blocks must contain non-whitespace text"
            yield model_refuses(("system", index, "text"), message)


RULES: tuple[Rule, ...] = (
    model_id_has_its_form,
    model_runs_on_demand,
    prompt_resources_set_everything,
    tool_schemas_describe_objects,
    tool_names_differ,
    chosen_tool_exists,
    named_choice_is_supported,
    extra_fields_are_an_object,
    field_paths_are_pointers,
    output_schema_is_json,
    metadata_is_small,
    claude_thinking_is_supported,
    claude_budget_fits,
    claude_effort_is_supported,
    claude_sampling_is_supported,
    claude_thinking_fixes_sampling,
    claude_forced_choice_is_supported,
    claude_prefill_is_supported,
    claude_thoughts_are_signed,
    claude_thinks_before_calls,
    claude_accepts_call_ids,
    claude_instructions_are_not_blank,
)
