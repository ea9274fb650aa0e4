"""The gemini codec's cases: what the wire says, and what it means, for both directions."""

import json
from typing import Any

from msgspec import Raw, structs

from dragoman import ir
from dragoman.codecs.ids import invent_id

FAMILY = "google"
PLACEHOLDER = "skip_thought_signature_validator"

Json = dict[str, Any]


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def noted(**notes: Any) -> ir.Metadata:
    """What the codec notes on a node; a leading `_` stands for `~`."""
    return {FAMILY: {("~" + key[1:] if key[:1] == "_" else key): raw(value) for key, value in notes.items()}}


def spelled(**names: str) -> ir.Metadata:
    """Keys that were written in another way."""
    return {FAMILY: {f"~as:{name}": raw(spelling) for name, spelling in names.items()}}


# ── contents, both directions ─────────────────────────────────────────────────────────────────────────────────


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def from_user(*parts: ir.AnyPart, **fields: Any) -> ir.Message:
    return ir.Message("user", parts, **fields)


def from_model(*parts: ir.AnyPart, **fields: Any) -> ir.Message:
    return ir.Message("assistant", parts, **fields)


def results(*parts: ir.ToolResult, **fields: Any) -> ir.Message:
    return ir.Message("tool", parts, **fields)


HELLO = user({"text": "hi"})
GREETING = ir.Message("user", "hi")
CALLS = model({"functionCall": {"name": "f", "args": {"a": 1.0}, "id": "a1b2c3d4"}})
CALL = ir.ToolCall("a1b2c3d4", "f", {"a": 1.0})
CALLED = from_model(CALL)
SIGNED = ir.Signature(FAMILY, "Cg+/=")
CODE = {"executableCode": {"language": "PYTHON", "code": "1+1", "id": "c1"}}
OUTCOME = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "c1"}}
SEARCHES = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}}
FOUND = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}}


def responds(response: Any = None, **more: Any) -> Json:
    written = {"name": "f"} | ({} if response is None else {"response": response}) | {"id": "a1b2c3d4"} | more
    return user({"functionResponse": written})


def answered(kind: ir.ResultKind, value: Any = None, **fields: Any) -> ir.Message:
    return results(ir.ToolResult("a1b2c3d4", "f", kind, value, **fields))


def unnamed(index: int, place: int = 0) -> str:
    """The id of a call that has none, in the content with this index."""
    return invent_id(f"$.contents[{index}]", place)


PNG = {"mimeType": "image/png", "data": "QQ=="}

