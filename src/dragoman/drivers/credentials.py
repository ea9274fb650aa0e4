"""Authentication of requests. Vendors' packages are imported on first use."""

from __future__ import annotations

import asyncio
import inspect
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, structs

from dragoman.drivers.secret import Secret
from dragoman.drivers.transport import HttpRequest, transport_error
from dragoman.errors import NotConfigured
from dragoman.installation import install_command

ApiKey: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A key, or a function that gives a fresh token each time (Entra ID, a vault)."""

_TOKEN_TIMEOUT = 30.0


class Credential(Protocol):
    @property
    def secrets(self) -> Sequence[Secret]:
        """Secrets to remove from all texts."""
        ...

    async def sign(self, request: HttpRequest) -> HttpRequest: ...


class NoCredentials:
    """For servers that need no key."""

    secrets: Sequence[Secret] = ()

    async def sign(self, request: HttpRequest) -> HttpRequest:
        return request


class KeyInHeader:
    """`x-api-key: KEY`, or with a scheme: `authorization: Bearer KEY`."""

    def __init__(self, key: Secret, header: str, word: str = "") -> None:
        self.secrets = (key,)
        self._header = header
        self._value = word + key.reveal()
        self._unsigned: Mapping[str, str] = {}
        self._signed: dict[str, str] = {header: self._value}
        """The headers that were signed last, and the result: most requests of a gateway share one object."""

    async def sign(self, request: HttpRequest) -> HttpRequest:
        if request.headers is not self._unsigned:
            self._unsigned, self._signed = request.headers, {**request.headers, self._header: self._value}
        return structs.replace(request, headers=self._signed)


class FreshToken:
    """A token fetched from its provider before each request."""

    def __init__(self, ask: Callable[[], str | Awaitable[str]]) -> None:
        self._ask = ask
        self.secrets: Sequence[Secret] = ()

    async def sign(self, request: HttpRequest) -> HttpRequest:
        answer = self._ask()
        token = Secret(await answer if inspect.isawaitable(answer) else answer)
        self.secrets = (token,)
        return _with_headers(request, {"authorization": f"Bearer {token.reveal()}"})


def _with_headers(request: HttpRequest, headers: Mapping[str, str]) -> HttpRequest:
    return structs.replace(request, headers={**request.headers, **headers})


def import_extra(module: str, extra: str) -> Any:
    """Imports a vendor's package; the error has the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        words = f"{error.name} is not installed: {install_command(extra)}"
        raise NotConfigured(words, missing=extra) from error


# ── Google ────────────────────────────────────────────────────────────────────────────────────────────────────

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


class GoogleToken:
    """OAuth tokens of google-auth: application default credentials, a service account, or any credentials object."""

    def __init__(self, credentials: Any) -> None:
        self._credentials = credentials
        self._refreshing = asyncio.Lock()

    @property
    def secrets(self) -> Sequence[Secret]:
        token = getattr(self._credentials, "token", None)
        return (Secret(token),) if token else ()

    async def sign(self, request: HttpRequest) -> HttpRequest:
        if not self._credentials.valid:
            async with self._refreshing:
                if not self._credentials.valid:
                    await self._refresh()
        headers = {"authorization": f"Bearer {self._credentials.token}"}
        quota = getattr(self._credentials, "quota_project_id", None)
        return _with_headers(request, headers | ({"x-goog-user-project": quota} if quota else {}))

    async def _refresh(self) -> None:
        """google-auth blocks on the network, so it runs in a thread."""
        exceptions = import_extra("google.auth.exceptions", "vertex")
        try:
            await asyncio.to_thread(self._credentials.refresh, _ask_for_token)
        except exceptions.GoogleAuthError as error:
            raise transport_error(
                "authentication", f"no token from Google: {type(error).__name__}: {error.args[0]}"
            ) from error


def google_credentials(file: str | None) -> tuple[Any, str | None]:
    """Credentials and their project: from a service account's file, or the defaults of this machine."""
    if file is not None:
        account = import_extra("google.oauth2.service_account", "vertex")
        credentials = account.Credentials.from_service_account_file(file, scopes=_SCOPES)
        return credentials, credentials.project_id
    auth = import_extra("google.auth", "vertex")
    exceptions = import_extra("google.auth.exceptions", "vertex")
    try:
        credentials, project = auth.default(scopes=_SCOPES)
    except exceptions.DefaultCredentialsError as error:
        words = (
            "no Google credentials: run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
        )
        raise NotConfigured(words, missing="GOOGLE_APPLICATION_CREDENTIALS") from error
    return credentials, project


class _TokenAnswer(Struct, frozen=True):
    """The response that google-auth expects."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _ask_for_token(
    url: str, method: str = "GET", body: Any = None, headers: Any = None, timeout: float | None = None, **_more: Any
) -> _TokenAnswer:
    """Transport for google-auth on the standard library, which saves another package."""
    data = body.encode() if isinstance(body, str) else body
    request = urllib.request.Request(url, data, dict(headers or {}), method=method)  # noqa: S310 - google-auth's own
    try:
        with urllib.request.urlopen(request, timeout=timeout or _TOKEN_TIMEOUT) as answer:  # noqa: S310
            return _TokenAnswer(answer.status, dict(answer.headers), answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _TokenAnswer(error.code, dict(error.headers), error.read())
    except OSError as error:
        raise import_extra("google.auth.exceptions", "vertex").TransportError(str(error)) from error


# ── Amazon ────────────────────────────────────────────────────────────────────────────────────────────────────


class AmazonSignature:
    """Signature Version 4 by botocore, with the credentials it finds: environment, profile, role, instance."""

    def __init__(self, credentials: Any, region: str, service: str = "bedrock") -> None:
        self._credentials = credentials
        self._region = region
        self._service = service
        self.secrets: Sequence[Secret] = ()

    async def sign(self, request: HttpRequest) -> HttpRequest:
        frozen = await self._freeze()
        self.secrets = tuple(Secret(word) for word in (frozen.secret_key, frozen.token) if word)
        auth, awsrequest = import_extra("botocore.auth", "bedrock"), import_extra("botocore.awsrequest", "bedrock")
        signed = awsrequest.AWSRequest(request.method, request.url, dict(request.headers), request.body)
        auth.SigV4Auth(frozen, self._service, self._region).add_auth(signed)
        return structs.replace(request, headers=dict(signed.headers.items()))

    async def _freeze(self) -> Any:
        """Refreshing credentials uses the network and may block, so it runs in a thread."""
        if hasattr(self._credentials, "refresh_needed"):
            return await asyncio.to_thread(self._credentials.get_frozen_credentials)
        return self._credentials.get_frozen_credentials()


def amazon_credentials(profile: str | None) -> Any:
    session = import_extra("botocore.session", "bedrock").Session(profile=profile)
    credentials = session.get_credentials()
    if credentials is None:
        words = "no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID with its secret, or AWS_PROFILE"
        raise NotConfigured(words, missing="AWS_BEARER_TOKEN_BEDROCK")
    return credentials


def amazon_region(profile: str | None) -> str | None:
    """The region of the profile in ~/.aws/config, if botocore is installed."""
    region = import_extra("botocore.session", "bedrock").Session(profile=profile).get_config_variable("region")
    return region if isinstance(region, str) else None
