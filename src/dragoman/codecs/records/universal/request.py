"""Universal histories as requests, both ways."""

from __future__ import annotations

from functools import partial

from dragoman.codecs.encoded import Encoded
from dragoman.codecs.reading import WireReader
from dragoman.codecs.records.history import Document, History, Places, decode_history, encode_history
from dragoman.codecs.records.roles import count_records, place_of
from dragoman.codecs.records.tools import ToolStyle
from dragoman.codecs.records.universal.messages import FAMILY, STYLE, MessageDecoder, MessageEncoder
from dragoman.ir import Request
from dragoman.losses import LossLog

HISTORY = History(FAMILY, ToolStyle(FAMILY), WireReader(Document, FAMILY), MessageDecoder, MessageEncoder)


def decode_request(body: bytes) -> Request:
    return decode_history(body, HISTORY)


def encode_request(request: Request, log: LossLog) -> Encoded:
    return encode_history(request, HISTORY, log)


request_paths = Places(HISTORY, partial(count_records, style=STYLE), partial(place_of, style=STYLE)).paths
