"""Settings that generateContent and Interactions both have, under other names: of a request, and of an image or video.

The intermediate format has them as generateContent writes them, under the family `google`. Each translation takes one
value, and returns None for one that the other API cannot express; what it leaves out of a value is named beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET, Raw, structs

from dragoman.codecs.google_signatures import GOOGLE
from dragoman.codecs.shared_settings import fit_modalities
from dragoman.ir import AnyTool, Metadata, ProviderTool, Request, StructuredOutput
from dragoman.ir.notes import MODELLED, NAMED, WITHIN, Extra, family_notes, inner_extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

Object = dict[str, Any]


class Translated(NamedTuple):
    value: Any
    left_out: tuple[str, ...] = ()
    """Members without a counterpart, as they were spelled."""


Translation: TypeAlias = Callable[[Any], Translated | None]

NO_SETTING = "this API has no such setting"
NO_VALUE = "this API has no such value"


def camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def members_of(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the members of an object of generateContent that are not null: their name, spelling and value."""
    for key, member in value.items() if isinstance(value, Mapping) else ():
        if member is not None:
            yield camel_case(key), key, member


# ── safety ────────────────────────────────────────────────────────────────────────────────────────────────────

_HARM = "HARM_CATEGORY_"
_SAFETY = {"type": "category", "threshold": "threshold", "method": "method"}


def as_is(value: Any) -> Translated | None:
    return None if value is None else Translated(value)


def _never(_value: Any) -> None:
    """For what both APIs have, each with values of its own."""


def _safety_in_capitals(settings: Any) -> Translated | None:
    if not _is_list_of(settings, _SAFETY.keys()):
        return None
    prefixes = {"type": _HARM}
    capitals = [
        {_SAFETY[key]: prefixes.get(key, "") + str(word).upper() for key, word in entry.items()} for entry in settings
    ]
    # A word in other letters is one that we do not know.
    return Translated(capitals) if _safety_in_lower_case(capitals) == Translated(settings) else None


def _safety_in_lower_case(settings: Any) -> Translated | None:
    names = {there: here for here, there in _SAFETY.items()}
    if not _is_list_of(settings, names.keys()):
        return None
    return Translated(
        [{names[key]: str(word).removeprefix(_HARM).lower() for key, word in entry.items()} for entry in settings]
    )


def _is_list_of(settings: Any, keys: AbstractSet[str]) -> bool:
    return isinstance(settings, list) and all(
        isinstance(entry, Mapping) and entry.keys() <= keys and all(isinstance(word, str) for word in entry.values())
        for entry in settings
    )


# ── speech ────────────────────────────────────────────────────────────────────────────────────────────────────

_VOICE_KEYS = frozenset({"voice", "language", "speaker"})


def _speech_of_interactions(config: Any) -> Translated | None:
    """Return the voices as a speechConfig, which has one language for all of them."""
    voices = config.get("speakers") if isinstance(config, Mapping) and config.keys() == {"speakers"} else config
    if not voices or not _is_list_of(voices, _VOICE_KEYS):
        return None
    languages = {voice.get("language") for voice in voices}
    if len(languages) > 1:
        return None
    language = languages.pop()
    speech: Object = {} if language is None else {"languageCode": language}
    if len(voices) == 1 and "speaker" not in voices[0]:
        return Translated(_voice_config(voices[0]) | speech)
    speakers = [
        ({"speaker": voice["speaker"]} if "speaker" in voice else {}) | _voice_config(voice) for voice in voices
    ]
    return Translated({"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": speakers}} | speech)


def _voice_config(voice: Mapping[str, Any]) -> Object:
    return {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice["voice"]}}} if "voice" in voice else {}


def _speech_of_generate(config: Any) -> Translated | None:
    """Return a speechConfig as a list of voices, each with the language. A recorded voice has no counterpart."""
    if not isinstance(config, Mapping):
        return None
    members = {name: value for name, _, value in members_of(config)}
    left_out = tuple([key for name, key, _ in members_of(config) if name not in _SPEECH])
    language = {"language": members["languageCode"]} if "languageCode" in members else {}
    several = members.get("multiSpeakerVoiceConfig")
    if several is None:
        voice = _voice_of(members)
        voices = [None if voice is None else voice | language]
    else:
        voices = [None if voice is None else voice | language for voice in _voices_of(several)]
    if not voices or None in voices or not any(voices):
        return None
    return Translated(voices, left_out)


