"""From one of Google's services to the other: each refuses a whole request for one key that only the other knows."""

import inspect
import re
from itertools import product
from typing import Any

import pytest
from google.genai import models
from msgspec import structs

import dragoman
from dragoman.codecs.gemini.profile import PROFILE, VERTEX_PROFILE
from dragoman.codecs.google_services import UNKNOWN_TO_DEVELOPER_API, UNKNOWN_TO_VERTEX
from tests.support.cases import each
from tests.support.formats import FORMATS, refusals
from tests.support.promises import promise

pytestmark = promise("law:2-nothing-vanishes", "law:3-legality")

MODEL = "gemini-3-flash-preview"
SIGNATURE = "Q2dj"
PNG = {"mimeType": "image/png", "data": "iVBORw0KGgo="}
ASKED = {"role": "user", "parts": [{"text": "q"}]}
CALL = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SIGNATURE}
FUNCTION = {"functionDeclarations": [{"name": "f"}]}


def turn(**more: Any) -> dict[str, Any]:
    result = {"name": "f", "response": {"output": "1"}} | more
    model = {"role": "model", "parts": [CALL]}
    return {"contents": [ASKED, model, {"role": "user", "parts": [{"functionResponse": result}]}]}


def asked(**more: Any) -> dict[str, Any]:
    return {"contents": [ASKED], **more}


SERVER_TURN = {
    "role": "model",
    "parts": [
        {"toolCall": {"id": "s1", "toolType": "URL_CONTEXT"}, "thoughtSignature": SIGNATURE},
        {"toolResponse": {"id": "s1", "toolType": "URL_CONTEXT"}, "thoughtSignature": SIGNATURE},
        {"text": "a"},
    ],
}

