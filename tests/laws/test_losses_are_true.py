"""Law 2 on whole bodies: a loss points to what the client wrote, in the words of its format."""

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any

import pytest
from msgspec import Struct

import dragoman
from benchmarks import corpus
from dragoman import ir
from dragoman.errors import DecodeError, EncodeError
from dragoman.loss import Loss
from tests.laws.known_loss_failures import KNOWN
from tests.support.bodies import REQUESTS, RESPONSES, Sample
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise
from tests.support.recordings import VARIABLE, recordings_dir
from tests.support.trees import reaches, variants

pytestmark = promise("law:2-nothing-vanishes")

# What an answer must say in the target, though the source did not: noted at a path of the target's own.
DEMANDED = re.compile(r"^\$\.(id|model|responseId|modelVersion|metrics)$")
GOOGLE = ("gemini", "vertex")
SNAKE = re.compile(r"(?<=[a-z0-9])([A-Z])")


def losses_of(sample: Sample, kind: str, target: str) -> tuple[Loss, ...]:
    translate = dragoman.translate_request if kind == "request" else dragoman.translate_response
    try:
        return translate(sample.json(), source=sample.format, target=target).losses
    except EncodeError:
        return ()


def crossings(samples: tuple[Sample, ...]) -> Iterator[tuple[Sample, str]]:
    for sample in samples:
        for target in FORMATS:
            if FAMILY[sample.format] != FAMILY[target]:
                yield sample, target


def in_snake_case(value: Any, *, free: bool = False) -> Any:
    """The same Gemini body as google-genai's users write it. Arguments, results and schemas keep their own keys."""
    if isinstance(value, list):
        return [in_snake_case(inner, free=free) for inner in value]
    if not isinstance(value, dict):
        return value
    own = {"args", "response", "properties", "responseJsonSchema", "parametersJsonSchema", "labels"}
    return {
        key if free else SNAKE.sub(lambda found: f"_{found[1].lower()}", key): in_snake_case(
            inner, free=free or key in own
        )
        for key, inner in value.items()
    }


ALL: dict[str, tuple[Sample, ...]] = {
    "request": tuple(sample for sample in REQUESTS if sample.format in FORMATS),
    "response": tuple(sample for sample in RESPONSES if sample.format in FORMATS),
}
SNAKED: dict[str, tuple[Sample, ...]] = {
    kind: tuple(
        Sample(sample.format, f"{sample.name}, snake case", in_snake_case(sample.body))
        for sample in samples
        if sample.format in GOOGLE
    )
    for kind, samples in ALL.items()
}


def misplaced(samples: tuple[Sample, ...], kind: str) -> set[str]:
    """Losses whose path leads nowhere in the body that the client sent."""
    found: set[str] = set()
    for sample, target in crossings(samples):
        losses = losses_of(sample, kind, target)
        found.update(
            f"{sample.format} {kind}, {sample.name}: {one.path}" for one in losses if is_misplaced(one, sample)
        )
    return found


def is_misplaced(loss: Loss, sample: Sample) -> bool:
    return not (reaches(sample.body, loss.path) or loss.severity == "invented" or DEMANDED.search(loss.path))


@pytest.mark.parametrize("kind", ALL)
def test_a_loss_points_to_what_the_client_wrote(kind: str) -> None:
    assert misplaced(ALL[kind], kind) == KNOWN.get(f"{kind}s", set())


@pytest.mark.parametrize("kind", SNAKED)
def test_a_loss_spells_keys_as_the_client_did(kind: str) -> None:
    assert misplaced(SNAKED[kind], kind) == KNOWN.get(f"{kind}s in snake case", set())


@pytest.mark.skipif(recordings_dir() is None, reason=f"no recordings beside this repository, and {VARIABLE} is not set")
@pytest.mark.parametrize("kind", ALL)
def test_a_loss_in_real_traffic_points_to_what_the_client_wrote(kind: corpus.Kind) -> None:
    """Vendors' keys under other names, opaque items, settings of compatible servers: 60 bodies of each file."""
    found: set[str] = set()
    for file, source in {**corpus.VENDOR_FILES, **corpus.COMPATIBLE_FILES}.items():
        for one in corpus.recorded(file, source, kind, 60):
            sample = Sample(source, file, json.loads(one.body))
            for target in ("openai-chat", "anthropic-messages"):
                if FAMILY[target] != FAMILY[source]:
                    losses = losses_of(sample, kind, target)
                    found.update(f"{file}: {_pattern(loss.path)}" for loss in losses if is_misplaced(loss, sample))
    assert found == KNOWN.get(f"real {kind}s", set())


