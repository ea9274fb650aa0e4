"""A call as a `curl` command line: the key is read from the environment of the user who runs it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TypeAlias

from dragoman.drivers.providers import Auth, Place, Provider
from dragoman.drivers.remote import Call, Channel

_Words: TypeAlias = list[str]
_PLAIN = frozenset({"user-agent", "accept-encoding"})
"""Headers that dragoman adds, not part of the API request."""


def _header(name: str, word: str = "") -> Callable[[Provider, Place], _Words]:
    # Double quotes, so that the shell expands the variable.
    return lambda provider, _place: [f'-H "{name}: {word}${key}"' for key in provider.key_environment[:1]]


def _google(provider: Provider, place: Place) -> _Words:
    if "project" in place:
        return ['-H "authorization: Bearer $(gcloud auth print-access-token)"']
    return _header("x-goog-api-key")(provider, place)


def _amazon(_provider: Provider, place: Place) -> _Words:
    signed = f"--aws-sigv4 aws:amz:{shlex.quote(place.get('region', '$AWS_REGION'))}:bedrock"
    return [signed, '--user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"']


_AUTHS: Mapping[Auth, Callable[[Provider, Place], _Words]] = {
    "none": lambda _provider, _place: [],
    "bearer": _header("authorization", "Bearer "),
    "x-api-key": _header("x-api-key"),
    "x-goog-api-key": _header("x-goog-api-key"),
    "api-key": _header("api-key"),
    "google": _google,
    "amazon": _amazon,
}


def curl_command(channel: Channel, call: Call) -> str:
    http = call.http
    first = f"curl {'-N ' if call.request.stream else ''}{shlex.quote(http.url)}"
    shown = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in http.headers.items() if name not in _PLAIN]
    auth = _AUTHS[channel.provider.auth](channel.provider, channel.place)
    body = [f"-d {shlex.quote(http.body.decode())}"] if http.body else []
    return " \\\n  ".join([first, *auth, *shown, *body])
