"""generateContent streams as tests write and read them: apart from the codec, with the standard library alone."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]


def text(value: str, signature: str | None = None) -> Json:
    return {"text": value} if signature is None else {"text": value, "thoughtSignature": signature}


def thought(value: str, signature: str | None = None) -> Json:
    return {**text(value, signature), "thought": True}


def call(name: str | None = None, args: Any = None, **more: Any) -> Json:
    """A functionCall part. `signature` stands beside the call, everything else within it."""
    signature = more.pop("signature", None)
    piece = {key: value for key, value in (("name", name), ("args", args)) if value is not None}
    part: Json = {"functionCall": piece | more}
    return part if signature is None else {**part, "thoughtSignature": signature}


def leaf(path: str, **value: Any) -> Json:
    return {"jsonPath": path, **value}


def chunk(*parts: Json, finish: str | int | None = None, index: int | None = 0, **more: Any) -> Json:
    """One response object with these parts; further keys belong to the candidate."""
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, **more}
    if finish is not None:
        candidate["finishReason"] = finish
    if index is not None:
        candidate["index"] = index
    return {"candidates": [candidate], "modelVersion": "gemini-3-flash", "responseId": "answer"}


def sse(chunks: Iterable[Json], end: str = "\r\n\r\n") -> bytes:
    return b"".join(f"data: {json.dumps(one, ensure_ascii=False)}{end}".encode() for one in chunks)


def array(chunks: Iterable[Json]) -> bytes:
    """As the service writes it without `alt=sse`."""
    return b"[" + b"\n,\r\n".join(json.dumps(one, indent=2).encode() for one in chunks) + b"\n]"


def chunks_of(body: bytes) -> list[Json]:
    """The chunks of an SSE stream, or of an array."""
    if body.lstrip()[:1] in {b"[", b"{"}:
        read = json.loads(body)
        return read if isinstance(read, list) else [read]
    events = body.replace(b"\r\n", b"\n").split(b"\n\n")
    return [json.loads(event.removeprefix(b"data: ")) for event in events if event.startswith(b"data: ")]


def parts_of(body: bytes, candidate: int = 0) -> list[Json]:
    """All parts of one candidate, in order."""
    found = []
    for one in chunks_of(body):
        for position, candidate_wire in enumerate(one.get("candidates", ())):
            if candidate_wire.get("index", position) == candidate:
                found += candidate_wire.get("content", {}).get("parts", [])
    return found


# ── the same answer, not streamed ─────────────────────────────────────────────────────────────────────────────


def unstreamed(chunks: Sequence[Json]) -> Json:
    """What the service would have answered without streaming, by the rules that the decoder documents."""
    whole: Json = {}
    candidates: dict[int, Json] = {}
    for one in chunks:
        whole |= {key: value for key, value in one.items() if key != "candidates"}
        for position, wire in enumerate(one.get("candidates", ())):
            candidate = candidates.setdefault(wire.get("index", position), {"content": {"role": "model", "parts": []}})
            for key, value in wire.items():
                if key != "content" and value not in ({}, None):
                    candidate[key] = value
            for part in (wire.get("content") or {}).get("parts", ()):
                _append(candidate["content"]["parts"], part)
    if candidates:
        whole["candidates"] = [candidates[index] for index in sorted(candidates)]
    for candidate in candidates.values():
        for part in candidate["content"]["parts"]:
            part.pop("open", None)
    return whole


def _append(parts: list[Json], part: Json) -> None:
    last = parts[-1] if parts else {}
    if "functionCall" in part and _goes_on(last):
        _grow(last, part["functionCall"])
    elif "functionCall" in part:
        parts.append({**part, "functionCall": dict(part["functionCall"])})
        if part["functionCall"].keys() & {"willContinue", "partialArgs"}:
            begun = parts[-1]["functionCall"] = {"name": part["functionCall"]["name"], "args": {}}
            parts[-1]["open"] = True
            _grow(parts[-1], part["functionCall"])
            assert begun is parts[-1]["functionCall"]
    elif set(part) <= {"text", "thought", "thoughtSignature"} and "text" in part:
        signed = "thoughtSignature" in part
        if not part["text"] and not signed:
            return
        runs = set(last) <= {"text", "thought"} and "text" in last and last.get("thought") == part.get("thought")
        if runs and part["text"]:
            parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
        else:
            parts.append(dict(part))
    elif part:
        parts.append(part)


def _goes_on(part: Json) -> bool:
    return part.get("open") is True


def _grow(part: Json, piece: Json) -> None:
    for one in piece.get("partialArgs", ()):
        _set(part["functionCall"]["args"], one)
    part["open"] = piece.get("willContinue") is True


def _set(root: Json, one: Json) -> None:
    steps = [int(index) if index else name for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", one["jsonPath"])]
    here: Any = root
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(here, list):
            assert isinstance(step, int)
            if step == len(here):
                here.append(None)
            known = here[step]
        else:
            known = here.get(step)
        if after is None:
            here[step] = _value(one, known)
        elif known is None:
            here[step] = [] if isinstance(after, int) else {}
        here = here[step]


def _value(one: Json, known: Any) -> Any:
    if "stringValue" in one:
        return (known or "") + one["stringValue"]
    return one.get("numberValue", one.get("boolValue"))
