"""Runs the catalogue of `dragoman fidelity` on other libraries, with the same judge.

    python benchmarks/fidelity_peers.py                 # every peer that is installed, side by side
    python benchmarks/fidelity_peers.py --json FILE     # the same, kept for the documentation

Caveats. The examples are encoded by dragoman with native fields of the source only: what a format does not have is not
tested. The results are decoded by dragoman's decoders, which other tests check with recorded traffic; what they cannot
decode counts as lost. On the way back, a library uses its own reader and writer. Warnings count as reports, exceptions
as refusals; everything else that does not come back counts as a silent loss. Libraries are called at their conversion
functions (see benchmarks/peers): the code around those in their own clients or gateways may keep or lose more.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

import msgspec

from benchmarks import bodies, peers
from benchmarks.candidates import Candidate, Job
from dragoman.fidelity import tables
from dragoman.fidelity.cases import MODELS, Kind
from dragoman.fidelity.interpreters import Crossing, Dragoman, Interpreter, Refused, Translation
from dragoman.fidelity.matrix import Matrix, cells, matrix_of
from dragoman.loss import Loss

FORMATS: Final = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini",
    "bedrock-converse",
    "ollama-chat",
)
_FIRST: Final = ("openai-chat", "anthropic-messages", "gemini")
# Libraries that take a whole body, and the formats their adapters take. The others only write requests of one kind.
PEER_FORMATS: Final = {
    "llm-rosetta": (*_FIRST, "openai-responses"),
    "litellm": (*_FIRST, "bedrock-converse", "ollama-chat"),
    "any-llm": _FIRST,
}
PAIRS: Final = [(source, target) for source in FORMATS for target in FORMATS if source != target]
_JOBS: Final[dict[Kind, Job]] = {"request": Job.REQUEST, "response": Job.RESPONSE, "stream": Job.STREAM}
# Keys at the top of a request in google-genai, although its own values have them in the config.
_AT_THE_TOP: Final = ("systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent")
_OF_THE_CLIENT: Final = ("httpOptions", "automaticFunctionCalling", "abortSignal")


class Peer:
    """A library behind its adapter."""

    def __init__(self, candidate: Candidate) -> None:
        self.name = candidate.name
        self.version = candidate.version
        self._candidate = candidate

    def offers(self, kind: Kind, source: str, target: str) -> bool:
        if not {source, target} <= set(PEER_FORMATS[self.name]):
            return False
        try:
            return self._work(kind, source, target) is not None
        except KeyError:  # of a table in the adapter: the pair is not in it
            return False

    def translate(self, content: bytes, crossing: Crossing) -> Translation:
        work = self._work(crossing.kind, crossing.source, crossing.target)
        given = list(_chunks(content)) if crossing.kind == "stream" else content
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            try:
                crossed = work(given)
            except Exception as error:
                raise Refused(f"{type(error).__name__}: {error}") from error
        if crossing.kind == "request" and crossing.target == "gemini":
            crossed = _as_sent(crossed)
        user_warnings = [warning for warning in warned if warning.category is UserWarning]
        return Translation(
            crossed, tuple(Loss("$", str(warning.message), "dropped", "warned") for warning in user_warnings)
        )

    def _work(self, kind: Kind, source: Any, target: Any) -> Any:
        offered = self._candidate.streamer if kind == "stream" else self._candidate.translator
        return offered(_JOBS[kind], source, target)


def _chunks(content: bytes) -> Iterator[bytes]:
    """One event each, as the adapters take them."""
    for event in content.replace(b"\r\n", b"\n").split(b"\n\n"):
        if b"data: " in event:
            yield event


def _as_sent(content: bytes) -> bytes:
    """Values of google-genai in wire form."""
    body = json.loads(content)
    config = body.pop("config", None)
    if config is None:
        return content
    for key in _OF_THE_CLIENT:
        config.pop(key, None)
    top = {key: config.pop(key) for key in _AT_THE_TOP if key in config}
    instruction = top.get("systemInstruction")
    if isinstance(instruction, str):
        top["systemInstruction"] = {"parts": [{"text": instruction}]}
    return json.dumps({**body, **top, **({"generationConfig": config} if config else {})}).encode()


def _judged(interpreter: Interpreter) -> Matrix:
    every = (cell for source, target in PAIRS for cell in cells(interpreter, (source,), (target,)))
    return matrix_of(interpreter, every, FORMATS)


def table(matrices: list[Matrix]) -> Iterator[str]:
    """A table of pairs by libraries, over the cases that each library supports."""
    names = [f"{matrix.name} {matrix.version}" for matrix in matrices]
    offered = [pair for pair in PAIRS if any(matrix.counts(*pair) for matrix in matrices[1:])]
    rows = ([*pair, *(tables.count_verdicts(matrix, *pair) for matrix in matrices)] for pair in offered)
    return tables.table(["from", "to", *names], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the verdicts to this file")
    arguments = parser.parse_args()
    bodies.MODELS.update({format: MODELS[format] for format in bodies.MODELS})  # the same models for all
    interpreters: list[Interpreter] = [
        Dragoman(),
        *(Peer(each) for each in peers.installed() if each.name in PEER_FORMATS),
    ]
    matrices = [matrix for matrix in map(_judged, interpreters) if any(matrix.rows.values())]
    print(*table(matrices), sep="\n")
    if arguments.json is not None:
        kept = {"date": datetime.now(UTC).date().isoformat(), "interpreters": matrices}
        arguments.json.write_bytes(msgspec.json.encode(kept) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
