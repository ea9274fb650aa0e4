"""HTTP handlers of the chat page. They call `ConversationHub`; each tab has one event stream."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.chat.entries import Part, Unreadable
from dragoman.chat.events import AnyChatEvent, Changed, Notice, TurnEnded
from dragoman.chat.exporting import export, kinds, show_as
from dragoman.chat.media import attachment
from dragoman.chat.participants import Participant
from dragoman.chat.service import Busy, ChatService
from dragoman.chat.stores import AlreadyThere, UnknownConversation
from dragoman.chat.stores import Changed as ChangedElsewhere
from dragoman.chat.tokens import DoesNotFit
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import Head
from dragoman.web.conversation_hub import ConversationHub, NoRoom, OpenConversation
from dragoman.web.message_translation import translate_turn
from dragoman.web.models import FOREIGN_FORMATS
from dragoman.web.site import API, Handler, PageSection, Problems, Route, json_body, send_json
from dragoman.web.streams import Streams


class StorageFailed(Exception):
    """The disk is full, read-only or broken."""


_PROBLEMS: Problems = (
    (StorageFailed, 507),
    (UnknownConversation, 404),
    (Busy, 409),
    (AlreadyThere, 409),
    (ChangedElsewhere, 409),
    (DoesNotFit, 413),
    (NoRoom, 413),
    (Unreadable, 422),
)


class ChatRequest(Struct, frozen=True):
    """One request of the page."""

    exchange: Exchange
    names: Mapping[str, str]
    """Named parts of the path."""
    hub: ConversationHub
    """Conversations of this user."""
    streams: Streams

    @property
    def opened(self) -> OpenConversation:
        return self.hub.get(self.names["id"])

    @property
    def service(self) -> ChatService:
        return self.opened.service

    @property
    def body(self) -> dict[str, Any]:
        return json_body(self.exchange)

    @property
    def query(self) -> Mapping[str, str]:
        return self.exchange.head.parameters

    def reply(self, body: object, status: int = 200) -> None:
        send_json(self.exchange, body, status)


Answer: TypeAlias = Callable[[ChatRequest], Awaitable[None]]


def chat(hub_of: Callable[[Head], Awaitable[ConversationHub]], streams: Streams) -> PageSection:
    """The chat section; `hub_of` finds the user's conversations by the request's head."""

    def handler(answer: Answer) -> Handler:
        async def handle(exchange: Exchange, names: Mapping[str, str]) -> None:
            request = ChatRequest(exchange, names, await hub_of(exchange.head), streams)
            if answer in _GROWING:
                request.hub.check_room(len(exchange.body), names.get("id"))
            try:
                await answer(request)
            except OSError as error:  # its own words name files of the server
                if error.strerror is None:  # a time limit
                    raise
                raise StorageFailed(f"conversations cannot be written: {error.strerror}") from error

        return handle

    routes = tuple(Route(method, f"{API}/chat{path}", handler(answer)) for method, path, answer in _ROUTES)
    return PageSection("chat", routes, _PROBLEMS)


# ── everything ────────────────────────────────────────────────────────────────────────────────────────────────


async def state(request: ChatRequest) -> None:
    hub = request.hub
    models = [
        {"name": one.name, "model": one.model, "window": one.window, "simulated": one.is_simulated}
        for one in hub.participants.values()
    ]
    tools = [
        {"name": tool.name, "description": tool.definition.description or "", "read_only": tool.read_only}
        for tool in hub.settings.tools
    ]
    options = {"share": hub.options.share, "default": hub.options.default, "formats": kinds()}
    foreign = FOREIGN_FORMATS if hub.settings.in_format is not None else ()
    warning = hub.settings.warning
    request.reply({"models": models, "tools": tools, "warning": warning, "foreign": foreign, **options})


async def models(request: ChatRequest) -> None:
    """Model names to suggest; any other name of a provider works too."""
    catalogue = request.hub.settings.catalogue
    known = [one.model for one in request.hub.participants.values()]
    request.reply(sorted({*known, *(await catalogue() if catalogue else ())}))


async def set_model(request: ChatRequest) -> None:
    request.hub.set_model(request.names["name"], str(request.body["model"]))
    await state(request)


async def set_options(request: ChatRequest) -> None:
    given = request.body
    known: dict[str, Any] = {}
    if "share" in given:
        known["share"] = bool(given["share"])
    if "default" in given:
        known["default"] = tuple(str(name) for name in given["default"])
    request.hub.configure(**known)
    await state(request)


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


async def conversations(request: ChatRequest) -> None:
    request.reply(request.hub.list_rows(request.query.get("q", "")))


async def create(request: ChatRequest) -> None:
    """A new one, a branch of another, or one from a file."""
    hub, given = request.hub, request.body
    if "document" in given:
        opened = hub.import_document(given["document"], str(given.get("name", "")))
    elif "branch" in given:
        opened = hub.branch(str(given["branch"]), str(given["entry"]), before=bool(given.get("before")))
    else:
        opened = hub.new()
    request.reply({"id": opened.id}, 201)


async def snapshot(request: ChatRequest) -> None:
    request.reply(request.opened.snapshot())


async def change(request: ChatRequest) -> None:
    opened, given = request.opened, request.body
    if "name" in given:
        request.hub.rename(request.names["id"], str(given["name"]))
    if "system_prompt" in given:
        opened.service.change(system_prompt=str(given["system_prompt"]))
    request.reply({"id": opened.id})


async def delete(request: ChatRequest) -> None:
    await request.hub.delete(request.names["id"])
    request.reply({})


async def export_conversation(request: ChatRequest) -> None:
    opened = request.opened
    found = export(opened.service.conversation, request.query.get("format", "markdown"), request.query.get("model"))
    headers = {
        "content-type": f"{found.media_type}; charset=utf-8",
        # The file name is ours: names of conversations may contain any character.
        "content-disposition": f'attachment; filename="conversation-{opened.id}{found.suffix}"',
        "cache-control": "no-store",
    }
    request.exchange.send(200, headers, found.content.encode())


async def show_in_format(request: ChatRequest) -> None:
    """One message, or one answer with its tools, in a wire format, with its losses."""
    wanted = request.query.get("part", "")
    entries = [one for one in request.service.conversation.entries if wanted and wanted in {one.id, one.answer}]
    if not entries:
        raise UnknownConversation("there is no such message")
    found = show_as(entries, request.query.get("format", "openai-chat"))
    losses = [{"path": one.path, "what": one.what, "severity": one.severity, "why": one.why} for one in found.losses]
    request.reply({"content": found.content, "losses": losses})


# ── talking ───────────────────────────────────────────────────────────────────────────────────────────────────


async def send(request: ChatRequest) -> None:
    given = request.body
    attachments = [_attachment(one) for one in given.get("attachments", ())]
    text, format = str(given.get("text", "")), str(given.get("format") or "")
    service, translations = request.service, []
    instead = {}
    if format and not given.get("memo"):
        instead = _in_format(request, text, format)
    turn = service.start(text, attachments, memo=bool(given.get("memo")), instead=instead)
    if instead:
        translations = [translate_turn(service, one, turn) for one in instead.values()]
    request.reply({"turn": turn, "translations": translations}, 202)


def _in_format(request: ChatRequest, text: str, format: str) -> dict[str, Participant]:
    """Participants of the message, addressed in the format of another API's client."""
    make = request.hub.settings.in_format
    if make is None:
        raise ValueError("this page cannot translate: start it with `dragoman serve`")
    service = request.service
    return {name: make(service.participants[name], format) for name in service.addressees(text)}


