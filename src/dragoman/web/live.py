"""What a gateway does, as it happens."""

from __future__ import annotations

from dragoman.gateway.app import Gateway
from dragoman.web.guard import Guard
from dragoman.web.site import Place
from dragoman.web.streams import Streams


def live(gateway: Gateway, guard: Guard, streams: Streams) -> Place:
    del gateway, guard, streams
    return Place("live")
