"""There are none: agent-sdk is a format of histories."""

from __future__ import annotations

from dragoman.codecs.records.refusals import no_streams

PayloadDecoder, EventEncoder = no_streams("agent-sdk")
