import json
from typing import Any

import botocore.session  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

from dragoman.sim.rules.bedrock_converse import check_request
from tests.sim.rule_cases import SHAPE, Case, rows
from tests.support.cases import each

Body = dict[str, Any]

SONNET = {"model": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
SONNET_5 = {"model": "us.anthropic.claude-sonnet-5"}
NOVA = {"model": "us.amazon.nova-2-lite-v1:0"}
LLAMA = {"model": "us.meta.llama3-3-70b-instruct-v1:0"}
PALMYRA = {"model": "us.writer.palmyra-x4-v1:0"}
PROMPT = {"model": "arn:aws:bedrock:us-east-1:000000000000:prompt/ABCDEFGHIJ"}

OBJECT = {"type": "object", "properties": {}}
POINT = {"cachePoint": {"type": "default"}}
IMAGE = {"image": {"format": "png", "source": {"bytes": "AAAA"}}}
FAR_IMAGE = {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket-1/a.png"}}}}
VIDEO = {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}


def ask(*messages: Body, **settings: Any) -> Body:
    return {"messages": list(messages) or [user(text("hi"))], **settings}


def user(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def text(value: str = "hi") -> Body:
    return {"text": value}


def call(identifier: str = "t_1", **more: Any) -> Body:
    return {"toolUse": {"toolUseId": identifier, "name": "f", "input": {}} | more}


def result(identifier: str = "t_1", *content: Body, **more: Any) -> Body:
    return {"toolResult": {"toolUseId": identifier, "content": list(content) or [text("42")], **more}}


def document(name: str = "notes", form: str = "pdf", **more: Any) -> Body:
    return {"document": {"format": form, "name": name, "source": {"bytes": "AAAA"}, **more}}


def thought(**more: Any) -> Body:
    return {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s", **more}}}


def spec(name: str = "f", **more: Any) -> Body:
    return {"toolSpec": {"name": name, "inputSchema": {"json": OBJECT}, **more}}


TOOLS = {"toolConfig": {"tools": [spec()]}}
ENABLED = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
ADAPTIVE = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}


def choosing(choice: Body, **settings: Any) -> Body:
    return ask(toolConfig={"tools": [spec()], "toolChoice": choice}, **settings)


def constraint(value: str, place: str, complaint: str) -> str:
    return (
        f"1 validation error detected: Value {value} at '{place}' failed to satisfy constraint: Member must {complaint}"
    )


BAD = [
    Case(SHAPE, ask({"role": "user", "content": "hi"}), "$.messages[0].content", "Expected list or null"),
    Case(
        SHAPE,
        ask({"role": "tool", "content": [text()]}),
        "$.messages[0].role",
        constraint("'tool'", "messages.1.member.role", "satisfy enum value set: [user, assistant, system]"),
    ),
    Case(
        SHAPE,
        ask({"role": "user"}),
        "$.messages[0].content",
        constraint("null", "messages.1.member.content", "not be null"),
    ),
    Case(
        SHAPE, ask(user({"text": 5})), "$.messages[0].content[0].text", "NUMBER_VALUE can not be converted to a String"
    ),
    Case(SHAPE, ask(user({"text": []})), "$.messages[0].content[0].text", "Start of list found where not expected"),
    Case(SHAPE, ask(user({})), "$.messages[0].content[0]", "tagged union structure messages[0].content[0]"),
    Case(SHAPE, ask(user(text() | POINT)), "$.messages[0].content[0]", "Can only set one of the following keys"),
    Case(
        SHAPE,
        ask(user({"type": "text", "text": "x"})),
        "$.messages[0].content[0].type",
        'Unknown parameter in messages[0].content[0]: "type"',
    ),
    Case(SHAPE, ask(model="x"), "$.model", 'Unknown parameter in input: "model"'),
    Case(SHAPE, choosing({"none": {}}), "$.toolConfig.toolChoice.none", "Unknown parameter in toolConfig.toolChoice"),
    Case(
        SHAPE,
        ask(toolConfig={"tools": []}),
        "$.toolConfig.tools",
        "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    ),
    Case(
        SHAPE,
        ask(toolConfig={"tools": [spec(description="")]}),
        "$.toolConfig.tools[0].toolSpec.description",
        constraint("''", "toolConfig.tools.1.member.toolSpec.description", "have length greater than or equal to 1"),
    ),
    Case(
        SHAPE,
        ask(toolConfig={"tools": [spec("a.b")]}),
        "$.toolConfig.tools[0].toolSpec.name",
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
    ),
    Case(
        SHAPE,
        ask(toolConfig={"tools": [spec("f" * 65)]}),
        "$.toolConfig.tools[0].toolSpec.name",
        "Member must have length less than or equal to 64",
    ),
    Case(
        SHAPE,
        ask(user(text()), assistant(call("t" * 65)), user(result("t")), **TOOLS),
        "$.messages[1].content[0].toolUse.toolUseId",
        "Member must have length less than or equal to 64",
    ),
    Case(SHAPE, ask(system=[text("")]), "$.system[0].text", "greater than or equal to 1"),
    Case(SHAPE, ask(system="be brief"), "$.system", "Expected list or null"),
    Case(
        SHAPE,
        ask(inferenceConfig={"maxTokens": 0}),
        "$.inferenceConfig.maxTokens",
        constraint("'0'", "inferenceConfig.maxTokens", "have value greater than or equal to 1"),
    ),
    Case(SHAPE, ask(inferenceConfig={"temperature": 1.5}), "$.inferenceConfig.temperature", "less than or equal to 1"),
    Case(SHAPE, ask(inferenceConfig={"maxTokens": "5"}), "$.inferenceConfig.maxTokens", "STRING_VALUE can not be conv"),
    Case(SHAPE, ask(inferenceConfig={"stopSequences": [""]}), "$.inferenceConfig.stopSequences[0]", "length greater"),
    Case(
        SHAPE,
        ask(user({"image": {"format": "tiff", "source": {"bytes": "AAAA"}}})),
        "$.messages[0].content[0].image.format",
        "satisfy enum value set: [png, jpeg, gif, webp]",
    ),
    Case(
        SHAPE,
        ask(user({"image": {"format": "png", "source": {"bytes": "data:image/png;base64,AAAA"}}})),
        "$.messages[0].content[0].image.source.bytes",
        "expected base64",
    ),
    Case(
        SHAPE,
        ask(user({"image": {"format": "png", "source": {"bytes": ""}}})),
        "$.messages[0].content[0].image.source.bytes",
        "greater than or equal to 1",
    ),
    Case(SHAPE, ask(serviceTier={"type": "cheap"}), "$.serviceTier.type", "[priority, default, flex, reserved]"),
    Case(SHAPE, ask(requestMetadata={"k": "a;b"}), "$.requestMetadata.k", "regular expression pattern"),
    Case("model_id_has_its_form", ask(), "$.modelId", "The provided model identifier is invalid.", {"model": "gpt"}),
    Case(
        "model_id_has_its_form",
        ask(),
        "$.modelId",
        "The provided model identifier is invalid.",
        {"model": "us.amazon.nova-micro-v1:O"},
    ),
    Case(
        "model_runs_on_demand",
        ask(),
        "$.modelId",
        "Invocation of model ID deepseek.r1-v1:0 with on-demand throughput",
        {"model": "deepseek.r1-v1:0"},
    ),
    Case("prompt_resources_set_everything", {"system": [text()]}, "$.system", "prompt resource", PROMPT),
    Case(
        "prompt_resources_set_everything",
        ask(promptVariables={"x": text()}),
        "$.promptVariables",
        "prompt resource",
        NOVA,
    ),
    Case(
        "tool_schemas_describe_objects",
        ask(toolConfig={"tools": [spec(inputSchema={"json": {"type": "string"}})]}),
        "$.toolConfig.tools[0].toolSpec.inputSchema.json.type",
        "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.",
    ),
    Case(
        "tool_schemas_describe_objects",
        ask(toolConfig={"tools": [spec(inputSchema={"json": "{}"})]}),
        "$.toolConfig.tools[0].toolSpec.inputSchema.json",
        "Provide a json object for the field and try again.",
    ),
    Case(
        "tool_names_differ",
        ask(toolConfig={"tools": [spec(), spec()]}),
        "$.toolConfig.tools[1].toolSpec.name",
        "already defined",
    ),
    Case("chosen_tool_exists", choosing({"tool": {"name": "g"}}), "$.toolConfig.toolChoice.tool.name", "The tool g"),
    Case(
        "named_choice_is_supported",
        choosing({"tool": {"name": "f"}}),
        "$.toolConfig.toolChoice.tool",
        "This model doesn't support the toolConfig.toolChoice.tool field.",
        LLAMA,
    ),
    Case(
        "extra_fields_are_an_object",
        ask(additionalModelRequestFields=[1]),
        "$.additionalModelRequestFields",
        "The format of the value at additionalModelRequestFields is invalid.",
    ),
    Case(
        "field_paths_are_pointers",
        ask(additionalModelResponseFieldPaths=["stop_sequence"]),
        "$.additionalModelResponseFieldPaths[0]",
        "JSON Pointer",
    ),
    Case(
        "output_schema_is_json",
        ask(outputConfig={"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{"}}}}),
        "$.outputConfig.textFormat.structure.jsonSchema.schema",
        "Provide a json object",
    ),
    Case("metadata_is_small", ask(requestMetadata={}), "$.requestMetadata", "greater than or equal to 1"),
    Case("metadata_is_small", ask(requestMetadata={"a;b": "c"}), "$.requestMetadata['a;b']", "Map keys must satisfy"),
    Case(
        "claude_thinking_is_supported",
        ask(**ENABLED),
        "$.additionalModelRequestFields.thinking.type",
        'The model returned the following errors: "thinking.type.enabled" is not supported for this model.',
        SONNET_5,
    ),
    Case(
        "claude_thinking_is_supported",
        ask(**ADAPTIVE),
        "$.additionalModelRequestFields.thinking.type",
        "adaptive thinking is not supported on this model",
        SONNET,
    ),
    Case(
        "claude_budget_fits",
        ask(inferenceConfig={"maxTokens": 1024}, **ENABLED),
        "$.additionalModelRequestFields.thinking.budget_tokens",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        SONNET,
    ),
    Case(
        "claude_effort_is_supported",
        ask(outputConfig={"effort": "xhigh"}),
        "$.outputConfig.effort",
        "does not support effort level 'xhigh'",
        {"model": "us.anthropic.claude-sonnet-4-6"},
    ),
    Case(
        "claude_sampling_is_supported",
        ask(inferenceConfig={"temperature": 0.2}),
        "$.inferenceConfig.temperature",
        "`temperature` is deprecated for this model.",
        SONNET_5,
    ),
    Case(
        "claude_sampling_is_supported",
        ask(inferenceConfig={"temperature": 0.2, "topP": 0.9}),
        "$.inferenceConfig.topP",
        "cannot both be specified",
        SONNET,
    ),
    Case(
        "claude_thinking_fixes_sampling",
        ask(inferenceConfig={"temperature": 0.2}, **ENABLED),
        "$.inferenceConfig.temperature",
        "may only be set to 1 when thinking is enabled",
        SONNET,
    ),
    Case(
        "claude_forced_choice_is_supported",
        choosing({"any": {}}, **ENABLED),
        "$.toolConfig.toolChoice.any",
        "Thinking may not be enabled when tool_choice forces tool use.",
        SONNET,
    ),
    Case(
        "claude_forced_choice_is_supported",
        choosing({"tool": {"name": "f"}}),
        "$.toolConfig.toolChoice.tool",
        "not supported on this model",
        {"model": "us.anthropic.claude-fable-5-1"},
    ),
    Case(
        "claude_prefill_is_supported",
        ask(user(text()), assistant(text("Once"))),
        "$.messages[1]",
        "does not support assistant message prefill",
        SONNET_5,
    ),
    Case(
        "claude_prefill_is_supported",
        ask(user(text()), assistant(text("Once "))),
        "$.messages[1].content[0]",
        "trailing whitespace",
        SONNET,
    ),
    Case(
        "claude_thoughts_are_signed",
        ask(
            user(text()),
            assistant({"reasoningContent": {"reasoningText": {"text": "hm"}}}, text()),
            user(text("go on")),
        ),
        "$.messages[1].content[0].reasoningContent.reasoningText.signature",
        "messages.1.content.0.thinking.signature: Field required",
        SONNET,
    ),
    Case(
        "claude_thinks_before_calls",
        ask(user(text()), assistant(call()), user(result()), **TOOLS, **ENABLED),
        "$.messages[1].content[0]",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        SONNET,
    ),
    Case(
        "claude_accepts_call_ids",
        ask(user(text()), assistant(call("a.b:c")), user(result("a.b:c")), **TOOLS),
        "$.messages[1].content[0].toolUse.toolUseId",
        "String should match pattern '^[a-zA-Z0-9_-]+$'",
        SONNET,
    ),
    Case("claude_instructions_are_not_blank", ask(system=[text(" ")]), "$.system[0].text", "non-whitespace", SONNET),
    Case("conversation_starts_with_user", {"messages": []}, "$.messages", "must start with a user message"),
    Case("conversation_starts_with_user", {}, "$.messages", "must start with a user message"),
    Case(
        "conversation_starts_with_user",
        ask(assistant(text()), user(text())),
        "$.messages",
        "A conversation must start with a user message.",
        NOVA,
    ),
    Case(
        "messages_say_something",
        ask(user(text()), assistant()),
        "$.messages[1].content",
        "The content field in the Message object at messages.1 is empty. Add a ContentBlock object",
    ),
    Case(
        "texts_are_not_blank",
        ask(user(text(""))),
        "$.messages[0].content[0]",
        "The text field in the ContentBlock object at messages.0.content.0 is blank.",
    ),
    Case("texts_are_not_blank", ask(user(text("x"), text(" \n"))), "$.messages[0].content[1]", "is blank"),
    Case("blocks_fit_their_role", ask(user(text(), thought())), "$.messages[0].content[1]", "not allowed in user"),
    Case(
        "blocks_fit_their_role",
        ask(user(text()), assistant(IMAGE)),
        "$.messages[1].content[0]",
        "not allowed in assist",
    ),
    Case(
        "tool_blocks_need_tools",
        ask(user(text()), assistant(call()), user(result())),
        "$.toolConfig",
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    ),
    Case(
        "calls_are_answered",
        ask(user(text()), assistant(call("a"), call("b")), user(result("a")), **TOOLS),
        "$.messages[2].content",
        "Expected toolResult blocks at messages.2.content for the following Ids: b",
    ),
    Case(
        "calls_are_answered",
        ask(user(text()), assistant(call("a")), **TOOLS),
        "$.messages[2].content",
        "Expected toolResult blocks at messages.2.content for the following Ids: a",
    ),
    Case(
        "results_have_calls",
        ask(user(text()), assistant(call("a")), user(result("a"), result("a")), **TOOLS),
        "$.messages[2].content",
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
    ),
    Case("results_have_calls", ask(user(text(), result("a")), **TOOLS), "$.messages[0].content", "exceeds the number"),
    Case(
        "call_ids_differ",
        ask(user(text()), assistant(call("a"), call("a")), user(result("a"), result("a")), **TOOLS),
        "$.messages[1].content",
        "Duplicate toolUseId 'a'",
    ),
    Case(
        "call_inputs_are_objects",
        ask(user(text()), assistant(call(input="{}")), user(result()), **TOOLS),
        "$.messages[1].content[0].toolUse.input",
        "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide a json object for the field",
    ),
    Case(
        "json_results_are_objects",
        ask(user(text()), assistant(call()), user(result("t_1", {"json": [1, 2]})), **TOOLS),
        "$.messages[2].content[0].toolResult.content[0].json",
        "The format of the value at messages.2.content.0.toolResult.content.0.json is invalid.",
    ),
    Case(
        "results_stand_alone",
        ask(user(text()), assistant(call()), user(result(), text("and?")), **TOOLS),
        "$.messages[2].content[1]",
        "beside toolResult",
        LLAMA,
    ),
    Case(
        "results_have_a_status",
        ask(user(text()), assistant(call()), user(result(status="success")), **TOOLS),
        "$.messages[2].content[0].toolResult.status",
        "This model doesn't support the status field.",
        PALMYRA,
    ),
    Case("cache_points_follow_something", ask(user(POINT, text())), "$.messages[0].content[0]", "nothing available"),
    Case("cache_points_follow_something", ask(user(text(), POINT, POINT)), "$.messages[0].content[2]", "nothing avail"),
    Case("cache_points_follow_something", ask(system=[POINT]), "$.system[0]", "There is nothing available to cache."),
    Case(
        "cache_points_keep_off_reasoning",
        ask(user(text()), assistant(thought(), text(), POINT), user(text())),
        "$.messages[1].content[2]",
        "Cache point cannot be inserted after reasoning block.",
    ),
    Case(
        "cache_points_keep_off_text_documents",
        ask(user(text(), document(form="csv"), POINT)),
        "$.messages[0].content[2]",
        "The model returned the following errors: messages.0.content.2.type: Field required",
        SONNET,
    ),
    Case("model_caches", ask(user(text(), POINT)), "$.messages[0].content[1]", "did not allow prompt caching", LLAMA),
    Case(
        "document_names_are_plain",
        ask(user(text(), document("notes.pdf"))),
        "$.messages[0].content[1].document.name",
        "can only contain alphanumeric characters",
    ),
    Case(
        "document_names_are_plain",
        ask(user(text(), document("my  notes"))),
        "$.messages[0].content[1].document.name",
        "consecutive whitespace",
    ),
    Case(
        "document_names_differ",
        ask(user(text(), document(), document())),
        "$.messages[0].content[2].document.name",
        "'notes' is used more than once",
    ),
    Case("documents_come_with_text", ask(user(document())), "$.messages[0].content[0]", "must also contain a text"),
    Case(
        "media_is_countable",
        ask(user(text(), *(document(f"d{number}") for number in range(6)))),
        "$.messages[0].content",
        "too many documents in one message: 6 > 5",
    ),
    Case(
        "model_takes_media",
        ask(user(text(), VIDEO)),
        "$.messages[0].content[1]",
        "This model doesn't support the video content block that you provided.",
        SONNET,
    ),
    Case(
        "model_takes_media",
        ask(user(text()), assistant(call()), user(result("t_1", VIDEO)), **TOOLS),
        "$.messages[2].content[0].toolResult.content[0]",
        "doesn't support the video content block",
        SONNET,
    ),
    Case(
        "model_fetches",
        ask(user(text(), FAR_IMAGE)),
        "$.messages[0].content[1].image.source.s3Location",
        "This model doesn't support the s3Uri field. Remove s3Uri and try again.",
        SONNET,
    ),
]

SERVER_CALL = call("s_1", type="server_tool_use")
GOOD: list[tuple[Body, Body]] = [
    (ask(), {}),
    (ask(user(text(), IMAGE, document("My notes (1)", citations={"enabled": True}), POINT)), SONNET),
    (ask(assistant(text()), user(text())), SONNET),
    (ask(user(text("a")), user(text("b")), assistant(text("c")), user(text("d"))), NOVA),
    (
        ask(
            user(text()),
            assistant(thought(), text("let me see"), call("a"), call("b")),
            user(result("b", {"json": {"x": 1}}, status="success"), result("a", IMAGE, status="error")),
            toolConfig={"tools": [spec(description="d", strict=True), POINT], "toolChoice": {"auto": {}}},
            **ENABLED,
        ),
        SONNET,
    ),
    (ask(user(text()), assistant(call()), user(result()), user(text("and?")), **TOOLS), NOVA),
    (ask(user(text()), assistant(SERVER_CALL, result("s_1"), call()), user(result()), **TOOLS), NOVA),
    (ask(user(text()), assistant(call("a.b:c")), user(result("a.b:c")), **TOOLS), NOVA),
    (choosing({"tool": {"name": "f"}}), NOVA),
    (choosing({"any": {}}), LLAMA),
    (choosing({"any": {}}, **ADAPTIVE), SONNET_5),
    (ask(user(text(), VIDEO, FAR_IMAGE)), NOVA),
    (ask(system=[text("be brief"), POINT], inferenceConfig={"maxTokens": 5, "stopSequences": []}), SONNET_5),
    (ask(system=[], inferenceConfig={}, additionalModelResponseFieldPaths=["/stop_sequence"]), SONNET_5),
    (
        ask(
            outputConfig={
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"schema": json.dumps(OBJECT), "name": "x"}},
                },
                "effort": "high",
            }
        ),
        SONNET_5,
    ),
    (ask(user(text("x"), document(form="txt"), text("\n"), POINT)), SONNET),
    ({"promptVariables": {"city": text("Paris")}}, PROMPT),
    (ask(requestMetadata={"team": "a"}, performanceConfig={"latency": "optimized"}), NOVA),
    (ask(user(text()), assistant({"reasoningContent": {"redactedContent": "AAAA"}}, text()), user(text())), SONNET),
]


