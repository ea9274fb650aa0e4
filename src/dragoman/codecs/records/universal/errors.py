"""There are none: universal is a format of histories."""

from __future__ import annotations

from dragoman.codecs.records.refusals import no_errors

decode_error, encode_error = no_errors("universal")
