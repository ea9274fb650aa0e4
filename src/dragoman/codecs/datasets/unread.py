"""Advice for records of known kinds that cannot be read: they are one piece of a conversation, or only text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman.codecs.datasets.conversation import Json, text_of

_TEXT = "messages with roles: how speakers are marked in one text differs from set to set"


def _has_texts(*keys: str) -> Callable[[Mapping[str, Json]], bool]:
    return lambda data: all(isinstance(data.get(key), str) for key in keys)


def _has(*keys: str) -> Callable[[Mapping[str, Json]], bool]:
    return lambda data: all(key in data for key in keys)


def _is_event(data: Mapping[str, Json]) -> bool:
    return text_of(data.get("event_name") or data.get("name")).startswith("gen_ai.") and "body" in data


def _is_mlflow_span(data: Mapping[str, Json]) -> bool:
    attributes = data.get("attributes")
    return isinstance(attributes, dict) and "mlflow.spanInputs" in attributes


_UNREAD: tuple[tuple[Callable[[Mapping[str, Json]], bool], str], ...] = (
    (_has("prompt_json", "conversation_id"), "the SQLite file of llm (its path: llm logs path): a row is one answer"),
    (_has("message_id", "parent_id", "role"), "the file of message trees: a row is one message of a tree"),
    (_is_event, "spans, or events with all messages of a call: this is an event of one message"),
    (_has("eval", "samples"), "the elements of `samples`, one per line: jq -c '.samples[]'"),
    (_has("observations"), "observations of type GENERATION, one per line: jq -c '.observations[]'"),
    (_is_mlflow_span, "the body that MLflow logged: jq -c '.attributes[\"mlflow.spanInputs\"] | fromjson'"),
    (
        _has("info", "data"),
        "the bodies that MLflow logged: jq -c '.data.spans[].attributes[\"mlflow.spanInputs\"] | fromjson'",
    ),
    (_has("session_id", "runs"), "the messages of its last run: jq -c '.runs[-1].messages'"),
    (_has("$schemaVersion", "original_input"), "the items of the run: session.get_items() or result.to_input_list()"),
    (_has("agent_states"), "the state of each agent: jq -c '.agent_states[].agent_state | select(.llm_context)'"),
    (_has("simulations"), "the elements of `simulations`, one per line: jq -c '.simulations[]'"),
    (_has("id", "ground_truth"), "the file of tasks: this is one of the answers to them"),
    (
        _has("question", "target_tool", "answers"),
        "the training files of When2Call: this is a question with its choices",
    ),
    (_has("run_type", "inputs"), "runs of a model, whose run_type is llm, with messages"),
    (_has("traceId", "type", "input"), "observations of type GENERATION, with messages"),
    (_has_texts("chosen", "rejected"), _TEXT),
    (_has_texts("text"), _TEXT),
    (lambda data: isinstance(data.get("data"), list), _TEXT),
    (_has_texts("input", "output"), "messages, or the columns `instruction` and `output`"),
    (_has_texts("prompt", "response"), "messages, or the columns `instruction` and `output`"),
)


def what_is_read_instead(data: Json) -> str | None:
    """Return what a caller should pass instead of this record, if its kind is known; no contents of the record."""
    if not isinstance(data, dict):
        return None
    return next((instead for is_kind, instead in _UNREAD if is_kind(data)), None)
