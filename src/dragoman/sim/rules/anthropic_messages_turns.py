"""Rules between messages: who may say what, which result answers which call, and in what order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dragoman.sim.rules.anthropic_messages_request import (
    LocatedBlock,
    Request,
    Rule,
    Turn,
    blocks_of,
    inner_blocks,
    refuse,
)
from dragoman.sim.rules.anthropic_messages_shapes import CODE_CALLERS, SERVER_RESULTS
from dragoman.sim.rules.common import Violation, object_at, objects_at, text_at

SERVER_BLOCKS = frozenset({"server_tool_use", *SERVER_RESULTS})
OUTPUT_BLOCKS = SERVER_BLOCKS | {
    "tool_use",
    "thinking",
    "redacted_thinking",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "fallback",
}
TOOL_CHANGES = frozenset({"tool_addition", "tool_removal"})
BLOCKS_OF_ROLE = {
    "user": frozenset({"text", "image", "document", "search_result", "container_upload", "tool_result", "compaction"}),
    "assistant": OUTPUT_BLOCKS | {"text", "document", "container_upload", "compaction", "connector_text"},
    "system": frozenset({"text"}) | TOOL_CHANGES,
}


def blocks_fit_their_role(request: Request) -> Iterator[Violation]:
    for role, located in request.blocks:
        if located.kind in BLOCKS_OF_ROLE[role]:
            continue
        homes = [f"`{home}`" for home, kinds in BLOCKS_OF_ROLE.items() if located.kind in kinds] or ["no"]
        yield refuse(located.path, f"`{located.kind}` blocks can only be in {' or '.join(homes)} messages")


def documents_are_the_users(request: Request) -> Iterator[Violation]:
    """Since 2026-10-21 an assistant message holds no document of its own."""
    if not request.modern:
        return
    for role, located in request.blocks:
        if role == "assistant" and located.kind == "document":
            yield refuse(located.path, "`document` blocks can only be in `user` messages")


def citations_are_the_assistants(request: Request) -> Iterator[Violation]:
    """Since 2026-10-21 text of the user, and text inside a search result, cites nothing."""
    if not request.modern:
        return
    for role, located in request.blocks:
        cited = [located] if role == "user" and located.kind == "text" else []
        results = [located, *inner_blocks(located)] if role == "user" else []
        for result in results:
            if result.kind == "search_result":
                cited.extend(inner_blocks(result))
        for text in cited:
            if text.block.get("citations"):
                yield refuse((*text.path, "citations"), "citations are not permitted here")


# --- text ---------------------------------------------------------------------------------------------------------


def messages_say_something(request: Request) -> Iterator[Violation]:
    messages = objects_at(request.body, "messages")
    for index, message in enumerate(messages):
        if message.get("content") not in ("", []):
            continue
        if index == len(messages) - 1 and message.get("role") == "assistant":
            continue
        # β: a system message may say nothing and only set the effort.
        if message.get("role") == "system" and message.get("output_config"):
            continue
        reason = "all messages must have non-empty content except for the optional final assistant message"
        yield refuse(("messages", index), reason)


def _is_blank(located: LocatedBlock) -> bool:
    return located.kind == "text" and not text_at(located.block, "text").strip()


def _texts(request: Request) -> Iterator[LocatedBlock]:
    """The texts that have to say something."""
    for index, message in enumerate(objects_at(request.body, "messages")):
        blocks = list(blocks_of(message, ("messages", index))) if message.get("content") != "" else []
        # A blank between other blocks of the assistant is let through (recordings b12dcfd65fca, 0c0d2bb621d9).
        blank_is_fine = message.get("role") == "assistant" and not all(_is_blank(located) for located in blocks)
        for located in blocks:
            if located.kind == "text" and not (blank_is_fine and text_at(located.block, "text")):
                yield located
    system = request.body.get("system")
    # An empty string counts as no system prompt (recordings 79cb60a2e3f0, ce297c0cdbf9), an empty block does not.
    if isinstance(system, str) and system:
        yield LocatedBlock(("system",), {"type": "text", "text": system})
    for index, block in enumerate(objects_at(request.body, "system")):
        yield LocatedBlock(("system", index), block)


def texts_say_something(request: Request) -> Iterator[Violation]:
    for located in _texts(request):
        text = text_at(located.block, "text")
        if not text:
            yield refuse(located.path, "text content blocks must be non-empty", named=located.path[:1])
        elif not text.strip():
            yield refuse(located.path, "text content blocks must contain non-whitespace text", named=located.path[:1])


def search_results_say_something(request: Request) -> Iterator[Violation]:
    for _, located in request.blocks:
        for result in (located, *inner_blocks(located)):
            if result.kind != "search_result":
                continue
            for text in inner_blocks(result):
                if not text_at(text.block, "text").strip():
                    yield refuse(text.path, "text content blocks must be non-empty")


# --- the last word ------------------------------------------------------------------------------------------------


def _prefill(request: Request) -> Turn | None:
    """The assistant turn the caller wants continued, unless it is a paused or handed-over one."""
    last = request.turns[-1]
    resumes = any(last.of_kind(*SERVER_BLOCKS, "mcp_tool_use", "mcp_tool_result"))
    if last.role != "assistant" or resumes or request.body.get("fallback_credit_token") is not None:
        return None
    return last


def prefill_is_supported(request: Request) -> Iterator[Violation]:
    turn = _prefill(request)
    if turn is None:
        return
    where = ("messages", turn.first_message)
    if request.limits and not request.limits.prefill:
        reason = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield refuse(where, reason, named=())
    elif request.thinking in ("enabled", "adaptive"):
        yield refuse(where, "When thinking is enabled, the conversation must end with a user message.", named=())
    elif object_at(request.body, "output_config", "format") or request.body.get("output_format") is not None:
        yield refuse(where, "Prefilling assistant messages is not supported with structured output.", named=())


def prefill_has_no_trailing_whitespace(request: Request) -> Iterator[Violation]:
    last = request.turns[-1]
    if last.role != "assistant" or not last.blocks or last.blocks[-1].kind != "text":
        return
    text = text_at(last.blocks[-1].block, "text")
    if text != text.rstrip():
        reason = "final assistant content cannot end with trailing whitespace"
        yield refuse(last.blocks[-1].path, reason, named=("messages",))


# --- calls and results --------------------------------------------------------------------------------------------


def calls_are_answered(request: Request) -> Iterator[Violation]:
    """The turn after a turn with calls answers all of them."""
    for turn, following in zip(request.turns, (*request.turns[1:], None), strict=True):
        calls = list(turn.of_kind("tool_use"))
        answered = (
            {text_at(result.block, "tool_use_id") for result in following.of_kind("tool_result")}
            if following
            else set()
        )
        missing = [call for call in calls if text_at(call.block, "id") not in answered]
        if missing:
            ids = ", ".join(text_at(call.block, "id") for call in missing)
            reason = (
                f"`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
                "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
            yield refuse(missing[0].path, reason, named=missing[0].path[:2])


def calls_close_their_turn(request: Request) -> Iterator[Violation]:
    """Text after a call in the same turn parts the call from its result.

    Recording 682569be326b is a 400 for `assistant[tool_use, text] user[tool_result]`. A server call may follow
    (recording 9f0717e718b3, a 200).
    """
    for turn in request.turns:
        called = ""
        for located in turn.blocks:
            called = called or (text_at(located.block, "id") if located.kind == "tool_use" else "")
            if called and located.kind == "text":
                reason = f"`tool_use` ids were found without `tool_result` blocks immediately after: {called}."
                yield refuse(located.path, reason, named=located.path[:2])


def results_have_calls(request: Request) -> Iterator[Violation]:
    for previous, turn in zip((None, *request.turns), request.turns, strict=False):
        if previous is None and request.continues_thread:
            continue
        call_ids = {text_at(call.block, "id") for call in previous.of_kind("tool_use")} if previous else set()
        for result in turn.of_kind("tool_result"):
            if text_at(result.block, "tool_use_id") not in call_ids:
                reason = (
                    f"unexpected `tool_use_id` found in `tool_result` blocks: {text_at(result.block, 'tool_use_id')}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
                yield refuse(result.path, reason)


def calls_are_answered_once(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        counts = Counter(text_at(result.block, "tool_use_id") for result in turn.of_kind("tool_result"))
        for result in turn.of_kind("tool_result"):
            if counts.pop(text_at(result.block, "tool_use_id"), 0) > 1:
                identifier = text_at(result.block, "tool_use_id")
                reason = (
                    "each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {identifier}"
                )
                yield refuse(result.path, reason)


def results_come_first(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        other_seen = False
        for located in turn.blocks if turn.role == "user" else ():
            if located.kind == "tool_result" and other_seen:
                yield refuse(located.path, "`tool_result` blocks must come first in the turn that answers a `tool_use`")
            other_seen = other_seen or located.kind != "tool_result"


def call_ids_differ(request: Request) -> Iterator[Violation]:
    seen: set[str] = set()
    for _, located in request.blocks:
        if located.kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            if text_at(located.block, "id") in seen:
                yield refuse(located.path, "`tool_use` ids must be unique", named=("messages",))
            seen.add(text_at(located.block, "id"))


def failures_explain_themselves(request: Request) -> Iterator[Violation]:
    for _, located in request.blocks:
        if located.kind != "tool_result":
            continue
        content = located.block.get("content")
        if content == []:
            yield refuse((*located.path, "content"), "tool_result content must not be an empty list")
        elif located.block.get("is_error") is True and not content:
            yield refuse(located.path, "content cannot be empty if `is_error` is true")


def results_do_not_mix_search(request: Request) -> Iterator[Violation]:
    for _, located in request.blocks:
        kinds = {inner.kind for inner in inner_blocks(located)} if located.kind == "tool_result" else set()
        if "search_result" in kinds and len(kinds) > 1:
            yield refuse(located.path, "`search_result` blocks cannot be mixed with other blocks in a `tool_result`")


def _calls_from_code(turn: Turn) -> Iterator[LocatedBlock]:
    return (call for call in turn.of_kind("tool_use") if text_at(call.block, "caller", "type") in CODE_CALLERS)


def programmatic_results_are_text(request: Request) -> Iterator[Violation]:
    by_code = {text_at(call.block, "id") for turn in request.turns for call in _calls_from_code(turn)}
    for _, located in request.blocks:
        if located.kind == "tool_result" and text_at(located.block, "tool_use_id") in by_code:
            for inner in inner_blocks(located):
                if inner.kind != "text":
                    yield refuse(inner.path, "the result of a programmatic tool call can only hold text")


def programmatic_replies_are_results(request: Request) -> Iterator[Violation]:
    """Code that waits for its calls gets their results and nothing else, in the container it runs in."""
    for turn, following in zip(request.turns, request.turns[1:], strict=False):
        if not any(_calls_from_code(turn)):
            continue
        for located in following.blocks:
            if located.kind != "tool_result":
                yield refuse(located.path, "a reply to programmatic tool calls can only hold `tool_result` blocks")
        if following is request.turns[-1] and not request.body.get("container"):
            yield refuse(("container",), "a reply to programmatic tool calls needs the container id")


def toolset_results_name_their_toolset(request: Request) -> Iterator[Violation]:
    toolsets = {
        text_at(located.block, "id"): text_at(located.block, "toolset_name")
        for _, located in request.blocks
        if located.kind == "tool_use"
    }
    for _, located in request.blocks:
        if located.kind != "tool_result" or text_at(located.block, "tool_use_id") not in toolsets:
            continue
        expected = toolsets[text_at(located.block, "tool_use_id")]
        if text_at(located.block, "toolset_name") != expected:
            yield refuse((*located.path, "toolset_name"), f"must repeat the toolset of its call: '{expected}'")


# --- server tools -------------------------------------------------------------------------------------------------


def server_calls_are_answered(request: Request) -> Iterator[Violation]:
    """An open server call is legal only while the conversation waits for client results (or is paused)."""
    answered = {
        text_at(located.block, "tool_use_id") for _, located in request.blocks if located.kind in SERVER_RESULTS
    }
    last_other = max(
        (
            index
            for index, turn in enumerate(request.turns)
            if any(located.kind != "tool_result" for located in turn.blocks)
        ),
        default=0,
    )
    for index, turn in enumerate(request.turns):
        waiting = index >= last_other
        for call in turn.of_kind("server_tool_use"):
            identifier, name = text_at(call.block, "id"), text_at(call.block, "name")
            if identifier not in answered and not waiting:
                reason = (
                    f"`{name}` tool use with id {identifier} was found without a corresponding "
                    f"`{name}_tool_result` block"
                )
                yield refuse(call.path, reason)


def server_results_have_calls(request: Request) -> Iterator[Violation]:
    call_ids: set[str] = set()
    for _, located in request.blocks:
        if located.kind == "server_tool_use":
            call_ids.add(text_at(located.block, "id"))
        elif located.kind in SERVER_RESULTS and text_at(located.block, "tool_use_id") not in call_ids:
            reason = f"unexpected `{located.kind}` block: no `server_tool_use` block with its id comes before it"
            yield refuse(located.path, reason)


# --- thinking -----------------------------------------------------------------------------------------------------


def tool_loops_start_with_thinking(request: Request) -> Iterator[Violation]:
    """Manual thinking: the assistant turn whose calls are being answered starts with its thinking."""
    calling, answering = ((None, None, *request.turns))[-2:]
    if request.thinking != "enabled" or calling is None or answering is None:
        return
    if calling.role != "assistant" or not any(answering.of_kind("tool_result")):
        return
    first = calling.blocks[0]
    if first.kind not in ("thinking", "redacted_thinking", "compaction"):
        reason = f"Expected `thinking` or `redacted_thinking`, but found `{first.kind}`."
        yield refuse(first.path, reason)


# --- system messages ----------------------------------------------------------------------------------------------


def system_messages_are_supported(request: Request) -> Iterator[Violation]:
    if request.limits is None or request.limits.system_messages is not False:
        return
    for turn in request.turns:
        if turn.role == "system":
            yield refuse(("messages", turn.first_message, "role"), "role 'system' is not supported on this model")


def system_messages_are_in_place(request: Request) -> Iterator[Violation]:
    """After a user turn (or a server tool's result), and last or followed by the assistant."""
    turns = request.turns
    for index, turn in enumerate(turns):
        if turn.role != "system":
            continue
        previous = turns[index - 1] if index else None
        following = turns[index + 1] if index + 1 < len(turns) else None
        after_user = previous is not None and previous.role == "user"
        after_server = previous is not None and bool(previous.blocks) and previous.blocks[-1].kind in SERVER_RESULTS
        if not (after_user or after_server) or (following is not None and following.role != "assistant"):
            reason = (
                "a system message must follow a user message and must be the last message "
                "or be followed by an assistant message"
            )
            yield refuse(("messages", turn.first_message), reason)


def only_system_messages_configure(request: Request) -> Iterator[Violation]:
    for index, message in enumerate(objects_at(request.body, "messages")):
        for key in ("clear_at", "output_config"):
            if key in message and message.get("role") != "system":
                yield refuse(("messages", index, key), "Extra inputs are not permitted")


# --- compaction ---------------------------------------------------------------------------------------------------


def signed_compaction_comes_first(request: Request) -> Iterator[Violation]:
    for index, (_, located) in enumerate(request.blocks):
        if located.kind == "compaction" and located.block.get("signature") is not None and index > 0:
            yield refuse(located.path, "a signed `compaction` block must be the first block of the conversation")


RULES: tuple[Rule, ...] = (
    blocks_fit_their_role,
    documents_are_the_users,
    citations_are_the_assistants,
    messages_say_something,
    texts_say_something,
    search_results_say_something,
    only_system_messages_configure,
    system_messages_are_supported,
    system_messages_are_in_place,
    calls_are_answered,
    calls_close_their_turn,
    results_have_calls,
    calls_are_answered_once,
    results_come_first,
    call_ids_differ,
    failures_explain_themselves,
    results_do_not_mix_search,
    programmatic_results_are_text,
    programmatic_replies_are_results,
    toolset_results_name_their_toolset,
    server_calls_are_answered,
    server_results_have_calls,
    tool_loops_start_with_thinking,
    prefill_is_supported,
    prefill_has_no_trailing_whitespace,
    signed_compaction_comes_first,
)