CONTENTS: dict[str, tuple[list[Json], list[ir.Message]]] = {
    "text": ([HELLO], [GREETING]),
    "two texts": ([user({"text": "a"}, {"text": "b"})], [from_user(ir.Text("a"), ir.Text("b"))]),
    "empty text": ([user({"text": ""})], [ir.Message("user", "")]),
    "model text": ([HELLO, model({"text": "b"})], [GREETING, ir.Message("assistant", "b")]),
    "role in capitals": (
        [{"role": "USER", "parts": [{"text": "hi"}]}],
        [ir.Message("user", "hi", metadata=noted(_role="USER"))],
    ),
    "no role": ([{"parts": [{"text": "hi"}]}], [ir.Message("user", "hi", metadata=noted(_role=None))]),
    "lone part": (
        [{"role": "user", "parts": {"text": "hi"}}],
        [ir.Message("user", "hi", metadata={FAMILY: {"~single:parts": raw(value=True)}})],
    ),
    "no parts": ([HELLO, {"role": "model"}], [GREETING, from_model(metadata=noted(_parts="absent"))]),
    "empty parts": ([HELLO, model()], [GREETING, from_model(metadata=noted(_parts=[]))]),
    "unknown key on a part": (
        [user({"text": "hi", "later": 1})],
        [from_user(ir.Text("hi", metadata=noted(later=1)))],
    ),
    "no thought, said aloud": (
        [user({"text": "hi", "thought": False})],
        [from_user(ir.Text("hi", metadata={FAMILY: {"~raw:thought": raw(value=False)}}))],
    ),
    "thought": (
        [model({"text": "hm", "thought": True}, {"text": "b"})],
        [from_model(ir.Reasoning("hm", metadata=noted(_thought=True)), ir.Text("b"))],
    ),
    "signed thought": (
        [model({"text": "hm", "thought": True, "thoughtSignature": "Cg+/="})],
        [from_model(ir.Reasoning("hm", SIGNED, metadata=noted(_thought=True)))],
    ),
    "signed text": (
        [model({"text": "b", "thoughtSignature": "Cg+/="})],
        [from_model(ir.Text("b", signature=SIGNED))],
    ),
    "signed empty text stays a part of its own": (
        [model({"text": "b"}, {"text": "", "thoughtSignature": "Cg+/="})],
        [from_model(ir.Text("b"), ir.Text("", signature=SIGNED))],
    ),
    "nothing but a signature": (
        [model({"thoughtSignature": "Cg+/="})],
        [from_model(ir.Text("", signature=SIGNED, metadata=noted(_text="absent")))],
    ),
    "picture": ([user({"inlineData": PNG})], [from_user(ir.Image("image/png", "QQ=="))]),
    "signed picture": (
        [model({"thoughtSignature": "Cg+/=", "inlineData": PNG})],
        [from_model(ir.Image("image/png", "QQ==", signature=SIGNED))],
    ),
    "picture in snake_case": (
        [user({"inline_data": {"mime_type": "image/png", "data": "QQ=="}})],
        [
            from_user(
                ir.Image(
                    "image/png",
                    "QQ==",
                    metadata={
                        FAMILY: {
                            "~as:inlineData": raw("inline_data"),
                            "~in:inlineData": raw({"~as:mimeType": "mime_type"}),
                        }
                    },
                )
            )
        ],
    ),
    "sound": (
        [user({"inlineData": {"mimeType": "audio/wav", "data": "QQ=="}})],
        [from_user(ir.Audio("audio/wav", "QQ=="))],
    ),
    "file": (
        [user({"fileData": {"fileUri": "gs://b/a.pdf", "mimeType": "application/pdf"}})],
        [from_user(ir.Document("application/pdf", url="gs://b/a.pdf"))],
    ),
    "film, with its settings": (
        [
            user(
                {
                    "fileData": {"fileUri": "https://youtu.be/x", "displayName": "F"},
                    "videoMetadata": {"startOffset": "10s"},
                }
            )
        ],
        [
            from_user(
                ir.Document(
                    url="https://youtu.be/x",
                    metadata={
                        FAMILY: {
                            "videoMetadata": raw({"startOffset": "10s"}),
                            "~in:fileData": raw({"displayName": "F"}),
                        }
                    },
                )
            )
        ],
    ),
    "picture of no type": (
        [user({"inlineData": {"data": "QQ=="}})],
        [from_user(ir.Document(None, "QQ==", metadata=noted(_mime="absent")))],
    ),
    "call that a user makes": (
        [user({"function_call": {"name": "f"}, "thoughtSignature": "Cg+/="})],
        [
            from_user(
                ir.Opaque(
                    FAMILY, "function_call", {"thoughtSignature": "Cg+/=", "function_call": {"name": "f"}}, SIGNED
                )
            )
        ],
    ),
    "result of a call without name": (
        [HELLO, model({"functionCall": {"args": {}, "id": "a1b2c3d4"}}), responds({"output": "22"})],
        [
            GREETING,
            from_model(ir.ToolCall("a1b2c3d4", "", {}, metadata=noted(_name="absent"))),
            answered("text", "22"),
        ],
    ),
    "member of tomorrow": (
        [user({"hologram": {"x": 1}})],
        [from_user(ir.Opaque(FAMILY, "hologram", {"hologram": {"x": 1}}))],
    ),
    "two members at once": (
        [model({"text": "b", "functionCall": {"name": "f", "args": {}}})],
        [
            from_model(
                ir.Opaque(FAMILY, "text+functionCall", {"text": "b", "functionCall": {"name": "f", "args": {}}}),
            )
        ],
    ),
    "call": ([HELLO, CALLS, responds({"output": "22"})], [GREETING, CALLED, answered("text", "22")]),
    "call without id": (
        [
            HELLO,
            model({"functionCall": {"name": "f", "args": {}}}),
            user({"functionResponse": {"name": "f", "response": {"output": "22"}}}),
        ],
        [
            GREETING,
            from_model(ir.ToolCall(unnamed(1), "f", {}, invented_id=True)),
            results(ir.ToolResult(unnamed(1), "f", "text", "22")),
        ],
    ),
    "calls without ids are matched by order": (
        [
            HELLO,
            model(*({"functionCall": {"name": "f", "args": {"n": n}}} for n in (1, 2))),
            user(*({"functionResponse": {"name": "f", "response": {"n": n}}} for n in (1, 2))),
        ],
        [
            GREETING,
            from_model(*(ir.ToolCall(unnamed(1, n - 1), "f", {"n": n}, invented_id=True) for n in (1, 2))),
            results(*(ir.ToolResult(unnamed(1, n - 1), "f", "data", {"n": n}) for n in (1, 2))),
        ],
    ),
    "call without args": (
        [HELLO, model({"functionCall": {"name": "f", "id": "a1b2c3d4"}})],
        [GREETING, from_model(ir.ToolCall("a1b2c3d4", "f", {}, metadata=noted(_args="absent")))],
    ),
    "signed call, unsigned sibling": (
        [
            HELLO,
            model(
                {"functionCall": {"name": "f", "args": {"a": 1.0}, "id": "a1b2c3d4"}, "thoughtSignature": "Cg+/="},
                {"functionCall": {"name": "g", "args": {}, "id": "e5f6g7h8"}},
            ),
        ],
        [GREETING, from_model(structs.replace(CALL, signature=SIGNED), ir.ToolCall("e5f6g7h8", "g", {}))],
    ),
    "stand-in for a signature": (
        [HELLO, model({"functionCall": {"name": "f", "args": {}, "id": "x"}, "thoughtSignature": PLACEHOLDER})],
        [GREETING, from_model(ir.ToolCall("x", "f", {}, metadata=noted(_signature=PLACEHOLDER)))],
    ),
    "call in snake_case": (
        [HELLO, model({"function_call": {"name": "f", "args": {"snake_case": 1}, "id": "x"}})],
        [
            GREETING,
            from_model(ir.ToolCall("x", "f", {"snake_case": 1}, metadata=spelled(functionCall="function_call"))),
        ],
    ),
    "call whose arguments were no JSON": (
        [HELLO, model({"functionCall": {"name": "f", "args": {"unparsed_arguments": "{oops"}, "id": "x"}})],
        [GREETING, from_model(ir.ToolCall("x", "f", arguments_text="{oops"))],
    ),
    "code that Google runs": (
        [HELLO, model(CODE | {"thoughtSignature": "Cg+/="}, OUTCOME)],
        [
            GREETING,
            from_model(
                ir.ServerToolCall(
                    "c1", "code_execution", FAMILY, CODE, SIGNED, kind="code_execution", input={"code": "1+1"}
                ),
                ir.ServerToolResult(
                    "c1", "code_execution", FAMILY, OUTCOME, kind="code_execution", parts=(ir.Text("2"),)
                ),
            ),
        ],
    ),
    "search that Google runs": (
        [HELLO, model(SEARCHES, FOUND)],
        [
            GREETING,
            from_model(
                ir.ServerToolCall("s1", "google_search_web", FAMILY, SEARCHES, kind="web_search", input={}),
                ir.ServerToolResult("s1", "google_search_web", FAMILY, FOUND, kind="web_search"),
            ),
        ],
    ),
    "call that a server answered": (
        [
            HELLO,
            model(
                {"functionCall": {"name": "f", "args": {}}},
                {"functionResponse": {"name": "f", "response": {"r": 1}}},
                {"text": "b"},
            ),
        ],
        [
            GREETING,
            from_model(
                ir.ServerToolCall(
                    unnamed(1), "f", FAMILY, {"functionCall": {"name": "f", "args": {}}}, kind="mcp", input={}
                ),
                ir.ServerToolResult(
                    unnamed(1),
                    "f",
                    FAMILY,
                    {"functionResponse": {"name": "f", "response": {"r": 1}}},
                    kind="mcp",
                    parts=(ir.Text('{"r":1}'),),
                ),
                ir.Text("b"),
            ),
        ],
    ),
    "result without id": (
        [HELLO, CALLS, user({"functionResponse": {"name": "f", "response": {"output": "22"}}})],
        [GREETING, CALLED, answered("text", "22", metadata=noted(_id=None))],
    ),
    "result under another name": (
        [HELLO, CALLS, responds({"output": "22"}, name="g")],
        [GREETING, CALLED, answered("text", "22", metadata=noted(_name="g"))],
    ),
    "result without response": (
        [HELLO, CALLS, responds()],
        [GREETING, CALLED, answered("data", {}, metadata=noted(_response="absent"))],
    ),
    "result with a reference of its own": (
        [HELLO, CALLS, responds({"schema": {"$ref": "#/x"}})],
        [GREETING, CALLED, answered("data", {"schema": {"$ref": "#/x"}}, metadata=noted(_ref=True))],
    ),
    "result with a picture": (
        [HELLO, CALLS, responds({"output": "look"}, parts=[{"inlineData": PNG}])],
        [GREETING, CALLED, answered("multimodal", parts=(ir.Text("look"), ir.Image("image/png", "QQ==")))],
    ),
    "result of nothing but a picture": (
        [HELLO, CALLS, responds({}, parts=[{"inlineData": PNG}])],
        [GREETING, CALLED, answered("multimodal", parts=(ir.Image("image/png", "QQ=="),))],
    ),
    "error with a picture": (
        [HELLO, CALLS, responds({"error": "no"}, parts=[{"inlineData": PNG}])],
        [GREETING, CALLED, answered("error", parts=(ir.Text("no"), ir.Image("image/png", "QQ==")))],
    ),
    "result with a picture and an object": (
        [HELLO, CALLS, responds({"is": {"$ref": "a.png"}}, parts=[{"inlineData": PNG}])],
        [
            GREETING,
            CALLED,
            answered(
                "multimodal",
                parts=(ir.Text('{"is":{"$ref":"a.png"}}', metadata=noted(_data=True)), ir.Image("image/png", "QQ==")),
                metadata=noted(_response={"is": {"$ref": "a.png"}}),
            ),
        ],
    ),
    "scheduled result": (
        [HELLO, CALLS, responds({"output": "22"}, scheduling="SILENT")],
        [
            GREETING,
            CALLED,
            answered("text", "22", metadata={FAMILY: {"~in:functionResponse": raw({"scheduling": "SILENT"})}}),
        ],
    ),
    "results in two contents": (
        [
            HELLO,
            model(*({"functionCall": {"name": "f", "args": {}, "id": name}} for name in ("x", "y"))),
            user({"functionResponse": {"name": "f", "response": {"output": "1"}, "id": "x"}}),
            user({"functionResponse": {"name": "f", "response": {"output": "2"}, "id": "y"}}),
        ],
        [
            GREETING,
            from_model(ir.ToolCall("x", "f", {}), ir.ToolCall("y", "f", {})),
            results(ir.ToolResult("x", "f", "text", "1")),
            results(ir.ToolResult("y", "f", "text", "2"), metadata=noted(_apart=True)),
        ],
    ),
    "results in another order": (
        [
            HELLO,
            model(*({"functionCall": {"name": "f", "args": {}, "id": name}} for name in ("x", "y"))),
            user(
                *({"functionResponse": {"name": "f", "response": {"output": name}, "id": name}} for name in ("y", "x"))
            ),
        ],
        [
            GREETING,
            from_model(ir.ToolCall("x", "f", {}), ir.ToolCall("y", "f", {})),
            results(*(ir.ToolResult(name, "f", "text", name) for name in ("y", "x")), metadata=noted(_order=True)),
        ],
    ),
    "result between texts": (
        [HELLO, CALLS, user({"text": "so:"}, *responds({"output": "22"})["parts"], {"text": "good?"})],
        [
            GREETING,
            CALLED,
            structs.replace(answered("text", "22"), metadata=noted(_places=[1])),
            from_user(ir.Text("so:"), ir.Text("good?"), metadata=noted(_joined=True)),
        ],
    ),
    "result, then text in a content of its own": (
        [HELLO, CALLS, responds({"output": "22"}), HELLO],
        [GREETING, CALLED, answered("text", "22"), GREETING],
    ),
    "role of former times": (
        [HELLO, CALLS, responds({"output": "22"}) | {"role": "function"}],
        [GREETING, CALLED, structs.replace(answered("text", "22"), metadata=noted(_role="function"))],
    ),
}