def _attachment(given: Mapping[str, Any]) -> Part:
    try:
        data = base64.b64decode(str(given["data"]), validate=True)
    except (KeyError, ValueError):
        raise ValueError("attachments need base64 data") from None
    return attachment(str(given.get("name", "")), str(given.get("media_type", "")), data)


async def stop(request: ChatRequest) -> None:
    answer = request.body.get("answer")
    request.service.stop(*([str(answer)] if answer else []))
    request.reply({})


async def retry(request: ChatRequest) -> None:
    request.reply({"turn": request.service.retry(str(request.body.get("answer")))}, 202)


async def permit(request: ChatRequest) -> None:
    given = request.body
    question, allow, always = request.names["question"], bool(given.get("allow")), bool(given.get("always"))
    request.reply({"known": request.service.permit(question, allow=allow, always=always)})


async def gauges(request: ChatRequest) -> None:
    request.reply(request.service.gauges(str(request.body.get("text", ""))))


async def events(request: ChatRequest) -> None:
    """Streams a snapshot, then events. A page that reconnects gets a new snapshot."""
    opened = request.opened
    stream = request.streams.stream()

    def send_event(event: AnyChatEvent) -> None:
        if isinstance(event, Changed):
            stream.put_state("snapshot", opened.snapshot(), except_for=_NOT_IN_SNAPSHOT)
            return
        stream.put(str(event.__struct_config__.tag), event)
        if isinstance(event, TurnEnded):
            stream.put("gauges", {"gauges": opened.service.gauges(), "title": opened.service.conversation.title})

    with opened.service.watch(send_event):
        stream.put("snapshot", opened.snapshot())
        await stream.run(request.exchange)


_NOT_IN_SNAPSHOT = frozenset({str(Notice.__struct_config__.tag)})
"""Events that a snapshot does not include."""
_GROWING = frozenset({create, change, send, retry})
"""What makes the stored conversations larger."""
_ONE = "/conversations/{id}"
_ROUTES: tuple[tuple[str, str, Answer], ...] = (
    ("GET", "/state", state),
    ("PATCH", "/options", set_options),
    ("GET", "/models", models),
    ("PATCH", "/models/{name}", set_model),
    ("GET", "/conversations", conversations),
    ("POST", "/conversations", create),
    ("GET", _ONE, snapshot),
    ("PATCH", _ONE, change),
    ("DELETE", _ONE, delete),
    ("GET", f"{_ONE}/events", events),
    ("POST", f"{_ONE}/messages", send),
    ("POST", f"{_ONE}/stop", stop),
    ("POST", f"{_ONE}/retry", retry),
    ("POST", f"{_ONE}/permissions/{{question}}", permit),
    ("POST", f"{_ONE}/gauges", gauges),
    ("GET", f"{_ONE}/export", export_conversation),
    ("GET", f"{_ONE}/show", show_in_format),
)
