"""Translates tools that a provider runs or defines for another one: to its own tool of that kind, to functions, or not.

A tool is never sent with fewer restrictions than it had: if the target cannot express its sites, tools or approvals,
the tool is dropped, and so is a choice that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, structs

from dragoman.ir import AnyTool, Metadata, ProviderTool, Request, ToolChoice, ToolDefinition
from dragoman.ir.notes import ADDED, has_note
from dragoman.losses import LossLog
from dragoman.passes.names import name_alias
from dragoman.passes.turns import declare_called_tools
from dragoman.profile import HostedRule, Profile

OPTIONS = (
    "max_uses",
    "allowed_domains",
    "blocked_domains",
    "location",
    "context_size",
    "stores",
    "max_results",
    "container",
    "file_ids",
    "server_url",
    "authorization",
    "headers",
    "allowed_tools",
    "approval",
)
"""Fields that configure a tool."""

RESTRICTING = ("allowed_domains", "blocked_domains", "allowed_tools", "approval")
"""Fields that restrict a tool: without them, the model could access more than allowed."""

SCOPED = frozenset({"stores", "container", "file_ids"})
"""Ids that only their own vendor knows."""


_ABSENT = {one.name: one.default for one in structs.fields(ProviderTool)}


class _Crossing(Struct, frozen=True):
    """A list of tools for one target, the names of changed tools for choices, and losses."""

    given: tuple[AnyTool, ...]
    profile: Profile
    tools: tuple[AnyTool, ...]
    names: dict[str, tuple[str, ...]]
    log: LossLog
    most_calls: int | None = None
    """The sum of the tools' limits, for a target with one limit for all hosted tools."""


_crossings: dict[tuple[int, int, str | None], _Crossing] = {}
_MOST_CROSSINGS = 64
_MOST_TOOLS = 128


def cross_provider_tools(request: Request, profile: Profile, log: LossLog) -> Request:
    """Converts tools of other providers to what the target has, or drops them."""
    if not request.tools:
        return request
    key = (id(request.tools), id(profile), request.model)
    crossing = _crossings.get(key)
    if crossing is None or crossing.given is not request.tools or crossing.profile is not profile:
        crossing = _cross_all(request.tools, request.model, profile)
        if len(request.tools) <= _MOST_TOOLS:  # agents declare the same tools in every request
            if len(_crossings) >= _MOST_CROSSINGS:
                _crossings.clear()
            _crossings[key] = crossing
    log.entries += crossing.log.entries
    if crossing.log.origins is not None:
        log.origins = {**(log.origins or {}), **crossing.log.origins}
    choice, parallel = _choice(request, crossing.names, log), request.parallel_tool_calls
    if not crossing.tools:
        if choice is not None and choice.mode == "required":
            log.drop(request, "tool_choice", "tool choice", "there are no tools to choose from")
        choice = parallel = None
    crossed = structs.replace(request, tools=crossing.tools, tool_choice=choice, parallel_tool_calls=parallel)
    if crossing.most_calls is not None and request.max_tool_calls is None:
        crossed = structs.replace(crossed, max_tool_calls=crossing.most_calls)
    elif request.max_tool_calls is not None and not profile.limits_all_calls:
        crossed = _limit_each(crossed, request.max_tool_calls, profile, log)
    # Where no tool is left, a history with calls may need some.
    return crossed if crossing.tools else declare_called_tools(crossed, profile, log)


def _cross_all(given: tuple[AnyTool, ...], model: str | None, profile: Profile) -> _Crossing:
    log = LossLog()
    names: dict[str, tuple[str, ...]] = {}
    tools: list[AnyTool] = []
    kinds: set[str] = set()
    for tool in given:
        if tool.metadata is not None and has_note(tool.metadata, ADDED):
            log.degrade(tool, "", f"place of tool {tool.name!r}", "this API has one list of tools, for all turns")
        if not isinstance(tool, ProviderTool) or _is_known(tool, profile):
            tools.append(tool)
            continue
        converted = tuple([one for one in _convert_tool(tool, model, profile, log) if _is_first(one, tool, kinds, log)])
        tools += converted
        names[tool.name] = tuple(_chosen_names(converted, profile))
    tools = list(_keep_distinct(tools, profile, log))
    most_calls = None
    if profile.limits_all_calls:
        tools, most_calls = _limit_all(tools, log)
    return _Crossing(given, profile, tuple(_load_deferred(tools, profile, log)), names, log, most_calls)


def _keep_distinct(tools: list[AnyTool], profile: Profile, log: LossLog) -> Iterator[AnyTool]:
    """Keeps the first of several tools with one name: functions of a namespace get their full names only now."""
    names: set[str] = set()
    for tool in tools:
        name = _name_at(profile, tool) if isinstance(tool, ProviderTool) else tool.name
        if name in names:
            log.drop(tool, "", f"tool {tool.name!r}", "a tool of this name is declared before it")
            continue
        if name is not None:
            names.add(name)
        yield tool


