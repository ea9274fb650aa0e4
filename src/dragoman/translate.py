"""Decode, make legal, encode: requests, responses and errors from any format to any other."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import structs
from msgspec.structs import force_setattr

from dragoman.codecs.encoded import Encoded, hold_log
from dragoman.codecs.reading import MALFORMED, Body, body_bytes, misread
from dragoman.codecs.registry import Codec, codec
from dragoman.errors import EncodeError, LossRefused
from dragoman.ir import Completion, Failure, Request
from dragoman.losses import JsonPaths, LossLog, intermediate_paths, remarks_on
from dragoman.passes.answers import legalise_answer
from dragoman.passes.legalise import legalise


def decode_request(body: Body, source: str) -> Request:
    """Decode a request body of format `source` to the intermediate format."""
    try:
        return codec(source).decode_request(body_bytes(body, source))
    except MALFORMED as error:
        raise misread(error, source) from error


def decode_response(body: Body, source: str) -> Completion:
    """Decode a (non-streamed) response body of format `source` to the intermediate format."""
    try:
        return codec(source).decode_response(body_bytes(body, source))
    except MALFORMED as error:
        raise misread(error, source) from error


def decode_error(
    body: Body, source: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Failure:
    """Decode an error body of format `source`, together with its HTTP status and headers."""
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    try:
        return codec(source).decode_error(body_bytes(body, source), status, lowered)
    except MALFORMED as error:
        raise misread(error, source) from error


def encode_request(request: Request, target: str, *, strict: bool = False) -> Encoded:
    """Encode the request as a legal body of format `target`, with its losses."""
    outgoing = codec(target)
    _check_type(request, Request, "decode_request", outgoing)
    return _encode_request(request, outgoing, intermediate_paths, strict)


def encode_request_for(
    request: Request, target: Codec, *, paths: JsonPaths = intermediate_paths, strict: bool = False
) -> Encoded:
    """Encode the request with a given codec, such as one with the profile of a compatible server.

    `paths`, of the codec that read the request, gives losses their JSON paths in the body it came from.
    """
    return _encode_request(request, target, paths, strict)


def encode_response(
    completion: Completion,
    target: str,
    *,
    request: Request | None = None,
    strict: bool = False,
    speaker: str | None = None,
) -> Encoded:
    """Encode the completion as a body that a client of format `target` expects.

    `speaker` names the model that answered, for stores of conversations with several models (multi-llm-chat).
    """
    outgoing = codec(target)
    _check_type(completion, Completion, "decode_response", outgoing)
    if speaker is not None:
        completion = _name_speaker(completion, speaker, outgoing)
    return _encode_response(completion, outgoing, intermediate_paths, request, strict)


def encode_response_for(
    completion: Completion, target: Codec, *, paths: JsonPaths = intermediate_paths, strict: bool = False
) -> Encoded:
    """Encode with a given codec; `paths`, of the codec that read the response, gives losses their JSON paths."""
    return _encode_response(completion, target, paths, None, strict)


def encode_error(failure: Failure, target: str) -> Encoded:
    """Encode the failure as an error body of format `target`; `status` and `headers` are set too."""
    outgoing = codec(target)
    _check_type(failure, Failure, "decode_error", outgoing)
    return outgoing.encode_error(failure)


def _check_type(value: object, expected: type, decoder: str, outgoing: Codec) -> None:
    if not isinstance(value, expected):
        reason = f"expected {expected.__name__}, got {type(value).__name__}: {decoder} makes one of a body"
        raise EncodeError(path="$", reason=reason, target=outgoing.name)


def translate_request(
    body: Body, *, source: str, target: str, model: str | None = None, strict: bool = False
) -> Encoded:
    """Translate a request body to another format. `model` replaces the model that the body names."""
    incoming = codec(source)
    try:
        request = incoming.decode_request(body_bytes(body, source))
    except MALFORMED as error:
        raise misread(error, source) from error
    if model is not None:
        # Changed in place: the request was created here, and a copy would cost time and lose its traits.
        force_setattr(request, "model", model)
    return _encode_request(request, codec(target), incoming.request_paths, strict)


def translate_response(
    body: Body,
    *,
    source: str,
    target: str,
    request: Request | None = None,
    strict: bool = False,
    speaker: str | None = None,
) -> Encoded:
    """Translate a response body to another format.

    `request`, the client's own request if known, restores names and kinds of tools to what the client declared.
    `speaker` names the model that answered, for stores of conversations with several models (multi-llm-chat).
    """
    incoming = codec(source)
    try:
        completion = incoming.decode_response(body_bytes(body, source))
    except MALFORMED as error:
        raise misread(error, source) from error
    if speaker is not None:
        completion = _name_speaker(completion, speaker, codec(target))
    return _encode_response(completion, codec(target), incoming.response_paths, request, strict)


def translate_error(
    body: Body,
    *,
    source: str,
    target: str,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Encoded:
    """Translate an error body to another format."""
    return encode_error(decode_error(body, source, status=status, headers=headers), target)


def _name_speaker(completion: Completion, speaker: str, outgoing: Codec) -> Completion:
    if not outgoing.profile.names_speakers:
        reason = f"answers of this format do not name their speaker ({speaker!r} was given)"
        raise EncodeError(path="speaker", reason=reason, target=outgoing.name)
    messages = tuple(structs.replace(message, name=speaker) for message in completion.messages)
    return structs.replace(completion, messages=messages)


def _encode_request(request: Request, outgoing: Codec, paths: JsonPaths, strict: bool) -> Encoded:  # noqa: FBT001
    log = LossLog()
    remarks = remarks_on(request)
    if remarks is not None:
        log.add_remarks(remarks, request, outgoing.name)
    try:
        encoded = outgoing.encode_request(legalise(request, outgoing.profile, log), log)
    except _UNWRITABLE as error:
        raise _unwritable(error, outgoing) from error
    except EncodeError as error:
        error.move_to(_path_in_source(error.path, request, paths))
        raise
    if log.entries:
        if strict:
            _refuse_losses(log, request, outgoing, paths)
        log.keep_for(request, paths)
        hold_log(encoded, log)
    return encoded


def _encode_response(
    completion: Completion,
    outgoing: Codec,
    paths: JsonPaths,
    request: Request | None,
    strict: bool,  # noqa: FBT001
) -> Encoded:
    log = LossLog()
    try:
        encoded = outgoing.encode_response(legalise_answer(completion, outgoing.profile, request, log), log)
    except _UNWRITABLE as error:
        raise _unwritable(error, outgoing) from error
    if log.entries:
        if strict:
            _refuse_losses(log, completion, outgoing, paths)
        log.keep_for(completion, paths)
        hold_log(encoded, log)
    return encoded


def _refuse_losses(log: LossLog, root: Request | Completion, outgoing: Codec, paths: JsonPaths) -> None:
    refused = [loss for loss in log.resolve(root, paths) if loss.refusable]
    if refused:
        raise LossRefused(refused, target=outgoing.name)


_PLACE = re.compile(r"\$(?:\.messages\[(\d+)\](?:\.parts\[(\d+)\])?|\.tools\[(\d+)\])?(?:\.(.*))?")


def _path_in_source(path: str, request: Request, paths: JsonPaths) -> str:
    """Return the place in the client's body of a path in the intermediate format."""
    found = _PLACE.fullmatch(path)
    if found is None:
        return path
    message, part, tool = (None if index is None else int(index) for index in found.group(1, 2, 3))
    try:
        return paths(request)(message, tool if message is None else part, found[4] or "")
    except IndexError:  # a pass changed the request
        return path


_UNWRITABLE = (UnicodeEncodeError, RecursionError)


def _unwritable(error: UnicodeEncodeError | RecursionError, outgoing: Codec) -> EncodeError:
    """Return the error for values that cannot be encoded: a lone surrogate, or a value nested in itself."""
    if isinstance(error, RecursionError):
        return EncodeError(path="$", reason="a value is nested too deeply, or in itself", target=outgoing.name)
    around = ascii(error.object[max(0, error.start - 10) : error.end + 10])
    return EncodeError(path="$", reason=f"a lone surrogate in {around} has no UTF-8", target=outgoing.name)
