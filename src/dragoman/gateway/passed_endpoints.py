"""The endpoints whose bytes pass unchanged to an upstream that has them: one row each.

A row names the providers that serve the endpoint, each with what comes between its base URL and the path of the row.
Nothing is translated: `pass_through` finds an upstream, and answers 501 if there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

PROVIDER_HEADER = "x-dragoman-provider"
"""The header that names the provider, for requests without a model."""
Holding: TypeAlias = Literal["", "create", "one", "list"]
"""What a request does with objects in the provider's account: creates one, refers to one, lists them."""


class Passed(Struct, frozen=True, kw_only=True):
    name: str
    """The name in error messages."""
    method: str
    path: re.Pattern[str]
    """Has the groups `path`, which follows the base URL, and `model` and `id` if the path names them."""
    format: str
    """The client's format, for errors and keys."""
    providers: Mapping[str, str]
    """Providers that have the endpoint, and their prefix of `path`."""
    has_model: bool = False
    """Whether a request may name a model: in the path, as a key of a JSON body or as a field of a form."""
    holding: Holding = ""
    items: str = "data"
    """The key of the entries in a list."""
    id: str = "id"
    """The key of the id in created and listed objects."""
    here: str = ""
    """The handler for objects that the gateway stores itself: a key of `batch_endpoints.HANDLERS`."""
    mentions: tuple[str, ...] = ()
    """Keys of files in an answer, which then belong to the client too."""
    is_unmetered: bool = False
    """Whether an answer says nothing about what the provider will charge: refused for keys with a budget."""
    free_at: frozenset[str] = frozenset()
    """Providers at which it costs nothing."""
    by_headers: bool = False
    """Another format has the same path: this row is only for clients whose headers show its format."""


# ── providers of each endpoint ──

_COMPATIBLE = {"openai-compatible": "", "vllm": "", "llama-cpp": "", "lm-studio": ""}
"""Self-hosted servers: any of them may have the endpoint, so the server decides."""
_OPENAI = {"openai": "", "openai-chat": ""}
_AZURE = {"azure": "", "azure-responses": ""}
_IMAGES = {**_OPENAI, **_AZURE, "xai": "", "together": "", "gemini-openai": "", **_COMPATIBLE}
_EDITS = {**_OPENAI, **_AZURE, **_COMPATIBLE}
_SPEECH = {**_OPENAI, **_AZURE, "groq": "", "mistral": "", "together": "", **_COMPATIBLE}
_TRANSCRIPTIONS = {**_SPEECH, "fireworks": "", "ollama": "/v1"}
_TRANSLATIONS = {**_OPENAI, **_AZURE, "groq": "", "together": "", **_COMPATIBLE}
_MODERATIONS = {**_OPENAI, "mistral": "", **_COMPATIBLE}
_RERANK = {"together": "", "fireworks": "", "cohere": "/v1", **_COMPATIBLE}
_FILES = {**_OPENAI, **_AZURE, "mistral": "", "groq": "", "together": "", **_COMPATIBLE}
_UPLOADS = {**_OPENAI, **_AZURE}
_FINE_TUNING = {**_OPENAI, **_AZURE, "mistral": ""}
BATCH_PROVIDERS = {**_OPENAI, **_AZURE, "groq": "", "together": ""}
_GEMINI = {"gemini": "", "gemini-interactions": ""}
_VERTEX = {"vertex": "", "vertex-interactions": ""}

# ── the rows ──

_V1 = r"(?:/openai)?(?:/v1)?"
"""Paths of OpenAI, those of Azure, and those of a base URL without a version."""
_DEPLOYMENT = r"/openai/deployments/(?P<model>[^/]+)"
_ID = r"(?P<id>[\w-][\w.-]*)"
"""Has no slash, so that it cannot lead to another folder."""
_GOOGLE = r"/v1(?:beta|alpha)?"


def _row(name: str, method: str, path: str, providers: Mapping[str, str], holding: Holding = "", **more: Any) -> Passed:
    """Make a row. `before` in `more` is the pattern of the path before `path`; all else in it are fields."""
    before = more.pop("before", _V1)
    return Passed(
        name=name,
        method=method,
        path=re.compile(f"{before}(?P<path>{path})"),
        format=more.pop("format", "openai-chat"),
        providers=providers,
        holding=holding,
        **more,
    )