def _name_at(profile: Profile, tool: ProviderTool) -> str | None:
    """The name that no other tool of the target can have; None if its hosted tools have none."""
    rule = profile.hosted.get(tool.kind or "")
    if rule is None or not profile.shares_tool_names:
        return None
    return _ONLY_SEARCH if tool.kind == "tool_search" else rule.name


_ONLY_SEARCH = "<tool search>"
"""Placeholder name for the one tool that searches tools; no choice and no function can have this name."""


def _limit_all(tools: list[AnyTool], log: LossLog) -> tuple[list[AnyTool], int | None]:
    """Replaces the limits of single tools by one limit for all: their sum, if each has one."""
    limited = [tool for tool in tools if isinstance(tool, ProviderTool) and tool.max_uses is not None]
    if not limited:
        return tools, None
    hosted = [tool for tool in tools if _is_counted(tool)]
    limits = [tool.max_uses for tool in limited if _is_counted(tool) and tool.max_uses is not None]
    if len(hosted) > 1 or len(limits) < len(limited):
        why = "this API limits the calls of all tools together"
        for tool in limited:
            log.degrade(tool, "", f"max_uses of tool {tool.name!r}", why)
    is_limited = bool(limits) and len(limits) == len(hosted)
    return [_drop_limit(tool, log) for tool in tools], sum(limits) if is_limited else None


_UNCOUNTED = frozenset({None, "tool_search"})


def _drop_limit(tool: AnyTool, log: LossLog) -> AnyTool:
    if not isinstance(tool, ProviderTool) or tool.max_uses is None:
        return tool
    return log.replace(tool, max_uses=None)


def _limit_each(request: Request, most: int, profile: Profile, log: LossLog) -> Request:
    """Applies one limit to each hosted tool, which is exact for a single tool."""
    hosted = [tool for tool in request.tools if _is_counted(tool)]
    if not hosted or not all(_has_limit(tool, profile) for tool in hosted):
        return request  # the setting is lost
    if len(hosted) > 1:
        what = f"limit of {most} calls of hosted tools"
        log.degrade(request, "max_tool_calls", what, "this API limits each tool, not all of them together")
    tools = [_with_limit(tool, most, log) if _is_counted(tool) else tool for tool in request.tools]
    return structs.replace(request, tools=tuple(tools), max_tool_calls=None)


def _is_counted(tool: AnyTool) -> bool:
    return isinstance(tool, ProviderTool) and tool.kind not in _UNCOUNTED


def _has_limit(tool: AnyTool, profile: Profile) -> bool:
    rule = profile.hosted.get(tool.kind or "") if isinstance(tool, ProviderTool) else None
    return rule is not None and "max_uses" in rule.options


def _with_limit(tool: AnyTool, most: int, log: LossLog) -> AnyTool:
    if not isinstance(tool, ProviderTool):
        return tool
    return log.replace(tool, max_uses=most if tool.max_uses is None else min(most, tool.max_uses))


def _load_deferred(tools: list[AnyTool], profile: Profile, log: LossLog) -> list[AnyTool]:
    """Sends deferred tools at once if the model cannot look tools up."""
    is_searchable = any(isinstance(tool, ProviderTool) and tool.kind == "tool_search" for tool in tools)
    if is_searchable and "tool_search" in profile.hosted:
        return tools
    return [_load_tool(tool, log) if type(tool) is ToolDefinition and tool.deferred else tool for tool in tools]


def _load_tool(tool: ToolDefinition, log: LossLog) -> ToolDefinition:
    log.degrade(
        tool, "", f"deferred loading of tool {tool.name!r}", "the model cannot look tools up, and sees it at once"
    )
    return log.replace(tool, deferred=None)


def _is_known(tool: ProviderTool, profile: Profile) -> bool:
    """Whether the target's codec encodes this tool itself: its own, or one of the same vendor."""
    return tool.definition is not None and (tool.origin == profile.family or tool.origin in profile.translates)


def _convert_tool(tool: ProviderTool, model: str | None, profile: Profile, log: LossLog) -> Iterator[AnyTool]:
    if tool.functions:
        yield from _as_functions(tool, profile, log)
        return
    rule = None if tool.kind is None else profile.hosted.get(tool.kind)
    why = "this API has no such tool" if tool.kind else f"it is run or defined by {tool.origin or 'its provider'}"
    if rule is not None and profile.hosted_models.search(model or "") is None:
        rule, why = None, "this model has no such tool"
    if rule is not None:
        why = _obstacle(tool, rule)
    if rule is None or why:
        log.drop(tool, "", f"tool {tool.name!r}", why)
        return
    left_out = _report_options(tool, rule, profile, log)
    most = tool.max_results
    if most is not None and rule.most_results is not None and most > rule.most_results:
        log.degrade(tool, "", f"{most} results of tool {tool.name!r}", f"this API takes {rule.most_results} at most")
        left_out["max_results"] = rule.most_results
    converted = log.replace(tool, name=rule.name or tool.name, origin=None, definition=None, metadata=None, **left_out)
    yield converted


