"""Rules on messages: roles, blocks and their neighbours, calls and results, cache points, media."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from dragoman.sim.rules.bedrock_converse_request import (
    Block,
    Request,
    Rule,
    Turn,
    blocks_of,
    model_refuses,
    place,
    refuse,
)
from dragoman.sim.rules.common import Path, Violation, object_at, objects_at, text_at

NO_OBJECT = "The format of the value at {} is invalid. Provide a json object for the field and try again."

# --- roles --------------------------------------------------------------------------------------------------------

BLOCKS_OF_ROLE = {
    "user": {
        "text",
        "image",
        "document",
        "video",
        "audio",
        "toolResult",
        "guardContent",
        "cachePoint",
        "searchResult",
    },
    # A tool of the service is called and answered within the assistant's turn.
    "assistant": {"text", "toolUse", "toolResult", "cachePoint", "reasoningContent", "citationsContent"},
    "system": {"text", "guardContent", "cachePoint", "toolAddition", "toolRemoval"},
}


def conversation_starts_with_user(request: Request) -> Iterator[Violation]:
    turns = request.turns
    if request.uses_prompt and not turns:
        return
    if not turns or (turns[0].role != "user" and request.family and request.family.starts_with_user):
        message = (
            "A conversation must start with a user message. "
            "Try again with a conversation that starts with a user message."
        )
        yield refuse(("messages",), message)


def messages_say_something(request: Request) -> Iterator[Violation]:
    for index, message in enumerate(objects_at(request.body, "messages")):
        if not objects_at(message, "content"):
            text = (
                f"The content field in the Message object at messages.{index} is empty. "
                "Add a ContentBlock object to the content field and try again."
            )
            yield refuse(("messages", index, "content"), text)


def texts_are_not_blank(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        for block, following in zip_longest(turn.blocks, turn.blocks[1:]):
            if block.kind != "text" or not isinstance(block.value, str) or block.value.strip():
                continue
            # A line end before a cache point, to part it from a document, passed (recording 7ef7e63a5bca).
            if block.value and following is not None and following.kind == "cachePoint":
                continue
            message = (
                f"The text field in the ContentBlock object at {place(block.path)} is blank. "
                "Add text to the text field, and try again."
            )
            yield refuse(block.path, message)


def blocks_fit_their_role(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        for block in turn.blocks:
            if block.kind not in BLOCKS_OF_ROLE[turn.role]:
                message = (
                    f"The {block.kind} content block at {place(block.path)} is not allowed in {turn.role} messages."
                )
                yield refuse(block.path, message)


# --- calls and results --------------------------------------------------------------------------------------------


def _ids(blocks: Sequence[Block]) -> list[str]:
    return [text_at(block.value, "toolUseId") for block in blocks]


def _client_calls(turn: Turn) -> list[str]:
    """Calls of the turn that the caller has to answer."""
    inside = _ids(turn.of_kind("toolResult"))
    calls = turn.of_kind("toolUse")
    return [
        text_at(call.value, "toolUseId")
        for call in calls
        if text_at(call.value, "type") != "server_tool_use" and text_at(call.value, "toolUseId") not in inside
    ]


def calls_are_answered(request: Request) -> Iterator[Violation]:
    turns = [turn for turn in request.turns if turn.role != "system"]
    for turn, following in zip_longest(turns, turns[1:]):
        if turn.role != "assistant":
            continue
        answered = _ids(following.of_kind("toolResult")) if following else []
        missing = [identifier for identifier in _client_calls(turn) if identifier not in answered]
        if missing:
            # The turn that is not there would be the next one.
            index = following.first_message if following else len(objects_at(request.body, "messages"))
            message = (
                f"Expected toolResult blocks at messages.{index}.content for the following Ids: {', '.join(missing)}"
            )
            yield refuse(("messages", index, "content"), message)


def results_have_calls(request: Request) -> Iterator[Violation]:
    turns = [turn for turn in request.turns if turn.role != "system"]
    for before, turn in zip((None, *turns), turns, strict=False):
        if turn.role != "user":
            continue
        calls = _client_calls(before) if before and before.role == "assistant" else []
        if len(turn.of_kind("toolResult")) > len(calls):
            message = (
                f"The number of toolResult blocks at messages.{turn.first_message}.content "
                "exceeds the number of toolUse blocks of previous turn."
            )
            yield refuse(("messages", turn.first_message, "content"), message)


def call_ids_differ(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        for identifier, count in Counter(_ids(turn.of_kind("toolUse"))).items():
            if count > 1:
                message = f"Duplicate toolUseId '{identifier}' at messages.{turn.first_message}.content."
                yield refuse(("messages", turn.first_message, "content"), message)


def call_inputs_are_objects(request: Request) -> Iterator[Violation]:
    for block in request.blocks("toolUse"):
        if not isinstance(object_at(block.value).get("input"), Mapping):
            where: Path = (*block.path, "toolUse", "input")
            yield refuse(where, NO_OBJECT.format(place(where)))


def json_results_are_objects(request: Request) -> Iterator[Violation]:
    for block in request.media("json"):
        if not isinstance(block.value, Mapping):
            where: Path = (*block.path, "json")
            yield refuse(where, NO_OBJECT.format(place(where)))


def tool_blocks_need_tools(request: Request) -> Iterator[Violation]:
    if request.body.get("toolConfig") is None and any(request.blocks("toolUse", "toolResult")):
        message = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        yield refuse(("toolConfig",), message)


def results_stand_alone(request: Request) -> Iterator[Violation]:
    if not request.family or not request.family.results_stand_alone:
        return
    for turn in request.turns:
        others = [block for block in turn.blocks if block.kind not in ("toolResult", "cachePoint")]
        if turn.role == "user" and turn.of_kind("toolResult") and others:
            message = "This model doesn't support other content blocks beside toolResult blocks in one turn."
            yield refuse(others[0].path, message)


def results_have_a_status(request: Request) -> Iterator[Violation]:
    if not request.family or request.family.takes_result_status:
        return
    for block in request.blocks("toolResult"):
        if object_at(block.value).get("status") is not None:
            where: Path = (*block.path, "toolResult", "status")
            yield refuse(where, "This model doesn't support the status field. Remove status and try again.")


# --- cache points -------------------------------------------------------------------------------------------------

# Documents that are read as text; a PDF stays a document.
TEXT_DOCUMENTS = {"csv", "txt", "md", "html", "docx", "xlsx", "doc", "xls"}


def _cache_places(request: Request) -> Iterator[tuple[Path, Sequence[Block]]]:
    """Every cache point with the blocks before it in its list."""
    for index, message in enumerate(objects_at(request.body, "messages")):
        blocks = list(blocks_of(("messages", index), message))
        for number, block in enumerate(blocks):
            if block.kind == "cachePoint":
                yield block.path, blocks[:number]
    for name, holder in (("system", request.body), ("tools", object_at(request.body, "toolConfig"))):
        kinds = [next(iter(entry), "") for entry in objects_at(holder, name)]
        path: Path = ("system",) if name == "system" else ("toolConfig", "tools")
        entries = [Block((*path, number), kind, None) for number, kind in enumerate(kinds)]
        yield from (
            (entry.path, entries[:number]) for number, entry in enumerate(entries) if entry.kind == "cachePoint"
        )


def cache_points_follow_something(request: Request) -> Iterator[Violation]:
    for path, before in _cache_places(request):
        if not before or before[-1].kind == "cachePoint":
            yield refuse(path, "There is nothing available to cache.")


def cache_points_keep_off_reasoning(request: Request) -> Iterator[Violation]:
    """Seen even when other blocks stand between the two."""
    for path, before in _cache_places(request):
        if any(block.kind == "reasoningContent" for block in before):
            yield refuse(path, "Cache point cannot be inserted after reasoning block.")


def cache_points_keep_off_text_documents(request: Request) -> Iterator[Violation]:
    for path, before in _cache_places(request):
        if request.is_claude and before and before[-1].kind == "document":
            source = object_at(before[-1].value, "source")
            read_as_text = text_at(before[-1].value, "format") in TEXT_DOCUMENTS or {"text", "content"} & source.keys()
            if read_as_text and "citations" not in object_at(before[-1].value):
                yield model_refuses(path, f"{place(path)}.type: Field required")


def model_caches(request: Request) -> Iterator[Violation]:
    if not request.family or request.family.caches:
        return
    for path, _ in _cache_places(request):
        message = (
            "You invoked an unsupported model or your request did not allow prompt caching. "
            "See the documentation for more information."
        )
        yield refuse(path, message, "AccessDeniedException", 403)


# --- media --------------------------------------------------------------------------------------------------------

# The documentation leaves out the underscore, the service does not mind it (6 recordings, e.g. 13db446746fd).
DOCUMENT_NAME = re.compile(r"[A-Za-z0-9_\-()\[\]]+(\s[A-Za-z0-9_\-()\[\]]+)*\s?")
MOST_IMAGES = 20
MOST_DOCUMENTS = 5


def document_names_are_plain(request: Request) -> Iterator[Violation]:
    for block in request.media("document"):
        if not DOCUMENT_NAME.fullmatch(text_at(block.value, "name")):
            where: Path = (*block.path, "document", "name")
            message = (
                "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
                "parentheses, and square brackets. "
                "The name can't contain more than one consecutive whitespace character."
            )
            yield refuse(where, message)


def document_names_differ(request: Request) -> Iterator[Violation]:
    seen: set[str] = set()
    for block in request.media("document"):
        name = text_at(block.value, "name")
        if name in seen:
            message = f"The document name '{name}' is used more than once. Provide a unique name for each document."
            yield refuse((*block.path, "document", "name"), message)
        seen.add(name)


def documents_come_with_text(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        documents = turn.of_kind("document")
        if documents and not turn.of_kind("text"):
            message = "A message with a document content block must also contain a text content block."
            yield refuse(documents[0].path, message)


def media_is_countable(request: Request) -> Iterator[Violation]:
    for turn in request.turns:
        for kind, most in (("image", MOST_IMAGES), ("document", MOST_DOCUMENTS)):
            found = len(turn.of_kind(kind))
            if found > most:
                message = f"too many {kind}s in one message: {found} > {most}"
                yield refuse(("messages", turn.first_message, "content"), message)


def model_takes_media(request: Request) -> Iterator[Violation]:
    if not request.family or request.family.takes_video is not False:
        return
    for block in request.media("video", "audio"):
        message = (
            f"This model doesn't support the {block.kind} content block that you provided. "
            "Update the content block and try again."
        )
        yield refuse(block.path, message)


def model_fetches(request: Request) -> Iterator[Violation]:
    if not request.family or request.family.takes_s3 is not False:
        return
    for block in request.media("image", "document"):
        if "s3Location" not in object_at(block.value, "source"):
            continue
        where: Path = (*block.path, block.kind, "source", "s3Location")
        if block.kind == "document":
            yield model_refuses(where, f"{place((*block.path, 'document', 'source', 'type'))}: Field required")
        else:
            yield refuse(where, "This model doesn't support the s3Uri field. Remove s3Uri and try again.")


RULES: tuple[Rule, ...] = (
    conversation_starts_with_user,
    messages_say_something,
    texts_are_not_blank,
    blocks_fit_their_role,
    tool_blocks_need_tools,
    calls_are_answered,
    results_have_calls,
    call_ids_differ,
    call_inputs_are_objects,
    json_results_are_objects,
    results_stand_alone,
    results_have_a_status,
    cache_points_follow_something,
    cache_points_keep_off_reasoning,
    cache_points_keep_off_text_documents,
    model_caches,
    document_names_are_plain,
    document_names_differ,
    documents_come_with_text,
    media_is_countable,
    model_takes_media,
    model_fetches,
)
