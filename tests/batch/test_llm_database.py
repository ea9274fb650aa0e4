"""The SQLite file of the command `llm`: both generations of its tables, and what is in both."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dragoman.batch import convert
from tests.support.promises import promise

pytestmark = promise("batch:llm-logs")

OLDER = """
create table conversations (id text primary key, name text, model text);
create table responses (id text primary key, model text, prompt text, system text, prompt_json text, options_json text,
  response text, response_json text, conversation_id text, duration_ms integer, datetime_utc text, input_tokens integer,
  output_tokens integer, token_details text, schema_id text, resolved_model text, reasoning text);
create table attachments (id text primary key, type text, path text, url text, content blob);
create table prompt_attachments (response_id text, attachment_id text, "order" integer);
create table fragments (id integer primary key, hash text, content text, datetime_utc text, source text);
create table prompt_fragments (response_id text, fragment_id integer, "order" integer);
create table system_fragments (response_id text, fragment_id integer, "order" integer);
create table tools (id integer primary key, hash text, name text, description text, input_schema text, plugin text);
create table tool_responses (tool_id integer, response_id text);
create table tool_calls (id integer primary key, response_id text, tool_id integer, name text, arguments text,
  tool_call_id text);
create table tool_results (id integer primary key, response_id text, tool_id integer, name text, output text,
  tool_call_id text, instance_id integer, exception text);
"""
NEWER = """
create table messages (hash text primary key, parent_hash text, role text, provider_metadata text);
create table parts (id integer primary key, message_hash text, position integer, type text, tool_name text, text text,
  payload text);
create table part_attachments (part_id integer, attachment_id text, "order" integer);
create table threads (id text primary key, name text, tip_message_hash text, forked_from text, datetime_utc text);
create table turns (id text primary key, thread_id text, parent_message_hash text, tip_message_hash text, model text,
  resolved_model text, options_json text);
create table turn_tools (turn_id text, tool_id integer, instance_id integer);
"""
SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}}'


def insert(database: sqlite3.Connection, table: str, *rows: dict[str, Any]) -> None:
    for row in rows:
        names = ", ".join(f'"{name}"' for name in row)
        database.execute(f"insert into {table} ({names}) values ({', '.join('?' * len(row))})", tuple(row.values()))  # noqa: S608


def older(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(OLDER)
        insert(database, "conversations", {"id": "c1", "name": "Oslo", "model": "gpt-4.1"})
        row = {"conversation_id": "c1", "model": "gpt-4.1", "system": "Answer briefly."}
        insert(
            database,
            "responses",
            {"id": "r1", "prompt": "Weather?", "response": "", "reasoning": "I need a tool.", **row},
            {"id": "r2", "prompt": "", "response": "3 degrees.", **row},
            {"id": "r3", "prompt": "And tomorrow?", "response": "4.", **row},
            {"id": "r9", "prompt": "alone", "response": "yes", "model": "m", "conversation_id": None},
        )
        insert(database, "fragments", {"id": 1, "content": "Read this first."})
        insert(database, "prompt_fragments", {"response_id": "r1", "fragment_id": 1, "order": 0})
        insert(database, "attachments", {"id": "a", "type": "image/png", "content": b"png"})
        insert(database, "prompt_attachments", {"response_id": "r3", "attachment_id": "a", "order": 0})
        insert(database, "tools", {"id": 1, "name": "weather", "description": "d", "input_schema": SCHEMA})
        insert(database, "tool_responses", {"tool_id": 1, "response_id": "r1"})
        call = {"response_id": "r1", "name": "weather", "arguments": '{"city": "Oslo"}', "tool_call_id": "x1"}
        insert(database, "tool_calls", call)
        insert(database, "tool_results", {"response_id": "r2", "name": "weather", "output": "3C", "tool_call_id": "x1"})


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(NEWER)
        chain = [("m1", None, "user"), ("m2", "m1", "assistant"), ("m3", "m2", "user"), ("m4", "m3", "assistant")]
        fork = [("m5", "m2", "user"), ("m6", "m5", "assistant")]
        for place, (digest, parent, role) in enumerate([*chain, *fork]):
            insert(database, "messages", {"hash": digest, "parent_hash": parent, "role": role})
            insert(
                database, "parts", {"id": place, "message_hash": digest, "position": 0, "type": "text", "text": digest}
            )
        pieces = json.dumps({"text_ref": [{"fragment": 1}, {"literal": " then this"}]})
        database.execute("update parts set text = null, payload = ? where message_hash = 'm3'", (pieces,))
        insert(database, "threads", {"id": "c1", "tip_message_hash": "m4"}, {"id": "c2", "tip_message_hash": "m6"})
        insert(database, "turns", {"id": "r1", "thread_id": "c1", "tip_message_hash": "m4", "model": "claude-sonnet-5"})


def text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def converted(path: Path) -> list[dict[str, Any]]:
    out = path.with_suffix(".jsonl")
    report = convert(str(path), str(out), target="openai-chat")
    assert report.tally.rejected == 0, report.tally.rejects
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_a_row_per_answer_becomes_conversations_with_calls_and_their_results(tmp_path: Path) -> None:
    older(tmp_path / "logs.db")
    first, alone = converted(tmp_path / "logs.db")
    roles = [message["role"] for message in first["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    _, question, called, result, answer, again, last = first["messages"]
    assert text(question) == "Read this first.\nWeather?"
    assert called["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Oslo"}'}
    assert (result["tool_call_id"], result["content"]) == (called["tool_calls"][0]["id"], "3C")
    assert (answer["content"], last["content"]) == ("3 degrees.", "4.")
    assert again["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert first["tools"][0]["function"]["parameters"]["properties"] == {"city": {"type": "string"}}
    assert [text(message) for message in alone["messages"]] == ["alone", "yes"]


def test_a_thread_is_the_branch_that_ends_at_its_tip_and_is_read_once(tmp_path: Path) -> None:
    older(tmp_path / "logs.db")
    newer(tmp_path / "logs.db")
    found = [[text(message) for message in one["messages"]] for one in converted(tmp_path / "logs.db")]
    assert found == [["m1", "m2", "Read this first. then this", "m4"], ["m1", "m2", "m5", "m6"], ["alone", "yes"]]
