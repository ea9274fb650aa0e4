"""Parses `multipart/form-data` with the standard library's email parser."""

from __future__ import annotations

from dataclasses import dataclass
from email import policy
from email.parser import BytesParser


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    content: bytes
    # None if it is not a file.
    filename: str | None


def read_form(body: bytes, content_type: str) -> list[Field]:
    """The fields of a form. Raises ValueError."""
    head = f"content-type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=policy.HTTP).parsebytes(head + body)
    if message.get_content_type() != "multipart/form-data" or not message.is_multipart():
        raise ValueError("expected multipart/form-data")
    fields = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise ValueError("a part without a name")  # noqa: TRY004 - the form is malformed
        fields.append(Field(name, content, part.get_filename()))
    return fields
