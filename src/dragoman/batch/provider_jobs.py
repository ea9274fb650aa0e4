"""How each provider's batch jobs are created, polled, fetched and cancelled, without doing any I/O.

An operation is a generator: it yields what has to be done (a `Call`, or a file to `Save` or `Load`), is sent the reply,
and returns its result. `job_steps` runs the steps. So a provider's whole protocol can be read, and tested, in one place
without a network.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from dragoman.batch.job_states import ENDED, JobState, state_of
from dragoman.errors import InvalidValue
from dragoman.multipart import FormPart, write_form

MEBIBYTE = 1 << 20
_JSON = {"content-type": "application/json"}


class Call(Struct, frozen=True, kw_only=True):
    """One HTTP request. `url` is a path below the provider's address, or a complete address."""

    method: str
    url: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    once: bool = False
    """Whether it must not be repeated if the reply is lost: it may have created a job that costs money."""


class Save(Struct, frozen=True):
    """Write a file to the storage of the job."""

    address: str
    content: bytes


class Load(Struct, frozen=True):
    """Read the files below an address whose names have one of these suffixes, one after the other."""

    address: str
    suffixes: tuple[str, ...]


class Reply(Struct, frozen=True):
    """The reply to a step."""

    body: bytes = b""
    headers: Mapping[str, str] = {}

    def json(self) -> Any:
        return msgspec.json.decode(self.body) if self.body else {}


Step: TypeAlias = Call | Save | Load
T = TypeVar("T")
Steps: TypeAlias = Generator[Step, Reply, T]


class JobCounts(Struct, frozen=True, kw_only=True):
    """Requests by outcome, as far as the provider reports them. Anthropic reports nothing before the end."""

    total: int | None = None
    succeeded: int = 0
    failed: int = 0


