"""What the chat's part of the page asks: thin handlers over `Rooms`, and a stream of events per tab."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.chat.entries import Part, Unreadable
from dragoman.chat.events import AnyChatEvent, Changed, TurnEnded
from dragoman.chat.exporting import export, kinds, show_as
from dragoman.chat.media import attachment
from dragoman.chat.participants import Participant
from dragoman.chat.service import Busy, ChatService
from dragoman.chat.stores import AlreadyThere, UnknownConversation
from dragoman.chat.stores import Changed as ChangedElsewhere
from dragoman.chat.tokens import DoesNotFit
from dragoman.gateway.exchange import Exchange
from dragoman.gateway.http_request import Head
from dragoman.web.conversation_hub import Room, Rooms
from dragoman.web.message_translation import translated
from dragoman.web.models import FOREIGN_FORMATS
from dragoman.web.site import API, Handler, Place, Problems, Route, json_body, send_json
from dragoman.web.streams import Streams

_PROBLEMS: Problems = (
    (UnknownConversation, 404),
    (Busy, 409),
    (AlreadyThere, 409),
    (ChangedElsewhere, 409),
    (DoesNotFit, 413),
    (Unreadable, 422),
)


class Asked(Struct, frozen=True):
    """One question of the page."""

    exchange: Exchange
    names: Mapping[str, str]
    """Of the path."""
    rooms: Rooms
    """The user's own."""
    streams: Streams

    @property
    def room(self) -> Room:
        return self.rooms.room(self.names["id"])

    @property
    def service(self) -> ChatService:
        return self.room.service

    @property
    def body(self) -> dict[str, Any]:
        return json_body(self.exchange)

    @property
    def query(self) -> Mapping[str, str]:
        return self.exchange.head.parameters

    def tell(self, body: object, status: int = 200) -> None:
        send_json(self.exchange, body, status)


Answer: TypeAlias = Callable[[Asked], Awaitable[None]]


def chat(rooms_of: Callable[[Head], Awaitable[Rooms]], streams: Streams) -> Place:
    """Whose rooms a request is about, its head tells."""

    def handler(answer: Answer) -> Handler:
        async def handle(exchange: Exchange, names: Mapping[str, str]) -> None:
            await answer(Asked(exchange, names, await rooms_of(exchange.head), streams))

        return handle

    routes = tuple(Route(method, f"{API}/chat{path}", handler(answer)) for method, path, answer in _ROUTES)
    return Place("chat", routes, _PROBLEMS)


# ── everything ────────────────────────────────────────────────────────────────────────────────────────────────


async def state(asked: Asked) -> None:
    rooms = asked.rooms
    models = [
        {"name": one.name, "model": one.model, "window": one.window, "simulated": one.is_simulated}
        for one in rooms.participants.values()
    ]
    tools = [
        {"name": tool.name, "description": tool.definition.description or "", "read_only": tool.read_only}
        for tool in rooms.furnishing.tools
    ]
    told = {"share": rooms.options.share, "default": rooms.options.default, "formats": kinds()}
    foreign = FOREIGN_FORMATS if rooms.furnishing.in_format is not None else ()
    warning = rooms.furnishing.warning
    asked.tell({"models": models, "tools": tools, "warning": warning, "foreign": foreign, **told})


async def models(asked: Asked) -> None:
    """Names to choose from; any other that a provider knows will do."""
    catalogue = asked.rooms.furnishing.catalogue
    known = [one.model for one in asked.rooms.participants.values()]
    asked.tell(sorted({*known, *(await catalogue() if catalogue else ())}))


async def set_model(asked: Asked) -> None:
    asked.rooms.set_model(asked.names["name"], str(asked.body["model"]))
    await state(asked)


async def set_options(asked: Asked) -> None:
    given = asked.body
    known: dict[str, Any] = {}
    if "share" in given:
        known["share"] = bool(given["share"])
    if "default" in given:
        known["default"] = tuple(str(name) for name in given["default"])
    asked.rooms.configure(**known)
    await state(asked)


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


async def conversations(asked: Asked) -> None:
    asked.tell(asked.rooms.listed(asked.query.get("q", "")))


async def create(asked: Asked) -> None:
    """A new one, a branch of another, or one from a file."""
    rooms, given = asked.rooms, asked.body
    if "document" in given:
        room = rooms.imported(given["document"], str(given.get("name", "")))
    elif "branch" in given:
        room = rooms.branched(str(given["branch"]), str(given["entry"]), before=bool(given.get("before")))
    else:
        room = rooms.new()
    asked.tell({"id": room.id}, 201)


