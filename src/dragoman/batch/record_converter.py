"""Converts one record to one record: detects its format, and reports its losses or why it was rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec import Raw, structs

from dragoman.batch.loss_counter import LossCounter
from dragoman.batch.options import ConvertOptions
from dragoman.batch.provider_files import BATCH_FILES, batch_file_of
from dragoman.batch.rejects import Reject
from dragoman.batch.tally import EXAMPLES, Example, RejectCount, Tally, sizes_of
from dragoman.codecs.datasets.unread import what_is_read_instead
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import MALFORMED, body_bytes, misread
from dragoman.codecs.registry import Codec, codec
from dragoman.detection import Detected, detect
from dragoman.errors import DecodeError, DragomanError, EncodeError
from dragoman.ir import Completion, Opaque, Request
from dragoman.ir.notes import is_spelling
from dragoman.ir.traits import PRIVATE_SETTING, UNKNOWN_PART, traits_of
from dragoman.ir.values import encode_json, parse_json, single_line
from dragoman.loss import SEVERITIES, Loss
from dragoman.losses import LossLog
from dragoman.translate import encode_request_for, encode_response_for, translate_error

SNIFFED = 20
"""Records that are inspected to detect the format of a source."""
_UNREADABLE = (DecodeError, *MALFORMED)
_UNKNOWN = "a body of a known format; name it with --from"
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"
"""As numbers: looking for one byte is several times faster than for bytes of length one."""
_LEFT_OVER = UNKNOWN_PART | PRIVATE_SETTING


class RecordConverter:
    """Converts the records of one source, one after the other, and counts.

    Detecting the format of a record takes longer than converting it. So the format of a source is detected once, and a
    record that reads as that format with nothing left over is taken as such. The format of any other record is detected
    separately.
    """

    def __init__(self, options: ConvertOptions, source_name: str, expected: Detected | None = None) -> None:
        self._options = options
        self._source_name = source_name
        self._target = codec(options.target)
        self._expected = expected
        self._checked: set[tuple[Detected, frozenset[str]]] = set()
        self._losses = LossCounter()
        self._rejects: dict[str, RejectCount] = {}
        self._tally = Tally()
        self.keeps_losses = False
        """Whether `last_losses` is wanted; their paths are not looked up otherwise."""
        self.last_losses: tuple[Loss, ...] = ()
        """The losses of the last record; empty if it was rejected."""
        self._model_named: str | None = None
        self._error_status: int | None = None
        """HTTP status of an error body, if the record names it beside the body."""
        worst_allowed = SEVERITIES.index(options.leave_out) if options.leave_out else -1
        self._left_out = frozenset(SEVERITIES[: worst_allowed + 1])
        self._sample, self._model, self._strict = options.sample, options.model, options.strict
        self._is_named = options.source is not None and options.kind != "auto"
        self._incoming = None if expected is None or expected.kind != "request" else codec(expected.format)
        """Codec for records that are requests, the most common kind; other kinds take an extra step."""
        # Added up at the end: appending to a list is faster.
        self._input_sizes: list[int] = []
        self._output_sizes: list[int] = []
        """Sizes of records of the expected format."""
        self._other_sizes: list[int] = []
        self._lossless = 0
        self.id_digests = bytearray()
        """Digests of the ids of converted requests, in order, if the target is a batch file: ids must differ there."""

    def convert_many(self, lines: Iterable[bytes], first: int, reject: Callable[[Reject], None]) -> list[bytes]:
        """Return the converted records of these lines; the first line is number `first`, blank lines are skipped."""
        convert, converted = self.convert, list[bytes]()
        for number, line in enumerate(lines, first):
            if record := line.strip():
                outcome = convert(record, number)
                if type(outcome) is bytes:
                    converted.append(outcome)
                elif outcome is not None:
                    reject(cast("Reject", outcome))
        return converted

    def convert(self, record: bytes, line: int) -> bytes | Reject | None:
        """Return the converted record as one line of JSON without line end; None if it was left out on purpose."""
        if self._sample is not None and not _is_sampled(record, self._sample):
            self._tally.not_sampled += 1
            return None
        self._input_sizes.append(len(record))
        try:
            found, encoded = self.translate(record)
        except DragomanError as error:
            again = self._convert_unpacked(record)
            if again is None:
                self.last_losses = ()
                return self._reject(error, record, line)
            found, encoded = again
        losses = encoded.losses_held
        if type(losses) is LossLog:
            self._losses.add_log(losses, self._source_name, line)
        elif losses:
            self._losses.add(encoded.losses, self._source_name, line)
        else:
            self._lossless += 1
        if self.keeps_losses:
            self.last_losses = encoded.losses
        if self._left_out and any(loss.severity in self._left_out for loss in encoded.losses):
            self._tally.left_out += 1
            self._count_format(found)
            return None
        content = encoded.content
        if _LINE_FEED in content or _CARRIAGE_RETURN in content:
            content = bytes(single_line(Raw(content)))
        if found is self._expected:
            self._output_sizes.append(len(content))
        else:
            self._count_format(found)
            self._other_sizes.append(len(content))
            if found.kind == "request":
                self._tally.estimated_tokens += len(content) >> 2
        return content

    def finish(self, lines: int) -> Tally:
        """Return the counts of everything converted so far."""
        tally = self._tally
        tally.lines = lines
        tally.records = len(self._input_sizes)
        tally.converted = len(self._output_sizes) + len(self._other_sizes)
        tally.lossless = self._lossless
        tally.input_sizes = sizes_of(self._input_sizes)
        tally.output_sizes = sizes_of(self._output_sizes + self._other_sizes)
        if self._output_sizes and self._expected is not None:
            self._count_format(self._expected, len(self._output_sizes))
            if self._expected.kind == "request":
                tally.estimated_tokens += sum(self._output_sizes) >> 2
        tally.losses = self._losses.counts()
        tally.rejects = list(self._rejects.values())
        return tally

    def _count_format(self, found: Detected, count: int = 1) -> None:
        name = f"{found.format} {found.kind}"
        self._tally.formats[name] = self._tally.formats.get(name, 0) + count

    # ── the conversion ──

    def translate(self, record: bytes) -> tuple[Detected, Encoded]:
        """Return the detected format of the record, and its conversion. Raises a `DragomanError`; counts nothing."""
        expected, incoming = self._expected, self._incoming
        if expected is None:
            expected = self._find(record)
            return expected, self._encode(expected, self._decode(record, expected), record)
        if incoming is not None:  # fast path for the usual record
            try:
                request = incoming.decode_request(body_bytes(record, incoming.name))
            except _UNREADABLE:  # inspected below
                pass
            else:
                if self._fits(request, expected):
                    return expected, self._encode_request(request, incoming)
        try:
            value = self._decode(record, expected)
        except DecodeError as error:
            return self._translate_other(record, expected, error)
        if value is None or self._fits(value, expected):
            return expected, self._encode(expected, value, record)
        found = self._find(record)
        if found != expected:
            other = self._decode_or_none(record, found)
            if other is not None and _left_over(other) < _left_over(value):
                return found, self._encode(found, other, record)
        self._checked.add((expected, _keys_left_over(value)))
        return expected, self._encode(expected, value, record)

    def _translate_other(self, record: bytes, expected: Detected, error: DecodeError) -> tuple[Detected, Encoded]:
        """Convert a record that does not read as the expected format: of another format, or an error among answers."""
        found = detect(record)
        if found is None and expected.kind == "response" and is_bare_error(read_json(record)):
            found = Detected(expected.format, "error")
        if found is None or not self._is_allowed(found) or found == expected:
            raise error
        value = self._decode_or_none(record, found)
        if value is None and found.kind != "error":
            raise error  # it is not a record of that format either
        return found, self._encode(found, value, record)

    def _decode_or_none(self, record: bytes, found: Detected) -> Request | Completion | None:
        try:
            return self._decode(record, found)
        except DecodeError:
            return None

    def _convert_unpacked(self, record: bytes) -> tuple[Detected, Encoded] | None:
        """Convert a record that is readable once JSON text in it is parsed; None if that is not its problem."""
        try:
            inner = without_packed_json(record)
            return None if inner is None else self.translate(inner)
        except DragomanError:
            return None

    def _find(self, record: bytes) -> Detected:
        found = detect(record)
        if found is not None and self._is_allowed(found):
            return found
        if self._expected is not None:  # named or detected for the whole source, and the record reads as that
            return self._expected
        got = "keys of none, or of several" if found is None else f"a {found.kind} of {found.format}"
        known = what_is_read_instead(read_json(record)) if found is None else None
        expected = known or _UNKNOWN if self._options.kind == "auto" else f"a {self._options.kind}, as --kind says"
        raise DecodeError(path="$", expected=expected, got=got, source="record")

    def _is_allowed(self, found: Detected) -> bool:
        """Return whether the caller's options permit this format and kind."""
        source, kind = self._options.source, self._options.kind
        return (source is None or found.format == source) and kind in {"auto", found.kind}

    def _fits(self, value: Request | Completion, expected: Detected) -> bool:
        """Return whether nothing is left over that the expected format lacks, except keys that were checked before."""
        if self._is_named:
            return True
        traits = traits_of(value) if type(value) is Request else None
        if traits is not None and not traits[0] & _LEFT_OVER:
            return True
        for message in value.messages:
            content = message.content_held
            if type(content) is not str:
                for part in content:
                    if type(part) is Opaque:
                        return False
        return value.metadata is None or not (left := _keys_left_over(value)) or (expected, left) in self._checked

    def _decode(self, record: bytes, found: Detected) -> Request | Completion | None:
        """Return the decoded record; None for an error body, which is translated without decoding."""
        incoming = codec(found.format)
        try:
            if found.kind == "request":
                return incoming.decode_request(body_bytes(record, found.format))
            if found.kind == "response":
                return incoming.decode_response(body_bytes(record, found.format))
        except MALFORMED as error:
            raise misread(error, found.format) from error
        return None

    def _encode(self, found: Detected, value: Request | Completion | None, record: bytes = b"") -> Encoded:
        incoming: Codec = codec(found.format)
        if isinstance(value, Request):
            return self._encode_request(value, incoming)
        if isinstance(value, Completion):
            self._count_tokens(value)
            return encode_response_for(value, self._target, paths=incoming.response_paths, strict=self._strict)
        return translate_error(record, source=found.format, target=self._target.name, status=self._error_status)

    def _encode_request(self, value: Request, incoming: Codec) -> Encoded:
        if self._model is not None:
            structs.force_setattr(value, "model", self._model)  # decoded here, so no other code holds it
        self._model_named = value.model
        return encode_request_for(value, self._target, paths=incoming.request_paths, strict=self._strict)

    def count_model(self, model: str) -> None:
        """Count a model that a record names."""
        self._tally.models[model] = self._tally.models.get(model, 0) + 1

    def _count_tokens(self, completion: Completion) -> None:
        if completion.usage is not None:
            self._tally.input_tokens += completion.usage.input
            self._tally.output_tokens += completion.usage.output

    # ── rejects ──

    def _reject(self, error: DragomanError, record: bytes, line: int) -> Reject:
        path = getattr(error, "path", "$")
        reason = _reason(error)
        self._tally.rejected += 1
        count = self._rejects.setdefault(reason, RejectCount(reason, examples=[]))
        count.count += 1
        if len(count.examples) < EXAMPLES:
            count.examples.append(Example(self._source_name, line, path))
        kept = record.decode(errors="replace") if self._options.keep_rejected else None
        return Reject(self._source_name, line, path, str(error), type(error).__name__, kept)