class Seen(Struct, frozen=True, kw_only=True):
    """The state of a job at one poll."""

    state: JobState
    provider_state: str
    counts: JobCounts = JobCounts()
    outputs: tuple[str, ...] = ()
    """Where the results are, in the form that `results` expects."""
    problems: tuple[str, ...] = ()
    """Why the provider rejected the whole job."""
    is_temporary: bool = False
    """Whether it rejected the job for something that passes: nothing ran, and the same job may succeed later."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class JobContext(Struct, frozen=True, kw_only=True):
    """What operations need to know about a job."""

    model: str
    key: str
    """Marks the job at the provider, if supported, so that a job whose creation got no reply can be found."""
    place: Mapping[str, str] = {}
    storage: str = ""
    """Folder in object storage, for providers that read and write there."""
    role: str = ""
    headers: Mapping[str, str] = {}


class JobApi(Struct, frozen=True, kw_only=True):
    """The batch API of one provider."""

    vocabulary: str
    file: str
    """Name in `BATCH_FILES`: the format of the input and output lines."""
    create: Callable[[JobContext, bytes], Steps[str]]
    """Uploads the lines, if needed, and returns the id of the job."""
    look: Callable[[JobContext, str], Steps[Seen]]
    results: Callable[[JobContext, str, Seen], Steps[bytes]]
    """Returns lines of the same batch file format, in any order."""
    cancel: Callable[[JobContext, str], Steps[None]]
    find: Callable[[JobContext], Steps[str | None]] | None = None
    """Returns the id of the job with this key."""
    most_requests: int = 50_000
    most_bytes: int = 200 * MEBIBYTE
    fewest_requests: int = 1
    needs_storage: bool = False
    base_url: str = ""
    """Set if jobs have another host than requests."""


def _post(url: str, body: object = None, *, once: bool = False) -> Call:
    encoded = b"" if body is None else msgspec.json.encode(body)
    return Call(method="POST", url=url, body=encoded, headers=_JSON if encoded else {}, once=once)


def _get(url: str) -> Call:
    return Call(method="GET", url=url)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    """Return a number that may be a text: Google writes 64-bit numbers as texts."""
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()) else 0


def _lines(content: bytes) -> list[bytes]:
    return [line for line in content.split(b"\n") if line.strip()]


# ── OpenAI and compatible providers ──


def _upload(prefix: str, content: bytes, fields: Mapping[str, str]) -> Steps[str]:
    form, kind = write_form(fields, [FormPart("file", content, "requests.jsonl", "application/jsonl")])
    reply = yield Call(method="POST", url=f"{prefix}/files", body=form, headers={"content-type": kind})
    return str(reply.json()["id"])


_QUEUE_IS_FULL = "token_limit_exceeded"
"""Jobs that wait already have as many tokens as the organization may have in the queue."""


def _problem(found: Mapping[str, Any]) -> str:
    line, message = found.get("line"), found.get("message")
    return f"{message}" if line is None else f"line {line}: {message}"


class _OpenAi(Struct, frozen=True):
    """`/files` and `/batches`, with the differences of compatible providers."""

    vocabulary: str
    endpoint: str
    prefix: str = ""

    def create(self, context: JobContext, content: bytes) -> Steps[str]:
        file = yield from _upload(self.prefix, content, {"purpose": "batch"})
        body = {
            "input_file_id": file,
            "endpoint": self.endpoint,
            "completion_window": "24h",
            "metadata": {"dragoman_job": context.key},
        }
        reply = yield _post(f"{self.prefix}/batches", body, once=True)
        made = reply.json()
        # Together wraps the job.
        return str(made.get("job", made)["id"])

    def look(self, _context: JobContext, job: str) -> Steps[Seen]:
        reply = yield _get(f"{self.prefix}/batches/{quote(job)}")
        found = reply.json()
        word = _text(found.get("status"))
        counts = found.get("request_counts") or {}
        listed = (found.get("errors") or {}).get("data") or []
        # Failures are in a second file; both may be missing.
        files = (found.get("output_file_id"), found.get("error_file_id"))
        return Seen(
            state=state_of(self.vocabulary, word),
            provider_state=word,
            counts=JobCounts(
                total=counts.get("total"), succeeded=counts.get("completed", 0), failed=counts.get("failed", 0)
            ),
            outputs=tuple(file for file in files if file),
            problems=tuple(map(_problem, listed)),
            is_temporary=bool(listed) and all(one.get("code") == _QUEUE_IS_FULL for one in listed),
        )

    def results(self, _context: JobContext, _job: str, seen: Seen) -> Steps[bytes]:
        pieces = []
        for file in seen.outputs:
            reply = yield _get(f"{self.prefix}/files/{quote(file)}/content")
            pieces += _lines(reply.body)
        return b"\n".join(pieces)

    def cancel(self, _context: JobContext, job: str) -> Steps[None]:
        yield _post(f"{self.prefix}/batches/{quote(job)}/cancel")

    def find(self, context: JobContext) -> Steps[str | None]:
        reply = yield _get(f"{self.prefix}/batches?limit=100")
        for one in reply.json().get("data", []):
            if (one.get("metadata") or {}).get("dragoman_job") == context.key:
                return str(one["id"])
        return None


def _openai_like(
    vocabulary: str, file: str, endpoint: str, *, prefix: str = "", most_bytes: int = 200 * MEBIBYTE
) -> JobApi:
    api = _OpenAi(vocabulary, endpoint, prefix)
    return JobApi(
        vocabulary=vocabulary,
        file=file,
        create=api.create,
        look=api.look,
        results=api.results,
        cancel=api.cancel,
        find=api.find,
        most_bytes=most_bytes,
    )


# ── Mistral: its own jobs, OpenAI's files ──


def _mistral_create(context: JobContext, content: bytes) -> Steps[str]:
    file = yield from _upload("", content, {"purpose": "batch"})
    body = {
        "input_files": [file],
        "model": context.model,
        "endpoint": "/v1/chat/completions",
        "metadata": {"dragoman_job": context.key},
    }
    reply = yield _post("/batch/jobs", body, once=True)
    return str(reply.json()["id"])


def _mistral_look(_context: JobContext, job: str) -> Steps[Seen]:
    reply = yield _get(f"/batch/jobs/{quote(job)}")
    found = reply.json()
    word = _text(found.get("status"))
    return Seen(
        state=state_of("mistral", word),
        provider_state=word,
        counts=JobCounts(
            total=found.get("total_requests"),
            succeeded=found.get("succeeded_requests", 0),
            failed=found.get("failed_requests", 0),
        ),
        outputs=tuple(file for file in (found.get("output_file"), found.get("error_file")) if file),
        problems=tuple(_text(one.get("message")) for one in found.get("errors") or []),
    )


def _mistral_results(_context: JobContext, _job: str, seen: Seen) -> Steps[bytes]:
    pieces = []
    for file in seen.outputs:
        reply = yield _get(f"/files/{quote(file)}/content")
        pieces += _lines(reply.body)
    return b"\n".join(pieces)


def _mistral_cancel(_context: JobContext, job: str) -> Steps[None]:
    yield _post(f"/batch/jobs/{quote(job)}/cancel")


def _mistral_find(context: JobContext) -> Steps[str | None]:
    reply = yield _get("/batch/jobs?page_size=100")
    for one in reply.json().get("data") or []:
        if (one.get("metadata") or {}).get("dragoman_job") == context.key:
            return str(one["id"])
    return None


# ── xAI: OpenAI's files, paged results ──


def _xai_create(context: JobContext, content: bytes) -> Steps[str]:
    file = yield from _upload("", content, {})
    reply = yield _post("/batches", {"name": context.key, "input_file_id": file}, once=True)
    return str(reply.json()["batch_id"])


def _xai_look(_context: JobContext, job: str) -> Steps[Seen]:
    reply = yield _get(f"/batches/{quote(job)}")
    state = reply.json().get("state") or {}
    total, pending = _number(state.get("num_requests")), _number(state.get("num_pending"))
    cancelled = _number(state.get("num_cancelled"))
    ended = total > 0 and pending == 0
    word = ("cancelled" if cancelled else "done") if ended else "pending"
    counts = JobCounts(total=total, succeeded=_number(state.get("num_success")), failed=_number(state.get("num_error")))
    return Seen(state=state_of("xai", word), provider_state=word, counts=counts)


def _xai_results(_context: JobContext, job: str, _seen: Seen) -> Steps[bytes]:
    pieces: list[bytes] = []
    token = ""
    while True:
        following = f"&pagination_token={quote(token, safe='')}" if token else ""
        reply = yield _get(f"/batches/{quote(job)}/results?limit=100{following}")
        found = reply.json()
        pieces += [msgspec.json.encode(_xai_line(one)) for one in found.get("results") or []]
        token = _text(found.get("pagination_token"))
        if not token:
            return b"\n".join(pieces)


def _xai_line(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as a line in OpenAI's format."""
    item = result.get("batch_result") or {}
    body = (item.get("response") or {}).get("chat_get_completion")
    identified = {"id": None, "custom_id": result.get("batch_request_id")}
    if body is not None:
        return {**identified, "response": {"status_code": 200, "request_id": None, "body": body}, "error": None}
    error = item.get("error") or {"message": result.get("error_message") or "The request failed."}
    return {**identified, "response": None, "error": error}


