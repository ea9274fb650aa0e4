"""Events that are like an earlier one, except for one string.

A stream says the same a thousand times: more text of the same part. Once such an event was read in full, the bytes
before and after its text are known; and whatever stands between the very same bytes, and reads as one JSON string, is
the text of the next one. Everything else is read in full again: nothing is guessed here.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import maxsize
from typing import TypeAlias

import msgspec

from dragoman.ir.values import encode_json

Fragment: TypeAlias = tuple[int, str, list[str] | None]
"""Index of a part, more of its text, and the list in which its decoder keeps that text, if it does."""

MOST = 8
"""Templates at a time. More calls than these in turns are read in full."""

_PROBE_TEXT = "~dragoman~probe~"
_PROBE = encode_json(_PROBE_TEXT)

read_string = msgspec.json.Decoder(str).decode
_read_strings = msgspec.json.Decoder(list[str]).decode
_BLANK = b"\n\n"
"""The end of an event, on most wires."""
_ESCAPED_END = b'\\","'


class Template:
    """The bytes around a text, with its quotes, and which part's text it is."""

    __slots__ = (
        *("follower", "head", "head_place", "index", "inner_place", "long", "pieces"),
        *("seam", "tail", "tail_place", "text_place"),
    )

    def __init__(self, head: bytes, tail: bytes, index: int = -1, pieces: list[str] | None = None) -> None:
        self.head = head
        self.tail = tail
        self.head_place = slice(len(head))
        self.tail_place = slice(-len(tail), None)
        self.text_place = slice(len(head) - 1, 1 - len(tail))
        self.inner_place = slice(len(head), None)
        self.seam = tail + head
        """Between two texts, where one such event follows the other."""
        self.long = 2 * len(self.seam)
        """Bytes. What is no longer is one event at most."""
        self.index = index
        self.pieces = pieces
        self.follower: Template | None = self
        """What came next the last time: calls in turns keep their order."""


class Ring:
    """The templates for one kind of bytes: payloads, or payloads in the frame of their wire."""

    def __init__(self) -> None:
        self._templates: list[Template] = []
        self._start = Template(b"", b"")
        self._start.follower = None
        self._start.long = maxsize  # nothing is like it
        self.last = self._start
        """The template of the bytes that were read last."""
        self.room = maxsize
        self.passed = 0
        """Bytes that were read, of so many that may be."""

    @property
    def proven(self) -> bool:
        """Whether something was read since the last template came in."""
        return self.last is not self._start

    def add(self, template: Template) -> None:
        if len(self._templates) == MOST:
            self._templates.clear()
        self._templates.append(template)
        self.last = self._start
        self._start.follower = template
        self._start.long = template.long

    def clear(self) -> None:
        self._templates.clear()
        self.last = self._start
        self._start.follower = None
        self._start.long = maxsize

    def read(self, data: bytes) -> str | None:
        """The text in these bytes, if they are like earlier ones; `last` tells of which part it is."""
        template = self.last.follower
        if template is None:
            return None
        if data[template.head_place] != template.head or data[template.tail_place] != template.tail:
            template = self._other(data)
            if template is None:
                return None
        passed = self.passed + len(data)
        if passed > self.room:
            return None
        try:
            text = read_string(data[template.text_place])
        except (msgspec.DecodeError, UnicodeDecodeError):  # several events, too: a quote between them ends the text
            return None
        self.passed = passed
        self.last = template
        pieces = template.pieces
        if pieces is not None:
            pieces.append(text)
        return text

    def read_several(self, data: bytes) -> list[str] | None:
        """The texts in these bytes, if they are events like the last one, one or more, and nothing else."""
        template = self.last.follower
        passed = self.passed + len(data)
        if template is None or passed > self.room:
            return None
        events = data.split(template.tail)
        inner = [event[template.inner_place] for event in events[:-1]]
        if template.head + template.seam.join(inner) + template.tail != data:
            return None
        strings = b'["' + b'","'.join(inner) + b'"]'
        if _ESCAPED_END in strings:  # a quote at a seam that may belong to the text
            return None
        try:
            texts = _read_strings(strings)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        # A text with a quote of its own would have made more of them.
        if len(texts) != len(inner):
            return None
        self.passed = passed
        self.last = template
        if template.pieces is not None:
            template.pieces += texts
        return texts

    def cut(self, data: bytes) -> int:
        """Where to cut bytes that are not known as they are: before, or behind, what is. 0: nowhere."""
        template = self.last.follower
        if template is None:
            return data.find(_BLANK) + len(_BLANK) if _BLANK in data else 0
        start = data.find(template.head)
        if start:
            return max(start, 0)
        end = data.rfind(template.tail)
        return end + len(template.tail) if end >= 0 else 0

    def _other(self, data: bytes) -> Template | None:
        for template in self._templates:
            if data.startswith(template.head) and data.endswith(template.tail):
                self.last.follower = template
                return template
        return None


class Templates:
    """What a decoder has learnt about the events of its stream, until one comes that changes what they mean."""

    def __init__(self, look: Callable[[bytes], Fragment | None] = lambda _: None) -> None:
        self._look = look
        """Reads a payload without taking note of it: the fragment, if it says no more than that."""
        self.payloads = Ring()
        self.framed = Ring()
        self.news: Template | None = None
        self._in_vain = 0
        self._rest = 0

    def forget(self) -> None:
        """For every payload that is more than a fragment."""
        if self.payloads.last.follower is None:
            return  # nothing was learnt
        self.payloads.clear()
        self.framed.clear()
        self.news = None

    def learn(self, payload: bytes, fragment: Fragment) -> None:
        """From a payload that was read in full, and says no more than this fragment."""
        if not self._worthwhile():
            return
        index, text, pieces = fragment
        head, found, tail = payload.partition(encode_json(text))
        # The first place where these bytes stand need not be the right one: another text put there must come out again.
        if found and _PROBE not in payload and self._looks_like(head + _PROBE + tail, (index, _PROBE_TEXT, pieces)):
            self.news = Template(head + b'"', b'"' + tail, index, pieces)
            self.payloads.add(self.news)

    def _worthwhile(self) -> bool:
        """Events may differ in more than their text, each from all others: then it is tried ever less often."""
        if self._rest:
            self._rest -= 1
            return self._rest == 0
        if self.payloads.proven or self.framed.proven:
            self._in_vain = 0
        elif self._in_vain < MOST:
            self._in_vain += 1
        else:
            self._rest = 1 << self._in_vain
            self._in_vain = min(self._in_vain + 1, 16)
            self.forget()
        return self._rest == 0

    def _looks_like(self, payload: bytes, fragment: Fragment) -> bool:
        try:
            again = self._look(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        return again is not None and again[:2] == fragment[:2] and again[2] is fragment[2]

    def learn_frame(self, data: bytes, payload: bytes) -> None:
        """These bytes were the frame of one whole payload, and nothing else."""
        news, self.news = self.news, None
        if news is not None and data.count(payload) == 1:
            before, _, after = data.partition(payload)
            self.framed.add(Template(before + news.head, news.tail + after, news.index, news.pieces))
