"""Base64 in one alphabet.

Google's APIs read either base64 alphabet, padded or not, and their SDK sends the URL-safe one; every other API takes
the standard one, padded. So the intermediate format holds that one, and the original spelling is a note.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from dragoman.ir.notes import Extra

SPELLING = "~base64"

_TO_STANDARD = str.maketrans("-_", "+/")
_TO_URL_SAFE = str.maketrans("+/", "-_")

_SPELLINGS: dict[bytes, Callable[[str], str]] = {
    b'"url-safe"': lambda data: data.translate(_TO_URL_SAFE),
    b'"url-safe, unpadded"': lambda data: data.translate(_TO_URL_SAFE).rstrip("="),
    b'"unpadded"': lambda data: data.rstrip("="),
}


def read_base64(data: str, notes: Extra) -> str:
    """Return the data in the standard alphabet, padded; data that fits no known spelling stays as it is."""
    if len(data) % 4 == 0 and "-" not in data and "_" not in data:
        return data
    if len(data) % 4 == 1:  # not a length of base64
        return data
    standard = data.translate(_TO_STANDARD) + "=" * (-len(data) % 4)
    for name, spell in _SPELLINGS.items():
        if spell(standard) == data:
            notes[SPELLING] = Raw(name)
            return standard
    return data


def write_base64(data: str, notes: Extra) -> str:
    """Return the data in its original spelling."""
    spelled = notes.get(SPELLING)
    spell = None if spelled is None else _SPELLINGS.get(bytes(spelled))
    return data if spell is None else spell(data)
