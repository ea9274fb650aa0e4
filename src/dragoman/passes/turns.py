"""Turns of a conversation: which parts they may have, where system text goes, and which may be blank, first or last."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from msgspec import structs

from dragoman.errors import EncodeError
from dragoman.ir import (
    AnyPart,
    Message,
    Opaque,
    ProviderTool,
    Request,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
)
from dragoman.losses import LossLog
from dragoman.passes.pairing import join_turn
from dragoman.profile import Profile

CONTINUE = "Continue."


def check_places(request: Request, profile: Profile, log: LossLog) -> Request:
    """Refuses calls outside assistant messages, and results outside tool messages."""
    del log
    if not request.messages:
        raise EncodeError(path="$.messages", reason="a request needs at least one message", target=profile.name)
    for index, message in enumerate(request.messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolResult) != (message.role == "tool"):
                raise _placement_error(index, place, "tool messages hold tool results and nothing else", profile)
            if isinstance(part, ToolCall) and message.role != "assistant":
                raise _placement_error(index, place, f"a message of role {message.role} cannot call tools", profile)
    return request


def _placement_error(message_index: int, part_index: int, reason: str, profile: Profile) -> EncodeError:
    return EncodeError(path=f"$.messages[{message_index}].parts[{part_index}]", reason=reason, target=profile.name)


_READABLE = {
    "compaction": ("content", "[summary of the conversation so far]\n{}\n"),
    "connector_text": ("text", "{}"),
}
"""Kind of a vendor's block -> its member with text for the model, and the form in which another model gets it."""


def show_readable_blocks(request: Request, profile: Profile, log: LossLog) -> Request:
    """Replaces blocks of another vendor by their text, if they are text for the model.

    A summary that replaces the conversation before it is all that a model knows about it.
    """
    messages = tuple([_with_readable(message, profile, log) for message in request.messages])
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return structs.replace(request, messages=messages)


def _with_readable(message: Message, profile: Profile, log: LossLog) -> Message:
    content = message.content_held
    if isinstance(content, str):
        return message
    parts = tuple([_readable(part, profile, log) for part in content])
    if all(new is old for new, old in zip(parts, content, strict=True)):
        return message
    return log.replace(message, parts=parts)


def _readable(part: AnyPart, profile: Profile, log: LossLog) -> AnyPart:
    """Returns the text of a block; any other part as it is."""
    if type(part) is not Opaque or part.origin == profile.family or part.kind not in _READABLE:
        return part
    key, shown = _READABLE[part.kind]
    block = part.block
    words = block.get(key) if isinstance(block, dict) else None
    if not isinstance(words, str) or not words.strip():
        return part
    log.degrade(part, "", f"{part.origin} block {part.kind!r}", "sent as text: it belongs to the provider that made it")
    text = Text(shown.format(words))
    log.replaced(text, part)
    return text


def hoist_system(request: Request, profile: Profile, log: LossLog) -> Request:
    """Moves system text to the front if the API has one field for it."""
    if profile.system != "field":
        return request
    inline = profile.inline_system_models.search(request.model or "") is not None
    front: list[Message] = []
    rest: list[Message] = []
    messages = request.messages
    for index, message in enumerate(messages):
        if message.role != "system":
            rest.append(message)
        elif not rest:
            front.append(message)
        elif inline and _may_stand_inline(messages, index):
            rest.append(message)
        else:
            front.append(message)
            log.degrade(
                message, "", "place of a system message", "this API has one field for system text, at the front"
            )
    return structs.replace(request, messages=(*front, *rest))


def _may_stand_inline(messages: tuple[Message, ...], index: int) -> bool:
    """After a user or tool turn, and last or before an assistant turn; never between a call and its result."""
    before = messages[index - 1].role
    after = messages[index + 1].role if index + 1 < len(messages) else "assistant"
    return before in {"user", "tool", "system"} and after in {"assistant", "system"}


def drop_blank_text(request: Request, profile: Profile, log: LossLog) -> Request:
    """Drops blank text for APIs that refuse it, and messages left empty. Signed blank parts are kept."""
    messages = []
    for message in request.messages:
        changed = _without_blanks(message, profile, log)
        if changed is not None:
            messages.append(changed)
    return structs.replace(request, messages=tuple(messages))


def _without_blanks(message: Message, profile: Profile, log: LossLog) -> Message | None:
    parts: list[AnyPart] = []
    given = message.content_held
    if isinstance(given, str):
        if profile.blank_text or given.strip():
            return message
        given = (Text(given),)
    for part in given:
        if type(part) is not Text or profile.blank_text or part.text.strip() or _is_signed_for(part, profile):
            parts.append(part)
            continue
        if part.text:
            log.drop(message, "", "blank text", "this API refuses text that is only white space")
        if part.signature is not None:
            log.drop(part, "signature", "signature", f"only {part.signature.family} can verify it")
        if part.citations:
            log.drop(part, "citations", "citations", "this API refuses the blank text that has them")
        if part.cache is not None:
            log.drop(part, "cache", "cache mark", "this API refuses the blank text that has it")
    if len(parts) == len(given) and parts:
        return message
    if not parts:
        return None
    return log.replace(message, parts=tuple(parts))


def _is_signed_for(part: AnyPart, profile: Profile) -> bool:
    signature = part.signature if type(part) is Text else None
    return signature is not None and signature.family == profile.signs_as


def merge_model_turns(request: Request, profile: Profile, log: LossLog) -> Request:
    """Merges adjacent assistant messages if the API counts calls per turn."""
    if not profile.merge_model_turns:
        return request
    messages: list[Message] = []
    for role, turn in groupby(request.messages, key=attrgetter("role")):
        if role == "assistant":
            messages.append(join_turn(list(turn), log))
        else:
            messages += turn
    return structs.replace(request, messages=tuple(messages))


