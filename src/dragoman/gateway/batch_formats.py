"""Files and batch jobs that the gateway keeps, in the request and response bodies of the three vendors' APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct, field

from dragoman.gateway.http_request import BadBody, Head
from dragoman.gateway.state.objects import Stored
from dragoman.ir import Failure
from dragoman.ir.values import single_line

Ending: TypeAlias = Literal["", "completed", "failed", "expired", "canceled"]
SUCCEEDED = ("succeeded",)
FAILED = ("errored", "expired", "canceled")
_encode = msgspec.json.encode
_MOST_PROBLEMS = 100
_ABSENT = Raw()


class BatchAbout(Struct, kw_only=True, omit_defaults=True):
    """What is stored about a batch. Times are seconds since 1970."""

    path: str
    """The endpoint of this gateway that its requests go to."""
    digest: str = ""
    """Digest of the key that created it. Its requests are made with that key, as long as the key is valid."""
    headers: dict[str, str] = {}
    total: int = 0
    model: str = ""
    given: dict[str, Raw] = {}
    """The fields of the client's request that the batch object repeats."""
    expires_at: float = 0.0
    canceled_at: float | None = None
    ended_at: float | None = None
    ending: Ending = ""
    problems: list[dict[str, Any]] = []
    """Why the batch was not run."""
    counts: dict[str, int] = {}
    files: dict[str, str] = {}
    inline: bool = False
    """Gemini: the requests came in the body, so the results are returned in the body too."""


class FileAbout(Struct, kw_only=True, omit_defaults=True):
    name: str = ""
    purpose: str = ""
    content_type: str = "application/octet-stream"
    size: int = 0
    batch: str = ""
    """The batch whose results the file holds; the file itself is then stored without content."""
    outcomes: tuple[str, ...] = ()
    expected: int | None = None
    """The announced size of an unfinished upload, 0 if unknown; None once it is finished."""


class BatchItem(Struct, frozen=True):
    place: int
    id: str
    body: Raw
    metadata: Raw = _ABSENT


class _Line(Struct):
    custom_id: str | None = None
    key: str | None = None
    url: str | None = None
    method: str | None = None
    body: Raw = _ABSENT
    params: Raw = _ABSENT
    request: Raw = _ABSENT
    metadata: Raw = _ABSENT


_line = msgspec.json.Decoder(_Line).decode
about_batch = msgspec.json.Decoder(BatchAbout).decode
about_file = msgspec.json.Decoder(FileAbout).decode


class Created(Struct, frozen=True):
    """A validated request to create a batch."""

    about: BatchAbout
    content: bytes
    """Its requests, one per line."""


def refuse(words: str, parameter: str | None = None) -> BadBody:
    return BadBody(Failure("invalid_request", words, 400, parameter=parameter))


def _is_object(raw: Raw) -> bool:
    return bytes(raw)[:1] == b"{"


def _body_of(line: _Line) -> Raw:
    """Return the request body of a line; each format has another key for it."""
    return next((raw for raw in (line.body, line.params, line.request) if bytes(raw)), Raw(b"{}"))


def lines_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not empty, with their numbers, without a leading byte order mark."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if line.strip():
            yield number, line


def items_of(content: bytes) -> Iterator[BatchItem]:
    """Yield the requests of a batch. They were validated when it was created."""
    for place, (_, data) in enumerate(lines_of(content)):
        line = _line(data)
        yield BatchItem(place, line.custom_id or line.key or str(place), _body_of(line), line.metadata)


class _Model(Struct):
    model: str | None = None


_model = msgspec.json.Decoder(_Model).decode


