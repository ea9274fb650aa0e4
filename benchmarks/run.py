"""Measures dragoman, and the peers that are installed, against the floor. README.md says what to make of it."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script finds its own folder, not the one around it

from benchmarks import candidates, imports, memory, peers, report
from benchmarks.candidates import Candidate
from benchmarks.cases import CASES, Case
from benchmarks.contest import Contest
from benchmarks.report import Report

# Noise comes in phases of seconds and can only add. So the time for a number is cut into slices, with all others in
# between; and a number that is still over its limit gets more of them.
_SWEEPS: Final = 4
_MORE_SWEEPS: Final = 12

_RENDERINGS: Final[dict[str, Callable[[Report], str]]] = {
    "text": report.text,
    "markdown": report.markdown,
    "json": report.json,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    rendering: str
    check: bool
    peers: bool
    case: str | None
    seconds: float
    collector: bool


def main() -> int:
    options = _options()
    cases = [case for case in CASES if options.case in {None, case.name}]
    cost = imports.measure() if options.case is None else None
    contests = [contest for candidate in _candidates(options) for contest in _measured(candidate, cases, options)]
    held = memory.measure() if options.case is None else ()
    result = Report(contests=contests, imports=cost, memory=held)
    print(_RENDERINGS[options.rendering](result))
    for failure in result.failures:
        print(f"not as promised: {failure}", file=sys.stderr)
    return 1 if options.check and result.failures else 0


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    rendering = parser.add_mutually_exclusive_group()
    for name in ("markdown", "json"):
        rendering.add_argument(f"--{name}", dest="rendering", action="store_const", const=name, help=f"print {name}")
    parser.add_argument("--check", action="store_true", help="exit with 1 if dragoman is over a limit")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="only dragoman, whatever is installed")
    parser.add_argument("--case", choices=[case.name for case in CASES], help="only this case, and not the import")
    parser.add_argument("--seconds", type=float, default=0.5, help="spent on each number (default: %(default)s)")
    parser.add_argument("--gc", dest="collector", action="store_true", help="measure with the garbage collector on")
    parser.set_defaults(rendering="text")
    return Options(**vars(parser.parse_args()))


def _candidates(options: Options) -> Iterator[Candidate]:
    """Dragoman first, and each peer imported only when all before it are done: some bring half the machine along."""
    yield candidates.dragoman()
    if options.peers:
        yield from peers.installed()


def _measured(candidate: Candidate, cases: list[Case], options: Options) -> list[Contest]:
    contests = [Contest(candidate, case, source, target) for case in cases for source, target in case.pairs]
    for sweep in range(1, _SWEEPS + _MORE_SWEEPS + 1):
        wanted = contests if sweep <= _SWEEPS else [contest for contest in contests if contest.slow]
        if not wanted:
            break
        print(f"measuring {candidate.name}, sweep {sweep}: {len(wanted)} numbers", file=sys.stderr)
        for contest in wanted:
            contest.measure(seconds=options.seconds / _SWEEPS, collector=options.collector)
    return contests


if __name__ == "__main__":
    sys.exit(main())
