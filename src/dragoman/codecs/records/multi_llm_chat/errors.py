"""There are none: multi-llm-chat is a format of histories."""

from __future__ import annotations

from dragoman.codecs.records.refusals import no_errors

decode_error, encode_error = no_errors("multi-llm-chat")
