"""What a client with a key may store on the page: conversations are held in memory and on the disk of the gateway."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.chat.drafts import Draft
from dragoman.chat.entries import Conversation, Entry, now
from dragoman.chat.events import Notice
from dragoman.chat.history import text_part
from dragoman.chat.stores import FileStore
from dragoman.gateway.serving import Setting
from dragoman.web.conversation_hub import ConversationHub
from dragoman.web.guard import HEADER
from dragoman.web.serving import page_before
from tests.gateway.running import Got, RunningGateway, configured, send
from tests.support.promises import promise

pytestmark = promise("gateway:attacks", "web:chat")

MEBIBYTE = 1 << 20
CONFIG = f'[server]\nkeys = ["first", "second"]\nchat_bytes = {20 * MEBIBYTE}\n'


class Page:
    """A client with a key that is logged in."""

    def __init__(self, url: str, key: str) -> None:
        form = {"content-type": "application/x-www-form-urlencoded"}
        cookie = send(url, "/_/login", f"password={key}".encode(), form).headers["set-cookie"].partition(";")[0]
        self._headers = {"cookie": cookie, HEADER: "1"}
        self._url = url

    def ask(self, method: str, path: str, body: Any = None) -> Got:
        return send(self._url, f"/_/api/chat{path}", body, self._headers, method)

    def begin(self) -> str:
        return f"/conversations/{self.ask('POST', '/conversations', {}).json['id']}"

    def store(self, conversation: str, size: int) -> int:
        data = base64.b64encode(bytes(size * 3 // 4)).decode()
        attachment = {"data": data, "name": "a.pdf", "media_type": "application/pdf"}
        body = {"text": "x", "memo": True, "attachments": [attachment]}
        return self.ask("POST", f"{conversation}/messages", body).status


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    made = configured(CONFIG)
    setting = Setting(config=made.config, environment={"CHAT_HISTORY_DIR": str(tmp_path)})
    with RunningGateway(setting, front=page_before) as running:
        yield running


def test_conversations_of_a_key_are_bounded(gateway: RunningGateway) -> None:
    page = Page(gateway.url, "first")
    one, two = page.begin(), page.begin()
    assert page.store(one, 10 * MEBIBYTE) == 202
    assert page.store(one, 10 * MEBIBYTE) == 413, "one conversation"
    assert page.store(two, 11 * MEBIBYTE) == 413, "all conversations"
    assert page.store(two, 9 * MEBIBYTE) == 202
    assert page.ask("POST", "/conversations", {"branch": one.rpartition("/")[2], "entry": "x"}).status == 404
    entry = page.ask("GET", one).json["entries"][0]["id"]
    branching = {"branch": one.rpartition("/")[2], "entry": entry}
    assert page.ask("POST", "/conversations", branching).status == 413, "a copy takes room, too"
    imported = {"document": [{"role": "user", "content": "x" * 2 * MEBIBYTE}]}
    assert page.ask("POST", "/conversations", imported).status == 413
    other = Page(gateway.url, "second")
    assert other.store(other.begin(), 9 * MEBIBYTE) == 202, "other keys have room of their own"
    assert page.ask("DELETE", one).status == 200
    assert page.store(two, 2 * MEBIBYTE) == 202, "deleting makes room"


def test_empty_conversations_take_no_memory(gateway: RunningGateway) -> None:
    page = Page(gateway.url, "first")
    used = page.begin()
    assert page.ask("POST", f"{used}/messages", {"text": "kept", "memo": True}).status == 202
    unused = [page.begin() for _ in range(30)]
    assert page.ask("GET", unused[-1]).status == page.ask("GET", used).status == 200
    assert page.ask("GET", unused[0]).status == 404


def test_the_number_of_models_is_limited(gateway: RunningGateway) -> None:
    page = Page(gateway.url, "first")
    statuses = [page.ask("PATCH", f"/models/m{number}", {"model": "openai/x"}).status for number in range(110)]
    assert statuses[0] == 200
    assert statuses[-1] == 413


def test_a_deleted_conversation_does_not_stay_in_memory(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "someone")
    for number in range(5):
        store.save(Conversation(name=f"number {number}", created=now()))
        assert store.list()
        store.delete(f"number {number}")
    assert not store._read  # noqa: SLF001 - nothing else shows it
    assert store.size == 0


def test_a_turn_writes_a_conversation_once_and_reads_it_never(tmp_path: Path) -> None:
    """Both take time in proportion to the whole conversation, in which no other request is served."""
    store = FileStore(tmp_path, "someone")
    opened = ConversationHub([], store, store.folder).new()
    opened.service.start("first", memo=True)
    touched: list[str] = []

    def note_open(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(".json"):
            touched.append("read")
        if event == "os.rename":
            touched.append(Path(str(arguments[1])).parent.name)

    watching = True
    sys.addaudithook(lambda event, arguments: note_open(event, arguments) if watching else None)
    opened.service.start("second", memo=True)
    watching = False
    assert touched == [".drafts", store.folder.name], "one draft, one save"
    assert FileStore(tmp_path, "someone").load(opened.service.conversation.name) == store.load(
        opened.service.conversation.name
    )
    assert [entry.text for entry in opened.service.conversation.entries] == ["first", "second"]


# ── a disk that cannot be written ──


def test_a_disk_that_cannot_be_written_is_reported_without_the_names_of_files(
    gateway: RunningGateway, tmp_path: Path
) -> None:
    page = Page(gateway.url, "first")
    kept = page.begin()
    assert page.ask("POST", f"{kept}/messages", {"text": "kept", "memo": True}).status == 202
    [lock] = tmp_path.glob("*/.lock")
    lock.unlink()
    lock.mkdir()  # fails for every user, unlike a folder without permissions
    assert page.ask("POST", f"{kept}/messages", {"text": "in memory", "memo": True}).status == 202
    for method, body in (("PATCH", {"name": "another"}), ("DELETE", None)):
        got = page.ask(method, kept, body)
        assert (got.status, str(tmp_path) in got.body.decode()) == (507, False)
        assert "cannot be written" in got.json["error"]
    texts = [entry["content"][0]["content"] for entry in page.ask("GET", kept).json["entries"]]
    assert "kept" in texts


def test_drafts_that_cannot_be_saved_are_left_for_the_next_start(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "someone")
    entry = Entry(role="user", content=[text_part("unsaved")], id="e", turn="e", time=now())
    draft = Draft(store.folder)
    draft.snapshot(Conversation(created=now(), entries=(entry,)), running=False)
    draft.leave()
    lock = store.folder / ".lock"
    lock.mkdir()
    hub = ConversationHub([], store, store.folder)
    assert hub.recover() == 0
    lock.rmdir()
    assert hub.recover() == 1
    assert [row.entries for row in store.list()] == [1]
    assert hub.recover() == 0


def test_notices_about_a_disk_name_no_files(tmp_path: Path) -> None:
    """Everyone who may use the page reads them."""
    store = FileStore(tmp_path, "someone")
    (store.folder / ".lock").mkdir()
    (store.folder / ".drafts").write_text("not a folder")
    opened = ConversationHub([], store, store.folder).new()
    notices: list[str] = []
    with opened.service.watch(lambda event: notices.append(event.text) if isinstance(event, Notice) else None):
        opened.service.start("kept in memory", memo=True)
    assert any("draft" in words for words in notices)
    assert any("conversation" in words for words in notices)
    assert not any(str(tmp_path) in words for words in notices)
