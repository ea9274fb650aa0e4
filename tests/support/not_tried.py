"""Skipped tests that nobody should overlook."""

NOT_TRIED = "NOT TRIED:"
