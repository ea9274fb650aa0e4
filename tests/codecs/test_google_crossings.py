"""What crosses between generateContent and Interactions, and from both to others: tools, server steps, failures."""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from google.genai import types
from google.genai._gaos.types import interactions
from msgspec import structs

import dragoman
from dragoman import ir
from dragoman.errors import DecodeError, EncodeError
from tests.support.cases import each
from tests.support.formats import FORMATS, MODELS, complaints, refusals
from tests.support.promises import promise
from tests.support.trees import difference, reaches

Json = dict[str, Any]

# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────

SERVER: Json = {"url": "https://mcp.example.com", "headers": {"Authorization": "Bearer key"}}
# (a tool of generateContent, the same tool of Interactions)
SAME_TOOLS: dict[str, tuple[Json, Json]] = {
    "MCP server": (
        {"mcpServers": [{"name": "m", "streamableHttpTransport": SERVER}]},
        {"type": "mcp_server", "name": "m", **SERVER},
    ),
    "enterprise search": (
        {"enterpriseWebSearch": {}},
        {"type": "google_search", "search_types": ["enterprise_web_search"]},
    ),
    "image search": (
        {"googleSearch": {"searchTypes": {"imageSearch": {}}}},
        {"type": "google_search", "search_types": ["image_search"]},
    ),
    "maps": ({"googleMaps": {"enableWidget": True}}, {"type": "google_maps", "enable_widget": True}),
    "computer use": (
        {"computerUse": {"environment": "ENVIRONMENT_BROWSER", "excludedPredefinedFunctions": ["search"]}},
        {"type": "computer_use", "environment": "browser", "excluded_predefined_functions": ["search"]},
    ),
}
HALF_KNOWN: dict[str, tuple[Json, Json, str]] = {
    "server with a timeout": (
        {"mcpServers": [{"name": "m", "streamableHttpTransport": {**SERVER, "timeout": "5s"}}]},
        SAME_TOOLS["MCP server"][1],
        "timeout",
    ),
    "search in a range of time": (
        {"googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}},
        {"type": "google_search"},
        "timeRangeFilter",
    ),
    "legacy search": (
        {"googleSearchRetrieval": {"dynamicRetrievalConfig": {"mode": "MODE_DYNAMIC"}}},
        {"type": "google_search"},
        "dynamicRetrievalConfig",
    ),
}


def generate(*tools: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "tools": list(tools)}


def interact(*tools: Json) -> Json:
    return {"model": "gemini-3-flash-preview", "input": "q", "tools": list(tools)}


@promise("law:2-nothing-vanishes", "law:3-legality")
@each(("ours", "theirs"), [pytest.param(*pair, id=name) for name, pair in SAME_TOOLS.items()])
def test_a_tool_of_both_apis_crosses(ours: Json, theirs: Json) -> None:
    source = "vertex" if "enterpriseWebSearch" in ours else "gemini"
    for body, origin, target, expected in (
        (generate(ours), source, "gemini-interactions", theirs),
        (interact(theirs), "gemini-interactions", source, ours),
    ):
        encoded = dragoman.translate_request(body, source=origin, target=target, model="gemini-3-flash-preview")
        assert encoded.body["tools"] == [expected]
        assert [loss for loss in encoded.losses if loss.severity != "noted"] == []
        assert refusals(encoded, target, model="gemini-3-flash-preview") == ()
        assert dragoman.translate_request(body, source=origin, target=origin).body == body


@promise("law:2-nothing-vanishes")
@each(("tool", "expected", "left_out"), [pytest.param(*row, id=name) for name, row in HALF_KNOWN.items()])
def test_an_option_that_interactions_lacks_does_not_cost_the_tool(tool: Json, expected: Json, left_out: str) -> None:
    encoded = dragoman.translate_request(generate(tool), source="gemini", target="gemini-interactions")
    assert encoded.body["tools"] == [expected]
    assert [(loss.severity, loss.path, loss.what.split()[0]) for loss in encoded.losses] == [
        ("degraded", "$.tools[0]", left_out)
    ]


@promise("law:2-nothing-vanishes")
def test_a_search_that_leaves_sites_out_is_not_sent_without_them() -> None:
    tool = {"googleSearch": {"excludeDomains": ["a.com"]}}
    encoded = dragoman.translate_request(generate(tool), source="vertex", target="gemini-interactions")
    assert "tools" not in encoded.body
    assert [(loss.severity, loss.path) for loss in encoded.losses] == [("dropped", "$.tools[0]")]


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if name != "gemini-interactions"])
def test_a_server_of_which_some_tools_are_allowed_is_never_sent_with_all(target: str) -> None:
    allowed = {"type": "mcp_server", "name": "m", "url": "https://mcp.example.com"}
    for entries, names in (
        ([{"mode": "auto", "tools": ["a"]}], ["a"]),
        ([{"tools": ["a"]}, {"tools": ["b"]}], ["a", "b"]),
        ([{"mode": "none"}], None),
    ):
        body = interact({**allowed, "allowed_tools": entries})
        encoded = dragoman.translate_request(body, source="gemini-interactions", target=target, model=MODELS[target])
        sent = encoded.json().decode()
        assert "mcp.example.com" not in sent or (names and all(f'"{name}"' in sent for name in names)), sent
        assert "$.tools[0]" in [loss.path for loss in encoded.losses] or "mcp.example.com" in sent
        assert dragoman.translate_request(body, source="gemini-interactions", target="gemini-interactions").body == body


@promise("law:2-nothing-vanishes")
def test_options_of_a_tool_that_both_google_apis_have_are_reported_elsewhere() -> None:
    tool = {"type": "google_search", "search_types": ["image_search"]}
    encoded = dragoman.translate_request(
        interact(tool), source="gemini-interactions", target="anthropic-messages", model="claude-sonnet-4-5"
    )
    assert "search_types of tool 'google_search'" in [loss.what for loss in encoded.losses]


