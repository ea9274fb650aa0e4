"""Checks for codecs of your own. They do not need pytest."""

from dragoman.testing.codec_laws import check_codec
from dragoman.testing.reports import CodecFailed, Finding, Report

__all__ = ["CodecFailed", "Finding", "Report", "check_codec"]
