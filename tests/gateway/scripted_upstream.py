"""An upstream that answers with exactly the bytes a test gives it, and counts the requests that reached it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct


class Reply(Struct, frozen=True):
    data: bytes
    """The bytes of the answer; if empty, the connection is closed without one."""
    keeps_open: bool = False
    """Whether the connection may carry another request."""


def reply(body: object, status: str = "200 OK", headers: dict[str, str] | None = None) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in sent.items())]
    return Reply("\r\n".join(lines).encode() + b"\r\n\r\n" + data, keeps_open="close" not in sent.get("connection", ""))


NO_ANSWER = Reply(b"")


def completion(text: str = "fine") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


class ScriptedUpstream:
    """Sends the replies in turn, and then repeats the last one."""

    def __init__(self, *replies: Reply) -> None:
        self.heads: list[str] = []
        """First line and headers of each request."""
        self.bodies: list[bytes] = []
        self.replies = list(replies)
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def count(self) -> int:
        return len(self.heads)

    def table(self, name: str, kind: str = "openai-chat", more: str = "") -> str:
        """Return the table of this provider in a gateway's configuration."""
        return f'[providers.{name}]\nkind = "{kind}"\nbase_url = "{self.url}"\napi_key = "upstream-key"\n{more}\n'

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as incoming, suppress(OSError):
            while self._answer(client, incoming):
                pass

    def _answer(self, client: socket.socket, incoming: Any) -> bool:
        lines = []
        while (line := incoming.readline()) not in {b"\r\n", b""}:
            lines.append(line.decode("latin-1").rstrip())
        if not lines:
            return False
        lengths = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
        body = incoming.read(int(lengths[0])) if lengths else b""
        with self._lock:
            self.heads.append("\n".join(lines))
            self.bodies.append(body)
            chosen = self._choose(lines[0], body)
        if chosen.data:
            client.sendall(chosen.data)
        return chosen.keeps_open

    def _choose(self, _line: str, _body: bytes) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def close(self) -> None:
        self._listening.close()


@contextmanager
def scripted(*replies: Reply) -> Iterator[ScriptedUpstream]:
    upstream = ScriptedUpstream(*replies)
    try:
        yield upstream
    finally:
        upstream.close()