def test_an_unknown_model_meets_no_rule_of_a_model() -> None:
    body = ask(assistant(text()), user(text(), VIDEO, POINT), inferenceConfig={"temperature": 0.2, "topP": 0.5})
    profile = "arn:aws:bedrock:us-east-1:000000000000:application-inference-profile/abc"
    assert check_request(body, model=profile) == check_request(body) == ()


def test_exceptions_and_statuses_are_the_services() -> None:
    assert check_request(ask(system="x"))[0].code == "SerializationException"
    assert check_request({"messages": []})[0].code == "ValidationException"
    cached = check_request(ask(user(text(), POINT)), **LLAMA)[0]
    assert (cached.code, cached.status) == ("AccessDeniedException", 403)


# --- botocore as second judge -------------------------------------------------------------------------------------

CONVERSE = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def botocore_complaints(body: Body) -> str:
    report = ParamValidator().validate({"modelId": "m", **body}, CONVERSE)
    return str(report.generate_report())


@each(("body", "beside"), GOOD)
def test_a_legal_body_is_one_to_botocore(body: Body, beside: Body) -> None:
    assert botocore_complaints(body) == "", beside


@each("case", rows(BAD))
def test_what_botocore_refuses_is_refused(case: Case) -> None:
    """It checks less than the service (no pattern, no enum, no maximum), but nothing of it is missed."""
    if botocore_complaints(case.body):
        assert check_request(case.body), "without a model as well"


