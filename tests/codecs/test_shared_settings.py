"""Settings that several APIs have cross; where one has none, it is a loss."""

from typing import Any

import msgspec
import pytest

import dragoman
from dragoman.drivers.query import build_request
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

pytestmark = promise("core:shared-settings")

CHAT: dict[str, Any] = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES: dict[str, Any] = {"model": "gpt-5.1", "input": "hi"}


def crossed(source: str, target: str, body: dict[str, Any]) -> tuple[Any, list[str]]:
    """The body in the target's words, and the paths of what was lost."""
    encoded = dragoman.translate_request(body, source=source, target=target)
    return encoded.body, [loss.path for loss in encoded.losses if loss.severity != "invented"]


# ── verbosity ──


def test_verbosity_between_chat_and_responses() -> None:
    there, lost = crossed("openai-chat", "openai-responses", {**CHAT, "verbosity": "low"})
    assert (there["text"], lost) == ({"verbosity": "low"}, [])
    text = {"verbosity": "low", "format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
    back, lost = crossed("openai-responses", "openai-chat", {**RESPONSES, "text": text})
    assert (back["verbosity"], back["response_format"]["type"], lost) == ("low", "json_schema", [])


@pytest.mark.parametrize("target", [name for name in FORMATS if not name.startswith("openai")])
def test_verbosity_is_a_loss_elsewhere(target: str) -> None:
    assert "$.verbosity" in crossed("openai-chat", target, {**CHAT, "verbosity": "low"})[1]
    assert "$.text.verbosity" in crossed("openai-responses", target, {**RESPONSES, "text": {"verbosity": "low"}})[1]


# ── settings that Chat and Responses share ──

SHARED: dict[str, Any] = {
    "metadata": {"team": "a", "job": "nightly"},
    "moderation": {"model": "omni-moderation-latest", "policy": {"input": {"mode": "score"}}},
    "prompt_cache_key": "agent-7",
    "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "u-1",
    "service_tier": "flex",
    "store": True,
    "stream_options": {"include_obfuscation": False},
    "user": "u-1",
}


@pytest.mark.parametrize("key", SHARED)
def test_settings_of_both_openai_formats_cross_unchanged(key: str) -> None:
    settings = {key: SHARED[key], "stream": True}
    there, lost = crossed("openai-chat", "openai-responses", {**CHAT, **settings})
    assert (there[key], lost) == (SHARED[key], [])
    back, lost = crossed("openai-responses", "openai-chat", {**RESPONSES, **settings})
    assert (back[key], lost) == (SHARED[key], [])


@each("key", SHARED)
@each("source", ["openai-chat", "openai-responses"])
def test_settings_of_both_openai_formats_return_as_they_came(key: str, source: str) -> None:
    body = {**(CHAT if source == "openai-chat" else RESPONSES), key: SHARED[key]}
    assert crossed(source, source, body) == (body, [])


@pytest.mark.parametrize("value", [None, {}, 5])
def test_what_no_field_holds_returns_as_it_came(value: Any) -> None:
    body = {**CHAT, "metadata": value}
    assert crossed("openai-chat", "openai-chat", body)[0] == body


def test_store_is_never_flipped() -> None:
    for stored in (True, False):
        there, _ = crossed("openai-chat", "openai-responses", {**CHAT, "store": stored})
        assert there["store"] is stored
        back, lost = crossed("openai-responses", "openai-chat", {**RESPONSES, "store": stored})
        assert (back["store"], lost) == (stored, [])
        # An API that stores nothing does what `false` asks for.
        for target in ("anthropic-messages", "bedrock-converse", "ollama-chat", "vertex"):
            assert ("$.store" in crossed("openai-chat", target, {**CHAT, "store": stored})[1]) is stored
    # Chat stores nothing unless asked, Responses everything.
    assert crossed("openai-chat", "openai-responses", CHAT)[0]["store"] is False
    assert "store" not in crossed("openai-responses", "openai-chat", RESPONSES)[0]


def test_usage_in_streams_stays_beside_other_options() -> None:
    options = {"include_usage": True, "include_obfuscation": False}
    body = {**CHAT, "stream": True, "stream_options": options}
    assert crossed("openai-chat", "openai-chat", body) == (body, [])
    there, lost = crossed("openai-chat", "openai-responses", body)
    assert (there["stream_options"], lost) == ({"include_obfuscation": False}, [])
    assert crossed("openai-chat", "anthropic-messages", body)[1] == []
    options["include_obfuscation"] = True
    assert crossed("openai-chat", "anthropic-messages", body)[1] == ["$.stream_options.include_obfuscation"]


def test_cache_options_that_only_responses_has() -> None:
    options = {"mode": "explicit", "ttl": "12h", "prewarm": True}
    back, lost = crossed("openai-responses", "openai-chat", {**RESPONSES, "prompt_cache_options": options})
    assert back["prompt_cache_options"] == {"mode": "explicit"}
    assert lost == ["$.prompt_cache_options.ttl", "$.prompt_cache_options.prewarm"]


# ── log probabilities ──

PLAIN_CHAT = {**CHAT, "model": "gpt-4.1"}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("openai-responses", {"include": ["message.output_text.logprobs"], "top_logprobs": 3}),
        ("gemini", {"generationConfig": {"responseLogprobs": True, "logprobs": 3}}),
        ("ollama-chat", {"logprobs": True, "top_logprobs": 3}),
    ],
)
def test_log_probabilities_are_asked_for_in_four_formats(target: str, expected: dict[str, Any]) -> None:
    body = {**PLAIN_CHAT, "logprobs": True, "top_logprobs": 3}
    there, lost = crossed("openai-chat", target, body)
    assert ({key: there[key] for key in expected}, lost) == (expected, [])
    encoded = dragoman.translate_request(there, source=target, target="openai-chat", model="gpt-4.1")
    assert (encoded.body["logprobs"], encoded.body["top_logprobs"]) == (True, 3)


