"""Values of google-genai: several peers return Gemini requests, and take Gemini responses, in this form.

A request is measured up to these values and their plain JSON form. The SDK's own conversion from there to the wire
costs several times as much; it is not the peer's work and is not measured.
"""

from typing import Any

from google.genai import types
from google.genai.models import _GenerateContentResponse_from_mldev


def request_json(contents: object, config: object) -> bytes:
    parameters = types._GenerateContentParameters.model_construct(contents=contents, config=config)
    return parameters.model_dump_json(by_alias=True, exclude_none=True).encode()


def response(body: dict[str, Any]) -> types.GenerateContentResponse:
    return types.GenerateContentResponse._from_response(response=_GenerateContentResponse_from_mldev(body), kwargs={})
