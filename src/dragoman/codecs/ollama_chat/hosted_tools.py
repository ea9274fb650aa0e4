"""Tools that a server runs itself: Ollama has none. Its web search is an API of its own, which clients call."""

from __future__ import annotations

from dragoman.codecs.shared_tools import SharedTools


class HostedTools(SharedTools):
    """No tool, no call, no result."""


HOSTED = HostedTools()
