"""Tools that a server runs itself: Ollama has none. Its web search is a separate API, which clients call."""

from __future__ import annotations

from dragoman.codecs.shared_tools import SharedTools


class HostedTools(SharedTools):
    """No tools, calls or results."""


HOSTED = HostedTools()
