"""The rules between the items of `input`: pairs, ids, order, media."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from dragoman.sim.rules.common import JsonObject, Violation, bracket_path, objects_at, text_at
from dragoman.sim.rules.openai_request import Request, Rule, refuse
from dragoman.sim.rules.openai_responses_request import (
    ANSWERED_CALLS,
    CALLS_BY_OUTPUT,
    items_of,
    kind_of,
    parts_of,
    uses_stored_items,
)

# --- pairs --------------------------------------------------------------------------------------------------------


def input_is_given(request: Request) -> Iterator[Violation]:
    known = ("input", "previous_response_id", "prompt", "conversation")
    if not any(request.body.get(name) for name in known):
        message = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."
        yield refuse(("input",), message, "missing_required_parameter")


def calls_are_answered(request: Request) -> Iterator[Violation]:
    """Each call of the input has its output later in the input. One that runs on (`async`) may have none yet."""
    answers: Counter[tuple[str, str]] = Counter()
    open_calls: list[Violation] = []
    for item in reversed(objects_at(request.body, "input")):
        kind, call_id = kind_of(item), text_at(item, "call_id")
        if kind in CALLS_BY_OUTPUT:
            answers[CALLS_BY_OUTPUT[kind][0], call_id] += 1
        elif kind in ANSWERED_CALLS and answers[kind, call_id]:
            answers[kind, call_id] -= 1
        elif kind in ANSWERED_CALLS and item.get("async") is not True:
            open_calls.append(refuse(("input",), f"No tool output found for {ANSWERED_CALLS[kind]} {call_id}."))
    yield from reversed(open_calls)


def outputs_have_calls(request: Request) -> Iterator[Violation]:
    """Read in order, each output takes one call that came before it; a call that is stored cannot be seen here."""
    if uses_stored_items(request):
        return
    waiting: list[tuple[str, str]] = []
    for _, item in items_of(request):
        kind, call_id = kind_of(item), text_at(item, "call_id")
        if kind in ANSWERED_CALLS:
            waiting.append((kind, call_id))
        elif kind == "tool_search_call":
            # A search that the client runs may be answered as a function is (recording e9338d10e660).
            waiting.append(("function_call", call_id))
        elif kind in CALLS_BY_OUTPUT:
            call, name = CALLS_BY_OUTPUT[kind]
            if (call, call_id) in waiting:
                waiting.remove((call, call_id))
            else:
                yield refuse(("input",), f"No tool call found for {name} output with call_id {call_id}.")


# Items that models do not make, and that may not follow their reasoning. Messages are recognised by their role.
NOT_OF_THE_MODEL = frozenset(
    {
        *CALLS_BY_OUTPUT,
        "local_shell_call_output",
        "mcp_approval_response",
        "additional_tools",
        "configuration_update",
        "compaction_trigger",
    }
)


def reasoning_is_followed(request: Request) -> Iterator[Violation]:
    """Known by its id: reasoning without one may stand anywhere (15 recordings, e.g. c239ff93b392).

    Where things are stored, the server knows what followed: a message of one's own making without an id is refused
    there (recording 383e189ed6a4), and taken under `store: false` (38ae05ec5deb).
    """
    stored = request.body.get("store") is not False
    following: JsonObject | None = None
    alone: list[Violation] = []
    for item in reversed(objects_at(request.body, "input")):
        if kind_of(item) != "reasoning":
            following = item
        elif item.get("id") and not _is_of_the_model(following, stored=stored):
            message = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            alone.append(refuse(("input",), message))
    yield from reversed(alone)


def _is_of_the_model(item: JsonObject | None, *, stored: bool) -> bool:
    if item is None or kind_of(item) in NOT_OF_THE_MODEL:
        return False
    if kind_of(item) != "message":
        return True
    return item.get("role") == "assistant" and (bool(item.get("id")) or not stored)


# --- ids ----------------------------------------------------------------------------------------------------------

# `rs`, `fc` and `msg` are quoted in public reports, the others are what every recorded id begins with.
ID_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "mcp_call": "mcp",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "program": "cm",
    "compaction": "cmp",
}
ID_ALPHABET = re.compile(r"[A-Za-z0-9_-]+")


def ids_have_their_form(request: Request) -> Iterator[Violation]:
    for index, item in items_of(request):
        identifier = item.get("id")
        if not isinstance(identifier, str):
            continue
        where = ("input", index, "id")
        prefix = ID_PREFIXES.get(kind_of(item), "")
        if not ID_ALPHABET.fullmatch(identifier):
            expected = "an ID that contains letters, numbers, underscores, or dashes, "
            expected += "but this value contained additional characters."
        elif not identifier.startswith(prefix):
            expected = f"an ID that begins with '{prefix}'."
        else:
            continue
        message = f"Invalid '{bracket_path(where)}': '{identifier}'. Expected {expected}"
        yield refuse(where, message, "invalid_value")


def ids_differ(request: Request) -> Iterator[Violation]:
    seen: set[str] = set()
    for _, item in items_of(request):
        identifier = text_at(item, "id")
        # The output of a local shell is tied to its call by the same id.
        if not identifier or kind_of(item) == "local_shell_call_output":
            continue
        if identifier in seen:
            message = (
                f"Duplicate item found with id {identifier}. Remove duplicate items from your input and try again."
            )
            yield refuse(("input",), message)
        seen.add(identifier)


def references_are_stored(request: Request) -> Iterator[Violation]:
    """Nothing says where a referenced item was made; a client that stores nothing has nothing to refer to."""
    if request.body.get("store") is not False:
        return
    for _, item in items_of(request):
        if kind_of(item) == "item_reference":
            message = (
                f"Item with id '{text_at(item, 'id')}' not found. "
                "Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input."
            )
            yield refuse(("input",), message, status=404)


STORED_IDS = {"previous_response_id": "resp", "conversation": "conv"}


def stored_ids_have_their_form(request: Request) -> Iterator[Violation]:
    for name, prefix in STORED_IDS.items():
        identifier = text_at(request.body, name) or text_at(request.body, name, "id")
        if identifier and not identifier.startswith(prefix):
            message = f"Invalid '{name}': '{identifier}'. Expected an ID that begins with '{prefix}'."
            yield refuse((name,), message, "invalid_value")


def one_kind_of_stored_state(request: Request) -> Iterator[Violation]:
    if request.body.get("previous_response_id") is not None and request.body.get("conversation") is not None:
        message = (
            "Mutually exclusive parameters: Ensure you are only providing one of: "
            "'previous_response_id' or 'conversation'."
        )
        yield refuse(("previous_response_id",), message, "mutually_exclusive_parameters")


# A Fernet token, as every recorded one; a foreign signature or plain text is none.
_ENCRYPTED = re.compile(r"gAAAA[A-Za-z0-9_=-]*")


def encrypted_content_is_genuine(request: Request) -> Iterator[Violation]:
    for index, item in items_of(request):
        encrypted = item.get("encrypted_content")
        if isinstance(encrypted, str) and not _ENCRYPTED.fullmatch(encrypted):
            message = f"The encrypted content for item {text_at(item, 'id') or index} could not be verified."
            yield refuse(("input", index, "encrypted_content"), message, "invalid_encrypted_content")


def compaction_is_asked_for_last(request: Request) -> Iterator[Violation]:
    items = objects_at(request.body, "input")
    for index, item in items_of(request):
        if kind_of(item) == "compaction_trigger" and index != len(items) - 1:
            message = "A 'compaction_trigger' item must be the last item of 'input'."
            yield refuse(("input", index), message, "invalid_value")


# --- media --------------------------------------------------------------------------------------------------------

WEB_URL = re.compile(r"https?://.+", re.IGNORECASE | re.DOTALL)
DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)(;[\w.=+-]+)*;base64,.+", re.DOTALL)
IMAGE_TYPES = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")
NO_FILE_TYPES = re.compile(r"(audio|video|image)/|application/octet-stream")
NO_FILE_URLS = re.compile(r"[^?#]*\.(mp3|wav|ogg|flac|aac|m4a|mp4|mov|webm|mkv|avi)([?#]|$)", re.IGNORECASE)


def images_come_one_way(request: Request) -> Iterator[Violation]:
    for path, image in parts_of(request, "input_image"):
        given = [name for name in ("image_url", "file_id") if image.get(name) is not None]
        if len(given) != 1:
            yield _one_of(path, given, "'file_id' or 'image_url'")


def images_are_readable(request: Request) -> Iterator[Violation]:
    for path, image in parts_of(request, "input_image"):
        url = image.get("image_url")
        if not isinstance(url, str) or WEB_URL.match(url):
            continue
        where = (*path, "image_url")
        data = DATA_URL.match(url)
        if data is None:
            expected = "a valid URL, but got a value with an invalid format."
        elif data["type"].lower() not in IMAGE_TYPES:
            expected = (
                "a base64-encoded data URL with an image MIME type "
                f"(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type '{data['type']}'."
            )
        else:
            continue
        yield refuse(where, f"Invalid '{bracket_path(where)}'. Expected {expected}", "invalid_value")


def files_come_one_way(request: Request) -> Iterator[Violation]:
    for path, file in parts_of(request, "input_file"):
        given = [name for name in ("file_id", "file_url", "file_data") if file.get(name) is not None]
        if len(given) != 1:
            yield _one_of(path, given, "'file_id', 'file_url', or 'file_data'")
        elif given == ["file_data"] and "filename" not in file:
            where = (*path, "filename")
            yield refuse(where, f"Missing required parameter: '{bracket_path(where)}'.", "missing_required_parameter")


def _one_of(path: tuple[str | int, ...], given: list[str], names: str) -> Violation:
    if given:
        message = (
            f"Mutually exclusive parameters: '{bracket_path(path)}'. Ensure you are only providing one of: {names}."
        )
        return refuse(path, message, "mutually_exclusive_parameters")
    message = f"Missing mutually exclusive parameters: '{bracket_path(path)}'. "
    message += f"Ensure you are providing exactly one of: {names}."
    return refuse(path, message, "missing_mutually_exclusive_parameters")


def files_are_readable(request: Request) -> Iterator[Violation]:
    for path, file in parts_of(request, "input_file"):
        if NO_FILE_URLS.match(text_at(file, "file_url")):
            message = "The file type you uploaded is not supported. Please try again with a pdf"
            yield refuse(("input",), message, "unsupported_file")
        if not isinstance(file.get("file_data"), str):
            continue
        data = DATA_URL.match(text_at(file, "file_data"))
        if data is not None and not NO_FILE_TYPES.match(data["type"].lower()):
            continue
        where = (*path, "file_data")
        got = f"unsupported MIME type '{data['type']}'" if data else "a value without the 'data:' prefix"
        message = (
            f"Invalid file data: '{bracket_path(where)}'. Expected a base64-encoded data URL with a valid file MIME "
            f"type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got {got}."
        )
        yield refuse(where, message, "invalid_value")


RULES: tuple[Rule, ...] = (
    input_is_given,
    calls_are_answered,
    outputs_have_calls,
    reasoning_is_followed,
    ids_have_their_form,
    ids_differ,
    references_are_stored,
    stored_ids_have_their_form,
    one_kind_of_stored_state,
    encrypted_content_is_genuine,
    compaction_is_asked_for_last,
    images_come_one_way,
    images_are_readable,
    files_come_one_way,
    files_are_readable,
)