_SPEECH = frozenset({"voiceConfig", "languageCode", "multiSpeakerVoiceConfig"})


def _voices_of(config: Any) -> list[Object | None]:
    found = [value for name, _, value in members_of(config) if name == "speakerVoiceConfigs"]
    entries = found[0] if found and isinstance(found[0], list) else []
    voices: list[Object | None] = []
    for entry in entries:
        members = {name: value for name, _, value in members_of(entry)}
        voice = _voice_of(members)
        speaker = {"speaker": members["speaker"]} if "speaker" in members else {}
        voices.append(None if voice is None or members.keys() - {"speaker", "voiceConfig"} else speaker | voice)
    return voices


def _voice_of(config: Mapping[str, Any]) -> Object | None:
    """Return the named voice in an object that may have a voiceConfig; None if its voice is not one with a name."""
    held = config.get("voiceConfig")
    if held is None:
        return {}
    members = {name: value for name, _, value in members_of(held)}
    named = {name: value for name, _, value in members_of(members.get("prebuiltVoiceConfig"))}
    if len(members) == 1 and named.keys() == {"voiceName"}:
        return {"voice": named["voiceName"]}
    return {"voice": members["voice"]} if members.keys() == {"voice"} else None


# ── transcription ─────────────────────────────────────────────────────────────────────────────────────────────

_SAME_IN_TRANSCRIPTION = ("languageCodes", "customVocabulary", "adaptationPhrases")
_HINTS, _WORDS, _SPEAKERS = "languageHints", ["word"], "speaker"
_FINE = frozenset({"timestamp_granularities", "diarization_mode"})
_VERBATIM, _SMART = "verbatim", "smart"


def _transcription_of_interactions(config: Any) -> Translated | None:
    if not isinstance(config, Mapping):
        return None
    entries = dict(config)
    mode = entries.pop("mode", None)
    options = dict(mode) if isinstance(mode, Mapping) else {"type": mode}
    word = options.pop("type", None)
    if word not in (None, _VERBATIM, _SMART) or options.keys() - (_FINE | {"source_text"}):
        return None
    written: Object = {} if word is None else {"mode": word.upper()}
    if "source_text" in options:
        written["sourceText"] = options.pop("source_text")
    for key, value in (entries | options).items():
        name = camel_case(key)
        if name in _SAME_IN_TRANSCRIPTION:
            written[name] = value
        elif name == _HINTS:
            written[name] = {"languageCodes": value}
        elif key == "timestamp_granularities" and value in ([], _WORDS):
            written["wordTimestamp"] = bool(value)
        elif key == "diarization_mode" and value == _SPEAKERS:
            written["diarization"] = True
        else:
            return None
    return Translated(written)


def _transcription_of_generate(config: Any) -> Translated | None:
    if not isinstance(config, Mapping):
        return None
    written: Object = {}
    left_out: list[str] = []
    source: Any = None
    for name, key, value in members_of(config):
        if name in _SAME_IN_TRANSCRIPTION:
            written[_snake_case(name)] = value
        elif name == _HINTS and isinstance(value, Mapping):
            written[_snake_case(name)] = next((codes for inner, _, codes in members_of(value)), [])
        elif name == "wordTimestamp" and isinstance(value, bool):
            written |= {"timestamp_granularities": _WORDS} if value else {}
        elif name == "diarization" and isinstance(value, bool):
            written |= {"diarization_mode": _SPEAKERS} if value else {}
        elif name == "mode" and isinstance(value, str) and value.lower() in {_VERBATIM, _SMART}:
            written["mode"] = value.lower()
        elif name == "sourceText":
            source = value
        else:
            left_out.append(key)
    if source is not None:
        written["mode"] = {"type": _SMART, "source_text": source}
    return Translated(written, tuple(left_out))


# ── drawn images ──────────────────────────────────────────────────────────────────────────────────────────────

_OF_AN_IMAGE = {"aspect_ratio": "aspectRatio", "image_size": "imageSize"}


