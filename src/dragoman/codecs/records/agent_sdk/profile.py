"""What agent-sdk messages hold: any name, any id, in any order of turns."""

from __future__ import annotations

import re

from dragoman.profile import Profile

PROFILE = Profile(name="agent-sdk", family="agent-sdk", names_speakers=True, tool_name=re.compile(r".*", re.DOTALL))