def _xai_cancel(_context: JobContext, job: str) -> Steps[None]:
    yield _post(f"/batches/{quote(job)}:cancel")


# ── Anthropic ──

_BATCHES = "/v1/messages/batches"


def _anthropic_create(_context: JobContext, content: bytes) -> Steps[str]:
    body = b'{"requests":[%b]}' % b",".join(_lines(content))
    reply = yield Call(method="POST", url=_BATCHES, body=body, headers=_JSON, once=True)
    return str(reply.json()["id"])


def _anthropic_look(_context: JobContext, job: str) -> Steps[Seen]:
    reply = yield _get(f"{_BATCHES}/{quote(job)}")
    found = reply.json()
    word = _text(found.get("processing_status"))
    counts = found.get("request_counts") or {}
    state = state_of("anthropic", word)
    if state == "completed" and not counts.get("succeeded") and not counts.get("errored"):
        state = "canceled" if counts.get("canceled") else "expired"
    return Seen(
        state=state,
        provider_state=word,
        counts=JobCounts(
            total=sum(_number(number) for number in counts.values()),
            succeeded=_number(counts.get("succeeded")),
            failed=sum(_number(counts.get(name)) for name in ("errored", "canceled", "expired")),
        ),
        outputs=(job,) if found.get("results_url") else (),
    )


def _anthropic_results(_context: JobContext, job: str, _seen: Seen) -> Steps[bytes]:
    # The address in `results_url` may be another host: the key is only sent to the provider's own.
    reply = yield _get(f"{_BATCHES}/{quote(job)}/results")
    return reply.body


def _anthropic_cancel(_context: JobContext, job: str) -> Steps[None]:
    yield _post(f"{_BATCHES}/{quote(job)}/cancel")


# ── Gemini ──