def test_log_probabilities_elsewhere_and_for_models_that_reason() -> None:
    body = {**PLAIN_CHAT, "logprobs": True, "top_logprobs": 3}
    for target in ("anthropic-messages", "bedrock-converse"):
        assert {"$.logprobs", "$.top_logprobs"} <= set(crossed("openai-chat", target, body)[1])
    there, lost = crossed("openai-chat", "openai-responses", {**body, "model": "gpt-5.1"})
    assert "top_logprobs" not in there
    assert there["include"] == ["reasoning.encrypted_content"]
    assert lost == ["$.logprobs", "$.top_logprobs"]
    # "'top_logprobs' is only allowed when 'logprobs' is true."
    back, lost = crossed("openai-responses", "openai-chat", {**RESPONSES, "model": "gpt-4.1", "top_logprobs": 3})
    assert ("top_logprobs" in back, lost) == (False, ["$.top_logprobs"])


def test_include_asks_for_reasoning_and_log_probabilities() -> None:
    include = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    body = {**RESPONSES, "include": include}
    assert crossed("openai-responses", "openai-responses", body) == (body, [])
    off = {"reasoning_effort": "none", "logprobs": True}
    there, lost = crossed("openai-chat", "openai-responses", {**CHAT, **off})
    assert (there["include"], lost) == (include, [])


# ── labels, end users, service tiers ──

LABELLED = {"openai-chat": "metadata", "openai-responses": "metadata", "bedrock-converse": "requestMetadata"}


@pytest.mark.parametrize("target", ["openai-responses", "bedrock-converse", "gemini", "vertex"])
def test_labels_cross(target: str) -> None:
    there, lost = crossed("openai-chat", target, {**CHAT, "metadata": {"team": "a"}})
    assert (there[LABELLED.get(target, "labels")], lost) == ({"team": "a"}, [])


@pytest.mark.parametrize(
    ("target", "labels", "kept"),
    [
        ("bedrock-converse", {"ok": "a b", "bad": "ü"}, {"ok": "a b"}),
        ("bedrock-converse", {"ok": "", "long": "x" * 257}, {"ok": ""}),
        ("vertex", {"ok": "a-b_1", "Bad": "a"}, {"ok": "a-b_1"}),
        ("vertex", {"ok": "a", "bad": "A"}, {"ok": "a"}),
    ],
)
def test_labels_that_an_api_refuses_are_losses(target: str, labels: dict[str, str], kept: dict[str, str]) -> None:
    there, lost = crossed("openai-chat", target, {**CHAT, "metadata": labels})
    assert there[LABELLED.get(target, "labels")] == kept
    assert lost == [f"$.metadata.{key}" for key in labels if key not in kept]


def test_openai_takes_sixteen_labels() -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    many = {**body, "requestMetadata": {f"k{number}": "v" for number in range(17)}}
    encoded = dragoman.translate_request(many, source="bedrock-converse", target="openai-chat", model="gpt-4.1")
    assert len(encoded.body["metadata"]) == 16
    assert [loss.path for loss in encoded.losses] == ["$.requestMetadata.k16"]


MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}


