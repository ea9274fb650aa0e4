"""Converts lines of a provider's batch file to another's or to bare bodies, and bare bodies to such lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, structs

from dragoman.batch.options import ConvertOptions
from dragoman.batch.provider_files import BATCH_FILES, BatchFile, BatchItem, batch_file_of, write_line, written_id
from dragoman.batch.record_converter import RecordConverter, read_json
from dragoman.batch.rejects import Reject
from dragoman.batch.repeated_ids import id_digest
from dragoman.codecs.datasets.unread_keys import severity_of, unread_keys
from dragoman.codecs.encoded import Encoded
from dragoman.detection import Detected
from dragoman.errors import DecodeError, LossRefused
from dragoman.ir import Request
from dragoman.ir.values import encode_json, parse_json
from dragoman.loss import Loss

_KINDS = {"request": "request", "succeeded": "response", "errored": "error"}
_FAILED = 400
_NOT_OF_THE_LINE = "lines of batch files have no such key"
_NOT_STREAMED = "a batch has no streams"
_JOB_MODEL = "the model of a batch belongs to its job; name it when you create the job"


class BatchFileConverter(RecordConverter):
    """Unpacks a line, converts the body in it, and packs it again. Ids are kept, in the characters the target accepts.

    A body without an id gets one from `id_prefix` and its line number.
    """

    def __init__(
        self, options: ConvertOptions, source_name: str, expected: Detected | None, id_prefix: str = "record"
    ) -> None:
        self._to = BATCH_FILES.get(options.target)
        self._from = BATCH_FILES.get(options.source or "") or BATCH_FILES.get(expected.format if expected else "")
        self._prefix = id_prefix
        self._sent_id, self._line = "", 0
        inner = structs.replace(
            options,
            target=options.target if self._to is None else self._to.format,
            source=None if self._from is not None else options.source,
        )
        plain = None if expected is not None and expected.format in BATCH_FILES else expected
        super().__init__(inner, source_name, plain)

    def convert(self, record: bytes, line: int) -> bytes | Reject | None:
        self._line, self._sent_id, self._error_status = line, "", None
        outcome = super().convert(record, line)
        if self._sent_id and isinstance(outcome, bytes):
            self.id_digests += id_digest(self._sent_id)
        return outcome

    def translate(self, record: bytes) -> tuple[Detected, Encoded]:
        found, encoded = self._translate_line(record)
        # Losses of the body itself were refused before; these include those of the line around it.
        if self._strict and (refused := [loss for loss in encoded.losses if loss.refusable]):
            raise LossRefused(refused, target=self._target.name)
        return found, encoded

    def _translate_line(self, record: bytes) -> tuple[Detected, Encoded]:
        data: Any = read_json(record)
        file = self._from or (batch_file_of(data) if isinstance(data, Mapping) else None)
        if file is None:
            found, encoded = super().translate(record)
            item = BatchItem(id=f"{self._prefix}-{self._line}", outcome="request", path="$")
        else:
            if not isinstance(data, Mapping):
                raise DecodeError(path="$", expected="an object", got="something else", source=file.name)
            item = file.read(file, data)
            found, encoded = self._body(item)
            encoded = self._with_line_losses(encoded, data, item, file)
        if self._to is None:
            if item.outcome in {"expired", "canceled"}:
                raise DecodeError(
                    path="$", expected="a result", got=f"a request that {item.outcome}", source="batch file"
                )
            return found, encoded
        is_given = file is not None and file.id_key.partition(".")[0] in data
        id_path = f"$.{file.id_key}" if file is not None and is_given else "$"
        return found, self._pack_line(self._to, item, found, encoded, id_path, is_same=file is self._to)

    def _body(self, item: BatchItem) -> tuple[Detected, Encoded]:
        kind = _KINDS.get(item.outcome)
        if kind is None:
            return Detected(item.format, "error"), Encoded(b"null")
        if item.body is None:
            raise DecodeError(path=item.path, expected=f"a {kind} body", got="nothing", source="batch file")
        body = bytes(item.body)
        found = Detected(item.format, kind)  # type: ignore[arg-type]
        value = self._decode(body, found)
        flag = isinstance(value, Request) and value.stream is True
        if isinstance(value, Request) and flag:
            value = structs.replace(value, stream=None)
        self._error_status = item.status
        encoded = self._encode(found, value, body)
        losses = [structs.replace(loss, path=item.path + loss.path.removeprefix("$")) for loss in encoded.losses]
        if flag:
            losses.append(Loss(f"{item.path}.stream", "stream flag", "dropped", _NOT_STREAMED))
        return found, Encoded(encoded.content, tuple(losses), encoded.path, encoded.headers, encoded.status)

    def _with_line_losses(self, encoded: Encoded, data: Any, item: BatchItem, file: BatchFile) -> Encoded:
        """Return the body with the losses of the line around it."""
        lost = [Loss(path, key, severity_of(key), _NOT_OF_THE_LINE) for path, key, _ in unread_keys(data, file.keys)]
        if item.echoed is not None and file is not self._to:
            lost.append(Loss("$", "the request in the result", "noted", "only the result is converted"))
        if not lost:
            return encoded
        losses = (*encoded.losses, *lost)
        return Encoded(encoded.content, losses, encoded.path, encoded.headers, encoded.status)

    def _pack_line(
        self, file: BatchFile, item: BatchItem, found: Detected, encoded: Encoded, id_path: str, *, is_same: bool
    ) -> Encoded:
        """Return the line of the target's batch file for a converted body, with its losses."""
        losses = list(encoded.losses)
        body: Raw | None = Raw(encoded.content) if item.outcome in _KINDS else None
        if file.one_model and found.kind == "request" and body is not None:
            body = self._without_model(body, item, encoded, losses)
        given = item.id if item.id is not None else f"{self._prefix}-{self._line}"
        item_id = written_id(given, file.id_pattern)
        if item_id.startswith("digest_"):
            losses.append(
                Loss(
                    id_path,
                    "id of the request",
                    "degraded",
                    "it is longer than this provider allows: a digest replaces it",
                )
            )
        self._sent_id = item_id if item.outcome == "request" else ""
        # The Responses API returns a failed answer with status 200; elsewhere it is an error body.
        failed = item.outcome == "succeeded" and encoded.status >= _FAILED
        outcome = "errored" if failed else item.outcome
        status = item.status if outcome != "errored" else encoded.status or item.status
        packed = BatchItem(
            id=item_id,
            outcome=outcome,
            body=body,
            format=file.format,
            status=status,
            echoed=item.echoed if is_same else None,
        )
        return Encoded(write_line(file, packed), tuple(losses))

    def _without_model(self, body: Raw, item: BatchItem, encoded: Encoded, losses: list[Loss]) -> Raw:
        """Remove the model from the body, since the job names it. Models are counted, as a job has only one."""
        model = self._model_named
        if model:
            self.count_model(model)
            losses.append(Loss(item.path if item.path == "$" else f"{item.path}.model", "model", "noted", _JOB_MODEL))
        if b'"model"' not in encoded.content:
            return body
        parsed = parse_json(body)
        parsed.pop("model", None)
        return Raw(encode_json(parsed))


def converter_for(
    options: ConvertOptions, source_name: str, expected: Detected | None, id_prefix: str = "record"
) -> RecordConverter:
    """Return the converter for a source: of bodies, or of batch file lines if either side has them."""
    names = (options.target, options.source, None if expected is None else expected.format)
    if any(name in BATCH_FILES for name in names):
        return BatchFileConverter(options, source_name, expected, id_prefix)
    return RecordConverter(options, source_name, expected)