async def snapshot(asked: Asked) -> None:
    asked.tell(asked.room.snapshot())


async def change(asked: Asked) -> None:
    room, given = asked.room, asked.body
    if "name" in given:
        asked.rooms.rename(asked.names["id"], str(given["name"]))
    if "system_prompt" in given:
        room.service.change(system_prompt=str(given["system_prompt"]))
    asked.tell({"id": room.id})


async def delete(asked: Asked) -> None:
    await asked.rooms.delete(asked.names["id"])
    asked.tell({})


async def exported(asked: Asked) -> None:
    room = asked.room
    found = export(room.service.conversation, asked.query.get("format", "markdown"), asked.query.get("model"))
    headers = {
        "content-type": f"{found.media_type}; charset=utf-8",
        # The name of a file is ours: what users call a conversation may hold anything.
        "content-disposition": f'attachment; filename="conversation-{room.id}{found.suffix}"',
        "cache-control": "no-store",
    }
    asked.exchange.send(200, headers, found.content.encode())


async def shown(asked: Asked) -> None:
    """One message, or one answer with its tools, in a wire format, and what that cannot say."""
    wanted = asked.query.get("part", "")
    entries = [one for one in asked.service.conversation.entries if wanted and wanted in {one.id, one.answer}]
    if not entries:
        raise UnknownConversation("there is no such message")
    found = show_as(entries, asked.query.get("format", "openai-chat"))
    losses = [{"path": one.path, "what": one.what, "severity": one.severity, "why": one.why} for one in found.losses]
    asked.tell({"content": found.content, "losses": losses})


# ── talking ───────────────────────────────────────────────────────────────────────────────────────────────────


async def send(asked: Asked) -> None:
    given = asked.body
    attachments = [_attachment(one) for one in given.get("attachments", ())]
    text, format = str(given.get("text", "")), str(given.get("format") or "")
    service, translations = asked.service, []
    instead = {}
    if format and not given.get("memo"):
        instead = _in_format(asked, text, format)
    turn = service.start(text, attachments, memo=bool(given.get("memo")), instead=instead)
    if instead:
        translations = [translated(service, one, turn) for one in instead.values()]
    asked.tell({"turn": turn, "translations": translations}, 202)


def _in_format(asked: Asked, text: str, format: str) -> dict[str, Participant]:
    """Those that the message goes to, asked as a client of another API would ask them."""
    make = asked.rooms.furnishing.in_format
    if make is None:
        raise ValueError("only a gateway translates: start it with `dragoman serve`")
    service = asked.service
    return {name: make(service.participants[name], format) for name in service.addressed(text)}


def _attachment(given: Mapping[str, Any]) -> Part:
    try:
        data = base64.b64decode(str(given["data"]), validate=True)
    except (KeyError, ValueError):
        raise ValueError("an attachment needs data in base64") from None
    return attachment(str(given.get("name", "")), str(given.get("media_type", "")), data)


async def stop(asked: Asked) -> None:
    answer = asked.body.get("answer")
    asked.service.stop(*([str(answer)] if answer else []))
    asked.tell({})


async def retry(asked: Asked) -> None:
    asked.tell({"turn": asked.service.retry(str(asked.body.get("answer")))}, 202)


async def permit(asked: Asked) -> None:
    given = asked.body
    question, allow, always = asked.names["question"], bool(given.get("allow")), bool(given.get("always"))
    asked.tell({"known": asked.service.permit(question, allow=allow, always=always)})


async def gauges(asked: Asked) -> None:
    asked.tell(asked.service.gauges(str(asked.body.get("text", ""))))


async def events(asked: Asked) -> None:
    """First where things stand, then what happens. A page that comes back begins with a new snapshot."""
    room = asked.room
    stream = asked.streams.stream()

    def tell(event: AnyChatEvent) -> None:
        if isinstance(event, Changed):
            stream.put("snapshot", room.snapshot())
            return
        stream.put(str(event.__struct_config__.tag), event)
        if isinstance(event, TurnEnded):
            stream.put("gauges", {"gauges": room.service.gauges(), "title": room.service.conversation.title})

    with room.service.watched(tell):
        stream.put("snapshot", room.snapshot())
        await stream.run(asked.exchange)


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
    ("GET", f"{_ONE}/export", exported),
    ("GET", f"{_ONE}/show", shown),
)