def test_the_end_user_crosses_between_anthropic_and_openai() -> None:
    for source, body in (("openai-chat", CHAT), ("openai-responses", RESPONSES)):
        there, lost = crossed(source, "anthropic-messages", {**body, "safety_identifier": "u-1"})
        assert (there["metadata"], lost) == ({"user_id": "u-1"}, [])
        assert crossed(source, "anthropic-messages", {**body, "user": "u-2"})[0]["metadata"] == {"user_id": "u-2"}
        back, lost = crossed("anthropic-messages", source, {**MESSAGES, "metadata": {"user_id": "u-1"}})
        assert (back["safety_identifier"], lost) == ("u-1", [])


def test_a_long_identifier_is_hashed_and_that_is_reported() -> None:
    # As Claude Code sends it.
    user = f"user_{'a' * 64}_account__session_{'b' * 36}"
    body = {**MESSAGES, "metadata": {"user_id": user}}
    encoded = dragoman.translate_request(body, source="anthropic-messages", target="openai-chat", model="gpt-5.1")
    hashed = encoded.body["safety_identifier"]
    assert len(hashed) == 64
    assert hashed not in user
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.metadata.user_id", "degraded")]
    again = dragoman.translate_request(body, source="anthropic-messages", target="openai-responses", model="gpt-5.1")
    assert again.body["safety_identifier"] == hashed
    assert crossed("anthropic-messages", "anthropic-messages", body) == (body, [])


def test_two_identifiers_have_one_field_at_anthropic() -> None:
    body = {**CHAT, "safety_identifier": "s", "user": "u"}
    there, lost = crossed("openai-chat", "anthropic-messages", body)
    assert (there["metadata"], lost) == ({"user_id": "s"}, ["$.user"])
    same = {**CHAT, "safety_identifier": "s", "user": "s"}
    assert crossed("openai-chat", "anthropic-messages", same)[1] == []


def test_compatible_servers_know_the_end_user_by_the_older_name() -> None:
    request = dragoman.decode_request({**MESSAGES, "metadata": {"user_id": "u-1"}}, "anthropic-messages")
    encoded = dragoman.encode_request(request, "groq")
    assert encoded.body["user"] == "u-1"
    assert "safety_identifier" not in encoded.body
    encoded = dragoman.encode_request(request, "mistral")
    assert not {"user", "safety_identifier"} & encoded.body.keys()
    assert "user" in " ".join(loss.what for loss in encoded.losses)


TIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-responses": (
        "service_tier",
        {"default": "default", "flex": "flex", "priority": "priority", "auto": "auto"},
    ),
    "anthropic-messages": ("service_tier", {"default": "standard_only", "auto": "auto"}),
    "gemini": ("serviceTier", {"default": "standard", "flex": "flex", "priority": "priority", "fast": "priority"}),
    "bedrock-converse": (
        "serviceTier",
        {"default": {"type": "default"}, "flex": {"type": "flex"}, "fast": {"type": "priority"}},
    ),
    "ollama-chat": ("service_tier", {}),
}


@each("tier", ["auto", "default", "flex", "priority", "fast", "scale"])
@each("target", TIERS)
def test_service_tiers_cross_or_are_losses(target: str, tier: str) -> None:
    there, lost = crossed("openai-chat", target, {**CHAT, "service_tier": tier})
    key, words = TIERS[target]
    if tier in words:
        assert (there[key], lost) == (words[tier], [])
    elif key not in there:
        assert lost == ([] if tier == "auto" and target != "ollama-chat" else ["$.service_tier"])
    else:
        assert target in {"openai-responses", "gemini", "bedrock-converse"}


def test_tiers_return_in_openai_words() -> None:
    there, _ = crossed("anthropic-messages", "openai-chat", {**MESSAGES, "service_tier": "standard_only"})
    assert there["service_tier"] == "default"
    body = {"messages": [{"role": "user", "content": [{"text": "hi"}]}], "serviceTier": {"type": "priority"}}
    encoded = dragoman.translate_request(body, source="bedrock-converse", target="gemini", model="gemini-2.5-flash")
    assert encoded.body["serviceTier"] == "priority"


def test_vertex_takes_the_tier_as_a_header() -> None:
    encoded = dragoman.translate_request({**CHAT, "service_tier": "flex"}, source="openai-chat", target="vertex")
    assert "serviceTier" not in encoded.body
    assert encoded.headers == {"X-Vertex-AI-LLM-Shared-Request-Type": "flex"}
    assert [(loss.path, loss.severity) for loss in encoded.losses] == [("$.service_tier", "degraded")]
    assert crossed("openai-chat", "vertex", {**CHAT, "service_tier": "default"})[1] == ["$.service_tier"]


