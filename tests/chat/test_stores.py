"""Where conversations are kept, and what is found there again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.chat.drafts import Draft, discard, find_left_drafts
from dragoman.chat.entries import SCHEMA_VERSION, Conversation, Entry, Unreadable, read_conversation, to_document
from dragoman.chat.exporting import export, kinds, show_as
from dragoman.chat.importing import read_file
from dragoman.chat.stores import (
    AlreadyThere,
    Changed,
    ConversationStore,
    FileStore,
    SqliteStore,
    SqlStore,
    UnknownConversation,
    default_folder,
    open_store,
    user_from,
)
from dragoman.chat.stores.base import file_stem
from dragoman.chat.views import entries_for_model, messages_of
from dragoman.drivers import Scripted
from dragoman.errors import NotConfigured
from tests.support.chats import chat_of, model, sent_to, stored_entries, talk, weather
from tests.support.databases import Postgres
from tests.support.promises import promise

LEGACY = [
    {"role": "user", "content": "@all weather in Tokyo?"},
    {
        "role": "gemini",
        "content": [
            {"type": "text", "content": "Let me look."},
            {"type": "tool_call", "content": {"name": "weather", "arguments": {"city": "Tokyo"}}},
            {"type": "text", "content": "One moment."},
        ],
    },
    {"role": "tool", "content": [{"type": "tool_result", "name": "weather", "content": "25°C"}]},
    {"role": "gemini", "content": "It is 25°C."},
    {"role": "chatgpt", "content": [{"type": "tool_call", "name": "weather", "arguments": {"city": "Tokyo"}}]},
    {"role": "tool", "name": "weather", "content": "rain"},
    {"role": "chatgpt", "content": "It rains."},
    "nonsense",
    {"role": "user", "content": "Thanks", "own_key": 1},
]


def conversation(name: str = "First", **more: Any) -> Conversation:
    entries = (
        Entry(role="user", content=[{"type": "text", "content": "@gemini 東京の天気は"}], id="u1", turn="u1"),
        Entry(role="gemini", content=[{"type": "text", "content": "Sunny <b>"}], turn="u1", answer="a1"),
    )
    return Conversation(name=name, **{"system_prompt": "Be brief.", "entries": entries, **more})


Opener = Callable[[str], ConversationStore]


STORES = ("files", "sqlite", "postgres")


@pytest.fixture(scope="module")
def shared_database(postgres_server: Postgres) -> str:
    return postgres_server.fresh()


@pytest.fixture(params=STORES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty store, as `--store` takes it."""
    if request.param == "postgres":
        return str(request.getfixturevalue("shared_database"))
    return str(tmp_path) if request.param == "files" else f"sqlite:{tmp_path / 'chat.sqlite'}"


@pytest.fixture
def opened(address: str, tmp_path: Path) -> Iterator[Opener]:
    """A store by user, twice the same for the same user."""
    stores: list[ConversationStore] = []

    def opener(user: str) -> ConversationStore:
        # A database is shared by the tests, a folder is not.
        stores.append(open_store(address, user if not address.startswith("postgres") else f"{tmp_path.name}/{user}"))
        return stores[-1]

    yield opener
    for store in stores:
        if isinstance(store, SqlStore):
            store.close()


# ── every store ───────────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:store", "chat:store-sql", "chat:store-postgres")
def test_what_is_saved_is_loaded_again_with_its_times_and_revision(opened: Opener) -> None:
    saved = opened("me").save(conversation())
    loaded = opened("me").load("First")
    assert loaded == saved
    assert (loaded.revision, loaded.system_prompt) == (1, "Be brief.")
    assert loaded.created
    again = opened("me").save(structs.replace(loaded, system_prompt="Longer."))
    assert (again.created, again.revision) == (loaded.created, 2)


@promise("chat:store", "chat:store-sql", "chat:store-postgres")
def test_conversations_are_listed_renamed_and_deleted(opened: Opener) -> None:
    store = opened("me")
    store.save(conversation("First"))
    store.save(conversation("Second/odd: name"))
    assert {row.name for row in store.list()} == {"First", "Second/odd: name"}
    assert store.list()[0].models == ("gemini",)
    store.rename("First", "Third")
    with pytest.raises(UnknownConversation, match="First"):
        store.load("First")
    with pytest.raises(AlreadyThere):
        store.rename("Third", "Second/odd: name")
    store.delete("Second/odd: name")
    assert [row.name for row in store.list()] == ["Third"]
    with pytest.raises(UnknownConversation):
        store.delete("nothing")
    for name in ("", "  ", ".", "..", "a\x00b"):
        with pytest.raises(ValueError, match="is not a valid name"):
            store.save(conversation(name))


