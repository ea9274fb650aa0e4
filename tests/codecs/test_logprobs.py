"""Log probabilities of an answer, between the four APIs that have them, whole and streamed; elsewhere a loss."""

import json
from typing import Any

from google.genai.types import GenerateContentResponse
from ollama import ChatResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

import dragoman
from dragoman import ir
from dragoman.streams import StreamDecoder, StreamTranslator
from tests.support.cases import each
from tests.support.promises import promise

FOUR = ("openai-chat", "openai-responses", "gemini", "ollama-chat")
WITHOUT = ("anthropic-messages", "bedrock-converse", "cohere-chat", "gemini-interactions")


def _token(text: str, logprob: float, **more: Any) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()), **more}


TOKENS = [
    _token("It", -0.25, top_logprobs=[_token("It", -0.25), _token("The", -1.5)]),
    _token(" rains", -3.2e-05, top_logprobs=[_token(" rains", -3.2e-05), _token(" is", -9999.0)]),
]
CHOSEN = {
    "topCandidates": [
        {"candidates": [{"token": one["token"], "logProbability": one["logprob"]} for one in token["top_logprobs"]]}
        for token in TOKENS
    ],
    "chosenCandidates": [{"token": token["token"], "logProbability": token["logprob"]} for token in TOKENS],
}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}

ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "It rains", "refusal": None},
                "logprobs": {"content": TOKENS, "refusal": None},
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-4o",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It rains", "annotations": [], "logprobs": TOKENS}],
            }
        ],
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "It rains"}]},
                "finishReason": "STOP",
                "avgLogprobs": -0.125,
                "logprobsResult": CHOSEN,
            }
        ],
        "modelVersion": "gemini-2.5-flash",
    },
    "ollama-chat": {
        "model": "qwen3",
        "created_at": "2026-11-17T10:00:00Z",
        "message": {"role": "assistant", "content": "It rains"},
        "logprobs": TOKENS,
        "done": True,
        "done_reason": "stop",
    },
}


