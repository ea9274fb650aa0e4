"""Law 10 by construction: every value of every sample body replaced by one of another type, alone.

Such a body is refused with the place of that value, or it is read, and can be written in another format.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import dragoman
from dragoman.errors import DecodeError, EncodeError
from tests.support.cases import each
from tests.support.formats import FORMATS
from tests.support.promises import promise
from tests.support.small_bodies import small_bodies

WRONG: tuple[Any, ...] = ({"unknown": 1}, [0], 1.5, "unknown", True, None)

# (place, place of the error)
ELSEWHERE = {
    ("$.input[0].type", "$.input[1]"),  # Interactions: steps and contents do not mix, and the next one no longer fits
    # Gemini: a number that is not whole is named in the usual spelling
    ("$.generation_config.max_output_tokens", "$.generationConfig.maxOutputTokens"),
}


def _places(value: Any, path: str = "$") -> Iterator[tuple[Any, Any, str]]:
    """Container, key and path of every value within a body."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            place = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
            yield value, key, place
            yield from _places(inner, place)


def _is_near(path: str, place: str) -> bool:
    """Whether one of the two paths leads to the other."""
    longer, shorter = (path, place) if len(path) > len(place) else (place, path)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def _failure(kind: str, name: str, target: str, body: Any, place: str) -> str | None:
    try:
        value = getattr(dragoman, f"decode_{kind}")(json.dumps(body).encode(), name)
    except DecodeError as refused:
        near = _is_near(refused.path, place) or (place, refused.path) in ELSEWHERE
        return None if near else f"refused at {refused.path}: {refused}"
    try:
        encoded = getattr(dragoman, f"encode_{kind}")(value, target)
        encoded.json(), encoded.losses  # reading them works them out
    except EncodeError as refused:
        return None if refused.path else f"no place: {refused}"
    return None


@promise("law:10-bad-input-good-words")
@each("kind", ("request", "response"))
def test_a_value_of_another_type_is_refused_at_its_place_or_read(kind: str) -> None:
    failed: list[str] = []
    numbers = count()
    for name, sample in (row.values for row in small_bodies(kind)):
        body = json.loads(json.dumps(sample))  # samples share objects
        for container, key, place in list(_places(body)):
            before = container[key]
            for wrong in WRONG:
                if type(wrong) is not type(before):
                    container[key] = wrong
                    target = FORMATS[next(numbers) % len(FORMATS)]
                    found = _failure(kind, name, target, body, place)
                    failed += [f"{name} {place} = {wrong!r}: {found}"] if found else []
            container[key] = before
    assert failed == []
