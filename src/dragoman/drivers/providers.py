"""The providers, as data: format, URL, key and peculiarities of each.

No code compares provider names: a difference is a field here, or a function in a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Literal, TypeAlias
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from dragoman.errors import NotConfigured
from dragoman.ir import Failure

Place: TypeAlias = Mapping[str, str]
"""Values of a provider's variables: region, project, location, api_version ..."""
Auth: TypeAlias = Literal["none", "bearer", "x-api-key", "x-goog-api-key", "api-key", "google", "amazon"]


class Target(Struct, frozen=True):
    """The target of one request, as seen by its codec."""

    path: str
    model: str
    stream: bool
    place: Place


class Variable(Struct, frozen=True):
    """A variable of a URL. `missing` tells the user what to do."""

    name: str
    environment: tuple[str, ...] = ()
    default: str | None = None
    required: bool = False


class Listing(Struct, frozen=True):
    """How models are listed: the path, the key of the list, the key of the name."""

    path: str
    items: str = "data"
    id: str = "id"
    base_url: str = ""
    """Base URL of the list, if it is on another host."""


def _same_path(target: Target) -> str:
    return target.path


def _same_body(body: bytes) -> bytes:
    return body


def _is_temporary(_failure: Failure) -> bool:
    return False


class Provider(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    format: str
    profile: str = ""
    """Name of the codec's profile; empty for the vendor's own."""
    base_url: str
    """May have variables in braces. Empty: must be given."""
    base_url_environment: tuple[str, ...] = ()
    auth: Auth = "bearer"
    key_environment: tuple[str, ...] = ()
    key_required: bool = True
    variables: tuple[Variable, ...] = ()
    path: Callable[[Target], str] = _same_path
    body: Callable[[bytes], bytes] = _same_body
    headers: Mapping[str, str] = {}
    stream_keys: Mapping[str, object] = {}
    """Keys added to streaming requests: some servers count tokens only with them."""
    request_id: tuple[str, ...] = ("x-request-id", "request-id")
    """Response headers with the request id; the first one present counts."""
    client_request_id: str = ""
    """Request header for our own id."""
    lasting: Callable[[Failure], bool] = _is_temporary
    """Whether a rate limit is a quota that no reasonable wait renews."""
    listing: Listing | None = None
    embeddings: str = ""
    """Dialect of `dragoman.embeddings`; empty if it has no embeddings."""
    realtime: str = ""
    """Its realtime API over WebSockets, if it has one: `openai` or `gemini-live`."""
    extra: str = ""
    """The extra with the package that it needs, if any."""
    example: str = ""


# ── addresses ─────────────────────────────────────────────────────────────────────────────────────────────────

_REPLICATED = frozenset({"us", "eu"})


def vertex_host(location: str) -> str:
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in _REPLICATED:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


def _in_project(target: Target) -> str:
    """Express keys determine the project themselves."""
    project = target.place.get("project")
    if not project:
        return target.path
    inside = f"/projects/{quote(project)}/locations/{quote(target.place['location'])}"
    return re.sub("/(?:publishers|cachedContents)(?=/|$)", lambda found: inside + found[0], target.path, count=1)


def _interactions_in_project(target: Target) -> str:
    project = target.place.get("project")
    if not project:
        return target.path
    inside = f"/projects/{quote(project)}/locations/{quote(target.place['location'])}/interactions"
    return target.path.replace("/interactions", inside, 1)


def _claude_on_vertex(target: Target) -> str:
    method = "streamRawPredict" if target.stream else "rawPredict"
    project = target.place.get("project")
    if not project:
        words = "Claude on Vertex AI needs a project: set GOOGLE_CLOUD_PROJECT, or pass project=..."
        raise NotConfigured(words, missing="project")
    where = f"/v1/projects/{quote(project)}/locations/{quote(target.place['location'])}"
    return f"{where}/publishers/anthropic/models/{quote(target.model, safe='@')}:{method}"


_object = msgspec.json.Decoder(dict[str, Raw]).decode


def _versioned_body(body: bytes) -> bytes:
    """On Vertex AI the model is in the URL and the version in the body."""
    fields = _object(body)
    fields.pop("model", None)
    return msgspec.json.encode({"anthropic_version": "vertex-2023-10-16", **fields})


def _deployment(target: Target) -> str:
    """With an API version, the older URL with the deployment; without, the newer one with the model."""
    version = target.place.get("api_version")
    if not version:
        return f"/openai/v1{target.path}"
    if not target.model:
        return _azure_responses(target)
    return f"/openai/deployments/{quote(target.model, safe='')}{target.path}?api-version={quote(version)}"


def _azure_responses(target: Target) -> str:
    version = target.place.get("api_version")
    return f"/openai{target.path}?api-version={quote(version)}" if version else f"/openai/v1{target.path}"


def _is_daily_quota(failure: Failure) -> bool:
    """Whether Google names a daily quota (`GenerateRequestsPerDayPerProjectPerModel-FreeTier`), or a limit of 0."""
    details = failure.details if isinstance(failure.details, list) else []
    violations = [one for detail in details if isinstance(detail, dict) for one in detail.get("violations", ())]
    return any("PerDay" in one.get("quotaId", "") or one.get("quotaValue") == "0" for one in violations)


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────

_MODELS = Listing("/models")
_USAGE = {"stream_options": {"include_usage": True}}
_PROJECT = Variable("project", ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"))
_LOCATION = Variable("location", ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION", "CLOUD_ML_REGION"), "global")
_API_VERSION = Variable("api_version", ("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION"))
_AZURE_KEYS = ("AZURE_OPENAI_API_KEY",)
_AZURE_URLS = ("AZURE_OPENAI_ENDPOINT",)
_AZURE_IDS = ("apim-request-id", "x-request-id")

_OWN: tuple[Provider, ...] = (
    Provider(
        name="openai",
        realtime="openai",
        embeddings="openai",
        title="OpenAI (Responses)",
        format="openai-responses",
        base_url="https://api.openai.com/v1",
        base_url_environment=("OPENAI_BASE_URL",),
        key_environment=("OPENAI_API_KEY",),
        client_request_id="x-client-request-id",
        listing=_MODELS,
        example="gpt-5.6",
    ),
    Provider(
        name="openai-chat",
        realtime="openai",
        embeddings="openai",
        title="OpenAI (Chat Completions)",
        format="openai-chat",
        base_url="https://api.openai.com/v1",
        base_url_environment=("OPENAI_BASE_URL",),
        key_environment=("OPENAI_API_KEY",),
        client_request_id="x-client-request-id",
        stream_keys=_USAGE,
        listing=_MODELS,
        example="gpt-5.6",
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        format="anthropic-messages",
        base_url="https://api.anthropic.com",
        base_url_environment=("ANTHROPIC_BASE_URL",),
        auth="x-api-key",
        key_environment=("ANTHROPIC_API_KEY",),
        request_id=("request-id", "x-request-id"),
        listing=Listing("/v1/models?limit=1000"),
        headers={"anthropic-version": "2023-06-01"},
        example="claude-sonnet-5",
    ),
    Provider(
        name="gemini",
        realtime="gemini-live",
        embeddings="gemini",
        title="Google Gemini (developer API)",
        format="gemini",
        base_url="https://generativelanguage.googleapis.com",
        base_url_environment=("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"),
        auth="x-goog-api-key",
        lasting=_is_daily_quota,
        key_environment=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        listing=Listing("/v1beta/models?pageSize=1000", "models", "name"),
        example="gemini-3.8-flash",
    ),
    Provider(
        name="vertex",
        embeddings="vertex",
        title="Google Vertex AI",
        format="vertex",
        base_url="{host}",
        base_url_environment=("GOOGLE_VERTEX_BASE_URL",),
        auth="google",
        key_environment=("GOOGLE_API_KEY",),
        key_required=False,
        variables=(_PROJECT, _LOCATION),
        path=_in_project,
        lasting=_is_daily_quota,
        listing=Listing("/v1beta1/publishers/google/models", "publisherModels", "name"),
        extra="vertex",
        example="gemini-3.8-flash",
    ),
    Provider(
        name="gemini-interactions",
        embeddings="gemini",
        title="Google Gemini (Interactions)",
        format="gemini-interactions",
        base_url="https://generativelanguage.googleapis.com",
        base_url_environment=("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"),
        auth="x-goog-api-key",
        lasting=_is_daily_quota,
        key_environment=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        headers={"api-revision": "2026-05-20"},
        listing=Listing("/v1beta/models?pageSize=1000", "models", "name"),
        example="gemini-3.8-flash",
    ),
    Provider(
        name="vertex-interactions",
        embeddings="vertex",
        title="Google Vertex AI (Interactions)",
        format="gemini-interactions",
        profile="VERTEX_PROFILE",
        base_url="{host}",
        base_url_environment=("GOOGLE_VERTEX_BASE_URL",),
        auth="google",
        key_environment=("GOOGLE_API_KEY",),
        key_required=False,
        variables=(_PROJECT, _LOCATION),
        path=_interactions_in_project,
        lasting=_is_daily_quota,
        headers={"api-revision": "2026-05-20"},
        listing=Listing("/v1beta1/publishers/google/models", "publisherModels", "name"),
        extra="vertex",
        example="gemini-3.8-flash",
    ),
    Provider(
        name="vertex-anthropic",
        title="Claude on Vertex AI",
        format="anthropic-messages",
        base_url="{host}",
        base_url_environment=("ANTHROPIC_VERTEX_BASE_URL",),
        auth="google",
        key_required=False,
        variables=(_PROJECT, _LOCATION),
        path=_claude_on_vertex,
        body=_versioned_body,
        extra="vertex",
        example="claude-sonnet-5",
    ),
    Provider(
        name="cohere",
        embeddings="cohere",
        title="Cohere",
        format="cohere-chat",
        base_url="https://api.cohere.com",
        base_url_environment=("COHERE_BASE_URL", "CO_API_URL"),
        key_environment=("COHERE_API_KEY", "CO_API_KEY"),
        listing=Listing("/v1/models?endpoint=chat&page_size=1000", "models", "name"),
        example="command-a-03-2025",
    ),
    Provider(
        name="ollama",
        embeddings="ollama",
        title="Ollama",
        format="ollama-chat",
        base_url="http://127.0.0.1:11434",
        base_url_environment=("OLLAMA_HOST",),
        key_environment=("OLLAMA_API_KEY",),
        key_required=False,
        listing=Listing("/api/tags", "models", "name"),
        example="qwen3",
    ),
    Provider(
        name="local",
        embeddings="openai",
        title="A model in a local process (llama.cpp)",
        format="openai-chat",
        profile="LLAMA_CPP",
        base_url="local://llama.cpp/v1",
        auth="none",
        key_required=False,
        stream_keys=_USAGE,
        listing=_MODELS,
        extra="local",
        example="smollm2",
    ),
    Provider(
        name="bedrock",
        embeddings="bedrock",
        title="Amazon Bedrock (Converse)",
        format="bedrock-converse",
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        base_url_environment=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
        auth="amazon",
        key_environment=("AWS_BEARER_TOKEN_BEDROCK",),
        key_required=False,
        variables=(
            Variable("region", ("AWS_REGION", "AWS_DEFAULT_REGION"), required=True),
            Variable("profile", ("AWS_PROFILE",)),
        ),
        request_id=("x-amzn-requestid",),
        listing=Listing(
            "/foundation-models", "modelSummaries", "modelId", base_url="https://bedrock.{region}.amazonaws.com"
        ),
        extra="bedrock",
        example="anthropic.claude-sonnet-5",
    ),
    Provider(
        name="azure",
        embeddings="openai",
        title="Azure OpenAI (Chat Completions)",
        format="openai-chat",
        base_url="",
        base_url_environment=_AZURE_URLS,
        auth="api-key",
        key_environment=_AZURE_KEYS,
        variables=(_API_VERSION,),
        path=_deployment,
        request_id=_AZURE_IDS,
        client_request_id="x-ms-client-request-id",
        stream_keys=_USAGE,
        listing=Listing("/openai/v1/models"),
        example="my-deployment",
    ),
    Provider(
        name="azure-responses",
        embeddings="openai",
        title="Azure OpenAI (Responses)",
        format="openai-responses",
        base_url="",
        base_url_environment=_AZURE_URLS,
        auth="api-key",
        key_environment=_AZURE_KEYS,
        variables=(_API_VERSION,),
        path=_azure_responses,
        request_id=_AZURE_IDS,
        client_request_id="x-ms-client-request-id",
        listing=Listing("/openai/v1/models"),
        example="my-deployment",
    ),
)


class _Compatible(Struct, frozen=True):
    """A server with Chat Completions, and its peculiarities."""

    name: str
    title: str
    base_url: str
    key_environment: tuple[str, ...] = ()
    profile: str = "COMPATIBLE"
    example: str = ""
    base_url_environment: tuple[str, ...] = ()
    key_required: bool = True
    counts_on_request: bool = True
    """Whether streams report token counts only on request."""
    embeddings: str = "openai"
    realtime: str = ""


_COMPATIBLE: tuple[_Compatible, ...] = (
    _Compatible(
        "groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        "GROQ",
        "openai/gpt-oss-120b",
        embeddings="",
    ),
    _Compatible(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        "MISTRAL",
        "mistral-medium-latest",
        # It refuses unknown keys.
        counts_on_request=False,
        embeddings="mistral",
    ),
    _Compatible(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        "DEEPSEEK",
        "deepseek-chat",
        embeddings="",
    ),
    _Compatible("xai", "xAI", "https://api.x.ai/v1", ("XAI_API_KEY",), "XAI", "grok-4", embeddings=""),
    _Compatible(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        "OPENROUTER",
        "anthropic/claude-sonnet-5",
    ),
    _Compatible("together", "Together AI", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    _Compatible("fireworks", "Fireworks AI", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    _Compatible("cerebras", "Cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",), embeddings=""),
    _Compatible("moonshot", "Moonshot AI", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), embeddings=""),
    _Compatible("huggingface", "Hugging Face", "https://router.huggingface.co/v1", ("HF_TOKEN",)),
    _Compatible(
        "gemini-openai",
        "Gemini (OpenAI-compatible API)",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GEMINI_OPENAI",
        "gemini-3.8-flash",
    ),
    _Compatible(
        "vllm",
        "vLLM",
        "http://127.0.0.1:8000/v1",
        ("VLLM_API_KEY",),
        "VLLM",
        "",
        ("VLLM_BASE_URL",),
        key_required=False,
    ),
    _Compatible(
        "llama-cpp",
        "llama.cpp server",
        "http://127.0.0.1:8080/v1",
        ("LLAMA_API_KEY",),
        "LLAMA_CPP",
        "",
        ("LLAMA_CPP_BASE_URL",),
        key_required=False,
    ),
    _Compatible(
        "lm-studio",
        "LM Studio",
        "http://127.0.0.1:1234/v1",
        base_url_environment=("LMSTUDIO_BASE_URL",),
        key_required=False,
    ),
    _Compatible(
        "openai-compatible",
        "any other server",
        "",
        ("OPENAI_COMPATIBLE_API_KEY",),
        base_url_environment=("OPENAI_COMPATIBLE_BASE_URL",),
        key_required=False,
        realtime="openai",
    ),
)


def _compatible_provider(row: _Compatible) -> Provider:
    return Provider(
        name=row.name,
        title=row.title,
        format="openai-chat",
        profile=row.profile,
        base_url=row.base_url,
        base_url_environment=row.base_url_environment,
        key_environment=row.key_environment,
        key_required=row.key_required,
        stream_keys=_USAGE if row.counts_on_request else {},
        listing=_MODELS,
        embeddings=row.embeddings,
        realtime=row.realtime,
        example=row.example,
    )


PROVIDERS: Mapping[str, Provider] = {row.name: row for row in (*_OWN, *map(_compatible_provider, _COMPATIBLE))}
ALIASES: Mapping[str, str] = {
    "openai-responses": "openai",
    "google": "gemini",
    "google-vertex": "vertex",
    "anthropic-vertex": "vertex-anthropic",
    "aws": "bedrock",
    "azure-openai": "azure",
    "x-ai": "xai",
}


# Providers that have models with such names. The one whose own format the client uses comes first.
_BY_NAME: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), tuple(providers))
    for pattern, *providers in (
        (r"(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen)\.|arn:aws", "bedrock"),
        (r"claude-", "anthropic"),
        (r"text-embedding-(?:3|ada)", "openai"),
        (r"text-embedding-\d{3}|text-multilingual-embedding-", "vertex"),
        (r"embed-(?:v\d|english|multilingual)", "cohere"),
        (r"(?:ft:)?(?:gpt-(?!oss)|chatgpt-|o[134](?:-|$)|codex-)", "openai"),
        (r"(?:models/)?(?:gemini-|gemma-\d)", "gemini", "vertex"),
        (r"grok-", "xai"),
        (r"command-|c4ai-", "cohere"),
        (r"deepseek-(?:chat|reasoner)", "deepseek"),
        (r"(?:mistral|codestral|magistral|devstral)-", "mistral"),
        (r"[\w.-]+:[\w.-]+$", "ollama"),
    )
)


def providers_of_name(model: str) -> tuple[str, ...]:
    """The providers that have models with such names; empty if the name shows no vendor."""
    return next((names for pattern, names in _BY_NAME if pattern.match(model)), ())


def missing_provider(model: str) -> NotConfigured:
    """The error for a name that is not `provider/model`. It says which name was probably meant."""
    head, _, rest = model.partition(":")
    if rest and ALIASES.get(head, head) in PROVIDERS:
        meant = f"{head}/{rest}"
    elif "/" not in model and (having := providers_of_name(model)):
        meant = f"{having[0]}/{model}"
    else:
        meant = "provider/model, such as openai/gpt-5.6"
    lacks = "no model" if model.endswith("/") and model != "/" else "no provider"
    return NotConfigured(f"{model!r} has {lacks}: write {meant}", missing="model")


def find_provider(name: str) -> Provider:
    row = PROVIDERS.get(ALIASES.get(name, name))
    if row is None:
        close = get_close_matches(name, PROVIDERS, n=1, cutoff=0.7)
        hint = f": did you mean {close[0]!r}?" if close else f"; known providers: {', '.join(PROVIDERS)}"
        raise NotConfigured(f"unknown provider {name!r}{hint}", missing="provider")
    return row
