"""Gemini's files and batch jobs: `:batchGenerateContent`, `/v1beta/batches`, `/v1beta/files`, resumable uploads."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.sim.apis import gemini, google
from dragoman.sim.batches import Batch, Inner, Item, Result, StoredFile, advance, cancel, counts, page
from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Answered, Problem, Refused, Reply, json_reply, route
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules.common import object_at, text_at

MAX_FILE = 2 << 30
MAX_INLINE = 20 << 20
_TIME = "2026-11-15T12:00:00Z"
_STATES = {"completed": "SUCCEEDED", "failed": "FAILED", "expired": "EXPIRED", "canceled": "CANCELLED"}
_RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 429: 8, 499: 1, 500: 13, 503: 14, 504: 4}
_UNKNOWN_RPC_CODE = 2
_BATCH_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch"


def _invalid(message: str) -> Refused:
    return Refused(Problem("invalid", message))


# --- files --------------------------------------------------------------------------------------------------------


def _file(file: StoredFile, context: RequestContext) -> JsonObject:
    digest = base64.b64encode(hashlib.sha256(file.content).hexdigest().encode()).decode()
    host = context.exchange.headers.get("host", "generativelanguage.googleapis.com")
    uri = f"http://{host}/v1beta/{file.id}"
    generated = {"downloadUri": f"{uri}:download?alt=media"} if file.generated else {}
    return {
        "name": file.id,
        "displayName": file.name,
        "mimeType": file.content_type,
        "sizeBytes": str(len(file.content)),
        "createTime": _TIME,
        "updateTime": _TIME,
        "expirationTime": "2026-11-17T12:00:00Z",
        "sha256Hash": digest,
        "uri": uri,
        **generated,
        "state": "ACTIVE",
        "source": "GENERATED" if file.generated else "UPLOADED",
    }


def upload(context: RequestContext) -> Answered:
    headers, query = context.exchange.headers, context.exchange.query
    if "upload_id" in query:
        return _continue_upload(context, query["upload_id"])
    if headers.get("x-goog-upload-protocol") != "resumable" or headers.get("x-goog-upload-command") != "start":
        raise _invalid("Uploads start with X-Goog-Upload-Protocol: resumable and X-Goog-Upload-Command: start.")
    size = headers.get("x-goog-upload-header-content-length", "")
    if size and not size.isdecimal():
        raise _invalid("X-Goog-Upload-Header-Content-Length is not a number.")
    body = context.exchange.json() if context.exchange.body else {}
    given = object_at(body, "file")
    name = text_at(given, "name") or f"files/{context.exchange.mark(context.memory.shelf.number())[:12]}"
    kind = text_at(given, "mimeType") or headers.get("x-goog-upload-header-content-type", "")
    stored = StoredFile(name, text_at(given, "displayName"), b"", "", kind, expected=int(size or 0))
    context.memory.shelf.add_file(stored)
    host = headers.get("host", "generativelanguage.googleapis.com")
    version = context.exchange.params["version"]
    url = f"http://{host}/upload/{version}/files?upload_id={name.removeprefix('files/')}&upload_protocol=resumable"
    return json_reply({}, headers={"x-goog-upload-status": "active", "x-goog-upload-url": url})


def _continue_upload(context: RequestContext, upload_id: str) -> Answered:
    file = context.memory.shelf.files.get(f"files/{upload_id}")
    commands = [word.strip() for word in context.exchange.headers.get("x-goog-upload-command", "").split(",")]
    if file is None or file.expected is None:
        raise Refused(Problem("no_model", "The upload does not exist or is finished.", 404))
    if context.exchange.headers.get("x-goog-upload-offset", "0") != str(len(file.content)):
        raise _invalid(f"The offset is wrong: {len(file.content)} bytes have arrived.")
    if "upload" in commands:
        file.content += context.exchange.body
    if "finalize" not in commands:
        return json_reply({}, headers={"x-goog-upload-status": "active"})
    if file.expected and len(file.content) != file.expected:
        raise _invalid(f"The file has {len(file.content)} bytes; {file.expected} were announced.")
    file.expected = None
    return json_reply({"file": _file(file, context)}, headers={"x-goog-upload-status": "final"})


def _find_file(context: RequestContext) -> StoredFile:
    identifier = context.exchange.params["id"]
    # Google does not say whether another project's file exists.
    found = context.memory.shelf.files.get(f"files/{identifier}")
    if found is None or found.expected is not None:
        words = f"You do not have permission to access the File {identifier} or it may not exist."
        raise Refused(Problem("permission", words))
    return found


def show_file(context: RequestContext) -> Answered:
    return json_reply(_file(_find_file(context), context))


def download(context: RequestContext) -> Answered:
    file = _find_file(context)
    if not file.generated:
        raise _invalid("Uploaded files cannot be downloaded.")
    if context.exchange.query.get("alt") != "media":
        return json_reply({})
    return Reply(200, file.content, "application/octet-stream")


def delete_file(context: RequestContext) -> Answered:
    del context.memory.shelf.files[_find_file(context).id]
    return json_reply({})


def _page(context: RequestContext, prefix: str, ids: Mapping[str, object]) -> tuple[list[str], dict[str, str]]:
    own = [id for id in ids if id.startswith(prefix)]
    chosen, more = page(context, own, limit="pageSize", after="pageToken", usual=10)
    return chosen, {"nextPageToken": chosen[-1]} if more else {}


def list_files(context: RequestContext) -> Answered:
    files = {id: file for id, file in context.memory.shelf.files.items() if file.expected is None}
    chosen, more = _page(context, "files/", files)
    return json_reply({"files": [_file(files[id], context) for id in chosen], **more})


# --- jobs ---------------------------------------------------------------------------------------------------------


def create(context: RequestContext) -> Answered:
    model = context.exchange.params["model"]
    google.check_model(context, model, "batchGenerateContent")
    body = context.exchange.json()
    batch = body.get("batch")
    if unknown := sorted(body.keys() - {"batch"}):
        raise _invalid(f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.')
    if not isinstance(batch, dict):
        raise _invalid("batch: required")
    if unknown := sorted(batch.keys() - {"displayName", "display_name", "inputConfig", "input_config", "priority",
                                         "model", "name", "webhookConfig"}):  # fmt: skip
        raise _invalid(f"Invalid JSON payload received. Unknown name \"{unknown[0]}\" at 'batch': Cannot find field.")
    source = batch.get("inputConfig", batch.get("input_config"))
    items = _items(source if isinstance(source, dict) else {}, model, context)
    shelf = context.memory.shelf
    given = {"model": model, "displayName": batch.get("displayName", batch.get("display_name", "")), "source": source}
    made = Batch(f"batches/{context.exchange.mark(shelf.number())[:24]}", shelf.script, items, given)
    return json_reply(_operation(shelf.add_batch(made), context))


def _items(source: JsonObject, model: str, context: RequestContext) -> list[Item]:
    file_name = source.get("fileName", source.get("file_name"))
    inline = source.get("requests")
    if (file_name is None) == (inline is None):
        raise _invalid("batch.inputConfig: exactly one of fileName and requests is required")
    if file_name is not None:
        file = context.memory.shelf.files.get(str(file_name))
        if file is None:
            raise Refused(Problem("no_model", f"File {file_name} not found.", 404))
        lines = [line for line in file.content.splitlines() if line.strip()]
        return [_line(number, line, model) for number, line in enumerate(lines, 1)]
    if len(context.exchange.body) > MAX_INLINE:
        raise _invalid(f"Inline requests are limited to {MAX_INLINE} bytes; upload a file.")
    requests = inline.get("requests") if isinstance(inline, dict) else None
    if not isinstance(requests, list) or not requests:
        raise _invalid("batch.inputConfig.requests.requests: at least one request is required")
    return [_item(index, one, model) for index, one in enumerate(requests)]


def _line(number: int, line: bytes, model: str) -> Item:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _invalid(f"Line {number} of the input file is not JSON.") from None
    if not isinstance(value, dict) or not isinstance(value.get("request"), dict):
        raise _invalid(f"Line {number} of the input file has no request.")
    if unknown := sorted(value.keys() - {"key", "request", "metadata"}):
        raise _invalid(f'Line {number} of the input file: Unknown name "{unknown[0]}": Cannot find field.')
    return Item(str(value.get("key", "")), _bare(value["request"], model))


def _item(index: int, given: Any, model: str) -> Item:
    if not isinstance(given, dict) or not isinstance(given.get("request"), dict):
        raise _invalid(f"batch.inputConfig.requests.requests[{index}].request: required")
    metadata = given.get("metadata")
    key = text_at(metadata, "key") if isinstance(metadata, dict) else ""
    return Item(key or str(index), _bare(given["request"], model), metadata)


def _bare(request: JsonObject, model: str) -> JsonObject:
    """The request without its model, which must be that of the URL."""
    named = text_at(request, "model").removeprefix("models/")
    if named and named != model:
        raise _invalid(f"The request is for the model {named}, the batch for {model}.")
    return {key: value for key, value in request.items() if key != "model"}


def _inner(batch: Batch) -> Inner:
    model = text_at(batch.given, "model")
    path = f"/v1beta/models/{model}:generateContent"
    return Inner("gemini", path, gemini.generate, google.refusal, {"model": model, "version": "v1beta"})


def _state(batch: Batch) -> str:
    if batch.ending is not None:
        return f"BATCH_STATE_{_STATES[batch.ending]}"
    # A job is cancelled one poll after the request to cancel it.
    return batch.scripted_state or f"BATCH_STATE_{'RUNNING' if batch.polls else 'PENDING'}"


def _stats(batch: Batch) -> JsonObject:
    done = counts(batch)
    ran, failed = done.get("succeeded", 0), done.get("errored", 0) + done.get("canceled", 0)
    pending = len(batch.items) if batch.ending is None else 0
    numbers = {"requestCount": len(batch.items), "successfulRequestCount": ran, "failedRequestCount": failed,
               "pendingRequestCount": pending}  # fmt: skip
    return {name: str(number) for name, number in numbers.items() if number}


def _operation(batch: Batch, context: RequestContext) -> JsonObject:
    output = _output(batch, context) if batch.ending == "completed" else None
    metadata = {
        "@type": _BATCH_TYPE,
        "model": f"models/{batch.given['model']}",
        "displayName": batch.given["displayName"],
        "createTime": _TIME,
        "updateTime": _TIME,
        "batchStats": _stats(batch),
        "state": _state(batch),
        "name": batch.id,
        **({"endTime": _TIME} if batch.ending else {}),
        **({"output": output} if output else {}),
    }
    operation: dict[str, object] = {"name": batch.id, "metadata": metadata}
    if batch.ending is None:
        return operation
    operation["done"] = True
    if output is not None:
        operation["response"] = {"@type": _BATCH_TYPE.replace("Batch", "BatchOutput"), **output}
    else:
        code = {"expired": 4, "canceled": 1}.get(batch.ending, 13)
        operation["error"] = {"code": code, "message": f"The batch {batch.ending}."}
    return operation


def _output(batch: Batch, context: RequestContext) -> JsonObject:
    source = object_at(batch.given, "source")
    if "requests" in source:
        return {"inlinedResponses": {"inlinedResponses": [_inline(one) for one in batch.results or ()]}}
    if "responses" not in batch.files:
        lines = [
            msgspec.json.encode({"key": one.item.id, **_outcome(one)}) + b"\n"
            for one in reversed(batch.results or ())
            if one.outcome != "missing"
        ]
        name = f"files/batch-{batch.id.removeprefix('batches/')}"
        stored = StoredFile(name, name, b"".join(lines), "", "application/jsonl", generated=True)
        batch.files["responses"] = context.memory.shelf.add_results(stored, batch).id
    return {"responsesFile": batch.files["responses"]}


def _inline(result: Result) -> JsonObject:
    metadata = result.item.metadata
    return {**_outcome(result), **({"metadata": metadata} if metadata else {})}


def _outcome(result: Result) -> JsonObject:
    if result.outcome == "succeeded":
        return {"response": msgspec.Raw(result.body)}
    if result.outcome == "errored":
        error = object_at(msgspec.json.decode(result.body), "error")
        code = _RPC_CODES.get(result.status, _UNKNOWN_RPC_CODE)
        return {"error": {"code": code, "message": text_at(error, "message")}}
    return {"error": {"code": 1, "message": "The request was cancelled."}}


def _find_batch(context: RequestContext) -> Batch:
    identifier = f"batches/{context.exchange.params['id']}"
    return context.memory.shelf.batch(identifier, f"{identifier} is not found.")


def retrieve(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    advance(batch, context, _inner(batch))
    return json_reply(_operation(batch, context))


def cancel_job(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    if batch.ending is not None:
        raise _invalid(f"{batch.id} has already ended.")
    cancel(batch)
    return json_reply({})


def delete(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    del context.memory.shelf.batches[batch.id]
    return json_reply({})


def list_jobs(context: RequestContext) -> Answered:
    batches = context.memory.shelf.batches
    chosen, more = _page(context, "batches/", batches)
    return json_reply({"operations": [_operation(batches[id], context) for id in chosen], **more})


_VERSION = r"(?P<version>v1beta|v1alpha|v1)"
_FILE, _BATCH = rf"/{_VERSION}/files/(?P<id>[\w-]+)", rf"/{_VERSION}/batches/(?P<id>[\w-]+)"
ROUTES = (
    route("POST", rf"/upload/{_VERSION}/files", upload, MAX_FILE),
    route("GET", rf"/{_VERSION}/files", list_files),
    route("GET", _FILE, show_file),
    route("DELETE", _FILE, delete_file),
    route("GET", rf"{_FILE}:download", download),
    route("POST", rf"/{_VERSION}/models/(?P<model>[^/:]+):batchGenerateContent", create, MAX_FILE),
    route("GET", rf"/{_VERSION}/batches", list_jobs),
    route("GET", _BATCH, retrieve),
    route("DELETE", _BATCH, delete),
    route("POST", rf"{_BATCH}:cancel", cancel_job),
)
