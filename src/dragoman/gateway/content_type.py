"""Checks the content type of a client's body. Decompression is in `content_coding`."""

from __future__ import annotations

from dragoman.gateway.http_request import Head
from dragoman.ir import Failure

# What a page of another site may send without a CORS preflight: none of it is accepted from a browser.
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
# What `curl -d` and simple HTTP clients send for JSON. Every browser sends at least one of the headers below.
_UNSAID = frozenset({"application/x-www-form-urlencoded", "text/plain"})
_OF_BROWSERS = ("origin", "referer", "cookie", "sec-fetch-site", "sec-fetch-mode")


class BadBody(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def check_content_type(head: Head) -> None:
    given = head.headers.get("content-type", "application/json")
    if given == "application/json":
        return
    kind = given.partition(";")[0].strip().lower()
    if kind in _UNSAID and not any(name in head.headers for name in _OF_BROWSERS):
        return
    if kind in _FORMS:
        raise BadBody(Failure("invalid_request", f"expected application/json, got {kind}", 415))
