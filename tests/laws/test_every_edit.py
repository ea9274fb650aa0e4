"""Laws 1 and 2 by construction: every value of every sample body removed, emptied, set to null or repeated, alone.

Each such body is refused with its place, or it is the same body again after decoding and encoding, and its decoder
notes the traits that a survey finds.
"""

import json
import re
from typing import Any

import dragoman
from dragoman.codecs.registry import codec
from dragoman.errors import DecodeError
from dragoman.ir.traits import traits_of
from dragoman.passes.survey import survey
from tests.support.cases import each
from tests.support.edits import Edit, edits
from tests.support.promises import promise
from tests.support.small_bodies import small_bodies
from tests.support.trees import difference, plain

# (format, path without indices, edit): bodies that the API itself refuses or never sends. They are read generously, and
# what is missing is filled in. `*` stands for every format or every edit.
_TYPE, _ROLE = "the type goes without saying", "an answer is the assistant's"
_NO_DATA, _SHOWN = "the API refuses media and signatures without data", "the data show the type"
FILLED_IN: dict[tuple[str, str, str], str] = {
    ("anthropic-messages", "$.messages[].content[].content[].content[].type", "*"): _TYPE,
    ("anthropic-messages", "$.messages[].content[].content[].source.media_type", "emptied"): _SHOWN,
    ("anthropic-messages", "$.messages[].content[].source.media_type", "emptied"): _SHOWN,
    ("anthropic-messages", "$.messages[].content[].data", "emptied"): _NO_DATA,
    ("anthropic-messages", "$.messages[].content[].signature", "emptied"): _NO_DATA,
    ("anthropic-messages", "$.content[].data", "emptied"): _NO_DATA,
    ("bedrock-converse", "$.messages[].content[].reasoningContent.redactedContent", "emptied"): _NO_DATA,
    ("bedrock-converse", "$.output.message.content[].reasoningContent.redactedContent", "emptied"): _NO_DATA,
    ("cohere-chat", "$.message", "emptied"): _ROLE,
    ("cohere-chat", "$.message.role", "removed"): _ROLE,
    ("ollama-chat", "$.message", "emptied"): _ROLE,
    ("ollama-chat", "$.message.role", "removed"): _ROLE,
    ("openai-chat", "$.choices[].message", "emptied"): _ROLE,
    ("openai-chat", "$.choices[].message.role", "removed"): _ROLE,
    ("openai-chat", "$.choices[].message.tool_calls[].type", "*"): _TYPE,
    ("openai-chat", "$.messages[].tool_calls[].type", "*"): _TYPE,
    ("openai-chat", "$.tool_choice.allowed_tools.mode", "emptied"): "the API refuses such a choice",
    ("openai-chat", "$.tool_choice.allowed_tools.tools", "emptied"): "the API refuses such a choice",
    ("openai-chat", "$.tool_choice.allowed_tools.tools[]", "removed"): "the API refuses such a choice",
    ("openai-chat", "$.tool_choice.allowed_tools.tools[].type", "emptied"): _TYPE,
    ("openai-chat", "$.tool_choice.type", "*"): _TYPE,
    ("openai-responses", "$.input[].content[].input_audio.format", "emptied"): _SHOWN,
    ("openai-responses", "$.output[].role", "removed"): _ROLE,
}


def _listed(name: str, edit: Edit) -> set[tuple[str, str, str]]:
    path = re.sub(r"\[\d+\]", "[]", edit.path)
    return {(name, path, edit.what), (name, path, "*"), ("*", path, edit.what), ("*", path, "*")} & FILLED_IN.keys()


def _failure(name: str, kind: str, edit: Edit) -> str | None:
    raw = json.dumps(edit.body).encode()
    decode, encode = getattr(codec(name), f"decode_{kind}"), getattr(dragoman, f"encode_{kind}")
    try:
        value = decode(raw)
    except DecodeError as refused:
        return None if refused.path.startswith("$") else f"no place: {refused}"
    noted = traits_of(value) if kind == "request" else None
    again = encode(getattr(dragoman, f"decode_{kind}")(raw, name), name)
    if (found := difference(plain(raw), plain(again.json()))) is not None:
        return found
    if again.losses:
        return str(again.losses[0])
    if noted is not None:
        bits, ids, names = survey(dragoman.decode_request(raw, name))
        if (noted[0], dict(noted[1]), set(noted[2])) != (bits, dict(ids), set(names)):
            return f"traits {noted[0]:b}, and a survey finds {bits:b}"
    return None


def _check(kind: str, name: str, body: Any) -> None:
    failed = []
    for edit in edits(body):
        if _listed(name, edit):
            continue
        if (found := _failure(name, kind, edit)) is not None:
            failed.append(f"{edit}: {found}")
    assert failed == []


@promise("law:1-identity", "core:traits")
@each(("name", "body"), small_bodies("request"))
def test_an_edited_request_is_refused_or_the_same_again(name: str, body: Any) -> None:
    _check("request", name, body)


@promise("law:1-identity")
@each(("name", "body"), small_bodies("response"))
def test_an_edited_answer_is_refused_or_the_same_again(name: str, body: Any) -> None:
    _check("response", name, body)


def test_filled_in_bodies_still_differ() -> None:
    failing: set[tuple[str, str, str]] = set()
    for kind in ("request", "response"):
        for name, body in (row.values for row in small_bodies(kind)):
            for edit in edits(body):
                rows = _listed(name, edit)
                if rows - failing and _failure(name, kind, edit) is not None:
                    failing |= rows
    assert failing == FILLED_IN.keys()