def _pattern(path: str) -> str:
    return re.sub(r"[0-9]+", "N", path)


def class_names() -> set[str]:
    """Names of our own classes that no vendor uses: nothing that a user should read."""
    modules = [ir, *(import_module(f"dragoman.codecs.{folder}.wire") for folder in FOLDERS)]
    kinds = {
        name
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Struct) and re.search(r"[a-z][A-Z]", name)
    }
    return kinds - {"ToolChoice", "InputAudio"}


FOLDERS = (
    "openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse", "ollama_chat", "cohere_chat",
    "gemini_interactions",
)  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_losses_do_not_name_our_classes(kind: str) -> None:
    names = class_names()
    found = {
        f"{target}: {loss.what} ({loss.why})"
        for sample, target in crossings(ALL[kind])
        for loss in losses_of(sample, kind, target)
        if names & set(re.findall(r"\w+", f"{loss.what} {loss.why}"))
    }
    assert found == set()


def _fields() -> list[str]:
    """The names of all our fields: names that a key of a vendor may have too."""
    kinds = [kind for _, kind in inspect.getmembers(ir, inspect.isclass) if issubclass(kind, Struct)]
    return sorted({name for kind in kinds for name in kind.__struct_fields__})


@pytest.mark.parametrize("kind", ALL)
def test_a_key_called_like_one_of_our_fields_is_not_taken_for_it(kind: str) -> None:
    """Such as `reasoning.mode` of Responses, or `stop` in a Messages body: the path is that of the key."""
    found: set[str] = set()
    for number, (sample, field) in enumerate(product(ALL[kind], _fields())):
        objects = list(variants(sample.body, lambda value: {field: "x", **value}))  # noqa: B023  called at once
        where, body = objects[number % len(objects)]
        changed = Sample(sample.format, sample.name, body)
        target = "anthropic-messages" if sample.format == "openai-chat" else "openai-chat"
        try:
            losses = losses_of(changed, kind, target)
        except DecodeError:  # the vendor's own key of this name, which takes no text
            continue
        found.update(f"{sample.format}, {where}.{field}: {loss}" for loss in losses if is_misplaced(loss, changed))
    assert found == set()


_REFUSED = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
_UNUSUAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("openai-chat", {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": []}),
    (
        "gemini",
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"},
                {"finishReason": "SAFETY", "index": 1},
            ]
        },
    ),
    (
        "anthropic-messages",
        {"id": "a", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "refusal",
         "stop_sequence": None, "stop_details": _REFUSED, "usage": {"input_tokens": 1, "output_tokens": 1}},
    ),
)  # fmt: skip


def test_losses_of_answers_without_content_point_to_what_is_there() -> None:
    """No choice, a candidate that was blocked, a refusal with its explanation."""
    for (source, body), target in product(_UNUSUAL, FORMATS):
        for loss in dragoman.translate_response(body, source=source, target=target).losses:
            if loss.severity not in {"noted", "invented"}:
                assert reaches(body, loss.path), (source, target, loss)


_MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
_EXCERPT = {"type": "text", "text": "Matz"}
_FOUND = {"type": "search_result", "source": "https://example.org", "title": "Ruby", "content": [_EXCERPT], **_MARK}
_QUESTION = {"type": "text", "text": "Who?"}
_MARKED = Sample(
    "anthropic-messages",
    "search result with a cache mark",
    {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [_FOUND, _QUESTION]}]},
)


def test_a_loss_does_not_point_to_the_whole_body() -> None:
    """A pass or an encoder that replaces a part says which part it was."""
    found = {
        f"{sample.format}, {sample.name} to {target}: {loss}"
        for kind, samples in ALL.items()
        for sample, target in crossings((*samples, _MARKED) if kind == "request" else samples)
        for loss in losses_of(sample, kind, target)
        if loss.path == "$" and loss.severity != "invented"
    }
    assert found == set()