def _image_of_interactions(config: Any) -> Translated | None:
    if not isinstance(config, Mapping):
        return None
    left_out = tuple([key for key in config if key not in _OF_AN_IMAGE])
    return Translated({_OF_AN_IMAGE[key]: value for key, value in config.items() if key in _OF_AN_IMAGE}, left_out)


def _image_of_generate(config: Any) -> Translated | None:
    if not isinstance(config, Mapping):
        return None
    names = {camel: snake for snake, camel in _OF_AN_IMAGE.items()}
    left_out = tuple([key for name, key, _ in members_of(config) if name not in names])
    written = {names[name]: value for name, _, value in members_of(config) if name in names}
    return Translated(written, left_out) if written else None


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────


class SharedSetting(NamedTuple):
    """A setting of both APIs: the key of Interactions, the name of generateContent, and the translations."""

    key: str
    name: str
    to_generate: Translation
    to_interactions: Translation
    why_not: str = NO_VALUE
    """Why a value of generateContent does not cross."""
    is_config: bool = True
    """Whether it is in the object `generation_config` (`generationConfig`), not at the top."""

    @property
    def path(self) -> str:
        return f"{_CONFIG}.{self.key}" if self.is_config else self.key

    @property
    def google_path(self) -> str:
        return f"{GOOGLE_CONFIG}.{self.name}" if self.is_config else self.name


INTERACTIONS = "gemini-interactions"
"""The family that writes and reads the metadata of Interactions."""
_CONFIG, GOOGLE_CONFIG = "generation_config", "generationConfig"

SHARED = (
    SharedSetting("safety_settings", "safetySettings", _safety_in_capitals, _safety_in_lower_case, is_config=False),
    SharedSetting("cached_content", "cachedContent", as_is, as_is, is_config=False),
    SharedSetting(
        "continuation_token",
        "continuationToken",
        _never,
        _never,
        why_not="only the API that issued it can continue with it",
        is_config=False,
    ),
    SharedSetting("speech_config", "speechConfig", _speech_of_interactions, _speech_of_generate),
    SharedSetting(
        "transcription_config",
        "audioTranscriptionConfig",
        _transcription_of_interactions,
        _transcription_of_generate,
    ),
    SharedSetting("image_config", "imageConfig", _image_of_interactions, _image_of_generate),
)
_LOCATION = "toolConfig.retrievalConfig"


