"""Anthropic message threads (`thread` of a Messages request), for upstreams without threads.

`create` stores the conversation under the id of the reply; `continue` names a reply and sends only new messages. The
SDKs' tool runner uses both by default. If a conversation is not stored (any more), the error is Anthropic's, after
which the SDK sends everything again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw, structs

from dragoman.codecs.accumulate import Accumulator
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.routing import Plan
from dragoman.gateway.state.base import Kept, Store, Unavailable
from dragoman.gateway.state_errors import UnknownResponse
from dragoman.ir import Failure
from dragoman.streams import StreamDecoder
from dragoman.translate import encode_response

FORMAT = "anthropic-messages"
LIFETIME = 3600.0
"""Seconds a thread is kept after its last request. Anthropic promises five minutes and deletes within an hour."""
_THREAD_FIELDS = ("system", "tools")
"""Keys that `create` sets for the whole thread, and that `continue` must not repeat."""
_PREFIX = "thread:"
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_array = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode


def _refusal(status: int, code: str, message: str) -> UnknownResponse:
    """Return an error with a code: the SDK decides by `error.details` whether to send everything again."""
    return UnknownResponse(Failure("not_found" if status == 404 else "invalid_request", message, status, code=code))  # noqa: PLR2004


class Thread:
    """One request whose reply may be continued."""

    def __init__(
        self, threads: MessageThreads, client_request: ClientRequest, owner: str, fields: dict[str, Any]
    ) -> None:
        self.client_request = client_request
        self._threads = threads
        self._owner = owner
        self._fields = fields
        """System, tools and messages so far."""
        self._account = Accumulator()
        self._stream = StreamDecoder(FORMAT, account=self._account)

    async def keep(self, response: bytes) -> bytes:
        fields = _object(response)
        await self._keep(str(msgspec.json.decode(fields["id"])), fields["content"])
        return response

    def publish(self, out: bytes) -> None:
        self._stream.feed(out)

    async def keep_streamed(self) -> None:
        completion = self._account.so_far()
        if completion.finish is not None and completion.id:
            body = encode_response(completion, FORMAT).body
            await self._keep(completion.id, body["content"])

    async def _keep(self, id: str, content: Any) -> None:
        fields = {**self._fields, "messages": [*self._fields["messages"], {"role": "assistant", "content": content}]}
        with suppress(Unavailable):
            await self._threads.store.keep(Kept(_PREFIX + id, self._owner, None, _encode(fields), b""))


class MessageThreads:
    format = FORMAT

    def __init__(self, store: Store) -> None:
        self.store = store

    async def begin(self, client_request: ClientRequest, plan: Plan, owner: str) -> Thread | None:
        """Return the thread; None if there is none or the upstream keeps it. Raises `UnknownResponse`."""
        thread = client_request.known.thread
        if thread is None:
            return None
        native = plan.candidates[0].upstream.channel.provider.format == FORMAT
        fields: dict[str, Any] = _object(client_request.body)
        fields.pop("thread", None)
        if thread.get("type") == "continue":
            stored = await self._stored_fields(str(thread.get("previous_message_id")), owner)
            if stored is None:
                if native:
                    return None
                raise _refusal(404, "thread_not_found", "The thread was not found: it has expired, or never existed.")
            for name in _THREAD_FIELDS:
                if name in fields:
                    words = f"{name}: a request that continues a thread must leave it out"
                    raise _refusal(400, "thread_fingerprint_mismatch", words)
            fields = {**stored, **fields, "messages": [*_array(stored["messages"]), *_messages(fields)]}
        elif native:
            return None
        whole = {**{name: fields[name] for name in _THREAD_FIELDS if name in fields}, "messages": _messages(fields)}
        rewritten = structs.replace(client_request, body=_encode(fields), rewritten=True, request=None)
        return Thread(self, rewritten, owner, whole)

    async def _stored_fields(self, id: str, owner: str) -> dict[str, Raw] | None:
        kept = await self.store.find_response(_PREFIX + id, owner)
        if kept is None or await self.store.age(kept.id) > LIFETIME:
            return None
        await self.store.touch(kept.id)
        return _object(kept.input)


def _messages(fields: dict[str, Any]) -> list[Any]:
    messages = fields.get("messages")
    if isinstance(messages, list):
        return messages
    return _array(messages) if messages is not None and bytes(messages)[:1] == b"[" else []
