"""What is lost of an object of which the rest crosses is reported at its own path, and nothing else of it is."""

from typing import Any

import dragoman
from tests.support.bodies import PIXEL, WEATHER
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise

OTHERS = [name for name in FORMATS if FAMILY[name] != "anthropic"]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "before"},
    IMAGE,
    {"type": "text", "text": "behind", "cache_control": {"type": "ephemeral"}},
]
CONTENT = {"type": "document", "source": {"type": "content", "content": BLOCKS}}
CONFIG = {
    "effort": "low",
    "format": {"type": "json_schema", "schema": WEATHER},
    "task_budget": {"type": "tokens", "total": 50_000},
}
REFUSED = {"type": "refusal", "category": "cyber", "explanation": "Not this.", "recommended_model": None}


def request(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": "Hi"}], **fields}


def answer(**fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage, "stop_sequence": None}
    return {**head, "content": [{"type": "text", "text": "No"}], "stop_reason": "end_turn", **fields}


def dropped(losses: tuple[dragoman.Loss, ...], within: str) -> set[str]:
    """Paths of what was dropped of the object at a path."""
    return {loss.path for loss in losses if loss.severity == "dropped" and loss.path.startswith(within)}


@promise("law:1-identity")
def test_these_bodies_come_back() -> None:
    for body in (request(output_config=CONFIG), request(messages=[{"role": "user", "content": [CONTENT]}])):
        encoded = dragoman.translate_request(body, source="anthropic-messages", target="anthropic-messages")
        assert (encoded.body, encoded.losses) == (body, ())
    for details in (REFUSED, {"type": "refusal", "category": None, "explanation": None}, None, {"future": 1}):
        for reason in ("refusal", "end_turn"):
            body = answer(stop_reason=reason, stop_details=details)
            encoded = dragoman.translate_response(body, source="anthropic-messages", target="anthropic-messages")
            assert (encoded.body, encoded.losses) == (body, ())


@promise("law:2-nothing-vanishes")
@each("target", OTHERS)
def test_of_the_output_config_only_the_budget_is_private(target: str) -> None:
    encoded = dragoman.translate_request(request(output_config=CONFIG), source="anthropic-messages", target=target)
    lost = dropped(encoded.losses, "$.output_config")
    assert "$.output_config.task_budget" in lost
    assert "$.output_config" not in lost


@promise("law:2-nothing-vanishes")
@each("target", OTHERS)
def test_of_a_document_in_blocks_all_texts_cross(target: str) -> None:
    body = request(messages=[{"role": "user", "content": [CONTENT, {"type": "text", "text": "Hi"}]}])
    encoded = dragoman.translate_request(body, source="anthropic-messages", target=target)
    source = "$.messages[0].content[0].source"
    assert dropped(encoded.losses, source) == {f"{source}.content[1]", f"{source}.content[2].cache_control"}
    assert "before" in encoded.json().decode()
    assert "behind" in encoded.json().decode()


@promise("law:2-nothing-vanishes")
@each("target", OTHERS)
def test_of_the_details_of_a_refusal_the_explanation_arrives_or_is_reported(target: str) -> None:
    body = answer(stop_reason="refusal", stop_details=REFUSED)
    encoded = dragoman.translate_response(body, source="anthropic-messages", target=target)
    lost = dropped(encoded.losses, "$.stop_details")
    assert lost in ({"$.stop_details.category"}, {"$.stop_details.category", "$.stop_details.explanation"})
    assert ("Not this." in encoded.json().decode()) == ("$.stop_details.explanation" not in lost)


@promise("law:2-nothing-vanishes")
@each("target", OTHERS)
def test_an_unknown_stop_reason_is_reported(target: str) -> None:
    body = answer(stop_reason="of_tomorrow")
    encoded = dragoman.translate_response(body, source="anthropic-messages", target=target)
    assert [loss.path for loss in encoded.losses if "of_tomorrow" in loss.what] == ["$.stop_reason"]


@promise("law:2-nothing-vanishes")
def test_the_token_of_an_mcp_server_is_a_header_of_interactions() -> None:
    server = {"type": "url", "url": "https://example.org/mcp", "name": "tickets", "authorization_token": "t0k"}
    tools = [{"type": "mcp_toolset", "mcp_server_name": "tickets"}]
    body = request(tools=tools, mcp_servers=[server])
    encoded = dragoman.translate_request(body, source="anthropic-messages", target="gemini-interactions")
    assert encoded.body["tools"] == [
        {"type": "mcp_server", "name": "tickets", "url": server["url"], "headers": {"Authorization": "Bearer t0k"}}
    ]
    assert [(loss.severity, loss.what) for loss in encoded.losses] == [("noted", "authorization of tool 'tickets'")]
    back = dragoman.translate_request(encoded.body, source="gemini-interactions", target="anthropic-messages")
    assert back.body["mcp_servers"] == [server]


# ── other objects of which a part crosses ─────────────────────────────────────────────────────────────────────


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if FAMILY[name] != "bedrock"])
def test_an_effort_that_another_field_overrides_is_reported(target: str) -> None:
    body = {
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "inferenceConfig": {"maxTokens": 8000},
        "outputConfig": {"effort": "high"},
        "additionalModelRequestFields": {"output_config": {"effort": "low"}, "reasoning_effort": "low"},
    }
    encoded = dragoman.translate_request(body, source="bedrock-converse", target=target)
    further = "$.additionalModelRequestFields"
    assert dropped(encoded.losses, further) == {f"{further}.output_config", f"{further}.reasoning_effort"}
    back = dragoman.translate_request(body, source="bedrock-converse", target="bedrock-converse")
    assert (back.body, back.losses) == (body, ())


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if FAMILY[name] != "cohere"])
def test_counts_in_the_meta_of_early_answers_are_found_there(target: str) -> None:
    tokens = {"input_tokens": 3, "output_tokens": 4}
    meta = {"api_version": {"version": "2"}, "billed_units": tokens, "tokens": tokens, "warnings": ["old"]}
    body = {
        "id": "1",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
        "finish_reason": "COMPLETE",
        "meta": meta,
    }
    encoded = dragoman.translate_response(body, source="cohere-chat", target=target)
    found = {loss.path for loss in encoded.losses}
    assert {f"$.meta.{key}" for key in ("api_version", "billed_units", "warnings")} <= found
    assert not any(path.startswith("$.usage") for path in found if "usage" not in body)


