"""What every format of stored conversations defines, and how its records are decoded and encoded."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from dragoman.codecs.datasets.conversation import Json, Unstored, add_remarks, refuse, report_unstored
from dragoman.codecs.datasets.known_keys import Keys
from dragoman.codecs.datasets.unread_keys import severity_of, unread_keys
from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import check_text
from dragoman.errors import EncodeError
from dragoman.ir import Request
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog, Remark

_NOT_REPLAYED = "files of this format do not have them, so the request is not what was sent to the model"
_NOT_READ = "the file keeps it beside the conversation, which has no place for it"


class Dataset(Struct, frozen=True):
    """One format of stored conversations: how to recognise, read and write its records.

    `write` is None for logs and benchmarks, which are read-only.
    """

    name: str
    is_record: Callable[[Json], bool]
    read: Callable[[Json], Request]
    write: Callable[[Request, LossLog], Json] | None = None
    is_session: bool = False
    """Whether a whole file is one conversation: its lines, as a list, are the record."""
    unstored: Unstored = {}
    """What its records have no place for; empty if the codec of an API writes them, which reports that itself."""
    names_speakers: bool = False
    """Whether a message of its records can name its speaker."""
    keys: Keys | None = None
    """The keys that `read` reads; others are reported. None if the codec of an API reads the whole record."""
    lacks: str = ""
    """What the model saw and these files do not have; it is noted wherever a record is converted."""

    def decode_request(self, body: bytes) -> Request:
        check_text(body, self.name)
        data = parse_json(body)
        if self.write is None and not self.is_record(data):
            raise refuse(self.name, "$", f"a record of {self.name}", data)
        request = self.read(data)
        if self.lacks and not request.tools:  # a record with tools has the rest too
            add_remarks(request, self.name, [(None, self.lacks, "noted", _NOT_REPLAYED)])
        if self.keys is not None and (unread := unread_keys(data, self.keys)):
            kept = (request.metadata or {}).get(self.name, {})  # of the record itself
            lost: list[Remark] = [
                (path, key, severity_of(key), _NOT_READ) for path, key, depth in unread if depth > 1 or key not in kept
            ]
            add_remarks(request, self.name, everywhere=lost)
        return request

    def encode_request(self, request: Request, log: LossLog) -> Encoded:
        if self.write is None:
            raise EncodeError(path="$", reason="this format is read, not written", target=self.name)
        if self.unstored:
            report_unstored(request, self.unstored, log)
        return Encoded(encode_json(self.write(request, log)))