def _left_over(value: Request | Completion) -> int:
    """Return how much of a record is unknown to its format: top-level keys, and parts."""
    parts = (part for message in value.messages for part in message.parts)
    return len(_keys_left_over(value)) + sum(type(part) is Opaque for part in parts)


def is_bare_error(data: object) -> bool:
    """Return whether this is an error body without signs of its API: a message, and only scalars besides."""
    return (
        isinstance(data, Mapping)
        and isinstance(data.get("message", data.get("detail")), str)
        and not any(isinstance(value, dict | list) for value in data.values())
    )


def _keys_left_over(value: Request | Completion) -> frozenset[str]:
    return frozenset(key for keys in (value.metadata or {}).values() for key in keys if not is_spelling(key))


def _is_sampled(record: bytes, share: float) -> bool:
    """Return whether a record is in the sample: its hash decides, so the choice is repeatable."""
    return int.from_bytes(blake2b(record, digest_size=8).digest()) < share * (1 << 64)


def _reason(error: DragomanError) -> str:
    """Return the problem without its path and without contents of the record: rejects are counted by it."""
    if isinstance(error, DecodeError):
        return f"{error.source}: expected {error.expected}"
    if isinstance(error, EncodeError):
        return f"{error.target}: {error.reason}"
    return type(error).__name__


