"""The two tools that read outputs cut from the context. What they return is bounded, and never cut again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from dragoman.agent.graphemes import clip
from dragoman.agent.output_stores import OutputStore
from dragoman.agent.threads import in_thread
from dragoman.agent.tools import Tool, tool

LINE = 1000
"""How many characters of a line are shown at once."""
ANSWER = 48 * 1024
"""How many characters an answer may have."""
MATCHES = 50
SECONDS = 2.0
"""How long a regular expression may search."""

Count = Annotated[int, Meta(ge=0)]


def output_tools(store: OutputStore) -> tuple[Tool, Tool]:
    async def text_of(reference: str) -> str | None:
        try:
            return await in_thread(store.load, reference) if store.blocks else store.load(reference)
        except Exception:  # noqa: BLE001 - reported to the model as not found, whatever the reason
            return None

    @tool(read_only=True, keeps_output=False)
    async def tool_output_read(
        reference: str, offset: Count = 0, limit: Count = 200, character_offset: Count = 0
    ) -> str:
        """Read stored output of an earlier call, by lines.

        Args:
            reference: the reference in the mark of the cut output
            offset: the first line, counted from 0
            limit: how many lines
            character_offset: where to begin within each line, for lines that are longer than what is shown at once

        """
        text = await text_of(reference)
        return _unknown(reference) if text is None else read_lines(text, offset, limit, character_offset)

    @tool(read_only=True, keeps_output=False)
    async def tool_output_grep(
        reference: str, pattern: str, *, regex: bool = False, context: Count = 0, limit: Count = MATCHES
    ) -> str:
        """Search stored output of an earlier call for lines.

        Args:
            reference: the reference in the mark of the cut output
            pattern: the text to look for, taken literally
            regex: read the pattern as a regular expression
            context: lines to show before and after each match
            limit: how many matches to show, 50 at most

        """
        text = await text_of(reference)
        if text is None:
            return _unknown(reference)
        return await search_lines(text, pattern, regex=regex, context=context, limit=min(limit, MATCHES))

    return tool_output_read, tool_output_grep


def _unknown(reference: str) -> str:
    return f"no output is stored under {reference!r}; cut outputs end with their reference"


def read_lines(text: str, offset: int, limit: int, character_offset: int = 0) -> str:
    lines = text.splitlines()
    if offset >= len(lines):
        return f"the output has {len(lines)} lines: there is none at offset {offset}"
    chosen = range(offset, min(offset + limit, len(lines)))
    shown, next_line = _number_lines(lines, chosen, character_offset)
    if next_line < len(lines):
        shown.append(f"[{len(lines) - next_line} more lines: continue with offset {next_line}]")
    return "\n".join(shown)


def _number_lines(lines: Sequence[str], chosen: Iterable[int], character_offset: int = 0) -> tuple[list[str], int]:
    """Return as many of the lines as one answer holds, and the number of the first line that did not fit."""
    shown: list[str] = []
    room = ANSWER
    following = 0
    for index in chosen:
        line = f"{index}: {_window(lines[index], character_offset)}"
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line)
        following = index + 1
    return shown, following


def _window(line: str, offset: int) -> str:
    if offset == 0 and len(line) <= LINE:
        return line
    start, end = clip(line, offset, LINE)
    rest = len(line) - end
    return line[start:end] + (f" [{rest} more characters: character_offset {end}]" if rest > 0 else "")


async def search_lines(text: str, pattern: str, *, regex: bool, context: int, limit: int) -> str:
    lines = text.splitlines()
    if not pattern:
        return "the pattern is empty"
    try:
        found = await _search(lines, pattern) if regex else [i for i, line in enumerate(lines) if pattern in line]
    except TimeoutError:
        return f"the search took longer than {SECONDS:g} seconds; try a simpler pattern"
    except ValueError as error:
        return f"this is not a valid regular expression: {error}"
    if not found:
        return f"no line matches, of {len(lines)}"
    shown, _ = _number_lines(lines, _around(found[:limit], context, len(lines)))
    heading = f"[{len(found)} of {len(lines)} lines match"
    return "\n".join([*shown, f"{heading}; the first {limit} are shown]" if len(found) > limit else f"{heading}]"])


def _around(found: Sequence[int], context: int, count: int) -> list[int]:
    """Return the matching lines and those near them, each once, in order."""
    lines: list[int] = []
    following = 0
    for index in found:
        end = min(index + context + 1, count)
        lines += range(max(index - context, following), end)
        following = max(following, end)
    return lines


# Run in another process, because a search in this one could not be stopped: `re` holds the interpreter until it is
# done.
_SEARCH = """
import json, re, sys
pattern, lines = json.load(sys.stdin)
try:
    search = re.compile(pattern).search
except (re.error, OverflowError, RecursionError) as error:
    print(json.dumps([str(error), []]))
else:
    print(json.dumps(["", [index for index, line in enumerate(lines) if search(line)]]))
"""


async def _search(lines: Sequence[str], pattern: str) -> list[int]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _SEARCH, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        answer, _ = await asyncio.wait_for(process.communicate(msgspec.json.encode((pattern, lines))), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    problem, found = msgspec.json.decode(answer, type=tuple[str, list[int]])
    if problem:
        raise ValueError(problem)
    return found
