"""Batch files of providers: lines with an id and an ordinary request, or the result of one.

A batch is an envelope around bodies of a wire format. One table describes, for each provider, where the id, the body
and the outcome are; the bodies are converted by their own codecs.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

from msgspec import Raw, Struct

from dragoman.codecs.datasets.known_keys import Keys, keys
from dragoman.errors import DecodeError
from dragoman.ir.values import encode_json, parse_json, to_raw

Outcome: TypeAlias = Literal["request", "succeeded", "errored", "expired", "canceled"]


class BatchItem(Struct, frozen=True, kw_only=True):
    """One line: a request or its outcome. `body` is a request, a response or an error of a wire format."""

    id: str | None
    outcome: Outcome
    body: Raw | None = None
    format: str = ""
    path: str = "$"
    """JSON path of the body in the line."""
    status: int | None = None
    echoed: Raw | None = None
    """The request, if the provider repeats it in the result."""


class BatchFile(Struct, frozen=True, kw_only=True):
    """The batch file format of one provider."""

    name: str
    format: str
    """The wire format of its bodies, unless a line names another one."""
    is_line: Callable[[Mapping[str, Any]], bool]
    read: Callable[[BatchFile, Mapping[str, Any]], BatchItem]
    write: Callable[[BatchFile, BatchItem], dict[str, Any]]
    id_pattern: re.Pattern[str] = re.compile(r".+", re.DOTALL)
    keys: Keys
    """The keys of a line that are read, or that say nothing about the request; others are reported."""
    id_key: str = "custom_id"
    """Where a line has the id."""
    one_model: bool = False
    """The model belongs to the job: lines do not name it, and a file is for one model."""


def _refuse(name: str, path: str, expected: str) -> DecodeError:
    return DecodeError(path=path, expected=expected, got="something else", source=name)


def _object(value: Any, name: str, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _refuse(name, path, "an object")
    return value


def _raw(value: Any) -> Raw | None:
    return None if value is None else to_raw(value)


# ── ids ──

_ALIAS = "b64_"
_LONGEST_REVERSIBLE = 45


def written_id(item_id: str, pattern: re.Pattern[str]) -> str:
    """Return an id that the provider accepts: the same, or one that `read_id` converts back.

    Ids longer than 45 bytes become a digest, which cannot be converted back.
    """
    if pattern.fullmatch(item_id):
        return item_id
    data = item_id.encode()
    if len(data) <= _LONGEST_REVERSIBLE:
        return _ALIAS + urlsafe_b64encode(data).rstrip(b"=").decode()
    return f"digest_{blake2b(data, digest_size=16).hexdigest()}"


def read_id(given: Any) -> str | None:
    """Return the id as the user wrote it."""
    if not isinstance(given, str) or not given.startswith(_ALIAS):
        return given if isinstance(given, str) else None
    try:
        return urlsafe_b64decode(given[len(_ALIAS) :] + "==").decode()
    except (NotBase64, ValueError):
        return given


# ── OpenAI and compatible providers ──

_URLS = {"/chat/completions": "openai-chat", "/responses": "openai-responses"}
_PATHS = {name: f"/v1{suffix}" for suffix, name in _URLS.items()}
_OPENAI_KEYS = keys(
    "custom_id method url body id", response=keys("status_code request_id body"), error=keys("code message param type")
)
_ENDED = {"batch_expired": "expired", "batch_cancelled": "canceled"}


def _is_openai(line: Mapping[str, Any]) -> bool:
    return "custom_id" in line and ("url" in line or ("response" in line and "error" in line))


def _read_openai(file: BatchFile, line: Mapping[str, Any]) -> BatchItem:
    item_id = read_id(line.get("custom_id"))
    if "body" in line:
        url = str(line.get("url", ""))
        found = next((name for suffix, name in _URLS.items() if url.endswith(suffix)), file.format)
        return BatchItem(id=item_id, outcome="request", body=_raw(line["body"]), format=found, path="$.body")
    response, error = line.get("response"), line.get("error")
    if isinstance(response, Mapping):
        status, body = response.get("status_code"), response.get("body")
        succeeded = isinstance(status, int) and status < 400  # noqa: PLR2004 - HTTP
        found = "openai-responses" if isinstance(body, Mapping) and body.get("object") == "response" else file.format
        return BatchItem(
            id=item_id, outcome="succeeded" if succeeded else "errored", body=_raw(body), format=found,
            path="$.response.body", status=status if isinstance(status, int) else None,
        )  # fmt: skip
    code = error.get("code") if isinstance(error, Mapping) else None
    ended = _ENDED.get(str(code))
    if ended is not None:
        return BatchItem(id=item_id, outcome=ended, format=file.format)  # type: ignore[arg-type]
    return BatchItem(
        id=item_id, outcome="errored", body=to_raw({"error": error}), format=file.format, path="$", status=500
    )


def _write_openai(file: BatchFile, item: BatchItem) -> dict[str, Any]:
    if item.outcome == "request":
        url = _PATHS.get(file.format, "/v1/chat/completions")
        return {"custom_id": item.id, "method": "POST", "url": url, "body": item.body}
    ended = next((code for code, outcome in _ENDED.items() if outcome == item.outcome), None)
    if ended is not None:
        message = f"This request was not run: the batch {item.outcome}."
        return {
            "id": f"batch_req_{item.id}",
            "custom_id": item.id,
            "response": None,
            "error": {"code": ended, "message": message},
        }
    status = item.status or (200 if item.outcome == "succeeded" else 500)
    response = {"status_code": status, "request_id": None, "body": item.body}
    return {"id": f"batch_req_{item.id}", "custom_id": item.id, "response": response, "error": None}


# ── Mistral: the same without method and URL ──


def _is_mistral(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("body"), Mapping) and "url" not in line and "messages" in line["body"]


def _write_mistral(_file: BatchFile, item: BatchItem) -> dict[str, Any]:
    if item.outcome == "request":
        return {"custom_id": item.id, "body": item.body}
    return _write_openai(_file, item)


# ── Anthropic ──


def _is_anthropic(line: Mapping[str, Any]) -> bool:
    return "custom_id" in line and (isinstance(line.get("params"), Mapping) or isinstance(line.get("result"), Mapping))


def _read_anthropic(file: BatchFile, line: Mapping[str, Any]) -> BatchItem:
    item_id = read_id(line.get("custom_id"))
    if "params" in line:
        return BatchItem(id=item_id, outcome="request", body=_raw(line["params"]), format=file.format, path="$.params")
    result = _object(line.get("result"), file.name, "$.result")
    kind: Any = str(result.get("type"))
    if kind == "succeeded":
        body, path = result.get("message"), "$.result.message"
    elif kind == "errored":
        body, path = result.get("error"), "$.result.error"
    elif kind in {"expired", "canceled"}:
        return BatchItem(id=item_id, outcome=kind, format=file.format)
    else:
        raise _refuse(file.name, "$.result.type", "succeeded | errored | canceled | expired")
    return BatchItem(id=item_id, outcome=kind, body=_raw(body), format=file.format, path=path)


def _write_anthropic(_file: BatchFile, item: BatchItem) -> dict[str, Any]:
    if item.outcome == "request":
        return {"custom_id": item.id, "params": item.body}
    named = {"succeeded": "message", "errored": "error"}.get(item.outcome)
    return {"custom_id": item.id, "result": {"type": item.outcome, **({named: item.body} if named else {})}}


# ── Gemini and Vertex ──

_RPC_STATUS = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
_RPC_CANCELLED, _RPC_DEADLINE_EXCEEDED = 1, 4
_LABEL = "dragoman_id"


_GEMINI_KEYS = frozenset({"key", "metadata", "request", "response", "error"})


def _is_gemini(line: Mapping[str, Any]) -> bool:
    if not line.keys() <= _GEMINI_KEYS:  # answers of the Responses API have `metadata` and `error` too
        return False
    keyed = "key" in line or isinstance(line.get("metadata"), Mapping)
    return keyed and (isinstance(line.get("request"), Mapping) or "response" in line or "error" in line)


def _read_gemini(file: BatchFile, line: Mapping[str, Any]) -> BatchItem:
    metadata = line.get("metadata")
    item_id = read_id(line.get("key", metadata.get("key") if isinstance(metadata, Mapping) else None))
    if isinstance(line.get("request"), Mapping) and "response" not in line and "error" not in line:
        return BatchItem(
            id=item_id, outcome="request", body=_raw(line["request"]), format=file.format, path="$.request"
        )
    error = line.get("error")
    if isinstance(error, Mapping) and error.get("code") == _RPC_CANCELLED:
        return BatchItem(id=item_id, outcome="canceled", format=file.format)
    if isinstance(error, Mapping):
        code = error.get("code")
        status = _RPC_STATUS.get(code if isinstance(code, int) else 0, 500)
        body = to_raw({"error": {**error, "code": status}})
        return BatchItem(id=item_id, outcome="errored", body=body, format=file.format, path="$", status=status)
    return BatchItem(
        id=item_id, outcome="succeeded", body=_raw(line.get("response")), format=file.format, path="$.response"
    )


def _write_gemini(_file: BatchFile, item: BatchItem) -> dict[str, Any]:
    if item.outcome == "request":
        return {"key": item.id, "request": item.body}
    if item.outcome == "succeeded":
        return {"key": item.id, "response": item.body}
    return {"key": item.id, "error": _rpc_error(item)}


def _rpc_error(item: BatchItem) -> dict[str, Any]:
    body = parse_json(item.body) if item.body is not None else {}
    inner = body.get("error", {}) if isinstance(body, Mapping) else {}
    message = inner.get("message") if isinstance(inner, Mapping) and inner else None
    if message is None and isinstance(body, Mapping):  # Bedrock has no enclosing object
        message = body.get("message")
    if item.outcome in {"expired", "canceled"}:
        code = _RPC_CANCELLED if item.outcome == "canceled" else _RPC_DEADLINE_EXCEEDED
        return {"code": code, "message": f"This request was not run: the batch {item.outcome}."}
    code = next((rpc for rpc, status in _RPC_STATUS.items() if status == item.status), 13)
    return {"code": code, "message": message or "The request failed."}


def _is_vertex(line: Mapping[str, Any]) -> bool:
    request, status = line.get("request"), line.get("status")
    if not isinstance(request, Mapping) or "contents" not in request or "key" in line or "custom_id" in line:
        return False
    # A result has both, and its status is text: the number of a recorded HTTP exchange is none.
    return isinstance(status, str) if "response" in line else status is None or isinstance(status, str)


def _read_vertex(file: BatchFile, line: Mapping[str, Any]) -> BatchItem:
    request = dict(_object(line.get("request"), file.name, "$.request"))
    labels = dict(_object(request.get("labels") or {}, file.name, "$.request.labels"))
    item_id = read_id(labels.pop(_LABEL, None))
    request["labels"] = labels
    if not labels:
        del request["labels"]
    if "response" not in line and not line.get("status"):
        return BatchItem(id=item_id, outcome="request", body=to_raw(request), format=file.format, path="$.request")
    if line.get("status"):
        body = to_raw({"error": {"code": 500, "message": str(line["status"]), "status": "UNKNOWN"}})
        return BatchItem(
            id=item_id,
            outcome="errored",
            body=body,
            format=file.format,
            path="$.status",
            status=500,
            echoed=to_raw(request),
        )
    return BatchItem(
        id=item_id, outcome="succeeded", body=_raw(line.get("response")), format=file.format, path="$.response",
        echoed=to_raw(request),
    )  # fmt: skip


def _write_vertex(_file: BatchFile, item: BatchItem) -> dict[str, Any]:
    """Return a line with the id in a label of the request, since Vertex has no id; the result repeats the label."""
    body = item.body if item.outcome == "request" else item.echoed
    request = parse_json(body) if body is not None else {"contents": []}
    request["labels"] = {**request.get("labels", {}), _LABEL: item.id}
    if item.outcome == "request":
        return {"request": request}
    if item.outcome == "succeeded":
        return {"request": request, "status": "", "response": item.body}
    return {"request": request, "status": _rpc_error(item)["message"]}


# ── Bedrock ──


def _is_bedrock(line: Mapping[str, Any]) -> bool:
    return "modelInput" in line


def _read_bedrock(file: BatchFile, line: Mapping[str, Any]) -> BatchItem:
    """Read a line. It does not say whether the body is Converse's or the model's own, so the body is inspected."""
    item_id = read_id(line.get("recordId"))
    body = _object(line.get("modelInput"), file.name, "$.modelInput")
    native = "anthropic_version" in body
    found = "anthropic-messages" if native else file.format
    if "modelOutput" in line:
        return BatchItem(
            id=item_id, outcome="succeeded", body=_raw(line["modelOutput"]), format=found, path="$.modelOutput",
            echoed=to_raw(body),
        )  # fmt: skip
    error = line.get("error")
    if isinstance(error, Mapping):
        status = error.get("errorCode")
        failed = {"message": error.get("errorMessage")}
        return BatchItem(
            id=item_id, outcome="errored", body=to_raw(failed), format=file.format, path="$.error",
            status=status if isinstance(status, int) else 500, echoed=to_raw(body),
        )  # fmt: skip
    return BatchItem(id=item_id, outcome="request", body=to_raw(body), format=found, path="$.modelInput")


def _write_bedrock(_file: BatchFile, item: BatchItem) -> dict[str, Any]:
    if item.outcome == "request":
        return {"recordId": item.id, "modelInput": item.body}
    line: dict[str, Any] = {"recordId": item.id, "modelInput": item.echoed if item.echoed is not None else {}}
    if item.outcome == "succeeded":
        return {**line, "modelOutput": item.body}
    return {**line, "error": {"errorCode": item.status or 500, "errorMessage": _rpc_error(item)["message"]}}


# ── all providers ──

_NARROW = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{1,63}")

BATCH_FILES: dict[str, BatchFile] = {
    file.name: file
    for file in (
        BatchFile(
            name="openai-batch", format="openai-chat", is_line=_is_openai, read=_read_openai, write=_write_openai,
            keys=_OPENAI_KEYS,
        ),
        BatchFile(
            name="openai-responses-batch", format="openai-responses", is_line=lambda _: False, read=_read_openai,
            write=_write_openai, keys=_OPENAI_KEYS,
        ),
        BatchFile(
            name="anthropic-batch", format="anthropic-messages", is_line=_is_anthropic, read=_read_anthropic,
            write=_write_anthropic, id_pattern=_NARROW, keys=keys("custom_id params result"),
        ),
        BatchFile(
            name="gemini-batch", format="gemini", is_line=_is_gemini, read=_read_gemini, write=_write_gemini,
            id_key="key", one_model=True, keys=keys("key request response error", metadata=keys("key")),
        ),
        BatchFile(
            name="vertex-batch", format="vertex", is_line=_is_vertex, read=_read_vertex, write=_write_vertex,
            id_pattern=_LABEL_VALUE, id_key=f"request.labels.{_LABEL}", one_model=True,
            keys=keys("request response status processed_time"),
        ),
        BatchFile(
            name="bedrock-batch", format="bedrock-converse", is_line=_is_bedrock, read=_read_bedrock,
            write=_write_bedrock, id_pattern=_NARROW, id_key="recordId", one_model=True,
            keys=keys("recordId modelInput modelOutput", error=keys("errorCode errorMessage")),
        ),
        BatchFile(
            name="mistral-batch", format="mistral", is_line=_is_mistral, read=_read_openai, write=_write_mistral,
            one_model=True, keys=_OPENAI_KEYS,
        ),
        BatchFile(
            name="groq-batch", format="groq", is_line=lambda _: False, read=_read_openai, write=_write_openai,
            keys=_OPENAI_KEYS,
        ),
        BatchFile(
            name="xai-batch", format="xai", is_line=lambda _: False, read=_read_openai, write=_write_openai,
            keys=_OPENAI_KEYS,
        ),
    )
}  # fmt: skip
"""By name. Files of Together and of other servers with OpenAI's format are `openai-batch`."""


def batch_file_of(line: Mapping[str, Any]) -> BatchFile | None:
    """Return the only batch file format that has such lines, or None."""
    found = [file for file in BATCH_FILES.values() if file.is_line(line)]
    return found[0] if len(found) == 1 else None


def write_line(file: BatchFile, item: BatchItem) -> bytes:
    """Return one line of a batch file."""
    return encode_json(file.write(file, item))
