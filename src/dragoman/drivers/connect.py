"""From a name to a driver: URL, key and variables, from arguments or from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import structs

from dragoman.codecs.registry import Codec, codec, folder_of
from dragoman.drivers.base import Defaults
from dragoman.drivers.credentials import (
    AmazonSignature,
    ApiKey,
    Credential,
    FreshToken,
    GoogleToken,
    KeyInHeader,
    NoCredentials,
    amazon_credentials,
    amazon_region,
    google_credentials,
    import_extra,
)
from dragoman.drivers.providers import Auth, Provider, Variable, find_provider, missing_provider, vertex_host
from dragoman.drivers.remote import Channel, RemoteDriver
from dragoman.drivers.retries import RetryHook, RetryPolicy
from dragoman.drivers.secret import Secret
from dragoman.drivers.sync import SyncDriver
from dragoman.drivers.transport import SizeLimits, Timeouts, Tls, Transport, proxy_of_environment
from dragoman.errors import InvalidType, NotConfigured, unknown_options

Environment: TypeAlias = Mapping[str, str]


class Options(TypedDict, total=False):
    """How to connect to a provider; everything has a default or comes from the environment."""

    base_url: str | None
    api_key: ApiKey | None
    credentials: Any
    """A credentials object of google-auth or botocore, instead of their defaults."""
    credentials_file: str | None
    """Key file of a Google service account."""
    region: str | None
    project: str | None
    location: str | None
    api_version: str | None
    profile: str | None
    headers: Mapping[str, str]
    timeouts: Timeouts
    limits: SizeLimits
    retry: RetryPolicy
    on_retry: RetryHook | None
    proxy: str | None
    """URL of a proxy, or "" for none; by default that of the environment."""
    tls: Tls | None
    transport: Transport | None
    defaults: Defaults
    environment: Environment
    """Variables to use instead of the process environment."""


_VARIABLES = ("region", "project", "location", "api_version", "profile")


def connect(model: str, **options: Unpack[Options]) -> RemoteDriver:
    """A driver for `provider/model`, such as `anthropic/claude-sonnet-5`. For the options see `Options`.

    Keys come from the environment variables of the vendors' own SDKs unless given. Nothing is sent yet.
    """
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise unknown_options(unknown, Options.__annotations__)
    provider, name = split_model_name(model)
    channel = open_channel(provider, options)
    return RemoteDriver(channel, name, options.get("defaults", {}))


def open_channel(provider: Provider, given: Options) -> Channel:
    environment = given.get("environment", os.environ)
    place = _url_variables(provider, given, environment)
    credential, settled = _AUTHS[provider.auth](provider, given, place, environment)
    base_url = _base_url(provider, given, settled, environment)
    return Channel(
        provider=provider,
        codec=codec_of(provider),
        base_url=base_url,
        place=settled,
        credential=credential,
        transport=given.get("transport") or _open_transport(base_url, given),
        timeouts=given.get("timeouts") or Timeouts(),
        limits=given.get("limits") or SizeLimits(),
        retry=given.get("retry") or RetryPolicy(),
        on_retry=given.get("on_retry"),
        headers={name.lower(): value for name, value in given.get("headers", {}).items()},
    )


def connect_sync(model: str, **options: Unpack[Options]) -> SyncDriver:
    """`connect` for programs without an event loop: a blocking driver."""
    return SyncDriver(connect(model, **options))


def split_model_name(model: str) -> tuple[Provider, str]:
    if not isinstance(model, str):
        raise InvalidType(path="model", expected="provider/model, such as openai/gpt-5.6", found=type(model).__name__)
    provider, slash, name = model.partition("/")
    if not slash or not name:
        raise missing_provider(model)
    return find_provider(provider), name


def codec_of(provider: Provider) -> Codec:
    """The codec of the provider's format, with the provider's profile."""
    plain = codec(provider.format)
    if not provider.profile:
        return plain
    profile = getattr(import_module(f"dragoman.codecs.{folder_of(provider.format)}.profile"), provider.profile)
    encode: Callable[..., Any] = plain.encode_request
    return structs.replace(
        plain,
        name=profile.name,
        profile=profile,
        encode_request=partial(encode, profile=profile),
    )


# ── where ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _url_variables(provider: Provider, given: Options, environment: Environment) -> dict[str, str]:
    given_names = {name for name in _VARIABLES if given.get(name)}
    unknown = given_names - {variable.name for variable in provider.variables}
    if unknown:
        raise TypeError(f"{provider.name} takes no {', '.join(sorted(unknown))}")
    found = ((one.name, _value(one, given, environment)) for one in provider.variables)
    return {name: value for name, value in found if value}


def _value(variable: Variable, given: Options, environment: Environment) -> str | None:
    given_value = given.get(variable.name)
    return str(given_value) if given_value else _first(variable.environment, environment) or variable.default


def _first(names: tuple[str, ...], environment: Environment) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _base_url(provider: Provider, given: Options, place: Mapping[str, str], environment: Environment) -> str:
    url = given.get("base_url") or _first(provider.base_url_environment, environment)
    if url is None:
        for variable in provider.variables:
            if variable.required and variable.name not in place:
                raise _missing_error(provider, variable.name, variable.environment)
        url = provider.base_url.format(**place, host=vertex_host(place.get("location", "global")))
    if not url:
        raise _missing_error(provider, "base_url", provider.base_url_environment)
    # OLLAMA_HOST is often a bare name and port.
    return (url if "://" in url else f"http://{url}").rstrip("/")


def _missing_error(provider: Provider, name: str, environment: tuple[str, ...]) -> NotConfigured:
    ways = f"set {' or '.join(environment)}, or " if environment else ""
    return NotConfigured(f"{provider.name} has no {name}: {ways}pass {name}=...", missing=name)


def _open_transport(base_url: str, given: Options) -> Transport:
    if base_url.startswith("local://"):
        started: Transport = import_extra("dragoman.local.transport", "local").LocalTransport(
            base_url, given.get("environment", os.environ)
        )
        return started
    http = import_extra("dragoman.drivers.http", "http")
    proxy = given.get("proxy")
    proxy = proxy_of_environment(base_url) if proxy is None else proxy
    transport: Transport = http.HttpTransport(proxy=proxy or None, tls=given.get("tls"))
    return transport


# ── credentials ───────────────────────────────────────────────────────────────────────────────────────────────

Found: TypeAlias = tuple[Credential, Mapping[str, str]]


def _key(provider: Provider, given: Options, environment: Environment) -> Secret | None:
    given_key = given.get("api_key")
    if isinstance(given_key, str):
        return Secret(given_key)
    key = _first(provider.key_environment, environment)
    return None if key is None else Secret(key)


def _key_credential(
    provider: Provider, given: Options, place: dict[str, str], environment: Environment, *, header: str, word: str = ""
) -> Found:
    given_key = given.get("api_key")
    if callable(given_key):
        return FreshToken(given_key), place
    key = _key(provider, given, environment)
    if not key:
        if provider.key_required:
            raise _missing_error(provider, "api_key", provider.key_environment)
        return NoCredentials(), place
    return KeyInHeader(key, header, word), place


def _no_credential(_provider: Provider, _given: Options, place: dict[str, str], _environment: Environment) -> Found:
    return NoCredentials(), place


def _google_credential(provider: Provider, given: Options, place: dict[str, str], environment: Environment) -> Found:
    """An explicit key selects express mode; a project or credentials select OAuth; then a key in the environment."""
    given_key = given.get("api_key")
    if callable(given_key):
        return FreshToken(given_key), place
    if given_key is not None and not provider.key_environment:
        return KeyInHeader(Secret(given_key), "authorization", "Bearer "), place
    key = _key(provider, given, environment)
    credentials, file = given.get("credentials"), given.get("credentials_file")
    chosen = credentials is not None or file is not None or "project" in place
    if key and (given_key is not None or not chosen):
        return KeyInHeader(key, "x-goog-api-key"), {name: one for name, one in place.items() if name != "project"}
    if credentials is None:
        credentials, project = google_credentials(file)
    else:
        project = getattr(credentials, "project_id", None)
    place.setdefault("project", project or "")
    if not place["project"]:
        raise _missing_error(provider, "project", ("GOOGLE_CLOUD_PROJECT",))
    return GoogleToken(credentials), place


def _amazon_credential(provider: Provider, given: Options, place: dict[str, str], environment: Environment) -> Found:
    given_key = given.get("api_key")
    if callable(given_key):
        return FreshToken(given_key), place
    key = _key(provider, given, environment)
    if key:
        return KeyInHeader(key, "authorization", "Bearer "), place
    profile = place.get("profile")
    region = place.get("region") or amazon_region(profile)
    if region is None:
        raise _missing_error(provider, "region", ("AWS_REGION", "AWS_DEFAULT_REGION"))
    place["region"] = region
    return AmazonSignature(given.get("credentials") or amazon_credentials(profile), region), place


_AUTHS: Mapping[Auth, Callable[[Provider, Options, dict[str, str], Environment], Found]] = {
    "none": _no_credential,
    "bearer": partial(_key_credential, header="authorization", word="Bearer "),
    "x-api-key": partial(_key_credential, header="x-api-key"),
    "x-goog-api-key": partial(_key_credential, header="x-goog-api-key"),
    "api-key": partial(_key_credential, header="api-key"),
    "google": _google_credential,
    "amazon": _amazon_credential,
}


def is_local(url: str) -> bool:
    return urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}
