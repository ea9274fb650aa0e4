"""Prompt caches, as reported in usage: marked prefixes sent before are read, others are written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from dragoman.sim import tokens
from dragoman.sim.conversation_view import Prompt
from dragoman.sim.memory import Memory

# No vendor caches shorter prefixes.
SHORTEST = 1024
# OpenAI and Google cache automatically, in whole blocks.
BLOCK = 128


def count_marked(memory: Memory, prefixes: Iterable[tuple[str, int]]) -> tuple[int, int]:
    """Tokens read and written, from (name of the prefix, its tokens) at each marker, shortest first."""
    worth = [(name, size) for name, size in prefixes if size >= SHORTEST]
    read = max((size for name, size in worth if name in memory.cached), default=0)
    written = max((size for _, size in worth), default=read) - read
    memory.cached.update(name for name, _ in worth)
    return read, max(written, 0)


def count_automatic(memory: Memory, prompt: Prompt) -> int:
    """Tokens read from the automatic cache: the longest known prefix, rounded down to blocks."""
    digest = hashlib.sha256(f"{prompt.model}\0{prompt.tools}".encode())
    total = tokens.count_prompt(replace(prompt, turns=()))
    read = 0
    for turn in prompt.turns:
        digest.update(repr(turn).encode())
        total += tokens.count_turn(turn)
        name = digest.hexdigest()
        if name in memory.cached:
            read = total
        memory.cached.add(name)
    return read // BLOCK * BLOCK if read >= SHORTEST else 0