# ── modalities ──

GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_modalities_cross() -> None:
    body = {**CHAT, "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
    there, lost = crossed("openai-chat", "gemini", body)
    assert there["generationConfig"]["responseModalities"] == ["TEXT", "AUDIO"]
    assert lost == ["$.audio"]  # voices are the vendor's own
    for stream, form in ((False, "wav"), (True, "pcm16")):
        request = dragoman.decode_request({**GEMINI, "generationConfig": {"responseModalities": ["AUDIO"]}}, "gemini")
        encoded = dragoman.encode_request(msgspec.structs.replace(request, stream=stream), "openai-chat")
        assert encoded.body["modalities"] == ["audio"]
        assert encoded.body["audio"] == {"voice": "alloy", "format": form}
        assert [loss.severity for loss in encoded.losses] == ["invented"]


def test_answers_in_pictures() -> None:
    body = {**GEMINI, "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}
    there, lost = crossed("gemini", "openai-chat", body)
    assert (there["modalities"], lost) == (["text"], ["$.generationConfig.responseModalities"])
    request = dragoman.decode_request(body, "gemini")
    assert dragoman.encode_request(request, "openrouter").body["modalities"] == ["text", "image"]


@pytest.mark.parametrize("target", ["openai-responses", "anthropic-messages", "bedrock-converse", "ollama-chat"])
def test_text_is_what_every_api_answers(target: str) -> None:
    assert crossed("openai-chat", target, {**CHAT, "modalities": ["text"]})[1] == []
    assert "$.modalities" in crossed("openai-chat", target, {**CHAT, "modalities": ["text", "audio"]})[1]


# ── JSON mode, names of schemas, effort, cache marks, what says nothing ──

ANY_OBJECT = {"response_format": {"type": "json_object"}}


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_json_mode_reaches_anthropic_and_bedrock_as_an_instruction(system: str | None) -> None:
    messages = [*([] if system is None else [{"role": "system", "content": system}]), *CHAT["messages"]]
    body = {**CHAT, **ANY_OBJECT, "messages": messages}
    there = dragoman.translate_request(body, source="openai-chat", target="anthropic-messages")
    texts = [block["text"] for block in there.body["system"]] if system else [there.body["system"]]
    assert texts == [*([system] if system else []), "Answer with one JSON object and nothing else."]
    assert ("$.response_format", "degraded") in {(loss.path, loss.severity) for loss in there.losses}
    there = dragoman.translate_request(body, source="openai-chat", target="bedrock-converse")
    assert [block["text"] for block in there.body["system"]] == texts
    assert ("$.response_format", "degraded") in {(loss.path, loss.severity) for loss in there.losses}


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def _asking_for(**form: Any) -> dict[str, Any]:
    return {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA, **form}}}


def test_name_and_description_of_a_schema_reach_gemini() -> None:
    there, lost = crossed("openai-chat", "gemini", _asking_for(name="weather", description="What it is like."))
    written = there["generationConfig"]["responseJsonSchema"]
    assert written == {**SCHEMA, "title": "weather", "description": "What it is like."}
    assert lost == []
    back = dragoman.translate_request(there, source="gemini", target="openai-chat", model="gpt-5.1")
    returned = back.body["response_format"]["json_schema"]
    assert (returned["name"], returned["schema"]) == ("weather", {**SCHEMA, "description": "What it is like."})
    back = dragoman.translate_request(there, source="gemini", target="openai-responses", model="gpt-5.1")
    assert back.body["text"]["format"]["name"] == "weather"


def test_a_schema_that_has_a_title_keeps_it() -> None:
    titled = {**SCHEMA, "title": "Other"}
    there, lost = crossed("openai-chat", "gemini", _asking_for(name="weather", schema=titled))
    assert there["generationConfig"]["responseJsonSchema"] == titled
    assert lost == ["$.response_format.json_schema.name"]
    assert crossed("openai-chat", "gemini", _asking_for(name="Other", schema=titled))[1] == []


@pytest.mark.parametrize(("settings", "shown"), [({"effort": "low"}, True), ({"effort": "none"}, False), ({}, False)])
def test_reasoning_effort_asks_gemini_for_thoughts(settings: dict[str, str], *, shown: bool) -> None:
    body = {**RESPONSES, "reasoning": settings}
    encoded = dragoman.translate_request(body, source="openai-responses", target="gemini", model="gemini-3-flash")
    thinking = encoded.body.get("generationConfig", {}).get("thinkingConfig", {})
    assert thinking.get("includeThoughts", False) is shown