# Result kinds of the design's table: kind, value, response. Each cell both ways, but for those read as another kind.
KINDS: dict[str, tuple[ir.ResultKind, Any, Json]] = {
    "plain text": ("text", "15C", {"output": "15C"}),
    "text that looks like JSON": ("text", '{"a":1}', {"output": '{"a":1}'}),
    "empty text": ("text", "", {"output": ""}),
    "number": ("data", 0, {"output": 0}),
    "list": ("data", [1, "x"], {"output": [1, "x"]}),
    "empty list": ("data", [], {"output": []}),
    "null": ("data", None, {"output": None}),
    "false": ("data", False, {"output": False}),
    "object": ("data", {"temp": 22, "condition": "sunny"}, {"temp": 22, "condition": "sunny"}),
    "empty object": ("data", {}, {}),
    "object that has an output": ("data", {"output": {"x": 1}}, {"output": {"x": 1}}),
    "object with an output and more": ("data", {"output": "x", "more": 1}, {"output": "x", "more": 1}),
    "error": ("error", "timeout", {"error": "timeout"}),
    "error that is more than words": ("error", {"code": 5}, {"error": {"code": 5}}),
}


# ── settings, both directions ─────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
TOOL = {"name": "f", "description": "F", "parametersJsonSchema": SCHEMA}
FUNCTION = ir.ToolDefinition("f", "F", SCHEMA)
TYPED = {
    "type": "OBJECT",
    "properties": {"b": {"type": "STRING", "nullable": True}, "a": {"type": "ARRAY", "maxItems": "3"}},
    "propertyOrdering": ["a", "b"],
}
AS_JSON_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "maxItems": 3}, "b": {"type": ["string", "null"]}},
}


