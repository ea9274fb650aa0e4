"""Cases: what is measured, for which formats, with which limits. `--check` enforces the limits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Final

import orjson

from benchmarks import bodies, conversations, streams
from benchmarks.bodies import FIRST, LATER, Format
from benchmarks.candidates import Job
from benchmarks.conversations import Assistant, Conversation
from benchmarks.measure import Best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # compared by identity: a conversation is too large
class Case:
    name: str
    job: Job
    limit: float  # times the floor, for every pair of the first formats
    reached: float | None = None  # what is reached if the limit is not, with room for noise
    conversation: Conversation

    @property
    def pairs(self) -> tuple[tuple[Format, Format], ...]:
        """Pairs of formats; decoding alone has no target."""
        if self.job is Job.CALLS:
            return tuple((format, format) for format in (*FIRST, *LATER))
        return tuple(permutations((*FIRST, *LATER), 2))

    def limit_of(self, source: Format, target: Format) -> float:
        return self.limit * self._allowance(source, target)

    def reached_of(self, source: Format, target: Format) -> float | None:
        return None if self.reached is None else self.reached * self._allowance(source, target)

    @staticmethod
    def _allowance(source: Format, target: Format) -> float:
        return ALLOWANCE if {source, target} & set(LATER) else 1.0

    @property
    def answer(self) -> Assistant:
        """The single turn of a case that measures an answer."""
        (answer,) = self.conversation.turns
        if not isinstance(answer, Assistant):
            raise TypeError(f"{self.name}: an answer is one assistant turn, not {answer!r}")
        return answer


PAIRS: Final[tuple[tuple[Format, Format], ...]] = tuple(permutations(FIRST, 2))
ALLOWANCE: Final = 1.5  # times the limit, for the formats that came later

_STREAMED: Final = Conversation(turns=(conversations.streamed(),))

CASES: Final = (
    Case(name="small request", job=Job.REQUEST, limit=3.2, conversation=conversations.small()),
    Case(name="agent history", job=Job.REQUEST, limit=1.6, reached=2.7, conversation=conversations.history()),
    Case(name="2 MB of text", job=Job.REQUEST, limit=1.1, reached=1.4, conversation=conversations.big_text()),
    Case(
        name="small response",
        job=Job.RESPONSE,
        limit=3.0,
        reached=5.0,
        conversation=Conversation(turns=(conversations.ANSWER,)),
    ),
    Case(name="stream to calls", job=Job.CALLS, limit=2.8, conversation=_STREAMED),
    Case(name="stream to stream", job=Job.STREAM, limit=4.0, conversation=_STREAMED),
)

IMPORT_LIMIT: Final = 2.0  # times `import msgspec`


@dataclass(frozen=True, slots=True)
class Ground:
    """The input, and its floor, which is measured together with every candidate."""

    chunks: tuple[bytes, ...]  # a body is one chunk
    floor_work: Callable[[], object]
    floor: Best

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


@cache
def ground(case: Case, format: Format) -> Ground:
    if not case.job.streamed:
        body = _body(case, format)
        return Ground((body,), lambda: floor(body), Best())
    chunks = streams.chunks(case.answer, format)
    payloads = streams.payloads(b"".join(chunks), format)
    return Ground(chunks, lambda: [floor(payload) for payload in payloads], Best())


def _body(case: Case, format: Format) -> bytes:
    if case.job is Job.REQUEST:
        return bodies.request(case.conversation, format)
    return bodies.response(case.answer, format)


def floor(body: bytes) -> bytes:
    """Parses and writes the same JSON with orjson, without interpreting it."""
    return orjson.dumps(orjson.loads(body))
