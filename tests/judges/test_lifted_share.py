"""How many recorded bodies and stream events have objects that the wire structs do not model: at most 2 % of each file.

`python scripts/lifted_keys.py` names the keys that cause it.
"""

import pytest

from benchmarks import corpus
from tests.support.cases import each
from tests.support.lifting import lifted_events, lifted_keys
from tests.support.promises import promise
from tests.support.recordings import VARIABLE, recordings_dir

LIMIT = 0.02
BODIES = 120
"""Of each file, drawn with a fixed seed. A smaller file is read whole."""
STREAMS = 40

FILES = {**corpus.VENDOR_FILES, **corpus.COMPATIBLE_FILES}

pytestmark = [
    promise("core:few-lifted"),
    pytest.mark.skipif(
        recordings_dir() is None, reason=f"no recordings beside this repository, and {VARIABLE} is not set"
    ),
]


@each("file", FILES)
@each("kind", corpus.KINDS[:2])
def test_few_recorded_bodies_are_lifted(file: str, kind: corpus.Kind) -> None:
    found = [lifted_keys(sample, kind) for sample in corpus.recorded(file, FILES[file], kind, BODIES)]
    read = [lifted for lifted in found if lifted is not None]
    lifted = [keys for keys in read if keys]
    assert len(lifted) <= LIMIT * len(read), f"{len(lifted)} of {len(read)}: {lifted}"


@pytest.mark.parametrize("file", FILES)
def test_few_recorded_events_are_lifted(file: str) -> None:
    events = lifted = 0
    for sample in corpus.recorded(file, FILES[file], "stream", STREAMS):
        events += len(sample.chunks)
        lifted += lifted_events(sample)
    assert lifted <= LIMIT * events, f"{lifted} of {events}"