def test_computer_use_of_interactions_is_functions_elsewhere() -> None:
    tool = SAME_TOOLS["computer use"][1]
    encoded = dragoman.translate_request(interact(tool), source="gemini-interactions", target="openai-chat")
    names = [each_tool["function"]["name"] for each_tool in encoded.body["tools"]]
    assert "click_at" in names
    assert "search" not in names


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────

GEMINI_3 = "gemini-3-flash-preview"
VOICE: Json = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}}
OTHER_VOICE: Json = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Puck"}}}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
SPEAKERS: Json = {"speakerVoiceConfigs": [{"speaker": "A", **VOICE}, {"speaker": "B", **OTHER_VOICE}]}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

# (in generationConfig, in generation_config)
SAME_CONFIGS: list[tuple[Json, Json]] = [
    ({"temperature": 0.5}, {"temperature": 0.5}),
    ({"topP": 0.5}, {"top_p": 0.5}),
    ({"seed": 5}, {"seed": 5}),
    ({"maxOutputTokens": 50}, {"max_output_tokens": 50}),
    ({"stopSequences": ["x"]}, {"stop_sequences": ["x"]}),
    (
        {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}},
        {"thinking_level": "low", "thinking_summaries": "auto"},
    ),
    (
        {"imageConfig": {"aspectRatio": "1:1", "imageSize": "2K"}},
        {"image_config": {"aspect_ratio": "1:1", "image_size": "2K"}},
    ),
    ({"speechConfig": VOICE}, {"speech_config": [{"voice": "Kore"}]}),
    ({"speechConfig": {**VOICE, "languageCode": "de-DE"}}, {"speech_config": [{"voice": "Kore", "language": "de-DE"}]}),
    ({"speechConfig": {"languageCode": "de-DE"}}, {"speech_config": [{"language": "de-DE"}]}),
    (
        {"speechConfig": {"multiSpeakerVoiceConfig": SPEAKERS}},
        {"speech_config": [{"speaker": "A", "voice": "Kore"}, {"speaker": "B", "voice": "Puck"}]},
    ),
    (
        {"speechConfig": {"multiSpeakerVoiceConfig": SPEAKERS, "languageCode": "de"}},
        {
            "speech_config": [
                {"speaker": "A", "voice": "Kore", "language": "de"},
                {"speaker": "B", "voice": "Puck", "language": "de"},
            ]
        },
    ),
    (
        {"audioTranscriptionConfig": {"languageCodes": ["de"], "customVocabulary": ["v"], "adaptationPhrases": ["p"]}},
        {"transcription_config": {"language_codes": ["de"], "custom_vocabulary": ["v"], "adaptation_phrases": ["p"]}},
    ),
    (
        {"audioTranscriptionConfig": {"wordTimestamp": True, "diarization": True, "mode": "VERBATIM"}},
        {
            "transcription_config": {
                "timestamp_granularities": ["word"],
                "diarization_mode": "speaker",
                "mode": "verbatim",
            }
        },
    ),
    (
        {"audioTranscriptionConfig": {"mode": "SMART", "sourceText": "t"}},
        {"transcription_config": {"mode": {"type": "smart", "source_text": "t"}}},
    ),
    (
        {"audioTranscriptionConfig": {"languageHints": {"languageCodes": ["de"]}}},
        {"transcription_config": {"language_hints": ["de"]}},
    ),
]
# (a request of generateContent, a request of Interactions), both without content
SAME_SETTINGS: list[tuple[Json, Json]] = [
    *(({"generationConfig": ours}, {"generation_config": theirs}) for ours, theirs in SAME_CONFIGS),
    (
        {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
        {"response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA}},
    ),
    ({"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, {"response_modalities": ["text", "image"]}),
    (
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]},
        {"safety_settings": [{"type": "harassment", "threshold": "off"}]},
    ),
    ({"cachedContent": "cachedContents/c"}, {"cached_content": "cachedContents/c"}),
    ({"labels": {"a": "b"}}, {"labels": {"a": "b"}}),
    ({"serviceTier": "flex"}, {"service_tier": "flex"}),
    ({"store": True}, {"store": True}),
    ({"systemInstruction": {"parts": [{"text": "s"}]}}, {"system_instruction": "s"}),
    (
        {
            "tools": [{"googleMaps": {}}],
            "toolConfig": {"retrievalConfig": {"latLng": {"latitude": 1.5, "longitude": -2}}},
        },
        {"tools": [{"type": "google_maps", "latitude": 1.5, "longitude": -2}]},
    ),
    (
        {
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        },
        {
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
            "generation_config": {"tool_choice": "any"},
        },
    ),
]
# What one of the two APIs has alone, or with values of its own.
ONLY_GENERATE = {
    *("topK", "candidateCount", "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs"),
    *("audioTimestamp", "enableAffectiveDialog", "enableEnhancedCivicAnswers", "routingConfig", "translationConfig"),
    *("modelConfig", "modelSelectionConfig"),
    # On each image and video there; in another form there.
    *("mediaResolution", "responseSchema", "responseFormat"),
}
ONLY_INTERACTIONS = {
    *("video_config", "agent", "agent_config", "background", "continuation_token", "environment", "input", "stream"),
    *("model", "previous_interaction_id", "response_mime_type", "webhook_config", "generation_config"),
}


def asks_generate(more: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "q"}]}], **more}


def asks_interactions(more: Json) -> Json:
    content = [{"type": "user_input", "content": [{"type": "text", "text": "q"}]}]
    return {"model": GEMINI_3, "input": content, "store": False, **more}


