"""Writes answers and failures as output lines: of a provider's batch file, or bare bodies of a wire format."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from dragoman.batch.provider_files import BATCH_FILES, BatchItem, Outcome, write_line, written_id
from dragoman.codecs.encoded import Encoded
from dragoman.ir import Completion, Failure, Request
from dragoman.translate import encode_error, encode_response


class AnswerLines:
    """Writes one line per request, in the format that `target` names."""

    def __init__(self, target: str) -> None:
        self._file = BATCH_FILES.get(target)
        self._format = target if self._file is None else self._file.format

    def answer(self, item_id: str, completion: Completion, request: Request) -> tuple[Raw, Encoded]:
        """Return the line, and the body in it with its losses."""
        encoded = encode_response(completion, self._format, request=request)
        body = Raw(encoded.content)
        if self._file is None:
            return body, encoded
        return self._line(item_id, BatchItem(id=None, outcome="succeeded", body=body, status=200)), encoded

    def failure(self, item_id: str, failure: Failure) -> Raw | UnsetType:
        """Return the line for a failure; UNSET for bare answers, which have no line for it."""
        if self._file is None:
            return UNSET
        encoded = encode_error(failure, self._file.format)
        item = BatchItem(id=None, outcome="errored", body=Raw(encoded.content), status=encoded.status)
        return self._line(item_id, item)

    def never_ran(self, item_id: str, outcome: Outcome) -> Raw | UnsetType:
        """Return the line for a request that expired or was cancelled; UNSET for bare answers."""
        return UNSET if self._file is None else self._line(item_id, BatchItem(id=None, outcome=outcome))

    def _line(self, item_id: str, item: BatchItem) -> Raw:
        assert self._file is not None  # noqa: S101 - asked for batch files only
        named = written_id(item_id, self._file.id_pattern)
        line = BatchItem(
            id=named, outcome=item.outcome, body=item.body, format=self._file.format, status=item.status, echoed=None
        )
        return Raw(write_line(self._file, line))
