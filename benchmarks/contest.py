"""One candidate on one case and pair of formats."""

from math import inf

from benchmarks.bodies import Format
from benchmarks.candidates import Candidate
from benchmarks.cases import Case, floor, ground
from benchmarks.crossing import shortcoming
from benchmarks.measure import Best, Runner, race


class Contest:
    """Measured slice by slice: the more slices, the surer the number."""

    def __init__(self, candidate: Candidate, case: Case, source: Format, target: Format) -> None:
        self.candidate = candidate
        self.case = case
        self.source = source
        self.target = target
        self.remark: str | None = None
        self.best = Best()
        self.ground = ground(case, source)
        self._translate = candidate.translator(case.job, source, target)
        self._try()

    @property
    def ratio(self) -> float | None:
        return None if self.best.nanoseconds == inf else self.best.nanoseconds / self.ground.floor.nanoseconds

    @property
    def slow(self) -> bool:
        return self.candidate.held_to_limits and self.ratio is not None and self.ratio > self.case.limit

    @property
    def broken(self) -> bool:
        """Whether a promise is: too slow, incomplete, or not there at all."""
        return self.candidate.held_to_limits and (self.ratio is None or self.slow or self.remark is not None)

    def measure(self, *, seconds: float, collector: bool) -> None:
        """Adds one slice. Nothing happens where the pair is not offered or the library fails."""
        translate, given = self._translate, self.ground.body
        if translate is None:
            return
        race(
            Runner(lambda: translate(given), self.best),
            Runner(lambda: floor(given), self.ground.floor),
            seconds=seconds,
            collector=collector,
        )

    def _try(self) -> None:
        if self._translate is None:
            return
        try:
            self.remark = shortcoming(self.case.conversation, self.target, self._translate(self.ground.body))
        except Exception as error:  # noqa: BLE001 - whatever a library raises, the others still get their turn
            self._translate = None
            self.remark = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