def test_a_union_error_reads_as_botocores() -> None:
    body = ask(user(text() | POINT))
    assert check_request(body)[0].message in botocore_complaints(body)


# --- responses ----------------------------------------------------------------------------------------------------


def answer(*blocks: Body, **more: Any) -> Body:
    return {
        "output": {"message": assistant(*(blocks or (text("hello"),)))},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
        "metrics": {"latencyMs": 1},
        **more,
    }


BAD_ANSWERS = [
    Case(SHAPE, answer(stopReason="stop"), "$.stopReason", "expected one of 'end_turn'"),
    Case(SHAPE, answer(usage={"inputTokens": 1, "outputTokens": 1}), "$.usage.totalTokens", "missing required key"),
    Case(SHAPE, answer(text() | call()), "$.output.message.content[0]", "tagged union"),
    Case(SHAPE, answer(call(name="")), "$.output.message.content[0].toolUse.name", "at least 1 characters"),
    Case(SHAPE, answer({"reasoningContent": {}}), "$.output.message.content[0].reasoningContent", "tagged union"),
    Case(
        "usage_adds_up",
        answer(usage={"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokens": 3, "totalTokens": 12}),
        "$.usage.totalTokens",
        "the sum of",
    ),
    Case(
        "usage_adds_up",
        answer(
            usage={
                "inputTokens": 1,
                "outputTokens": 1,
                "cacheWriteInputTokens": 5,
                "totalTokens": 7,
                "cacheDetails": [{"ttl": "1h", "inputTokens": 4}],
            }
        ),
        "$.usage.cacheDetails",
        "parts of cacheWriteInputTokens",
    ),
    Case("stop_reason_has_a_call", answer(stopReason="tool_use"), "$.stopReason", "there is no call"),
    Case(
        "calls_hold_objects",
        answer(call(input="{}"), stopReason="tool_use"),
        "$.output.message.content[0].toolUse.input",
        "expected an object",
    ),
    Case(
        "calls_have_their_own_ids",
        answer(call(), call(), stopReason="tool_use"),
        "$.output.message.content",
        "a different toolUseId",
    ),
]
GOOD_ANSWERS = [
    answer(),
    answer(thought(), text(), call("a"), call("b", type="tool_use"), stopReason="tool_use"),
    answer(call(input='{"a'), stopReason="max_tokens"),
    answer({"aNewBlock": {}}, aNewKey=1),
    answer(usage={"inputTokens": 2, "outputTokens": 5, "cacheReadInputTokens": 1322, "totalTokens": 1329}),
]
ERROR = {"message": "The provided model identifier is invalid."}
