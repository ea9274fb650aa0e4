"""What each model is sent, over generated conversations: its own words and the user's, whole, and nothing of others."""

import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from dragoman.chat.entries import Entry, Status, entry_document, read_conversation, read_entries
from dragoman.chat.tokens import DoesNotFit, Measure
from dragoman.chat.views import entries_for_model, messages_of, request_of
from dragoman.ir import Message, ToolDefinition
from dragoman.sim.rules import anthropic_messages, gemini, openai_chat
from dragoman.translate import encode_request
from tests.support.promises import promise

MODELS = ("gemini", "claude", "local")
TOOL = "look"
STATUSES: tuple[Status, ...] = ("ok", "ok", "ok", "error", "refused", "empty", "stopped", "cut", "interrupted")
# Few, so that two models often use the same one, and one model uses it twice.
IDS = st.sampled_from(("call_1", "call_2", "call_3"))


def marked(owner: str, kind: str) -> str:
    """Text that names its author."""
    return f"{kind}-of-{owner}"


@st.composite
def answers(draw: st.DrawFn, model: str, turn: str, number: int) -> list[Entry]:
    """Rounds of calls and results, some of them without an end, then words, or none."""
    about: dict[str, Any] = {"turn": turn, "answer": f"{turn}-{model}-{number}", "model": f"p/{model}"}
    entries: list[Entry] = []
    for _ in range(draw(st.integers(0, 2))):
        ids = draw(st.lists(IDS, min_size=1, max_size=2, unique=True))
        calls = [_call(model, one) for one in ids]
        thought = [{"type": "reasoning", "content": marked(model, "thought")}] if draw(st.booleans()) else []
        parts = [{"type": "text", "content": marked(model, "text")}] if draw(st.booleans()) else []
        entries.append(Entry(role=model, content=[*thought, *parts, *calls], **about))
        answered = ids if draw(st.booleans()) else ids[: draw(st.integers(0, len(ids)))]
        if answered:
            entries.append(Entry(role="tool", owner=model, content=[_result(model, one) for one in answered], **about))
    status = draw(st.sampled_from(STATUSES))
    words = [{"type": "text", "content": marked(model, "text")}] if status != "empty" else []
    entries.append(Entry(role=model, content=words, status=status, error=marked(model, "error"), **about))
    replaced = draw(st.integers(0, 5)) == 0
    return [structs.replace(entry, replaced=replaced) for entry in entries]


def _call(model: str, call_id: str) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "content": {"name": TOOL, "arguments": {"for": marked(model, "call")}, "tool_call_id": call_id},
    }


def _result(model: str, call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "name": TOOL, "content": marked(model, "result"), "tool_call_id": call_id}


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number in range(draw(st.integers(1, 4))):
        turn = f"t{number}"
        entries.append(Entry(role="user", content=[{"type": "text", "content": f"@all {turn}"}], id=turn, turn=turn))
        for model in draw(st.lists(st.sampled_from(MODELS), max_size=3)):
            entries += draw(answers(model, turn, len(entries)))
    return tuple(entries)


def everything(messages: Sequence[Message]) -> str:
    return " ".join(str(message) for message in messages)


def owners(text: str) -> set[str]:
    return set(re.findall(r"-of-(gemini|claude|local)", text))


@promise("chat:tools-owned", "chat:views")
@given(conversations(), st.sampled_from(MODELS))
def test_a_model_is_sent_nothing_of_another(entries: tuple[Entry, ...], model: str) -> None:
    messages = messages_of(entries_for_model(entries, model))
    assert owners(everything(messages)) <= {model}
    users = [entry.text for entry in entries if entry.role == "user"]
    assert [message.text for message in messages if message.role == "user"] == users


@promise("chat:tools-owned", "chat:share")
@given(conversations(), st.sampled_from(MODELS))
def test_what_is_shared_is_words_with_a_name_and_never_a_call_a_result_or_a_thought(
    entries: tuple[Entry, ...], model: str
) -> None:
    messages = messages_of(entries_for_model(entries, model, share=True))
    foreign = [message for message in messages if owners(str(message)) - {model}]
    for message in foreign:
        assert message.role == "user"
        found = re.fullmatch(r"\[(\w+) said\]\n(text-of-\w+\s*)+", message.text)
        assert found is not None
        assert owners(message.text) == {found[1]}


@promise("chat:prune", "chat:tools-owned")
@given(conversations(), st.sampled_from(MODELS), st.integers(20, 400))
def test_pruning_leaves_whole_turns_in_order_and_every_result_its_call(
    entries: tuple[Entry, ...], model: str, window: int
) -> None:
    seen = tuple(entries_for_model(entries, model))
    try:
        kept = Measure(window=window, fixed=5).fit_turns(seen)
    except DoesNotFit:
        return
    assert kept.entries == seen[len(seen) - len(kept.entries) :]
    assert kept.entries[:1] == () or kept.entries[0].role == "user"
    waiting: set[str] = set()
    for message in messages_of(kept.entries):
        waiting |= {call.id for call in message.tool_calls}
        assert {result.tool_call_id for result in message.tool_results} <= waiting


@promise("chat:views")
@settings(max_examples=40)
@given(conversations(), st.sampled_from(MODELS), st.booleans())
def test_every_api_takes_what_is_sent(entries: tuple[Entry, ...], model: str, share: bool) -> None:  # noqa: FBT001
    """However answers ended before: broken off, without results, or not at all."""
    history = (*entries, Entry(role="user", content=[{"type": "text", "content": f"@{model} now"}], turn="last"))
    tools = (ToolDefinition(TOOL, "Look.", {"type": "object", "properties": {"for": {"type": "string"}}}),)
    request = structs.replace(request_of(entries_for_model(history, model, share=share), "Be brief."), tools=tools)
    for name, form, judge in (
        ("gpt-5.6", "openai-chat", openai_chat),
        ("claude-sonnet-5", "anthropic-messages", anthropic_messages),
        ("gemini-3.8-flash", "gemini", gemini),
    ):
        sent = encode_request(structs.replace(request, model=name, max_output_tokens=100), form)
        body = json.loads(sent.content)
        assert owners(sent.content.decode()) <= ({model} if not share else set(MODELS))
        assert judge.check_request(body) == (), form


@promise("chat:store", "chat:legacy")
@given(conversations(), st.sampled_from(MODELS))
def test_what_is_stored_is_seen_the_same_way_after_it_is_read_again(entries: tuple[Entry, ...], model: str) -> None:
    again = read_conversation(json.loads(json.dumps([entry_document(entry) for entry in entries]))).entries
    assert messages_of(entries_for_model(again, model)) == messages_of(entries_for_model(entries, model))


@promise("chat:legacy", "chat:tools-owned")
@given(conversations(), st.sampled_from(MODELS), st.booleans())
def test_nothing_leaks_out_of_a_file_that_knows_no_owners(
    entries: tuple[Entry, ...],
    model: str,
    flat: bool,  # noqa: FBT001
) -> None:
    """As the earlier program wrote it: role and content only, calls beside their type, results without an owner."""
    old = [{"role": entry.role, "content": [_old(part, flat=flat) for part in entry.content]} for entry in entries]
    messages = messages_of(entries_for_model(read_entries(old), model))
    assert owners(everything(messages)) <= {model}


def _old(part: dict[str, Any], *, flat: bool) -> dict[str, Any]:
    return {"type": "tool_call", **part["content"]} if flat and part["type"] == "tool_call" else part
