from typing import Any

from dragoman.sim.rules.gemini import check_request
from tests.sim.rule_cases import SHAPE, Case

Body = dict[str, Any]

VERTEX: Body = {"backend": "vertex"}
OLD: Body = {"model": "gemini-2.5-flash"}
NEW: Body = {"model": "gemini-3.6-flash"}
SIGNED: Body = {"thoughtSignature": "c2tpcA=="}
FUNCTION = "$.tools[0].functionDeclarations[0]"


def ask(*contents: Body, **more: Any) -> Body:
    return {"contents": list(contents) or [user("hi")], **more}


def user(*parts: Any) -> Body:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> Body:
    return user(*parts) | {"role": "model"}


def call(name: str = "f", *, identifier: str | None = None, **beside: Any) -> Body:
    return {"functionCall": {"name": name, "args": {}} | ({"id": identifier} if identifier else {}), **beside}


def response(name: str = "f", *, identifier: str | None = None, **more: Any) -> Body:
    answer = {"name": name, "response": {"output": 1}, **more} | ({"id": identifier} if identifier else {})
    return {"functionResponse": answer}


def tools(*declarations: Body, **built_in: Any) -> list[Body]:
    return [{"functionDeclarations": list(declarations) or [{"name": "f"}], **built_in}]


def typed(schema: Body) -> Body:
    return ask(tools=tools({"name": "f", "parameters": schema}))


def settings(**config: Any) -> Body:
    return ask(generationConfig=config)


def fields(**properties: Any) -> Body:
    return {"type": "OBJECT", "properties": properties}


MEDIA: Body = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}

