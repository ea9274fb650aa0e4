"""Recorded bodies that do not come back as they were, or do not cross legally, and why that is right.

A row names a record by its id (tests/support/recordings.py). A row that no test needs any more makes a test fail.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accepted:
    id: str
    why: str


# Bodies that break their own format: the service refused them, or they are something else than the recording claims.
NOT_DECODED: tuple[Accepted, ...] = (
    Accepted("9df02c30ac40", "a user message whose content is null; the service answered 400"),
    Accepted("a1799f9af392", "a temperature that is a word; the service answered 400"),
    Accepted("de64c54f634c", "a message that is a bare string; the service answered 400"),
    Accepted("16761816ee09", "an unknown role; the service answered 400"),
    Accepted("951b53bc839c", "an error body under status 200"),
    Accepted("fea44e59f4dc", "an error body under status 200"),
    Accepted("135ad0a11bb0", "a part that is a list; the recording was trimmed by hand"),
)

_NOTHING_SAID = "its only message is an empty text, which no other vendor takes"
_MODEL_LOADED = "no messages at all: it loads the model of a server, or unloads it, and asks nothing"
_STORED = "it has only a stored prompt, or results of calls that are stored by the vendor"
_RECURSION = "a recursive schema for structured output, which the target's grammar cannot express"

# Requests that we refuse instead of sending.
REFUSED: tuple[Accepted, ...] = (
    Accepted("9f805df447b2", _NOTHING_SAID),
    Accepted("e232d42ec82b", _NOTHING_SAID),
    Accepted("08940732ce21", _NOTHING_SAID),
    Accepted("9acd4e167790", _NOTHING_SAID),
    Accepted("486928adf7fd", _NOTHING_SAID),
    Accepted("033f20abf2a9", _MODEL_LOADED),
    Accepted("a6348f3670a4", _MODEL_LOADED),
    Accepted("dd310902e246", _RECURSION),
    Accepted("76857f3b4313", _RECURSION),
    Accepted("0e4c35c02d07", _STORED),
    Accepted("17a8521ef2d7", _STORED),
    Accepted("6a43ce8b6835", _STORED),
    Accepted("764c2ce5d82a", _STORED),
    Accepted("8e645ef18cb3", _STORED),
    Accepted("8fc22a4d2a52", _STORED),
    Accepted("973e400759b7", _STORED),
    Accepted("9de1582e3b74", _STORED),
    Accepted("9e44364cb0cc", _STORED),
    Accepted("51cf6af96431", _STORED),
    Accepted("86b87c10794f", _STORED),
    Accepted("8fad7e472fff", _STORED),
    Accepted("979e2a6239c8", _STORED),
    Accepted("bdec26c0014f", _STORED),
    Accepted("4200af1e3951", _NOTHING_SAID),
    Accepted("d0f8153e1d7c", _NOTHING_SAID),
    Accepted("d890972ad845", _NOTHING_SAID),
)

_UINT = "a strict schema with `format: uint8`, which the same vendor took when this was recorded"

# Requests that cross, and that the rules of the target still refuse.
ILLEGAL: tuple[Accepted, ...] = (
    Accepted("157e016b118e", "a top_p of -1, which only its own service overlooks; a number we do not correct"),
    Accepted("3d1698344fce", _UINT),
    Accepted("4f40bd3b0da1", _UINT),
    Accepted("8a6e754b83d3", _UINT),
)

_NO_SUM = "a trimmed fixture whose total is not the sum of its counts; what was reported is passed on"
_FIXTURE = "a vendor's fixture of a broken answer, passed on within the family as it is"

# Answers that cross, and that a strict client of the target would still reject.
ODD_ANSWERS: tuple[Accepted, ...] = (
    Accepted("989cc208aa15", _NO_SUM),
    Accepted("9f995eb853be", _NO_SUM),
    Accepted("7645ea4b265a", _NO_SUM),
    Accepted("524c69b1e910", _NO_SUM),
    Accepted("7ad2521f6915", _NO_SUM),
    Accepted("aec92bd901a6", _FIXTURE),
    Accepted("01b1acc3bfbe", _FIXTURE),
    Accepted("79d6ad4fc757", _FIXTURE),
    Accepted("57e0f526b25c", _FIXTURE),
    Accepted("1342b1627906", "a trimmed fixture with a negative count of tokens; what was reported is passed on"),
    Accepted("5d5ee0866557", "an image whose data was shortened in the recording and is not valid base64"),
)
