"""The HTTP side of the page: thin handlers over `Rooms`, and a stream of events per tab."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import msgspec
from aiohttp import web

from dragoman.chat.entries import Part, Unreadable
from dragoman.chat.events import AnyChatEvent, Changed, TurnEnded
from dragoman.chat.exporting import export, kinds, show_as
from dragoman.chat.media import attachment
from dragoman.chat.service import Busy
from dragoman.chat.stores import AlreadyThere, UnknownConversation
from dragoman.chat.stores import Changed as ChangedElsewhere
from dragoman.chat.tokens import DoesNotFit
from dragoman.chat.web.guard import Guard, Handler
from dragoman.chat.web.rooms import Room, Rooms
from dragoman.errors import DragomanError

MAX_BODY = 40 << 20
_BEAT = 15.0  # seconds of silence after which a comment keeps the connection
_BEHIND = 10_000  # events a reader may be behind before it has to begin again
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownConversation, 404),
    (LookupError, 404),
    (Busy, 409),
    (AlreadyThere, 409),
    (ChangedElsewhere, 409),
    (DoesNotFit, 413),
    (Unreadable, 422),
    (DragomanError, 422),
    (ValueError, 400),
    (TypeError, 400),
)
ROOMS: web.AppKey[Rooms] = web.AppKey("rooms", Rooms)


def build_app(rooms: Rooms, guard: Guard) -> web.Application:
    app = web.Application(middlewares=[guard.middleware, guard.login, problems], client_max_size=MAX_BODY)
    app[ROOMS] = rooms
    app.add_routes([web.get("/login", guard.ask), web.post("/login", guard.answer)])
    app.add_routes([web.get("/", page), web.get("/static/{name}", asset)])
    for method, path, handler in _ROUTES:
        app.router.add_route(method, path, handler)
    return app


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What goes wrong is said in words, with a status that a page can decide by."""
    try:
        return await handler(request)
    except (LookupError, Busy, ValueError, TypeError, DragomanError) as error:
        status = next(number for kind, number in _STATUSES if isinstance(error, kind))
        return web.json_response({"error": str(error)}, status=status)


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────


async def page(_: web.Request) -> web.Response:
    return _file("index.html")


async def asset(request: web.Request) -> web.Response:
    return _file(request.match_info["name"])


def _file(name: str) -> web.Response:
    folder = files("dragoman.chat.web") / "static"
    found = next((one for one in folder.iterdir() if one.name == name), None)
    if found is None:
        raise web.HTTPNotFound
    suffix = name[name.rfind(".") :]
    return web.Response(body=found.read_bytes(), content_type=_TYPES.get(suffix, "text/plain"), charset="utf-8")


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


def _room(request: web.Request) -> Room:
    return request.app[ROOMS].room(request.match_info["id"])


