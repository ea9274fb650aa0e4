"""Prompt caches, as far as usage tells of them: what was sent before under a marker is read, the rest is written."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.sim.visit import Memory

# Shorter prefixes are not worth caching to any vendor.
SHORTEST = 1024
# OpenAI and Google cache by themselves, in whole blocks.
BLOCK = 128


def marked(memory: Memory, prefixes: Iterable[tuple[str, int]]) -> tuple[int, int]:
    """Tokens read and written, from (name of the prefix, its tokens) at each marker, shortest first."""
    worth = [(name, size) for name, size in prefixes if size >= SHORTEST]
    read = max((size for name, size in worth if name in memory.cached), default=0)
    written = max((size for _, size in worth), default=read) - read
    memory.cached.update(name for name, _ in worth)
    return read, max(written, 0)


def automatic(memory: Memory, turns: Iterable[tuple[str, int]]) -> int:
    """Tokens read by a cache nobody asked for: the longest known run of turns, rounded down to blocks."""
    total = 0
    read = 0
    for name, size in turns:
        total += size
        if name in memory.cached:
            read = total
        memory.cached.add(name)
    return read // BLOCK * BLOCK if read >= SHORTEST else 0
