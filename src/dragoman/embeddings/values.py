"""Values of the intermediate format for embeddings, and helpers of all dialects."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from dragoman.errors import DecodeError, EncodeError
from dragoman.loss import Loss

Purpose: TypeAlias = Literal[
    "query", "document", "similarity", "classification", "clustering", "question", "fact_check", "code_query"
]
"""The use of the vectors: some models embed queries and documents differently."""
Truncation: TypeAlias = Literal["none", "start", "end"]
"""What happens to texts that are too long: an error, or their start or end is cut off."""
Vector: TypeAlias = tuple[float, ...]
T = TypeVar("T")
_FLOAT = 4


class EmbeddingRequest(Struct, frozen=True, kw_only=True):
    """Texts to embed. None means not given."""

    model: str = ""
    inputs: tuple[str | tuple[int, ...], ...]
    """Texts, or tokens of the model's own tokenizer."""
    dimensions: int | None = None
    purpose: Purpose | None = None
    title: str | None = None
    """Title of the document."""
    truncation: Truncation | None = None
    user: str | None = None
    base64: bool = False
    """The client wants base64 of little-endian float32."""
    shape: str = ""
    """Which of several endpoints of its API the client used; the answer has the same shape."""
    extras: Mapping[str, Any] = {}
    """Further keys of the client's API."""


class EmbeddingResponse(Struct, frozen=True, kw_only=True):
    """One vector for each text, in the order of the texts."""

    vectors: tuple[Vector, ...]
    model: str | None = None
    input_tokens: int | None = None
    id: str | None = None


class Encoding(Struct, frozen=True):
    """An encoded request."""

    content: bytes
    path: str
    """Path after the provider's base URL."""
    losses: tuple[Loss, ...] = ()


_SETTINGS = ("dimensions", "purpose", "title", "truncation", "user")


def report_losses(
    request: EmbeddingRequest, taken: frozenset[str], paths: Mapping[str, str], target: str
) -> tuple[Loss, ...]:
    """Losses: every setting that the target does not accept, and all further keys of the client's API."""
    why = f"{target} has no such setting"
    lost = [
        Loss(paths.get(name, "$"), name, "dropped", why)
        for name in _SETTINGS
        if name not in taken and getattr(request, name) is not None
    ]
    return (*lost, *(Loss(f"$.{name}", name, "dropped", why) for name in request.extras))


def texts_of(request: EmbeddingRequest, target: str) -> list[str]:
    """The texts. Raises `EncodeError` for tokens, which are specific to a model."""
    texts = [one for one in request.inputs if isinstance(one, str)]
    if len(texts) != len(request.inputs):
        raise EncodeError(path="$.input", reason="takes texts only, and this input is tokens", target=target)
    return texts


def read_wire(body: bytes, kind: type[T], source: str) -> T:
    """Decodes a body of an API. Raises `DecodeError` with the path of the first error."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at `")
        path = where.rstrip("`") or "$"
        raise DecodeError(path=path, expected="a body of this API", got=words, source=source) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source=source) from None


def extras_of(body: bytes, kind: type[Struct], source: str) -> dict[str, Any]:
    """Top-level keys that the wire struct does not know, unparsed. Raises `DecodeError`."""
    given = read_wire(body, dict[str, Raw], source)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {name: value for name, value in given.items() if name not in known and bytes(value) != b"null"}


def write_wire(value: object, target: str) -> bytes:
    """Encodes a body of an API. Raises `EncodeError` for invalid Unicode, such as a lone surrogate."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise EncodeError(path="$", reason="a text has a lone surrogate", target=target) from None


def floats_of(text: str, source: str) -> Vector:
    """Decodes base64 to numbers. Raises `DecodeError`."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        data = b"?"
    if len(data) % _FLOAT:
        raise DecodeError(path="$", expected="base64 of float32 numbers", got=f"{len(text)} characters", source=source)
    numbers = array("f", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def base64_of(vector: Sequence[float]) -> str:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return b64encode(numbers.tobytes()).decode()
