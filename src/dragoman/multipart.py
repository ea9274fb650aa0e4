"""Bodies of `multipart/form-data`: read whole, and written (RFC 7578). Supports what the providers' file APIs need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import islice, pairwise

from msgspec import Struct

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?', re.IGNORECASE)
_ONLY_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"\\]{1,70})"|([^\s;",=]{1,70}))\s*(?:;|$)', re.IGNORECASE)
_PLAIN_DISPOSITION = re.compile(
    rb'content-disposition: *form-data; *name=(?:"([^"\\%]*)"|([\w.\[\]-]+))'
    rb'(; *filename="(?:[^"\\]|\\[^"])*")?(; *filename\*=[^;"]*)?',
    re.IGNORECASE,
)
"""Without what some readers take for an escape, such as a quote in a name: others end the name there."""
_PARAMETER = re.compile(r'(?:^|;)\s*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_TYPE = re.compile(r"^content-type:([^\n]*)$", re.IGNORECASE | re.MULTILINE)
_DISPOSITION = re.compile(r"^content-disposition:([^\n]*)$", re.IGNORECASE | re.MULTILINE)
_MOST_PARTS = 1_000
_LONGEST_HEAD = 16 << 10
"""Bytes of the headers of one part."""


class MultipartError(ValueError):
    """The body does not match its content type."""


class FormPart(Struct, frozen=True):
    """One field of a form. `filename` is None if it is not a file."""

    name: str
    content: bytes
    filename: str | None = None
    content_type: str = ""


def read_form(body: bytes, content_type: str) -> list[FormPart]:
    """The fields of a form, in order. Raises `MultipartError`."""
    kind = content_type.partition(";")[0].strip().lower()
    found = _BOUNDARY.search(content_type)
    if kind != "multipart/form-data" or found is None:
        raise MultipartError("expected multipart/form-data with a boundary")
    # The first delimiter may have no line break before it.
    delimiter = b"\r\n--" + found[1].strip().encode("latin-1")
    _, *pieces = (b"\r\n" + body).split(delimiter, _MOST_PARTS + 1)
    if not pieces or pieces[-1][:2] != b"--":
        raise MultipartError("the form does not end")
    return [_part(piece) for piece in pieces[:-1]]


def find_field(body: bytes, content_type: str, name: str) -> tuple[int, int] | None:
    """Return start and end of the value of a field, or None if the form does not have it.

    Raises `MultipartError` for whatever two readers of forms could read differently, such as a field that is given
    twice or a delimiter inside of a line: the form is passed on as it is, and its reader must find the same value.
    """
    given = content_type.lower()
    boundary = _ONLY_BOUNDARY.search(content_type)
    if not given.startswith("multipart/form-data") or boundary is None or given.count("boundary") != 1:
        raise MultipartError("expected multipart/form-data with one boundary")
    delimiter = b"--" + (boundary[1] or boundary[2]).encode("latin-1", "replace")
    places = [found.start() for found in islice(re.finditer(re.escape(delimiter), body), _MOST_PARTS + 2)]
    if not places or body[: places[0]] not in {b"", b"\r\n"} or len(places) > _MOST_PARTS + 1:
        raise MultipartError("the form does not begin with its boundary, or has too many parts")
    if body[places[-1] + len(delimiter) :] not in {b"--", b"--\r\n"}:
        raise MultipartError("the form does not end with its boundary")
    value: tuple[int, int] | None = None
    for place, end in pairwise(places):
        start = place + len(delimiter)
        head_end = body.find(b"\r\n\r\n", start, min(end, start + _LONGEST_HEAD))
        if body[start : start + 2] != b"\r\n" or body[end - 2 : end] != b"\r\n" or not start < head_end <= end - 6:
            raise MultipartError("a part of the form has no head, or no line for its boundary")
        named, is_file = _name_of(body[start + 2 : head_end])
        if named == name:
            if value is not None or is_file:
                raise MultipartError(f"the field {name!r} is given twice, or is a file")
            value = head_end + 4, end - 2
    return value


def _name_of(head: bytes) -> tuple[str, bool]:
    """Return the name of a part in lower case, and whether it is a file."""
    lines = head.split(b"\r\n")
    found = [line for line in lines if line.lower().startswith(b"content-disposition")]
    plain = _PLAIN_DISPOSITION.fullmatch(found[0]) if len(found) == 1 else None
    if plain is None or any(line.startswith((b" ", b"\t")) or b"\n" in line or b"\r" in line for line in lines):
        raise MultipartError("a part of the form has no plain content-disposition")
    return (plain[1] or plain[2] or b"").decode("latin-1").lower(), bool(plain[3] or plain[4])


def _part(piece: bytes) -> FormPart:
    head, blank, content = piece.partition(b"\r\n\r\n")
    if len(head) > _LONGEST_HEAD:
        raise MultipartError("the headers of a part are too long")
    headers = head.decode("utf-8", "replace").replace("\r\n", "\n")
    disposition = _DISPOSITION.search(headers)
    if not blank or disposition is None:
        raise MultipartError("a part of the form has no content-disposition")
    named = {name.lower(): re.sub(r"\\(.)", r"\1", value) for name, value in _PARAMETER.findall(disposition[1])}
    if "name" not in named:
        raise MultipartError("a part of the form has no name")
    kind = _TYPE.search(headers)
    return FormPart(named["name"], content, named.get("filename"), kind[1].strip() if kind else "")


def write_form(fields: Mapping[str, str], files: Sequence[FormPart]) -> tuple[bytes, str]:
    """A body and its content type. The boundary is derived from the contents, so equal forms have equal bytes."""
    digest = blake2b(digest_size=16)
    for file in files:
        digest.update(file.content)
    boundary = f"dragoman-{digest.hexdigest()}"
    pieces: list[bytes] = []
    for name, value in fields.items():
        pieces.append(_head(boundary, f'form-data; name="{_quote(name)}"') + value.encode())
    for file in files:
        named = f'form-data; name="{_quote(file.name)}"; filename="{_quote(file.filename or "file")}"'
        kind = file.content_type or "application/octet-stream"
        pieces.append(_head(boundary, named, f"content-type: {kind}\r\n") + file.content)
    return b"\r\n".join((*pieces, f"--{boundary}--\r\n".encode())), f"multipart/form-data; boundary={boundary}"


def _head(boundary: str, disposition: str, more: str = "") -> bytes:
    return f"--{boundary}\r\ncontent-disposition: {disposition}\r\n{more}\r\n".encode()


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")