BAD = [
    # shapes
    Case(SHAPE, {}, "$.contents", "contents is not specified"),
    Case(SHAPE, {"contents": []}, "$.contents", "contents is not specified"),
    Case(SHAPE, ask(messages=[]), "$.messages", "Unknown name \"messages\" at 'request': Cannot find field."),
    Case(
        SHAPE,
        ask(user({"text": "x", "cache_control": 1})),
        "$.contents[0].parts[0].cache_control",
        "Unknown name \"cache_control\" at 'contents[0].parts[0]'",
    ),
    Case(SHAPE, ask(user({"text": 5})), "$.contents[0].parts[0].text", "'contents[0].parts[0].text' (TYPE_STRING), 5"),
    Case(
        SHAPE,
        ask(user("x"), model({"functionCall": {"name": "f", "args": "{}"}}), user(response())),
        "$.contents[1].parts[0].functionCall.args",
        "contents[1].parts[0].function_call.args' (TYPE_MESSAGE)",
    ),
    Case(
        SHAPE,
        ask(user("x"), model(call()), user(response(response="42"))),
        "$.contents[2].parts[0].functionResponse.response",
        "TYPE_MESSAGE",
    ),
    Case(
        SHAPE,
        ask(user("x"), model(call()), user({"functionResponse": {"response": {}}})),
        "$.contents[2].parts[0].functionResponse.name",
        "name is not specified",
    ),
    Case(
        SHAPE,
        ask(user("x"), model({"functionCall": {"name": "f", "thoughtSignature": "c2s="}}), user(response())),
        "$.contents[1].parts[0].functionCall.thoughtSignature",
        "Unknown name",
    ),
    Case(
        SHAPE,
        ask(user({"inlineData": {"mimeType": "image/png", "data": "not base64!"}})),
        "$.contents[0].parts[0].inlineData.data",
        "does not match",
    ),
    Case(SHAPE, ask(tools=tools({"name": "1st"})), f"{FUNCTION}.name", "does not match"),
    Case(SHAPE, ask(tools=tools({"name": "f" * 65})), f"{FUNCTION}.name", "at most 64"),
    Case(SHAPE, ask(tools=tools({"name": "f", "strict": True})), f"{FUNCTION}.strict", 'Unknown name "strict"'),
    Case(
        SHAPE,
        ask(tools=tools(), toolConfig={"functionCallingConfig": {"mode": "REQUIRED"}}),
        "$.toolConfig.functionCallingConfig.mode",
        '(TYPE_ENUM), "REQUIRED"',
    ),
    Case(SHAPE, settings(maxOutputTokens=0), "$.generationConfig.maxOutputTokens", "at least 1"),
    Case(SHAPE, settings(candidateCount=0), "$.generationConfig.candidateCount", "at least 1"),
    Case(SHAPE, settings(stopSequences=list("abcdef")), "$.generationConfig.stopSequences", "at most 5"),
    Case(SHAPE, settings(presencePenalty=3), "$.generationConfig.presencePenalty", "at most 2"),
    Case(SHAPE, settings(responseMimeType="application/xml"), "$.generationConfig.responseMimeType", "does not match"),
    Case(
        SHAPE,
        ask(safetySettings=[{"category": "HARM_CATEGORY_X", "threshold": "OFF"}]),
        "$.safetySettings[0].category",
        "TYPE_ENUM",
    ),
    # fields of the other backend
    Case(SHAPE, ask(store=True), "$.store", 'Unknown name "store"', VERTEX),
    Case(SHAPE, ask(serviceTier="flex"), "$.serviceTier", "Unknown name", VERTEX),
    Case(SHAPE, ask(user({"text": "x", "partMetadata": {}})), "$.contents[0].parts[0].partMetadata", "Unknown", VERTEX),
    Case(
        SHAPE, ask(tools=[{"fileSearch": {"fileSearchStoreNames": ["s"]}}]), "$.tools[0].fileSearch", "Unknown", VERTEX
    ),
    Case(
        SHAPE,
        ask(tools=tools(), toolConfig={"includeServerSideToolInvocations": True}),
        "$.toolConfig.includeServerSideToolInvocations",
        "Unknown name",
        VERTEX,
    ),
    Case(SHAPE, ask(modelArmorConfig={}), "$.modelArmorConfig", "Unknown name"),
    Case(
        SHAPE,
        ask(tools=tools(), toolConfig={"functionCallingConfig": {"streamFunctionCallArguments": True}}),
        "$.toolConfig.functionCallingConfig.streamFunctionCallArguments",
        "Unknown name",
    ),
    # contents and parts
    Case("roles_are_known", ask(user("x") | {"role": "assistant"}), "$.contents[0].role", "valid role: user, model."),
    Case("roles_are_known", ask({"parts": [{"text": "x"}]}), "$.contents[0].role", "valid role: user, model.", VERTEX),
    Case("contents_have_parts", ask(user()), "$.contents[0].parts", "must not be empty"),
    Case("contents_have_parts", ask(user("x"), model(), user("y")), "$.contents[1].parts", "must not be empty", VERTEX),
    Case("parts_have_one_kind", ask(user({})), "$.contents[0].parts[0].data", "must have one initialized field"),
    Case("parts_have_one_kind", ask(user({"text": "x"} | MEDIA)), "$.contents[0].parts[0].inlineData", "already set"),
    Case(
        "system_instruction_is_text",
        ask(systemInstruction={"parts": [MEDIA]}),
        "$.systemInstruction.parts[0]",
        "only text",
    ),
    # calls and responses
    Case(
        "calls_and_responses_fit_their_role",
        ask(user("x", call()), user("y")),
        "$.contents[0].parts[1]",
        "function call turn comes immediately after a user turn",
    ),
    Case(
        "calls_come_after_the_user",
        ask(model(call()), user(response())),
        "$.contents[0].parts[0]",
        "function call turn comes immediately after a user turn",
    ),
    Case(
        "calls_are_answered",
        ask(user("x"), model(call(), call("g")), user(response())),
        "$.contents[1].parts[0]",
        "the number of function response parts is equal to the number of function call parts",
    ),
    Case(
        "calls_are_answered", ask(user("x"), model(call()), user("never mind")), "$.contents[1].parts[0]", "is equal to"
    ),
    Case(
        "calls_are_answered",
        ask(user("x"), model(call(), call("g")), user(response())),
        "$.contents[1].parts[0]",
        "is equal to",
        OLD,
    ),
    Case(
        "responses_follow_calls",
        ask(user(response())),
        "$.contents[0].parts[0]",
        "function response turn comes immediately after a function call turn",
    ),
    Case(
        "responses_name_their_calls",
        ask(user("x"), model(call()), user(response("g"))),
        "$.contents[2].parts[0].functionResponse.name",
        "must match the function call name",
    ),
    Case(
        "responses_name_their_calls",
        ask(user("x"), model(call(identifier="a")), user(response(identifier="b"))),
        "$.contents[2].parts[0].functionResponse.id",
        "must match the function call id",
    ),
    Case(
        "responses_stand_alone",
        ask(user("x"), model(call()), user(response(), "and?")),
        "$.contents[2]",
        "Requests ending with a model turn are not supported.",
        VERTEX,
    ),
    Case(
        "ids_are_supported",
        ask(user("x"), model(call(identifier="a")), user(response())),
        "$.contents[1].parts[0].functionCall",
        "Unknown name \"id\" at 'contents[1].parts[0].function_call'",
        {"backend": "vertex", "version": "v1"},
    ),
    Case("last_content_is_the_users", ask(user("x"), model("y")), "$.contents[1]", "ending with a model turn", NEW),
    Case(
        "responses_refer_to_parts",
        ask(user("x"), model(call(**SIGNED)), user(response(response={"a": [{"$ref": "#/x"}]}))),
        "$.contents[2].parts[0].functionResponse.response",
        "'#/x' does not match to a display_name",
        NEW,
    ),
    Case(
        "first_calls_are_signed",
        ask(user("x"), model(call()), user(response())),
        "$.contents[1].parts[0]",
        "Function call `f` in the `1.` content block is missing a `thought_signature`",
        NEW,
    ),
    Case(
        "first_calls_are_signed",
        ask(user("x"), model({"text": "t"} | SIGNED, call(), call(**SIGNED)), user(response(), response())),
        "$.contents[1].parts[1]",
        "missing a `thought_signature`",
        NEW,
    ),
    Case(
        "first_calls_are_signed",
        ask(user("x"), model(call(**SIGNED)), user(response()), model(call()), user(response())),
        "$.contents[3].parts[0]",
        "missing a `thought_signature`",
        NEW,
    ),
    # media
    Case(
        "files_are_reachable",
        ask(user({"fileData": {"fileUri": "gs://b/f", "mimeType": "image/png"}})),
        "$.contents[0].parts[0].fileData.fileUri",
        "unsupported file uri",
    ),
    Case(
        "files_are_reachable",
        ask(
            user(
                {
                    "fileData": {
                        "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x",
                        "mimeType": "image/png",
                    }
                }
            )
        ),
        "$.contents[0].parts[0].fileData.fileUri",
        "unsupported file uri",
        VERTEX,
    ),
    Case(
        "response_parts_are_supported",
        ask(user("x"), model(call()), user(response(parts=[MEDIA]))),
        "$.contents[2].parts[0].functionResponse.parts[0]",
        "Multimodal function response",
        OLD,
    ),
    Case(
        "image_models_call_nothing",
        ask(user("x"), model(call()), user("y")),
        "$.contents[1].parts[0]",
        "not enabled for this model",
        {"model": "gemini-2.5-flash-image"},
    ),
    # tools
    Case("tools_are_not_empty", ask(tools=[{}]), "$.tools[0]", "must be specified", VERTEX),
    Case(
        "declarations_differ",
        ask(tools=tools({"name": "f"}, {"name": "f"})),
        "$.tools[0].functionDeclarations[1].name",
        "Duplicate function declaration found: f",
    ),
    Case(
        "one_schema_per_purpose",
        ask(tools=tools({"name": "f", "parameters": fields(), "parametersJsonSchema": {}})),
        f"{FUNCTION}.parametersJsonSchema",
        "Only one of",
    ),
    Case(
        "one_schema_per_purpose",
        settings(responseMimeType="application/json", responseSchema=fields(), responseJsonSchema={}),
        "$.generationConfig.responseJsonSchema",
        "Only one of",
    ),
    Case(
        "calling_config_needs_functions",
        ask(toolConfig={"functionCallingConfig": {"mode": "AUTO"}}),
        "$.toolConfig.functionCallingConfig",
        "Function calling config is set without function_declarations",
    ),
    Case(
        "allowed_names_fit",
        ask(tools=tools(), toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}),
        "$.toolConfig.functionCallingConfig.allowedFunctionNames",
        "ANY",
    ),
    Case(
        "allowed_names_fit",
        ask(tools=tools(), toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}}),
        "$.toolConfig.functionCallingConfig.allowedFunctionNames",
        "'g'",
    ),
    Case("built_in_tools_mix", ask(tools=tools(googleSearch={})), "$.tools", "cannot be combined", OLD),
    Case(
        "built_in_tools_mix",
        ask(tools=tools(googleSearch={})),
        "$.toolConfig",
        "Please enable tool_config.include_server_side_tool_invocations",
        NEW,
    ),
    Case(
        "server_invocations_are_supported",
        ask(tools=tools(), toolConfig={"includeServerSideToolInvocations": True}),
        "$.toolConfig.includeServerSideToolInvocations",
        "Tool call context circulation is not enabled",
        OLD,
    ),
    # typed schemas
    Case(
        "schemas_use_known_keywords",
        typed(fields(x={"type": "STRING", "const": "a"})),
        f"{FUNCTION}.parameters.properties.x",
        "Unknown name \"const\" at 'tools[0].function_declarations[0].parameters.properties.x'",
    ),
    Case(
        "schemas_use_known_keywords", typed(fields() | {"$defs": {}}), f"{FUNCTION}.parameters", 'Unknown name "$defs"'
    ),
    Case(
        "schema_types_are_single",
        typed(fields(x={"type": ["STRING", "NULL"]})),
        f"{FUNCTION}.parameters.properties.x.type",
        "Proto field is not repeating, cannot start list",
    ),
    Case(
        "schema_types_are_single",
        typed(fields(x={"type": "{any}"})),
        f"{FUNCTION}.parameters.properties.x.type",
        "{any}",
    ),
    Case(
        "schema_keywords_are_typed",
        typed(fields(x={"type": "STRING", "description": 5})),
        f"{FUNCTION}.parameters.properties.x.description",
        "Invalid value",
    ),
    Case(
        "arrays_have_items",
        typed(fields(x={"type": "array"})),
        f"{FUNCTION}.parameters.properties.x.items",
        "properties.x.items: missing field",
    ),
    Case(
        "required_properties_exist",
        typed(fields() | {"required": ["x"]}),
        f"{FUNCTION}.parameters.required[0]",
        "property is not defined",
    ),
    Case(
        "enums_are_strings",
        typed(fields(x={"type": "INTEGER", "enum": [1]})),
        f"{FUNCTION}.parameters.properties.x.enum",
        "TYPE_STRING",
    ),
    Case(
        "enums_are_strings",
        typed(fields(x={"type": "INTEGER", "enum": ["1"]})),
        f"{FUNCTION}.parameters.properties.x.enum",
        "only allowed for STRING type",
    ),
    Case(
        "any_of_stands_alone",
        typed(fields(x={"description": "d", "anyOf": [{"type": "STRING"}]})),
        f"{FUNCTION}.parameters.properties.x",
        "it must be the only field set",
        VERTEX,
    ),
    Case(
        "open_objects_are_expressible",
        typed(fields() | {"additionalProperties": True}),
        f"{FUNCTION}.parameters",
        "additional_properties",
    ),
    # output and thinking
    Case(
        "schemas_need_json",
        settings(responseSchema=fields()),
        "$.generationConfig.responseMimeType",
        "application/json",
    ),
    Case(
        "json_excludes_tools",
        ask(tools=tools(), generationConfig={"responseMimeType": "application/json"}),
        "$.generationConfig.responseMimeType",
        "Function calling with a response mime type",
        OLD,
    ),
    Case(
        "json_excludes_tools",
        ask(tools=[{"googleSearch": {}}], generationConfig={"responseMimeType": "application/json"}),
        "$.generationConfig.responseMimeType",
        "Tool use with a response mime type",
        OLD,
    ),
    Case(
        "image_models_write_no_json",
        settings(responseMimeType="application/json"),
        "$.generationConfig.responseMimeType",
        "JSON mode is not enabled for models/gemini-2.5-flash-image",
        {"model": "gemini-2.5-flash-image"},
    ),
    Case(
        "speech_models_speak",
        ask(),
        "$.generationConfig.responseModalities",
        "response modalities (TEXT)",
        {"model": "gemini-2.5-flash-preview-tts"},
    ),
    Case("logprobs_are_asked_for", settings(logprobs=3), "$.generationConfig.logprobs", "response_logprobs"),
    Case("one_candidate", settings(candidateCount=2), "$.generationConfig.candidateCount", "Multiple candidates", NEW),
    Case(
        "thinking_is_supported",
        ask(generationConfig={"thinkingConfig": {"thinkingLevel": "LOW"}}),
        "$.generationConfig.thinkingConfig",
        "not enabled",
        {"model": "gemma-3-27b-it"},
    ),
    Case(
        "thinking_is_supported",
        settings(thinkingConfig={"includeThoughts": True}),
        "$.generationConfig.thinkingConfig",
        "not enabled",
        {"model": "gemini-2.0-flash"},
    ),
    Case(
        "level_or_budget",
        settings(thinkingConfig={"thinkingLevel": "LOW", "thinkingBudget": 5}),
        "$.generationConfig.thinkingConfig",
        "only one of thinking budget and thinking level",
        NEW,
    ),
    Case(
        "level_is_supported",
        settings(thinkingConfig={"thinkingLevel": "LOW"}),
        "$.generationConfig.thinkingConfig.thinkingLevel",
        "not supported",
        OLD,
    ),
    Case(
        "level_is_supported",
        settings(thinkingConfig={"thinkingLevel": "minimal"}),
        "$.generationConfig.thinkingConfig.thinkingLevel",
        "MINIMAL",
        {"model": "gemini-3.1-pro-preview"},
    ),
    Case(
        "budget_fits",
        settings(thinkingConfig={"thinkingBudget": 0}),
        "$.generationConfig.thinkingConfig.thinkingBudget",
        "The thinking budget 0 is invalid",
        {"model": "gemini-2.5-pro"},
    ),
    # the rest
    Case(
        "cached_content_excludes_settings",
        ask(cachedContent="cachedContents/x", tools=tools()),
        "$.tools",
        "CachedContent",
    ),
    Case(
        "cached_content_is_supported",
        ask(cachedContent="cachedContents/x"),
        "$.cachedContent",
        "not supported",
        {"model": "gemini-4-argon"},
    ),
    Case(
        "model_accepts_instructions",
        ask(systemInstruction=user("x")),
        "$.systemInstruction",
        "Developer instruction is not",
        {"model": "gemma-3-27b-it"},
    ),
    Case(
        "model_armor_replaces_safety",
        ask(modelArmorConfig={}, safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]),
        "$.safetySettings",
        "model_armor_config",
        VERTEX,
    ),
    Case("labels_start_with_a_letter", ask(labels={"1": "x"}), "$.labels", "lower-case letter"),
]