@promise("chat:store-users", "chat:store-sql", "chat:store-postgres")
def test_users_do_not_see_each_other(opened: Opener) -> None:
    opened("ann").save(conversation())
    assert opened("../bob").list() == []
    assert len(opened("ann").list()) == 1


@promise("chat:search", "chat:store-sql", "chat:store-postgres")
def test_conversations_are_found_by_their_words(opened: Opener) -> None:
    store = opened("me")
    store.save(conversation("First"))
    store.save(conversation("Other", entries=()))
    (row,) = store.search("天気 sunny")
    assert row.name == "First"
    assert "東京" in row.excerpt
    assert store.search("天気 snow") == []
    assert store.search("") == []
    odd = [{"type": "tool_call", "content": {"name": "find_it", "arguments": {"share": "100% ÉTÉ!"}}}]
    store.save(conversation("Tools", entries=(Entry(role="gemini", content=odd),)))
    assert [row.name for row in store.search("été! 100%")] == ["Tools"]
    assert [row.name for row in store.search("findXit")] == []


@promise("chat:store", "chat:store-sql", "chat:store-postgres")
def test_every_sign_survives(opened: Opener) -> None:
    """Null characters, lone surrogates and quotes: models may write anything."""
    odd = "nul \0, half \ud83d, 𝄞, quotes '\" and \\, 100%, ?"
    entries = (Entry(role="user", content=[{"type": "text", "content": odd}], id="u"),)
    opened("me").save(conversation("odd", entries=entries))
    assert opened("me").load("odd").entries[0].text == odd
    assert [row.name for row in opened("me").search("quotes")] == ["odd"]


WRITER = """
import sys
from msgspec import structs
from dragoman.chat.entries import Entry
from dragoman.chat.stores import AlreadyThere, Changed
from dragoman.chat.stores import open_store
address, user, name = sys.argv[1:]
store = open_store(address, user)
for number in range(12):
    while True:
        here = store.load("Shared")
        text = [{"type": "text", "content": f"{name} {number}"}]
        try:
            store.save(structs.replace(here, entries=(*here.entries, Entry(role="user", content=text))))
        except Changed:
            continue
        break
"""


@promise("chat:two-writers", "chat:store-postgres")
def test_two_programs_write_the_same_conversation_and_nothing_is_lost(
    opened: Opener, address: str, tmp_path: Path
) -> None:
    store = opened("me")
    store.save(conversation("Shared", entries=()))
    user = f"{tmp_path.name}/me" if address.startswith("postgres") else "me"
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-c", WRITER, address, user]
    programs = [subprocess.Popen([*command, name], env=environment) for name in ("ann", "bob")]  # noqa: S603
    assert [program.wait(60) for program in programs] == [0, 0]
    loaded = store.load("Shared")
    texts = [entry.text for entry in loaded.entries]
    for name in ("ann", "bob"):
        assert [text for text in texts if text.startswith(name)] == [f"{name} {number}" for number in range(12)]
    assert loaded.revision == 25


@promise("chat:two-writers", "chat:store-sql", "chat:store-postgres")
def test_a_save_must_name_the_revision_it_read(opened: Opener) -> None:
    ours, theirs = opened("me"), opened("me")
    mine = ours.save(conversation())
    theirs.save(structs.replace(theirs.load("First"), system_prompt="theirs"))
    with pytest.raises(Changed, match="changed elsewhere"):
        ours.save(mine)
    with pytest.raises(AlreadyThere):
        ours.save(conversation("First"))
    assert ours.load("First").system_prompt == "theirs"
    assert ours.save(mine, replace=True).revision == 3


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:names")
def test_names_become_files_without_collisions(tmp_path: Path) -> None:
    names = [
        "notes",
        "Notes",
        "NOTES",
        "notes!",
        "notes?",
        "日本語",
        "中文",
        "a/b",
        "a\\b",
        "a_b",
        "con",
        "x" * 300,
        "x" * 301,
        "...a",
        "_autosave",
        "_autosave notes",
        "draft",
        file_stem("notes!"),  # the file of another name
        "notes-2",
    ]
    store = FileStore(tmp_path)
    for number, name in enumerate(names):
        store.save(conversation(name, system_prompt=str(number)))
    assert [store.load(name).system_prompt for name in names] == [str(number) for number in range(len(names))]
    files = [path.name for path in store.folder.glob("*.json")]
    assert len({name.lower() for name in files}) == len(names)
    assert all(len(name.encode()) < 120 and name.isascii() for name in files)
    assert file_stem("plain-name") == "plain-name"
    assert {row.name for row in store.list()} == set(names)
    assert FileStore(tmp_path, "Notes!").folder != FileStore(tmp_path, file_stem("Notes!")).folder


