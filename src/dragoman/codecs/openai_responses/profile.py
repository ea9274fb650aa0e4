"""What Responses accepts, and what its models refuse.

The family is not Chat's. The two APIs share a vendor, not a vocabulary: what one keeps on a node (names of fields,
spellings, item ids) is refused as an unknown parameter by the other, and encrypted reasoning is minted and read by
Responses alone; Chat has no field for it. One family for both would hand each the private data of the other.
"""

from __future__ import annotations

import re

from dragoman.profile import Profile

FAMILY = "openai-responses"

PROFILE = Profile(
    name="openai-responses",
    family=FAMILY,
    # The server's words: string too long, expected a string with maximum length 64.
    call_id=re.compile(r"[^\s]{1,64}"),
)

REASONING_MODELS = re.compile(r"^(?:openai/)?(o[1-9]|gpt-5(?!.*chat)|gpt-[6-9]|codex)")
"""They refuse sampling settings while they reason, and only they can be asked for encrypted reasoning."""

SAMPLING = ("temperature", "top_p")

LEAST_OUTPUT_TOKENS = 16
"""`max_output_tokens` below this is refused (`integer_below_min_value`)."""