@promise("law:2-nothing-vanishes", "law:3-legality")
@each(("ours", "theirs"), [pytest.param(*pair, id=json.dumps(pair[1])) for pair in SAME_SETTINGS])
def test_a_setting_of_both_apis_crosses(ours: Json, theirs: Json) -> None:
    bodies = {"gemini": asks_generate(ours), "gemini-interactions": asks_interactions(theirs)}
    for source, target in product(bodies, bodies):
        encoded = dragoman.translate_request(bodies[source], source=source, target=target, model=GEMINI_3)
        expected = bodies[target]
        if source != target and target == "gemini":
            expected = {"store": False} | expected
        assert difference(expected, encoded.body) is None
        assert encoded.losses == ()
        assert refusals(encoded, target, model=GEMINI_3) == ()
    in_snake_case = asks_generate(snake_case(ours))
    encoded = dragoman.translate_request(in_snake_case, source="gemini", target="gemini-interactions", model=GEMINI_3)
    assert difference(bodies["gemini-interactions"], encoded.body) is None
    assert encoded.losses == ()


@promise("law:2-nothing-vanishes")
def test_losses_name_what_both_apis_have_as_the_client_wrote_it() -> None:
    camel = re.compile("[a-z][A-Z]")
    contents = [content for _, content in SAME_READING]
    bodies = [asks_interactions(theirs) for _, theirs in SAME_SETTINGS]
    bodies.append(asks_interactions({"input": [{"type": "user_input", "content": contents}]}))
    for body, target in product(bodies, sorted(set(FORMATS) - {"gemini", "vertex", "gemini-interactions"})):
        encoded = dragoman.translate_request(body, source="gemini-interactions", target=target, model=MODELS[target])
        words = [loss.what for loss in encoded.losses if camel.search(loss.what) and "schema keyword" not in loss.what]
        assert words == []
        assert all(reaches(body, loss.path) or loss.severity == "invented" for loss in encoded.losses)


