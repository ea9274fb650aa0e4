"""How an image or video is read, which generateContent and Interactions both have, under other names.

The intermediate format has it as generateContent writes it, under the family `google`, like settings of a request
(google_settings.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Raw

from dragoman.codecs.google_settings import (
    GOOGLE_CONFIG,
    NO_SETTING,
    NO_VALUE,
    Object,
    Translated,
    Translation,
    as_is,
    both_spellings,
    members_of,
    name_key,
    spelled_key,
)
from dragoman.codecs.google_signatures import GOOGLE
from dragoman.ir import AnyPart, Request
from dragoman.ir.notes import MODELLED, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

KEYS_OF_MEDIA = frozenset(
    both_spellings(
        (
            f"{GOOGLE_CONFIG}.mediaResolution",
            *("mediaResolution", "videoMetadata", "mediaProcessing"),
            *("inlineData.displayName", "fileData.displayName"),
        )
    )
)
"""Keys of generateContent that are translated here, or reported where they cannot be."""

_RESOLUTIONS = {word: f"MEDIA_RESOLUTION_{word.upper()}" for word in ("low", "medium", "high", "ultra_high")}
_RESOLUTION_OF = {level: word for word, level in _RESOLUTIONS.items()}
_STATIC, _AGENTIC = "static", "agentic"
_OF_A_SEGMENT = {"start_offset": "startOffset", "end_offset": "endOffset", "fps": "fps"}
_SEGMENT_OF = {camel: snake for snake, camel in _OF_A_SEGMENT.items()}


def medium_in_google_words(notes: Extra) -> Extra:
    """Return how an image or video of Interactions is read, in the words of generateContent; notes it as written."""
    google: Extra = {}
    for key, translate in _MEDIUM_KEYS.items():
        found = translate(parse_json(notes[key])) if key in notes else {}
        if found:
            for name, value in found.items():
                google |= name_key(name, value, key)
            notes[MODELLED + key] = notes.pop(key)
    return google


def _resolution_in_capitals(word: Any) -> Object:
    level = _RESOLUTIONS.get(word) if isinstance(word, str) else None
    return {} if level is None else {"mediaResolution": {"level": level}}


def _processing_in_capitals(processing: Any) -> Object:
    if processing in (_STATIC, _AGENTIC):
        return {"mediaProcessing": processing.upper()}
    if not isinstance(processing, Mapping) or processing.get("type") != _STATIC:
        return {}
    segment = {key: value for key, value in processing.items() if key != "type"}
    if segment.keys() - _OF_A_SEGMENT.keys():
        return {}
    return {"videoMetadata": {_OF_A_SEGMENT[key]: value for key, value in segment.items()}}


_MEDIUM_KEYS: dict[str, Callable[[Any], Object]] = {
    "resolution": _resolution_in_capitals,
    "processing": _processing_in_capitals,
}


class MediumKeys:
    """Writes how generateContent has an image or video read, as members of a content of Interactions."""

    _log: LossLog
    _request: Request | None
    _resolution: str | None = None
    """For every image and video that does not state its own."""
    _place: str = ""
    """Where the request states it."""
    _is_used: bool = False

    def __init__(self, request: Request | None, log: LossLog) -> None:
        self._log = log
        self._request = request
        google = {} if request is None else family_notes(GOOGLE, request.metadata)
        config = inner_extra(google, GOOGLE_CONFIG) or {}
        key = spelled_key(config, "mediaResolution")
        level = None if key is None else parse_json(config[key])
        if level is not None:
            self._resolution = _RESOLUTION_OF.get(str(level).upper())
            self._place = f"{GOOGLE_CONFIG}.{key}"

    def finish(self) -> None:
        """Report what became of the resolution for all media."""
        if self._request is None or not self._place:
            return
        if self._is_used:
            why = "set on each image and video: this API has none for all media"
            self._log.degrade(self._request, self._place, "media resolution", why)
        else:
            why = "this API sets it on an image or video" if self._resolution else NO_VALUE
            self._log.drop(self._request, self._place, "media resolution", why)

    def write(self, part: Any, kind: str, own: Extra) -> Extra:
        """Return the members of a content of this kind; `own` are those that it has already."""
        found = {name: (path, value) for name, path, value in _keys_of_a_medium(part)}
        if "videoMetadata" in found and "mediaProcessing" in found:
            path, value = found.pop("mediaProcessing")
            if str(value).lower() != _STATIC:
                self._log.drop(part, path, "mediaProcessing", "this API takes a segment of a static video only")
        written: Extra = {}
        for name, (path, value) in found.items():
            written |= self._write_key(part, kind, path, name, value)
        written = {key: raw for key, raw in written.items() if MODELLED + key not in own}
        if self._resolution is not None and kind in _SEEN and own.keys().isdisjoint(_OWN_RESOLUTION):
            written.setdefault("resolution", Raw(encode_json(self._resolution)))
            self._is_used = True
        return written

    def _write_key(self, part: AnyPart, kind: str, path: str, name: str, value: Any) -> Extra:
        kinds, translate, key = _KEYS_OF_A_MEDIUM[name]
        found = translate(value) if kind in kinds else None
        if found is None:
            why = NO_VALUE if kind in kinds else f"this API has it for {' and '.join(kinds)}s only"
            self._log.drop(part, path, name, why)
            return {}
        for inner in found.left_out:
            self._log.drop(part, f"{path}.{inner}", inner, NO_SETTING)
        return {key: Raw(encode_json(found.value))}


_SEEN = ("image", "video")
_OWN_RESOLUTION = ("resolution", MODELLED + "resolution")


def _keys_of_a_medium(part: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the keys of generateContent on an image or file, except those that are null: name, path and value."""
    google = family_notes(GOOGLE, part.metadata)
    for within in ("", "inlineData", "fileData") if google else ():
        entries = inner_extra(google, within) if within else google
        for name, spelled, raw in members_of(entries or {}):
            path = f"{within}.{spelled}" if within else spelled
            if path in KEYS_OF_MEDIA and bytes(raw) != b"null":
                yield name, path, parse_json(raw)


def _resolution_in_lower_case(value: Any) -> Translated | None:
    members = {name: (key, member) for name, key, member in members_of(value)} if isinstance(value, Mapping) else {}
    level = members.pop("level", (None, None))[1]
    word = _RESOLUTION_OF.get(level) if isinstance(level, str) else None
    return None if word is None else Translated(word, tuple([key for key, _ in members.values()]))


def _segment_in_lower_case(value: Any) -> Translated | None:
    if not isinstance(value, Mapping):
        return None
    left_out = tuple([key for name, key, _ in members_of(value) if name not in _SEGMENT_OF])
    segment = {_SEGMENT_OF[name]: member for name, _, member in members_of(value) if name in _SEGMENT_OF}
    return Translated({"type": _STATIC, **segment}, left_out)


def _processing_in_lower_case(value: Any) -> Translated | None:
    return Translated(value.lower()) if isinstance(value, str) and value.lower() in {_STATIC, _AGENTIC} else None


_KEYS_OF_A_MEDIUM: dict[str, tuple[tuple[str, ...], Translation, str]] = {
    "mediaResolution": (_SEEN, _resolution_in_lower_case, "resolution"),
    "mediaProcessing": (("video",), _processing_in_lower_case, "processing"),
    "videoMetadata": (("video",), _segment_in_lower_case, "processing"),
    "displayName": (("video",), as_is, "name"),
}
