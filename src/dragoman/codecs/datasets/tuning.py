"""Tuning files of Gemini, Vertex AI and Bedrock: request bodies of these APIs without a model.

Bedrock lines name their schema (`bedrock-conversation-2024`). Vertex preference lines have scored completions: the
conversation is the one with the best score.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs
from msgspec.structs import force_setattr

from dragoman.codecs.bedrock_converse import json_paths as converse_paths
from dragoman.codecs.bedrock_converse.request import decode_request as decode_converse
from dragoman.codecs.bedrock_converse.request import encode_request as encode_converse
from dragoman.codecs.datasets.conversation import Json, add_remarks, items, mappings, refuse
from dragoman.codecs.datasets.dataset import Dataset
from dragoman.codecs.gemini import json_paths as gemini_paths
from dragoman.codecs.gemini.request import decode_request as decode_gemini
from dragoman.codecs.gemini.request import encode_request as encode_gemini
from dragoman.ir import Request
from dragoman.ir.values import encode_json, parse_json, to_raw
from dragoman.losses import LossLog, PathLookup

GEMINI, BEDROCK = "gemini-tuning", "bedrock-tuning"
_SCHEMA = "bedrock-conversation-2024"
_COMPLETIONS = "~completions"


def is_gemini_tuning(data: Json) -> bool:
    """Return whether there are contents with completions. Without them the line is read as a request of the API."""
    if not isinstance(data, dict) or not mappings(data.get("contents")):
        return False
    return "completions" in data or "completion" in data


def read_gemini_tuning(data: Json) -> Request:
    if not isinstance(data, dict):
        raise refuse(GEMINI, "$", "an object", data)
    body = dict(data)
    completions = body.pop("completions", None)
    answer = body.pop("completion", None)
    scored = [] if completions is None else items(completions, GEMINI, "$.completions")
    best = _best_of(scored)
    if completions is not None:
        answer = None if best is None else scored[best]["completion"]
    if isinstance(answer, dict):
        body["contents"] = [*items(body.get("contents"), GEMINI, "$.contents"), answer]
    request = decode_gemini(encode_json(body))
    if completions is None:
        return request
    notes = {**(request.metadata or {}), GEMINI: {_COMPLETIONS: to_raw(completions)}}
    request = structs.replace(request, metadata=notes)
    if best is not None:
        added = f"$.contents[{len(body['contents']) - 1}]"
        force_setattr(request, "_places", (added, f"$.completions[{best}].completion"))
    if scored:
        add_remarks(request, GEMINI, [("$.completions", "scores and other completions", "dropped", _ONE_ANSWER)])
    return request


def _best_of(scored: list[Mapping[str, Json]]) -> int | None:
    """Return the index of the completion with the highest score; None if that has no content."""
    best = max(range(len(scored)), key=lambda index: _score(scored[index]), default=None)
    return best if best is not None and isinstance(scored[best].get("completion"), dict) else None


_ONE_ANSWER = "a conversation has one answer: the one with the highest score"


def _score(completion: Mapping[str, Json]) -> float:
    score = completion.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def write_gemini_tuning(request: Request, log: LossLog) -> Json:
    body: dict[str, Json] = parse_json(encode_gemini(request, log).content)
    completions = (request.metadata or {}).get(GEMINI, {}).get(_COMPLETIONS)
    if completions is not None:
        body["completions"] = parse_json(to_raw(completions))
        if _best_of(body["completions"]) is not None:
            body["contents"] = body["contents"][:-1]
    return body


def is_bedrock_tuning(data: Json) -> bool:
    """Return whether the line names Bedrock's schema of tuning lines."""
    return isinstance(data, dict) and data.get("schemaVersion") == _SCHEMA


def read_bedrock_tuning(data: Json) -> Request:
    if not isinstance(data, dict):
        raise refuse(BEDROCK, "$", "an object", data)
    return decode_converse(encode_json({key: value for key, value in data.items() if key != "schemaVersion"}))


def write_bedrock_tuning(request: Request, log: LossLog) -> Json:
    body: dict[str, Json] = parse_json(encode_converse(request, log).content)
    return {"schemaVersion": _SCHEMA, **body}


def gemini_tuning_paths(request: Request) -> PathLookup:
    """Return the paths in the line, where the answer is among the completions."""
    lookup, moved = gemini_paths.request_paths(request), getattr(request, "_places", None)
    if not moved:
        return lookup
    read, written = moved

    def in_line(message_index: int | None, part_index: int | None, field: str) -> str:
        path = lookup(message_index, part_index, field)
        return written + path.removeprefix(read) if path.startswith(read) else path

    return in_line


def bedrock_tuning_paths(request: Request) -> PathLookup:
    return converse_paths.request_paths(request)


GEMINI_TUNING = Dataset(GEMINI, is_gemini_tuning, read_gemini_tuning, write_gemini_tuning)
BEDROCK_TUNING = Dataset(BEDROCK, is_bedrock_tuning, read_bedrock_tuning, write_bedrock_tuning)