def snake_case(value: Any) -> Any:
    if isinstance(value, list):
        return [snake_case(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", key): snake_case(inner) for key, inner in value.items()
    }


def test_every_setting_that_the_sdk_knows_crosses_or_is_of_one_api() -> None:
    generate_keys = {field.alias for field in types.GenerationConfig.model_fields.values()}
    crossing = {key for ours, _ in SAME_SETTINGS for key in ours.get("generationConfig", {})}
    assert generate_keys - crossing <= ONLY_GENERATE
    assert not crossing & ONLY_GENERATE
    config_keys = set(interactions.GenerationConfig.model_fields)
    body_keys = set(interactions.CreateModelInteraction.model_fields)
    crossing = {key for _, theirs in SAME_SETTINGS for key in (*theirs, *theirs.get("generation_config", {}))}
    assert (config_keys | body_keys) - crossing <= ONLY_INTERACTIONS


# (a part, the same content, whether the model must be of Gemini 3)
IMAGE: tuple[Json, Json] = (
    {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
    {"type": "image", "data": PIXEL, "mime_type": "image/png"},
)
VIDEO: tuple[Json, Json] = (
    {"fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"}},
    {"type": "video", "uri": "https://youtu.be/x", "mime_type": "video/mp4"},
)
SAME_READING: list[tuple[Json, Json]] = [
    *(
        (
            {**part, "mediaResolution": {"level": f"MEDIA_RESOLUTION_{word.upper()}"}},
            {**content, "resolution": word},
        )
        for part, content in (IMAGE, VIDEO)
        for word in ("low", "medium", "high", "ultra_high")
    ),
    *(
        ({**VIDEO[0], "mediaProcessing": word.upper()}, {**VIDEO[1], "processing": word})
        for word in ("static", "agentic")
    ),
    *(
        ({**VIDEO[0], "videoMetadata": ours}, {**VIDEO[1], "processing": {"type": "static", **theirs}})
        for ours, theirs in (
            (
                {"startOffset": "1s", "endOffset": "2s", "fps": 0.5},
                {"start_offset": "1s", "end_offset": "2s", "fps": 0.5},
            ),
            ({"fps": 2}, {"fps": 2}),
        )
    ),
]


@promise("law:2-nothing-vanishes", "law:3-legality")
@each(("ours", "theirs"), [pytest.param(*pair, id=json.dumps(pair[1])) for pair in SAME_READING])
def test_how_a_medium_is_read_crosses(ours: Json, theirs: Json) -> None:
    bodies: dict[str, Json] = {
        "gemini": {"contents": [{"role": "user", "parts": [ours]}]},
        "gemini-interactions": {
            "model": GEMINI_3, "input": [{"type": "user_input", "content": [theirs]}], "store": False,
        },
    }  # fmt: skip
    for source, target in product(bodies, bodies):
        encoded = dragoman.translate_request(bodies[source], source=source, target=target, model=GEMINI_3)
        expected = bodies[target] if source == target or target != "gemini" else {"store": False} | bodies[target]
        assert difference(expected, encoded.body) is None
        assert encoded.losses == ()
        assert refusals(encoded, target, model=GEMINI_3) == ()


def losses_of(encoded: dragoman.Encoded) -> list[tuple[str, str]]:
    return [(loss.severity, loss.path) for loss in encoded.losses]


@promise("law:2-nothing-vanishes")
def test_the_resolution_of_all_media_is_set_on_each_that_has_none_of_its_own() -> None:
    own = {**IMAGE[0], "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}}
    body = {
        "contents": [{"role": "user", "parts": [own, IMAGE[0], VIDEO[0]]}],
        "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"},
    }
    encoded = dragoman.translate_request(body, source="gemini", target="gemini-interactions")
    assert [content["resolution"] for content in encoded.body["input"][0]["content"]] == ["high", "low", "low"]
    assert losses_of(encoded) == [("degraded", "$.generationConfig.mediaResolution")]
    body["contents"] = [{"role": "user", "parts": [{"text": "q"}]}]
    encoded = dragoman.translate_request(body, source="gemini", target="gemini-interactions")
    assert losses_of(encoded) == [("dropped", "$.generationConfig.mediaResolution")]


@promise("law:2-nothing-vanishes")
def test_a_model_that_reads_all_media_alike_is_sent_no_resolution_of_one() -> None:
    for content in (IMAGE[1], VIDEO[1]):
        for word in ("medium", "low"):
            body = {"model": "m", "input": [{**content, "resolution": word}]}
            encoded = dragoman.translate_request(
                body, source="gemini-interactions", target="gemini", model="gemini-2.5-flash"
            )
            assert "mediaResolution" not in encoded.json().decode()
            assert losses_of(encoded) == [("dropped", "$.input[0].resolution")]


# (what is added to a request of generateContent, where something of it is lost)
HALF_SETTINGS: list[tuple[Json, str]] = [
    ({"generationConfig": {"imageConfig": {"imageSize": "1K", "personGeneration": "ALLOW_ALL"}}}, "personGeneration"),
    ({"generationConfig": {"audioTranscriptionConfig": {"mode": "SMART", "languageAuto": {}}}}, "languageAuto"),
    ({"toolConfig": {"retrievalConfig": {"languageCode": "de"}}}, "languageCode"),
    ({"toolConfig": {"retrievalConfig": {"latLng": {"latitude": 1, "longitude": 2}}}}, "latLng"),  # without maps
    ({"generationConfig": {"speechConfig": {"voiceConfig": {"replicatedVoiceConfig": {}}}}}, "speechConfig"),
    ({"continuationToken": "dG9rZW4="}, "continuationToken"),
]


@promise("law:2-nothing-vanishes")
@each(("more", "lost"), HALF_SETTINGS)
def test_what_interactions_lacks_of_a_setting_is_lost_by_name(more: Json, lost: str) -> None:
    for body, key in (
        (asks_generate(more), lost),
        (asks_generate(snake_case(more)), next(iter(snake_case({lost: 0})))),
    ):
        encoded = dragoman.translate_request(body, source="gemini", target="gemini-interactions")
        (loss,) = encoded.losses
        assert (loss.severity, loss.path.rpartition(".")[2]) == ("dropped", key)
        assert reaches(body, loss.path)
        assert "understands" not in loss.why, "both are Google's"


@promise("law:2-nothing-vanishes", "law:1-identity")
def test_formats_of_an_answer_state_what_it_consists_of() -> None:
    text = {"type": "text", "mime_type": "application/json", "schema": SCHEMA}
    image = {"type": "image", "aspect_ratio": "1:1", "image_size": "1K"}
    audio = {"type": "audio", "mime_type": "audio/wav"}
    for formats, modalities, lost in (
        ([text, image], ["TEXT", "IMAGE"], []),
        ([image], ["IMAGE"], []),
        (image, ["IMAGE"], []),
        ([{**image, "delivery": "inline"}], ["IMAGE"], ["image.delivery"]),
        ([image, {**image, "aspect_ratio": "16:9"}], ["IMAGE"], ["image, again (1)"]),
        ([{"type": "text"}, audio], ["TEXT", "AUDIO"], ["audio"]),
        ([text, {"type": "scent"}], None, ["scent"]),
    ):
        body = asks_interactions({"response_format": formats})
        encoded = dragoman.translate_request(body, source="gemini-interactions", target="gemini", model=GEMINI_3)
        assert encoded.body["generationConfig"].get("responseModalities") == modalities
        assert [loss.what for loss in encoded.losses] == lost
        assert {loss.path for loss in encoded.losses} <= {"$.response_format"}
        again = dragoman.translate_request(body, source="gemini-interactions", target="gemini-interactions")
        assert difference(body, again.body) is None
        for target in FORMATS:
            crossed = dragoman.translate_request(
                body, source="gemini-interactions", target=target, model=MODELS[target]
            )
            assert all(reaches(body, loss.path) or loss.severity == "invented" for loss in crossed.losses)
    stated = asks_interactions({"response_format": [text, image], "response_modalities": ["image"]})
    encoded = dragoman.translate_request(stated, source="gemini-interactions", target="gemini", model=GEMINI_3)
    assert encoded.body["generationConfig"]["responseModalities"] == ["IMAGE"]
    again = dragoman.translate_request(stated, source="gemini-interactions", target="gemini-interactions")
    assert difference(stated, again.body) is None


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


@promise("law:10-bad-input-good-words")
@each(("ours", "theirs"), [pytest.param(*pair, id=json.dumps(pair[1])) for pair in (*SAME_SETTINGS, *SAME_READING)])
def test_a_setting_of_a_wrong_type_is_lost_or_refused(ours: Json, theirs: Json) -> None:
    is_part = (ours, theirs) in SAME_READING
    given = {
        "gemini": {"contents": [{"role": "user", "parts": [ours]}]} if is_part else asks_generate(ours),
        "gemini-interactions": {"model": GEMINI_3, "input": [theirs]} if is_part else asks_interactions(theirs),
    }
    others = {"gemini": "gemini-interactions", "gemini-interactions": "gemini"}
    for source, body in given.items():
        for path, wrong in product(places(body), (None, 5, "x", [5], {"type": []})):
            try:
                encoded = dragoman.translate_request(
                    replaced(body, path, wrong) if path else body, source=source, target=others[source], model=GEMINI_3
                )
            except (DecodeError, EncodeError):
                continue
            assert all(loss.path.startswith("$") for loss in encoded.losses)


# ── steps that Google ran ─────────────────────────────────────────────────────────────────────────────────────


def answer(*parts: Json, finish: str = "STOP", **more: Any) -> Json:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}


