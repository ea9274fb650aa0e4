"""The simulators and real traffic: every recorded request is served, and what comes back is a good answer."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dragoman.sim.apis import anthropic_messages, openai_chat, openai_responses
from dragoman.sim.conversation_view import Prompt
from dragoman.sim.exchange import Exchange, Reply, Streamed
from dragoman.sim.schema_examples import Hints, arguments_for
from dragoman.sim.service import Service, Settings
from tests.sim.test_sim_refusals import CHECKS
from tests.sim.test_sim_rules import BETAS
from tests.sim.validity import faults
from tests.sim.wire import DOORS
from tests.support.recordings import Record

Recordings = Callable[[str], Iterator[Record]]

# file -> the API that answers, and the path where the recorded one is a proxy's
FILES: dict[str, tuple[str, str]] = {
    "openai-chat": ("openai-chat", "/v1/chat/completions"),
    "openai-responses": ("openai-responses", "/v1/responses"),
    "anthropic-messages": ("anthropic-messages", "/v1/messages"),
    "gemini-generate": ("gemini", ""),
    "vertex-generate": ("vertex", ""),
    "ollama-chat": ("ollama-chat", "/api/chat"),
    "cohere-chat": ("cohere-chat", "/v2/chat"),
    "bedrock-converse": ("bedrock-converse", ""),
}
ANSWERED_AT_LEAST = 0.85


def exchange_of(record: Record, api: str, path: str) -> Exchange:
    address = urlsplit(record.endpoint)
    headers = {**DOORS[api].headers, "anthropic-version": "2023-06-01", "anthropic-beta": BETAS}
    body = json.dumps(record.request).encode()
    return Exchange("POST", path or address.path, dict(parse_qsl(address.query)), headers, body)


@pytest.mark.parametrize("file", FILES)
def test_recorded_requests_get_good_answers(recordings: Recordings, file: str) -> None:
    api, path = FILES[file]
    service = Service(Settings(any_model=True, any_signature=True, remembered=1))
    answered: list[bool] = []
    # One in three: the rest shows little more, and takes a minute.
    for record in islice(recordings(file), 0, None, 10):
        if record.request is None or "ountTokens" in record.endpoint or "count_tokens" in record.endpoint:
            continue
        served = service.respond(exchange_of(record, api, path)).answered
        if isinstance(served, Streamed):
            assert all(served.events), record.id
        elif served.status == 200:
            assert CHECKS[api](json.loads(served.body)) == (), record.id
        if record.status == 200:
            answered.append(not isinstance(served, Reply) or served.status == 200)
    assert sum(answered) > ANSWERED_AT_LEAST * len(answered) > 0


READERS: dict[str, Callable[[Any], Prompt]] = {
    "openai-chat": openai_chat.read,
    "openai-responses": lambda body: openai_responses.read(body, openai_responses.items_of(body)),
    "anthropic-messages": anthropic_messages.read,
}


@pytest.mark.parametrize("file", READERS)
def test_arguments_fit_the_schemas_that_people_write(recordings: Recordings, file: str) -> None:
    seen: set[str] = set()
    for record in recordings(file):
        if record.request is None or record.status != 200:
            continue
        prompt = READERS[file](record.request)
        text = next((turn.text for turn in reversed(prompt.turns) if turn.text), "")
        for tool in prompt.tools:
            schema = json.dumps(tool.parameters, sort_keys=True)
            if tool.free_text or schema in seen:
                continue
            seen.add(schema)
            assert faults(arguments_for(tool.parameters, Hints(text)), tool.parameters) == [], (record.id, tool.name)
    assert len(seen) > 100
