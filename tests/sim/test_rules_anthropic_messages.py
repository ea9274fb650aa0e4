from typing import Any

from dragoman.sim.rules.anthropic_messages import check_request
from tests.sim.rule_cases import SHAPE, Case

Body = dict[str, Any]

OLD: Body = {"version": "2023-06-01"}
CLOSED: Body = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
CACHED: Body = {"cache_control": {"type": "ephemeral"}}
LONG_CACHED: Body = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def ask(*messages: Body, model: str = "claude-opus-5", **settings: Any) -> Body:
    return {"model": model, "max_tokens": 4096, "messages": list(messages) or [user("hi")], **settings}


def user(*content: Any) -> Body:
    return {
        "role": "user",
        "content": content[0] if len(content) == 1 and isinstance(content[0], str) else list(content),
    }


def assistant(*content: Any) -> Body:
    return user(*content) | {"role": "assistant"}


def system(*content: Any) -> Body:
    return user(*content) | {"role": "system"}


def text(words: str = "hi", **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def call(identifier: str = "a", **more: Any) -> Body:
    return {"type": "tool_use", "id": identifier, "name": "f", "input": {}, **more}


def result(identifier: str = "a", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": identifier, **more}


def tool(name: str = "f", **more: Any) -> Body:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def strict(schema: Body) -> Body:
    return ask(tools=[tool(input_schema=schema, strict=True)])


def image(**source: Any) -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"} | source}


def document(words: str = "x", **more: Any) -> Body:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": words}, **more}


def found(**more: Any) -> Body:
    return {"type": "search_result", "source": "kb://1", "title": "T", "content": [text()], **more}


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
THINKING = {"type": "thinking", "thinking": "", "signature": "sig"}
CITED = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
CODE = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
RUNNING = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}
FORMAT = {"format": {"type": "json_schema", "schema": CLOSED}}
MANUAL = {"type": "enabled", "budget_tokens": 1024}
ALL_COMPUTER = (
    "key hold_key type cursor_position mouse_move left_mouse_down left_mouse_up left_click left_click_drag right_click "
    "middle_click double_click triple_click scroll wait screenshot zoom"
)

BAD = [
    # shapes
    Case(SHAPE, {"model": "m", "messages": [user("x")]}, "$.max_tokens", "max_tokens: Field required"),
    Case(SHAPE, ask() | {"messages": []}, "$.messages", "List should have at least 1 item"),
    Case(SHAPE, ask(n=1), "$.n", "n: Extra inputs are not permitted"),
    Case(SHAPE, ask({"role": "tool", "content": "x"}), "$.messages[0].role", "Input should be 'user', 'assistant'"),
    Case(SHAPE, ask(user({"type": "video"})), "$.messages[0].content[0].type", "Input tag 'video' found using 'type'"),
    Case(SHAPE, ask(user({"text": "x"})), "$.messages[0].content[0].type", "messages.0.content.0.type: Field required"),
    Case(
        SHAPE,
        ask(user(text(name="x"))),
        "$.messages[0].content[0].name",
        "messages.0.content.0.text.name: Extra inputs",
    ),
    Case(
        SHAPE,
        ask(user("x"), assistant(THINKING | CACHED), user("y")),
        "$.messages[1].content[0].cache_control",
        "Extra",
    ),
    Case(
        SHAPE,
        ask(user("x"), assistant(THINKING | {"signature": ""}), user("y")),
        "$.messages[1].content[0].signature",
        "at least 1 character",
    ),
    Case(
        SHAPE,
        ask(user("x"), assistant(call("functions.f:0")), user(result())),
        "$.messages[1].content[0].id",
        "pattern",
    ),
    Case(
        SHAPE,
        ask(user("x"), assistant(call(input="{}")), user(result())),
        "$.messages[1].content[0].input",
        "Input should be a valid dictionary",
    ),
    Case(
        SHAPE,
        ask(user("x"), assistant(SEARCH | {"id": "call_1"}), user("y")),
        "$.messages[1].content[0].id",
        "srvtoolu_",
    ),
    Case(SHAPE, ask(user(image(media_type="image/bmp"))), "$.messages[0].content[0].source.media_type", "'image/webp'"),
    Case(
        SHAPE,
        ask(user(document() | {"source": {"type": "base64", "media_type": "text/csv", "data": "AA"}})),
        "$.messages[0].content[0].source.media_type",
        "'application/pdf'",
    ),
    Case(SHAPE, ask(system=[image()]), "$.system[0].type", "does not match any of the expected tags"),
    Case(SHAPE, ask(tools=[{"name": "f"}]), "$.tools[0].input_schema", "tools.0.custom.input_schema: Field required"),
    Case(SHAPE, ask(tools=[tool(input_schema={})]), "$.tools[0].input_schema.type", "type: Field required"),
    Case(SHAPE, ask(tools=[tool(input_schema={"type": "string"})]), "$.tools[0].input_schema.type", "be 'object'"),
    Case(SHAPE, ask(tools=[tool(parameters={})]), "$.tools[0].parameters", "Extra inputs are not permitted"),
    Case(SHAPE, ask(tools=[tool("a b")]), "$.tools[0].name", "String should match pattern"),
    Case(SHAPE, ask(tools=[{"type": "bash_20250124", "name": "shell"}]), "$.tools[0].name", "Input should be 'bash'"),
    Case(SHAPE, ask(tools=[{"type": "function", "name": "f"}]), "$.tools[0].type", "Input tag 'function'"),
    Case(
        SHAPE, ask(tools=[{"type": "computer_toolset_20260801", "strict": True}]), "$.tools[0].strict", "Extra inputs"
    ),
    Case(SHAPE, ask(tools=[tool()], tool_choice={"type": "required"}), "$.tool_choice.type", "Input tag 'required'"),
    Case(
        SHAPE,
        ask(tools=[tool()], tool_choice={"type": "none", "disable_parallel_tool_use": True}),
        "$.tool_choice.disable_parallel_tool_use",
        "Extra inputs",
    ),
    Case(SHAPE, ask(thinking={"type": "enabled", "budget_tokens": 100}), "$.thinking.budget_tokens", "equal to 1024"),
    Case(SHAPE, ask(thinking={"type": "disabled", "display": "omitted"}), "$.thinking.display", "Extra inputs"),
    Case(SHAPE, ask(output_config={"effort": "extreme"}), "$.output_config.effort", "Input should be 'low'"),
    Case(
        SHAPE,
        ask(output_config={"format": {"type": "json_schema", "name": "x", "schema": CLOSED}}),
        "$.output_config.format.name",
        "Extra inputs",
    ),
    Case(SHAPE, ask(metadata={"user": "x"}), "$.metadata.user", "Extra inputs"),
    Case(SHAPE, ask(cache_control={"type": "ephemeral", "ttl": "1d"}), "$.cache_control.ttl", "'5m', '1h'"),
    Case(SHAPE, ask(temperature=-5.0), "$.temperature", "greater than or equal to 0", OLD),
    Case(SHAPE, ask(fallbacks=[{"model": "m", "temperature": 1}]), "$.fallbacks[0].temperature", "Extra inputs"),
    Case(
        SHAPE,
        ask(
            context_management={
                "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 10}}]
            }
        ),
        "$.context_management.edits[0].trigger.value",
        "50000",
    ),
    # who says what
    Case(
        "blocks_fit_their_role",
        ask(user("x"), assistant(image()), user("y")),
        "$.messages[1].content[0]",
        "`image` blocks can only be in `user` messages",
    ),
    Case(
        "blocks_fit_their_role",
        ask(user(THINKING)),
        "$.messages[0].content[0]",
        "`thinking` blocks can only be in `ass",
    ),
    Case(
        "documents_are_the_users",
        ask(user("x"), assistant(document()), user("y")),
        "$.messages[1].content[0]",
        "`user`",
    ),
    Case(
        "citations_are_the_assistants",
        ask(user(text(citations=[CITED]))),
        "$.messages[0].content[0].citations",
        "not perm",
    ),
    Case(
        "citations_are_the_assistants",
        ask(user(found(content=[text(citations=[CITED])]))),
        "$.messages[0].content[0].content[0].citations",
        "not permitted",
    ),
    Case(
        "messages_say_something",
        ask(user("")),
        "$.messages[0]",
        "messages.0: all messages must have non-empty content except for the optional final assistant message",
    ),
    Case("messages_say_something", ask(user("x"), assistant(), user("y")), "$.messages[1]", "non-empty content"),
    Case(
        "texts_say_something",
        ask(user(text(""))),
        "$.messages[0].content[0]",
        "messages: text content blocks must be non-empty",
    ),
    Case("texts_say_something", ask(user(" \n")), "$.messages[0].content", "must contain non-whitespace text"),
    Case(
        "texts_say_something", ask(user("x"), assistant(text(" ")), user("y")), "$.messages[1].content[0]", "non-white"
    ),
    Case("texts_say_something", ask(system=[text("")]), "$.system[0]", "system: text content blocks must be non-empty"),
    Case(
        "search_results_say_something",
        ask(user(found(content=[text("")]))),
        "$.messages[0].content[0].content[0]",
        "empty",
    ),
    # pairs
    Case(
        "calls_are_answered",
        ask(user("x"), assistant(call(), call("b")), user(result())),
        "$.messages[1].content[1]",
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b",
    ),
    Case(
        "calls_are_answered",
        ask(user("x"), assistant(call()), user("never mind")),
        "$.messages[1].content[0]",
        "after: a",
    ),
    Case(
        "calls_close_their_turn",
        ask(user("x"), assistant(call(), text()), user(result())),
        "$.messages[1].content[1]",
        "`tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    Case("results_have_calls", ask(user(result())), "$.messages[0].content[0]", "unexpected `tool_use_id` found"),
    Case(
        "calls_are_answered_once",
        ask(user("x"), assistant(call()), user(result(), result())),
        "$.messages[2].content[0]",
        "each tool_use must have a single result",
    ),
    Case(
        "results_come_first",
        ask(user("x"), assistant(call()), user(text(), result())),
        "$.messages[2].content[1]",
        "must come first",
    ),
    Case(
        "call_ids_differ",
        ask(user("x"), assistant(call()), user(result()), assistant(call()), user(result())),
        "$.messages[3].content[0]",
        "`tool_use` ids must be unique",
    ),
    Case(
        "failures_explain_themselves",
        ask(user("x"), assistant(call()), user(result(is_error=True))),
        "$.messages[2].content[0]",
        "content cannot be empty if `is_error` is true",
    ),
    Case(
        "failures_explain_themselves",
        ask(user("x"), assistant(call()), user(result(content=[]))),
        "$.messages[2].content[0].content",
        "empty list",
    ),
    Case(
        "results_do_not_mix_search",
        ask(user("x"), assistant(call()), user(result(content=[found(), text()]))),
        "$.messages[2].content[0]",
        "cannot be mixed",
    ),
    Case(
        "programmatic_results_are_text",
        ask(user("x"), assistant(RUNNING, call(caller=CODE)), user(result(content=[image()])), container="c"),
        "$.messages[2].content[0].content[0]",
        "only hold text",
    ),
    Case(
        "programmatic_replies_are_results",
        ask(user("x"), assistant(RUNNING, call(caller=CODE)), user(result())),
        "$.container",
        "needs the container id",
    ),
    Case(
        "toolset_results_name_their_toolset",
        ask(user("x"), assistant(call(toolset_name="computer")), user(result())),
        "$.messages[2].content[0].toolset_name",
        "'computer'",
    ),
    Case(
        "server_calls_are_answered",
        ask(user("x"), assistant(SEARCH), user("y")),
        "$.messages[1].content[0]",
        "`web_search` tool use with id srvtoolu_1 was found without a corresponding `web_search_tool_result` block",
    ),
    Case(
        "server_results_have_calls",
        ask(user("x"), assistant(SEARCHED), user("y")),
        "$.messages[1].content[0]",
        "unexpected `web_search_tool_result` block",
    ),
    Case(
        "tool_loops_start_with_thinking",
        ask(user("x"), assistant(call()), user(result()), model="claude-sonnet-4-5", thinking=MANUAL),
        "$.messages[1].content[0]",
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    ),
    # the last word
    Case("prefill_is_supported", ask(user("x"), assistant("y")), "$.messages[1]", "must end with a user message"),
    Case(
        "prefill_is_supported",
        ask(user("x"), assistant("y"), model="claude-haiku-4-5", output_config=FORMAT),
        "$.messages[1]",
        "structured output",
    ),
    Case(
        "prefill_has_no_trailing_whitespace",
        ask(user("x"), assistant("y "), model="claude-haiku-4-5"),
        "$.messages[1].content",
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    # system messages
    Case(
        "only_system_messages_configure",
        ask(user("x") | {"clear_at": "never"}),
        "$.messages[0].clear_at",
        "Extra inputs",
    ),
    Case(
        "system_messages_are_supported",
        ask(user("x"), system("y"), model="claude-opus-4-7"),
        "$.messages[1].role",
        "not supported on this model",
    ),
    Case("system_messages_are_in_place", ask(system("y"), user("x")), "$.messages[0]", "must follow a user message"),
    Case(
        "signed_compaction_comes_first",
        ask(
            user(
                "x",
            ),
            assistant({"type": "compaction", "content": "s", "signature": "z"}),
            user("y"),
        ),
        "$.messages[1].content[0]",
        "first block",
    ),
    # sampling, thinking, effort
    Case("sampling_exists", ask(temperature=1.0), "$.temperature", "temperature: Extra inputs are not permitted"),
    Case(
        "sampling_is_supported",
        ask(temperature=0.5),
        "$.temperature",
        "`temperature` is deprecated for this model",
        OLD,
    ),
    Case(
        "sampling_is_supported", ask(temperature=1, top_p=0.9, model="claude-haiku-4-5"), "$.top_p", "cannot both", OLD
    ),
    Case(
        "thinking_fixes_sampling",
        ask(temperature=0.5, thinking=MANUAL, model="claude-sonnet-4-6"),
        "$.temperature",
        "may only be set to 1 when thinking is enabled",
        OLD,
    ),
    Case("thinking_fixes_sampling", ask(top_p=0.5, thinking=MANUAL, model="claude-sonnet-4-6"), "$.top_p", "0.95", OLD),
    Case("thinking_is_supported", ask(thinking=MANUAL), "$.thinking.type", '"thinking.type.enabled" is not supported'),
    Case(
        "thinking_is_supported",
        ask(thinking={"type": "adaptive"}, model="claude-haiku-4-5"),
        "$.thinking.type",
        "adaptive thinking is not supported on this model",
    ),
    Case(
        "thinking_budget_fits",
        ask(thinking=MANUAL | {"budget_tokens": 5000}, model="claude-sonnet-4-5"),
        "$.thinking.budget_tokens",
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    Case(
        "effort_is_supported",
        ask(output_config={"effort": "xhigh"}, model="claude-opus-4-6"),
        "$.output_config.effort",
        "Supported levels: high, low, max, medium.",
    ),
    Case(
        "effort_is_supported",
        ask(output_config={"effort": "max"}, thinking={"type": "disabled"}),
        "$.output_config.effort",
        "effort level 'max'",
    ),
    # tools
    Case("tool_names_differ", ask(tools=[tool(), tool()]), "$.tools[1].name", "tools: Tool names must be unique."),
    Case(
        "tool_choice_needs_tools",
        ask(tool_choice={"type": "auto"}),
        "$.tool_choice",
        "only be specified while providing",
    ),
    Case(
        "chosen_tool_exists",
        ask(tools=[tool()], tool_choice={"type": "tool", "name": "g"}),
        "$.tool_choice.name",
        "'g'",
    ),
    Case(
        "chosen_tool_exists",
        ask(tools=[tool(allowed_callers=["code_execution_20260120"])], tool_choice={"type": "tool", "name": "f"}),
        "$.tool_choice.name",
        "cannot be called directly",
    ),
    Case(
        "forced_choice_is_supported",
        ask(tools=[tool()], tool_choice={"type": "any"}, model="claude-opus-5-5"),
        "$.tool_choice.type",
        'type "tool" and "any" are not supported for this model',
    ),
    Case(
        "forced_choice_is_supported",
        ask(tools=[tool()], tool_choice={"type": "any"}, thinking=MANUAL, model="claude-sonnet-4-5"),
        "$.tool_choice.type",
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    Case("deferred_tools_leave_one", ask(tools=[tool(defer_loading=True)]), "$.tools", "At least one tool"),
    Case(
        "deferred_tools_leave_one",
        ask(tools=[tool(), tool("g", defer_loading=True, **CACHED)]),
        "$.tools[1].defer_loading",
        "cannot have cache_control",
    ),
    Case(
        "references_name_tools",
        ask(
            user("x"),
            assistant(call()),
            user(result(content=[{"type": "tool_reference", "tool_name": "g"}])),
            tools=[tool()],
        ),
        "$.messages[2].content[0].content[0]",
        "'g' not found",
    ),
    Case(
        "domains_are_allowed_or_blocked",
        ask(
            tools=[
                {
                    "type": "web_search_20250305",
                    "name": "web_search",
                    "allowed_domains": ["a"],
                    "blocked_domains": ["b"],
                }
            ]
        ),
        "$.tools[0]",
        "only one of allowed_domains",
    ),
    Case(
        "code_called_tools_are_unrestricted",
        ask(tools=[tool(allowed_callers=["code_execution_20260120"], strict=True, input_schema=CLOSED)]),
        "$.tools[0].strict",
        "strict tools cannot be called from code",
    ),
    Case(
        "toolsets_have_no_rivals",
        ask(tools=[{"type": "computer_toolset_20260801"}, tool("computer")]),
        "$.tools",
        "named",
    ),
    Case(
        "toolsets_offer_something",
        ask(
            tools=[
                {
                    "type": "computer_toolset_20260801",
                    "configs": {name: {"enabled": False} for name in ALL_COMPUTER.split()},
                }
            ]
        ),
        "$.tools[0].configs",
        "every member",
    ),
    Case(
        "mcp_toolsets_match_servers",
        ask(
            mcp_servers=[{"type": "url", "url": "https://x", "name": "s"}],
            tools=[{"type": "mcp_toolset", "mcp_server_name": "s"}, {"type": "mcp_toolset", "mcp_server_name": "s"}],
        ),
        "$.mcp_servers[0]",
        "exactly one mcp_toolset",
    ),
    # schemas
    Case(
        "tool_schemas_are_plain_objects",
        ask(tools=[tool(input_schema={"type": "object", "anyOf": []})]),
        "$.tools[0].input_schema",
        "does not support oneOf, allOf, or anyOf at the top level",
    ),
    Case(
        "compiled_objects_are_closed",
        strict({"type": "object", "properties": {}}),
        "$.tools[0].input_schema",
        "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
    ),
    Case(
        "compiled_objects_are_closed",
        strict(CLOSED | {"properties": {"city": True}}),
        "$.tools[0].input_schema",
        "property 'properties' is not supported",
    ),
    Case(
        "compiled_schemas_use_known_keywords",
        ask(
            output_config={
                "format": {
                    "type": "json_schema",
                    "schema": CLOSED | {"properties": {"city": {"type": "integer", "minimum": 1}}},
                }
            }
        ),
        "$.output_config.format.schema.properties.city",
        "For 'integer' type, property 'minimum' is not supported",
    ),
    Case(
        "compiled_references_resolve",
        strict(CLOSED | {"properties": {"city": {"$ref": "#/$defs/City"}}}),
        "$.tools[0].input_schema.properties.city",
        "cannot resolve",
    ),
    Case(
        "compiled_references_resolve",
        strict(
            CLOSED
            | {
                "properties": {"city": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
            }
        ),
        "$.tools[0].input_schema",
        "A -> B -> A",
    ),
    Case(
        "compiled_schemas_are_small",
        strict(CLOSED | {"required": [], "properties": {f"p{number}": {"type": "string"} for number in range(25)}}),
        "$.tools",
        "too many optional parameters (25)",
    ),
    Case(
        "compiled_schemas_are_small",
        ask(tools=[tool(str(n), strict=True, input_schema=CLOSED) for n in range(21)]),
        "$.tools",
        "Too many strict tools (21)",
    ),
    # caching
    Case(
        "cache_marks_are_few",
        ask(user(*[text(**CACHED)] * 3), system=[text(**CACHED)], **CACHED),
        "$",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    Case(
        "long_cache_comes_first",
        ask(user(text(**LONG_CACHED)), tools=[tool(**CACHED)]),
        "$.messages[0].content[0].cache_control.ttl",
        "must not come after a ttl='5m'",
    ),
    Case(
        "empty_text_is_not_cached",
        ask(user("x"), assistant(call()), user(result(content=[text("", **CACHED)]))),
        "$.messages[2].content[0].content[0].cache_control",
        "cannot be set for empty text blocks",
    ),
    # output and the rest
    Case("one_output_format", ask(output_config=FORMAT, output_format=FORMAT["format"]), "$.output_format", "only one"),
    Case("stop_sequences_are_visible", ask(stop_sequences=["x", "\n"]), "$.stop_sequences[1]", "non-whitespace"),
    Case(
        "cache_warming_asks_for_nothing_else",
        ask(stream=True) | {"max_tokens": 0},
        "$.max_tokens",
        "combined with stream",
    ),
    Case(
        "citations_are_all_or_none",
        ask(user(document(citations={"enabled": True}), document("y"))),
        "$.messages",
        "all or none of the `document` blocks",
    ),
    Case(
        "citations_exclude_formats",
        ask(user(document(citations={"enabled": True})), output_config=FORMAT),
        "$.messages[0].content[0]",
        "citations cannot be used with structured output",
    ),
    Case(
        "media_is_bare_base64",
        ask(user(image(data="data:image/png;base64,AAAA"))),
        "$.messages[0].content[0].source.data",
        "without a data URL prefix",
    ),
    Case("images_are_countable", ask(user(*[image()] * 601)), "$.messages", "at most 600 images"),
    Case(
        "container_is_a_plain_id",
        ask(container={"id": "c"}),
        "$.container",
        "container: Input should be a valid string",
    ),
    Case("threads_stand_alone", ask(thread={"type": "create"}, **CACHED), "$.thread", "cache_control"),
    Case(
        "context_edits_fit",
        ask(context_management={"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "clear_thinking_20251015"}]}),
        "$.context_management.edits[1]",
        "first edit",
    ),
    Case("fallbacks_differ", ask(fallbacks=[{"model": "m"}, {"model": "m"}]), "$.fallbacks", "distinct"),
]

GOOD: list[tuple[Body, Body]] = [
    (ask(), {}),
    (ask(user("x"), user("y"), assistant("z"), user("w")), {}),
    (ask(assistant("first"), user("x")), {}),
    (
        ask(
            user("x"),
            assistant(text("let me see"), call(), call("b")),
            user(result(content="1")),
            user(result("b"), text()),
        ),
        {},
    ),
    (ask(user("x"), assistant(THINKING, call()), user(result(content=[text(), image()])), tools=[tool()]), {}),
    (ask(user("x"), assistant(SEARCH, SEARCHED, text(" "), text("found")), user("thanks")), {}),
    (ask(user("x"), assistant(call(), SEARCH), user(result())), {}),
    (ask(user("x"), assistant(SEARCH)), {}),
    (ask(user("x"), assistant(RUNNING, call(caller=CODE)), user(result(content="1")), container="c"), {}),
    (ask(user("x"), assistant("{"), model="claude-haiku-4-5"), {}),
    (ask(user("x"), assistant(""), model="claude-haiku-4-5"), {}),
    (ask(user("x"), system("speak Spanish"), assistant("Hola"), user("y")), {}),
    (ask(user("x"), system("speak Spanish")), {}),
    (ask(user(result()), thread={"type": "continue", "previous_message_id": "msg_1"}), {}),
    (ask(temperature=0.2, model="claude-sonnet-4-5"), OLD),
    (ask(temperature=0.7, top_p=0.3, top_k=50, model="claude-sonnet-4-0"), OLD),
    (ask(temperature=1, thinking=MANUAL, model="claude-sonnet-4-5"), OLD),
    (ask(user("x"), assistant(document()), user("y")), OLD),
    (ask(temperature=0.2, model="claude-3-haiku"), {"version": "bedrock-2023-05-31"}),
    (ask(tools=[tool()], tool_choice={"type": "any", "disable_parallel_tool_use": True}), {}),
    (ask(tools=[tool(type=None), tool("g", type="custom", description="")]), {}),
    (
        ask(tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": None, "allowed_domains": ["a"]}]),
        {},
    ),
    (strict(CLOSED | {"properties": {"city": {"$ref": "#/$defs/C"}}, "$defs": {"C": {"type": "string"}}}), {}),
    (ask(output_config=FORMAT | {"effort": "high"}), {}),
    (ask(user(text(**CACHED)), tools=[tool(**LONG_CACHED)], system=[text(**LONG_CACHED)], **CACHED), {}),
    (ask(system=""), {}),
]


def test_the_model_may_be_named_beside_the_body() -> None:
    prefilled = ask(user("x"), assistant("y"), model="my-alias")
    assert check_request(prefilled) == ()
    assert "prefill" in check_request(prefilled, model="claude-opus-5")[0].message


def test_text_before_results_in_an_earlier_message_of_the_turn_counts() -> None:
    violations = check_request(ask(user("x"), assistant(call()), user("wait"), user(result())))
    assert [violation.path for violation in violations] == ["$.messages[3].content[0]"]


def answer(*content: Body, stop_reason: str = "end_turn", **more: Any) -> Body:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": list(content) or [text()],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 5},
        **more,
    }


def used(**counts: Any) -> Body:
    return {"input_tokens": 9, "output_tokens": 5, **counts}


BAD_ANSWERS = [
    Case(SHAPE, answer(stop_reason="stop"), "$.stop_reason", "got 'stop'"),
    Case(SHAPE, answer() | {"type": "chat"}, "$.type", "expected one of 'message'"),
    Case(SHAPE, answer(call(input="{}"), stop_reason="tool_use"), "$.content[0].input", "expected object, got string"),
    Case(SHAPE, answer({"type": "thinking", "thinking": "x"}), "$.content[0].signature", "missing required key"),
    Case(SHAPE, answer(usage={"input_tokens": 1}), "$.usage.output_tokens", "missing required key"),
    Case(
        "cache_writes_add_up",
        answer(
            usage=used(
                cache_creation_input_tokens=5,
                cache_creation={"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 1},
            )
        ),
        "$.usage.cache_creation",
        "parts of",
    ),
    Case(
        "thinking_is_output",
        answer(usage=used(output_tokens_details={"thinking_tokens": 6})),
        "$.usage.output_tokens_details.thinking_tokens",
        "part of output_tokens",
    ),
    Case("stop_reason_has_a_call", answer(stop_reason="tool_use"), "$.stop_reason", "there is no call"),
    Case("stop_reason_has_a_call", answer(call()), "$.stop_reason", "open call"),
    Case("stop_sequence_is_reported", answer(stop_reason="stop_sequence"), "$.stop_sequence", "matched sequence"),
    Case("calls_have_their_own_ids", answer(call(), call(), stop_reason="tool_use"), "$.content", "different id"),
]
GOOD_ANSWERS = [
    answer(),
    answer(text(citations=None), call(), stop_reason="tool_use", stop_details=None, a_new_key=1),
    answer({"type": "a_new_block", "x": 1}),
    answer(stop_reason="stop_sequence", stop_sequence="\n\n"),
    answer(
        usage=used(
            cache_creation_input_tokens=2,
            cache_creation={"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 1},
        )
    ),
]
ERROR = {"type": "error", "error": {"type": "api_error", "message": "no"}}
