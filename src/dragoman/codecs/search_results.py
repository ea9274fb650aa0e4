"""Blocks of one vendor that have words for every model: results of a search, to be cited, and approvals of calls.

Anthropic's API and Bedrock spell the same block in two ways. It is kept whole, as its API wrote it; only where it goes
to another API does anybody read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from dragoman.ir import Opaque
from dragoman.losses import LossLog

OF_MESSAGES: Final = "search_result"
OF_CONVERSE: Final = "searchResult"

NOT_SENT: Final = "[This message held nothing that can be shown here.]"
"""Stands for a turn of which nothing could cross: an empty one is refused, or read as silence."""


class SearchResult(Struct, frozen=True):
    source: str
    title: str
    texts: list[str]
    cites: bool | None = None


def search_result_of(part: Opaque) -> SearchResult | None:
    """The search result that the block is, if it is one."""
    if part.kind not in {OF_MESSAGES, OF_CONVERSE}:
        return None
    block: Any = part.block
    said = block.get(OF_CONVERSE) if part.kind == OF_CONVERSE else block
    if not isinstance(said, dict) or not isinstance(content := said.get("content"), list):
        return None
    texts = [piece["text"] for piece in content if isinstance(piece, dict) and isinstance(piece.get("text"), str)]
    cited = said.get("citations")
    cites = cited.get("enabled") if isinstance(cited, dict) else None
    source, title = said.get("source"), said.get("title")
    if not isinstance(source, str) or not isinstance(title, str) or len(texts) < len(content):
        return None
    return SearchResult(source, title, texts, cites if isinstance(cites, bool) else None)


def opaque_text(part: Opaque, log: LossLog) -> str | None:
    """The words of a search result or an approval, for models that know no such block; None for any other block."""
    found = search_result_of(part)
    if found is None:
        return approval_text(part, log)
    log.degrade(part, "", "search result", "it crosses as text: this API has no such block")
    return "\n".join((f"{found.title} ({found.source})", *found.texts))


def approval_text(part: Opaque, log: LossLog) -> str | None:
    """What a history says about a call of an MCP server that the client had to approve; None for any other block."""
    write = _APPROVALS.get(part.kind)
    block: Any = None if write is None else part.block
    shown = write(block) if write is not None and isinstance(block, dict) else None
    if shown is not None:
        log.degrade(part, "", "approval of a call", "it crosses as text: this API has no approvals")
    return shown


def _asked(block: dict[str, Any]) -> str:
    return f"[approval asked for {block.get('server_label')}.{block.get('name')} with {block.get('arguments')}]"


def _answered(block: dict[str, Any]) -> str:
    reason = f": {block['reason']}" if block.get("reason") else ""
    return f"[{'approved' if block.get('approve') is True else 'denied'}{reason}]"


_APPROVALS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "mcp_approval_request": _asked,
    "mcp_approval_response": _answered,
}


def messages_block(found: SearchResult) -> dict[str, Any]:
    """As Anthropic's API spells it."""
    content = [{"type": "text", "text": text} for text in found.texts]
    block = {"type": OF_MESSAGES, "source": found.source, "title": found.title, "content": content}
    return block if found.cites is None else {**block, "citations": {"enabled": found.cites}}


def converse_block(found: SearchResult) -> dict[str, Any]:
    """As Bedrock spells it."""
    content = [{"text": text} for text in found.texts]
    block: dict[str, Any] = {"source": found.source, "title": found.title, "content": content}
    return {OF_CONVERSE: block if found.cites is None else {**block, "citations": {"enabled": found.cites}}}