PARALLEL = ask(
    user("x"),
    model(call(**SIGNED), call("g")),
    user(response(), response("g")),
    tools=tools({"name": "f"}, {"name": "g"}),
)
GOOD: list[tuple[Body, Body]] = [
    (ask(), {}),
    (ask(), VERTEX),
    (PARALLEL, NEW),
    (PARALLEL, VERTEX | NEW),
    (ask({"parts": {"text": "no role"}}), {}),
    ({"contents": {"role": "USER", "parts": {"text": "single"}}}, {}),
    (ask(user("x"), user("y"), model(""), user("z")), {}),
    (ask(user("x"), model(call(**SIGNED)), model(call("g")), user(response(), response("g"))), NEW),
    (ask(user("x"), model(call()), user(response()), user("and now?")), NEW),
    (ask(user("x"), model(call()), user("never mind")), OLD),
    (ask(user("x"), model(call(), call("g")), user(response()), user(response("g"))), OLD),
    (ask(user("x"), model({"text": "", **SIGNED}), user("y")), NEW),
    (ask(user("x"), model(SIGNED), user("y")), NEW),
    (ask(user("x"), model("y")), OLD),
    (
        ask(user("x"), model(call(identifier="a", **SIGNED)), user(response(identifier="a"))),
        {"backend": "vertex", "version": "v1beta1"},
    ),
    (
        ask(
            user("x"),
            model(call(**SIGNED)),
            user(
                response(
                    response={"$ref": "pic"},
                    parts=[{"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "pic"}}],
                )
            ),
        ),
        NEW,
    ),
    (
        {
            "contents": [
                user("x"),
                {
                    "role": "model",
                    "parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}, "thought_signature": "c2s="}],
                },
                {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"x_y": None}}}]},
            ],
            "generation_config": {
                "max_output_tokens": 5,
                "thinking_config": {"include_thoughts": True, "thinking_level": "low"},
            },
            "tools": [
                {
                    "function_declarations": [
                        {
                            "name": "f",
                            "parameters": {"type": "object", "properties": {"a_b": {"any_of": [{"type": "string"}]}}},
                        }
                    ]
                }
            ],
            "system_instruction": None,
        },
        NEW,
    ),
    (ask(tools=tools(googleSearch={}), toolConfig={"includeServerSideToolInvocations": True}), NEW),
    (ask(tools=tools(googleSearch={})), VERTEX | NEW),
    (ask(tools=tools({"name": "f", "parametersJsonSchema": {"$defs": {}, "const": 1}})), {}),
    (ask(tools=tools(), toolConfig={"functionCallingConfig": {"mode": "any", "allowedFunctionNames": ["f"]}}), {}),
    (ask(tools=tools(), generationConfig={"responseMimeType": "application/json"}), NEW),
    (typed(fields(x={"type": "string", "minLength": "1"}, y={"type": "array", "items": {"type": "INTEGER"}})), {}),
    (typed(fields(x={"anyOf": [{"type": "STRING"}, {"type": "NULL"}]})), VERTEX),
    (
        settings(responseMimeType="application/json", responseJsonSchema={"type": "object"}, temperature=0, topK=40.0),
        {},
    ),
    (ask(safetySettings=[{"category": 7, "threshold": 4}]), {}),
]