def _gemini_create(context: JobContext, content: bytes) -> Steps[str]:
    start = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": str(len(content)),
        "x-goog-upload-header-content-type": "application/jsonl",
        **_JSON,
    }
    described = msgspec.json.encode({"file": {"displayName": context.key}})
    started = yield Call(method="POST", url="/upload/v1beta/files", body=described, headers=start)
    finish = {"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
    reply = yield Call(method="POST", url=started.headers["x-goog-upload-url"], body=content, headers=finish)
    body = {"batch": {"displayName": context.key, "inputConfig": {"fileName": reply.json()["file"]["name"]}}}
    made = yield _post(f"/v1beta/models/{quote(context.model)}:batchGenerateContent", body, once=True)
    return str(made.json()["name"])


def _gemini_seen(found: Mapping[str, Any]) -> Seen:
    metadata = found.get("metadata") or {}
    word = _text(metadata.get("state"))
    state = state_of("gemini", word)
    file = ((metadata.get("output") or found.get("response")) or {}).get("responsesFile")
    if state == "completed" and not file:
        state = "running"  # a job can be reported as succeeded before its file has a name
    stats = metadata.get("batchStats") or {}
    error = (found.get("error") or {}).get("message")
    return Seen(
        state=state,
        provider_state=word,
        counts=JobCounts(
            total=_number(stats.get("requestCount")),
            succeeded=_number(stats.get("successfulRequestCount")),
            failed=_number(stats.get("failedRequestCount")),
        ),
        outputs=(file,) if file else (),
        problems=(str(error),) if error else (),
    )


def _gemini_look(_context: JobContext, job: str) -> Steps[Seen]:
    reply = yield _get(f"/v1beta/{quote(job)}")
    return _gemini_seen(reply.json())


def _gemini_results(_context: JobContext, _job: str, seen: Seen) -> Steps[bytes]:
    if not seen.outputs:  # an expired job, or one cancelled before it ran, has no file
        return b""
    reply = yield _get(f"/v1beta/{quote(seen.outputs[0])}:download?alt=media")
    return reply.body


def _gemini_cancel(_context: JobContext, job: str) -> Steps[None]:
    yield _post(f"/v1beta/{quote(job)}:cancel", {})


def _gemini_find(context: JobContext) -> Steps[str | None]:
    reply = yield _get("/v1beta/batches?pageSize=100")
    for one in reply.json().get("operations") or []:
        if (one.get("metadata") or {}).get("displayName") == context.key:
            return str(one["name"])
    return None


# ── Vertex and Bedrock: files in the user's own bucket ──


def _storage(context: JobContext) -> str:
    if not context.storage:
        raise InvalidValue(
            path="storage", expected="a folder in object storage, such as gs://bucket/jobs", found="nothing",
            hint="this provider reads and writes batch files there",
        )  # fmt: skip
    return f"{context.storage.rstrip('/')}/{context.key}"


def _vertex_jobs(context: JobContext) -> str:
    project, location = context.place.get("project", ""), context.place.get("location", "global")
    return f"/v1/projects/{quote(project)}/locations/{quote(location)}/batchPredictionJobs"


def _vertex_create(context: JobContext, content: bytes) -> Steps[str]:
    folder = _storage(context)
    yield Save(f"{folder}/requests.jsonl", content)
    body = {
        "displayName": context.key,
        "model": f"publishers/google/models/{context.model}",
        "inputConfig": {"instancesFormat": "jsonl", "gcsSource": {"uris": [f"{folder}/requests.jsonl"]}},
        "outputConfig": {"predictionsFormat": "jsonl", "gcsDestination": {"outputUriPrefix": f"{folder}/results"}},
    }
    reply = yield _post(_vertex_jobs(context), body, once=True)
    return str(reply.json()["name"])


def _vertex_look(_context: JobContext, job: str) -> Steps[Seen]:
    reply = yield _get(f"/v1/{quote(job)}")
    found = reply.json()
    word = _text(found.get("state"))
    stats = found.get("completionStats") or {}
    done, failed = _number(stats.get("successfulCount")), _number(stats.get("failedCount"))
    folder = (found.get("outputInfo") or {}).get("gcsOutputDirectory")
    error = (found.get("error") or {}).get("message")
    return Seen(
        state=state_of("vertex", word),
        provider_state=word,
        counts=JobCounts(
            total=done + failed + _number(stats.get("incompleteCount")) or None, succeeded=done, failed=failed
        ),
        outputs=(folder,) if folder else (),
        problems=(str(error),) if error else (),
    )


def _stored_results(context: JobContext, _job: str, seen: Seen) -> Steps[bytes]:
    if not seen.outputs and not context.storage:
        return b""
    address = seen.outputs[0] if seen.outputs else f"{_storage(context)}/results"
    reply = yield Load(address, (".jsonl", ".jsonl.out"))
    return reply.body


def _vertex_cancel(_context: JobContext, job: str) -> Steps[None]:
    yield _post(f"/v1/{quote(job)}:cancel", {})


def _vertex_find(context: JobContext) -> Steps[str | None]:
    wanted = quote(f'displayName="{context.key}"', safe="")
    reply = yield _get(f"{_vertex_jobs(context)}?filter={wanted}")
    jobs = reply.json().get("batchPredictionJobs") or []
    return str(jobs[0]["name"]) if jobs else None


_INVOCATION_JOB = "/model-invocation-job"


def _bedrock_create(context: JobContext, content: bytes) -> Steps[str]:
    folder = _storage(context)
    if not context.role:
        raise InvalidValue(
            path="role", expected="the ARN of a role that may read and write the storage", found="nothing"
        )
    yield Save(f"{folder}/requests.jsonl", content)
    body = {
        "jobName": context.key,
        # Makes a creation that is sent twice one job.
        "clientRequestToken": context.key,
        "roleArn": context.role,
        "modelId": context.model,
        # The lines are Converse bodies; the default expects the model's own.
        "modelInvocationType": "Converse",
        "inputDataConfig": {
            "s3InputDataConfig": {"s3InputFormat": "JSONL", "s3Uri": f"{folder}/requests.jsonl"},
        },
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"{folder}/results/"}},
    }
    reply = yield _post(_INVOCATION_JOB, body, once=True)
    return str(reply.json()["jobArn"])