def expected_format(options: ConvertOptions, records: Iterable[bytes]) -> Detected | None:
    """Return what the records of a source are: named by the caller, or what most of the first ones are."""
    if options.source is not None and options.kind != "auto":
        return Detected(options.source, options.kind)
    found = [one for one in map(_detect_record, records) if one is not None]
    if options.source is not None:
        found = [Detected(options.source, one.kind) for one in found]
    if options.kind != "auto":
        found = [one for one in found if one.kind == options.kind or one.format in BATCH_FILES]
    return max(found, key=found.count) if found else None


def read_json(record: bytes) -> Any:
    """Return the record as Python values; raises a typed error if it is not JSON."""
    try:
        if not record.isascii():
            record.decode()  # a lone surrogate could be read, but not written
        return parse_json(record)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DecodeError(path="$", expected="JSON", got=str(error), source="record") from error


PACKED = frozenset({"messages", "conversations", "contents", "tools", "prompt", "completion", "chosen", "rejected"})
"""Keys that are often stored as JSON text: Arrow and tables cannot hold values of mixed types."""


def without_packed_json(record: bytes) -> bytes | None:
    """Return the record with its JSON texts parsed; None if it has none."""
    data = read_json(record)
    if isinstance(data, str):
        return data.encode(errors="replace") if data.lstrip()[:1] in {"[", "{"} else None
    if not isinstance(data, dict):
        return None
    opened = {key: unpacked_json(value) if key in PACKED else value for key, value in data.items()}
    return encode_json(opened) if opened != data else None


def unpacked_json(value: Any) -> Any:
    """Return the parsed value of JSON text of an array or object; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"}:
        try:
            return parse_json(value.encode())
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return value
    return value


def _detect_record(record: bytes) -> Detected | None:
    try:
        data = read_json(record)
        file = batch_file_of(data) if isinstance(data, Mapping) else None
        if file is not None:
            return Detected(file.name, "request")
        return detect(record) or ((inner := without_packed_json(record)) is not None and detect(inner)) or None
    except DragomanError:
        return None