def interaction(*steps: Json, status: str = "completed", **more: Any) -> Json:
    return {"id": "v1", "object": "interaction", "status": status, "model": "m", "steps": list(steps), **more}


FAILED_RUN = {
    "gemini": answer(
        {"executableCode": {"language": "PYTHON", "code": "1/0", "id": "c1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError", "id": "c1"}},
        {"text": "a"},
    ),
    "gemini-interactions": interaction(
        {"type": "code_execution_call", "id": "c1", "arguments": {"code": "1/0", "language": "python"}},
        {"type": "code_execution_result", "call_id": "c1", "result": "ZeroDivisionError", "is_error": True},
        {"type": "model_output", "content": [{"type": "text", "text": "a"}]},
    ),
}


@promise("law:2-nothing-vanishes")
@each("source", FAILED_RUN)
def test_clients_see_the_output_of_code_that_failed(source: str) -> None:
    shown = dragoman.translate_response(FAILED_RUN[source], source=source, target="anthropic-messages")
    run = shown.body["content"][1]["content"]
    assert (run["type"], run["stderr"], run["return_code"]) == ("code_execution_result", "ZeroDivisionError", 1)
    assert complaints(shown, "anthropic-messages") == ()
    shown = dragoman.translate_response(FAILED_RUN[source], source=source, target="openai-responses")
    item = shown.body["output"][0]
    assert (item["status"], item["outputs"]) == ("failed", [{"type": "logs", "logs": "ZeroDivisionError"}])
    assert complaints(shown, "openai-responses") == ()


@promise("law:2-nothing-vanishes")
def test_clients_see_which_page_was_fetched() -> None:
    page = "https://example.com/a"
    body = interaction(
        {"type": "url_context_call", "id": "u1", "arguments": {"urls": [page]}},
        {"type": "url_context_result", "call_id": "u1", "result": [{"url": page, "status": "success"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "a"}]},
    )
    shown = dragoman.translate_response(body, source="gemini-interactions", target="anthropic-messages").body
    assert shown["content"][0]["input"] == {"url": page}
    shown = dragoman.translate_response(body, source="gemini-interactions", target="openai-responses").body
    assert shown["output"][0]["action"] == {"type": "open_page", "url": page}
    fetched = ir.Completion(
        (
            ir.Message(
                "assistant",
                (
                    ir.ServerToolCall("s1", "web_fetch", "anthropic", kind="web_fetch", input={"url": page}),
                    ir.ServerToolResult("s1", "web_fetch", "anthropic", kind="web_fetch", sources=(ir.Citation(page),)),
                    ir.Text("a"),
                ),
            ),
        ),
        ir.Finish("stop"),
    )
    encoded = dragoman.encode_response(fetched, "gemini-interactions")
    call, result, _ = encoded.body["steps"]
    assert (call["type"], call["arguments"]) == ("url_context_call", {"urls": [page]})
    assert (result["type"], result["result"]) == ("url_context_result", [{"url": page, "status": "success"}])
    assert complaints(encoded, "gemini-interactions") == ()


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────

BROKEN = {"type": "model_output", "error": {"code": 13, "message": "It broke"}}
WITHOUT_CONTENT = {
    "only an error in a step": (
        "gemini-interactions",
        interaction(BROKEN, status="failed"),
        "$.steps[0].error.message",
    ),
    "an error, and one in a step": (
        "gemini-interactions",
        interaction(BROKEN, status="failed", errors=[{"code": "internal", "message": "It broke"}]),
        "$.errors[0].message",
    ),
    "an empty text": (
        "gemini",
        answer({"text": ""}, finish="MALFORMED_FUNCTION_CALL", finishMessage="It broke"),
        "$.candidates[0].finishMessage",
    ),
}


@promise("law:5-streams-tell-the-same-story")
@each(("source", "body", "path"), [pytest.param(*row, id=name) for name, row in WITHOUT_CONTENT.items()])
def test_a_failure_without_content_is_no_answer(source: str, body: Json, path: str) -> None:
    for target in ("openai-chat", "anthropic-messages", "ollama-chat"):
        assert "It broke" in json.dumps(dragoman.translate_response(body, source=source, target=target).body["error"])
    for target in ("openai-responses", "gemini", "gemini-interactions"):
        if target != source:
            assert "It broke" in dragoman.translate_response(body, source=source, target=target).json().decode()
    losses = dragoman.translate_response(body, source=source, target="cohere-chat").losses
    assert path in [loss.path for loss in losses]
    assert dragoman.translate_response(body, source=source, target=source).body == body


@promise("law:5-streams-tell-the-same-story")
def test_a_streamed_failure_says_why() -> None:
    events: list[Json] = [
        {"event_type": "interaction.created", "interaction": {"id": "v1", "status": "in_progress", "model": "m"}},
        {"event_type": "step.start", "index": 0, "step": BROKEN},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {"id": "v1", "status": "failed", "model": "m"}},
    ]
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    translator = dragoman.StreamTranslator(source="gemini-interactions", target="openai-chat")
    assert b"It broke" in translator.feed(data) + translator.close()
    assert not [loss for loss in translator.losses if loss.what == "Opaque"]


# ── token counts ──────────────────────────────────────────────────────────────────────────────────────────────