async def _body(request: web.Request) -> dict[str, Any]:
    given = await request.json() if request.can_read_body else {}
    if not isinstance(given, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - the content is wrong, not the call
    return given


async def state(request: web.Request) -> web.Response:
    rooms = request.app[ROOMS]
    return web.json_response(
        {
            "models": [
                {"name": one.name, "model": one.model, "window": one.window} for one in rooms.participants.values()
            ],
            "tools": [
                {"name": tool.name, "description": tool.definition.description or "", "read_only": tool.read_only}
                for tool in rooms.furnishing.tools
            ],
            "share": rooms.options.share,
            "default": rooms.options.default,
            "formats": kinds(),
        }
    )


async def conversations(request: web.Request) -> web.Response:
    return web.json_response(request.app[ROOMS].listed(request.query.get("q", "")))


async def create(request: web.Request) -> web.Response:
    """A new one, a branch of another, or one from a file."""
    rooms, given = request.app[ROOMS], await _body(request)
    if "document" in given:
        room = rooms.imported(given["document"], str(given.get("name", "")))
    elif "branch" in given:
        room = rooms.branched(str(given["branch"]), str(given["entry"]), before=bool(given.get("before")))
    else:
        room = rooms.new()
    return web.json_response({"id": room.id}, status=201)


async def snapshot(request: web.Request) -> web.Response:
    return web.json_response(_room(request).snapshot())


async def change(request: web.Request) -> web.Response:
    room, given = _room(request), await _body(request)
    if "name" in given:
        request.app[ROOMS].rename(request.match_info["id"], str(given["name"]))
    if "system_prompt" in given:
        room.service.change(system_prompt=str(given["system_prompt"]))
    return web.json_response({"id": room.id})


async def delete(request: web.Request) -> web.Response:
    await request.app[ROOMS].delete(request.match_info["id"])
    return web.json_response({})


async def send(request: web.Request) -> web.Response:
    room, given = _room(request), await _body(request)
    attachments = [_attachment(one) for one in given.get("attachments", ())]
    turn = room.service.start(str(given.get("text", "")), attachments)
    return web.json_response({"turn": turn}, status=202)


def _attachment(given: Mapping[str, Any]) -> Part:
    try:
        data = base64.b64decode(str(given["data"]), validate=True)
    except (KeyError, binascii.Error):
        raise ValueError("an attachment needs data in base64") from None
    return attachment(str(given.get("name", "")), str(given.get("media_type", "")), data)


async def stop(request: web.Request) -> web.Response:
    given = await _body(request)
    _room(request).service.stop(*([str(given["answer"])] if given.get("answer") else []))
    return web.json_response({})


async def retry(request: web.Request) -> web.Response:
    given = await _body(request)
    return web.json_response({"turn": _room(request).service.retry(str(given.get("answer")))}, status=202)


async def permit(request: web.Request) -> web.Response:
    given = await _body(request)
    known = _room(request).service.permit(
        request.match_info["question"], allow=bool(given.get("allow")), always=bool(given.get("always"))
    )
    return web.json_response({"known": known})


async def gauges(request: web.Request) -> web.Response:
    given = await _body(request)
    found = _room(request).service.gauges(str(given.get("text", "")))
    return web.json_response([msgspec.to_builtins(gauge) for gauge in found])


async def exported(request: web.Request) -> web.Response:
    room = _room(request)
    kind = request.query.get("format", "markdown")
    found = export(room.service.conversation, kind, request.query.get("model"))
    # The name of a file is ours: what users call a conversation may hold anything.
    disposition = f'attachment; filename="conversation-{room.id}{found.suffix}"'
    headers = {"content-disposition": disposition}
    return web.Response(text=found.content, content_type=found.media_type, headers=headers)


async def shown(request: web.Request) -> web.Response:
    """One message, or one answer with its tools, in a wire format, and what that cannot say."""
    wanted = request.query.get("part", "")
    entries = [
        entry for entry in _room(request).service.conversation.entries if wanted and wanted in {entry.id, entry.answer}
    ]
    if not entries:
        raise UnknownConversation("there is no such message")
    found = show_as(entries, request.query.get("format", "openai-chat"))
    losses = [{"path": one.path, "what": one.what, "severity": one.severity, "why": one.why} for one in found.losses]
    return web.json_response({"content": found.content, "losses": losses})


async def set_model(request: web.Request) -> web.Response:
    given = await _body(request)
    request.app[ROOMS].set_model(request.match_info["name"], str(given["model"]))
    return await state(request)


async def set_options(request: web.Request) -> web.Response:
    given = await _body(request)
    known: dict[str, Any] = {}
    if "share" in given:
        known["share"] = bool(given["share"])
    if "default" in given:
        known["default"] = tuple(str(name) for name in given["default"])
    request.app[ROOMS].configure(**known)
    return await state(request)


# ── events ────────────────────────────────────────────────────────────────────────────────────────────────────


async def events(request: web.Request) -> web.StreamResponse:
    """First where things stand, then what happens. A page that comes back begins with a new snapshot."""
    room = _room(request)
    response = web.StreamResponse(
        headers={"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}
    )
    queue: asyncio.Queue[AnyChatEvent] = asyncio.Queue(_BEHIND)

    def put(event: AnyChatEvent) -> None:
        if not queue.full():
            queue.put_nowait(event)

    with room.service.watched(put):
        first = room.snapshot()
        await response.prepare(request)
        await _write(response, "snapshot", msgspec.json.encode(first))
        while not queue.full():
            await _forward(response, queue, room)
    return response


async def _forward(response: web.StreamResponse, queue: asyncio.Queue[AnyChatEvent], room: Room) -> None:
    try:
        event = await asyncio.wait_for(queue.get(), _BEAT)
    except TimeoutError:
        await response.write(b": still here\n\n")
        return
    if isinstance(event, Changed):
        await _write(response, "snapshot", msgspec.json.encode(room.snapshot()))
        return
    await _write(response, event.__struct_config__.tag, msgspec.json.encode(event))  # type: ignore[arg-type]
    if isinstance(event, TurnEnded):
        told = {"gauges": room.service.gauges(), "title": room.service.conversation.title}
        await _write(response, "gauges", msgspec.json.encode(told))


async def _write(response: web.StreamResponse, kind: str, data: bytes) -> None:
    await response.write(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")


_ONE = "/api/conversations/{id}"
_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/api/state", state),
    ("PATCH", "/api/options", set_options),
    ("PATCH", "/api/models/{name}", set_model),
    ("GET", "/api/conversations", conversations),
    ("POST", "/api/conversations", create),
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
