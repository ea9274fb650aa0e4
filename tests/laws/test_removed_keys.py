"""Law 2 by construction: every key of every sample body removed, alone.

A key that is removed changes what another format says, or its losses; or a loss of the whole body's translation names
the key or an object around it; or the shortened body is refused. Keys for which none of this holds have no meaning of
their own, or none for that target: they are listed below, with the value that they have and the reason.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import dragoman
from tests.support.cases import each
from tests.support.edits import Edit, edits
from tests.support.formats import FAMILY, FORMATS
from tests.support.promises import promise
from tests.support.small_bodies import small_bodies

_TYPE = "the other keys of the object say of which type it is"
_ROLE = "the place says whose turn it is"
_DEFAULT = "what holds if the key is missing"
_REPEATED = "another key says it too"
_ORDER = "the order says it"
_PAIRED = "the call that it answers says it"
_SHOWN = "the data show the type"
_SUM = "the sum of the other counts"
_OWN_IDS = "an item of this API has an id; parts elsewhere do not"
_WHOLE = "it goes with the object whose loss is reported at a key beside it"
_ALL_TOOLS = "the choice is among all the tools that there are"
_NO_ARGUMENTS = "a call without arguments"

_GOOGLE = "gemini vertex"
_CONSTRAINED = "anthropic-messages bedrock-converse gemini gemini-interactions ollama-chat vertex"


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A key that may be removed in silence: its formats, its path without indices, its values (all if none is named)
    and the targets (all if none is named)."""

    formats: str
    path: str
    why: str
    values: tuple[Any, ...] = ()
    targets: str = ""

    def names(self, name: str, edit: Edit) -> bool:
        return (
            name in self.formats.split()
            and re.sub(r"\[\d+\]", "[]", edit.path) == self.path
            and (not self.values or edit.before in self.values)
        )

    def covers(self, name: str, target: str, edit: Edit) -> bool:
        return (not self.targets or target in self.targets.split()) and self.names(name, edit)


