"""Tools that the server runs itself, in terms that all vendors share.

OpenAI has one, the setting `web_search_options` of its search models, outside `tools`. Servers that speak this format
have their own entries (`openrouter:web_search`, Groq's `browser_search`) and their own settings (OpenRouter's plugin
`web`, xAI's `search_parameters`). In the intermediate format, a setting is the last of the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.codecs.openai_chat.profile import ChatProfile
from dragoman.codecs.reading import WireValue
from dragoman.codecs.shared_tools import (
    Fields,
    SharedTools,
    beyond,
    count_of,
    mappings,
    non_empty,
    read_location,
    text_of,
    texts,
    write_location,
)
from dragoman.ir import AnyTool, HostedKind, ProviderTool
from dragoman.ir.notes import Extra
from dragoman.ir.values import encode_json, parse_json
from dragoman.losses import LossLog

FAMILY = "openai"

_ENTRIES: dict[str, HostedKind] = {
    "openrouter:web_search": "web_search",
    "openrouter:web_fetch": "web_fetch",
    # Groq
    "browser_search": "web_search",
    "code_interpreter": "code_execution",
    # Mistral
    "web_search": "web_search",
    "web_search_premium": "web_search",
    "image_generation": "image_generation",
    "document_library": "file_search",
}
SEARCH_SETTINGS = ("web_search_options", "plugins", "search_parameters")
"""Settings that switch a search on: OpenAI's, OpenRouter's and xAI's."""


class HostedTools(SharedTools):
    def read_tool(self, definition: Mapping[str, Any]) -> Fields:
        if "type" not in definition:
            for key, read in _READ_SETTING.items():
                if key in definition and _is_search(key, definition[key]):
                    return {"kind": "web_search"} | read(definition[key])
        kind = _ENTRIES.get(str(definition.get("type")))
        if kind is None:
            return {}
        options = definition.get("parameters")
        fields = {**definition, **options} if isinstance(options, dict) else definition
        return {"kind": kind} | _read_options(fields)

    def write_tool(self, tool: ProviderTool) -> WireValue:
        """Encode a tool for OpenAI itself; `entry_for` covers other servers."""
        if tool.kind != "web_search":
            return None
        location = write_location(tool.location)
        nested = None if location is None else {"type": location.pop("type"), "approximate": location}
        return {"web_search_options": non_empty(search_context_size=tool.context_size, user_location=nested)}

    def entry_for(self, tool: ProviderTool, profile: ChatProfile) -> WireValue:
        """Return the entry or setting that expresses this tool on a server, or None."""
        if tool.origin == FAMILY:
            return tool.definition_held
        if profile.hosted_entries is None:
            return self.write_tool(tool)
        prefix, names = profile.hosted_entries
        if tool.kind is None or tool.kind not in names:
            return None
        options = non_empty(
            max_uses=tool.max_uses,
            allowed_domains=tool.allowed_domains,
            **{"excluded_domains" if tool.kind == "web_search" else "blocked_domains": tool.blocked_domains},
            search_context_size=tool.context_size,
            user_location=write_location(tool.location),
        )
        return {"type": prefix + names[tool.kind]} | ({"parameters": options} if options else {})

    def read_settings(self, extra: Extra) -> ProviderTool | None:
        """Return the search that a request's settings switch on; removes those settings from `extra`."""
        for key in SEARCH_SETTINGS:
            raw = extra.get(key)
            if raw is None or not _is_search(key, parse_json(raw)):
                continue
            definition = {key: extra.pop(key)}
            fields = self.read_tool({key: parse_json(raw)})
            return ProviderTool("web_search", FAMILY, Raw(encode_json(definition)), **fields)
        return None

    def is_setting(self, tool: AnyTool) -> bool:
        """Whether a tool of this family is a setting instead of an entry of `tools`."""
        return isinstance(tool, ProviderTool) and tool.origin == FAMILY and _setting_of(tool.definition) is not None

    def write_settings(self, tools: tuple[AnyTool, ...], profile: ChatProfile, log: LossLog) -> Extra:
        """Return the settings that express these tools on this server."""
        settings: Extra = {}
        for tool in tools:
            wire: Any = self.entry_for(tool, profile) if isinstance(tool, ProviderTool) else None
            parsed = parse_json(wire) if type(wire) is Raw else wire
            key = _setting_of(parsed)
            if key is None:
                continue
            if profile.known_keys is not None and key not in profile.known_keys:
                log.drop(tool, "", key, "this server refuses keys it does not know")
            else:
                settings[key] = Raw(encode_json(parsed[key]))
        return settings


HOSTED = HostedTools()


def _setting_of(definition: object) -> str | None:
    """Return the name of the setting that a definition is; None for an entry of `tools`."""
    if not isinstance(definition, dict) or "type" in definition:
        return None
    return next((key for key in SEARCH_SETTINGS if key in definition), None)


def _is_search(key: str, value: object) -> bool:
    if key == "plugins":
        return (
            isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and value[0].get("id") == "web"
        )
    return isinstance(value, dict) and value.get("mode") != "off"


def _read_search_options(value: Any) -> Fields:
    location = value.get("user_location")
    nested = location.get("approximate") if isinstance(location, dict) else None
    return {
        "context_size": text_of(value.get("search_context_size")),
        "location": read_location(nested),
        **beyond(FAMILY, value, "search_context_size", "user_location"),
    }


def _read_plugin(value: Any) -> Fields:
    return _read_options(value[0])


_WORDS = ("include_domains", "allowed_domains"), ("exclude_domains", "excluded_domains", "blocked_domains")


def _read_options(options: Mapping[str, Any]) -> Fields:
    allowed, blocked = (next((options[name] for name in names if options.get(name)), None) for names in _WORDS)
    known = (
        "type",
        "id",
        "parameters",
        "max_uses",
        "search_context_size",
        "user_location",
        "library_ids",
        "max_results",
    )
    return {
        "max_uses": count_of(options.get("max_uses")),
        "allowed_domains": texts(allowed),
        "blocked_domains": texts(blocked),
        "context_size": text_of(options.get("search_context_size")),
        "location": read_location(options.get("user_location")),
        "stores": texts(options.get("library_ids")),
        "max_results": count_of(options.get("max_results")),
        **beyond(FAMILY, options, *known, *_WORDS[0], *_WORDS[1]),
    }


def _read_search_parameters(value: Any) -> Fields:
    """Read xAI's live search, which lists sites in its sources."""
    sources = mappings(value.get("sources"))
    web = next((one for one in sources if one.get("type") == "web"), {})
    country = text_of(web.get("country"))
    only = {} if len(sources) <= 1 else {"sources": sources}
    return {
        "allowed_domains": texts(web.get("allowed_websites")),
        "blocked_domains": texts(web.get("excluded_websites")),
        "location": None if country is None else read_location({"country": country}),
        "max_results": count_of(value.get("max_search_results")),
        **beyond(FAMILY, {**value, "sources": None, **only}, "mode", "max_search_results"),
    }


_READ_SETTING = {
    "web_search_options": _read_search_options,
    "plugins": _read_plugin,
    "search_parameters": _read_search_parameters,
}