def both_spellings(paths: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths with their last key in both spellings: a key that is passed on keeps that of the client."""
    for path in paths:
        within, dot, name = path.rpartition(".")
        yield path
        yield within + dot + _snake_case(name)


TRANSLATED = frozenset(both_spellings((*(row.google_path for row in SHARED), _LOCATION)))
"""Keys of generateContent that are translated here, or reported where they cannot be."""


def name_key(name: str, value: Any, key: str) -> Extra:
    """Return a key of generateContent, with the name that Interactions has for it."""
    return {name: Raw(encode_json(value)), NAMED + name: Raw(encode_json(key))}


def settings_in_google_words(notes: Extra, tools: tuple[AnyTool, ...]) -> Extra:
    """Return the keys of an Interactions request that generateContent has too; notes them as they were written."""
    config = inner_extra(notes, _CONFIG) or {}
    google, google_config = (_translate_keys(keys, is_config=keys is config) for keys in (notes, config))
    google_config |= _drawn_images(notes)
    if "response_modalities" in notes:
        notes.pop(MODALITIES, None)  # it is stated
    if config:
        notes[WITHIN + _CONFIG] = Raw(encode_json(config))
    if google_config:
        google[WITHIN + GOOGLE_CONFIG] = Raw(encode_json(google_config))
    location = next((family_notes(INTERACTIONS, tool.metadata) for tool in tools if is_map(tool)), None)
    if location:
        place = {"latLng": {key: location[key] for key in _COORDINATES if key in location}}
        google[WITHIN + "toolConfig"] = Raw(encode_json(name_key("retrievalConfig", place, "latitude and longitude")))
    return google


def with_google_words(request: Request, google: Extra, notes: Extra) -> Request:
    """Return the request of Interactions with its settings in these words, and with what its formats imply."""
    if google:
        request = structs.replace(request, metadata={**(request.metadata or {}), GOOGLE: google})
    return structs.replace(request, modalities=tuple(parse_json(notes[MODALITIES]))) if MODALITIES in notes else request


def _translate_keys(entries: Extra, *, is_config: bool) -> Extra:
    found: Extra = {}
    for row in SHARED:
        raw = entries.get(row.key) if row.is_config is is_config else None
        translated = None if raw is None else row.to_generate(parse_json(raw))
        if translated is not None and not translated.left_out:
            found |= name_key(row.name, translated.value, row.key)
            entries[MODELLED + row.key] = entries.pop(row.key)
    return found


# ── formats of an answer ──────────────────────────────────────────────────────────────────────────────────────

_FORMATS = "response_format"
_OTHER_FORMATS = frozenset({"image", "audio", "video"})
_PLAIN = ({"type": "text"}, {"type": "text", "mime_type": "text/plain"})
JSON = "application/json"
_KEYS_OF_JSON = frozenset({"type", "mime_type", "schema"})
MODALITIES = "~modalities"
"""Note on a request of Interactions: what its answer consists of, as the formats of the answer imply."""


def read_formats(raw: Raw) -> tuple[list[Object], list[Object], bool]:
    """Return the formats of text, the others, and whether there is nothing else to them."""
    parsed = parse_json(raw)
    entries = parsed if isinstance(parsed, list) else [parsed]
    typed = [entry for entry in entries if isinstance(entry, dict)]
    texts = [entry for entry in typed if entry.get("type") == "text"]
    others = [entry for entry in typed if entry not in texts]
    is_known = len(typed) == len(entries) and {str(entry.get("type")) for entry in others} <= _OTHER_FORMATS
    is_known = is_known and len(texts) <= 1 and all(text in _PLAIN for text in texts)
    return texts, others, is_known


def read_json_format(text: Object, raw: Raw) -> StructuredOutput | None:
    """Read a format of text that is JSON and says nothing else; `raw` are all formats."""
    if not (text.keys() <= _KEYS_OF_JSON and text.get("mime_type", JSON) == JSON):
        return None
    metadata: Metadata = {INTERACTIONS: {"~format": raw}}
    if "schema" in text:
        return StructuredOutput("schema", Raw(encode_json(text["schema"])), metadata=metadata)
    return StructuredOutput("json", metadata=metadata) if "mime_type" in text else None


def note_other_formats(others: list[Object], notes: Extra, *, has_text: bool) -> None:
    """Note the formats that are not text, by their type, and what the answer then consists of."""
    if not others:
        return
    kinds: dict[str, Object] = {}
    for entry in others:
        kind = str(entry.get("type", ""))
        kinds[kind if kind not in kinds else f"{kind}, again ({len(kinds)})"] = entry
    notes[WITHIN + _FORMATS] = Raw(encode_json(kinds))
    drawn = [kind for kind in kinds if kind in _OTHER_FORMATS]
    if drawn:
        notes[MODALITIES] = Raw(encode_json(["text", *drawn] if has_text else drawn))


def _drawn_images(notes: Extra) -> Extra:
    """Return the imageConfig that a format of the answer stands for; what it does not say stays in the notes."""
    formats = inner_extra(notes, _FORMATS)
    drawn = None if formats is None else formats.get("image")
    if formats is None or drawn is None:
        return {}
    entry = parse_json(drawn)
    entry.pop("type", None)
    translated = _image_of_interactions(entry)
    del formats["image"]
    for key in () if translated is None else translated.left_out:
        formats[f"image.{key}"] = Raw(encode_json(entry[key]))
    notes[WITHIN + _FORMATS] = Raw(encode_json(formats))
    return {} if translated is None or not translated.value else name_key("imageConfig", translated.value, "image")


_IN_MODALITIES = ("modalities", f"{GOOGLE_CONFIG}.responseModalities")
_PATHS = {row.google_path: row.path for row in SHARED}


def path_of_shared(field: str, request: Request) -> str | None:
    """Return where a request of Interactions has a setting of generateContent; None for one that is not shared."""
    notes = family_notes(INTERACTIONS, request.metadata)
    if field.startswith(_LOCATION):
        return next((f"tools[{place}]" for place, tool in enumerate(request.tools) if is_map(tool)), None)
    if field in _IN_MODALITIES and MODALITIES in notes:
        return _FORMATS
    head, bracket, rest = field.partition("[")
    if head == f"{GOOGLE_CONFIG}.imageConfig" and MODELLED + "image_config" not in (inner_extra(notes, _CONFIG) or {}):
        return _FORMATS
    return _PATHS[head] + bracket + rest if head in _PATHS else None


def settings_of_google(request: Request, notes: Extra, log: LossLog) -> tuple[Extra, Extra]:
    """Return, for Interactions, the keys that a generateContent request has under other names.

    First those at the top, then those of `generation_config`.
    """
    google = family_notes(GOOGLE, request.metadata)
    config = inner_extra(google, GOOGLE_CONFIG) or {}
    own = inner_extra(notes, _CONFIG) or {}
    return (
        _write_keys(request, google, notes, log, is_config=False),
        _write_keys(request, config, own, log, is_config=True),
    )


def _write_keys(request: Request, google: Extra, own: Extra, log: LossLog, *, is_config: bool) -> Extra:
    written: Extra = {}
    for row in SHARED:
        key = spelled_key(google, row.name) if row.is_config is is_config else None
        if key is None or MODELLED + row.key in own:
            continue
        parsed = parse_json(google[key])
        path = f"{GOOGLE_CONFIG}.{key}" if is_config else key
        translated = None if parsed is None else row.to_interactions(parsed)
        if translated is not None:
            written[row.key] = Raw(encode_json(translated.value))
            for name in translated.left_out:
                log.drop(request, f"{path}.{name}", name, NO_SETTING)
        elif parsed is not None:
            log.drop(request, path, key, row.why_not)
    return written


def spelled_key(google: Extra, name: str) -> str | None:
    return next((key for key in google if camel_case(key) == name), None)


_KINDS = ("text", "image", "audio", "video", "document")


def write_modalities(modalities: tuple[str, ...], request: Request, log: LossLog) -> Any:
    """Return the `response_modalities` of Interactions, or UNSET."""
    if request.origin != INTERACTIONS:
        return fit_modalities(modalities, _KINDS, request, log) or UNSET
    noted = family_notes(INTERACTIONS, request.metadata).get(MODALITIES)
    return UNSET if noted is not None and parse_json(noted) == list(modalities) else modalities


# ── the user's place ──────────────────────────────────────────────────────────────────────────────────────────

_COORDINATES = ("latitude", "longitude")
_MAPS = "googleMaps"


def with_place(request: Request, log: LossLog) -> Request:
    """Return the request for Interactions, with the user's place on the tool for maps."""
    config = inner_extra(family_notes(GOOGLE, request.metadata), "toolConfig") or {}
    key = spelled_key(config, "retrievalConfig")
    given = None if key is None else parse_json(config[key])
    if not isinstance(given, Mapping):
        return request
    path = f"toolConfig.{key}"
    place: Extra = {}
    for name, spelled, value in members_of(given):
        if name != "latLng" or not isinstance(value, Mapping) or not any(map(is_map, request.tools)):
            why = "this API gives the user's place to the tool for maps only" if name == "latLng" else NO_SETTING
            log.drop(request, f"{path}.{spelled}", spelled, why)
        else:
            place = {inner: Raw(encode_json(value[inner])) for inner in _COORDINATES if inner in value}
    if not place:
        return request
    tools = [log.replace(tool, metadata={INTERACTIONS: place}) if is_map(tool) else tool for tool in request.tools]
    return log.replace(request, tools=tuple(tools))


def is_map(tool: AnyTool) -> bool:
    return type(tool) is ProviderTool and tool.origin == GOOGLE and camel_case(tool.name) == _MAPS


def write_place(tool: ProviderTool, written: Object | None) -> Object | None:
    """Return the entry of a tool with the user's place, if it is the tool for maps."""
    place = family_notes(INTERACTIONS, tool.metadata) if is_map(tool) else None
    return written | place if place and written is not None else written


def take_place(definition: Object) -> Extra:
    """Remove the user's place from a tool for maps of Interactions, and return it."""
    if definition.get("type") != "google_maps":
        return {}
    return {key: Raw(encode_json(definition.pop(key))) for key in _COORDINATES if key in definition}
