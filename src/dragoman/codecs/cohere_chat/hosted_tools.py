"""Tools that a server runs itself: chat v2 of Cohere has none (version 1 had connectors)."""

from __future__ import annotations

from dragoman.codecs.shared_tools import SharedTools


class HostedTools(SharedTools):
    """No tools, calls or results."""


HOSTED = HostedTools()
