"""OpenAI's files and batches: `/v1/files`, `/v1/batches`. Servers that copied them (Groq) are the same here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.sim import catalogue
from dragoman.sim.apis import openai, openai_chat, openai_responses
from dragoman.sim.batches import Batch, Inner, Item, Result, StoredFile, advance, cancel, counts, page
from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Answered, Problem, Refused, Reply, json_reply, route
from dragoman.sim.forms import read_form
from dragoman.sim.request_context import RequestContext
from dragoman.sim.rules.common import text_at

MAX_FILE = 512 << 20
MAX_BATCH_FILE = 200 << 20
MOST_REQUESTS = 50_000
_PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
_WINDOW = 86_400
_INNER: Mapping[str, Inner] = {
    "/v1/chat/completions": Inner("openai-chat", "/v1/chat/completions", openai_chat.complete, openai.refusal),
    "/v1/responses": Inner("openai-responses", "/v1/responses", openai_responses.create, openai.refusal),
}
# Endpoints that exist but are not simulated.
_OTHER_ENDPOINTS = ("/v1/embeddings", "/v1/completions", "/v1/moderations")
_CREATED_KEYS = frozenset({"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"})
_NEVER_RAN = {"expired": "batch_expired", "canceled": "batch_cancelled"}
_STATES = {"completed": "completed", "failed": "failed", "expired": "expired", "canceled": "cancelled"}


def _invalid(message: str, param: str | None = None, code: str | None = None) -> Refused:
    return Refused(Problem("invalid", message, param=param, code=code))


# --- files --------------------------------------------------------------------------------------------------------


def _file(file: StoredFile, now: int) -> JsonObject:
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.content),
        "created_at": now,
        "expires_at": None,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def _reply(context: RequestContext, body: object) -> Reply:
    return json_reply(body, headers=openai.headers_of(context.exchange))


def upload(context: RequestContext) -> Answered:
    try:
        parts = read_form(context.exchange.body, context.exchange.headers.get("content-type", ""))
    except ValueError as error:
        raise _invalid(f"Could not parse multipart form: {error}") from None
    fields = {part.name: part for part in parts}
    purpose = fields["purpose"].content.decode("utf-8", "replace") if "purpose" in fields else ""
    if not purpose:
        raise _invalid("'purpose' is a required property", "purpose")
    if purpose not in _PURPOSES:
        raise _invalid(f"'{purpose}' is not one of {list(_PURPOSES)} - 'purpose'", "purpose")
    given = fields.get("file")
    if given is None or given.filename is None:
        raise _invalid("'file' is a required property", "file")
    if purpose == "batch" and not given.filename.endswith(".jsonl"):
        raise _invalid("Invalid file format. Batch files must be .jsonl.", "file", "invalid_file_format")
    if not given.content:
        raise _invalid("File is empty.", "file")
    if purpose == "batch" and len(given.content) > MAX_BATCH_FILE:
        raise _invalid(f"Batch input file is too large: the limit is {MAX_BATCH_FILE} bytes.", "file")
    shelf = context.memory.shelf
    stored = StoredFile(f"file-{context.exchange.mark(shelf.number())[:22]}", given.filename, given.content, purpose)
    return _reply(context, _file(shelf.add_file(stored), context.now))


def _find_file(context: RequestContext) -> StoredFile:
    identifier = context.exchange.params["id"]
    return context.memory.shelf.file(identifier, f"No such File object: {identifier}")


def show_file(context: RequestContext) -> Answered:
    return _reply(context, _file(_find_file(context), context.now))


def file_content(context: RequestContext) -> Answered:
    return Reply(200, _find_file(context).content, "application/octet-stream", openai.headers_of(context.exchange))


def delete_file(context: RequestContext) -> Answered:
    stored = _find_file(context)
    del context.memory.shelf.files[stored.id]
    return _reply(context, {"id": stored.id, "object": "file", "deleted": True})


def _list_reply(context: RequestContext, data: list[JsonObject], *, has_more: bool) -> Reply:
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return _reply(context, {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more})


def list_files(context: RequestContext) -> Answered:
    files = context.memory.shelf.files
    purpose = context.exchange.query.get("purpose", "")
    ids = [id for id, file in files.items() if file.id.startswith("file-") and purpose in ("", file.purpose)]
    chosen, more = page(context, ids, limit="limit", after="after", usual=10_000)
    return _list_reply(context, [_file(files[id], context.now) for id in chosen], has_more=more)


# --- batches ------------------------------------------------------------------------------------------------------


def _check_creation(body: JsonObject) -> None:
    for name in ("input_file_id", "endpoint", "completion_window"):
        if not isinstance(body.get(name), str):
            raise _invalid(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    if unknown := sorted(body.keys() - _CREATED_KEYS):
        raise _invalid(f"Unknown parameter: '{unknown[0]}'.", unknown[0], "unknown_parameter")
    endpoints = (*_INNER, *_OTHER_ENDPOINTS)
    if body["endpoint"] not in endpoints:
        raise _invalid(f"Invalid value: '{body['endpoint']}'. Supported values are: {', '.join(endpoints)}.",
                       "endpoint", "invalid_value")  # fmt: skip
    if body["completion_window"] != "24h":
        words = f"Invalid value: '{body['completion_window']}'. Supported values are: '24h'."
        raise _invalid(words, "completion_window", "invalid_value")
    metadata = body.get("metadata")
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise _invalid("Invalid type for 'metadata': expected a map of strings.", "metadata", "invalid_type")


def create(context: RequestContext) -> Answered:
    body = context.exchange.json()
    _check_creation(body)
    shelf = context.memory.shelf
    identifier = text_at(body, "input_file_id")
    file = shelf.files.get(identifier)
    if file is None:
        raise _invalid(f"Invalid file id: {identifier}", "input_file_id", "invalid_value")
    if file.purpose != "batch":
        raise _invalid(f"File {identifier} has purpose '{file.purpose}', expected 'batch'.", "input_file_id")
    items, problems = _read_items(file.content, text_at(body, "endpoint"), context)
    batch = Batch(f"batch_{context.exchange.mark(shelf.number())[:32]}", shelf.script, items, body, problems=problems)
    return _reply(context, _batch(shelf.add_batch(batch), context.now))


def _read_items(content: bytes, endpoint: str, context: RequestContext) -> tuple[list[Item], list[JsonObject]]:
    items: list[Item] = []
    problems: list[JsonObject] = []
    seen: set[str] = set()
    models: set[str] = set()
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            items.append(_item(line, endpoint, seen, models, context))
        except Refused as refused:
            problem = refused.problem
            problems.append({"code": problem.code, "line": number, "message": problem.message, "param": problem.param})
    if not items and not problems:
        problems.append({"code": "empty_file", "line": None, "message": "The input file is empty.", "param": None})
    if len(items) > MOST_REQUESTS:
        words = f"The batch has {len(items)} requests; the limit is {MOST_REQUESTS}."
        problems.append({"code": "too_many_tasks", "line": None, "message": words, "param": None})
    return items, problems


def _item(line: bytes, endpoint: str, seen: set[str], models: set[str], context: RequestContext) -> Item:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _invalid("This line is not parseable as valid JSON.", code="invalid_json_line") from None
    if not isinstance(value, dict):
        raise _invalid("A line is an object.", code="invalid_json_line")
    identifier, body = value.get("custom_id"), value.get("body")
    if not isinstance(identifier, str) or not identifier:
        raise _invalid("Missing required parameter: 'custom_id'.", "custom_id", "missing_required_parameter")
    if identifier in seen:
        words = f"The custom_id '{identifier}' for this request is a duplicate of another request."
        raise _invalid(words, "custom_id", "duplicate_custom_id")
    seen.add(identifier)
    if value.get("method") != "POST":
        raise _invalid("Invalid method: expected 'POST'.", "method", "invalid_method")
    if value.get("url") != endpoint:
        words = f"The URL '{value.get('url')}' for this request does not match the batch endpoint '{endpoint}'."
        raise _invalid(words, "url", "mismatched_endpoint")
    if not isinstance(body, dict):
        raise _invalid("Missing required parameter: 'body'.", "body", "missing_required_parameter")
    _check_model(body, models, context)
    return Item(identifier, body)


def _check_model(body: JsonObject, models: set[str], context: RequestContext) -> None:
    model = text_at(body, "model")
    if not model:
        raise _invalid("Missing required parameter: 'body.model'.", "body.model", "missing_required_parameter")
    if not context.any_model and not catalogue.exists("openai", model):
        raise _invalid(f"The provided model '{model}' is not supported.", "body.model", "model_not_found")
    models.add(model)
    if len(models) > 1:
        words = f"The model '{model}' does not match the model of the other requests."
        raise _invalid(words, "body.model", "mismatched_model")


def _state(batch: Batch) -> str:
    if batch.ending is not None:
        return _STATES[batch.ending]
    if batch.cancelled_at_poll is not None:
        return "cancelling"
    return batch.scripted_state or ("in_progress" if batch.polls else "validating")


_QUEUE_IS_FULL: JsonObject = {
    "code": "token_limit_exceeded",
    "line": None,
    "message": "Enqueued token limit reached for this model in this organization. Please try again once some "
    "in_progress batches have been completed.",
    "param": None,
}
"""Why a job fails whose lines are all right."""


def _batch(batch: Batch, now: int) -> JsonObject:
    given, state, done = batch.given, _state(batch), counts(batch)
    problems = [_QUEUE_IS_FULL] if batch.ending == "failed" and not batch.problems else batch.problems
    completed = done.get("succeeded", 0)
    failed = done.get("errored", 0)
    times = {f"{name}_at": now if name == state else None for name in (
        "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")}  # fmt: skip
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": given["endpoint"],
        "model": text_at(batch.items[0].body, "model") if batch.items else None,
        "errors": {"object": "list", "data": problems} if problems and batch.polls else None,
        "input_file_id": given["input_file_id"],
        "completion_window": given["completion_window"],
        "status": state,
        "output_file_id": batch.files.get("output"),
        "error_file_id": batch.files.get("error"),
        "created_at": now,
        "expires_at": now + _WINDOW,
        **times,
        "request_counts": {
            "total": 0 if problems else len(batch.items),
            "completed": completed,
            "failed": failed,
        },
        "metadata": given.get("metadata"),
    }


def _line(result: Result, batch: Batch, number: int) -> JsonObject:
    identified = {"id": f"batch_req_{batch.id[-12:]}{number:06}", "custom_id": result.item.id}
    never = _NEVER_RAN.get(result.outcome)
    if never is not None:
        words = "This request could not be executed before the batch ended."
        return {**identified, "response": None, "error": {"code": never, "message": words}}
    response = {"status_code": result.status, "request_id": f"req_{number}", "body": msgspec.Raw(result.body)}
    return {**identified, "response": response, "error": None}


def _write_files(batch: Batch, context: RequestContext) -> None:
    """Writes the output files: failed requests go to the error file; the order differs from the input."""
    lines: dict[str, list[bytes]] = {"output": [], "error": []}
    for number, result in enumerate(reversed(batch.results or ())):
        if result.outcome != "missing":
            kind = "output" if result.outcome == "succeeded" else "error"
            lines[kind].append(msgspec.json.encode(_line(result, batch, number)) + b"\n")
    shelf = context.memory.shelf
    for kind, written in lines.items():
        if written:
            identifier = f"file-{context.exchange.mark(kind, shelf.number())[:22]}"
            name = f"{batch.id}_{kind}.jsonl"
            shelf.add_results(StoredFile(identifier, name, b"".join(written), "batch_output", generated=True), batch)
            batch.files[kind] = identifier


def _find_batch(context: RequestContext) -> Batch:
    identifier = context.exchange.params["id"]
    return context.memory.shelf.batch(identifier, f"No batch found with id '{identifier}'.")


def retrieve(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    inner = _INNER.get(text_at(batch.given, "endpoint"))
    if inner is None:
        raise Refused(Problem("server", "The simulator does not run batches of this endpoint."))
    before = batch.results
    advance(batch, context, inner)
    if before is None and batch.results is not None:
        _write_files(batch, context)
    return _reply(context, _batch(batch, context.now))


def cancel_batch(context: RequestContext) -> Answered:
    batch = _find_batch(context)
    if batch.ending is not None:
        raise Refused(Problem("conflict", f"Cannot cancel a batch with status '{_state(batch)}'."))
    cancel(batch)
    return _reply(context, _batch(batch, context.now))


def list_batches(context: RequestContext) -> Answered:
    batches = context.memory.shelf.batches
    ids = [id for id in batches if id.startswith("batch_")]
    chosen, more = page(context, ids, limit="limit", after="after", usual=20)
    return _list_reply(context, [_batch(batches[id], context.now) for id in chosen], has_more=more)


def routes() -> Iterator[Any]:
    file, batch = r"(?P<id>[\w-]+)", r"(?P<id>\w+)"
    yield route("POST", r"/v1/files", upload, MAX_FILE)
    yield route("GET", r"/v1/files", list_files)
    yield route("GET", rf"/v1/files/{file}", show_file)
    yield route("DELETE", rf"/v1/files/{file}", delete_file)
    yield route("GET", rf"/v1/files/{file}/content", file_content)
    yield route("POST", r"/v1/batches", create)
    yield route("GET", r"/v1/batches", list_batches)
    yield route("GET", rf"/v1/batches/{batch}", retrieve)
    yield route("POST", rf"/v1/batches/{batch}/cancel", cancel_batch)


ROUTES = tuple(routes())
