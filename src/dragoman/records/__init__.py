"""The records of the earlier systems as types: what `translate` reads and writes for the formats of stored histories.

Only TypedDicts, without code. Each module is one format:

>>> from dragoman.records.agent_sdk import ToolMessage
>>> answer: ToolMessage = {"role": "tool", "tool_call_id": "call_1", "tool_name": "ls", "content": "a.txt"}

`universal`, `modular_prompt`, `agent_sdk` and `multi_llm_chat` are the formats `universal`, `modular-prompt`,
`agent-sdk` and `multi-llm-chat`. See docs/record-formats.md.
"""
