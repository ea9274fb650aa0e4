"""Values of google-genai, in which several peers hand over Gemini requests and take Gemini responses.

A request is charged up to these values and their plain JSON form. The SDK's own way from there to the wire costs
several times as much again; it is not the peer's work and is left out.
"""

from typing import Any

from google.genai import types
from google.genai.models import _GenerateContentResponse_from_mldev


def request_json(contents: object, config: object) -> bytes:
    parameters = types._GenerateContentParameters.model_construct(contents=contents, config=config)
    return parameters.model_dump_json(by_alias=True, exclude_none=True).encode()


def response(body: dict[str, Any]) -> types.GenerateContentResponse:
    return types.GenerateContentResponse._from_response(response=_GenerateContentResponse_from_mldev(body), kwargs={})
