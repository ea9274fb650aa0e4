"""What modular-prompt records hold: names as its specification says (letters, digits, `_`, `-`, at most 64)."""

from __future__ import annotations

from dragoman.profile import Profile

PROFILE = Profile(name="modular-prompt", family="modular-prompt", names_speakers=True)