def config(**settings: Any) -> Json:
    return {"generationConfig": settings}


def tools(*objects: Json, **more: Any) -> Json:
    return {"tools": list(objects)} | more


def declared(*functions: Json) -> Json:
    return {"functionDeclarations": list(functions)}


def choice(**config: Any) -> Json:
    return tools(declared(TOOL), toolConfig={"functionCallingConfig": config})


def within(name: str, **extra: Any) -> ir.Metadata:
    return {FAMILY: {f"~in:{name}": raw(extra)}}


SETTINGS: dict[str, tuple[Json, Json]] = {
    "system": (
        {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
        {"messages": (ir.Message("system", "Be brief."), GREETING)},
    ),
    "system in two parts, with a role": (
        {"systemInstruction": {"role": "user", "parts": [{"text": "Be"}, {"text": "brief."}]}},
        {
            "messages": (
                ir.Message("system", (ir.Text("Be"), ir.Text("brief.")), metadata=noted(_role="user")),
                GREETING,
            )
        },
    ),
    "sampling": (
        config(maxOutputTokens=5, temperature=0, topP=0.5, topK=7, stopSequences=["END"], seed=3, candidateCount=1),
        {
            "max_output_tokens": 5,
            "temperature": 0,
            "top_p": 0.5,
            "top_k": 7,
            "stop": ("END",),
            "seed": 3,
            "candidates": 1,
        },
    ),
    "penalties": (
        config(presencePenalty=-1.5, frequencyPenalty=2),
        {"presence_penalty": -1.5, "frequency_penalty": 2},
    ),
    "numbers as text": (
        config(maxOutputTokens="5", temperature="0.5"),
        {
            "max_output_tokens": 5,
            "temperature": 0.5,
            "metadata": {
                FAMILY: {
                    "~in:generationConfig": raw({"~number:maxOutputTokens": "5", "~number:temperature": "0.5"}),
                }
            },
        },
    ),
    "nothing, said aloud": (config(), {"metadata": noted(**{"~raw:generationConfig": {}})}),
    "null": ({"generationConfig": None}, {"metadata": noted(**{"~raw:generationConfig": None})}),
    "settings of this API only": (
        config(responseModalities=["IMAGE"], imageConfig={"aspectRatio": "16:9"}),
        {"modalities": ("image",), "metadata": within("generationConfig", imageConfig={"aspectRatio": "16:9"})},
    ),
    "snake_case": (
        {"generation_config": {"max_output_tokens": 5}},
        {
            "max_output_tokens": 5,
            "metadata": {
                FAMILY: {
                    "~as:generationConfig": raw("generation_config"),
                    "~in:generationConfig": raw({"~as:maxOutputTokens": "max_output_tokens"}),
                }
            },
        },
    ),
    "fields of this API only": (
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}], "labels": {"a": "b"}},
        {
            "labels": {"a": "b"},
            "metadata": noted(safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]),
        },
    ),
    "model in the body": ({"model": "models/m"}, {"model": "models/m", "metadata": noted(_model=True)}),
    "no thinking": (
        config(thinkingConfig={"thinkingBudget": 0}),
        {"reasoning": ir.ReasoningSettings("off", metadata=noted(_config={"thinkingBudget": 0}))},
    ),
    "as much thinking as it takes": (
        config(thinkingConfig={"thinkingBudget": -1, "includeThoughts": True}),
        {
            "reasoning": ir.ReasoningSettings(
                "adaptive", visible=True, metadata=noted(_config={"thinkingBudget": -1, "includeThoughts": True})
            )
        },
    ),
    "thinking budget": (
        config(thinkingConfig={"thinkingBudget": 1024}),
        {"reasoning": ir.ReasoningSettings("on", budget_tokens=1024, metadata=noted(_config={"thinkingBudget": 1024}))},
    ),
    "thinking level": (
        config(thinkingConfig={"thinking_level": "HIGH", "later": 1}),
        {
            "reasoning": ir.ReasoningSettings(
                None, "high", metadata=noted(_config={"thinking_level": "HIGH", "later": 1}, later=1)
            )
        },
    ),
    "JSON": (config(responseMimeType="application/json"), {"output": ir.StructuredOutput("json")}),
    "JSON by a schema": (
        config(responseMimeType="application/json", responseJsonSchema=SCHEMA),
        {"output": ir.StructuredOutput("schema", SCHEMA)},
    ),
    "JSON by a typed schema": (
        config(responseMimeType="application/json", responseSchema=TYPED),
        {"output": ir.StructuredOutput("schema", AS_JSON_SCHEMA, metadata=noted(_typed=TYPED))},
    ),
    "JSON by a typed schema that is JSON Schema already": (
        config(responseMimeType="application/json", responseSchema=SCHEMA),
        {"output": ir.StructuredOutput("schema", SCHEMA, metadata=noted(_typed=True))},
    ),
    "JSON as Vertex v1 says it": (
        config(responseFormat=[{"text": {"mimeType": "APPLICATION_JSON", "schema": TYPED}}]),
        {
            "output": ir.StructuredOutput(
                "schema",
                AS_JSON_SCHEMA,
                metadata=noted(_format=[{"text": {"mimeType": "APPLICATION_JSON", "schema": TYPED}}]),
            )
        },
    ),
    "plain text, said aloud": (
        config(responseMimeType="text/plain"),
        {"metadata": {FAMILY: {"~in:generationConfig": raw({"~raw:responseMimeType": "text/plain"})}}},
    ),
    "one word of a list": (
        config(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a"]}),
        {
            "metadata": within(
                "generationConfig", responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a"]}
            )
        },
    ),
    "function": (tools(declared(TOOL)), {"tools": (FUNCTION,)}),
    "function without parameters": (tools(declared({"name": "f"})), {"tools": (ir.ToolDefinition("f"),)}),
    "typed parameters": (
        tools(declared({"name": "f", "parameters": TYPED})),
        {"tools": (ir.ToolDefinition("f", None, AS_JSON_SCHEMA, metadata=noted(_typed=TYPED)),)},
    ),
    "function that says more": (
        tools(declared(TOOL | {"behavior": "BLOCKING", "response": {"type": "STRING"}})),
        {"tools": (structs.replace(FUNCTION, metadata=noted(behavior="BLOCKING", response={"type": "STRING"})),)},
    ),
    "parameters in snake_case": (
        tools(declared({"name": "f", "parameters_json_schema": SCHEMA})),
        {
            "tools": (
                ir.ToolDefinition("f", None, SCHEMA, metadata=spelled(parametersJsonSchema="parameters_json_schema")),
            )
        },
    ),
    "functions and built-in tools": (
        tools(declared(TOOL, {"name": "g"}), {"googleSearch": {}}),
        {
            "tools": (
                FUNCTION,
                ir.ToolDefinition("g"),
                ir.ProviderTool("googleSearch", FAMILY, {"googleSearch": {}}, kind="web_search"),
            )
        },
    ),
    "tools spread in another way": (
        tools(declared(TOOL) | {"codeExecution": {}, "urlContext": None}, declared({"name": "g"})),
        {
            "tools": (
                FUNCTION,
                ir.ProviderTool("codeExecution", FAMILY, {"codeExecution": {}}, kind="code_execution"),
                ir.ToolDefinition("g"),
            ),
            "metadata": noted(
                _tools=[{"functions": 1, "built_in": 1, "spelling": {"urlContext": None}}, {"functions": 1}]
            ),
        },
    ),
    "no tools at all": ({"tools": []}, {"metadata": noted(_tools=[])}),
    "free choice": (choice(mode="AUTO"), {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("auto")}),
    "no choice": (choice(mode="NONE"), {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("none")}),
    "forced choice": (choice(mode="ANY"), {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required")}),
    "a set of names": (
        choice(mode="ANY", allowedFunctionNames=["f", "g"]),
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required", ("f", "g"))},
    ),
    "mode in small letters": (
        choice(mode="any"),
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required", metadata=noted(_mode="any"))},
    ),
    "mode as a number": (
        choice(mode=3),
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("none", metadata=noted(_mode=3))},
    ),
    "validated": (
        choice(mode="VALIDATED", allowedFunctionNames=["f"]),
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("auto", ("f",), noted(mode="VALIDATED"))},
    ),
    "no names, said aloud": (
        choice(mode="ANY", allowedFunctionNames=[]),
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("required", metadata=noted(_names=[]))},
    ),
    "choice that says more": (
        choice(mode="AUTO", later=True),
        {"tools": (FUNCTION,), "tool_choice": ir.ToolChoice("auto", metadata=noted(later=True))},
    ),
    "tool settings of this API only": (
        {"toolConfig": {"retrievalConfig": {"languageCode": "en"}}},
        {"metadata": within("toolConfig", retrievalConfig={"languageCode": "en"})},
    ),
}