COUNTED: Json = {
    "promptTokenCount": 100,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 30,
    "toolUsePromptTokenCount": 40,
    "cachedContentTokenCount": 64,
    "totalTokenCount": 190,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 60}, {"modality": "AUDIO", "tokenCount": 40}],
    "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 15}, {"modality": "IMAGE", "tokenCount": 5}],
    "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 64}],
    "toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 40}],
}
COUNTED_IN_STEPS: Json = {
    "total_input_tokens": 100,
    "total_output_tokens": 20,
    "total_thought_tokens": 30,
    "total_tool_use_tokens": 40,
    "total_cached_tokens": 64,
    "total_tokens": 190,
    "input_tokens_by_modality": [{"modality": "text", "tokens": 60}, {"modality": "audio", "tokens": 40}],
    "output_tokens_by_modality": [{"modality": "text", "tokens": 15}, {"modality": "image", "tokens": 5}],
    "cached_tokens_by_modality": [{"modality": "text", "tokens": 64}],
    "tool_use_tokens_by_modality": [{"modality": "text", "tokens": 40}],
}
ANSWERS = {
    "gemini": answer({"text": "a"}) | {"usageMetadata": COUNTED},
    "vertex": answer({"text": "a"}) | {"usageMetadata": COUNTED},
    "gemini-interactions": interaction(
        {"type": "model_output", "content": [{"type": "text", "text": "a"}]}, usage=COUNTED_IN_STEPS
    ),
}
USAGE = {"gemini": ("usageMetadata", COUNTED), "vertex": ("usageMetadata", COUNTED)} | {
    "gemini-interactions": ("usage", COUNTED_IN_STEPS)
}
GOOGLE_PAIRS = [("gemini", "gemini-interactions"), ("vertex", "gemini-interactions"), ("gemini-interactions", "gemini")]


@promise("law:9-usage-adds-up", "law:2-nothing-vanishes")
@each(("source", "target"), GOOGLE_PAIRS)
def test_every_count_crosses_between_the_apis_of_google(source: str, target: str) -> None:
    encoded = dragoman.translate_response(ANSWERS[source], source=source, target=target)
    key, expected = USAGE[target]
    assert encoded.body[key] == expected
    assert [loss for loss in encoded.losses if "sage" in loss.path] == []
    assert complaints(encoded, target) == ()


@promise("law:9-usage-adds-up")
@each("source", ["gemini", "vertex"])
def test_every_count_crosses_in_a_stream(source: str) -> None:
    data = b"data: " + json.dumps(ANSWERS[source]).encode() + b"\n\n"
    translator = dragoman.StreamTranslator(source=source, target="gemini-interactions")
    events = [
        json.loads(line[5:])
        for line in (translator.feed(data) + translator.close()).splitlines()
        if line.startswith(b"data: {")
    ]
    assert events[-1]["interaction"]["usage"] == COUNTED_IN_STEPS
    assert [loss for loss in translator.losses if "sage" in loss.path] == []


@promise("law:9-usage-adds-up")
@each(("source", "target"), GOOGLE_PAIRS)
def test_a_usage_that_was_changed_is_not_sent_as_it_was(source: str, target: str) -> None:
    completion = dragoman.decode_response(ANSWERS[source], source)
    assert completion.usage is not None
    changed = ir.Usage(7, 3, metadata=completion.usage.metadata)
    again = dragoman.encode_response(ir.Completion(completion.messages, completion.finish, changed), target)
    usage = dragoman.decode_response(again.json(), target).usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cached or 0, usage.reasoning or 0) == (7, 3, 0, 0)


@promise("law:9-usage-adds-up", "law:2-nothing-vanishes")
@each("target", ["gemini", "vertex", "gemini-interactions"])
def test_sound_and_images_are_counted_apart(target: str) -> None:
    usage = ir.Usage(100, 50, reasoning=10, image=20, details={"audio_input": 30, "audio_output": 5})
    completion = ir.Completion((ir.Message("assistant", "a"),), ir.Finish("stop"), usage, "r", "m")
    encoded = dragoman.encode_response(completion, target)
    assert [loss for loss in encoded.losses if "usage" in loss.path] == []
    read = dragoman.decode_response(encoded.json(), target).usage
    assert read is not None
    assert (read.input, read.output, read.image, read.details) == (100, 50, 20, usage.details)
    assert complaints(encoded, target) == ()


# ── signatures and media ──────────────────────────────────────────────────────────────────────────────────────


def asked_and_called(*before: Json) -> Json:
    call = {"type": "function_call", "id": "c1", "name": "f", "arguments": {}}
    result = {"type": "function_result", "call_id": "c1", "name": "f", "result": "r"}
    steps = [{"type": "user_input", "content": [{"type": "text", "text": "q"}]}, *before, call, result]
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    return {"model": "gemini-3-flash-preview", "input": steps, "tools": tools}


THOUGHT: Json = {"type": "thought", "signature": "Q2dj"}
SAID_BEFORE: Json = {"type": "model_output", "content": [{"type": "text", "text": "a"}]}
SEARCHED: list[Json] = [
    {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "QQ=="},
    {"type": "google_search_result", "call_id": "s1", "result": [], "signature": "Qg=="},
]


@promise("law:6-owed-back", "law:3-legality")
@each(
    ("target", "steps"),
    [
        pytest.param(target, steps, id=f"{target}: {name}")
        for target in ("gemini", "vertex")
        for name, steps in {
            "thought, call": [THOUGHT],
            "thought, text, call": [THOUGHT, SAID_BEFORE],
            "thought, search, call": [THOUGHT, *SEARCHED],
            "thought, search, text, call": [THOUGHT, *SEARCHED, SAID_BEFORE],
            "thought, text, search, call": [THOUGHT, SAID_BEFORE, *SEARCHED],
        }.items()
    ],
)
def test_the_signature_of_a_turn_is_on_its_first_call_where_gemini_checks_it(target: str, steps: list[Json]) -> None:
    body = asked_and_called(*steps)
    encoded = dragoman.translate_request(body, source="gemini-interactions", target=target, model=body["model"])
    parts = encoded.body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts if "functionCall" in part] == ["Q2dj"]
    assert [part for part in parts if part.get("text") == "" or ("text" in part and "thoughtSignature" in part)] == []
    assert not [loss for loss in encoded.losses if loss.severity == "invented"]
    assert refusals(encoded, target, model=body["model"]) == ()