def _is_first(converted: AnyTool, tool: ProviderTool, kinds: set[str], log: LossLog) -> bool:
    """Whether no tool of its kind came before it: two tools of one vendor can be a single tool elsewhere."""
    if not isinstance(converted, ProviderTool) or converted.kind in {None, "mcp"}:
        return True
    if converted.kind in kinds:
        log.drop(tool, "", f"tool {tool.name!r}", "this API has one tool of this kind, which is declared before it")
        return False
    kinds.add(str(converted.kind))
    return True


def _as_functions(tool: ProviderTool, profile: Profile, log: LossLog) -> Iterator[ToolDefinition]:
    log.degrade(tool, "", f"tool {tool.name!r}", "sent as an ordinary function with its documented parameters")
    for function in tool.functions:
        sent = structs.replace(
            function, name=name_alias(function.name, profile), metadata=_notes_of(tool, function, log)
        )
        if sent.name != function.name:
            why = f"sent as {sent.name!r}: this API refuses the name"
            log.degrade(tool, "", f"tool name {function.name!r}", why)
        log.replaced(sent, tool)
        yield sent


def _notes_of(tool: ProviderTool, function: ToolDefinition, log: LossLog) -> Metadata | None:
    """Report the keys of a function that only its vendor understands, and return its notes."""
    if function.metadata is None:
        return None
    kept: Metadata = {}
    for family, entries in function.metadata.items():
        kept[family] = {key: value for key, value in entries.items() if key[:1] == "~"}
        for key in entries.keys() - kept[family].keys():
            log.degrade(tool, "", f"{key} of tool {function.name!r}", f"only {tool.origin} understands it")
    return kept


def _obstacle(tool: ProviderTool, rule: HostedRule) -> str:
    """Why the tool must be dropped although the target has its kind; empty if it may be sent."""
    for option in RESTRICTING:
        value = None if option in rule.options else getattr(tool, option)
        if value and value != "never":
            return f"this API cannot guarantee its {option}"
    if tool.origin is not None and tool.kind == "file_search":
        return f"the files it searches are stored with {tool.origin}"
    if tool.kind == "mcp" and tool.server_url is None:
        return "the address of its server is not given"
    if rule.https_only and not (tool.server_url or "").startswith("https://"):
        return "this API connects to https:// servers only"
    return ""


def _report_options(tool: ProviderTool, rule: HostedRule, profile: Profile, log: LossLog) -> dict[str, Any]:
    """Report the fields that the target does not have; return them with their empty values."""
    left_out: dict[str, Any] = {}
    foreign = SCOPED if tool.origin is not None else frozenset()
    for option in OPTIONS:
        value: Any = getattr(tool, option)
        if value in (None, ()) or (option == "approval" and value == "never"):
            continue
        is_second = option == "blocked_domains" and bool(tool.allowed_domains) and rule.one_domain_list
        is_known = option in rule.options or (option == "max_uses" and profile.limits_all_calls)
        if is_known and option not in foreign and not is_second:
            continue
        why = f"only {tool.origin} understands it" if option in foreign else "this API has no such option"
        if is_second:
            why = "this API takes allowed domains or blocked ones, not both"
        log.degrade(tool, "", f"{option} of tool {tool.name!r}", why)
        left_out[option] = _ABSENT.get(option)
    for entries in (tool.metadata or {}).values():
        for key in [key for key in entries if key[:1] != "~"]:
            log.degrade(tool, "", f"{key} of tool {tool.name!r}", f"only {tool.origin} understands it")
    if any(getattr(tool, option) and option in rule.options for option in ("authorization", "headers")):
        log.note(tool, "", f"authorization of tool {tool.name!r}", "this API calls the server with it")
    if tool.cache is not None and not profile.cache_marks:
        log.degrade(tool, "", "cache mark on a tool", "this API takes none")
        left_out["cache"] = None
    return left_out


def _chosen_names(tools: tuple[AnyTool, ...], profile: Profile) -> Iterator[str]:
    """Names of these tools in choices, if the target's choices can name them."""
    for tool in tools:
        if not isinstance(tool, ProviderTool) or (tool.kind is not None and profile.hosted[tool.kind].name is not None):
            yield tool.name


def _choice(request: Request, crossed: dict[str, tuple[str, ...]], log: LossLog) -> ToolChoice | None:
    choice = request.tool_choice
    if choice is None or not choice.names:
        return choice
    names: list[str] = []
    for name in choice.names:
        converted = crossed.get(name, (name,))
        if not converted:
            log.drop(
                request, "tool_choice", f"choice of {name!r}", "the tool was not converted, or no choice can name it"
            )
        names += converted
    return structs.replace(choice, names=tuple(names)) if names else None
