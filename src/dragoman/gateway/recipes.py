"""What to set so that a client asks this gateway instead of its vendor: lines for a shell, or for a file."""

from __future__ import annotations

from collections.abc import Mapping

RECIPES: Mapping[str, tuple[str, ...]] = {
    "claude-code": (
        "export ANTHROPIC_BASE_URL={url}",
        "export ANTHROPIC_API_KEY={key}",
        "export ANTHROPIC_MODEL={model}",
        "export ANTHROPIC_SMALL_FAST_MODEL={model}",
    ),
    "codex": (
        "export DRAGOMAN_KEY={key}",
        "# codex -c takes what would stand in ~/.codex/config.toml:",
        "codex -c model_provider=dragoman -c model={model} \\",
        "  -c model_providers.dragoman.name=dragoman -c model_providers.dragoman.base_url={url}/v1 \\",
        "  -c model_providers.dragoman.env_key=DRAGOMAN_KEY -c model_providers.dragoman.wire_api=responses",
    ),
    "gemini-cli": (
        "export GOOGLE_GEMINI_BASE_URL={url}",
        "export GEMINI_API_KEY={key}",
        "export GEMINI_MODEL={model}",
    ),
    "opencode": (
        "# opencode.json:",
        '{{"provider": {{"dragoman": {{"npm": "@ai-sdk/openai-compatible", "models": {{"{model}": {{}}}},',
        '  "options": {{"baseURL": "{url}/v1", "apiKey": "{key}"}}}}}}}}',
    ),
    "openai": ("export OPENAI_BASE_URL={url}/v1", "export OPENAI_API_KEY={key}"),
    "anthropic": ("export ANTHROPIC_BASE_URL={url}", "export ANTHROPIC_API_KEY={key}"),
    "google-genai": ("export GOOGLE_GEMINI_BASE_URL={url}", "export GEMINI_API_KEY={key}"),
    "ollama": ("export OLLAMA_HOST={url}",),
    "bedrock": (
        "export AWS_ENDPOINT_URL_BEDROCK_RUNTIME={url}",
        "export AWS_BEARER_TOKEN_BEDROCK={key}",
        "export AWS_REGION=us-east-1",
    ),
    "vercel-ai-sdk": ("export OPENAI_BASE_URL={url}/v1", "export OPENAI_API_KEY={key}"),
    "langchain": ("export OPENAI_API_BASE={url}/v1", "export OPENAI_API_KEY={key}"),
    "pydantic-ai": ("export OPENAI_BASE_URL={url}/v1", "export OPENAI_API_KEY={key}"),
    "llm": (
        "# extra-openai-models.yaml, in the folder that `llm logs path` names:",
        "- {{model_id: dragoman, model_name: {model}, api_base: {url}/v1}}",
        "llm keys set openai --value {key}",
    ),
}


def recipe(client: str, *, url: str, key: str, model: str) -> str:
    return "\n".join(line.format(url=url, key=key, model=model) for line in RECIPES[client])
