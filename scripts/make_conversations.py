"""Write made-up conversations with tools, one per line, to try `dragoman batch` with.

    python scripts/make_conversations.py 10000 > conversations.jsonl
    python scripts/make_conversations.py 1000 --format anthropic-messages --bad 10 > some-bad.jsonl

The same arguments give the same bytes. With `--bad N` every Nth line has one of the defects that real files have.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

from dragoman.translate import translate_request

CITIES = ("Oslo", "Tōkyō", "São Paulo", "Nairobi", "Reykjavík", "Montréal")
WORDS = ("the", "weather", "is", "mild", "with", "some", "rain", "in", "evening", "and", "a", "light", "wind", "west")
BROKEN = ('{"model": "m", "messages": [', '{"model": "m", "messages": "none"}', "[1, 2", '{"unknown": true}')
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def conversation(number: int, turns: int = 0) -> dict[str, Any]:
    """Return one conversation as a Chat Completions request: a question, a call, its result, an answer, some talk.

    `turns` is the least number of turns of talk.
    """
    draw = random.Random(number)  # noqa: S311 - data to try things with
    city, call = draw.choice(CITIES), f"call_{number}"
    arguments = json.dumps({"city": city}, ensure_ascii=False)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": f"How is the weather in {city}?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": call, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
            ],
        },
        {"role": "tool", "tool_call_id": call, "content": json.dumps({"celsius": draw.randint(-20, 40)})},
    ]
    for _ in range(turns + draw.randint(0, 4)):
        messages.append({"role": "assistant", "content": " ".join(draw.choices(WORDS, k=draw.randint(5, 60)))})
        messages.append({"role": "user", "content": " ".join(draw.choices(WORDS, k=draw.randint(3, 20)))})
    messages.append({"role": "assistant", "content": " ".join(draw.choices(WORDS, k=12))})
    return {"model": "gpt-5.4", "messages": messages, "tools": [TOOL], "temperature": draw.choice((0, 0.5, 1))}


def lines(count: int, target: str, bad: int, turns: int = 0) -> Iterator[bytes]:
    """Yield `count` lines in the format `target`; every `bad`th is broken."""
    for number in range(1, count + 1):
        if bad and number % bad == 0:
            yield BROKEN[number // bad % len(BROKEN)].encode()
            continue
        body = json.dumps(conversation(number, turns), ensure_ascii=False).encode()
        yield body if target == "openai-chat" else translate_request(body, source="openai-chat", target=target).json()


def main() -> None:
    """Read the command line and write the lines to stdout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--format", default="openai-chat")
    parser.add_argument("--bad", type=int, default=0, metavar="N")
    parser.add_argument("--turns", type=int, default=0, metavar="N", help="least number of turns of talk in each")
    arguments = parser.parse_args()
    for line in lines(arguments.count, arguments.format, arguments.bad, arguments.turns):
        sys.stdout.buffer.write(line + b"\n")


if __name__ == "__main__":
    main()
