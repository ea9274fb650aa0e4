"""What multi-llm-chat histories hold: any name (its own clashing tools are called "server:tool"), any id."""

from __future__ import annotations

import re

from dragoman.profile import Profile

PROFILE = Profile(
    name="multi-llm-chat", family="multi-llm-chat", names_speakers=True, tool_name=re.compile(r".*", re.DOTALL)
)
