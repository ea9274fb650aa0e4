"""Answers what MCP servers may request: a completion of a model (sampling) and answers of the user (elicitation)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dragoman.agent.validation import problems_of
from dragoman.drivers.base import Driver, Settings
from dragoman.errors import DragomanError
from dragoman.ir import Audio, Image, Message, Text

if TYPE_CHECKING:
    import mcp_types

Elicit: TypeAlias = Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None | Awaitable[Mapping[str, Any] | None]]
"""Returns the user's answers to a question, given the JSON Schema of the form; None if the user declined."""
OpenUrl: TypeAlias = Callable[[str, str], bool | None | Awaitable[bool | None]]
"""Shows the user a message and an address, and opens it if the user agrees: True, False (declined), None (dismissed).

What the user enters there goes to the server alone.
"""
_STOPS = {"stop": "endTurn", "length": "maxTokens", "tool_calls": "toolUse"}
_INTERNAL_ERROR = -32603
_MOST_TOKENS = 100_000
_MOST_REQUESTS = 50
_TOO_MANY = f"more than {_MOST_REQUESTS} requests for one call"


class ServerRequests:
    """Answers the requests of one server; refuses those for which there is no driver or function.

    Models cost money and users time, so a server may request so much for each call of its tools and no more.
    """

    def __init__(self, sampling: Driver | None, elicit: Elicit | None, open_url: OpenUrl | None = None) -> None:
        self._driver = sampling
        self._elicit = elicit
        self._open_url = open_url
        self._left = _MOST_REQUESTS

    def start_call(self) -> None:
        self._left = _MOST_REQUESTS

    def _take(self) -> bool:
        """Count a request; return whether it may be answered."""
        self._left -= 1
        return self._left >= 0

    def callbacks(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._driver is not None:
            found["sampling_callback"] = self.sample
        if self._elicit is not None or self._open_url is not None:
            found["elicitation_callback"] = self.elicit
        return found

    async def sample(
        self, _context: Any, params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        import mcp_types  # noqa: PLC0415 - an extra

        if self._driver is None:
            return mcp_types.ErrorData(code=_INTERNAL_ERROR, message="sampling is not supported")
        if not self._take():
            return mcp_types.ErrorData(code=_INTERNAL_ERROR, message=_TOO_MANY)
        settings: Settings = {"max_output_tokens": min(params.max_tokens, _MOST_TOKENS)}
        if params.system_prompt:
            settings["system"] = params.system_prompt
        if params.temperature is not None:
            settings["temperature"] = params.temperature
        if params.stop_sequences:
            settings["stop"] = params.stop_sequences
        try:
            answer = await self._driver.query(messages=[_message(one) for one in params.messages], **settings)
        except DragomanError as error:
            return mcp_types.ErrorData(code=_INTERNAL_ERROR, message=str(error))
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(text=answer.content),
            model=answer.metadata.model or self._driver.name,
            stop_reason=_STOPS.get(answer.finish_reason, "endTurn"),
        )

    async def elicit(
        self, _context: Any, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        import mcp_types  # noqa: PLC0415 - an extra

        if isinstance(params, mcp_types.ElicitRequestURLParams):
            return mcp_types.ElicitResult(action=await self.visit(params.message, params.url))
        schema = params.requested_schema
        if self._elicit is None or not self._take():
            return mcp_types.ElicitResult(action="decline")
        found = self._elicit(params.message, schema)
        answer = await found if inspect.isawaitable(found) else found
        if answer is None:
            return mcp_types.ElicitResult(action="decline")
        problems = problems_of(schema, dict(answer))
        if problems:
            return mcp_types.ErrorData(code=_INTERNAL_ERROR, message=f"the answer does not fit: {'; '.join(problems)}")
        return mcp_types.ElicitResult(action="accept", content=dict(answer))

    async def visit(self, message: str, url: str) -> Literal["accept", "decline", "cancel"]:
        """Return whether the user visits an address of the server. Only http and https addresses are shown."""
        if self._open_url is None or not url.startswith(("https://", "http://")) or not self._take():
            return "decline"
        found = self._open_url(message, url)
        agreed = await found if inspect.isawaitable(found) else found
        return "cancel" if agreed is None else "accept" if agreed else "decline"


def _message(given: mcp_types.SamplingMessage) -> Message:
    blocks: list[Any] = given.content if isinstance(given.content, list) else [given.content]
    return Message(given.role, tuple(_part(block) for block in blocks))


def _part(block: Any) -> Text | Image | Audio:
    if block.type == "image":
        return Image(block.mime_type, block.data)
    if block.type == "audio":
        return Audio(block.mime_type, block.data)
    return Text(block.text if block.type == "text" else block.model_dump_json(by_alias=True, exclude_none=True))
