"""Content that a chat message of Cohere has no field for, and the slots that carry it through a client.

Clients keep the blocks and calls of an answer as they are, so each holds the signature of another family under
`signature` (codecs/carried_signatures.py). The API itself answers an unknown key with 422, so signatures are not sent
to it, but reported.

Errors of tools: the JSON text {"error": …}. Media of results: a user turn, tagged with the call (result_media.py).
"""

from __future__ import annotations

from msgspec import Raw

from dragoman.codecs.cohere_chat.profile import FAMILY
from dragoman.codecs.result_media import TAGGED
from dragoman.ir import Metadata
from dragoman.ir.notes import Spelling

TRUE = Raw(b"true")

PLAN = "~plan"
"""Note: this text is the plan of a turn with calls, which has a separate field."""
ONLY_PLAN: Metadata = Spelling({FAMILY: {PLAN: TRUE}})
TAGGED_MEDIA: Metadata = {FAMILY: {TAGGED: TRUE}}
