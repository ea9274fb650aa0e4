"""Skipped tests that must not be overlooked."""

NOT_TRIED = "NOT TRIED:"