@promise("chat:store-users")
def test_stored_conversations_are_private_on_a_shared_machine(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "me")
    store.save(conversation("first"))
    draft = Draft(tmp_path / "elsewhere")  # as beside a database
    draft.snapshot(conversation("second"), running=False)
    for folder in (store.folder, tmp_path / "elsewhere" / ".drafts"):
        assert folder.stat().st_mode & 0o077 == 0
    assert (store.folder / "first.json").stat().st_mode & 0o077 == 0
    draft.discard()


@promise("chat:atomic")
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    saved = store.save(conversation("first"))
    with pytest.raises(TypeError):
        store.save(structs.replace(saved, settings={"not": object()}))
    assert FileStore(tmp_path).load("first") == saved
    assert sorted(path.name for path in store.folder.iterdir()) == [".lock", "first.json"]


@promise("chat:schema")
def test_files_have_a_schema_version_and_keep_what_they_do_not_know(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save(conversation("first", extra={"from_later": [1]}))
    document = json.loads((store.folder / "first.json").read_bytes())
    assert document["metadata"]["schema_version"] == SCHEMA_VERSION
    assert document["turns"][0]["content"] == [{"type": "text", "content": "@gemini 東京の天気は"}]
    document["turns"][0]["unknown"] = {"a": 1}
    (store.folder / "first.json").write_text(json.dumps(document))
    again = store.save(store.load("first"))
    assert to_document(again)["from_later"] == [1]
    assert to_document(again)["turns"][0]["unknown"] == {"a": 1}


@promise("chat:legacy")
def test_files_of_the_earlier_program_load_with_tools_in_their_place(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    old = {
        "display_name": "Old talk",
        "system_prompt": "Kurz.",
        "turns": LEGACY,
        "metadata": {"schema_version": 2, "created_at": "2026-02-01T00:00:00+00:00"},
    }
    (store.folder / "Old_talk.json").write_text(json.dumps(old), encoding="utf-8")
    (store.folder / "broken.json").write_text("{", encoding="utf-8")
    (store.folder / "_autosave.json").write_text(json.dumps(old), encoding="utf-8")
    assert [row.name for row in store.list()] == ["Old talk"]
    loaded = store.load("Old talk")
    assert loaded.created == "2026-02-01T00:00:00+00:00"
    kinds_ = [[part["type"] for part in entry.content] for entry in loaded.entries]
    assert kinds_[1] == ["text", "tool_call", "text"]
    assert [entry.owner for entry in loaded.entries if entry.role == "tool"] == ["gemini", "chatgpt"]
    calls = [part["content"] for entry in loaded.entries for part in entry.content if part["type"] == "tool_call"]
    results = [part for entry in loaded.entries for part in entry.content if part["type"] == "tool_result"]
    assert [call["tool_call_id"] for call in calls] == [result["tool_call_id"] for result in results]
    assert loaded.entries[7].status == "error"
    assert loaded.entries[8].extra == {"own_key": 1}
    store.save(loaded)
    assert [row.name for row in store.list()] == ["Old talk"]


@promise("chat:legacy", "chat:tools-owned")
def test_a_legacy_history_goes_on_without_leaks() -> None:
    service = chat_of(
        model("gemini", ["ok"]), model("chatgpt", ["ok"]), conversation=read_conversation(LEGACY), tools=[weather]
    )
    talk(service, "@all and now?")
    assert sent_to(service, "chatgpt") == [
        ("user", "@all weather in Tokyo?"),
        ("assistant", "call weather"),
        ("tool", "result weather"),
        ("assistant", "It rains."),
        ("user", "Thanks"),
        ("user", "@all and now?"),
    ]


@promise("chat:legacy")
def test_a_file_that_is_not_a_conversation_is_refused_with_a_reason(tmp_path: Path) -> None:
    broken = '{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "tool_use"}]}]}'
    for content, words in (
        ("{", "is not JSON"),
        ("3", "expected a conversation"),
        ('{"a": 1}', "list of entries"),
        (broken, "looks like anthropic-messages, and is not"),
    ):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(Unreadable, match=words):
            read_file(tmp_path / "x.json")


@promise("chat:location")
def test_the_folder_and_the_user_come_from_the_environment(tmp_path: Path) -> None:
    assert default_folder({"CHAT_HISTORY_DIR": "/somewhere"}) == Path("/somewhere")
    assert default_folder({"XDG_DATA_HOME": "/data"}) == Path("/data/dragoman/chat")
    assert default_folder({}).parts[-4:] == (".local", "share", "dragoman", "chat")
    assert user_from({"CHAT_HISTORY_USER_ID": "ann"}) == "ann"
    assert isinstance(open_store(str(tmp_path)), FileStore)
    assert isinstance(open_store(f"sqlite:{tmp_path / 'c.sqlite'}"), SqliteStore)


@promise("chat:store-postgres")
def test_a_restarted_database_is_connected_again(postgres_server: Postgres) -> None:
    address = postgres_server.fresh()
    store = open_store(address, "me")
    store.save(conversation("before"))
    postgres_server.stop()
    with pytest.raises(NotConfigured, match="does not answer"):
        store.list()
    postgres_server.start()
    store.save(conversation("after"))
    assert {row.name for row in store.list()} == {"before", "after"}
    assert isinstance(store, SqlStore)
    store.close()


@promise("chat:store-postgres")
def test_postgres_is_an_extra_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(NotConfigured, match=r"\[postgres\]"):
        open_store("postgresql://localhost/chat")


@promise("chat:store", "chat:store-sql", "chat:gauge")
@pytest.mark.parametrize("where", ["files", "sqlite"])
def test_ten_thousand_entries_are_quick(where: str, tmp_path: Path) -> None:
    """Limits are ten times what it takes here, because machines differ."""
    call = {"name": "weather", "arguments": {"city": "Oslo"}}
    turns: list[Any] = []
    for number in range(2_500):
        called = {**call, "tool_call_id": f"c{number}"}
        result = {"type": "tool_result", "name": "weather", "content": "snow", "tool_call_id": f"c{number}"}
        turns += [
            {"role": "user", "content": f"@gemini question {number} 東京"},
            {"role": "gemini", "content": [{"type": "tool_call", "content": called}]},
            {"role": "tool", "content": [result]},
            {"role": "gemini", "content": "It snows in the evening. " * 8},
        ]
    address = str(tmp_path) if where == "files" else f"sqlite:{tmp_path / 'chat.sqlite'}"
    open_store(address).save(structs.replace(read_conversation(turns), name="long"))
    store = open_store(address)
    loaded, seconds = timed(lambda: store.load("long"))
    assert len(loaded.entries) == 10_000
    assert seconds < 5
    rows, seconds = timed(store.list)
    assert rows[0].entries == 10_000
    assert seconds < 1
    assert timed(lambda: store.search("question 2499 snows"))[1] < 5
    service = chat_of(model("gemini", [], window=10_000_000), conversation=loaded)
    assert timed(service.gauges)[1] < 4
    if isinstance(store, SqlStore):
        store.close()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()  # of this process alone: other programs on the machine do not count
    return work(), time.process_time() - began


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:draft")
def test_a_draft_is_offered_once_its_program_is_gone_and_not_before(tmp_path: Path) -> None:
    draft = Draft(tmp_path)
    service = chat_of(model("gemini", ["fine"]), keeper=draft)
    talk(service, "@gemini hello")
    assert find_left_drafts(tmp_path) == []
    draft.leave()
    (left,) = find_left_drafts(tmp_path)
    assert [entry.text for entry in left.conversation.entries] == ["@gemini hello", "fine"]
    discard(left)
    assert find_left_drafts(tmp_path) == []


@promise("chat:draft")
def test_a_draft_that_is_discarded_leaves_nothing(tmp_path: Path) -> None:
    draft = Draft(tmp_path)
    talk(chat_of(model("gemini", ["fine"]), keeper=draft), "@gemini hello")
    draft.discard()
    assert list((tmp_path / ".drafts").iterdir()) == []


@promise("chat:draft")
def test_a_draft_that_cannot_be_written_is_one_warning_and_the_chat_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".drafts").write_text("in the way")
    service = chat_of(model("gemini", ["fine", "fine"]), keeper=Draft(tmp_path))
    events = talk(service, "@gemini hello", "@gemini more")
    assert len([event for event in events if "draft" in str(event)]) == 1
    assert stored_entries(service)[-1] == ("gemini", "fine", "ok")


KILLED = """
import asyncio, sys
from pathlib import Path
from dragoman.chat.drafts import Draft
from dragoman.chat.events import Activity
from dragoman.agent import TextDeltaEvent
from tests.support.chats import chat_of, model, weather
from dragoman.drivers import Scripted

async def main():
    script = [Scripted(text="Looking.", calls=[("weather", {"city": "Oslo"})]), "one two three four five"]
    models = model("gemini", script), model("claude", ["done"])
    service = chat_of(*models, tools=[weather], keeper=Draft(Path(sys.argv[1])))
    def show(event):
        if isinstance(event, Activity) and isinstance(event.event, TextDeltaEvent):
            print(event.model, event.event.content, flush=True)
            if event.event.content == " three":
                import os, signal
                os.kill(os.getpid(), signal.SIGKILL)
    with service.watch(show):
        await service.send("@all go")
asyncio.run(main())
"""


@promise("chat:crash")
def test_a_program_that_is_killed_loses_nothing_that_was_shown(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    killed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (left,) = find_left_drafts(tmp_path)
    entries = left.conversation.entries
    by_model = [entry for entry in entries if entry.speaker == "gemini"]
    assert [entry.role for entry in by_model] == ["gemini", "tool", "gemini"]
    assert by_model[1].content[0]["content"] == "sunny in Oslo"
    assert (by_model[2].text, by_model[2].status) == ("one two three", "interrupted")
    assert any(entry.speaker == "claude" and entry.text == "done" for entry in entries)


# ── exports ───────────────────────────────────────────────────────────────────────────────────────────────────


@promise("chat:export")
def test_markdown_holds_everything_in_order() -> None:
    call = Scripted(reasoning="Hm.", text="Look:", calls=[("weather", {"city": "Oslo"})])
    service = chat_of(model("gemini", [call, "Sunny ```x```", Scripted()]), tools=[weather])
    talk(service, "@gemini weather?", "@gemini more?")
    text = export(structs.replace(service.conversation, name="Talk", system_prompt="Brief.")).content
    order = [
        "# Talk",
        "Brief.",
        "@gemini weather?",
        "Reasoning",
        "Look:",
        "`weather`",
        '"Oslo"',
        "sunny in Oslo",
        "Sunny",
    ]
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert "> **empty**" in text


@promise("chat:export", "chat:import")
@pytest.mark.parametrize("kind", kinds()[1:])
def test_every_format_is_exported_to_and_read_again(kind: str, tmp_path: Path) -> None:
    """Words, calls and results, in their order, under the name that such models have here."""
    whole = structs.replace(read_conversation(LEGACY), system_prompt="Be brief.")
    exported = export(whole, kind, "gemini")
    assert exported.suffix == ".json"
    path = tmp_path / f"exported{exported.suffix}"
    path.write_text(exported.content, encoding="utf-8")
    again = read_file(path)
    assert again.system_prompt.startswith("Be brief.") or kind == "multi-llm-chat"  # a bare list of entries
    name = next(iter(again.models))
    seen = messages_of(entries_for_model(again.entries, name))
    own = messages_of(entries_for_model(whole.entries, "gemini"))
    if kind == "ollama-chat":  # where what is said around a call is one text
        assert "".join(one.text for one in seen) == "".join(one.text for one in own)
    else:
        assert [one.text for one in seen if one.text] == [one.text for one in own if one.text]
    (call,) = [one for message in seen for one in message.tool_calls]
    (result,) = [one for message in seen for one in message.tool_results]
    assert (call.name, call.arguments) == ("weather", {"city": "Tokyo"})
    assert result.tool_call_id == call.id
    assert "25°C" in str(result.value)


@promise("chat:show-as")
def test_one_answer_is_shown_in_another_format_with_its_losses() -> None:
    entries = read_conversation(LEGACY).entries[1:3]
    shown = show_as(entries, "anthropic-messages")
    assert "tool_use" in shown.content
    assert all(loss.path and loss.why for loss in shown.losses)
    with pytest.raises(ValueError, match="is not a format"):
        show_as(entries, "nonsense")
