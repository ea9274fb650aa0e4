"""Bodies of `multipart/form-data`: read whole, and written (RFC 7578). Supports what the providers' file APIs need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from msgspec import Struct

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?', re.IGNORECASE)
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
