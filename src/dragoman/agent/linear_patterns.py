"""Matches regular expressions of JSON Schemas in time that grows linearly with the text.

A schema may come from an MCP server and the text from a model, and `re` backtracks: `^(a+)+$` practically never ends on
thirty characters. Patterns that can backtrack are run as a set of states instead (Thompson's construction). What a set
of states cannot express (look-around, back references, inline flags) is not checked, and neither are patterns that
Python cannot parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

Test: TypeAlias = Callable[[str], bool]
"""Whether a character fits."""
Place: TypeAlias = Callable[[str, int], bool]
"""Whether a position in the text fits."""
_MOST_STATES = 4_000
"""Limit on states: a pattern such as (a{1,1000}){1,1000} is practically endless."""


class _Unsupported(Exception):
    """The pattern needs more than a set of states."""


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> Callable[[str], bool] | None:
    try:
        parsed = _parser.parse(pattern)
        if _cannot_backtrack(parsed):
            search = re.compile(pattern).search
            return lambda text: search(text) is not None
        return _States(parsed).search
    except (re.error, OverflowError, RecursionError, _Unsupported):  # ECMA 262 has syntax that Python lacks
        return None


def matches(pattern: str, text: str) -> bool:
    """Return whether the text contains a match; True for a pattern that cannot be checked."""
    matcher = _matcher(pattern)
    return matcher is None or matcher(text)


_SINGLE = {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN}


def _cannot_backtrack(parsed: Any) -> bool:
    """Return whether `re` needs linear time: anchored, single characters, at most one repetition of variable length."""
    items = list(parsed)
    if not items or items[0] != (codes.AT, codes.AT_BEGINNING) or parsed.state.flags & ~re.UNICODE:
        return False
    variable = 0
    for code, argument in items[1:]:
        if code is codes.MAX_REPEAT and len(argument[2]) == 1 and argument[2][0][0] in _SINGLE:
            variable += argument[0] != argument[1]
        elif code not in _SINGLE and code is not codes.AT:
            return False
    return variable <= 1


class _States:
    """A pattern as a set of states: each waits for a character, or leads on at once, or only at some positions."""

    def __init__(self, parsed: Any) -> None:
        if parsed.state.flags & ~re.UNICODE:
            raise _Unsupported
        self._tests: list[Test | None] = []
        self._places: list[Place | None] = []
        self._next: list[list[int]] = []
        self._end = self._state()
        self._start = self._sequence(parsed, self._end)

    # ── construction, from the end to the beginning ──

    def _state(self, *following: int, test: Test | None = None, place: Place | None = None) -> int:
        if len(self._next) >= _MOST_STATES:
            raise _Unsupported
        self._tests.append(test)
        self._places.append(place)
        self._next.append(list(following))
        return len(self._next) - 1

    def _sequence(self, items: Any, following: int) -> int:
        for code, argument in reversed(list(items)):
            following = self._item(code, argument, following)
        return following

    def _item(self, code: Any, argument: Any, following: int) -> int:
        if code in _SINGLE:
            return self._state(following, test=_test(code, argument))
        if code is codes.AT:
            return self._state(following, place=_place(argument))
        if code is codes.BRANCH:
            return self._state(*(self._sequence(branch, following) for branch in argument[1]))
        if code is codes.SUBPATTERN and not argument[1] and not argument[2]:
            return self._sequence(argument[3], following)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            return self._repeat(argument[0], argument[1], argument[2], following)
        raise _Unsupported

    def _repeat(self, least: int, most: int, body: Any, following: int) -> int:
        if most is codes.MAXREPEAT:
            loop = self._state(following)
            self._next[loop].append(self._sequence(body, loop))
            following = loop
        else:
            end = following
            for _ in range(most - least):
                following = self._state(end, self._sequence(body, following))
        for _ in range(least):
            following = self._sequence(body, following)
        return following

    # ── running ──

    def search(self, text: str) -> bool:
        waiting: set[int] = set()
        for position in range(len(text) + 1):
            waiting.add(self._start)  # a match may begin anywhere
            reached = self._follow_empty(waiting, text, position)
            if self._end in reached:
                return True
            if position < len(text):
                waiting = set(self._read(reached, text[position]))
        return False

    def _follow_empty(self, states: set[int], text: str, position: int) -> set[int]:
        """Return the states and all that they lead to without consuming a character."""
        reached: set[int] = set()
        stack = list(states)
        while stack:
            state = stack.pop()
            if state in reached:
                continue
            reached.add(state)
            place = self._places[state]
            if self._tests[state] is None and (place is None or place(text, position)):
                stack += self._next[state]
        return reached

    def _read(self, states: set[int], character: str) -> Iterator[int]:
        for state in states:
            test = self._tests[state]
            if test is not None and test(character):
                yield from self._next[state]


def _test(code: Any, argument: Any) -> Test:
    if code is codes.ANY:
        return lambda character: character != "\n"
    if code is codes.LITERAL:
        wanted = chr(argument)
        return lambda character: character == wanted
    if code is codes.NOT_LITERAL:
        unwanted = chr(argument)
        return lambda character: character != unwanted
    members = list(argument)
    negated = bool(members) and members[0][0] is codes.NEGATE
    tests = [_member(*member) for member in members[negated:]]
    return lambda character: any(test(character) for test in tests) is not negated


_CATEGORIES: dict[Any, Test] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda character: not character.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    codes.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
    codes.CATEGORY_NOT_WORD: lambda character: not (character.isalnum() or character == "_"),
}


def _member(code: Any, argument: Any) -> Test:
    if code is codes.RANGE:
        low, high = argument
        return lambda character: low <= ord(character) <= high
    if code is codes.CATEGORY:
        return _CATEGORIES[argument]
    return _test(code, argument)


def _place(code: Any) -> Place:
    places: dict[Any, Place] = {
        codes.AT_BEGINNING: lambda _text, position: position == 0,
        codes.AT_BEGINNING_STRING: lambda _text, position: position == 0,
        codes.AT_END: lambda text, position: position == len(text) or (position == len(text) - 1 and text[-1] == "\n"),
        codes.AT_END_STRING: lambda text, position: position == len(text),
        codes.AT_BOUNDARY: _is_boundary,
        codes.AT_NON_BOUNDARY: lambda text, position: not _is_boundary(text, position),
    }
    if code not in places:
        raise _Unsupported
    return places[code]


def _is_boundary(text: str, position: int) -> bool:
    is_word = _CATEGORIES[codes.CATEGORY_WORD]
    before = position > 0 and is_word(text[position - 1])
    after = position < len(text) and is_word(text[position])
    return before is not after