REQUEST_KEYS = (
    # Types and roles
    Unsaid("anthropic-messages cohere-chat", "$.thinking.type", _TYPE, ("enabled",)),
    Unsaid("anthropic-messages", "$.messages[].content[].content[].content[].type", _TYPE, ("text",)),
    Unsaid("anthropic-messages", "$.mcp_servers[].type", _TYPE, ("url",)),
    Unsaid("bedrock-converse", "$.additionalModelRequestFields.thinking.type", _TYPE, ("enabled",)),
    Unsaid("bedrock-converse", "$.messages[].content[].toolUse.type", _TYPE, ("tool_use",)),
    Unsaid("cohere-chat ollama-chat openai-chat", "$.messages[].tool_calls[].type", _TYPE),
    Unsaid("ollama-chat openai-chat", "$.tools[].type", _TYPE, ("function",)),
    Unsaid("openai-chat", "$.tool_choice.type", _TYPE),
    Unsaid("openai-responses", "$.input[].content[].annotations[].type", _TYPE, ("url_citation",)),
    Unsaid("openai-responses", "$.input[].output.type", _TYPE, ("computer_screenshot",)),
    Unsaid("openai-responses", "$.input[].type", _TYPE, ("message",)),
    Unsaid(_GOOGLE, "$.contents.role", _ROLE, ("USER",)),
    Unsaid(_GOOGLE, "$.contents[].role", _ROLE),
    # Defaults
    Unsaid("anthropic-messages", "$.messages[].content[].is_error", _DEFAULT, (False,)),
    Unsaid("anthropic-messages openai-chat openai-responses", "$.service_tier", _DEFAULT, ("auto",)),
    Unsaid(
        "anthropic-messages cohere-chat gemini-interactions openai-chat openai-responses",
        "$.stream",
        _DEFAULT,
        (False,),
    ),
    Unsaid("ollama-chat", "$.stream", _DEFAULT, (True,)),
    Unsaid("ollama-chat", "$.options", _DEFAULT, ({"num_predict": -1, "seed": -1},)),
    Unsaid("ollama-chat", "$.options.num_predict", _DEFAULT, (-1,)),
    Unsaid("ollama-chat", "$.options.seed", _DEFAULT, (-1,)),
    Unsaid("bedrock-converse", "$.messages[].content[].toolResult.status", _DEFAULT, ("success",)),
    Unsaid(_GOOGLE, "$.contents[].parts[].codeExecutionResult.outcome", _DEFAULT, ("OUTCOME_OK",)),
    Unsaid(_GOOGLE, "$.contents[].parts[].executableCode.language", _DEFAULT, ("PYTHON",)),
    Unsaid(_GOOGLE, "$.generationConfig.candidateCount", _DEFAULT, (1,)),
    Unsaid("gemini-interactions", "$.input[].is_error", _DEFAULT, (False,)),
    Unsaid("gemini-interactions", "$.tools[].search_types", _DEFAULT, (["web_search"],)),
    Unsaid("openai-responses", "$.input[].content[].annotations[].start_index", _DEFAULT, (0,)),
    Unsaid("openai-responses", "$.input[].content[].detail", _DEFAULT, ("auto",)),
    Unsaid("openai-responses", "$.input[].output[].detail", _DEFAULT, ("auto",)),
    Unsaid("openai-responses", "$.input[].status", _DEFAULT, ("completed",)),
    Unsaid("openai-responses", "$.tool_choice.mode", _DEFAULT, ("auto",)),
    Unsaid("openai-responses", "$.tools[].container.type", _DEFAULT, ("auto",)),
    Unsaid("cohere-chat openai-chat", "$.messages[].tool_calls[].function.arguments", _NO_ARGUMENTS, ("{}", "null")),
    Unsaid("openai-chat", "$.messages[].function_call.arguments", _NO_ARGUMENTS, ("{}",)),
    Unsaid("openai-responses", "$.input[].arguments", _NO_ARGUMENTS, ("{}",)),
    Unsaid(
        "openai-chat",
        "$.messages[].tool_calls[].function",
        "a call without a name is not a call",
        ({"name": "", "arguments": "{}"},),
    ),
    # What another key says
    Unsaid("anthropic-messages", "$.tools[].name", "the type of a tool of the provider names it"),
    Unsaid("bedrock-converse", "$.messages[].content[].citationsContent.citations[].location.web.domain", _REPEATED),
    Unsaid("bedrock-converse", "$.messages[].content[].document.format", _SHOWN),
    Unsaid("bedrock-converse", "$.messages[].content[].toolResult.content[].document.format", _DEFAULT, ("txt",)),
    Unsaid("gemini-interactions", "$.input[].mime_type", _SHOWN),
    Unsaid(_GOOGLE, "$.contents[].parts[].fileData.mimeType", "a document by URL is a PDF", ("application/pdf",)),
    Unsaid(_GOOGLE, "$.generationConfig.responseMimeType", "the schema is one of JSON", ("application/json",)),
    Unsaid("gemini-interactions", "$.response_format.mime_type", "the schema is one of JSON", ("application/json",)),
    Unsaid("gemini-interactions", "$.response_format.schema.type", "an answer is an object there", ("object",)),
    Unsaid(_GOOGLE, "$.contents[].parts[].functionResponse.id", _PAIRED),
    Unsaid(_GOOGLE, "$.contents[].parts[].functionResponse.name", _PAIRED),
    Unsaid("gemini-interactions", "$.input[].name", _PAIRED),
    Unsaid("ollama-chat", "$.messages[].tool_call_id", _PAIRED),
    Unsaid("ollama-chat", "$.messages[].tool_name", _PAIRED),
    Unsaid("ollama-chat", "$.messages[].tool_calls[].function.index", _ORDER),
    Unsaid("ollama-chat", "$.messages[].tool_calls[].id", _ORDER, targets="vertex"),
    Unsaid("openai-chat", "$.messages[].reasoning_details[].id", _ORDER, targets="anthropic-messages"),
    Unsaid("openai-responses", "$.input[].id", _OWN_IDS),
    Unsaid(
        _GOOGLE,
        "$.toolConfig.functionCallingConfig.allowedFunctionNames",
        _ALL_TOOLS,
        targets="bedrock-converse cohere-chat ollama-chat",
    ),
    Unsaid(
        "gemini-interactions",
        "$.generation_config.tool_choice.allowed_tools.tools",
        _ALL_TOOLS,
        targets="cohere-chat",
    ),
    Unsaid(
        "openai-chat openai-responses", "$.tool_choice", _ALL_TOOLS, targets="cohere-chat gemini ollama-chat vertex"
    ),
    Unsaid("openai-responses", "$.tool_choice.tools", _ALL_TOOLS),
    # What the target does anyway
    Unsaid("openai-chat", "$.stream_options", "streams elsewhere end with the usage", ({"include_usage": True},)),
    Unsaid("openai-chat", "$.stream_options.include_usage", "streams elsewhere end with the usage", (True,)),
    Unsaid("openai-responses", "$.include", "signatures are always sent", (["reasoning.encrypted_content"],)),
    Unsaid("gemini-interactions openai-responses", "$.store", "stored only if a client asks for it", (False,)),
    Unsaid(
        _GOOGLE,
        "$.toolConfig.includeServerSideToolInvocations",
        "they are steps there",
        (True,),
        "gemini-interactions",
    ),
    Unsaid(
        "cohere-chat",
        "$.strict_tools",
        "a call that is forced follows the schema",
        (True,),
        "gemini gemini-interactions vertex",
    ),
    Unsaid(
        "openai-chat",
        "$.tools[].function.strict",
        "a call that is forced follows the schema",
        (True,),
        "gemini gemini-interactions vertex",
    ),
    Unsaid(
        "openai-responses",
        "$.tools[].strict",
        "a call that is forced follows the schema",
        (True,),
        "gemini gemini-interactions vertex",
    ),
    Unsaid(
        "openai-chat",
        "$.response_format.json_schema.strict",
        "an answer always follows the schema",
        (True,),
        _CONSTRAINED,
    ),
    Unsaid("openai-responses", "$.text.format.strict", "an answer always follows the schema", (True,), _CONSTRAINED),
    Unsaid(
        _GOOGLE,
        "$.generationConfig.thinkingConfig.includeThoughts",
        "thoughts are shown with every budget",
        (True,),
        "cohere-chat ollama-chat openai-responses",
    ),
    Unsaid(
        "gemini-interactions",
        "$.generation_config.thinking_summaries",
        "thoughts are shown with every effort",
        ("auto",),
        "cohere-chat gemini ollama-chat vertex",
    ),
    Unsaid(
        "openai-responses",
        "$.reasoning",
        "thoughts are always shown",
        ({"summary": "auto"},),
        "cohere-chat ollama-chat",
    ),
    Unsaid(
        "openai-responses",
        "$.reasoning.summary",
        "thoughts are shown with every effort",
        ("auto",),
        "cohere-chat gemini ollama-chat vertex",
    ),
)