@promise("law:6-owed-back")
def test_two_signatures_stay_where_they_are() -> None:
    body = asked_and_called(THOUGHT, SAID_BEFORE, {"type": "thought", "signature": "Qw=="})
    encoded = dragoman.translate_request(body, source="gemini-interactions", target="gemini", model=body["model"])
    parts = encoded.body["contents"][1]["parts"]
    assert [part["thoughtSignature"] for part in parts] == ["Q2dj", "Qw=="]


YOUTUBE = ("https://www.youtube.com/watch?v=9hE5-98ZeCg", "https://youtu.be/9hE5-98ZeCg")


@promise("law:3-legality")
@each("address", [*YOUTUBE, "https://example.com/a.mp4"])
def test_a_film_by_its_address_alone(address: str) -> None:
    body = {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": address}}, {"text": "q"}]}]}
    film = {"type": "video", "uri": address}
    encoded = dragoman.translate_request(body, source="gemini", target="gemini-interactions", model="gemini-3-flash")
    assert encoded.body["input"][0]["content"][0] == film
    assert encoded.losses == ()
    back = dragoman.translate_request(encoded.body, source="gemini-interactions", target="gemini")
    assert back.body["contents"][0]["parts"][0]["fileData"] == {"fileUri": address, "mimeType": "video/mp4"}
    assert back.losses == ()
    for kind in ("video", "document"):
        other = {"model": "m", "input": [{"type": "user_input", "content": [{"type": kind, "uri": address}]}]}
        again = dragoman.translate_request(other, source="gemini-interactions", target="gemini-interactions")
        assert again.body == other
    for target in ("anthropic-messages", "openai-responses"):
        refused = dragoman.translate_request(body, source="gemini", target=target, model=MODELS[target])
        assert address not in refused.json().decode()
        assert ("dropped", "$.contents[0].parts[0]") in [(loss.severity, loss.path) for loss in refused.losses]


PNG = {"mimeType": "image/png", "data": "iVBORw0KGgo="}
IN_CHAT = {"url": "data:image/png;base64,iVBORw0KGgo="}
IN_STEPS = {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}


def with_resolution(word: str) -> dict[str, Json]:
    part = {"inlineData": PNG, "mediaResolution": {"level": f"MEDIA_RESOLUTION_{word.upper()}"}}
    return {
        "gemini": {"contents": [{"role": "user", "parts": [part]}]},
        "vertex": {"contents": [{"role": "user", "parts": [part]}]},
        "gemini-interactions": {
            "model": "m",
            "input": [{"type": "user_input", "content": [{**IN_STEPS, "resolution": word}]}],
        },
        "openai-chat": {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {**IN_CHAT, "detail": word}}]}
            ],
        },
    }


SHAPES = ("gemini", "vertex", "gemini-interactions", "openai-chat")
CONTENT_OF = {"gemini": "contents", "vertex": "contents", "gemini-interactions": "input", "openai-chat": "messages"}


@promise("law:2-nothing-vanishes", "law:1-identity")
@each(("source", "target", "word"), [(a, b, word) for a in SHAPES for b in SHAPES for word in ("low", "high")])
def test_the_resolution_of_an_image_crosses(source: str, target: str, word: str) -> None:
    bodies = with_resolution(word)
    encoded = dragoman.translate_request(bodies[source], source=source, target=target, model="gemini-3-flash")
    assert encoded.body[CONTENT_OF[target]] == bodies[target][CONTENT_OF[target]]
    assert encoded.losses == ()


