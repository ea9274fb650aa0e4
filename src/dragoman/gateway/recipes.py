"""Shell lines, for `eval`, that make a client use this gateway instead of its vendor."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct


class Address(Struct, frozen=True, kw_only=True):
    """URL and key of the gateway, and the model that is to answer."""

    url: str
    key: str
    model: str


Recipe: TypeAlias = Callable[[Address], Iterator[str]]


def _exports(variables: Mapping[str, str], *more: str) -> Recipe:
    """Return a recipe of exports, followed by comment lines; both may contain `{url}`, `{key}` and `{model}`."""

    def lines(address: Address) -> Iterator[str]:
        given = {"url": address.url, "key": address.key, "model": address.model}
        yield from (f"export {name}={shlex.quote(value.format(**given))}" for name, value in variables.items())
        yield from (line.format(**given) for line in more)

    return lines


_OPENAI = {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "{key}"}
_ANTHROPIC = {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"}
_GOOGLE = {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"}


def _codex(address: Address) -> Iterator[str]:
    """Yield lines for Codex, which reads the URL of a provider only from its configuration; `-c` extends that."""
    provider = {"name": "dragoman", "base_url": f"{address.url}/v1", "env_key": "DRAGOMAN_KEY", "wire_api": "responses"}
    settings = {
        "model": address.model,
        "model_provider": "dragoman",
        **{f"model_providers.dragoman.{name}": value for name, value in provider.items()},
    }
    yield f"export DRAGOMAN_KEY={shlex.quote(address.key)}"
    yield "codex() {"
    yield "  command codex \\"
    yield from (f"    -c {shlex.quote(f'{name}={json.dumps(value)}')} \\" for name, value in settings.items())
    yield '    "$@"'
    yield "}"


def _gemini_cli(address: Address) -> Iterator[str]:
    """Yield lines for Gemini CLI, which starts with another URL only if its settings select an API key."""
    yield from _exports(_GOOGLE | {"GEMINI_MODEL": "{model}"})(address)
    settings = shlex.quote(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    yield "# if you have a settings file already, choose the API key there, or with /auth"
    yield 'mkdir -p "$HOME/.gemini"'
    yield f'[ -e "$HOME/.gemini/settings.json" ] || echo {settings} > "$HOME/.gemini/settings.json"'


def _opencode(address: Address) -> Iterator[str]:
    """Yield lines for OpenCode. Of its formats, Anthropic's preserves most of what other vendors need back."""
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": "dragoman",
        "options": {"baseURL": f"{address.url}/v1", "apiKey": address.key},
        "models": {address.model: {"name": address.model}},
    }
    name = f"dragoman/{address.model}"
    content = {"model": name, "small_model": name, "provider": {"dragoman": provider}}
    yield "# instead of an opencode.json"
    yield f"export OPENCODE_CONFIG_CONTENT={shlex.quote(json.dumps(content))}"


def _llm(address: Address) -> Iterator[str]:
    """Yield lines that add the model to llm's YAML file, as JSON (valid YAML), so that any name is quoted correctly."""
    name = f"dragoman/{address.model}"
    entry = {"model_id": name, "model_name": address.model, "api_base": f"{address.url}/v1", "api_key_name": "dragoman"}
    line = f"- {json.dumps({**entry, 'supports_tools': True, 'supports_schema': True, 'vision': True})}"
    yield 'models="$(dirname "$(llm logs path)")/extra-openai-models.yaml"'
    yield f"entry={shlex.quote(line)}"
    yield 'grep -qsxF -e "$entry" "$models" || printf "\\n%s\\n" "$entry" >> "$models"'
    yield f"llm keys set dragoman --value {shlex.quote(address.key)}"
    yield f"# llm -m {shlex.quote(name)} Hello"


RECIPES: Mapping[str, Recipe] = {
    "claude-code": _exports(
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_AUTH_TOKEN": "{key}",
            "ANTHROPIC_MODEL": "{model}",
            # For requests of Claude Code itself: titles, summaries, subagents.
            **{f"ANTHROPIC_DEFAULT_{size}_MODEL": "{model}" for size in ("OPUS", "SONNET", "HAIKU")},
        }
    ),
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
    "openai": _exports(_OPENAI),
    "anthropic": _exports(_ANTHROPIC),
    "google-genai": _exports(_GOOGLE),
    "ollama": _exports({"OLLAMA_HOST": "{url}"}),
    "cohere": _exports({"CO_API_URL": "{url}", "CO_API_KEY": "{key}"}),
    "bedrock": _exports(
        {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{url}",
            # The SDK sends bearer tokens over TLS only.
            "AWS_ACCESS_KEY_ID": "{key}",
            "AWS_SECRET_ACCESS_KEY": "{key}",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    ),
    "vercel-ai-sdk": _exports(
        # Its base URLs end in a version, unlike those of the vendors' own SDKs.
        _OPENAI
        | {
            "ANTHROPIC_BASE_URL": "{url}/v1",
            "ANTHROPIC_API_KEY": "{key}",
            "GOOGLE_GENERATIVE_AI_BASE_URL": "{url}/v1beta",
            "GOOGLE_GENERATIVE_AI_API_KEY": "{key}",
        },
        "# for Google's models it reads only the key; set the URL in your code:",
        "# createGoogleGenerativeAI({{ baseURL: process.env.GOOGLE_GENERATIVE_AI_BASE_URL }})",
    ),
    "langchain": _exports(_OPENAI | _ANTHROPIC | _GOOGLE),
    "pydantic-ai": _exports(_OPENAI | _ANTHROPIC | _GOOGLE),
    "llm": _llm,
}


def recipe(client: str, *, url: str, key: str, model: str) -> Iterable[str]:
    return RECIPES[client](Address(url=url, key=key, model=model))
