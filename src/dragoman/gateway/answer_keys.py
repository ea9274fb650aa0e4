"""Removes the gateway's keys from what upstreams send back: some quote them in their errors."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dragoman.drivers.remote import Channel
from dragoman.drivers.secret import HIDDEN
from dragoman.ir.values import encode_json, parse_json

_HIDDEN = HIDDEN.encode()


class KeyFilter:
    """Removes keys from a stream, including a key that is split between two reads.

    Bytes at the end of a read that may be the beginning of a key are held until the next read. In nearly all formats
    an event ends with a line break, which no key contains, so its events are not delayed.
    """

    __slots__ = ("held", "keys")

    def __init__(self, channel: Channel) -> None:
        self.keys = [key for secret in channel.credential.secrets if (key := secret.searchable)]
        self.held = b""

    def feed(self, data: bytes) -> bytes:
        """Return the next bytes without keys; with no data, those that were held."""
        if not data:
            data, self.held = self.held, b""
            return data
        if self.held:
            data, self.held = self.held + data, b""
        begun = 0
        for key in self.keys:
            if data.find(key) >= 0:  # `in` costs several times as much
                data = data.replace(key, _HIDDEN)
            begun = max(begun, _begun(key, data))
        if begun:
            data, self.held = data[:-begun], data[-begun:]
        return data


def _begun(key: bytes, data: bytes) -> int:
    """Return how many bytes at the end of the data are the beginning of the key."""
    if data[-1:] not in key:
        return 0
    return next((size for size in range(min(len(key) - 1, len(data)), 0, -1) if data.endswith(key[:size])), 0)


Message = TypeVar("Message", str, bytes, str | bytes)


def without_keys(message: Message, channel: Channel) -> Message:
    """Return a text or binary message without keys."""
    for secret in channel.credential.secrets:
        key = secret.searchable
        if isinstance(message, str):
            message = message.replace(key.decode(), HIDDEN) if key else message
        else:
            message = message.replace(key, _HIDDEN) if key else message
    return message


def without_keys_in(headers: dict[str, str], channel: Channel) -> dict[str, str]:
    """Return headers without keys."""
    for secret in channel.credential.secrets:
        key = secret.searchable.decode("latin-1")
        if key and key in "\n".join(headers.values()):
            headers = {name: value.replace(key, HIDDEN) for name, value in headers.items()}
    return headers


def quotes_key(channel: Channel, body: bytes) -> bool:
    """Whether a body contains a key, unchanged or with JSON escapes."""
    keys = [secret.reveal() for secret in channel.credential.secrets if secret]
    if any(key.encode() in body for key in keys):
        return True
    if b"\\" not in body:
        return False
    try:
        plain = encode_json(parse_json(body))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return True  # unreadable, so it might hide one
    return any(encode_json(key)[1:-1] in plain for key in keys)
