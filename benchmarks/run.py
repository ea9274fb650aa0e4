"""Measures dragoman and installed peers against the floor. README.md explains the numbers."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from benchmarks import candidates, corpus, edges, imports, memory, peers, recorded, report
from benchmarks.bodies import FIRST, LATER, Format
from benchmarks.candidates import Candidate
from benchmarks.cases import CASES, Case
from benchmarks.contest import Contest
from benchmarks.corpus import Kind
from benchmarks.recorded import Selection
from benchmarks.report import Report

# Noise lasts for seconds and only adds time. So the time for a number is cut into slices, with all others in
# between, and a number that is still over its limit gets more slices.
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
    only: str | None
    case: str | None
    seconds: float
    collector: bool
    source: Format | None
    target: Format | None
    kind: Kind | None
    bodies: int
    all: bool
    rounds: int
    own: list[Path]

    def selection(self) -> Selection:
        """The real bodies that the options ask for."""
        every = (*FIRST, *LATER)
        return Selection(
            kinds=corpus.KINDS if self.kind is None else (self.kind,),
            sources=every if self.source is None else (self.source,),
            targets=every if self.target is None else (self.target,),
            bodies=None if self.all else self.bodies,
            rounds=self.rounds,
            collector=self.collector,
            own=tuple(self.own),
        )

    @property
    def is_focused(self) -> bool:
        return self.source is not None or self.target is not None or self.kind is not None

    @property
    def with_recorded(self) -> bool:
        return self.only in {None, "recorded"} and self.case is None

    @property
    def with_synthetic(self) -> bool:
        return (self.only in {None, "synthetic"} and not self.is_focused and not self.own) or self.case is not None

    @property
    def with_edges(self) -> bool:
        return self.only in {None, "edges"} and self.case is None and not self.is_focused and not self.own


def main() -> int:
    options = _options()
    result = _measured(options)
    print(_RENDERINGS[options.rendering](result))
    for miss in result.known_misses:
        print(f"over its limit, as before: {miss}", file=sys.stderr)
    for failure in result.failures:
        print(f"over its limit: {failure}", file=sys.stderr)
    return 1 if options.check and result.failures else 0


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    rendering = parser.add_mutually_exclusive_group()
    for name in ("markdown", "json"):
        rendering.add_argument(f"--{name}", dest="rendering", action="store_const", const=name, help=f"print {name}")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if dragoman is over a limit, or over what was reached before",
    )
    parser.add_argument(
        "--no-peers", dest="peers", action="store_false", help="only dragoman, even if peers are installed"
    )
    only = parser.add_mutually_exclusive_group()
    for name, words in (
        ("recorded", "real bodies and streams"),
        ("synthetic", "made-up bodies, the import, memory"),
        ("edges", "one unusual trait against a body without it"),
    ):
        only.add_argument(f"--{name}", dest="only", action="store_const", const=name, help=f"only {words}")
    every = (*FIRST, *LATER)
    parser.add_argument("--from", dest="source", choices=every, help="real bodies of this format only")
    parser.add_argument("--to", dest="target", choices=every, help="real bodies into this format only")
    parser.add_argument("--kind", choices=corpus.KINDS, help="real bodies of this kind only")
    parser.add_argument("--bodies", type=int, default=30, help="real bodies for each pair (default: %(default)s)")
    parser.add_argument(
        "--own",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="your own bodies instead of recordings: JSON, JSON Lines, or a recorded event stream",
    )
    parser.add_argument("--all", action="store_true", help="all real bodies instead of a sample; takes an hour")
    parser.add_argument("--rounds", type=int, default=3, help="batches per body and sweep (default: %(default)s)")
    parser.add_argument("--case", choices=[case.name for case in CASES], help="only this made-up case")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each made-up number (default: %(default)s)")
    parser.add_argument("--gc", dest="collector", action="store_true", help="measure with the garbage collector on")
    parser.set_defaults(rendering="text")
    return Options(**vars(parser.parse_args()))


def _measured(options: Options) -> Report:
    whole = options.with_synthetic and options.case is None
    cost = imports.measure() if whole else None
    cases = [case for case in CASES if options.case in {None, case.name}] if options.with_synthetic else []
    rows = recorded.measure(options.selection()) if options.with_recorded else []
    unusual = edges.measure() if options.with_edges else []
    contests = []
    versions = {}
    for candidate in _candidates(options):
        versions[candidate.name] = candidate.version
        contests += _contests(candidate, cases, options)
        if not candidate.held_to_limits:
            recorded.measure_peer(candidate, rows, rounds=options.rounds)
    memory_rows = memory.measure() if whole else ()
    return Report(versions=versions, contests=contests, imports=cost, memory=memory_rows, rows=rows, edges=unusual)


def _candidates(options: Options) -> Iterator[Candidate]:
    """Dragoman first; each peer is imported only after the previous ones, because some import a lot."""
    yield candidates.dragoman()
    if options.peers:
        yield from peers.installed()


def _contests(candidate: Candidate, cases: list[Case], options: Options) -> list[Contest]:
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
