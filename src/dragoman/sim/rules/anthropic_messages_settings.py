"""Rules about tools, schemas, caching, thinking, sampling and the other settings of a request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.sim.rules.anthropic_messages_models import Sampling
from dragoman.sim.rules.anthropic_messages_request import LocatedBlock, Request, Rule, inner_blocks, refuse
from dragoman.sim.rules.anthropic_messages_shapes import CODE_CALLERS, TOOLSET_MEMBERS, TOOLSETS
from dragoman.sim.rules.common import (
    JsonObject,
    Path,
    Tag,
    Violation,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
    types_of,
    walk_schema,
)

# --- tools --------------------------------------------------------------------------------------------------------
#
# Not a rule any more: "Requests which include `tool_use` or `tool_result` blocks must define tools." Histories with
# calls and no tools were answered by every model up to Sonnet 5 (18 recordings, e.g. f6b283228524, 21d8524fe331).


MOST_DEFERRED_TOOLS = 10_000


def kind_of_tool(tool: JsonObject) -> str:
    return text_at(tool, "type") or "custom"


def tool_names_differ(request: Request) -> Iterator[Violation]:
    seen: set[str] = set()
    for located in request.tools:
        name = text_at(located.block, "name")
        if name and name in seen:
            yield refuse((*located.path, "name"), "Tool names must be unique.", named=("tools",))
        seen.add(name)


def tool_choice_needs_tools(request: Request) -> Iterator[Violation]:
    if request.body.get("tool_choice") is not None and not request.body.get("tools"):
        yield refuse(("tool_choice",), "tool_choice may only be specified while providing tools.", named=())


def chosen_tool_exists(request: Request) -> Iterator[Violation]:
    name = text_at(request.body, "tool_choice", "name")
    tools = {text_at(located.block, "name"): located.block for located in request.tools}
    if not name or not tools:
        return
    if name not in tools:
        yield refuse(("tool_choice", "name"), f"Tool '{name}' not found in provided tools", named=("tool_choice",))
    elif "allowed_callers" in tools[name] and "direct" not in texts_at(tools[name], "allowed_callers"):
        yield refuse(("tool_choice", "name"), f"Tool '{name}' cannot be called directly", named=("tool_choice",))


def forced_choice_is_supported(request: Request) -> Iterator[Violation]:
    if not request.forces_tool_use:
        return
    if request.limits and not request.limits.forced_choice:
        reason = 'type "tool" and "any" are not supported for this model.'
        yield refuse(("tool_choice", "type"), reason, named=("tool_choice",))
    if request.thinking == "enabled":
        yield refuse(("tool_choice", "type"), "Thinking may not be enabled when tool_choice forces tool use.", named=())


def deferred_tools_leave_one(request: Request) -> Iterator[Violation]:
    tools = list(request.tools)
    deferred = [located for located in tools if located.block.get("defer_loading") is True]
    if tools and len(deferred) == len(tools):
        yield refuse(("tools",), "At least one tool must not have defer_loading set.", named=())
    if len(deferred) > MOST_DEFERRED_TOOLS:
        yield refuse(("tools",), f"At most {MOST_DEFERRED_TOOLS} tools may be deferred.", named=())
    for located in deferred:
        where = (*located.path, "defer_loading")
        if located.block.get("cache_control") is not None:
            yield refuse(where, "a tool with defer_loading cannot have cache_control")
        if kind_of_tool(located.block).startswith("tool_search_tool_"):
            yield refuse(where, "a tool search tool cannot be deferred")


def references_name_tools(request: Request) -> Iterator[Violation]:
    declared = {text_at(located.block, "name") for located in request.tools}
    for _, located in request.blocks:
        for inner in inner_blocks(located) if located.kind == "tool_result" else ():
            name = text_at(inner.block, "tool_name")
            if inner.kind == "tool_reference" and name not in declared:
                yield refuse(inner.path, f"Tool reference '{name}' not found in available tools")


def domains_are_allowed_or_blocked(request: Request) -> Iterator[Violation]:
    for located in request.tools:
        if located.block.get("allowed_domains") is not None and located.block.get("blocked_domains") is not None:
            yield refuse(located.path, "only one of allowed_domains and blocked_domains may be set")


def code_called_tools_are_unrestricted(request: Request) -> Iterator[Violation]:
    """A tool that code may call is neither strict nor recursive, and parallel calls stay on."""
    for located in request.tools:
        if not set(CODE_CALLERS) & set(texts_at(located.block, "allowed_callers")):
            continue
        if located.block.get("strict") is True:
            yield refuse((*located.path, "strict"), "strict tools cannot be called from code execution")
        if object_at(request.body, "tool_choice").get("disable_parallel_tool_use") is True:
            where = ("tool_choice", "disable_parallel_tool_use")
            yield refuse(where, "parallel tool use cannot be disabled with programmatic tool calling")
        schema = object_at(located.block, "input_schema")
        if circle := _circle(schema):
            yield refuse(located.path, f"recursive schemas cannot be called from code execution: {circle}")


def toolsets_have_no_rivals(request: Request) -> Iterator[Violation]:
    kinds = Counter(kind_of_tool(located.block) for located in request.tools)
    names = {text_at(located.block, "name") for located in request.tools}
    for kind, family in TOOLSETS.items():
        if kinds[kind] > 1:
            yield refuse(("tools",), f"only one {kind} may be declared")
        if kinds[kind] and family in names:
            yield refuse(("tools",), f"no other tool may be named '{family}' beside {kind}")


def toolsets_offer_something(request: Request) -> Iterator[Violation]:
    for located in request.tools:
        members = TOOLSET_MEMBERS.get(kind_of_tool(located.block), frozenset())
        configs = object_at(located.block, "configs")
        disabled = {name for name in configs if object_at(configs, name).get("enabled") is False}
        if members and members <= disabled:
            yield refuse((*located.path, "configs"), "configs cannot disable every member of the toolset")


def mcp_toolsets_match_servers(request: Request) -> Iterator[Violation]:
    """Each server has one toolset, unless there are none at all: the first MCP beta knew none (22 recordings)."""
    servers = [text_at(server, "name") for server in objects_at(request.body, "mcp_servers")]
    toolsets = [located for located in request.tools if kind_of_tool(located.block) == "mcp_toolset"]
    used = Counter(text_at(located.block, "mcp_server_name") for located in toolsets)
    for located in toolsets:
        if text_at(located.block, "mcp_server_name") not in servers:
            yield refuse((*located.path, "mcp_server_name"), "no such server in mcp_servers")
    for index, name in enumerate(servers):
        if toolsets and used[name] != 1:
            yield refuse(("mcp_servers", index), f"MCP server '{name}' must be referenced by exactly one mcp_toolset")


# --- schemas ------------------------------------------------------------------------------------------------------

TOP_LEVEL_UNIONS = ("oneOf", "allOf", "anyOf")
UNSUPPORTED_KEYWORDS = {
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "contains",
    "patternProperties",
    "minProperties",
    "maxProperties",
}
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
UNSUPPORTED_PATTERN = re.compile(r"\(\?<?[=!]|\\[1-9]")
MOST_STRICT_TOOLS = 20
MOST_OPTIONAL_PARAMETERS = 24
MOST_UNION_PARAMETERS = 16


@dataclass(frozen=True, slots=True)
class Compiled:
    """A schema the server turns into a grammar, and the place it names when it cannot."""

    path: Path
    named: Path
    schema: JsonObject


def strict_tools(request: Request) -> Iterator[LocatedBlock]:
    return (located for located in request.tools if located.block.get("strict") is True)


def compiled_schemas(request: Request) -> Iterator[Compiled]:
    for located in strict_tools(request):
        if kind_of_tool(located.block) == "custom":
            schema = object_at(located.block, "input_schema")
            yield Compiled((*located.path, "input_schema"), (*located.path, Tag("custom")), schema)
    for path in (("output_config", "format", "schema"), ("output_format", "schema")):
        schema = object_at(request.body, *path)
        if schema:
            yield Compiled(path, path, schema)


def tool_schemas_are_plain_objects(request: Request) -> Iterator[Violation]:
    for located in request.tools:
        unions = [keyword for keyword in TOP_LEVEL_UNIONS if keyword in object_at(located.block, "input_schema")]
        if unions:
            where = (*located.path, "input_schema")
            yield refuse(where, "input_schema does not support oneOf, allOf, or anyOf at the top level")


def compiled_objects_are_closed(request: Request) -> Iterator[Violation]:
    for compiled in compiled_schemas(request):
        for path, node in walk_schema(compiled.schema, compiled.path):
            if "object" in types_of(node) and node.get("additionalProperties") is not False:
                reason = "For 'object' type, 'additionalProperties' must be explicitly set to false"
                yield refuse(path, reason, named=compiled.named)
            if any(not isinstance(child, dict) for child in object_at(node, "properties").values()):
                yield refuse(path, "For 'object' type, property 'properties' is not supported", named=compiled.named)


def compiled_schemas_use_known_keywords(request: Request) -> Iterator[Violation]:
    for compiled in compiled_schemas(request):
        for path, node in walk_schema(compiled.schema, compiled.path):
            kind = "/".join(sorted(types_of(node))) or "any"
            refused = sorted(UNSUPPORTED_KEYWORDS & node.keys())
            if node.get("minItems") not in (None, 0, 1):
                refused.append("minItems")
            if isinstance(node.get("format"), str) and node["format"] not in FORMATS:
                refused.append("format")
            if UNSUPPORTED_PATTERN.search(text_at(node, "pattern")):
                refused.append("pattern")
            for keyword in refused:
                yield refuse(path, f"For '{kind}' type, property '{keyword}' is not supported", named=compiled.named)


def compiled_references_resolve(request: Request) -> Iterator[Violation]:
    for compiled in compiled_schemas(request):
        for path, node in walk_schema(compiled.schema, compiled.path):
            reference = text_at(node, "$ref")
            if not reference:
                continue
            if "allOf" in node:
                yield refuse(path, "allOf is not supported together with $ref", named=compiled.named)
            if _resolve(compiled.schema, reference) is None:
                yield refuse(path, f"Invalid schema: cannot resolve $ref '{reference}'", named=compiled.named)
        if circle := _circle(compiled.schema):
            reason = f"Invalid schema: Circular reference detected in schema definitions: {circle}."
            yield refuse(compiled.path, reason, named=compiled.named)


def _resolve(schema: JsonObject, reference: str) -> JsonObject | None:
    if not reference.startswith("#"):
        return None
    node: object = schema
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def _circle(schema: JsonObject) -> str:
    """The first circle of references, spelled `A -> B -> A`; empty when there is none."""
    all_references = {text_at(node, "$ref") for _, node in walk_schema(schema, ())} - {""}
    edges = {reference: _references(_resolve(schema, reference) or {}) for reference in sorted(all_references)}
    done: set[str] = set()
    for start, first_steps in edges.items():
        trail: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(first_steps)))]
        open_references = [start]
        while trail and start not in done:
            step = next(trail[-1][1], None)
            if step is None:
                done.add(trail.pop()[0])
                open_references.pop()
            elif step in open_references:
                names = [*open_references[open_references.index(step) :], step]
                return " -> ".join(name.rsplit("/", 1)[-1] for name in names)
            elif step not in done:
                trail.append((step, iter(sorted(edges.get(step, ())))))
                open_references.append(step)
    return ""


def _references(node: JsonObject) -> set[str]:
    """What a definition refers to, without looking into definitions nested in it."""
    inside = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
    return {text_at(child, "$ref") for _, child in walk_schema(inside, ())} - {""}


def compiled_schemas_are_small(request: Request) -> Iterator[Violation]:
    count = sum(1 for _ in strict_tools(request))
    if count > MOST_STRICT_TOOLS:
        reason = (
            f"Too many strict tools ({count}). The maximum number of strict tools supported is {MOST_STRICT_TOOLS}."
        )
        yield refuse(("tools",), reason, named=())
    optional = unions = 0
    for compiled in compiled_schemas(request):
        for _, node in walk_schema(compiled.schema, compiled.path):
            properties = object_at(node, "properties")
            optional += len(properties.keys() - set(texts_at(node, "required")))
            unions += sum("anyOf" in object_at(properties, name) for name in properties)
            unions += sum(isinstance(object_at(properties, name).get("type"), list) for name in properties)
    for found, limit, what in (
        (optional, MOST_OPTIONAL_PARAMETERS, "optional parameters"),
        (unions, MOST_UNION_PARAMETERS, "parameters with union types"),
    ):
        if found > limit:
            reason = f"Schemas contains too many {what} ({found}), (limit: {limit})."
            yield refuse(("tools",), reason, named=())


# --- caching ------------------------------------------------------------------------------------------------------

MOST_CACHE_MARKS = 4


def cache_marks(request: Request) -> Iterator[LocatedBlock]:
    """Every marked block in the order the server caches them: tools, system, messages."""
    for index, block in enumerate(objects_at(request.body, "tools")):
        yield LocatedBlock(("tools", index), block)
    for index, block in enumerate(objects_at(request.body, "system")):
        yield LocatedBlock(("system", index), block)
    for _, located in request.blocks:
        # What is inside a result is cached before the result as a whole.
        if located.kind == "tool_result":
            yield from inner_blocks(located)
        yield located


def _marked_blocks(request: Request) -> list[LocatedBlock]:
    return [located for located in cache_marks(request) if located.block.get("cache_control") is not None]


def cache_marks_are_few(request: Request) -> Iterator[Violation]:
    found = len(_marked_blocks(request)) + (request.body.get("cache_control") is not None)
    if found > MOST_CACHE_MARKS:
        reason = f"A maximum of {MOST_CACHE_MARKS} blocks with cache_control may be provided. Found {found}."
        yield refuse((), reason)


def long_cache_comes_first(request: Request) -> Iterator[Violation]:
    short_seen = False
    for located in _marked_blocks(request):
        ttl = text_at(located.block, "cache_control", "ttl") or "5m"
        if ttl == "1h" and short_seen:
            reason = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
            yield refuse((*located.path, "cache_control", "ttl"), reason)
        short_seen = short_seen or ttl == "5m"


def empty_text_is_not_cached(request: Request) -> Iterator[Violation]:
    for located in _marked_blocks(request):
        if located.kind == "text" and not text_at(located.block, "text"):
            yield refuse((*located.path, "cache_control"), "cache_control cannot be set for empty text blocks")


# --- thinking and effort ------------------------------------------------------------------------------------------


def thinking_is_supported(request: Request) -> Iterator[Violation]:
    if not request.thinking or request.limits is None or request.thinking in request.limits.thinking:
        return
    if request.thinking == "enabled" and "adaptive" in request.limits.thinking:
        reason = (
            '"thinking.type.enabled" is not supported for this model. '
            'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    else:
        reason = f"{request.thinking} thinking is not supported on this model"
    yield refuse(("thinking", "type"), reason, named=())


def thinking_budget_fits(request: Request) -> Iterator[Violation]:
    """Interleaved thinking lifts this limit, but only by a header we do not see: not for what we would send."""
    budget = number_at(request.body, "thinking", "budget_tokens")
    if budget and budget >= number_at(request.body, "max_tokens"):
        reason = "`max_tokens` must be greater than `thinking.budget_tokens`."
        yield refuse(("thinking", "budget_tokens"), reason, named=())


def effort_is_supported(request: Request) -> Iterator[Violation]:
    effort = text_at(request.body, "output_config", "effort")
    if not effort or request.limits is None:
        return
    levels = request.limits.efforts
    if request.thinking in ("disabled", "between_tools"):
        levels = levels & request.limits.efforts_without_thinking
    if effort not in levels:
        supported = ", ".join(sorted(levels))
        reason = f"This model does not support effort level '{effort}'. Supported levels: {supported}."
        yield refuse(("output_config", "effort"), reason, named=())


# --- sampling -----------------------------------------------------------------------------------------------------

LEAST_TOP_P = 0.95
SAMPLING = ("temperature", "top_p", "top_k")
SAMPLING_DEFAULTS: dict[str, tuple[float, ...]] = {"temperature": (1,), "top_p": (0.99, 1), "top_k": ()}


def sampling_exists(request: Request) -> Iterator[Violation]:
    if request.modern:
        for name in SAMPLING:
            if name in request.body:
                yield refuse((name,), "Extra inputs are not permitted")


def sampling_is_supported(request: Request) -> Iterator[Violation]:
    if request.limits is None or request.modern:
        return
    fixed = request.limits.sampling in (Sampling.FIXED, Sampling.FIXED_ONE_AT_A_TIME)
    for name in SAMPLING:
        if fixed and name in request.body and request.body[name] not in SAMPLING_DEFAULTS[name]:
            yield refuse((name,), f"`{name}` is deprecated for this model.", named=())
    one_at_a_time = request.limits.sampling in (Sampling.ONE_OF_TWO, Sampling.FIXED_ONE_AT_A_TIME)
    if one_at_a_time and "temperature" in request.body and "top_p" in request.body:
        reason = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        yield refuse(("top_p",), reason, named=())


def thinking_fixes_sampling(request: Request) -> Iterator[Violation]:
    if request.thinking not in ("enabled", "adaptive") or request.modern:
        return
    if number_at(request.body, "temperature") != 1 and "temperature" in request.body:
        yield refuse(("temperature",), "`temperature` may only be set to 1 when thinking is enabled.", named=())
    if "top_k" in request.body:
        yield refuse(("top_k",), "`top_k` must be unset when thinking is enabled.", named=())
    if "top_p" in request.body and number_at(request.body, "top_p") < LEAST_TOP_P:
        reason = f"`top_p` must be greater than or equal to {LEAST_TOP_P} or unset when thinking is enabled."
        yield refuse(("top_p",), reason, named=())


# --- output -------------------------------------------------------------------------------------------------------


def wants_format(request: Request) -> bool:
    return bool(object_at(request.body, "output_config", "format")) or request.body.get("output_format") is not None


def one_output_format(request: Request) -> Iterator[Violation]:
    if request.body.get("output_format") is not None and object_at(request.body, "output_config", "format"):
        yield refuse(("output_format",), "only one of output_format and output_config.format may be set", named=())


def stop_sequences_are_visible(request: Request) -> Iterator[Violation]:
    for index, sequence in enumerate(texts_at(request.body, "stop_sequences")):
        if not sequence.strip():
            yield refuse(
                ("stop_sequences", index), "each stop sequence must contain non-whitespace", named=("stop_sequences",)
            )


def cache_warming_asks_for_nothing_else(request: Request) -> Iterator[Violation]:
    """`max_tokens: 0` warms the cache and allows nothing else."""
    if request.body.get("max_tokens") != 0:
        return
    clashes = {
        "stream": request.body.get("stream") is True,
        "thinking": request.thinking == "enabled",
        "output_config": wants_format(request),
        "tool_choice": request.forces_tool_use,
    }
    for name, clash in clashes.items():
        if clash:
            yield refuse(("max_tokens",), f"max_tokens: 0 cannot be combined with {name}", named=())


def _citable(request: Request, kind: str) -> Iterator[LocatedBlock]:
    for role, located in request.blocks:
        if role == "user":
            yield from (inner for inner in (located, *inner_blocks(located)) if inner.kind == kind)


def citations_are_all_or_none(request: Request) -> Iterator[Violation]:
    for kind in ("document", "search_result"):
        switches = {object_at(located.block, "citations").get("enabled") is True for located in _citable(request, kind)}
        if len(switches) > 1:
            yield refuse(("messages",), f"citations must be enabled on all or none of the `{kind}` blocks")


def citations_exclude_formats(request: Request) -> Iterator[Violation]:
    if not wants_format(request):
        return
    for kind in ("document", "search_result"):
        for located in _citable(request, kind):
            if object_at(located.block, "citations").get("enabled") is True:
                yield refuse(located.path, "citations cannot be used with structured output")


# --- media --------------------------------------------------------------------------------------------------------

MOST_IMAGES = 600


def media_is_bare_base64(request: Request) -> Iterator[Violation]:
    for _, located in request.blocks:
        for block in (located, *inner_blocks(located)):
            if text_at(block.block, "source", "type") == "base64" and text_at(block.block, "source", "data").startswith(
                "data:"
            ):
                yield refuse((*block.path, "source", "data"), "expected base64 without a data URL prefix")


def images_are_countable(request: Request) -> Iterator[Violation]:
    images = sum(1 for _ in _citable(request, "image"))
    if images > MOST_IMAGES:
        yield refuse(("messages",), f"at most {MOST_IMAGES} images per request, found {images}")


# --- the rest -----------------------------------------------------------------------------------------------------


def container_is_a_plain_id(request: Request) -> Iterator[Violation]:
    """An id alone travels as a bare string."""
    container = request.body.get("container")
    if isinstance(container, dict) and not container.get("skills"):
        yield refuse(("container",), "Input should be a valid string")


def threads_stand_alone(request: Request) -> Iterator[Violation]:
    if request.body.get("thread") is None:
        return
    for name in ("cache_control", "context_management", "fallbacks", "thinking"):
        if request.body.get(name) is not None:
            yield refuse(("thread",), f"thread_unsupported_request: {name}", named=())


def context_edits_fit(request: Request) -> Iterator[Violation]:
    edits = [text_at(edit, "type") for edit in objects_at(request.body, "context_management", "edits")]
    for index, kind in enumerate(edits):
        if kind == "clear_thinking_20251015" and index > 0:
            yield refuse(("context_management", "edits", index), "clear_thinking must be the first edit")
    if request.body.get("compaction") is not None and request.body.get("context_management") is not None:
        yield refuse(("compaction",), "compaction cannot be combined with context_management")


def fallbacks_differ(request: Request) -> Iterator[Violation]:
    fallbacks = objects_at(request.body, "fallbacks")
    if len({(text_at(entry, "model"), text_at(entry, "speed")) for entry in fallbacks}) != len(fallbacks):
        yield refuse(("fallbacks",), "fallback entries must be distinct")
    if request.body.get("fallbacks") is not None and request.body.get("fallback_credit_token") is not None:
        yield refuse(("fallback_credit_token",), "cannot be combined with fallbacks")


RULES: tuple[Rule, ...] = (
    sampling_exists,
    sampling_is_supported,
    thinking_fixes_sampling,
    thinking_is_supported,
    thinking_budget_fits,
    effort_is_supported,
    tool_names_differ,
    tool_choice_needs_tools,
    chosen_tool_exists,
    forced_choice_is_supported,
    deferred_tools_leave_one,
    references_name_tools,
    domains_are_allowed_or_blocked,
    code_called_tools_are_unrestricted,
    toolsets_have_no_rivals,
    toolsets_offer_something,
    mcp_toolsets_match_servers,
    tool_schemas_are_plain_objects,
    compiled_objects_are_closed,
    compiled_schemas_use_known_keywords,
    compiled_references_resolve,
    compiled_schemas_are_small,
    cache_marks_are_few,
    long_cache_comes_first,
    empty_text_is_not_cached,
    one_output_format,
    stop_sequences_are_visible,
    cache_warming_asks_for_nothing_else,
    citations_are_all_or_none,
    citations_exclude_formats,
    media_is_bare_base64,
    images_are_countable,
    container_is_a_plain_id,
    threads_stand_alone,
    context_edits_fit,
    fallbacks_differ,
)
