"""Reads the SQLite file of the command `llm` (`llm logs path`), conversation by conversation.

It has two generations of tables. The older has a row per answer: tool results belong to the prompt of the row that
holds them. The newer has a tree of messages, and a thread names its last message. Conversations in both are read once.
"""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

Fields: TypeAlias = dict[str, Any]
_OLDER = frozenset({"id", "model", "prompt", "system", "response", "conversation_id"})
_LONGEST_CHAIN = 100_000


def is_llm_database(database: sqlite3.Connection) -> bool:
    return _columns(database, "responses") >= _OLDER or _has_threads(database)


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"pragma table_info({table})")}


def _has_threads(database: sqlite3.Connection) -> bool:
    return "tip_message_hash" in _columns(database, "threads") and "message_hash" in _columns(database, "parts")


def conversation_ids(database: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the table (`threads`, `responses`) and the id of each conversation, in a fixed order."""
    found: list[tuple[str, str]] = []
    if _has_threads(database):
        found += [("threads", row[0]) for row in database.execute("select id from threads order by id")]
    if _columns(database, "responses") >= _OLDER:
        known = {id for _, id in found}
        rows = database.execute("select distinct coalesce(conversation_id, id) from responses order by 1")
        found += [("responses", row[0]) for row in rows if row[0] not in known]
    return found


def conversations(database: sqlite3.Connection, start: int, stop: int) -> Iterator[bytes]:
    """Yield a range of the conversations, each as a record of the format `llm`."""
    database.row_factory = sqlite3.Row
    for home, id in conversation_ids(database)[start:stop]:
        read = _thread if home == "threads" else _conversation
        yield msgspec.json.encode({"conversation": id, **read(database, id)})


def _rows(database: sqlite3.Connection, table: str, query: str, *values: object) -> list[Fields]:
    """Return rows of a table that older versions of `llm` may not have."""
    if not _columns(database, table):
        return []
    return [dict(row) for row in database.execute(query, values)]


def _tools(database: sqlite3.Connection, link: str, column: str, ids: list[str]) -> list[Fields]:
    tools: dict[str, Fields] = {}
    for id in ids:
        query = f"select t.* from tools t join {link} l on l.tool_id = t.id where l.{column} = ? order by t.id"  # noqa: S608 - our own names
        for row in _rows(database, link, query, id):
            schema = _parse_json(row.get("input_schema"))
            tools[row["name"]] = {"name": row["name"], "description": row["description"], "parameters": schema}
    return list(tools.values())


def _parse_json(text: Any) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text


def _attachment(row: Fields) -> Fields:
    content = row.get("content")
    fields = {"type": row.get("type"), "url": row.get("url"), "path": row.get("path")}
    if isinstance(content, bytes):
        fields["content"] = b64encode(content).decode()
    return {"type": "attachment", "attachment": {name: value for name, value in fields.items() if value}}


# ── a row per answer ──


def _conversation(database: sqlite3.Connection, id: str) -> Fields:
    rows = _rows(
        database, "responses", "select * from responses where conversation_id = ? or id = ? order by id", id, id
    )
    chain: list[Fields] = []
    system = ""
    for row in rows:
        instructions = _with_fragments(database, "system_fragments", row["id"], row.get("system"))
        if instructions and instructions != system:
            chain.append({"role": "system", "parts": [{"type": "text", "text": instructions}]})
            system = instructions
        chain += _turn(database, row)
    tools = _tools(database, "tool_responses", "response_id", [row["id"] for row in rows])
    model = rows[-1].get("resolved_model") or rows[-1]["model"] if rows else None
    return {"answered_by": model, "tools": tools, "chain": chain}


def _turn(database: sqlite3.Connection, row: Fields) -> Iterator[Fields]:
    id = row["id"]
    results = _rows(database, "tool_results", "select * from tool_results where response_id = ? order by id", id)
    if results:
        kept = ("name", "output", "tool_call_id", "exception")
        yield {
            "role": "tool",
            "parts": [{"type": "tool_result", **{key: one.get(key) for key in kept}} for one in results],
        }
    prompt = _with_fragments(database, "prompt_fragments", id, row.get("prompt"))
    parts = [{"type": "text", "text": prompt}] if prompt else []
    parts += [_attachment(one) for one in _read_attachments(database, "prompt_attachments", "response_id", id)]
    if parts:
        yield {"role": "user", "parts": parts}
    calls = _rows(database, "tool_calls", "select * from tool_calls where response_id = ? order by id", id)
    answer = [{"type": "reasoning", "text": row["reasoning"]}] if row.get("reasoning") else []
    answer += [{"type": "text", "text": row["response"]}] if row.get("response") else []
    answer += [
        {"type": "tool_call", "name": one["name"], "arguments": one["arguments"], "tool_call_id": one["tool_call_id"]}
        for one in calls
    ]
    if answer:
        yield {"role": "assistant", "parts": answer}


def _with_fragments(database: sqlite3.Connection, link: str, id: str, text: Any) -> str:
    query = (
        f"select f.content from fragments f join {link} l on l.fragment_id = f.id "  # noqa: S608 - our own names
        'where l.response_id = ? order by l."order"'
    )
    pieces = [row["content"] for row in _rows(database, link, query, id)]
    return "\n".join([*pieces, *([text] if text else [])])


def _read_attachments(database: sqlite3.Connection, link: str, column: str, id: Any) -> list[Fields]:
    query = (
        f'select a.* from attachments a join {link} l on l.attachment_id = a.id where l.{column} = ? order by l."order"'  # noqa: S608 - our own names
    )
    return _rows(database, link, query, id)


# ── messages in a tree ──


def _thread(database: sqlite3.Connection, id: str) -> Fields:
    turns = _rows(database, "turns", "select * from turns where thread_id = ? order by id", id)
    (thread,) = _rows(database, "threads", "select * from threads where id = ?", id)
    last = turns[-1] if turns else {}
    chain: list[Fields] = []
    digest, seen = thread["tip_message_hash"] or last.get("tip_message_hash"), set[str]()
    while digest and digest not in seen and len(seen) < _LONGEST_CHAIN:
        seen.add(digest)
        (message,) = _rows(database, "messages", "select * from messages where hash = ?", digest) or ({},)
        if not message:
            break
        chain.append({"role": message["role"], "parts": _parts(database, digest)})
        digest = message["parent_hash"]
    tools = _tools(database, "turn_tools", "turn_id", [turn["id"] for turn in turns])
    return {"answered_by": last.get("resolved_model") or last.get("model"), "tools": tools, "chain": chain[::-1]}


def _parts(database: sqlite3.Connection, digest: str) -> list[Fields]:
    rows = _rows(database, "parts", "select * from parts where message_hash = ? order by position", digest)
    return [_part(database, row) for row in rows]


def _part(database: sqlite3.Connection, row: Fields) -> Fields:
    """Return a part as `llm` represents it, with the fragments and attachments that it refers to."""
    payload = _parse_json(row["payload"])
    part: Fields = {**(payload if isinstance(payload, dict) else {}), "type": row["type"]}
    if row["text"] is not None:
        part["text"] = row["text"]
    elif isinstance(pieces := part.pop("text_ref", None), list):
        part["text"] = "".join(_piece(database, piece) for piece in pieces if isinstance(piece, dict))
    if row["type"] == "attachment":
        part |= next(
            (_attachment(one) for one in _read_attachments(database, "part_attachments", "part_id", row["id"])), {}
        )
    return part


def _piece(database: sqlite3.Connection, piece: Fields) -> str:
    if "literal" in piece:
        return str(piece["literal"])
    rows = _rows(database, "fragments", "select content from fragments where id = ?", piece.get("fragment"))
    return str(rows[0]["content"]) if rows else ""