ANSWER_KEYS = (
    # Types and roles
    Unsaid("openai-chat", "$.choices[].message.function_call", _REPEATED, ({"name": "f", "arguments": "{}"},)),
    Unsaid("anthropic-messages", "$.type", _TYPE, ("message",)),
    Unsaid("bedrock-converse", "$.output.message.content[].toolUse.type", _TYPE, ("tool_use",)),
    Unsaid("cohere-chat", "$.message.tool_calls[].type", _TYPE),
    Unsaid("gemini-interactions openai-chat openai-responses", "$.object", _TYPE),
    Unsaid("gemini-interactions", "$.steps[].content[].annotations[].type", _TYPE, ("url_citation",)),
    Unsaid("openai-chat", "$.choices[].message.annotations[].type", _TYPE, ("url_citation",)),
    Unsaid("openai-chat", "$.choices[].message.tool_calls[].type", _TYPE),
    Unsaid("openai-responses", "$.output[].content[].annotations[].type", _TYPE, ("url_citation",)),
    Unsaid("openai-responses", "$.output[].type", _TYPE, ("message",)),
    Unsaid("anthropic-messages", "$.role", _ROLE),
    Unsaid("cohere-chat ollama-chat", "$.message.role", _ROLE),
    Unsaid("cohere-chat", "$.message", _ROLE, ({"role": "assistant"},)),
    Unsaid("ollama-chat", "$.message", _ROLE, ({"role": "assistant", "content": ""},)),
    Unsaid(_GOOGLE, "$.candidates[].content", _ROLE, ({"role": "model", "parts": []},)),
    Unsaid(_GOOGLE, "$.candidates[].content.role", _ROLE),
    Unsaid(
        "openai-chat",
        "$.choices[].message",
        _ROLE,
        ({"role": "assistant", "content": ""}, {"role": "assistant", "content": None}),
    ),
    Unsaid("openai-chat", "$.choices[].message.role", _ROLE),
    Unsaid("openai-responses", "$.output[].role", _ROLE),
    # Defaults
    Unsaid("anthropic-messages", "$.usage.output_tokens", _DEFAULT, (0,)),
    Unsaid("bedrock-converse", "$.usage.outputTokens", _DEFAULT, (0,)),
    Unsaid("openai-chat", "$.usage.completion_tokens_details.audio_tokens", _DEFAULT, (0,)),
    Unsaid("openai-chat", "$.usage.prompt_tokens_details.audio_tokens", _DEFAULT, (0,)),
    Unsaid("anthropic-messages", "$.usage.service_tier", _DEFAULT, ("standard",), "openai-responses"),
    Unsaid("gemini-interactions", "$.service_tier", _DEFAULT, ("standard",), "openai-responses"),
    Unsaid("openai-chat", "$.service_tier", _DEFAULT, ("default",), "openai-responses"),
    Unsaid("bedrock-converse", "$.usage.cacheDetails", _DEFAULT, ([{"ttl": "5m", "inputTokens": 3}],)),
    Unsaid("bedrock-converse", "$.usage.cacheDetails[].inputTokens", _DEFAULT),
    Unsaid("bedrock-converse", "$.usage.cacheDetails[].ttl", _DEFAULT, ("5m",)),
    Unsaid(_GOOGLE, "$.usageMetadata.promptTokensDetails", _DEFAULT, ([{"modality": "TEXT", "tokenCount": 12}],)),
    Unsaid(_GOOGLE, "$.usageMetadata.promptTokensDetails[].tokenCount", _DEFAULT),
    Unsaid("gemini-interactions", "$.steps[].content[].annotations[].start_index", _DEFAULT, (0,)),
    Unsaid("openai-chat", "$.choices[].message.annotations[].url_citation.start_index", _DEFAULT, (0,)),
    Unsaid("openai-responses", "$.output[].content[].annotations[].start_index", _DEFAULT, (0,)),
    Unsaid("ollama-chat", "$.done", _DEFAULT, (True,)),
    Unsaid("ollama-chat", "$.done_reason", _DEFAULT, ("stop", "load")),
    Unsaid("openai-responses", "$.status", _DEFAULT, ("completed",)),
    Unsaid("openai-responses", "$.error.code", _DEFAULT, ("server_error",)),
    Unsaid("gemini-interactions", "$.errors[].code", _DEFAULT, ("internal",)),
    Unsaid("cohere-chat", "$.message.citations[].start", _DEFAULT, (0,), _GOOGLE),
    Unsaid("cohere-chat", "$.message.citations[].type", _DEFAULT, ("TEXT_CONTENT",), _GOOGLE),
    Unsaid("cohere-chat", "$.message.tool_calls[].function.arguments", _NO_ARGUMENTS, ("null",)),
    Unsaid("openai-chat", "$.choices[].message.tool_calls[].function.arguments", _NO_ARGUMENTS, ("{}",)),
    # What another key says
    Unsaid("cohere-chat", "$.message.citations[].text", _REPEATED, targets=_GOOGLE),
    Unsaid("cohere-chat", "$.message.citations[].content_index", "only one text can be cited", targets=_GOOGLE),
    Unsaid("cohere-chat", "$.message.citations[].sources[].type", _TYPE, targets=_GOOGLE),
    Unsaid("bedrock-converse", "$.usage.totalTokens", _SUM),
    Unsaid(_GOOGLE, "$.usageMetadata.totalTokenCount", _SUM),
    Unsaid("gemini-interactions openai-chat openai-responses", "$.usage.total_tokens", _SUM),
    Unsaid("gemini-interactions", "$.status", "the steps show it", ("completed", "requires_action")),
    Unsaid("openai-responses", "$.status", "the status of its call says it", ("incomplete",)),
    Unsaid("openai-responses", "$.output[].status", "the status of the answer says it", ("completed", "incomplete")),
    Unsaid(_GOOGLE, "$.candidates[].index", _ORDER),
    Unsaid("openai-chat", "$.choices[].index", _ORDER),
    Unsaid("ollama-chat", "$.message.tool_calls[].function.index", _ORDER),
    Unsaid("openai-chat", "$.choices[].finish_reason", _WHOLE, ("length",)),
    Unsaid("openai-responses", "$.output[].id", _OWN_IDS),
    Unsaid("ollama-chat", "$.created_at", "not a time", ("x",)),
    Unsaid("openai-responses", "$.parallel_tool_calls", "repeats the request", (True,)),
    Unsaid("openai-responses", "$.tool_choice", "repeats the request", ("auto",)),
)

