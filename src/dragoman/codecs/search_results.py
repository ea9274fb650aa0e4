"""Search results that an application gives a model to cite, in the two existing forms, and as text for other APIs."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from dragoman.ir import SearchResult, Text
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

_TITLE_KEYS = frozenset({"source", "title", "content", "citations", "type", "cache_control"})


def read_search_result(raw: Raw, family: str) -> SearchResult | None:
    """Decode the block of either vendor, without its cache mark; None for one without the required members."""
    parsed = parse_json(raw)
    if not isinstance(parsed, dict) or not isinstance(content := parsed.get("content"), list):
        return None
    texts = [piece["text"] for piece in content if isinstance(piece, dict) and isinstance(piece.get("text"), str)]
    source, title, switch = parsed.get("source"), parsed.get("title"), parsed.get("citations")
    if not isinstance(source, str) or not isinstance(title, str) or len(texts) < len(content):
        return None
    enabled = switch.get("enabled") if isinstance(switch, dict) else None
    cite = enabled if isinstance(enabled, bool) else None
    notes: Extra = {key: Raw(encode_json(value)) for key, value in parsed.items() if key not in _TITLE_KEYS}
    if any(piece.keys() - {"type", "text"} for piece in content):
        notes["content"] = Raw(encode_json(content))
    if "citations" in parsed and switch != {"enabled": cite}:
        notes["citations" if isinstance(switch, dict) and switch.keys() - {"enabled"} else "~citations"] = Raw(
            encode_json(switch)
        )
    return SearchResult(source, title, tuple(texts), cite, None, {family: notes} if notes else None)


def search_fields(part: SearchResult, family: str, *, typed: bool) -> dict[str, Any]:
    """Return the members that both vendors have. `typed`: whether each excerpt names its type."""
    notes = (part.metadata or {}).get(family, {})
    content: Any = [{"type": "text", "text": text} if typed else {"text": text} for text in part.texts]
    fields: dict[str, Any] = {"source": part.source, "title": part.title, "content": notes.get("content", content)}
    switch = notes.get("citations", notes.get("~citations"))
    if switch is not None:
        fields["citations"] = switch
    elif part.cite is not None:
        fields["citations"] = {"enabled": part.cite}
    return fields | {key: value for key, value in notes.items() if key not in _TITLE_KEYS and key[:1] != "~"}


_NO_BLOCK = "sent as text: this API has no such block"


def search_text(part: SearchResult, log: LossLog, why: str = _NO_BLOCK) -> str:
    """Return the text of a search result, for models without such a block."""
    log.degrade(part, "", "search result", why)
    if part.cite is not None:
        log.drop(part, "cite", "citation switch of a search result", "a text has no such switch")
    return search_words(part)


def search_as_text(part: SearchResult, log: LossLog, why: str = _NO_BLOCK) -> Text:
    """Return the part that replaces a search result, for models without such a block; it keeps the cache mark."""
    text = Text(search_text(part, log, why), cache=part.cache)
    log.replaced(text, part)
    return text


def search_words(part: SearchResult) -> str:
    return "\n".join((f"{part.title} ({part.source})", *part.texts))
