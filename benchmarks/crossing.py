"""Checks that a translation is complete: one that drops content is faster than a complete one, so it is marked.

Checks only what every target supports: texts, names, arguments, results, descriptions and parameter names, and whether
every call has an id of its own that its result repeats. It does not check legality.
"""

from collections.abc import Iterator

import orjson

from benchmarks.bodies import Format
from benchmarks.conversations import Assistant, Conversation, Results, User


def shortcoming(conversation: Conversation, target: Format, body: bytes) -> str | None:
    """The first defect of a translated body, or None."""
    translated = orjson.loads(body)
    found = set(_strings(translated))
    absent = set(_wanted(conversation)) - found
    everything = "\n".join(found) if absent else ""
    missing = {piece for piece in absent if piece not in everything}  # a description may have a remark added
    if missing:
        return f"{len(missing)} pieces missing, such as {_shortened(min(missing))!r}"
    calls, results = _identifiers(translated, target)
    if len(set(calls)) < len(calls):
        return "two calls share one id"
    if not set(results) <= set(calls):
        return "a result has the id of no call"
    return None


def stream_shortcoming(wanted: Assistant, found: Assistant) -> str | None:
    """The first thing missing in an answer collected from a stream, or None."""
    if found.text != wanted.text:
        return f"{len(found.text or '')} of {len(wanted.text or '')} characters of text arrived"
    for number, call in enumerate(wanted.calls):
        if call not in found.calls:
            return f"call {number} did not arrive"
    return None if len(found.calls) == len(wanted.calls) else f"{len(found.calls)} calls arrived"


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _wanted(conversation: Conversation) -> Iterator[str]:
    if conversation.system is not None:
        yield conversation.system
    for turn in conversation.turns:
        match turn:
            case User(text):
                yield text
            case Assistant(text, calls):
                if text is not None:
                    yield text
                for call in calls:
                    yield call.name
                    yield from _strings(call.arguments)
            case Results(values):
                yield from _strings(list(values))
    for tool in conversation.tools:
        yield tool.name
        yield tool.description
        yield from _described(tool.parameters)


def _described(schema: object) -> Iterator[str]:
    """Names and descriptions of parameters, wherever in a schema. Keywords may differ from target to target."""
    if isinstance(schema, list):
        for item in schema:
            yield from _described(item)
    if isinstance(schema, dict):
        if isinstance(description := schema.get("description"), str):
            yield description
        if isinstance(properties := schema.get("properties"), dict):
            yield from properties
        for value in schema.values():
            yield from _described(value)


def _strings(value: object) -> Iterator[str]:
    """Every key and string, also inside JSON strings, because some formats quote what others nest."""
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value
        if value.startswith("{"):
            try:
                yield from _strings(orjson.loads(value))
            except orjson.JSONDecodeError:
                return


def _identifiers(body: object, target: Format) -> tuple[list[str], list[str]]:
    """The ids of calls and of results. Gemini may pair by order alone, so there is nothing to compare."""
    if target == "gemini" or not isinstance(body, dict):
        return [], []
    calls: list[str] = []
    results: list[str] = []
    for block in _objects(body):
        kind, function = block.get("type"), block.get("function")
        use, result = block.get("toolUse"), block.get("toolResult")
        if isinstance(use, dict):
            calls.append(use["toolUseId"])
        elif isinstance(result, dict):
            results.append(result["toolUseId"])
        elif kind in {"function_call", "function_call_output"}:
            (calls if kind == "function_call" else results).append(str(block["call_id"]))
        elif isinstance(block.get("id"), str) and (kind in {"function", "tool_use"} or isinstance(function, dict)):
            calls.append(str(block["id"]))
        results += [str(block[key]) for key in ("tool_call_id", "tool_use_id") if isinstance(block.get(key), str)]
    return calls, results


def _objects(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
