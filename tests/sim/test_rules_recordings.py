"""The rules against reality: what a service answered is legal, what it refused is refused for the same reason."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pytest

from dragoman.sim.rules import (
    Violation,
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from tests.support.recordings import Record

Recordings = Callable[[str], Iterator[Record]]

# Written or changed by hand: they do not show what a service does.
NOT_REAL = {"edited", "vendor_fixture", "vendor_doc"}


@dataclass(frozen=True, slots=True)
class Format:
    file: str
    check_request: Callable[[Record], tuple[Violation, ...]]
    check_response: Callable[[dict[str, Any]], tuple[Violation, ...]]
    # Fewer than that, and the file is not what we think it is.
    at_least: int = 100


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


def check_responses(record: Record) -> tuple[Violation, ...]:
    return openai_responses.check_request(body_of(record), model=model_of(record))


# How ids look, how reasoning is sealed and what it is tied to: each vendor's own affair.
OPENAIS_OWN = re.compile(r"Expected an ID that begins with|could not be verified|its required following item")


def check_responses_of_others(record: Record) -> tuple[Violation, ...]:
    return tuple(found for found in check_responses(record) if not OPENAIS_OWN.search(found.message))


def check_cohere(record: Record) -> tuple[Violation, ...]:
    return cohere_chat.check_request(body_of(record))


def check_ollama(record: Record) -> tuple[Violation, ...]:
    return ollama_chat.check_request(body_of(record))


def check_converse(record: Record) -> tuple[Violation, ...]:
    found = re.search(r"/model/(.+)/converse", record.endpoint)
    return bedrock_converse.check_request(body_of(record), model=unquote(found[1]) if found else None)


RESPONSES = Format("openai-responses", check_responses, openai_responses.check_response)
CONVERSE = Format("bedrock-converse", check_converse, bedrock_converse.check_response)
FORMATS = [
    pytest.param(Format("openai-chat", check_openai, openai_chat.check_response), id="openai-chat"),
    pytest.param(
        Format("anthropic-messages", check_anthropic, anthropic_messages.check_response), id="anthropic-messages"
    ),
    pytest.param(Format("gemini-generate", check_gemini, gemini.check_response), id="gemini-generate"),
    pytest.param(Format("vertex-generate", check_vertex, gemini.check_response), id="vertex-generate"),
    pytest.param(RESPONSES, id="openai-responses"),
    pytest.param(
        Format("responses-compat", check_responses_of_others, openai_responses.check_response, at_least=40),
        id="responses-compat",
    ),
    pytest.param(Format("ollama-chat", check_ollama, ollama_chat.check_response, at_least=40), id="ollama-chat"),
    pytest.param(CONVERSE, id="bedrock-converse"),
    pytest.param(Format("cohere-chat", check_cohere, cohere_chat.check_response, at_least=40), id="cohere-chat"),
]
# Ollama was recorded refusing nothing but a model it does not have, Cohere nothing but a prompt that was too long.
REFUSING_FORMATS = [form for form in FORMATS if form.id not in {"ollama-chat", "cohere-chat"}]

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
SEALS_REPLACED = (
    "989b224b2624",
    "c146dee10256",
    "e8a1eb76fd46",
    "5b15baaf269d",
    "ae662e62dcb0",
    "09f241b94263",
    "a686f9b8980f",
    "3fbb8cf5eaa5",
    "ae0a26b92a43",
    "132f6fd205d4",
)
# Requests that were answered and that the rules refuse all the same.
REFUSED_ALL_THE_SAME = {
    **dict.fromkeys(SEALS_REPLACED, "the recorder put a placeholder for the encrypted content"),
    "b2932b058148": "fewer than 16 output tokens, granted by vLLM",
    "ae39d31d83f2": "a fixture of a client library: a strict schema left open",
    **dict.fromkeys(("aba6190d5176", "7eb559d1afab"), "OpenRouter's own parameter `provider`"),
    "6c873532102f": "xAI's own tool x_search",
    **dict.fromkeys(
        ("31bc3ce572e7", "7a5ae6278852", "ec6fa9ec4ae1"), "the recorder wrote bytes as an object, not as base64"
    ),
    **dict.fromkeys(IGNORED_FOREIGN_KEYS, OPENAI_IGNORED_A_FOREIGN_KEY),
    "a9e8768fc032": "image_url as a bare string: taken by gpt-4-vision-preview, which is gone",
    "7fa198cb5b4e": "the recorder replaced an id by one of another form",
    "157e016b118e": "top_p and top_k of -1 meant `off` to a model that is gone; the documented range starts at 0",
    "65083123ed88": "the result answers another id than the call has: a request put together from two recordings",
    "b31e61670eab": "two turns share a call id; public reports quote `tool_use ids must be unique`",
    "135ad0a11bb0": "a list inside the list of parts, flattened by the service",
    "6d00cdb13305": "an unanswered call; the alias gemini-flash-latest named a model before Gemini 3 then",
}

OPENROUTER_BETA = (
    "6575c7cd4c36",
    "2e85579db1c0",
    "f1eed9a43624",
    "61d11c1f096f",
    "9e46bc16f0a6",
    "315719055721",
    "7b2a891cef8c",
    "4a56ba696c84",
    "484ae6d67cab",
    "2685fb22b1f6",
    "104f3faa4909",
    "6cd7c6ca1a20",
    "351e34ecc989",
    "067fe8a06f91",
    "354417417c67",
    "0eddfc55b6a5",
)
# Answers that the rules find fault with.
FAULTY_ANSWERS = {
    **dict.fromkeys(OPENROUTER_BETA, "OpenRouter's beta of Responses had no status"),
    **dict.fromkeys(("ec89ca7ec1d4", "26ff755a6a70"), "mistral.rs sends texts without annotations"),
    **dict.fromkeys(("d533cade6fe0", "70cb4159d054"), "a fixture of a client library: citations with only a url"),
    "d00cc76918c3": "xAI gives two reasoning items one id",
    "1342b1627906": "a negative count of output tokens",
    **dict.fromkeys(
        ("3f0adfa51bcc", "f390e126fe77", "1ff716083587", "ca1658d7e03f", "6a924ba80409", "348b494b0b65"),
        "a fixture of a client library, made to be faulty or cut down by hand",
    ),
    **dict.fromkeys(
        ("ae9e35450b84", "b78cc1dfb70a", "7c774d5de09c", "f2ae101a65f6", "0bd10dc057f7"),
        "a fixture of a client library without metrics, or with blocks of another API",
    ),
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
    **dict.fromkeys(
        (
            "b31b712c3e25",
            "4e50b3b2f69f",
            "e8ba8f66eb72",
            "0d3a254ee47b",
            "b8aae484a9d3",
            "3463501bdf88",
            "b1aa5c2a42c6",
            "299797bdff10",
            "c59e6eaf7bc2",
            "512090a3c93f",
        ),
        "a model that does not exist, under a name it could have",
    ),
    "f7b700f14ef3": "a response that was not stored",
    "71d8ddb3c7c8": "a prompt too long",
    "fbaa0eab581a": "a prompt too long",
    "df59178c424c": "DeepSeek wants the calls of a turn side by side, OpenAI does not mind",
}


def real(records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if not NOT_REAL & record.tags)


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_answered_is_legal(form: Format, recordings: Recordings) -> None:
    answered = [record for record in real(recordings(form.file)) if record.status == 200 and record.request is not None]
    refused = {record.id: form.check_request(record) for record in answered}
    refused = {identifier: violations for identifier, violations in refused.items() if violations}
    assert len(answered) >= form.at_least
    assert {identifier: refused[identifier] for identifier in refused.keys() - REFUSED_ALL_THE_SAME.keys()} == {}
    listed = REFUSED_ALL_THE_SAME.keys() & {record.id for record in answered}
    assert listed <= refused.keys(), "no longer refused: take it off the list"


@pytest.mark.parametrize("form", REFUSING_FORMATS)
def test_what_was_refused_is_refused(form: Format, recordings: Recordings) -> None:
    refused = [record for record in real(recordings(form.file)) if record.status == 400 and record.request is not None]
    missed = {
        record.id for record in refused if not form.check_request(record) and "API key" not in str(record.response)
    }
    assert refused
    assert missed - OUT_OF_SIGHT.keys() == set()


@pytest.mark.parametrize("form", [RESPONSES, CONVERSE], ids=lambda form: form.file)
def test_what_was_refused_is_refused_in_the_same_words(form: Format, recordings: Recordings) -> None:
    count = 0
    for record in real(recordings(form.file)):
        if record.status != 400 or record.request is None or record.id in OUT_OF_SIGHT:
            continue
        count += 1
        assert isinstance(record.response, dict)
        error = record.response.get("error", record.response)
        [violation] = form.check_request(record)
        # Addresses for further reading are left out.
        assert error["message"].startswith(violation.message)
        assert violation.code in (error.get("code"), "ValidationException")
        assert error.get("param") is None or "$." + error["param"] == violation.path
    assert count > 10


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
    assert count >= form.at_least
    assert {identifier: faults[identifier] for identifier in faults.keys() - FAULTY_ANSWERS.keys()} == {}
