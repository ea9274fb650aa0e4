"""How many recorded bodies have objects that the wire structs do not model: a share that may only shrink.

`python scripts/lifted_keys.py` names the keys that cause it. The goal is 2 % for every file.
"""

import pytest

from benchmarks import corpus
from tests.support.lifting import lifted_keys
from tests.support.promises import promise
from tests.support.recordings import VARIABLE, recordings_dir

GOAL = 0.02
BODIES = 120
"""Of each file, drawn with a fixed seed."""

# File -> the most that may be lifted of its requests and of its responses, in percent. Lower a number when a codec
# models more; a file that is not named has reached the goal. Tools that came before are read from a memo and not lifted
# again, so the shares of requests depend a little on how often recordings repeat their tools.
AT_MOST: dict[str, tuple[int, int]] = {
    "gemini-generate": (11, 2),  # proto3's other spelling of its keys, snake_case
    "ollama-chat": (14, 2),
    "openai-compat-chat": (4, 23),
    "deepseek-chat": (10, 2),
    "mistral-chat": (13, 5),
    "xai-chat": (7, 2),
    "responses-compat": (2, 3),
}


@promise("core:few-lifted")
@pytest.mark.skipif(recordings_dir() is None, reason=f"no recordings beside this repository, and {VARIABLE} is not set")
@pytest.mark.parametrize("file", [*corpus.VENDOR_FILES, *corpus.COMPATIBLE_FILES])
def test_no_more_bodies_are_lifted_than_listed(file: str) -> None:
    source = {**corpus.VENDOR_FILES, **corpus.COMPATIBLE_FILES}[file]
    kinds: tuple[corpus.Kind, ...] = ("request", "response")
    for kind, percent in zip(kinds, AT_MOST.get(file, (GOAL * 100,) * 2), strict=True):
        found = [lifted_keys(sample, kind) for sample in corpus.recorded(file, source, kind, BODIES)]
        read = [lifted for lifted in found if lifted is not None]
        share = sum(1 for lifted in read if lifted) / len(read)
        assert share <= percent / 100, f"{file}: {share:.1%} of its {kind}s are lifted, {percent} % are listed"