def _model_row(name: str, path: str, providers: Mapping[str, str]) -> Passed:
    """Make a row of an endpoint with a model. Azure's older paths name the model, too."""
    return _row(name, "POST", path, providers, has_model=True, before=f"(?:{_V1}|{_DEPLOYMENT})")


_OF_FILES: tuple[tuple[str, str, Holding, str], ...] = (
    ("POST", "/files", "create", "create_file"),
    ("GET", "/files", "list", "list_files"),
    ("GET", f"/files/{_ID}", "one", "file"),
    ("DELETE", f"/files/{_ID}", "one", "delete_file"),
    ("GET", f"/files/{_ID}/content", "one", "file_content"),
)
"""Anthropic and OpenAI use the same paths: the client's headers distinguish them."""
_OF_COLLECTIONS: tuple[tuple[str, str, Holding], ...] = (
    ("POST", "", "create"),
    ("GET", "", "list"),
    ("GET", f"/{_ID}", "one"),
    ("PATCH", f"/{_ID}", "one"),
    ("DELETE", f"/{_ID}", "one"),
)


def _google_rows(name: str, folder: str, items: str, here: Mapping[str, str] = {}, **more: Any) -> tuple[Passed, ...]:
    """Make the rows of a collection of the Gemini API. In bodies an id is prefixed with its folder: `files/abc`."""
    one = f"{_GOOGLE}/{folder}/(?P<id>[\\w-]+)"
    rows: tuple[tuple[str, str, Holding], ...] = (
        ("GET", f"{_GOOGLE}/{folder}", "list"),
        ("GET", one, "one"),
        ("PATCH", one, "one"),
        ("DELETE", one, "one"),
    )
    fields = {"before": "", "format": "gemini", "items": items, "id": "name", **more}
    return tuple(
        _row(name, method, path, _GEMINI, holding, here=here.get(f"{method} {holding}", ""), **fields)
        for method, path, holding in rows
    )


_OPENAI_MENTIONS = ("output_file_id", "error_file_id")
_GEMINI_MENTIONS = ("response.responsesFile", "metadata.output.responsesFile")
_OPENAI_BATCHES: tuple[tuple[str, str, Holding, str], ...] = (
    ("POST", "/batches", "create", "create_batch"),
    ("GET", "/batches", "list", "list_batches"),
    ("GET", f"/batches/{_ID}", "one", "batch"),
    ("POST", f"/batches/{_ID}/cancel", "one", "cancel_batch"),
)
_MESSAGE_BATCHES: tuple[tuple[str, str, Holding, str], ...] = (
    ("POST", "", "create", "create_batch"),
    ("GET", "", "list", "list_batches"),
    ("GET", f"/{_ID}", "one", "batch"),
    ("DELETE", f"/{_ID}", "one", "delete_batch"),
    ("POST", f"/{_ID}/cancel", "one", "cancel_batch"),
    ("GET", f"/{_ID}/results", "one", "batch_results"),
)
_GEMINI_BATCH = {"before": "", "format": "gemini", "id": "name"}
_BATCH_ROWS = (
    *(
        _row(
            "batches",
            method,
            path,
            BATCH_PROVIDERS,
            holding,
            here=here,
            is_unmetered=holding == "create",
            mentions=_OPENAI_MENTIONS,
        )
        for method, path, holding, here in _OPENAI_BATCHES
    ),
    *(
        _row(
            "batches",
            method,
            f"/v1/messages/batches{path}",
            {"anthropic": ""},
            holding,
            here=here,
            before="",
            format="anthropic-messages",
            is_unmetered=holding == "create",
            mentions=() if here == "batch_results" else ("results_url",),
        )
        for method, path, holding, here in _MESSAGE_BATCHES
    ),
    _row(
        "batches",
        "POST",
        f"{_GOOGLE}/models/(?P<model>.+):batchGenerateContent",
        _GEMINI,
        "create",
        has_model=True,
        is_unmetered=True,
        here="create_batch",
        **_GEMINI_BATCH,
    ),
    _row(
        "batches",
        "POST",
        f"{_GOOGLE}/batches/(?P<id>[\\w-]+):cancel",
        _GEMINI,
        "one",
        here="cancel_batch",
        **_GEMINI_BATCH,
    ),
    *_google_rows(
        "batches",
        "batches",
        "operations",
        {"GET list": "list_batches", "GET one": "batch", "DELETE one": "delete_batch"},
        mentions=_GEMINI_MENTIONS,
    ),
)


