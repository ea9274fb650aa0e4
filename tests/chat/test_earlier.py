"""Conversations of the earlier program: every way it wrote them, and every place it kept them in."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.chat.drafts import find_left_drafts
from dragoman.chat.entries import read_entries
from dragoman.chat.importing import read_file
from dragoman.chat.stores import FileStore
from dragoman.chat.stores.earlier import earlier_folders
from dragoman.chat.views import entries_for_model, messages_of
from tests.support.promises import promise

CALL = {"name": "get_weather", "arguments": {"city": "東京"}}
NESTED = {"type": "tool_call", "content": CALL}
FLAT = {"type": "tool_call", **CALL}
RESULT = {"type": "tool_result", "name": "get_weather", "content": "晴れ"}

# How a call and its result were written, by which part of the program, and by which provider.
SPELLINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the documents": (
        {"type": "tool_call", "content": {**CALL, "tool_call_id": "call_1"}},
        {"role": "tool", "content": [{**RESULT, "tool_call_id": "call_1"}]},
    ),
    "the loop, for ChatGPT": (
        {**FLAT, "tool_call_id": "call_1"},
        {"role": "tool", "content": [{**RESULT, "tool_call_id": "call_1"}]},
    ),
    "the loop, for Gemini": (FLAT, {"role": "tool", "content": [{**RESULT, "tool_call_id": "get_weather"}]}),
    "the loop, with null": (
        {**FLAT, "tool_call_id": None},
        {"role": "tool", "content": [{**RESULT, "tool_call_id": "get_weather"}]},
    ),
    "the loop, without a name": (FLAT, {"role": "tool", "content": [{**RESULT, "tool_call_id": "unknown"}]}),
    "no ids": (NESTED, {"role": "tool", "content": [RESULT]}),
    "text of a tool": (NESTED, {"role": "tool", "name": "get_weather", "content": "晴れ"}),
    "text of a tool with its call": (
        {**FLAT, "tool_call_id": "call_1"},
        {"role": "tool", "name": "get_weather", "content": "晴れ", "tool_call_id": "call_1"},
    ),
    "an object": (NESTED, {"role": "tool", "content": [{**RESULT, "content": {"sky": "晴れ"}}]}),
}


@promise("chat:legacy")
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("model", ["gemini", "chatgpt"])
def test_every_spelling_of_a_call_and_its_result(spelling: str, model: str) -> None:
    call, result = SPELLINGS[spelling]
    turns = [
        {"role": "user", "content": "天気は？"},  # noqa: RUF001 - a question in Japanese
        {"role": model, "content": [{"type": "text", "content": "確認します。"}, call]},
        result,
        {"role": model, "content": [{"type": "text", "content": "晴れです。"}]},
    ]
    entries = read_entries(turns)
    assert [entry.speaker for entry in entries] == ["", model, model, model]
    _, question, answered, final = messages_of(entries_for_model(entries, model))
    (made,), (given,) = question.tool_calls, answered.tool_results
    assert (made.name, made.arguments) == ("get_weather", {"city": "東京"})
    assert (given.tool_call_id, given.name) == (made.id, "get_weather")
    assert "晴れ" in str(given.value)
    assert final.text == "晴れです。"
    other = "gemini" if model == "chatgpt" else "chatgpt"
    assert [message.role for message in messages_of(entries_for_model(entries, other))] == ["user"]


@promise("chat:legacy")
def test_two_calls_of_one_tool_without_ids_keep_their_own_results() -> None:
    """The earlier program named both results after the tool."""
    calls = [{"type": "tool_call", "name": "f", "arguments": {"n": n}} for n in (1, 2)]
    results = [{"type": "tool_result", "name": "f", "content": f"{n}", "tool_call_id": "f"} for n in (1, 2)]
    entries = read_entries([{"role": "gemini", "content": calls}, {"role": "tool", "content": results}])
    made, given = messages_of(entries_for_model(entries, "gemini"))
    pairs = {call.id: call.arguments for call in made.tool_calls}
    assert [(pairs[one.tool_call_id], one.value) for one in given.tool_results] == [({"n": 1}, "1"), ({"n": 2}, "2")]


def document(name: str, **more: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": "@gemini こんにちは"}, {"role": "gemini", "content": "やあ"}]
    return {"display_name": name, "system_prompt": "", "turns": turns, **more}


VERSIONS: dict[str, dict[str, Any]] = {
    "without metadata": {},
    "version 1": {"metadata": {"schema_version": 1, "created_at": "2025-11-01T00:00:00+00:00"}},
    "version 2": {
        "metadata": {"schema_version": 2, "created_at": "2026-02-01T00:00:00+00:00", "updated_at": "2026-02-02"}
    },
    "from later": {"metadata": {"schema_version": 99}, "more": {"a": 1}},
    "odd metadata": {"metadata": "none", "settings": "none"},
}


@promise("chat:legacy", "chat:schema")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16"])
def test_every_version_in_every_encoding_its_system_had(version: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document("昔の話", **VERSIONS[version]), ensure_ascii=False), encoding=encoding)
    read = read_file(path)
    assert (read.name, [entry.text for entry in read.entries]) == ("昔の話", ["@gemini こんにちは", "やあ"])


@promise("chat:legacy", "chat:location")
def test_folders_of_the_earlier_program_are_found_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It kept a user's folder under the user's own name, where ours is spelled so that no two names collide."""
    for name in ("CHAT_HISTORY_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    old = tmp_path / "multi_llm_chat" / "chat_histories" / "Ann"
    old.mkdir(parents=True)
    (old / "Talk_1.json").write_text(json.dumps(document("Talk 1")))
    (old / "Other.json").write_text(json.dumps(document("Other")))
    before = (old / "Talk_1.json").read_bytes()
    store = FileStore(user="Ann")
    assert {row.name for row in store.list()} == {"Talk 1", "Other"}
    saved = store.save(store.load("Talk 1"))
    assert store.load("Talk 1").revision == saved.revision == 1
    assert {row.name for row in store.list()} == {"Talk 1", "Other"}
    assert (old / "Talk_1.json").read_bytes() == before
    store.rename("Talk 1", "Talk 2")
    store.delete("Other")
    assert {row.name for row in FileStore(user="Ann").list()} == {"Talk 2"}
    assert FileStore(user="ann").list() == []
    assert FileStore(user="Ann ").list() == []


@promise("chat:legacy", "chat:location")
def test_where_it_kept_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ".multi_llm_chat" / "chat_histories" / "me"
    shared = tmp_path / "shared" / "me"
    for folder in (home, shared):
        folder.mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert earlier_folders(None, "me", {}) == (home,)
    assert earlier_folders(None, "me", {"CHAT_HISTORY_DIR": str(tmp_path / "shared")}) == (shared,)
    assert earlier_folders(tmp_path / "shared", "me", {}) == (shared,)
    assert earlier_folders(tmp_path / "shared", "../me", {}) == ()
    assert earlier_folders(tmp_path / "shared", "nobody", {}) == ()


@promise("chat:legacy", "chat:draft")
def test_the_draft_of_the_earlier_program_is_offered_and_not_listed(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "me")
    draft = {
        "type": "autosave_draft",
        "schema_version": 1,
        "user_id": "me",
        "system_prompt": "Kurz.",
        "turns": document("x")["turns"],
        "metadata": {"updated_at": "2026-02-28T00:00:00+00:00"},
    }
    (store.folder / "_autosave.json").write_text(json.dumps(draft, ensure_ascii=False), encoding="utf-8")
    assert store.list() == []
    (left,) = find_left_drafts(store.folder)
    assert left.conversation.system_prompt == "Kurz."
    assert [entry.text for entry in left.conversation.entries] == ["@gemini こんにちは", "やあ"]