def _bedrock_look(context: JobContext, job: str) -> Steps[Seen]:
    reply = yield _get(f"{_INVOCATION_JOB}/{quote(job, safe='')}")
    found = reply.json()
    word, message = _text(found.get("status")), _text(found.get("message"))
    return Seen(
        state=state_of("bedrock", word),
        provider_state=word,
        counts=JobCounts(
            total=found.get("totalRecordCount"),
            succeeded=_number(found.get("successRecordCount")),
            failed=_number(found.get("errorRecordCount")),
        ),
        # Results are in a folder named after the last part of the job's name.
        outputs=(f"{_storage(context)}/results/{job.rpartition('/')[2]}",),
        problems=(message,) if message and word == "Failed" else (),
    )


def _bedrock_cancel(_context: JobContext, job: str) -> Steps[None]:
    yield _post(f"{_INVOCATION_JOB}/{quote(job, safe='')}/stop")


def _bedrock_find(context: JobContext) -> Steps[str | None]:
    reply = yield _get(f"{_INVOCATION_JOB}s?nameContains={quote(context.key)}")
    jobs = reply.json().get("invocationJobSummaries") or []
    return str(jobs[0]["jobArn"]) if jobs else None


# ── all providers ──

_CHAT, _RESPONSES = "/v1/chat/completions", "/v1/responses"

JOB_APIS: Mapping[str, JobApi] = {
    "openai": _openai_like("openai", "openai-responses-batch", _RESPONSES),
    "openai-chat": _openai_like("openai", "openai-batch", _CHAT),
    "azure": _openai_like("openai", "openai-batch", _CHAT, prefix="/openai/v1"),
    "azure-responses": _openai_like("openai", "openai-responses-batch", _RESPONSES, prefix="/openai/v1"),
    "groq": _openai_like("groq", "groq-batch", _CHAT, most_bytes=100 * MEBIBYTE),
    "together": _openai_like("together", "openai-batch", _CHAT, most_bytes=100 * MEBIBYTE),
    "mistral": JobApi(
        vocabulary="mistral", file="mistral-batch", create=_mistral_create, look=_mistral_look,
        results=_mistral_results, cancel=_mistral_cancel, find=_mistral_find,
    ),
    "xai": JobApi(
        vocabulary="xai", file="xai-batch", create=_xai_create, look=_xai_look, results=_xai_results,
        cancel=_xai_cancel,
    ),
    "anthropic": JobApi(
        vocabulary="anthropic", file="anthropic-batch", create=_anthropic_create, look=_anthropic_look,
        results=_anthropic_results, cancel=_anthropic_cancel, most_requests=100_000, most_bytes=256 * MEBIBYTE,
    ),
    "gemini": JobApi(
        vocabulary="gemini", file="gemini-batch", create=_gemini_create, look=_gemini_look, results=_gemini_results,
        cancel=_gemini_cancel, find=_gemini_find, most_requests=1_000_000, most_bytes=500 * MEBIBYTE,
    ),
    "vertex": JobApi(
        vocabulary="vertex", file="vertex-batch", create=_vertex_create, look=_vertex_look, results=_stored_results,
        cancel=_vertex_cancel, find=_vertex_find, needs_storage=True, most_requests=1_000_000,
        most_bytes=500 * MEBIBYTE,
    ),
    "bedrock": JobApi(
        vocabulary="bedrock", file="bedrock-batch", create=_bedrock_create, look=_bedrock_look,
        results=_stored_results, cancel=_bedrock_cancel, find=_bedrock_find, needs_storage=True, fewest_requests=100,
        base_url="https://bedrock.{region}.amazonaws.com",
    ),
}  # fmt: skip
"""By provider name."""
