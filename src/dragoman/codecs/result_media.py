"""Images and files of tool results, for APIs that take them from users only.

They follow the results in a separate user turn, each group after a tag with its call's id; reading puts them back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import structs

from dragoman.ir import AnyPart, Message, Metadata, Text, ToolResult

TAGGED = "~tagged"
"""Note: the media of this result came in a tagged user turn, and may go back that way without a loss report."""

_ANNOUNCED = " in the next user message]"
_MEDIA_TAG = re.compile(r"\[media of tool result (?P<id>[^\]]*)\]")


def media_tag(call_id: str) -> str:
    return f"[media of tool result {call_id}]"


def media_placeholder(count: int) -> str:
    return f"[{count} media part{'s' if count != 1 else ''}{_ANNOUNCED}"


def is_media_tag(text: str) -> bool:
    return text[:1] == "[" and _MEDIA_TAG.fullmatch(text) is not None


def rejoin_media(messages: Sequence[Message], mark: Metadata | None = None) -> list[Message]:
    """Put media that came in a tagged user turn back into their results; `mark` is noted on each of those."""
    rejoined: list[Message] = []
    for message in messages:
        content = message.content_held
        if message.role != "user" or isinstance(content, str) or not _is_tagged(content):
            rejoined.append(message)
            continue
        media: dict[str, list[AnyPart]] = {}
        current: list[AnyPart] = []
        for part in content:
            tag = _MEDIA_TAG.fullmatch(part.text) if type(part) is Text else None
            if tag is not None:
                current = media.setdefault(tag["id"], [])
            else:
                current.append(part)
        found = _by_result(media, _last_results(rejoined))
        if found:
            _attach(rejoined, found, mark)
        else:
            rejoined.append(message)  # its results are missing: the media stay where they are
    return rejoined


def _by_result(media: dict[str, list[AnyPart]], results: Sequence[ToolResult]) -> dict[str, list[AnyPart]]:
    """Return the media of each result by id; on a wire without ids, by the order of results that announce media."""
    if media.keys() <= {result.tool_call_id for result in results}:
        return media
    announcing = [result for result in results if _announces(result)]
    for candidates in (announcing, results):
        if len(candidates) == len(media):
            return {result.tool_call_id: parts for result, parts in zip(candidates, media.values(), strict=True)}
    return {}


def _announces(result: ToolResult) -> bool:
    """Whether the text of a result ends with the announcement that its media follow."""
    texts = result.parts or (Text(str(result.value)),)
    return any(type(part) is Text and part.text.endswith(_ANNOUNCED) for part in texts)


def _last_results(messages: Sequence[Message]) -> list[ToolResult]:
    """Return the results at the end of these messages, in order."""
    results: list[ToolResult] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        results[:0] = message.tool_results
    return results


def _is_tagged(content: Sequence[AnyPart]) -> bool:
    return bool(content) and type(content[0]) is Text and is_media_tag(content[0].text)


def _attach(messages: list[Message], media: dict[str, list[AnyPart]], mark: Metadata | None) -> None:
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role != "tool":
            return
        results: list[AnyPart] = []
        for part in message.parts:
            found = media.get(part.tool_call_id) if isinstance(part, ToolResult) else None
            results.append(part if found is None else _with_media(part, found, mark))  # type: ignore[arg-type]
        messages[index] = structs.replace(message, parts=tuple(results))


def _with_media(result: ToolResult, media: list[AnyPart], mark: Metadata | None) -> ToolResult:
    placeholder = media_placeholder(len(media))
    texts: Sequence[AnyPart] = result.parts if result.kind == "multimodal" else (Text(str(result.value)),)
    kept = tuple(part for part in texts if not (type(part) is Text and part.text == placeholder))
    kind = "error" if result.kind == "error" else "multimodal"
    metadata = result.metadata
    for family, notes in (mark or {}).items():
        metadata = {**(metadata or {}), family: {**(metadata or {}).get(family, {}), **notes}}
    return structs.replace(result, kind=kind, value=None, parts=kept + tuple(media), metadata=metadata)


def media_turns_before(messages: tuple[Message, ...], family: str) -> list[int]:
    """Return, for each message, how many tagged user turns preceded it on the wire; their media moved into results."""
    counts = []
    turns = 0
    waiting = False
    for message in messages:
        if waiting and message.role != "tool":
            turns += 1
            waiting = False
        counts.append(turns)
        if message.role == "tool" and not waiting:
            for part in message.content_held:
                metadata = part.metadata if type(part) is ToolResult else None
                if metadata is not None and TAGGED in metadata.get(family, {}):
                    waiting = True
    return counts