# ── answers, both directions ──────────────────────────────────────────────────────────────────────────────────

COUNTS = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
USAGE = ir.Usage(10, 5, total=15, metadata=noted(_usageMetadata=COUNTS))
BLOCKED = {"blockReason": "SAFETY"}


def candidate(*parts: Json, reason: Any = "STOP", **more: Any) -> Json:
    return {"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, "index": 0} | more


def ended(reason: ir.FinishReason, word: str = "STOP", **fields: Any) -> ir.Finish:
    return ir.Finish(reason, word, **fields)


ANSWERS: dict[str, tuple[Json, ir.Completion]] = {
    "text": (
        {"candidates": [candidate({"text": "b"})], "usageMetadata": COUNTS, "modelVersion": "m", "responseId": "r"},
        ir.Completion((ir.Message("assistant", "b"),), ended("stop"), USAGE, "r", "m"),
    ),
    "calls, though it says STOP": (
        {"candidates": [candidate({"functionCall": {"name": "f", "args": {}}})], "responseId": "r"},
        ir.Completion(
            (from_model(ir.ToolCall(invent_id("r", 0), "f", {}, invented_id=True)),), ended("tool_calls"), id="r"
        ),
    ),
    "id that Google gave": (
        {"candidates": [candidate({"functionCall": {"name": "f", "args": {}, "id": "x"}})], "responseId": "r"},
        ir.Completion((from_model(ir.ToolCall("x", "f", {}, metadata=noted(_id=True))),), ended("tool_calls"), id="r"),
    ),
    "call that must not be run": (
        {"candidates": [candidate({"functionCall": {"name": "f", "args": {}}}, reason="UNEXPECTED_TOOL_CALL")]},
        ir.Completion(
            (from_model(ir.ToolCall("", "f", {}, invented_id=True, incomplete=True)),),
            ended("error", "UNEXPECTED_TOOL_CALL"),
        ),
    ),
    "no index, and more to say": (
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "b"}]},
                    "finishReason": "STOP",
                    "avgLogprobs": -0.5,
                    "finishMessage": "m",
                }
            ],
            "createTime": "2026-11-15T10:00:00.5Z",
            "modelStatus": {"stage": "STABLE"},
        },
        ir.Completion(
            (
                ir.Message(
                    "assistant",
                    "b",
                    metadata={
                        FAMILY: {"~index": raw(None), "~in:candidate": raw({"finishMessage": "m", "avgLogprobs": -0.5})}
                    },
                ),
            ),
            ended("stop"),
            created=1794736800,
            metadata={
                FAMILY: {"modelStatus": raw({"stage": "STABLE"}), "~raw:createTime": raw("2026-11-15T10:00:00.5Z")}
            },
        ),
    ),
    "spent on thinking": (
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]},
        ir.Completion((from_model(metadata=noted(_parts="absent")),), ended("length", "MAX_TOKENS")),
    ),
    "no content": (
        {"candidates": [{"finishReason": "SAFETY", "index": 0}]},
        ir.Completion((from_model(metadata=noted(_content="absent")),), ended("content_filter", "SAFETY")),
    ),
    "empty content": (
        {"candidates": [{"content": {}, "finishReason": "SAFETY", "index": 0}]},
        ir.Completion((from_model(metadata=noted(_role=None, _parts="absent")),), ended("content_filter", "SAFETY")),
    ),
    "blocked prompt": (
        {"promptFeedback": BLOCKED, "usageMetadata": COUNTS},
        ir.Completion(
            (),
            ended("content_filter", "SAFETY"),
            USAGE,
            metadata={FAMILY: {"~raw:promptFeedback": raw(BLOCKED)}},
        ),
    ),
    "no candidates, said aloud": (
        {"candidates": [], "promptFeedback": BLOCKED | {"safetyRatings": []}},
        ir.Completion(
            (),
            ended("content_filter", "SAFETY"),
            metadata=noted(_candidates=[], promptFeedback=BLOCKED | {"safetyRatings": []}),
        ),
    ),
    "nothing but counts": (
        {"usageMetadata": COUNTS},
        ir.Completion((), None, USAGE, metadata=noted(_candidates=None)),
    ),
    "two candidates": (
        {
            "candidates": [
                candidate({"text": "a"}),
                candidate({"text": "b"}, reason="MAX_TOKENS", index=1),
            ]
        },
        ir.Completion(
            (ir.Message("assistant", "a"), ir.Message("assistant", "b")),
            ended("stop"),
            finishes=(ended("stop"), ended("length", "MAX_TOKENS")),
        ),
    ),
    "reason as a number": (
        {"candidates": [candidate({"text": "b"}, reason=2)]},
        ir.Completion((ir.Message("assistant", "b"),), ended("length", "MAX_TOKENS", metadata=noted(_word=2))),
    ),
    "reason of tomorrow": (
        {"candidates": [candidate({"text": "b"}, reason="TIRED")]},
        ir.Completion((ir.Message("assistant", "b"),), ended("unknown", "TIRED", metadata=noted(_word="TIRED"))),
    ),
    "to be continued": (
        {"candidates": [candidate({"text": "b"}, reason="CONTINUATION", continuationToken="QQ==")]},
        ir.Completion(
            (ir.Message("assistant", "b", metadata=within("candidate", continuationToken="QQ==")),),
            ended("pause", "CONTINUATION"),
        ),
    ),
    "all counts": (
        {
            "candidates": [candidate({"text": "b"})],
            "usageMetadata": {
                "promptTokenCount": 100,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 20,
                "toolUsePromptTokenCount": 7,
                "cachedContentTokenCount": 60,
                "totalTokenCount": 132,
                "promptTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 70},
                    {"modality": "IMAGE", "tokenCount": 30},
                ],
                "trafficType": "ON_DEMAND",
            },
        },
        ir.Completion(
            (ir.Message("assistant", "b"),),
            ended("stop"),
            ir.Usage(107, 25, 60, None, 20, 30, 132),
        ),
    ),
}