KEYS = {"request": REQUEST_KEYS, "response": ANSWER_KEYS}

_MESSAGE = re.compile(r"\$\.(messages|contents)\[\d+\]|\$\.(choices|candidates)\[\d+\](\.\w+)?|\$\.(output\.)?message")
"""What is lost of a whole message does not explain each of its keys, unless the message is dropped."""


@dataclass(frozen=True, slots=True)
class Translation:
    """All that a translation says."""

    body: bytes
    path: str | None
    headers: tuple[tuple[str, str], ...]
    losses: tuple[dragoman.Loss, ...]

    def explains(self, path: str) -> bool:
        """Whether a loss names the key at a path, or an object around it."""
        return any(path.startswith((f"{around}.", f"{around}[")) or path == around for around in self._lost())

    def _lost(self) -> Iterator[str]:
        for loss in self.losses:
            if loss.path != "$" and (loss.severity == "dropped" or not _MESSAGE.fullmatch(loss.path)):
                yield loss.path


def _translated(kind: str, body: Any, source: str, target: str) -> Translation | None:
    """The translation; None if it is refused."""
    try:
        encoded = getattr(dragoman, f"translate_{kind}")(json.dumps(body).encode(), source=source, target=target)
    except dragoman.DragomanError:
        return None
    return Translation(encoded.json(), encoded.path, tuple(sorted(encoded.headers.items())), tuple(encoded.losses))