def test_split_responses_are_a_wrong_count_and_out_of_turn() -> None:
    split = ask(user("x"), model(call(**SIGNED), call("g")), user(response()), user(response("g")))
    assert [violation.path for violation in check_request(split, **NEW)] == [
        "$.contents[1].parts[0]",
        "$.contents[3].parts[0]",
    ]


def test_a_name_of_100_characters_is_for_vertex_only() -> None:
    long = ask(tools=tools({"name": "f" * 100}))
    assert check_request(long, backend="vertex") == ()
    assert check_request(long, backend="gemini") != ()


def answer(*parts: Body, finish: str | None = "STOP", **more: Any) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": list(parts) or [{"text": "hi"}]}, "index": 0}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 1, "thoughtsTokenCount": 20, "totalTokenCount": 26}
    return {
        "candidates": [candidate | ({"finishReason": finish} if finish else {})],
        "usageMetadata": usage,
        "modelVersion": "gemini-3.6-flash",
        **more,
    }


BAD_ANSWERS = [
    Case(SHAPE, answer(finish="end_turn"), "$.candidates[0].finishReason", "got 'end_turn'"),
    Case(
        SHAPE,
        answer({"functionCall": {"name": "f", "args": "{}"}}),
        "$.candidates[0].content.parts[0].functionCall.args",
        "expected object, got string",
    ),
    Case(
        SHAPE, answer(usageMetadata={"promptTokenCount": "5"}), "$.usageMetadata.promptTokenCount", "expected integer"
    ),
    Case("answer_or_block", {"candidates": []}, "$.candidates", "or a promptFeedback.blockReason"),
    Case("candidates_finish", answer(finish=None), "$.candidates[0].finishReason", "missing"),
    Case(
        "parts_have_one_kind",
        answer({"text": "x", "functionCall": {"name": "f"}}),
        "$.candidates[0].content.parts[0]",
        "got text, functionCall",
    ),
    Case(
        "calls_are_named",
        answer({"functionCall": {"args": {}}}),
        "$.candidates[0].content.parts[0].functionCall.name",
        "miss",
    ),
    Case(
        "usage_adds_up",
        answer(usageMetadata={"promptTokenCount": 5, "totalTokenCount": 6}),
        "$.usageMetadata.totalTokenCount",
        "expected the sum",
    ),
    Case(
        "usage_adds_up",
        answer(usageMetadata={"promptTokenCount": 5, "cachedContentTokenCount": 6, "totalTokenCount": 5}),
        "$.usageMetadata.cachedContentTokenCount",
        "part of promptTokenCount",
    ),
]
GOOD_ANSWERS = [
    answer(),
    answer({"functionCall": {"name": "f"}, **SIGNED}, {"text": "", "aNewKey": 1}),
    {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}},
    {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
    {"candidates": [{"content": {}, "finishReason": "SAFETY"}]},
]
ERROR = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}