@promise("law:2-nothing-vanishes")
@each("target", ["gemini", "vertex"])
def test_the_resolution_of_an_image_is_reported_where_a_model_has_none(target: str) -> None:
    body = with_resolution("high")["openai-chat"]
    encoded = dragoman.translate_request(body, source="openai-chat", target=target, model="gemini-2.5-flash")
    assert encoded.body["contents"][0]["parts"] == [{"inlineData": PNG}]
    assert [loss.path for loss in encoded.losses] == ["$.messages[0].content[0].image_url.detail"]
    spelled = {"contents": [{"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "QQ=="}}]}]}
    spelled["contents"][0]["parts"][0]["media_resolution"] = {"level": "MEDIA_RESOLUTION_LOW"}  # type: ignore[index]
    encoded = dragoman.translate_request(spelled, source=target, target="anthropic-messages", model="claude-sonnet-4-5")
    assert "$.contents[0].parts[0].media_resolution" in [loss.path for loss in encoded.losses]
    assert dragoman.translate_request(spelled, source=target, target=target).body == spelled


def test_a_resolution_that_a_program_changes_is_the_one_that_is_sent() -> None:
    request = dragoman.decode_request(with_resolution("high")["gemini"], "gemini")
    (image,) = request.messages[0].parts
    assert isinstance(image, ir.Image)
    for detail, expected in (("low", {"level": "MEDIA_RESOLUTION_LOW"}), (None, None)):
        parts = (ir.Image(image.media_type, image.data, metadata=image.metadata, detail=detail),)
        changed = ir.Request("gemini-3-flash", (ir.Message("user", parts),), origin="google")
        part = dragoman.encode_request(changed, "gemini").body["contents"][0]["parts"][0]
        assert part.get("mediaResolution") == expected


@promise("law:3-legality", "law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if name not in {"gemini", "vertex", "gemini-interactions"}])
def test_two_searches_of_google_are_one_elsewhere(target: str) -> None:
    body = generate({"googleSearch": {}}, {"enterpriseWebSearch": {}}, {"urlContext": {}})
    model = "gpt-4o-search-preview" if target == "openai-chat" else MODELS[target]
    encoded = dragoman.translate_request(body, source="vertex", target=target, model=model)
    assert refusals(encoded, target, model=model) == ()
    assert "$.tools[1]" in [loss.path for loss in encoded.losses]


DRAWN: list[Json] = [
    {"text": "here", "thoughtSignature": "Q2dj"},
    {"inlineData": PNG, "thoughtSignature": "QQ=="},
    {"inlineData": PNG},
    {"inlineData": PNG, "thoughtSignature": "Qg=="},
]


@promise("law:6-owed-back", "law:5-streams-tell-the-same-story")
@each("source", ["gemini", "vertex"])
def test_the_signatures_of_images_come_back_through_a_client_of_interactions(source: str) -> None:
    drawn = answer(*DRAWN)
    whole = dragoman.translate_response(drawn, source=source, target="gemini-interactions")
    assert whole.losses == ()
    assert complaints(whole, "gemini-interactions") == ()
    translator = dragoman.StreamTranslator(source=source, target="gemini-interactions")
    data = translator.feed(b"data: " + json.dumps(drawn).encode() + b"\n\n") + translator.close()
    decoder = dragoman.StreamDecoder("gemini-interactions")
    streamed = dragoman.accumulate([*decoder.feed(data), *decoder.close()])
    asked = {"type": "user_input", "content": [{"type": "text", "text": "q"}]}
    echoed = dragoman.encode_response(streamed, "gemini-interactions").body["steps"]
    for steps in (whole.body["steps"], echoed):
        body = {"model": "gemini-3-pro-image", "input": [asked, *steps, asked]}
        encoded = dragoman.translate_request(body, source="gemini-interactions", target=source)
        assert encoded.body["contents"][1]["parts"] == DRAWN
        assert refusals(encoded, source, model="gemini-3-pro-image") == ()


# ── finish messages, tiers ────────────────────────────────────────────────────────────────────────────────────

CALLED: Json = {"functionCall": {"name": "f", "args": {}}}


def ended(reason: str, part: Json) -> Json:
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"content": content, "finishReason": reason, "finishMessage": "because", "index": 0}],
        "modelVersion": "m",
    }


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if name not in ("gemini", "vertex")])
def test_a_finish_message_arrives_or_is_reported_once(target: str) -> None:
    path = "$.candidates[0].finishMessage"
    for reason in ("STOP", "SAFETY", "OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"):
        for part in ({"text": "a"}, CALLED, {"text": "because"}):
            body = ended(reason, part)
            encoded = dragoman.translate_response(body, source="gemini", target=target)
            written = encoded.json().decode().count("because") - (part == {"text": "because"})
            is_refusal = (reason, part) == ("SAFETY", {"text": "because"})
            expected = [] if written > 0 or is_refusal else [path]
            assert [loss.path for loss in encoded.losses if loss.path.endswith("essage")] == expected, (reason, part)
            assert dragoman.translate_response(body, source="gemini", target="gemini").body == body


@promise("law:9-usage-adds-up", "law:2-nothing-vanishes")
@each("target", ["gemini", "vertex"])
def test_the_tier_of_an_answer_is_written(target: str) -> None:
    usage = ir.Usage(1, 2, total=3, service_tier="flex")
    completion = ir.Completion((ir.Message("assistant", "a"),), ir.Finish("stop"), usage, "1", "m")
    encoded = dragoman.encode_response(completion, target)
    assert encoded.body["usageMetadata"]["serviceTier"] == "flex"
    assert encoded.losses == ()
    body = {**ended("STOP", {"text": "a"}), "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}
    body["usageMetadata"] |= {"totalTokenCount": 3, "serviceTier": "flex", "trafficType": "ON_DEMAND"}
    answer = dragoman.decode_response(body, target)
    assert answer.usage is not None
    changed = structs.replace(answer, usage=structs.replace(answer.usage, output=5, total=6))
    assert dragoman.encode_response(changed, target).body["usageMetadata"] == body["usageMetadata"] | {
        "candidatesTokenCount": 5,
        "totalTokenCount": 6,
    }


@promise("law:9-usage-adds-up")
def test_the_tier_of_an_interaction_is_written() -> None:
    completion = dragoman.decode_response(
        {"id": "1", "status": "completed", "steps": [], "service_tier": "flex", "usage": {"total_input_tokens": 1}},
        "gemini-interactions",
    )
    assert dragoman.encode_response(completion, "gemini").body["usageMetadata"]["serviceTier"] == "flex"


@promise("law:6-owed-back")
@pytest.mark.parametrize("target", ["gemini", "vertex", "gemini-interactions"])
@pytest.mark.parametrize(
    ("call_id", "beside", "inside"),
    [
        ("call_1", {"provider_specific_fields": {"thought_signature": "c2ln"}}, {}),
        ("call_1", {}, {"provider_specific_fields": {"thought_signature": "c2ln"}}),
        ("call_1__thought__c2ln", {}, {}),
    ],
    ids=["call", "function", "id"],
)
def test_signatures_in_histories_of_litellm_return_to_google(
    call_id: str, beside: dict[str, Any], inside: dict[str, Any], target: str
) -> None:
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}", **inside}, **beside}
    body = {
        "model": "any",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": "done"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    }
    encoded = dragoman.translate_request(body, source="openai-chat", target=target, model="gemini-3.6-flash")
    assert '"c2ln"' in encoded.json().decode()
    assert encoded.losses == ()
    assert dragoman.translate_request(body, source="openai-chat", target="openai-chat").body == body
    away = dragoman.translate_request(body, source="openai-chat", target="anthropic-messages")
    place = next((key for key in [*beside, *(f"function.{key}" for key in inside)]), "id")
    lost = {loss.path for loss in away.losses if loss.severity == "dropped"}
    assert lost == {f"$.messages[1].tool_calls[0].{place}"}
