"""States of batch jobs: one vocabulary, and each provider's names for it.

`completed` means that the provider is done, not that every request succeeded: see the counts. A name that is not in the
table is `unknown` and kept as it is; it is never treated as a final state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

JobState: TypeAlias = Literal[
    "submitting", "queued", "running", "canceling", "completed", "failed", "expired", "canceled", "unknown"
]
ENDED: frozenset[JobState] = frozenset({"completed", "failed", "expired", "canceled"})

_OPENAI: Mapping[str, JobState] = {
    "validating": "queued",
    "in_progress": "running",
    "finalizing": "running",
    "completed": "completed",
    "failed": "failed",
    "expired": "expired",
    "cancelling": "canceling",
    "cancelled": "canceled",
}
_GOOGLE: Mapping[str, JobState] = {
    "UNSPECIFIED": "queued",
    "QUEUED": "queued",
    "PENDING": "queued",
    "RUNNING": "running",
    "PAUSED": "running",
    "UPDATING": "running",
    "SUCCEEDED": "completed",
    "PARTIALLY_SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLING": "canceling",
    "CANCELLED": "canceled",
    "EXPIRED": "expired",
}
STATES: Mapping[str, Mapping[str, JobState]] = {
    "openai": _OPENAI,
    "groq": _OPENAI,
    # The same in capitals; both spellings of cancelling occur.
    "together": {**{word.upper(): state for word, state in _OPENAI.items()}, "CANCELED": "canceled"},
    # `ended` is the only final state: the counts say how it ended.
    "anthropic": {"in_progress": "running", "canceling": "canceling", "ended": "completed"},
    # The REST operation uses BATCH_STATE_…, SDKs and Vertex use JOB_STATE_….
    "gemini": {f"{prefix}_STATE_{word}": state for prefix in ("BATCH", "JOB") for word, state in _GOOGLE.items()},
    "vertex": {f"JOB_STATE_{word}": state for word, state in _GOOGLE.items()},
    "bedrock": {
        "Submitted": "queued",
        "Validating": "queued",
        "Scheduled": "queued",
        "InProgress": "running",
        "Completed": "completed",
        "PartiallyCompleted": "completed",
        "Failed": "failed",
        "Stopping": "canceling",
        "Stopped": "canceled",
        "Expired": "expired",
    },
    "mistral": {
        "QUEUED": "queued",
        "RUNNING": "running",
        "SUCCESS": "completed",
        "FAILED": "failed",
        "TIMEOUT_EXCEEDED": "expired",
        "CANCELLATION_REQUESTED": "canceling",
        "CANCELLED": "canceled",
    },
    # xAI has counters and no state name; these names are ours.
    "xai": {"pending": "running", "done": "completed", "cancelled": "canceled"},
}
"""By vocabulary, then by the provider's name of the state."""


def state_of(vocabulary: str, word: str) -> JobState:
    """Return the state for a provider's name of it; `unknown` for a name that is not in its table."""
    return STATES[vocabulary].get(word, "unknown")
