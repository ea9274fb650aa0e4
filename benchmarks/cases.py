"""What is measured, between which formats, and what each may cost: the limits are data, `--check` enforces them."""

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Final

import orjson

from benchmarks import bodies, conversations
from benchmarks.bodies import FORMATS, Format
from benchmarks.candidates import Job
from benchmarks.conversations import Assistant, Conversation
from benchmarks.measure import Best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # by identity: a conversation is too big to compare
class Case:
    name: str
    job: Job
    limit: float  # times the floor, for every pair
    conversation: Conversation


PAIRS: Final[tuple[tuple[Format, Format], ...]] = tuple(permutations(FORMATS, 2))

CASES: Final = (
    Case(name="small request", job=Job.REQUEST, limit=2.5, conversation=conversations.small()),
    Case(name="agent history", job=Job.REQUEST, limit=2.0, conversation=conversations.history()),
    Case(name="2 MB of text", job=Job.REQUEST, limit=1.4, conversation=conversations.big_text()),
    Case(name="small response", job=Job.RESPONSE, limit=3.0, conversation=Conversation(turns=(conversations.ANSWER,))),
)

IMPORT_LIMIT: Final = 2.0  # times `import msgspec`


@dataclass(frozen=True, slots=True)
class Ground:
    """A body, and its floor: everybody who is measured on the body helps to find it."""

    body: bytes
    floor: Best


@cache
def ground(case: Case, format: Format) -> Ground:
    return Ground(_body(case, format), Best())


def _body(case: Case, format: Format) -> bytes:
    if case.job is Job.REQUEST:
        return bodies.request(case.conversation, format)
    (answer,) = case.conversation.turns
    if not isinstance(answer, Assistant):
        raise TypeError(f"{case.name}: a response is one assistant turn, not {answer!r}")
    return bodies.response(answer, format)


def floor(body: bytes) -> bytes:
    """What reading and writing the same JSON costs without understanding any of it."""
    return orjson.dumps(orjson.loads(body))
