"""Fine-tuning files of OpenAI and compatible providers: a Chat request without a model, per line.

`weight` on assistant messages selects what is learned; it is kept and never sent to a model. Preference lines have an
input and two outputs: the conversation is the input with the preferred output; the other one is kept beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw, structs

from dragoman.codecs.datasets.conversation import Json, add_remarks, items, refuse
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.datasets.unread_keys import severity_of
from dragoman.codecs.openai_chat import json_paths
from dragoman.codecs.openai_chat.request import decode_request, encode_request
from dragoman.ir import Request
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog, PathLookup

NAME = "openai-finetuning"
_PREFERRED = ("preferred_output", "preferred_completion")
_OTHER = ("non_preferred_output", "non_preferred_completion")
_WEIGHTS, _REJECTED, _PAIR = "~weights", "~rejected", "~pair"


def is_record(data: Json) -> bool:
    """Return whether these are Chat messages without a model, or a preference pair."""
    if not isinstance(data, dict):
        return False
    if isinstance(data.get("input"), dict) and any(key in data for key in _PREFERRED):
        return True
    messages = data.get("messages")
    return (
        "model" not in data
        and isinstance(messages, list)
        and any(isinstance(message, dict) and "weight" in message for message in messages)
    )


def read(data: Json) -> Request:
    if not isinstance(data, dict):
        raise refuse(NAME, "$", "an object", data)
    body, notes = (dict(data["input"]), _pair_notes(data)) if _is_pair(data) else (dict(data), {})
    if notes:
        preferred = next(data[key] for key in _PREFERRED if key in data)
        body["messages"] = [
            *items(body.get("messages"), NAME, "$.input.messages"),
            *items(preferred, NAME, "$.preferred_output"),
        ]
    messages = items(body.get("messages"), NAME, "$.messages")
    weights = {str(index): message["weight"] for index, message in enumerate(messages) if "weight" in message}
    if weights:
        body["messages"] = [{key: value for key, value in message.items() if key != "weight"} for message in messages]
        notes[_WEIGHTS] = to_raw(weights)
    request = decode_request(encode_json(body))
    if not notes:
        return request
    kept = structs.replace(request, metadata={**(request.metadata or {}), NAME: notes})
    if weights:
        path = None if _PAIR in notes else f"$.messages[{next(iter(weights))}].weight"
        add_remarks(kept, NAME, [(path, "weight", "dropped", _FOR_TRAINING)])
    if _PAIR in notes:
        _report_pair(kept, data)
    return kept


_FOR_TRAINING = "only files for fine-tuning have it"


def _report_pair(request: Request, data: Mapping[str, Json]) -> None:
    """Report what of a preference pair is not in a conversation, which goes on with the preferred answer."""
    other = next((key for key in _OTHER if data.get(key)), None)
    if other is not None:
        add_remarks(request, NAME, [(f"$.{other}", "answer that was not preferred", "dropped", _FOR_TRAINING)])
    beside = [key for key in data if key not in {"input", *_PREFERRED, *_OTHER}]
    add_remarks(request, NAME, everywhere=[(f"$.{key}", key, severity_of(key), _FOR_TRAINING) for key in beside])


def _is_pair(data: Mapping[str, Json]) -> bool:
    return isinstance(data.get("input"), dict) and any(key in data for key in _PREFERRED)


def _pair_notes(data: Mapping[str, Json]) -> dict[str, Raw]:
    count = len(next(data[key] for key in _PREFERRED if key in data))
    other: Json = next((data[key] for key in _OTHER if key in data), [])
    return {_PAIR: to_raw(count), _REJECTED: to_raw(other)}


def write(request: Request, log: LossLog) -> Json:
    notes = (request.metadata or {}).get(NAME, {})
    body: dict[str, Json] = parse_json(encode_request(request, log).content)
    body.pop("model", None)
    weights = parse_json(to_raw(notes[_WEIGHTS])) if _WEIGHTS in notes else {}
    for index, weight in weights.items():
        if int(index) < len(body["messages"]):
            body["messages"][int(index)]["weight"] = weight
    if _PAIR not in notes:
        return body
    count = parse_json(to_raw(notes[_PAIR]))
    messages = body.pop("messages")
    return {
        "input": {"messages": messages[: len(messages) - count], **body},
        "preferred_output": messages[len(messages) - count :],
        "non_preferred_output": parse_json(to_raw(notes[_REJECTED])),
    }


def request_paths(request: Request) -> PathLookup:
    """Return the JSON path lookup of Chat; for a preference pair, with paths within its input."""
    lookup = json_paths.request_paths(request)
    if _PAIR not in (request.metadata or {}).get(NAME, {}):
        return lookup
    return lambda message, part, field: _within_input(lookup(message, part, field))


def _within_input(path: str) -> str:
    return path if path == "$" else "$.input" + path.removeprefix("$")


DATASET = Dataset(NAME, is_record, read, write, names_speakers=True)