def _stream(format: str) -> bytes:
    if format == "openai-chat":
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
        choices = [
            {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None},
            *(
                {
                    "index": 0,
                    "delta": {"content": one["token"]},
                    "logprobs": {"content": [one], "refusal": None},
                    "finish_reason": None,
                }
                for one in TOKENS
            ),
            {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"},
        ]
        return _events([{**head, "choices": [choice]} for choice in choices]) + b"data: [DONE]\n\n"
    if format == "openai-responses":
        whole = ANSWERS[format]
        item = whole["output"][0]
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        deltas = [
            {"type": "response.output_text.delta", **place, "delta": one["token"], "logprobs": [one]} for one in TOKENS
        ]
        return _events(
            [
                {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
                {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
                {"type": "response.content_part.added", **place, "part": empty},
                *deltas,
                {"type": "response.output_text.done", **place, "text": "It rains", "logprobs": TOKENS},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": whole},
            ]
        )
    if format == "gemini":
        chunks = []
        for chosen, top in zip(CHOSEN["chosenCandidates"], CHOSEN["topCandidates"], strict=True):
            content = {"role": "model", "parts": [{"text": chosen["token"]}]}
            result = {"chosenCandidates": [chosen], "topCandidates": [top]}
            chunks.append({"candidates": [{"content": content, "index": 0, "logprobsResult": result}]})
        chunks[-1]["candidates"][0]["finishReason"] = "STOP"
        return _events([{**chunk, "modelVersion": "gemini-2.5-flash"} for chunk in chunks])
    head = {"model": "qwen3", "created_at": "2026-11-17T10:00:00Z"}
    lines = [
        {**head, "message": {"role": "assistant", "content": one["token"]}, "logprobs": [one], "done": False}
        for one in TOKENS
    ]
    last = {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, last])


def _events(payloads: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def _plain(tokens: tuple[ir.TokenLogprob, ...]) -> list[tuple[str, float, list[tuple[str, float]]]]:
    return [(one.token, one.logprob, [(top.token, top.logprob) for top in one.top_logprobs]) for one in tokens]


WANTED = [
    (one["token"], one["logprob"], [(top["token"], top["logprob"]) for top in one["top_logprobs"]]) for one in TOKENS
]


@promise("core:log-probabilities")
@each("source", FOUR)
@each("target", FOUR)
def test_a_whole_answer_keeps_its_log_probabilities(source: str, target: str) -> None:
    body = json.dumps(ANSWERS[source]).encode()
    encoded = dragoman.translate_response(body, source=source, target=target)
    assert not [loss for loss in encoded.losses if loss.severity not in {"noted", "invented"}]
    (logprobs,) = dragoman.decode_response(encoded.json(), target).logprobs
    assert _plain(logprobs.tokens) == WANTED
    if source == target:
        assert json.loads(encoded.json()) == ANSWERS[source]


def test_the_vendors_sdks_read_them() -> None:
    def crossed(source: str, target: str) -> bytes:
        return dragoman.translate_response(json.dumps(ANSWERS[source]).encode(), source=source, target=target).json()

    chat = ChatCompletion.model_validate_json(crossed("gemini", "openai-chat")).choices[0].logprobs
    assert chat is not None
    assert chat.content is not None
    assert [one.token for one in chat.content] == ["It", " rains"]
    assert chat.content[0].bytes == list(b"It")
    assert [top.token for top in chat.content[0].top_logprobs] == ["It", "The"]
    text: Any = Response.model_validate_json(crossed("ollama-chat", "openai-responses")).output[0]
    assert [one.logprob for one in text.content[0].logprobs] == [-0.25, -3.2e-05]
    google = GenerateContentResponse.model_validate_json(crossed("openai-chat", "gemini"))
    result = (google.candidates or [])[0].logprobs_result
    assert result is not None
    assert [one.token for one in result.chosen_candidates or []] == ["It", " rains"]
    assert [one.log_probability for one in (result.top_candidates or [])[0].candidates or []] == [-0.25, -1.5]
    answered = ChatResponse.model_validate_json(crossed("openai-responses", "ollama-chat"))
    assert [one.token for one in answered.logprobs or []] == ["It", " rains"]


@promise("core:log-probabilities")
@each("source", FOUR)
@each("target", FOUR)
def test_a_stream_keeps_them_beside_their_text(source: str, target: str) -> None:
    translator = StreamTranslator(source=source, target=target)
    data = b"".join(translator.feed(bytes([byte])) for byte in _stream(source)) + translator.close()
    assert not [loss for loss in translator.losses if loss.severity not in {"noted", "invented"}]
    assert _plain(translator.completion.logprobs[0].tokens) == WANTED
    decoder = StreamDecoder(target)
    events = [*decoder.feed(data), *decoder.close()]
    deltas = [event for event in events if isinstance(event, ir.LogprobsDelta)]
    assert [_plain(delta.tokens) for delta in deltas] == [WANTED[:1], WANTED[1:]]
    positions = [place for place, event in enumerate(events) if isinstance(event, ir.LogprobsDelta)]
    texts = [events[place - 1] for place in positions]
    assert [text.text for text in texts if isinstance(text, ir.PartDelta)] == ["It", " rains"]


def test_one_chunk_has_the_text_and_its_log_probabilities() -> None:
    translator = StreamTranslator(source="gemini", target="openai-chat")
    data = translator.feed(_stream("gemini")) + translator.close()
    chunks = [
        ChatCompletionChunk.model_validate_json(line.removeprefix(b"data: "))
        for line in data.split(b"\n\n")
        if line.startswith(b"data: {")
    ]
    likely = [chunk.choices[0] for chunk in chunks if chunk.choices and chunk.choices[0].logprobs is not None]
    assert [choice.delta.content for choice in likely] == ["It", " rains"]


def test_the_last_event_of_a_responses_stream_repeats_them() -> None:
    translator = StreamTranslator(source="openai-chat", target="openai-responses")
    data = translator.feed(_stream("openai-chat")) + translator.close()
    last = json.loads(data.split(b"event: response.completed\ndata: ")[1])
    assert last["response"]["output"][0]["content"][0]["logprobs"] == TOKENS


@promise("core:log-probabilities")
def test_a_server_may_send_them_with_the_finished_text_only() -> None:
    lines = _stream("openai-responses").split(b"\n")
    for number, line in enumerate(lines):
        if line.startswith(b"data: {") and b"output_text.delta" in line:
            event = json.loads(line.removeprefix(b"data: "))
            assert event.pop("logprobs")
            lines[number] = b"data: " + json.dumps(event).encode()
    decoder = StreamDecoder("openai-responses")
    events = [*decoder.feed(b"\n".join(lines)), *decoder.close()]
    deltas = [event for event in events if isinstance(event, ir.LogprobsDelta)]
    assert [_plain(delta.tokens) for delta in deltas] == [WANTED]


@promise("core:log-probabilities")
@each("source", FOUR)
@each("target", WITHOUT)
def test_log_probabilities_are_a_loss_with_its_path_elsewhere(source: str, target: str) -> None:
    body = json.dumps(ANSWERS[source]).encode()
    encoded = dragoman.translate_response(body, source=source, target=target)
    paths = {
        "openai-chat": "$.choices[0].logprobs",
        "openai-responses": "$.output[0].content[0].logprobs",
        "gemini": "$.candidates[0].logprobsResult",
        "ollama-chat": "$.logprobs",
    }
    assert [(loss.path, loss.severity) for loss in encoded.losses if loss.what == "log probabilities"] == [
        (paths[source], "dropped")
    ]
    translator = StreamTranslator(source=source, target=target)
    translator.feed(_stream(source))
    translator.close()
    assert [loss.path for loss in translator.losses if loss.what == "log probabilities"] == ["$.logprobs"]


def test_each_candidate_and_each_text_has_its_own() -> None:
    answer = ANSWERS["openai-chat"]
    both = {**answer, "choices": [answer["choices"][0], {**answer["choices"][0], "index": 1}]}
    crossed = dragoman.translate_response(json.dumps(both).encode(), source="openai-chat", target="gemini")
    found = dragoman.decode_response(crossed.json(), "gemini").logprobs
    assert [one.candidate for one in found] == [0, 1]
    parts = (ir.Text("It"), ir.ToolCall("call_1", "f", {}), ir.Text(" rains"))
    tokens = tuple(ir.TokenLogprob(one["token"], one["logprob"]) for one in TOKENS)
    completion = ir.Completion((ir.Message("assistant", parts),), logprobs=(ir.Logprobs(tokens),))
    output = dragoman.encode_response(completion, "openai-responses").body["output"]
    texts = [content for item in output if item["type"] == "message" for content in item["content"]]
    assert [[one["token"] for one in text["logprobs"]] for text in texts] == [["It"], [" rains"]]


def test_forms_of_other_servers_stay_private_to_their_family() -> None:
    answer = ANSWERS["openai-chat"]
    odd = {**answer, "choices": [{**answer["choices"][0], "logprobs": {"tokens": ["It"], "token_logprobs": [-0.25]}}]}
    body = json.dumps(odd).encode()
    assert json.loads(dragoman.translate_response(body, source="openai-chat", target="openai-chat").json()) == odd
    crossed = dragoman.translate_response(body, source="openai-chat", target="gemini")
    assert [loss.path for loss in crossed.losses if loss.what == "logprobs"] == ["$.choices[0].logprobs"]


@promise("law:2-nothing-vanishes")
@each("target", [*FOUR[1:], *WITHOUT])
def test_tokens_of_the_reasoning_are_reported(target: str) -> None:
    """DeepSeek has them beside those of the text; no other API has them."""
    thoughts = [_token("Hm", -0.36, top_logprobs=[])]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "It rains", "reasoning_content": "Hm"},
        "logprobs": {"content": TOKENS, "reasoning_content": thoughts},
        "finish_reason": "stop",
    }
    body = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    encoded = dragoman.translate_response(body, source="openai-chat", target=target)
    assert "$.choices[0].logprobs.reasoning_content" in {loss.path for loss in encoded.losses}
    same = dragoman.translate_response(body, source="openai-chat", target="openai-chat")
    assert json.loads(same.json()) == body
