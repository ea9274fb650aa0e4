"""A batch job through each vendor's own SDK, against any server: the simulators, and the gateway."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
import openai
from google.genai import Client as GoogleClient
from google.genai import types

Outcomes = dict[str, str]
"""Id of a request -> the text of its answer, or `error: …`."""
MOST_LOOKS = 400


def openai_line(id: str, model: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    return {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def openai_job(
    sdk: openai.OpenAI, lines: list[dict[str, Any]], pause: Callable[[], None], endpoint: Any = "/v1/chat/completions"
) -> tuple[Any, Outcomes]:
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    file = sdk.files.create(file=("requests.jsonl", content), purpose="batch")
    batch = sdk.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")
    return openai_results(sdk, batch.id, pause)


def openai_results(sdk: openai.OpenAI, id: str, pause: Callable[[], None]) -> tuple[Any, Outcomes]:
    batch = sdk.batches.retrieve(id)
    for _ in range(MOST_LOOKS):
        if batch.status in {"completed", "failed", "expired", "cancelled"}:
            break
        pause()
        batch = sdk.batches.retrieve(id)
    found: Outcomes = {}
    for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
        for line in sdk.files.content(file_id).text.splitlines():
            result = json.loads(line)
            assert result["custom_id"] not in found, "answered twice"
            found[result["custom_id"]] = _openai_outcome(result)
    return batch, found


def _openai_outcome(result: Mapping[str, Any]) -> str:
    if result["error"] is not None:
        return f"error: {result['error']['code']}"
    body = result["response"]["body"]
    if result["response"]["status_code"] != 200:
        return f"error: {result['response']['status_code']} {body['error']['message']}"
    if body["object"] == "response":
        return "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])
    return str(body["choices"][0]["message"]["content"])


def anthropic_item(id: str, model: str, text: str) -> Any:
    return {"custom_id": id, "params": {"model": model, "max_tokens": 64, "messages": [
        {"role": "user", "content": text}]}}  # fmt: skip


def anthropic_job(sdk: anthropic.Anthropic, items: list[Any], pause: Callable[[], None]) -> tuple[Any, Outcomes]:
    batch = sdk.messages.batches.create(requests=items)
    return anthropic_results(sdk, batch.id, pause)


def anthropic_results(sdk: anthropic.Anthropic, id: str, pause: Callable[[], None]) -> tuple[Any, Outcomes]:
    batch = sdk.messages.batches.retrieve(id)
    for _ in range(MOST_LOOKS):
        if batch.processing_status == "ended":
            break
        pause()
        batch = sdk.messages.batches.retrieve(id)
    found: Outcomes = {}
    for line in sdk.messages.batches.results(id):
        assert line.custom_id not in found, "answered twice"
        result = line.result
        if result.type == "succeeded":
            found[line.custom_id] = "".join(part.text for part in result.message.content if part.type == "text")
        elif result.type == "errored":
            found[line.custom_id] = f"error: {result.error.error.type}"
        else:
            found[line.custom_id] = f"error: {result.type}"
    return batch, found


def gemini_request(text: str) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}]}


def gemini_inline_job(
    sdk: GoogleClient, model: str, requests: Mapping[str, str], pause: Callable[[], None]
) -> tuple[Any, Outcomes]:
    source: Any = [
        types.InlinedRequest(contents=gemini_request(text)["contents"], metadata={"key": key})
        for key, text in requests.items()
    ]
    return gemini_results(sdk, sdk.batches.create(model=model, src=source).name or "", pause)


def gemini_file_job(
    sdk: GoogleClient, model: str, requests: Mapping[str, Mapping[str, Any]], pause: Callable[[], None]
) -> tuple[Any, Outcomes]:
    lines = b"".join(json.dumps({"key": key, "request": one}).encode() + b"\n" for key, one in requests.items())
    config = types.UploadFileConfig(mime_type="application/jsonl", display_name="requests")
    file = sdk.files.upload(file=io.BytesIO(lines), config=config)
    return gemini_results(sdk, sdk.batches.create(model=model, src=file.name or "").name or "", pause)


def gemini_results(sdk: GoogleClient, name: str, pause: Callable[[], None]) -> tuple[Any, Outcomes]:
    job = sdk.batches.get(name=name)
    for _ in range(MOST_LOOKS):
        if job.done:
            break
        pause()
        job = sdk.batches.get(name=name)
    found: Outcomes = {}
    if job.dest is None:
        return job, found
    if job.dest.file_name:
        lines = [json.loads(line) for line in sdk.files.download(file=job.dest.file_name).splitlines()]
    else:
        lines = [
            {"key": (one.metadata or {})["key"], **one.model_dump(mode="json", by_alias=True, exclude_none=True)}
            for one in job.dest.inlined_responses or []
        ]
    for line in lines:
        assert line["key"] not in found, "answered twice"
        found[line["key"]] = _gemini_outcome(line)
    return job, found


def _gemini_outcome(line: Mapping[str, Any]) -> str:
    if "error" in line:
        return f"error: {line['error']['code']}"
    parts = line["response"]["candidates"][0]["content"]["parts"]
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))
