"""The rules against reality: what a service answered is legal, what it refused is refused for the same reason."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman.sim.rules import Violation, anthropic_messages, gemini, openai_chat
from tests.support.recordings import Record

Recordings = Callable[[str], Iterator[Record]]

# Written or changed by hand: they do not show what a service does.
NOT_REAL = {"edited", "vendor_fixture", "vendor_doc"}


@dataclass(frozen=True, slots=True)
class Format:
    file: str
    check_request: Callable[[Record], tuple[Violation, ...]]
    check_response: Callable[[dict[str, Any]], tuple[Violation, ...]]


def model_of(record: Record) -> str | None:
    """The model of the URL; the deployment on Azure."""
    found = re.search(r"deployments/([^/]+)/|models/([^:?]+)", record.endpoint)
    return (found[1] or found[2]) if found else None


def body_of(record: Record) -> dict[str, Any]:
    assert record.request is not None
    return record.request


def check_openai(record: Record) -> tuple[Violation, ...]:
    return openai_chat.check_request(body_of(record), model=model_of(record))


def check_anthropic(record: Record) -> tuple[Violation, ...]:
    # Headers are not recorded; all of this was said before the version of 2026-10-21.
    return anthropic_messages.check_request(body_of(record), version="2023-06-01")


def check_gemini(record: Record) -> tuple[Violation, ...]:
    version = record.endpoint.split("/")[1]
    return gemini.check_request(body_of(record), model=model_of(record), version=version, backend="gemini")


def check_vertex(record: Record) -> tuple[Violation, ...]:
    version = record.endpoint.split("/")[1]
    return gemini.check_request(body_of(record), model=model_of(record), version=version, backend="vertex")


FORMATS = [
    pytest.param(Format("openai-chat", check_openai, openai_chat.check_response), id="openai-chat"),
    pytest.param(
        Format("anthropic-messages", check_anthropic, anthropic_messages.check_response), id="anthropic-messages"
    ),
    pytest.param(Format("gemini-generate", check_gemini, gemini.check_response), id="gemini-generate"),
    pytest.param(Format("vertex-generate", check_vertex, gemini.check_response), id="vertex-generate"),
]

OPENAI_IGNORED_A_FOREIGN_KEY = (
    "the service ignored a key it does not know; public reports quote `Unknown parameter` for such keys, and a codec "
    "that leaks one has made a mistake either way"
)
IGNORED_FOREIGN_KEYS = (
    # cache_control on a content part
    "2712ae30952f",
    "68cd70e8c8a9",
    "020308f8dcc5",
    "8693787799ce",
    "6c86ca0edd17",
    "790815f85783",
    "ad1a1045e837",
    "2695d7adf52c",
    "15c0b8199248",
    "bc28d87f07f4",
    "e9c9ab29777e",
    # reasoning and reasoning_signature on an assistant message
    "56bd8f3ffbd4",
    "2042d163d55f",
    "d99b33de7227",
    "5ee8d1ee1690",
    "2c6f4d35fa15",
    "e99a81d3963c",
)
# Requests that were answered and that the rules refuse all the same.
REFUSED_ALL_THE_SAME = {
    **dict.fromkeys(IGNORED_FOREIGN_KEYS, OPENAI_IGNORED_A_FOREIGN_KEY),
    "a9e8768fc032": "image_url as a bare string: taken by gpt-4-vision-preview, which is gone",
    "7fa198cb5b4e": "the recorder replaced an id by one of another form",
    "157e016b118e": "top_p and top_k of -1 meant `off` to a model that is gone; the documented range starts at 0",
    "65083123ed88": "the result answers another id than the call has: a request put together from two recordings",
    "b31e61670eab": "two turns share a call id; public reports quote `tool_use ids must be unique`",
    "135ad0a11bb0": "a list inside the list of parts, flattened by the service",
    "6d00cdb13305": "an unanswered call; the alias gemini-flash-latest named a model before Gemini 3 then",
}

# Answers that the rules find fault with.
FAULTY_ANSWERS = {
    "a9e8768fc032": "gpt-4-vision-preview answered with finish_details instead of finish_reason",
    "951b53bc839c": "an error body under status 200",
    "17b9c153db71": "cache_creation is all zeros beside a total that is not",
    **dict.fromkeys(("ea7279cdee67", "f61f579aa5da"), "a fixture of a client library without stop_sequence"),
    **dict.fromkeys(
        ("989cc208aa15", "9f995eb853be", "7645ea4b265a", "524c69b1e910", "7ad2521f6915"),
        "a fixture of a client library with invented counts",
    ),
}
# Served by Azure under OpenAI's name, and not by OpenAI's rules.
FOREIGN_MODELS = re.compile(r"grok|deepseek|mai-ds", re.IGNORECASE)

# 400s that are not about the body, or about something no rule can see in it.
OUT_OF_SIGHT = {
    "bcf1e9f49b76": "a test proxy",
    "e0983f713f9a": "an image that could not be downloaded",
    "90faa39624af": "the bytes of an image",
    "607a90ea8eec": "a grammar too complex to compile",
    "34f1d1d99e18": "a prompt too long",
    "dd180e7cdbda": "a prompt too long",
    "13b5da1b1211": "a URL the service may not fetch",
    "70a30d6e8060": "a URL the service may not fetch",
}


def real(records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if not NOT_REAL & record.tags)


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_answered_is_legal(form: Format, recordings: Recordings) -> None:
    asked = [record for record in real(recordings(form.file)) if record.status == 200 and record.request is not None]
    refused = {record.id: form.check_request(record) for record in asked}
    refused = {identifier: violations for identifier, violations in refused.items() if violations}
    assert len(asked) > 100
    assert {identifier: refused[identifier] for identifier in refused.keys() - REFUSED_ALL_THE_SAME.keys()} == {}
    listed = REFUSED_ALL_THE_SAME.keys() & {record.id for record in asked}
    assert listed <= refused.keys(), "no longer refused: take it off the list"


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_refused_is_refused(form: Format, recordings: Recordings) -> None:
    refused = [record for record in real(recordings(form.file)) if record.status == 400 and record.request is not None]
    missed = {
        record.id for record in refused if not form.check_request(record) and "API key" not in str(record.response)
    }
    assert refused
    assert missed - OUT_OF_SIGHT.keys() == set()


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_service_answers_a_strict_client_reads(form: Format, recordings: Recordings) -> None:
    faults: dict[str, tuple[Violation, ...]] = {}
    count = 0
    for record in real(recordings(form.file)):
        if record.status != 200 or not isinstance(record.response, dict):
            continue
        if FOREIGN_MODELS.match(str(record.response.get("model"))):
            continue
        count += 1
        if found := form.check_response(record.response):
            faults[record.id] = found
    assert count > 100
    assert {identifier: faults[identifier] for identifier in faults.keys() - FAULTY_ANSWERS.keys()} == {}
