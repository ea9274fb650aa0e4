"""Words that make readers stumble stay out of the package's docstrings, comments and messages."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.support.promises import promise

SOURCES = Path(__file__).parents[1] / "src" / "dragoman"

# Pattern -> why it is kept out, and what to write instead.
STUMBLING = {
    r"nobody|somebody|whoever": "a riddle: name the client, the caller, the user, the process",
    r"anew|in vain|thought better of": "archaic: again, without success, declined",
    r"is no (?:agent|command|key|object|text|list|number|string)": "say: is not a …, or: Unknown command: …",
    r"(?:is|are|was|were) told (?:as|by|of|so)": "losses and errors are reported; kinds are recognised or named",
    r"a room of|short way|long way": "invented terms: buffer, fast path, full path",
}
PATTERNS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): why for words, why in STUMBLING.items()}

# Sentences that are data, not prose of ours.
ALLOWED = frozenset({"a river carries words between two towns that share no language and nobody loses one"})


def _prose(path: Path) -> list[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if not any(pattern.search(text) for pattern in PATTERNS):  # cutting all files into tokens takes many seconds
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type in {tokenize.COMMENT, tokenize.STRING}]


def _findings(path: Path) -> list[str]:
    return [
        f"{path.relative_to(SOURCES)}:{line}: {found[0]!r} ({why})"
        for line, text in _prose(path)
        if not any(allowed in text for allowed in ALLOWED)
        for pattern, why in PATTERNS.items()
        if (found := pattern.search(text))
    ]


@promise("core:plain-words")
def test_sentences_are_plain() -> None:
    assert [finding for path in sorted(SOURCES.rglob("*.py")) for finding in _findings(path)] == []


@pytest.mark.parametrize("sentence", ["# Whoever asks", '"""It is no command."""', 'raise X("this is told as text")'])
def test_a_stumbling_sentence_is_found(sentence: str) -> None:
    assert any(pattern.search(sentence) for pattern in PATTERNS)