# (object, key) -> (a request with it, its path)
OF_THE_DEVELOPER_API: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("Request", "store"): (asked(store=True), "$.store"),
    ("Request", "serviceTier"): (asked(serviceTier="flex"), "$.serviceTier"),
    ("GenerationConfig", "enableEnhancedCivicAnswers"): (
        asked(generationConfig={"enableEnhancedCivicAnswers": True}),
        "$.generationConfig.enableEnhancedCivicAnswers",
    ),
    ("ToolConfig", "includeServerSideToolInvocations"): (
        asked(toolConfig={"includeServerSideToolInvocations": True}),
        "$.toolConfig.includeServerSideToolInvocations",
    ),
    ("Tool", "fileSearch"): (asked(tools=[{"fileSearch": {"fileSearchStoreNames": ["a"]}}]), "$.tools[0]"),
    ("Tool", "mcpServers"): (asked(tools=[{"mcpServers": [{"name": "m"}]}]), "$.tools[0]"),
    ("GoogleSearch", "timeRangeFilter"): (
        asked(tools=[{"googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}}}]),
        "$.tools[0].googleSearch.timeRangeFilter",
    ),
    ("Part", "toolCall"): ({"contents": [ASKED, SERVER_TURN, ASKED]}, "$.contents[1].parts[0]"),
    ("Part", "toolResponse"): ({"contents": [ASKED, SERVER_TURN, ASKED]}, "$.contents[1].parts[1]"),
    ("Part", "partMetadata"): (
        {"contents": [{"role": "user", "parts": [{"text": "q", "partMetadata": {"a": 1}}]}]},
        "$.contents[0].parts[0].partMetadata",
    ),
    ("FunctionResponse", "willContinue"): (
        turn(willContinue=True),
        "$.contents[2].parts[0].functionResponse.willContinue",
    ),
    ("FunctionResponsePart", "mediaProcessing"): (
        turn(parts=[{"inlineData": PNG, "mediaProcessing": "STATIC"}]),
        "$.contents[2].parts[0].functionResponse.parts[0].mediaProcessing",
    ),
}
OF_VERTEX: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    **{("Request", key): (asked(**{key: {"a": "b"}}), f"$.{key}") for key in UNKNOWN_TO_DEVELOPER_API["Request"]},
    **{
        ("GenerationConfig", key): (asked(generationConfig={key: {"a": "b"}}), f"$.generationConfig.{key}")
        for key in UNKNOWN_TO_DEVELOPER_API["GenerationConfig"]
    },
    **{
        ("ImageConfig", key): (
            asked(generationConfig={"imageConfig": {key: "A", "aspectRatio": "1:1"}}),
            f"$.generationConfig.imageConfig.{key}",
        )
        for key in UNKNOWN_TO_DEVELOPER_API["ImageConfig"]
    },
    ("SafetySetting", "method"): (
        asked(safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF", "method": "SEVERITY"}]),
        "$.safetySettings[0].method",
    ),
    ("FunctionCallingConfig", "streamFunctionCallArguments"): (
        asked(
            tools=[FUNCTION], toolConfig={"functionCallingConfig": {"mode": "ANY", "streamFunctionCallArguments": True}}
        ),
        "$.toolConfig.functionCallingConfig.streamFunctionCallArguments",
    ),
    **{("Tool", key): (asked(tools=[{key: {}}]), "$.tools[0]") for key in UNKNOWN_TO_DEVELOPER_API["Tool"]},
    ("GoogleSearch", "blockingConfidence"): (
        asked(tools=[{"googleSearch": {"blockingConfidence": "BLOCK_LOW_AND_ABOVE"}}]),
        "$.tools[0].googleSearch.blockingConfidence",
    ),
    ("GoogleMaps", "groundingTypes"): (
        asked(tools=[{"googleMaps": {"groundingTypes": {"places": {}}}}]),
        "$.tools[0].googleMaps.groundingTypes",
    ),
    **{
        ("FunctionCall", key): (
            {
                "contents": [
                    ASKED,
                    {"role": "model", "parts": [CALL | {"functionCall": {"name": "f", "args": {}, key: value}}]},
                    turn()["contents"][2],
                ]
            },
            f"$.contents[1].parts[0].functionCall.{key}",
        )
        for key, value in (("partialArgs", [{"jsonPath": "$.a"}]), ("willContinue", True))
    },
}
CASES = [
    pytest.param(source, target, *case, id=f"{source}: {'.'.join(place)}")
    for source, target, rows in (("gemini", "vertex", OF_THE_DEVELOPER_API), ("vertex", "gemini", OF_VERTEX))
    for place, case in rows.items()
]


@each(("source", "target", "body", "path"), CASES)
def test_a_key_of_the_other_service_is_left_out_and_reported(
    source: str, target: str, body: dict[str, Any], path: str
) -> None:
    encoded = dragoman.translate_request(body, source=source, target=target, model=MODEL)
    assert path in [loss.path for loss in encoded.losses]
    assert refusals(encoded, target, model=MODEL) == ()
    # A body that the other service would have refused returns there as it came, too.
    for service in (source, target):
        back = dragoman.translate_request(body, source=service, target=service, model=MODEL)
        assert (back.body, back.losses) == (body, ())


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def in_snake_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake_case(key): in_snake_case(inner) for key, inner in value.items()}
    return [in_snake_case(inner) for inner in value] if isinstance(value, list) else value


@each(("source", "target", "body", "path"), CASES)
def test_the_same_in_snake_case(source: str, target: str, body: dict[str, Any], path: str) -> None:
    encoded = dragoman.translate_request(in_snake_case(body), source=source, target=target, model=MODEL)
    assert snake_case(path) in [loss.path for loss in encoded.losses]
    assert refusals(encoded, target, model=MODEL) == ()


def test_every_key_has_a_case() -> None:
    for unknown, rows in ((UNKNOWN_TO_VERTEX, OF_THE_DEVELOPER_API), (UNKNOWN_TO_DEVELOPER_API, OF_VERTEX)):
        assert {(kind, key) for kind, keys in unknown.items() for key in keys} == rows.keys()


# The SDK's types -> our names of the objects.
OBJECTS = {
    "GenerateContentConfig": "Request",
    "GenerationConfig": "GenerationConfig",
    "ToolConfig": "ToolConfig",
    "FunctionCallingConfig": "FunctionCallingConfig",
    "SafetySetting": "SafetySetting",
    "ImageConfig": "ImageConfig",
    "GoogleSearch": "GoogleSearch",
    "GoogleMaps": "GoogleMaps",
    "Tool": "Tool",
    "Part": "Part",
    "FunctionCall": "FunctionCall",
    "FunctionResponse": "FunctionResponse",
    "FunctionResponsePart": "FunctionResponsePart",
}
NAMED_OTHERWISE = {
    "generation_output_config": "outputConfig",
    # The SDK puts both into imageOutputOptions.
    "output_mime_type": "imageOutputOptions",
    "output_compression_quality": "imageOutputOptions",
}


def camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


@pytest.mark.parametrize(("suffix", "profile"), [("mldev", PROFILE), ("vertex", VERTEX_PROFILE)])
def test_what_the_sdk_refuses_to_send_to_a_service_is_known(suffix: str, profile: Any) -> None:
    """google-genai raises before it sends such a key."""
    unlisted = set()
    for name, kind in OBJECTS.items():
        convert = getattr(models, f"_{name}_to_{suffix}", None)
        source = "" if convert is None else inspect.getsource(convert)
        for key in re.findall(r"raise ValueError\(\s*'(\w+) parameter is", source):
            wire = NAMED_OTHERWISE.get(key, camel_case(key))
            kinds = (kind, "GenerationConfig") if kind == "Request" else (kind,)
            listed = any(wire in profile.unknown_keys.get(each_kind, ()) for each_kind in kinds)
            # A search that must leave sites out is not sent at all (codecs/gemini/tools.py).
            if not listed and key != "exclude_domains":
                unlisted.add((name, key))
    assert unlisted == set()


def test_vertex_gets_the_role_that_the_developer_api_fills_in() -> None:
    body = {
        "contents": [
            {"parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"text": "a"}]},
            {"parts": [{"text": "r"}]},
        ]
    }
    encoded = dragoman.translate_request(body, source="gemini", target="vertex")
    assert [content["role"] for content in encoded.body["contents"]] == ["user", "model", "user"]
    assert encoded.losses == ()
    assert dragoman.translate_request(body, source="gemini", target="gemini").body == body


def filed(uri: str) -> dict[str, Any]:
    part = {"fileData": {"fileUri": uri, "mimeType": "image/png"}}
    return {"contents": [{"role": "user", "parts": [{"text": "q"}, part]}]}


def answered(uri: str) -> dict[str, Any]:
    return turn(parts=[{"fileData": {"fileUri": uri, "mimeType": "image/png"}}])


@each(
    ("target", "uri"),
    [("gemini", "gs://bucket/a.png"), ("vertex", "https://generativelanguage.googleapis.com/v1beta/files/a")],
)
def test_a_file_that_only_the_other_service_reads_is_not_sent(target: str, uri: str) -> None:
    source = {"gemini": "vertex", "vertex": "gemini"}[target]
    for body, path in (
        (filed(uri), "$.contents[0].parts[1]"),
        (answered(uri), "$.contents[2].parts[0].functionResponse.parts[0]"),
    ):
        encoded = dragoman.translate_request(body, source=source, target=target, model=MODEL)
        assert uri not in encoded.json().decode()
        assert [(loss.severity, loss.path) for loss in encoded.losses] == [("dropped", path)]
        for service in (source, target):
            back = dragoman.translate_request(body, source=service, target=service, model=MODEL)
            assert (back.body, back.losses) == (body, ())


def test_a_stored_request_is_not_known_to_be_written_for_a_service() -> None:
    request = dragoman.decode_request(filed("gs://bucket/a.png"), "vertex")
    stored = structs.replace(request, metadata=None)
    assert "gs://" in dragoman.encode_request(stored, "gemini").json().decode()
    sent = structs.replace(stored, model=MODEL)
    assert "gs://" not in dragoman.encode_request(sent, "gemini").json().decode()


def test_answers_return_as_they_came() -> None:
    file = {"fileData": {"fileUri": "gs://bucket/a.png", "mimeType": "image/png"}}
    content = {"role": "model", "parts": [*SERVER_TURN["parts"], file]}
    body = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": MODEL}
    for service in ("gemini", "vertex"):
        back = dragoman.translate_response(body, source=service, target=service)
        assert (back.body, back.losses) == (body, ())


OF_BOTH: dict[str, Any] = {
    "contents": [
        {
            "role": "user",
            "parts": [
                {
                    "fileData": {"fileUri": "https://www.youtube.com/watch?v=a", "mimeType": "video/mp4"},
                    "videoMetadata": {"startOffset": "1s", "endOffset": "5s", "fps": 2},
                }
            ],
        }
    ],
    "generationConfig": {
        "responseModalities": ["AUDIO"],
        "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}, "languageCode": "de-DE"},
        "imageConfig": {"aspectRatio": "1:1"},
    },
    "tools": [{"googleMaps": {}}],
    "toolConfig": {"retrievalConfig": {"latLng": {"latitude": 1.5, "longitude": 2.5}, "languageCode": "de"}},
}


def test_what_both_services_know_crosses_and_is_reported_elsewhere() -> None:
    paths = {
        "$.contents[0].parts[0].videoMetadata",
        "$.generationConfig.speechConfig",
        "$.generationConfig.imageConfig",
        "$.toolConfig.retrievalConfig",
    }
    for source, target in product(("gemini", "vertex"), FORMATS):
        encoded = dragoman.translate_request(OF_BOTH, source=source, target=target, model=MODEL)
        if target in ("gemini", "vertex"):
            assert (encoded.body, encoded.losses) == (OF_BOTH, ())
        elif target == "gemini-interactions":
            assert [loss.path for loss in encoded.losses] == ["$.toolConfig.retrievalConfig.languageCode"]
        else:
            assert paths <= {loss.path for loss in encoded.losses if loss.severity == "dropped"}


def test_settings_of_interactions_reach_the_developer_api_without_the_method_of_vertex() -> None:
    body = {
        "model": MODEL,
        "input": "q",
        "safety_settings": [{"type": "harassment", "threshold": "off", "method": "severity"}],
    }
    encoded = dragoman.translate_request(body, source="gemini-interactions", target="gemini")
    assert encoded.body["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]
    assert [loss.path for loss in encoded.losses] == ["$.safety_settings[0].method"]
