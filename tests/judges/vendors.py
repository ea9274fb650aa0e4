"""The vendors' SDKs, with a transport that records what they send and returns prepared answers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types
from pydantic import BaseModel

from dragoman import ir


@dataclass
class Wire:
    """One exchange: `answer` is what the client gets, `sent` the body it sent, `path` where."""

    answer: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    sent: bytes = b""
    path: str = ""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.sent, self.path = request.read(), request.url.path
        content_type = {"content-type": "application/json"}
        return httpx2.Response(self.status, content=self.answer, headers={**content_type, **self.headers})

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.sent)
        return body


def openai_client(wire: Wire) -> openai.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    return openai.OpenAI(api_key="k", base_url="http://test", http_client=http, max_retries=0)


def anthropic_client(wire: Wire) -> anthropic.Anthropic:
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    return anthropic.Anthropic(api_key="k", base_url="http://test", http_client=http, max_retries=0)


def genai_client(wire: Wire) -> genai.Client:
    http = httpx2.Client(transport=httpx2.MockTransport(wire))
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url="http://test", httpx_client=http))


def google_answer(body: bytes) -> types.GenerateContentResponse:
    """The answer in the SDK's types, without the tier in its usage: the API sends it, and these types refuse it.

    The SDK's own client removes all fields that its types lack.
    """
    answer = json.loads(body)
    assert answer.get("usageMetadata", {}).pop("serviceTier", "standard") in {"standard", "flex", "priority"}
    return types.GenerateContentResponse.model_validate(answer)


def unknown_fields(model: BaseModel, path: str = "$") -> Iterator[str]:
    """Fields the SDK's own types do not know, wherever they stand."""
    yield from (f"{path}.{name}" for name in model.model_extra or ())
    for name in type(model).model_fields:
        value = getattr(model, name)
        for index, inner in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(inner, BaseModel):
                yield from unknown_fields(
                    inner, f"{path}.{name}[{index}]" if isinstance(value, list) else f"{path}.{name}"
                )


def forecast(model: str) -> ir.Completion:
    """A structured answer, which the SDKs parse into their own types."""
    message = ir.Message("assistant", '{"city":"Zürich","degrees":22.5,"sky":"rain"}')
    return ir.Completion((message,), ir.Finish("stop"), ir.Usage(20, 9), "answer_2", model, 2)