@promise("law:2-nothing-vanishes")
@each(
    ("kind", "actions", "further"),
    [
        ("computer_20241022", 10, {}),
        ("computer_20250124", 16, {}),
        ("computer_20251124", 16, {}),
        ("computer_20251124", 17, {"enable_zoom": True}),
    ],
)
def test_a_model_is_offered_what_the_version_of_the_tool_can_do(
    kind: str, actions: int, further: dict[str, bool]
) -> None:
    tool = {"type": kind, "name": "computer", "display_width_px": 9, "display_height_px": 9, **further}
    encoded = dragoman.translate_request(request(tools=[tool]), source="anthropic-messages", target="openai-chat")
    properties = encoded.body["tools"][0]["function"]["parameters"]["properties"]
    assert len(properties["action"]["enum"]) == actions
    assert ("zoom" in properties["action"]["enum"]) == ("region" in properties) == bool(further)


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if FAMILY[name] != "bedrock"])
def test_an_image_that_a_guardrail_checks_crosses_without_the_check(target: str) -> None:
    stored = {"guardContent": {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b.png"}}}}}
    guarded = {"guardContent": {"image": {"format": "png", "source": {"bytes": PIXEL}}}}
    body = {"messages": [{"role": "user", "content": [guarded, stored, {"text": "Hi"}]}]}
    back = dragoman.translate_request(body, source="bedrock-converse", target="bedrock-converse")
    assert (back.body, back.losses) == (body, ())
    encoded = dragoman.translate_request(body, source="bedrock-converse", target=target)
    assert PIXEL in encoded.json().decode()
    content = "$.messages[0].content"
    assert f"{content}[0]" in dropped(encoded.losses, content)
    assert {loss.path for loss in encoded.losses} & {f"{content}[1]", f"{content}[1].guardContent.image"}