def test_hidden_thoughts_stay_hidden() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}
    body = {**MESSAGES, "max_tokens": 9999, "thinking": thinking}
    encoded = dragoman.translate_request(body, source="anthropic-messages", target="gemini", model="gemini-2.5-flash")
    assert encoded.body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 2048}


def _marked(ttl: str | None = None) -> dict[str, Any]:
    mark = {"type": "ephemeral", **({} if ttl is None else {"ttl": ttl})}
    text = {"type": "text", "text": "A long text.", "cache_control": mark}
    return {
        **MESSAGES,
        "system": [text],
        "messages": [{"role": "user", "content": [text, {"type": "text", "text": "?"}]}],
    }


@pytest.mark.parametrize(("target", "kind"), [("openai-responses", "input_text"), ("openai-chat", "text")])
def test_cache_marks_reach_openai_and_return(target: str, kind: str) -> None:
    there = dragoman.translate_request(_marked(), source="anthropic-messages", target=target, model="gpt-5.6")
    marked = {"type": kind, "text": "A long text.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    messages = there.body["input" if target == "openai-responses" else "messages"]
    assert [message["content"][0] for message in messages] == [marked, marked]
    assert there.losses == ()
    back = dragoman.translate_request(
        there.json(), source=target, target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert [block.get("cache_control") for block in back.body["messages"][0]["content"]] == [
        {"type": "ephemeral"},
        None,
    ]
    assert back.body["system"][0]["cache_control"] == {"type": "ephemeral"}


def test_cache_marks_for_older_models_and_longer_lifetimes() -> None:
    older = dragoman.translate_request(
        _marked(), source="anthropic-messages", target="openai-responses", model="gpt-5.1"
    )
    assert "prompt_cache_breakpoint" not in older.json().decode()
    assert [loss.severity for loss in older.losses] == ["dropped", "dropped"]
    hour = dragoman.translate_request(_marked("1h"), source="anthropic-messages", target="openai-chat", model="gpt-5.6")
    assert hour.body["messages"][0]["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert {(loss.path, loss.severity) for loss in hour.losses} == {
        ("$.system[0].cache_control.ttl", "degraded"),
        ("$.messages[0].content[0].cache_control.ttl", "degraded"),
    }
    # Servers of others know nothing of breakpoints.
    request = dragoman.decode_request(_marked(), "anthropic-messages")
    assert "prompt_cache_breakpoint" not in dragoman.encode_request(request, "groq").json().decode()


@each("stop", ["", [], [""]])
@each("target", FORMATS)
def test_an_empty_stop_sequence_says_nothing(stop: Any, target: str) -> None:
    body = {**CHAT, "stop": stop}
    there, lost = crossed("openai-chat", target, body)
    assert lost == []
    assert (there == body) if target == "openai-chat" else ("stop" not in str(there))


EMPTY_OBJECTS = {
    "openai-chat": (CHAT, ("metadata", "stream_options", "prompt_cache_options", "moderation", "logit_bias")),
    "openai-responses": (RESPONSES, ("metadata", "text", "reasoning", "stream_options", "moderation")),
    "anthropic-messages": (MESSAGES, ("metadata", "output_config", "context_management")),
    "gemini": (GEMINI, ("generationConfig", "toolConfig", "labels")),
}


@each(("source", "key"), [(source, key) for source, (_, keys) in EMPTY_OBJECTS.items() for key in keys])
@each("target", FORMATS)
def test_empty_objects_say_nothing_and_return(source: str, key: str, target: str) -> None:
    plain = EMPTY_OBJECTS[source][0]
    body = {**plain, key: {}}
    there = dragoman.translate_request(body, source=source, target=target, model="some-model")
    without = dragoman.translate_request(plain, source=source, target=target, model="some-model")
    assert there.losses == without.losses
    if FAMILY[source] == FAMILY[target]:
        assert there.body == {**without.body, key: {}}
    else:
        assert there.body == without.body


def test_drivers_take_them() -> None:
    settings = {"verbosity": "low", "labels": {"team": "a"}, "service_tier": "flex", "store": False, "logprobs": True}
    request = build_request("hi", settings={"model": "gpt-4.1", **settings, "modalities": ("text",)})  # type: ignore[typeddict-item]
    body = dragoman.encode_request(request, "openai-chat").body
    assert {**settings, "metadata": {"team": "a"}, "modalities": ["text"]}.items() >= {
        key: value for key, value in body.items() if key not in {"model", "messages"}
    }.items()
    assert body["metadata"] == {"team": "a"}
