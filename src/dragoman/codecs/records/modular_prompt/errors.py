"""There are none: modular-prompt is a format of histories."""

from __future__ import annotations

from dragoman.codecs.records.refusals import no_errors

decode_error, encode_error = no_errors("modular-prompt")
