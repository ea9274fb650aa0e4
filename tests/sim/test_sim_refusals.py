"""Keys, paths, methods, sizes, bad JSON: what each API refuses before it reads the request."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.sim.rules import (
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini,
    gemini_interactions,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from dragoman.sim.server import Simulator
from dragoman.sim.service import APIS, HIDDEN, Settings
from tests.sim.wire import DOORS, Answer, Body, ask, send

QUESTION = "What is the weather in Paris and in Oslo?"
CHECKS: dict[str, Any] = {
    "openai-chat": openai_chat.check_response,
    "azure-openai": openai_chat.check_response,
    "openai-responses": openai_responses.check_response,
    "anthropic-messages": anthropic_messages.check_response,
    "anthropic-vertex": anthropic_messages.check_response,
    "gemini": gemini.check_response,
    "vertex": gemini.check_response,
    "ollama-chat": ollama_chat.check_response,
    "cohere-chat": cohere_chat.check_response,
    "gemini-interactions": gemini_interactions.check_response,
    "vertex-interactions": gemini_interactions.check_response,
    "bedrock-converse": bedrock_converse.check_response,
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Simulator]:
    with Simulator(Settings(keys=frozenset({"any-key"}), max_body=4000)) as simulator:
        yield simulator


def test_every_api_has_a_door() -> None:
    assert {api.name for api in APIS} == set(DOORS) == set(CHECKS)


@pytest.mark.parametrize("api", DOORS)
@pytest.mark.parametrize("text", [QUESTION, "Say: good evening", "Count to 300"])
def test_answers_satisfy_a_strict_client(dragoman_sim: Simulator, api: str, text: str) -> None:
    answer = ask(dragoman_sim, DOORS[api], DOORS[api].ask_with_tool(text))
    assert answer.status == 200, answer.body
    assert CHECKS[api](answer.json) == ()


@pytest.mark.parametrize("api", DOORS)
def test_the_same_question_gets_the_same_bytes(dragoman_sim: Simulator, api: str) -> None:
    for stream in (False, True):
        first, second = (
            ask(dragoman_sim, DOORS[api], DOORS[api].ask_with_tool(QUESTION), stream=stream) for _ in range(2)
        )
        assert first.status == 200
        assert first.body == second.body


# api -> what is said without a key, and with a wrong one
KEYS: dict[str, tuple[tuple[int, str], tuple[int, str]]] = {
    "openai-chat": ((401, "You didn't provide an API key"), (401, "Incorrect API key provided")),
    "azure-openai": ((401, "Access denied due to invalid subscription key"), (401, "Access denied")),
    "openai-responses": ((401, "You didn't provide an API key"), (401, "Incorrect API key provided")),
    "anthropic-messages": ((401, "x-api-key header is required"), (401, "invalid x-api-key")),
    "anthropic-vertex": ((401, "missing required authentication"), (401, "invalid authentication credentials")),
    "gemini": ((403, "unregistered callers"), (400, "API key not valid")),
    "vertex": ((401, "missing required authentication credential"), (401, "invalid authentication credentials")),
    "gemini-interactions": ((403, "unregistered callers"), (400, "API key not valid")),
    "vertex-interactions": ((401, "missing required authentication"), (401, "invalid authentication credentials")),
    "ollama-chat": ((401, "unauthorized"), (401, "unauthorized")),
    "cohere-chat": ((401, "no api key supplied"), (401, "invalid api token")),
    "bedrock-converse": ((403, "Missing Authentication Token"), (403, "security token included")),
}


@pytest.mark.parametrize("api", KEYS)
def test_requests_without_a_valid_key_are_refused(guarded: Simulator, api: str) -> None:
    door = DOORS[api]
    absent = {name: "" for name in door.headers if name != "anthropic-version"}
    wrong = {name: value.replace("any-key", "wrong-key-of-mine") for name, value in door.headers.items()}
    for headers, (status, words) in zip((absent, wrong or {"authorization": "Bearer x"}), KEYS[api], strict=True):
        refused = send(guarded, door.path, door.ask("hi"), {**door.headers, **headers})
        assert refused.status == status
        assert words in door.message_of(refused.json)
        assert "wrong-key-of-mine" not in refused.body.decode()
    good = {**door.headers, **({"authorization": "Bearer any-key"} if api == "ollama-chat" else {})}
    assert send(guarded, door.path, door.ask("hi"), good).status == 200


def test_a_signature_of_aws_names_the_key(guarded: Simulator) -> None:
    door = DOORS["bedrock-converse"]
    signed = "AWS4-HMAC-SHA256 Credential={}/20261115/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=0"
    good = send(guarded, door.path, door.ask("hi"), {"authorization": signed.format("any-key")})
    bad = send(guarded, door.path, door.ask("hi"), {"authorization": signed.format("other")})
    assert (good.status, bad.status) == (200, 403)
    assert bad.headers["x-amzn-errortype"] == "UnrecognizedClientException"


TOO_LARGE = {"gemini": 400, "gemini-interactions": 400, "vertex-interactions": 400, "vertex": 400, "ollama-chat": 400}


@pytest.mark.parametrize("api", DOORS)
def test_a_body_that_is_too_large(guarded: Simulator, api: str) -> None:
    headers = {"authorization": "Bearer any-key", **DOORS[api].headers}
    refused = send(guarded, DOORS[api].path, DOORS[api].ask("x" * 5000), headers)
    assert refused.status == TOO_LARGE.get(api, 413)
    assert DOORS[api].message_of(refused.json)


@pytest.mark.parametrize("api", DOORS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a":NaN}', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_not_a_json_object(dragoman_sim: Simulator, api: str, body: bytes) -> None:
    refused = ask(dragoman_sim, DOORS[api], body)
    assert refused.status == 400
    assert DOORS[api].message_of(refused.json)


def wrong_way(simulator: Simulator, api: str, path: str, method: str) -> Answer:
    return send(simulator, path, b"", DOORS[api].headers, method)


@pytest.mark.parametrize(
    ("api", "method", "path", "status", "words"),
    [
        ("openai-chat", "GET", "/v1/chat/completions", 405, "Not allowed to GET on /v1/chat/completions"),
        ("openai-chat", "POST", "/v1/chat/nonsense", 404, "Invalid URL (POST /v1/chat/nonsense)"),
        ("openai-responses", "PATCH", "/v1/responses", 405, "Not allowed to PATCH"),
        ("anthropic-messages", "GET", "/v1/messages", 405, "Method Not Allowed"),
        ("anthropic-messages", "POST", "/v1/nonsense", 404, "not_found_error"),
        ("gemini", "POST", "/v1beta/models/gemini-3.6-flash:nonsense", 404, "<!DOCTYPE html>"),
        ("vertex", "POST", "/v1/projects/p/nonsense", 404, "<!DOCTYPE html>"),
        ("ollama-chat", "GET", "/api/chat", 405, "405 method not allowed"),
        ("ollama-chat", "POST", "/api/nonsense", 404, "404 page not found"),
        ("cohere-chat", "GET", "/v2/chat", 405, "method not allowed"),
        ("cohere-chat", "POST", "/v2/nonsense", 404, "not found"),
        ("bedrock-converse", "POST", "/model/x/nonsense", 404, "not recognized"),
        ("openai-chat", "POST", "/openai/v1/nonsense", 404, "Invalid URL"),
        ("azure-openai", "POST", "/openai/deployments/gpt-4o/nonsense", 404, "Resource not found"),
        ("azure-openai", "POST", "/openai/deployments/gpt-4o/chat/completions", 404, "Resource not found"),
        ("anthropic-messages", "POST", "/anthropic/v1/nonsense", 404, "not_found_error"),
    ],
)
def test_wrong_paths_and_methods_are_refused(
    dragoman_sim: Simulator, api: str, method: str, path: str, status: int, words: str
) -> None:
    refused = wrong_way(dragoman_sim, api, path, method)
    assert refused.status == status
    assert words in refused.body.decode()


MOUNTS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-openai": "azure",
    "anthropic-messages": "anthropic",
    "anthropic-vertex": "vertex",
    "gemini": "gemini",
    "vertex": "vertex",
    "ollama-chat": "ollama",
    "cohere-chat": "cohere",
    "bedrock-converse": "bedrock",
}


@pytest.mark.parametrize("api", MOUNTS)
def test_every_api_is_also_served_under_its_name(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    assert send(dragoman_sim, f"/{MOUNTS[api]}{door.path}", door.ask("hi"), door.headers).status == 200
    assert dragoman_sim.requests[-1].api == api


@pytest.mark.parametrize(
    ("headers", "first"),
    [
        ({"authorization": "Bearer k"}, lambda body: body["data"][0]["object"]),
        ({"x-api-key": "k", "anthropic-version": "2026-10-21"}, lambda body: body["data"][0]["type"]),
        ({"x-goog-api-key": "k"}, lambda body: body["models"][0]["name"].split("/")[0][:-1]),
    ],
)
def test_the_list_of_models_follows_the_key(dragoman_sim: Simulator, headers: dict[str, str], first: Any) -> None:
    assert first(send(dragoman_sim, "/v1/models", b"", headers, "GET").json) == "model"


def test_limits_on_the_rate_come_with_a_hint() -> None:
    with Simulator(Settings(requests_per_minute=2)) as simulator:
        for api, hint in (("openai-chat", "retry-after"), ("anthropic-messages", "retry-after")):
            simulator.reset()
            answers = [ask(simulator, DOORS[api], DOORS[api].ask("hi")) for _ in range(3)]
            assert [answer.status for answer in answers] == [200, 200, 429]
            assert 0 < int(answers[-1].headers[hint]) <= 60
        simulator.reset()
        refused = [ask(simulator, DOORS["gemini"], DOORS["gemini"].ask("hi")) for _ in range(3)][-1]
        retry = [detail for detail in refused.json["error"]["details"] if detail["@type"].endswith("RetryInfo")]
        assert retry[0]["retryDelay"].endswith("s")


def test_requests_are_remembered_without_their_keys(dragoman_sim: Simulator) -> None:
    for door in DOORS.values():
        ask(dragoman_sim, door, door.ask("hi"))
    path = "/v1beta/models/gemini-3.6-flash:generateContent?key=any-key"
    send(dragoman_sim, path, DOORS["gemini"].ask("hi"))
    answer = send(dragoman_sim, "/_sim/requests", b"", method="GET")
    assert len(answer.json) == len(DOORS) + 1
    assert "any-key" not in answer.body.decode()
    assert HIDDEN in answer.body.decode()
    assert dragoman_sim.requests[0].json == DOORS["openai-chat"].ask("hi")
    assert "any-key" not in repr(dragoman_sim.requests)


def test_the_simulator_is_steered_over_http(dragoman_sim: Simulator) -> None:
    door = DOORS["openai-chat"]
    assert send(dragoman_sim, "/_sim/script", [{"text": "scripted"}], method="PUT").status == 200
    assert door.text_of(ask(dragoman_sim, door, door.ask("hi")).json) == "scripted"
    refused = send(dragoman_sim, "/_sim/script", [{"txt": "typo"}], method="PUT")
    assert refused.status == 400
    assert "txt" in json.loads(refused.body)["error"]
    assert send(dragoman_sim, "/_sim/requests", b"", method="DELETE").status == 200
    assert dragoman_sim.requests == []
    assert send(dragoman_sim, "/_sim/nonsense", b"", method="GET").status == 404


def test_anthropic_wants_a_version_and_known_betas(dragoman_sim: Simulator) -> None:
    door = DOORS["anthropic-messages"]
    refused = send(dragoman_sim, door.path, door.ask("hi"), {"x-api-key": "k"})
    assert "anthropic-version" in door.message_of(refused.json)
    refused = ask(dragoman_sim, door, door.ask("hi"), anthropic_beta="bananas")
    assert "Unexpected value(s) `bananas`" in door.message_of(refused.json)
    # As Claude Code sends it; without a known name it is not one.
    taken = "claude-code-20250219,interleaved-thinking-2025-05-14"
    assert ask(dragoman_sim, door, door.ask("hi"), anthropic_beta=taken).status == 200
    refused = ask(dragoman_sim, door, door.ask("hi"), anthropic_beta=f"{taken},bananas-20250219")
    assert "Unexpected value(s) `bananas-20250219`" in door.message_of(refused.json)


# --- prompts that are too long, and prompts that are known --------------------------------------------------------

TOO_LONG = {
    "openai-chat": "maximum context length is 100 tokens",
    "openai-responses": "maximum context length is 100 tokens",
    "azure-openai": "maximum context length is 100 tokens",
    "anthropic-messages": "prompt is too long",
    "anthropic-vertex": "prompt is too long",
    "gemini": "exceeds the maximum number of tokens allowed (100)",
    "vertex": "exceeds the maximum number of tokens allowed (100)",
    "bedrock-converse": "Input is too long",
}


def test_a_prompt_that_is_too_long() -> None:
    with Simulator(Settings(context_window=100)) as simulator:
        for api, words in TOO_LONG.items():
            door = DOORS[api]
            assert ask(simulator, door, door.ask("short")).status == 200
            refused = ask(simulator, door, door.ask("long " * 200))
            assert refused.status == 400
            assert words in door.message_of(refused.json)
        # Ollama forgets the beginning instead.
        assert ask(simulator, DOORS["ollama-chat"], DOORS["ollama-chat"].ask("long " * 200)).status == 200


CACHED: dict[str, Any] = {
    "openai-chat": lambda body: (
        body["usage"]["prompt_tokens_details"]["cached_tokens"],
        body["usage"]["prompt_tokens"],
    ),
    "openai-responses": lambda body: (
        body["usage"]["input_tokens_details"]["cached_tokens"],
        body["usage"]["input_tokens"],
    ),
    "gemini": lambda body: (
        body["usageMetadata"].get("cachedContentTokenCount", 0),
        body["usageMetadata"]["promptTokenCount"],
    ),
}


@pytest.mark.parametrize("api", CACHED)
def test_a_long_prompt_is_known_the_second_time(dragoman_sim: Simulator, api: str) -> None:
    door = DOORS[api]
    first, second = (ask(dragoman_sim, door, door.ask("word " * 3000)).json for _ in range(2))
    assert CACHED[api](first)[0] == 0
    read, total = CACHED[api](second)
    assert 1024 <= read <= total
    assert CHECKS[api](second) == ()


def test_vertex_streams_arguments_piece_by_piece(dragoman_sim: Simulator) -> None:
    door = DOORS["vertex"]
    body = door.ask_with_tool("Weather in Paris?")
    body["toolConfig"] = {"functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True}}
    events = ask(dragoman_sim, door, body, stream=True).body.decode().split("\r\n\r\n")
    parts = [
        json.loads(event.removeprefix("data: "))["candidates"][0]["content"]["parts"][0] for event in events if event
    ]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert calls[0]["name"] == "get_weather"
    assert "args" not in str(calls).replace("partialArgs", "")
    pieces = [piece for call in calls for piece in call.get("partialArgs", [])]
    assert {piece["jsonPath"] for piece in pieces} == {"$.city"}
    assert "".join(piece["stringValue"] for piece in pieces) == "Paris"
    assert calls[-1] == {}


def test_gemini_without_sse_streams_an_array(dragoman_sim: Simulator) -> None:
    door = DOORS["gemini"]
    path = "/v1beta/models/gemini-3.6-flash:streamGenerateContent"
    whole = send(dragoman_sim, path, door.ask("Count to 20"), door.headers).json
    assert "".join(chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in whole).startswith("1 2 3")
    refused = send(dragoman_sim, path, {"contents": []}, door.headers)
    assert refused.json[0]["error"]["code"] == 400


@pytest.mark.parametrize(
    ("field", "value", "beta"),
    [
        ("context_management", {"edits": []}, "context-management-2025-06-27"),
        ("thread", {"type": "create"}, "message-threads-2026-08-12"),
        ("output_config", {"task_budget": {"type": "tokens", "total": 9}}, "task-budgets-2026-03-13"),
        ("thinking", {"type": "adaptive", "display": "updates"}, "thinking-display-updates-2026-08-18"),
    ],
)
def test_fields_in_beta_need_their_beta(dragoman_sim: Simulator, field: str, value: Body, beta: str) -> None:
    door = DOORS["anthropic-messages"]
    body = {**door.ask("hi"), field: value}
    refused = ask(dragoman_sim, door, body)
    assert "Extra inputs are not permitted" in door.message_of(refused.json)
    assert ask(dragoman_sim, door, body, anthropic_beta=f"other-2025-01-01, {beta}").status == 200
