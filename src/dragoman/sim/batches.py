"""Files and batch jobs, shared by all vendors' APIs: storage, and the progress of jobs.

There is no clock: a job advances when it is polled. `PUT /_sim/batches` scripts the next jobs:

    {"polls": 2, "ends": "expired", "finished": 3, "items": {"r-7": "error", "r-8": "missing"}}
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from dragoman.sim.conversation_view import JsonObject
from dragoman.sim.exchange import Answered, Exchange, Problem, Refused, Reply
from dragoman.sim.faults import NO_FAULT

if TYPE_CHECKING:
    from dragoman.sim.request_context import RequestContext

Ending: TypeAlias = Literal["completed", "failed", "expired", "canceled"]
Outcome: TypeAlias = Literal["succeeded", "errored", "expired", "canceled", "missing"]
MOST = 1_000
OK = 200


class BatchScript(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    # Polls before a job has ended.
    polls: int = 1
    ends: Ending = "completed"
    # Requests that were answered before a job expired or was cancelled.
    finished: int = 0
    # Outcome of single requests, by id.
    items: dict[str, Literal["error", "expired", "canceled", "missing"]] = {}
    # Wire values of the state at each poll, instead of the usual ones.
    states: tuple[str, ...] = ()
    # The results of a job that has ended are not there any more: providers keep them for some weeks.
    gone: bool = False


def read_batch_script(value: object) -> BatchScript:
    """Validates a script. Raises msgspec.ValidationError."""
    return value if isinstance(value, BatchScript) else msgspec.convert(value, BatchScript)


@dataclass(slots=True)
class StoredFile:
    id: str
    name: str
    content: bytes
    purpose: str
    content_type: str = "application/octet-stream"
    # Written by a job, not uploaded.
    generated: bool = False
    # Unfinished upload.
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    id: str
    body: JsonObject
    # Returned with the result unchanged.
    metadata: object = None


@dataclass(frozen=True, slots=True)
class Result:
    item: Item
    outcome: Outcome
    status: int = OK
    body: bytes = b"null"


@dataclass(slots=True)
class Batch:
    id: str
    script: BatchScript
    items: Sequence[Item]
    # The request that created it.
    given: JsonObject
    polls: int = 0
    cancelled_at_poll: int | None = None
    results: list[Result] | None = None
    files: dict[str, str] = field(default_factory=dict)
    problems: Sequence[JsonObject] = ()

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it runs."""
        if self.problems:
            return "failed" if self.polls else None
        if self.cancelled_at_poll is not None:
            return "canceled" if self.polls > self.cancelled_at_poll else None
        return self.script.ends if self.polls > max(self.script.polls, len(self.script.states)) else None

    @property
    def scripted_state(self) -> str:
        """The scripted state of this poll."""
        states = self.script.states
        return states[self.polls - 1] if 0 < self.polls <= len(states) and self.cancelled_at_poll is None else ""


@dataclass(slots=True)
class BatchStore:
    """Files and batch jobs by id."""

    files: OrderedDict[str, StoredFile] = field(default_factory=OrderedDict)
    batches: OrderedDict[str, Batch] = field(default_factory=OrderedDict)
    script: BatchScript = field(default_factory=BatchScript)
    made: int = 0

    def number(self) -> int:
        self.made += 1
        return self.made

    def add_file(self, file: StoredFile) -> StoredFile:
        self.files[file.id] = file
        if len(self.files) > MOST:
            self.files.popitem(last=False)
        return file

    def add_batch(self, batch: Batch) -> Batch:
        self.batches[batch.id] = batch
        if len(self.batches) > MOST:
            self.batches.popitem(last=False)
        return batch

    def file(self, identifier: str, words: str) -> StoredFile:
        found = self.files.get(identifier)
        if found is None or found.expected is not None:
            raise Refused(Problem("no_model", words, 404))
        return found

    def add_results(self, file: StoredFile, batch: Batch) -> StoredFile:
        """Adds a file of results, unless the script says that its time is over: the job still names it."""
        return file if batch.script.gone else self.add_file(file)

    def batch(self, identifier: str, words: str) -> Batch:
        found = self.batches.get(identifier)
        if found is None:
            raise Refused(Problem("no_model", words, 404))
        return found


@dataclass(frozen=True, slots=True)
class Inner:
    """The ordinary operation that answers a request of a job."""

    api: str
    path: str
    operation: Callable[[RequestContext], Answered]
    refusal: Callable[[Problem, Exchange], Reply]
    params: Mapping[str, str] = field(default_factory=dict)


def advance(batch: Batch, context: RequestContext, inner: Inner) -> None:
    """Advances a job by one poll; the last poll answers its requests."""
    batch.polls += 1
    if batch.ending is not None and batch.results is None and not batch.problems:
        batch.results = list(_conclude(batch, context, inner))


def cancel(batch: Batch) -> None:
    if batch.ending is None and batch.cancelled_at_poll is None:
        batch.cancelled_at_poll = batch.polls


def _conclude(batch: Batch, context: RequestContext, inner: Inner) -> Iterator[Result]:
    ending = batch.ending
    for index, item in enumerate(batch.items):
        scripted = batch.script.items.get(item.id)
        if scripted == "error":
            yield _failed_result(item, context, inner, Problem("server"))
        elif scripted is not None:
            yield Result(item, scripted)
        elif (ending == "expired" or ending == "canceled") and index >= batch.script.finished:  # noqa: PLR1714 - narrows
            yield Result(item, ending)
        elif ending != "failed":
            yield _answer(item, context, inner)


def _exchange(item: Item, context: RequestContext, inner: Inner) -> Exchange:
    body = msgspec.json.encode(item.body)
    return replace(context.exchange, method="POST", path=inner.path, query={}, params=inner.params, body=body)


def _answer(item: Item, context: RequestContext, inner: Inner) -> Result:
    inside = replace(context, exchange=_exchange(item, context, inner), api=inner.api, fault=NO_FAULT, turn=None)
    if item.body.get("stream"):
        return _failed_result(item, context, inner, Problem("invalid", "Batches have no streaming.", param="stream"))
    try:
        answered = inner.operation(inside)
    except Refused as refused:
        return _failed_result(item, context, inner, refused.problem)
    if inside.fault.problem is not None or not isinstance(answered, Reply):
        return _failed_result(item, context, inner, inside.fault.problem or Problem("server"))
    return Result(item, "succeeded", answered.status, answered.body)


def _failed_result(item: Item, context: RequestContext, inner: Inner, problem: Problem) -> Result:
    reply = inner.refusal(problem, _exchange(item, context, inner))
    return Result(item, "errored", reply.status, reply.body)


def counts(batch: Batch) -> Mapping[Outcome, int]:
    found: dict[Outcome, int] = {}
    for result in batch.results or ():
        found[result.outcome] = found.get(result.outcome, 0) + 1
    return found


def page(context: RequestContext, ids: Sequence[str], *, limit: str, after: str, usual: int) -> tuple[list[str], bool]:
    """A page of ids, newest first; `after` is the last id of the previous page."""
    newest = list(reversed(ids))
    requested = context.exchange.query.get(limit, "")
    size = int(requested) if requested.isdecimal() and int(requested) else usual
    last = context.exchange.query.get(after, "")
    start = newest.index(last) + 1 if last in newest else 0
    return newest[start : start + size], start + size < len(newest)