_PROJECT = r"(?P<version>/v1(?:beta1)?)/(?:projects/[^/]+/locations/[^/]+)"
PASSED: tuple[Passed, ...] = (
    _model_row("image generation", "/images/generations", _IMAGES),
    _model_row("image editing", "/images/edits", _EDITS),
    _model_row("image variations", "/images/variations", _EDITS),
    _model_row("speech", "/audio/speech", _SPEECH),
    _model_row("transcription", "/audio/transcriptions", _TRANSCRIPTIONS),
    _model_row("audio translation", "/audio/translations", _TRANSLATIONS),
    _row("moderation", "POST", "/moderations", _MODERATIONS, has_model=True, free_at=frozenset(_OPENAI)),
    _row("moderation of conversations", "POST", "/chat/moderations", {"mistral": ""}, has_model=True),
    _row("reranking", "POST", "/rerank", _RERANK, has_model=True),
    _row("reranking", "POST", "/v2/rerank", {"cohere": ""}, has_model=True, before="", format="cohere-chat"),
    _row(
        "transcription",
        "POST",
        "/v2/audio/transcriptions",
        {"cohere": ""},
        has_model=True,
        before="",
        format="cohere-chat",
    ),
    *(
        _row(
            "files",
            method,
            f"/v1{path}",
            {"anthropic": ""},
            holding,
            before="",
            format="anthropic-messages",
            by_headers=True,
        )
        for method, path, holding, _ in _OF_FILES
    ),
    *(_row("files", method, path, _FILES, holding, here=here) for method, path, holding, here in _OF_FILES),
    *_BATCH_ROWS,
    _row("uploads", "POST", "/uploads", _UPLOADS, "create"),
    _row("uploads", "POST", f"/uploads/{_ID}/(?:parts|complete|cancel)", _UPLOADS, "one"),
    _row("fine-tuning", "POST", "/fine_tuning/jobs", _FINE_TUNING, "create", has_model=True, is_unmetered=True),
    _row("fine-tuning", "GET", "/fine_tuning/jobs", _FINE_TUNING, "list"),
    _row("fine-tuning", "GET", f"/fine_tuning/jobs/{_ID}", _FINE_TUNING, "one"),
    _row("fine-tuning", "POST", f"/fine_tuning/jobs/{_ID}/(?:cancel|pause|resume|start)", _FINE_TUNING, "one"),
    _row("fine-tuning", "GET", f"/fine_tuning/jobs/{_ID}/(?:events|checkpoints)", _FINE_TUNING, "one"),
    _row(
        "files",
        "POST",
        f"/upload{_GOOGLE}/files",
        _GEMINI,
        "create",
        before="",
        format="gemini",
        id="file.name",
        here="upload",
    ),
    _row(
        "files",
        "GET",
        f"{_GOOGLE}/files/(?P<id>[\\w-]+):download",
        _GEMINI,
        "one",
        before="",
        format="gemini",
        here="file_content",
    ),
    *_google_rows(
        "files", "files", "files", {"GET list": "list_files", "GET one": "file", "DELETE one": "delete_file"}
    ),
    _row(
        "cached contents",
        "POST",
        f"{_GOOGLE}/cachedContents",
        _GEMINI,
        "create",
        has_model=True,
        is_unmetered=True,
        before="",
        format="gemini",
        id="name",
    ),
    *_google_rows("cached contents", "cachedContents", "cachedContents"),
    *(
        _row(
            "cached contents",
            method,
            rf"/cachedContents{rest}",
            _VERTEX,
            holding,
            has_model=holding == "create",
            is_unmetered=holding == "create",
            before=_PROJECT,
            format="vertex",
            items="cachedContents",
            id="name",
        )
        for method, rest, holding in _OF_COLLECTIONS
    ),
)


def match_passed(method: str, path: str, client_format: str) -> tuple[Passed, Mapping[str, str]] | None:
    """Return the row of a request and the groups of its path. `client_format` is the one that its headers show.

    Anthropic's files, and Google's in the newest version, have the same paths as OpenAI's: only headers differ.
    """
    found = [(row, match) for row in PASSED if row.method == method and (match := row.path.fullmatch(path))]
    chosen = next((one for one in found if one[0].format == client_format), None) or next(
        (one for one in found if not one[0].by_headers), None
    )
    return None if chosen is None else (chosen[0], chosen[1].groupdict(""))


def is_passed(path: str) -> bool:
    """Whether the path is one of these, with any method."""
    return any(row.path.fullmatch(path) for row in PASSED)