def _says_nothing(value: Any) -> bool:
    """Whether a value is empty: null, an empty text or list, or an object of those, whatever its type."""
    if isinstance(value, dict):
        return all(key == "type" or _says_nothing(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_says_nothing, value))
    return value is None or value == ""


def removals(body: Any) -> list[Edit]:
    """Every key removed that says something."""
    return [
        edit
        for edit in edits(body)
        if edit.what == "removed" and not edit.path.endswith("]") and not _says_nothing(edit.before)
    ]


def silent_removals(kind: str, name: str, body: Any, removed: list[Edit]) -> Iterator[tuple[str, Edit]]:
    """Each removed key that another format does not notice, with that format."""
    for target in FORMATS:
        whole = None if FAMILY[target] == FAMILY[name] else _translated(kind, body, name, target)
        if whole is None:
            continue
        for edit in removed:
            if not whole.explains(edit.path) and _translated(kind, edit.body, name, target) == whole:
                yield target, edit


def _check(kind: str, name: str, body: Any) -> None:
    failed = [
        f"{edit.path} ({json.dumps(edit.before)[:60]}) to {target}"
        for target, edit in silent_removals(kind, name, body, removals(body))
        if not any(row.covers(name, target, edit) for row in KEYS[kind])
    ]
    assert failed == []


@promise("law:2-nothing-vanishes")
@each(("name", "body"), small_bodies("request"))
def test_a_key_removed_from_a_request_is_missed(name: str, body: Any) -> None:
    _check("request", name, body)


@promise("law:2-nothing-vanishes")
@each(("name", "body"), small_bodies("response"))
def test_a_key_removed_from_an_answer_is_missed(name: str, body: Any) -> None:
    _check("response", name, body)


@pytest.mark.parametrize("kind", KEYS)
def test_listed_keys_are_still_silent(kind: str) -> None:
    unused = list(KEYS[kind])
    for name, body in (row.values for row in small_bodies(kind)):
        listed = [edit for edit in removals(body) if any(row.names(name, edit) for row in unused)]
        if listed:
            for target, edit in silent_removals(kind, name, body, listed):
                unused = [row for row in unused if not row.covers(name, target, edit)]
    assert unused == [], "no longer silent: remove the rows"
