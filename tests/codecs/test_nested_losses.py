"""What is lost of an object of which the rest crosses is reported at its own path, and nothing else of it is."""

from typing import Any

import pytest

import dragoman
from tests.support.bodies import PIXEL, WEATHER
from tests.support.cases import each
from tests.support.formats import FAMILY, FORMATS, MODELS, VARIED_MODELS, refusals
from tests.support.promises import promise
from tests.support.trees import reaches

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


# ── what stands where it has no place ─────────────────────────────────────────────────────────────────────────

QUOTE = {
    "type": "char_location",
    "cited_text": "cited",
    "document_index": 0,
    "document_title": "Title",
    "start_char_index": 0,
    "end_char_index": 1,
}
QUOTED = [{"type": "text", "text": "said", "citations": [QUOTE]}]


@promise("law:2-nothing-vanishes", "law:3-legality")
@each("target", OTHERS)
def test_citations_outside_of_answers_are_reported(target: str) -> None:
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": QUOTED},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": QUOTED}]},
    ]
    tool = {"name": "f", "description": "F", "input_schema": {"type": "object", "properties": {}}}
    body = request(system=QUOTED, messages=turns, tools=[tool])
    encoded = dragoman.translate_request(body, source="anthropic-messages", target=target, model=MODELS[target])
    assert refusals(encoded, target, model=MODELS[target]) == ()
    for place in ("$.system[0]", "$.messages[0].content[0]", "$.messages[2].content[0].content[0]"):
        assert f"{place}.citations" in {loss.path for loss in encoded.losses}


@promise("law:2-nothing-vanishes")
@each("target", ["anthropic-messages", "cohere-chat"])
def test_citations_of_a_text_that_is_dropped_are_reported(target: str) -> None:
    cited = {"citationsContent": {"citations": [{"title": "Title"}]}}
    answer_turn = {"role": "assistant", "content": [{"text": "said"}, cited]}
    asked = {"role": "user", "content": [{"text": "asked"}]}
    body = {"messages": [asked, answer_turn, asked]}
    encoded = dragoman.translate_request(body, source="bedrock-converse", target=target, model=MODELS[target])
    assert any(loss.what == "citations" and loss.path.startswith("$.messages[1].content[1]") for loss in encoded.losses)


@promise("law:2-nothing-vanishes", "law:6-owed-back")
@each("target", [name for name in FORMATS if FAMILY[name] != "google"])
def test_the_signature_of_a_system_text_is_reported(target: str) -> None:
    system = {"parts": [{"text": "Be brief.", "thoughtSignature": "c2lnbmVk"}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "systemInstruction": system}
    encoded = dragoman.translate_request(body, source="gemini", target=target, model=MODELS[target])
    assert any(loss.what == "signature" for loss in encoded.losses)


@promise("law:2-nothing-vanishes")
@pytest.mark.parametrize("lifetime", ["30m", "12h"])
@each("target", ["anthropic-messages", "bedrock-converse"])
def test_lifetimes_of_breakpoints_are_reported_where_they_are_written(target: str, lifetime: str) -> None:
    mark = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": lifetime}}
    chat = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **mark}]}]}
    items = {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi", **mark}]}]}
    for source, key, body in (("openai-chat", "messages", chat), ("openai-responses", "input", items)):
        encoded = dragoman.translate_request(
            {"model": "gpt-5.6", **body}, source=source, target=target, model=MODELS[target]
        )
        lost = [loss.path for loss in encoded.losses if "lifetime" in loss.what]
        assert lost == [f"$.{key}[0].content[0].prompt_cache_breakpoint.ttl"]


@promise("law:1-identity", "law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if FAMILY[name] != "openai"])
def test_a_refusal_beside_parts_is_a_key_of_its_message(target: str) -> None:
    inside = [{"type": "text", "text": "First."}, {"type": "refusal", "refusal": "Inside."}]
    answer_turn = {"role": "assistant", "content": inside, "refusal": "Beside."}
    asked = {"role": "user", "content": "Hi"}
    body = {"model": "gpt-4.1", "messages": [asked, answer_turn, asked]}
    again = dragoman.translate_request(body, source="openai-chat", target="openai-chat")
    assert (again.body, again.losses) == (body, ())
    encoded = dragoman.translate_request(body, source="openai-chat", target=target, model=MODELS[target])
    assert "Beside." in encoded.json().decode()
    assert not [loss.path for loss in encoded.losses if loss.severity != "invented" and not reaches(body, loss.path)]


@promise("law:2-nothing-vanishes")
@each("target", [name for name in FORMATS if name != "cohere-chat"])
def test_a_budget_beside_thinking_that_is_off_does_not_switch_it_on(target: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    off = {"thinking": {"type": "disabled", "token_budget": 3000}}
    for model in VARIED_MODELS[target]:
        plain = dragoman.translate_request(
            {**body, "thinking": {"type": "disabled"}}, source="cohere-chat", target=target, model=model
        )
        encoded = dragoman.translate_request({**body, **off}, source="cohere-chat", target=target, model=model)
        assert encoded.json() == plain.json()
        lost = {loss.path for loss in encoded.losses}
        assert "$.thinking.token_budget" in lost or "$.thinking" in lost, model


@promise("law:2-nothing-vanishes")
@each("target", ["anthropic-messages", "bedrock-converse", "cohere-chat", "openai-chat"])
def test_summaries_without_a_level_are_reported_where_they_are_written(target: str) -> None:
    body = {"model": "m", "input": "Hi", "generation_config": {"thinking_summaries": "auto"}}
    encoded = dragoman.translate_request(body, source="gemini-interactions", target=target, model=MODELS[target])
    lost = {loss.path for loss in encoded.losses if "reasoning" in loss.what}
    assert lost == {"$.generation_config.thinking_summaries"}


@promise("law:3-legality")
@each("target", ["anthropic-messages", "bedrock-converse"])
def test_thinking_is_off_if_the_turn_that_ends_a_loop_cannot_be_sent(target: str) -> None:
    """Without that turn the calls before it, which came without thinking, are answered by the last one."""
    call = {"functionCall": {"name": "draw", "args": {}}}
    drawn = {"fileData": {"fileUri": "https://example.org/a.png", "mimeType": "image/png"}}
    turns = [
        {"role": "user", "parts": [{"text": "Draw."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "draw", "response": {"output": "done"}}}]},
        {"role": "model", "parts": [drawn]},
        {"role": "user", "parts": [{"text": "Again."}]},
    ]
    body = {"contents": turns, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    encoded = dragoman.translate_request(body, source="gemini", target=target, model=MODELS[target])
    assert refusals(encoded, target, model=MODELS[target]) == ()
    assert "$.generationConfig.thinkingConfig" in dropped(encoded.losses, "$.generationConfig")


@promise("law:3-legality")
def test_a_document_of_which_no_text_is_left_is_dropped() -> None:
    document = {"type": "document", "source": {"type": "content", "content": [IMAGE]}}
    body = request(messages=[{"role": "user", "content": [document]}])
    encoded = dragoman.translate_request(body, source="anthropic-messages", target="cohere-chat")
    assert refusals(encoded, "cohere-chat") == ()
    assert "$.messages[0].content[0]" in dropped(encoded.losses, "$.messages")