def ensure_turns(request: Request, profile: Profile, log: LossLog) -> Request:
    """Ensures one turn beside the system text, and a first and last turn that the API accepts."""
    given = request.messages
    if not given:
        reason = f"no message has content{log.dropped_content()}"
        raise EncodeError(path="$.messages", reason=reason, target=profile.name)
    messages = list(given)
    if messages[-1].role == "system" and all(message.role == "system" for message in messages):
        messages = _system_as_user(messages, profile, log)
    if profile.first_turn_user:
        first = 0
        while first < len(messages) and messages[first].role == "system":
            first += 1
        if first < len(messages) and messages[first].role == "assistant":
            messages.insert(first, Message("user", "" if profile.blank_text else CONTINUE))
            log.invent(messages[first + 1], "", "a user turn before it", "this API requires a user turn first")
    if messages[-1].role == "assistant":
        messages = _legal_ending(messages, request, profile, log)
    changed = tuple(messages)
    return request if changed == given else structs.replace(request, messages=changed)


def _system_as_user(messages: list[Message], profile: Profile, log: LossLog) -> list[Message]:
    if profile.system != "field" or not messages:
        return messages
    last = messages[-1]
    turned = log.replace(last, role="user")
    log.degrade(last, "", "role system", "sent as a user turn: this API requires one beside the system text")
    return [*messages[:-1], turned]


def _legal_ending(messages: list[Message], request: Request, profile: Profile, log: LossLog) -> list[Message]:
    last = messages[-1]
    if profile.no_prefill_models.search(request.model or "") is not None:
        log.degrade(last, "", "beginning of an answer", "sent as a separate turn: this model cannot continue it")
        log.invent(last, "", "a user turn after it", "this model refuses a conversation that ends with the assistant")
        return [*messages, Message("user", CONTINUE)]
    if profile.final_assistant != "trimmed":
        return messages
    content = last.content_held
    tail = content if isinstance(content, str) else content[-1].text if content and type(content[-1]) is Text else ""
    if not tail or not tail[-1].isspace():
        return messages
    log.degrade(last, "", "white space at the end", "this API refuses a final assistant text that ends in white space")
    end = structs.replace(last.parts[-1], text=tail.rstrip())
    trimmed = log.replace(last, parts=(*last.parts[:-1], end))
    return [*messages[:-1], trimmed]


def declare_called_tools(request: Request, profile: Profile, log: LossLog) -> Request:
    """Declares called tools, and forbids calls, for APIs that refuse a history with calls but no tools."""
    called = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
    if request.tools or not called or not profile.tools_with_calls:
        return request
    log.invent(request, "tools", "tool definitions", "this API refuses calls in the history without any tool declared")
    tools = tuple(ToolDefinition(name, parameters={"type": "object", "properties": {}}) for name in called)
    return structs.replace(request, tools=tools, tool_choice=ToolChoice("none"))


def distinct_tools(request: Request, profile: Profile, log: LossLog) -> Request:  # noqa: ARG001
    """Keeps the first of several tools with one name: every API refuses the others."""
    names: set[str] = set()
    tools = []
    for tool in request.tools:
        if tool.name in names and not isinstance(tool, ProviderTool):
            log.drop(tool, "", f"tool {tool.name!r}", "a tool of this name is declared before it")
            continue
        names.add(tool.name)
        tools.append(tool)
    return request if len(tools) == len(request.tools) else structs.replace(request, tools=tuple(tools))


def declared_choice(request: Request, log: LossLog) -> ToolChoice | None:
    """The choice without names of undeclared tools, which every API refuses, and without names if it is of no tool."""
    choice = request.tool_choice
    if choice is None or not choice.names:
        return choice
    if choice.mode == "none":
        log.note(request, "tool_choice", f"choice of {', '.join(choice.names)}", "no tool may be called")
        return structs.replace(choice, names=())
    declared = {tool.name for tool in request.tools}
    names = tuple(name for name in choice.names if name in declared)
    if len(names) == len(choice.names):
        return choice
    missing = ", ".join(name for name in choice.names if name not in declared)
    log.drop(request, "tool_choice", f"choice of {missing}", "no tool of this name is declared")
    return structs.replace(choice, names=names) if names else None


def legal_settings(request: Request, profile: Profile, log: LossLog) -> Request:
    """Drops settings that need tools if there are none, and adapts candidates and stop sequences to the target."""
    choice, parallel = request.tool_choice, request.parallel_tool_calls
    if request.tools:
        choice = declared_choice(request, log)
    else:
        if choice is not None and (choice.mode == "required" or choice.names):
            log.drop(request, "tool_choice", "tool choice", "there are no tools to choose from")
        choice, parallel = None, None
    candidates = request.candidates
    if candidates is not None and candidates < 1:
        log.drop(request, "candidates", f"{candidates} candidates", "every API gives at least one answer")
        candidates = None
    stop = request.stop
    if not profile.blank_stop and any(not text.strip() for text in stop):
        log.drop(request, "stop", "blank stop sequence", "this API refuses stop sequences of white space only")
        stop = tuple(text for text in stop if text.strip())
    if profile.stop_limit is not None and len(stop) > profile.stop_limit:
        what, why = (
            f"{len(stop) - profile.stop_limit} of {len(stop)} stop sequences",
            f"this API takes at most {profile.stop_limit}",
        )
        log.drop(request, "stop", what, why)
        stop = stop[: profile.stop_limit]
    return structs.replace(request, tool_choice=choice, parallel_tool_calls=parallel, candidates=candidates, stop=stop)