def models_of(content: bytes) -> dict[str, Raw]:
    """Map each model that the requests name to one of their bodies. Lines that are not requests are skipped."""
    found: dict[str, Raw] = {}
    for _, data in lines_of(content):
        try:
            body = _body_of(_line(data))
            found.setdefault(_model(body).model or "", body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return found


# ── OpenAI ──

_OPENAI_MOST = 50_000
_ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/completions")


class _OpenAIBatch(Struct):
    input_file_id: str
    endpoint: str
    completion_window: str


_openai_batch = msgspec.json.Decoder(_OpenAIBatch).decode


def read_openai(body: bytes) -> _OpenAIBatch:
    """Decode and check the body. Raises `BadBody`."""
    try:
        given = _openai_batch(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refuse(str(error)) from None
    if given.endpoint not in _ENDPOINTS:
        raise refuse(f"Invalid value: '{given.endpoint}'. This gateway runs {', '.join(_ENDPOINTS)}.", "endpoint")
    if given.completion_window != "24h":
        raise refuse(f"Invalid value: '{given.completion_window}'. Supported values are: '24h'.", "completion_window")
    return given


def create_openai_batch(given: _OpenAIBatch, body: bytes, content: bytes) -> Created:
    """Return the batch to create. An invalid file makes a failed batch that lists the problems."""
    problems: list[dict[str, Any]] = []
    seen: set[str] = set()
    total = 0
    for number, data in lines_of(content):
        total += 1
        if found := _openai_problem(data, given.endpoint, seen):
            problems.append({"line": number, **found})
        if len(problems) >= _MOST_PROBLEMS:
            break
    if not total:
        problems.append({"code": "empty_file", "line": None, "message": "The input file is empty.", "param": None})
    if total > _OPENAI_MOST:
        words = f"The batch has more requests than the limit of {_OPENAI_MOST}."
        problems.append({"code": "too_many_tasks", "line": None, "message": words, "param": None})
    fields = msgspec.json.decode(body, type=dict[str, Raw])
    about = BatchAbout(path=given.endpoint, total=0 if problems else total, given=fields, problems=problems)
    return Created(about, content)


def _problem(code: str, message: str, parameter: str | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": parameter}


def _openai_problem(data: bytes, endpoint: str, seen: set[str]) -> dict[str, Any] | None:
    try:
        line = _line(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _problem("invalid_json_line", "This line is not parseable as valid JSON.")
    if not line.custom_id:
        return _problem("missing_required_parameter", "Missing required parameter: 'custom_id'.", "custom_id")
    if line.custom_id in seen:
        words = f"The custom_id '{line.custom_id}' for this request is a duplicate of another request."
        return _problem("duplicate_custom_id", words, "custom_id")
    seen.add(line.custom_id)
    if line.method != "POST":
        return _problem("invalid_method", "Invalid method: expected 'POST'.", "method")
    if line.url != endpoint:
        words = f"The URL '{line.url}' for this request does not match the batch endpoint '{endpoint}'."
        return _problem("mismatched_endpoint", words, "url")
    if not _is_object(line.body):
        return _problem("missing_required_parameter", "Missing required parameter: 'body'.", "body")
    return None


_OPENAI_ENDINGS = {"completed": "completed", "failed": "failed", "expired": "expired", "canceled": "cancelled"}
_TIMES = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")


def _show_openai(stored: Stored, about: BatchAbout, counts: Mapping[str, int], _head: Head) -> dict[str, Any]:
    state = "in_progress" if stored.state == "open" else "cancelling"
    state = _OPENAI_ENDINGS.get(about.ending, state)
    times = dict.fromkeys(_TIMES) | {"in_progress": stored.created, "cancelling": about.canceled_at}
    if about.ended_at is not None:
        times |= {"finalizing": about.ended_at, state: about.ended_at}
    given = about.given
    return {
        "id": stored.id,
        "object": "batch",
        "endpoint": about.path,
        "errors": {"object": "list", "data": about.problems} if about.problems else None,
        "input_file_id": given["input_file_id"],
        "completion_window": given["completion_window"],
        "status": state,
        "output_file_id": about.files.get("output"),
        "error_file_id": about.files.get("error"),
        "created_at": int(stored.created),
        "expires_at": int(about.expires_at),
        **{f"{name}_at": None if moment is None else int(moment) for name, moment in times.items()},
        "request_counts": {
            "total": about.total,
            "completed": counts.get("succeeded", 0),
            "failed": counts.get("errored", 0),
        },
        "metadata": given.get("metadata"),
    }


def _openai_file(stored: Stored, about: FileAbout, _head: Head) -> dict[str, Any]:
    return {
        "id": stored.id,
        "object": "file",
        "bytes": about.size,
        "created_at": int(stored.created),
        "expires_at": int(stored.expires),
        "filename": about.name,
        "purpose": about.purpose,
        "status": "processed",
        "status_details": None,
    }


# ── Anthropic ──

_ANTHROPIC_MOST = 100_000
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class _AnthropicBatch(Struct):
    requests: list[_Line]


_anthropic_batch = msgspec.json.Decoder(_AnthropicBatch).decode


def create_anthropic_batch(body: bytes, head: Head) -> Created:
    """Return the batch to create. Raises `BadBody`. The parameters of each request are checked when it runs."""
    try:
        requests = _anthropic_batch(body).requests
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refuse(str(error)) from None
    if not 1 <= len(requests) <= _ANTHROPIC_MOST:
        raise refuse(f"requests: List should have 1 to {_ANTHROPIC_MOST} items")
    seen: set[str] = set()
    lines = []
    for place, request in enumerate(requests):
        id, params = request.custom_id, request.params
        if id is None or not _CUSTOM_ID.fullmatch(id):
            raise refuse(f"requests.{place}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if id in seen:
            raise refuse(f"requests.{place}.custom_id: custom_ids must be unique, found duplicate '{id}'")
        if not _is_object(params):
            raise refuse(f"requests.{place}.params: Input should be a valid dictionary")
        seen.add(id)
        lines.append(_encode({"custom_id": id, "params": single_line(params)}))
    kept = {name: head.headers[name] for name in ("anthropic-version", "anthropic-beta") if name in head.headers}
    return Created(BatchAbout(path="/v1/messages", total=len(lines), headers=kept), b"\n".join(lines))


def _rfc3339(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]+")


def address_of(head: Head) -> str:
    """Return the base URL of this gateway as the client reaches it."""
    given = head.headers.get("x-forwarded-proto", "").lower()
    scheme = given if given in {"http", "https"} else "https" if head.secure else "http"
    host = head.headers.get("host", "")
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}"


def _show_anthropic(stored: Stored, about: BatchAbout, counts: Mapping[str, int], head: Head) -> dict[str, Any]:
    """Return the batch object. As at Anthropic, only `processing` is counted until the whole batch has ended."""
    ended = stored.state == "ended"
    numbers = {name: counts.get(name, 0) if ended else 0 for name in ("succeeded", "errored", "canceled", "expired")}
    states = {"open": "in_progress", "canceling": "canceling", "ended": "ended"}
    return {
        "id": stored.id,
        "type": "message_batch",
        "processing_status": states[stored.state],
        "request_counts": {"processing": 0 if ended else about.total, **numbers},
        "ended_at": _rfc3339(about.ended_at),
        "created_at": _rfc3339(stored.created),
        "expires_at": _rfc3339(about.expires_at),
        "archived_at": None,
        "cancel_initiated_at": _rfc3339(about.canceled_at),
        "results_url": f"{address_of(head)}/v1/messages/batches/{stored.id}/results" if ended else None,
    }


# ── Gemini ──

_BATCH_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"
_GEMINI_ENDINGS = {"completed": "SUCCEEDED", "failed": "FAILED", "expired": "EXPIRED", "canceled": "CANCELLED"}
_RPC_CODES = {"expired": 4, "canceled": 1}


class _Inline(Struct):
    requests: list[_Line] = []


class _Input(Struct, rename={"file_name": "fileName"}):
    file_name: str | None = None
    file_name_: str | None = field(default=None, name="file_name")
    requests: _Inline | None = None


class _GeminiBatch(Struct, rename={"input_config": "inputConfig", "display_name": "displayName"}):
    """The batch in the body. Google's servers accept the protocol buffer names as well as those of JSON."""

    display_name: str = ""
    display_name_: str = field(default="", name="display_name")
    input_config: _Input | None = None
    input_config_: _Input | None = field(default=None, name="input_config")


class _GeminiBody(Struct):
    batch: _GeminiBatch


class GeminiInput(Struct, frozen=True):
    """The requests of a batch: in a file, or in the body."""

    display_name: str
    file_name: str | None
    requests: list[_Line]


_gemini_body = msgspec.json.Decoder(_GeminiBody).decode


def read_gemini(body: bytes) -> GeminiInput:
    """Decode and check the body. Raises `BadBody`."""
    try:
        batch = _gemini_body(body).batch
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refuse(str(error)) from None
    given = batch.input_config or batch.input_config_ or _Input()
    file_name = given.file_name or given.file_name_
    if (file_name is None) == (given.requests is None):
        raise refuse("batch.inputConfig: exactly one of fileName and requests is required")
    requests = given.requests.requests if given.requests is not None else []
    return GeminiInput(batch.display_name or batch.display_name_, file_name, requests)


def create_gemini_batch(batch: GeminiInput, model: str, version: str, content: bytes | None) -> Created:
    """Return the batch to create. Raises `BadBody`. `content` is the input file; None if the requests are inline."""
    inline = content is None
    if content is None:
        if not all(_is_object(request.request) for request in batch.requests):
            raise refuse("batch.inputConfig.requests.requests: each needs a request")
        content = b"\n".join(_gemini_line(request) for request in batch.requests)
    total = 0
    for number, data in lines_of(content):
        total += 1
        try:
            line = _line(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise refuse(f"Line {number} of the input file is not JSON.") from None
        if not _is_object(line.request):
            raise refuse(f"Line {number} of the input file has no request.")
    if not total:
        raise refuse("The batch has no requests.")
    path = f"/{version}/models/{model}:generateContent"
    given = {"displayName": Raw(_encode(batch.display_name))}
    about = BatchAbout(path=path, total=total, model=model, given=given, inline=inline)
    return Created(about, content)


def _gemini_line(request: _Line) -> bytes:
    fields = {"request": request.request, "metadata": request.metadata}
    return _encode({name: single_line(value) for name, value in fields.items() if bytes(value)})


def _show_gemini(stored: Stored, about: BatchAbout, counts: Mapping[str, int], _head: Head) -> dict[str, Any]:
    failed = counts.get("errored", 0) + counts.get("canceled", 0) + counts.get("expired", 0)
    done = counts.get("succeeded", 0)
    numbers = {
        "requestCount": about.total,
        "successfulRequestCount": done,
        "failedRequestCount": failed,
        "pendingRequestCount": about.total - done - failed,
    }
    output = {"responsesFile": about.files["output"]} if "output" in about.files else None
    metadata = {
        "@type": _BATCH_TYPE,
        "model": f"models/{about.model}",
        "displayName": about.given.get("displayName", ""),
        "createTime": _rfc3339(stored.created),
        "updateTime": _rfc3339(about.ended_at or stored.created),
        "batchStats": {name: str(number) for name, number in numbers.items() if number},
        "state": f"BATCH_STATE_{_GEMINI_ENDINGS.get(about.ending, 'RUNNING')}",
        "name": stored.id,
        **({"endTime": _rfc3339(about.ended_at)} if about.ended_at else {}),
        **({"output": output} if output else {}),
    }
    shown: dict[str, Any] = {"name": stored.id, "metadata": metadata}
    if stored.state != "ended":
        return shown
    if about.ending == "completed":
        return {**shown, "done": True, "response": {"@type": f"{_BATCH_TYPE}Output", **(output or {})}}
    error = {"code": _RPC_CODES.get(about.ending, 13), "message": f"The batch {about.ending}."}
    return {**shown, "done": True, "error": error}


def with_inlined(shown: dict[str, Any], lines: Sequence[bytes]) -> dict[str, Any]:
    """Return a Gemini batch object together with the results of its inline requests."""
    output = {"inlinedResponses": {"inlinedResponses": [Raw(line) for line in lines]}}
    shown = {**shown, "metadata": {**shown["metadata"], "output": output}}
    if "response" in shown:
        shown["response"] = {**shown["response"], **output}
    return shown


def _gemini_file(stored: Stored, about: FileAbout, head: Head) -> dict[str, Any]:
    uri = f"{address_of(head)}/v1beta/{stored.id}"
    made = {"downloadUri": f"{uri}:download?alt=media"} if about.batch else {}
    return {
        "name": stored.id,
        "displayName": about.name,
        "mimeType": about.content_type,
        "sizeBytes": str(about.size),
        "createTime": _rfc3339(stored.created),
        "updateTime": _rfc3339(stored.created),
        "expirationTime": _rfc3339(stored.expires),
        "uri": uri,
        **made,
        "state": "ACTIVE",
        "source": "GENERATED" if about.batch else "UPLOADED",
    }


# ── all of them ──


class BatchFormat(Struct, frozen=True, kw_only=True):
    """How one vendor's API names and shows files and batches."""

    batch_prefix: str
    file_prefix: str
    lines: str
    """The batch file format of the result lines."""
    show: Callable[[Stored, BatchAbout, Mapping[str, int], Head], dict[str, Any]]
    show_file: Callable[[Stored, FileAbout, Head], dict[str, Any]]
    names_are_paths: bool = False
    """Google's style: ids are prefixed with their folder, and cancelling or deleting returns an empty object."""
    deleted: Mapping[str, str] = {}
    """Fields of the answer to deleting a batch."""
    result_files: Mapping[str, tuple[str, ...]] = {}
    """The files that a finished batch has, and the outcomes that each contains."""


BATCH_FORMATS: Mapping[str, BatchFormat] = {
    "openai-chat": BatchFormat(
        batch_prefix="batch_",
        file_prefix="file-",
        lines="openai-batch",
        show=_show_openai,
        show_file=_openai_file,
        result_files={"output": SUCCEEDED, "error": FAILED},
    ),
    "anthropic-messages": BatchFormat(
        batch_prefix="msgbatch_",
        file_prefix="file_",
        lines="anthropic-batch",
        deleted={"type": "message_batch_deleted"},
        show=_show_anthropic,
        show_file=_openai_file,
    ),
    "gemini": BatchFormat(
        batch_prefix="batches/",
        file_prefix="files/",
        lines="gemini-batch",
        names_are_paths=True,
        show=_show_gemini,
        show_file=_gemini_file,
        result_files={"output": SUCCEEDED + FAILED},
    ),
}


def result_line(format: str, item: BatchItem, outcome: str, status: int, body: bytes, *, inline: bool) -> bytes:
    """Return one line of results in the vendor's format."""
    from dragoman.batch import provider_files  # noqa: PLC0415 - few gateways run batches

    file = provider_files.BATCH_FILES[BATCH_FORMATS[format].lines]
    batch_item: Any = provider_files.BatchItem(
        id=item.id,
        outcome=outcome,  # type: ignore[arg-type]
        body=Raw(body) if body else None,
        format=file.format,
        status=status or None,
    )
    line = file.write(file, batch_item)
    if inline:
        line.pop("key", None)
        line |= {"metadata": item.metadata} if bytes(item.metadata) else {}
    return bytes(single_line(Raw(_encode(line))))
