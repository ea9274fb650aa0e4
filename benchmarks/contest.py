"""Measures one candidate on one case and pair of formats."""

from collections.abc import Callable
from math import inf

from benchmarks import streams
from benchmarks.bodies import Format
from benchmarks.candidates import Candidate
from benchmarks.cases import Case, ground
from benchmarks.conversations import Assistant
from benchmarks.crossing import shortcoming, stream_shortcoming
from benchmarks.limits import Verdict, verdict
from benchmarks.measure import Best, Runner, race


class Contest:
    """Measured in slices: more slices give a more reliable number."""

    def __init__(self, candidate: Candidate, case: Case, source: Format, target: Format) -> None:
        self.candidate = candidate
        self.case = case
        self.source = source
        self.target = target
        self.remark: str | None = None
        self.best = Best()
        self.ground = ground(case, source)
        self._work = self._offered()
        self._try()

    @property
    def ratio(self) -> float | None:
        return None if self.best.nanoseconds == inf else self.best.nanoseconds / self.ground.floor.nanoseconds

    @property
    def limit(self) -> float:
        return self.case.limit_of(self.source, self.target)

    @property
    def slow(self) -> bool:
        return self._verdict != "within"

    @property
    def known(self) -> bool:
        """Whether it is over its limit, and no slower than was reached before."""
        return self._verdict == "known"

    @property
    def broken(self) -> bool:
        """Whether it is too slow, incomplete or missing."""
        faulty = self.ratio is None or self.remark is not None
        return self.candidate.held_to_limits and (faulty or self._verdict == "over")

    @property
    def _verdict(self) -> Verdict:
        if self.ratio is None or not self.candidate.held_to_limits:
            return "within"
        return verdict(self.ratio, self.limit, self.case.reached_of(self.source, self.target))

    def measure(self, *, seconds: float, collector: bool) -> None:
        """Adds one slice. Does nothing if the pair is not supported or the library fails."""
        if self._work is None:
            return
        race(
            Runner(self._work, self.best),
            Runner(self.ground.floor_work, self.ground.floor),
            seconds=seconds,
            collector=collector,
        )

    def _offered(self) -> Callable[[], bytes | Assistant] | None:
        pair, chunks = (self.case.job, self.source, self.target), self.ground.chunks
        if not {self.source, self.target} <= self.candidate.formats:
            return None
        if self.case.job.streamed:
            streamer = self.candidate.streamer(*pair)
            return None if streamer is None else lambda: streamer(chunks)
        translate, (body,) = self.candidate.translator(*pair), chunks
        return None if translate is None else lambda: translate(body)

    def _shortcoming(self, result: bytes | Assistant) -> str | None:
        if isinstance(result, Assistant):
            return stream_shortcoming(self.case.answer, result)
        if self.case.job.streamed:
            return stream_shortcoming(self.case.answer, streams.answer(result, self.target))
        return shortcoming(self.case.conversation, self.target, result)

    def _try(self) -> None:
        if self._work is None:
            return
        try:
            self.remark = self._shortcoming(self._work())
        except Exception as error:  # noqa: BLE001 - a failing library must not stop the others
            self._work = None
            self.remark = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
