"""Log probabilities of tokens. OpenAI's two APIs and Ollama write the same list; Gemini has two lists side by side.

A list that is read is also noted as it was written, for its own family.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from dragoman.ir import Completion, LogprobsDelta, Metadata, TokenLogprob
from dragoman.ir.notes import MODELLED
from dragoman.ir.values import encode_json
from dragoman.losses import LossLog

NO_IDS = "this API gives the text of tokens, not their numbers"

_decode_tokens = msgspec.json.Decoder(tuple[TokenLogprob, ...]).decode


def read_tokens(raw: Raw | UnsetType | None) -> tuple[TokenLogprob, ...]:
    """Return the tokens of a list in OpenAI's form; none for anything else."""
    if raw is None or raw is UNSET:
        return ()
    try:
        return _decode_tokens(raw)
    except msgspec.ValidationError:
        return ()


def convert_tokens(parsed: Any) -> tuple[TokenLogprob, ...]:
    """Return the tokens of a list that is already parsed."""
    try:
        return msgspec.convert(parsed, tuple[TokenLogprob, ...]) if parsed else ()
    except msgspec.ValidationError:
        return ()


def with_logprobs_noted(metadata: Metadata | None, family: str) -> Metadata:
    """Return metadata with the log probabilities marked as modelled: the completion holds them."""
    notes = dict((metadata or {}).get(family, {}))
    notes[MODELLED + "logprobs"] = notes.pop("logprobs")
    return {**(metadata or {}), family: notes}


def tokens_of(completion: Completion, candidate: int = 0) -> tuple[TokenLogprob, ...]:
    for one in completion.logprobs:
        if one.candidate == candidate:
            return one.tokens
    return ()


def tokens_by_candidate(completion: Completion) -> dict[int, tuple[TokenLogprob, ...]]:
    """Return the tokens of all candidates. The first list of a candidate counts."""
    return {one.candidate: one.tokens for one in reversed(completion.logprobs)}


def write_tokens(tokens: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
    """Return the list with every member that strict clients expect."""
    return [_write_token(token) | {"top_logprobs": list(map(_write_token, token.top_logprobs))} for token in tokens]


def _write_token(token: TokenLogprob) -> dict[str, Any]:
    spelled = token.token.encode("utf-8", "replace") if token.bytes is None else token.bytes
    return {"token": token.token, "logprob": token.logprob, "bytes": list(spelled)}


def split_tokens(tokens: Sequence[TokenLogprob], texts: Sequence[str]) -> list[Sequence[TokenLogprob]]:
    """Return the tokens that make up each text; the last text gets all that are left."""
    shares: list[Sequence[TokenLogprob]] = []
    start = 0
    for text in texts[:-1]:
        end, length = start, 0
        while end < len(tokens) and length < len(text):
            length += len(tokens[end].token)
            end += 1
        shares.append(tokens[start:end])
        start = end
    return [*shares, tokens[start:]]


def report_ids(completion: Completion, log: LossLog) -> None:
    for one in completion.logprobs:
        if any(token.id is not None or any(top.id is not None for top in token.top_logprobs) for token in one.tokens):
            log.note(completion, "logprobs", "numbers of tokens", NO_IDS)
            return


def skip_logprobs(_encoder: object, _event: LogprobsDelta) -> list[bytes]:
    """Write nothing, for APIs without log probabilities: `PrivateEvents` has reported the loss."""
    return []


# ── a choice of Chat ──────────────────────────────────────────────────────────────────────────────────────────

_NULL = Raw(b"null")


class _Choice(Struct, gc=False):
    content: tuple[TokenLogprob, ...] | None = None
    refusal: Raw | UnsetType = UNSET
    reasoning_content: Raw | UnsetType = UNSET
    """DeepSeek: the tokens of the reasoning."""


_decode_choice = msgspec.json.Decoder(_Choice).decode


def read_choice(raw: Raw) -> tuple[TokenLogprob, ...]:
    """Return the tokens of the text; those of a refusal, and other servers' forms, stay private to this family."""
    try:
        found = _decode_choice(raw)
    except msgspec.ValidationError:
        return ()
    is_all = found.refusal is UNSET or bytes(found.refusal) in {b"null", b"[]"}
    return found.content or () if is_all else ()


def read_reasoning(raw: Raw) -> Raw | None:
    """Return the tokens of the reasoning, which other APIs do not have; None if there are none."""
    try:
        found = _decode_choice(raw).reasoning_content
    except msgspec.ValidationError:
        return None
    return None if found is UNSET or bytes(found) in {b"null", b"[]"} else found


def write_choice(tokens: tuple[TokenLogprob, ...]) -> Raw:
    return Raw(encode_json({"content": write_tokens(tokens), "refusal": None})) if tokens else _NULL


# ── a candidate of Google ─────────────────────────────────────────────────────────────────────────────────────

GOOGLE_KEYS = frozenset({"logprobsResult", "logprobs_result"})
"""The keys of log probabilities in a candidate."""


class _GoogleToken(Struct, gc=False, rename="camel"):
    token: str = ""
    token_id: int | None = None
    log_probability: float = 0.0


class _Place(Struct, gc=False):
    candidates: tuple[_GoogleToken, ...] = ()


class _Result(Struct, gc=False, rename="camel"):
    top_candidates: tuple[_Place, ...] = ()
    chosen_candidates: tuple[_GoogleToken, ...] = ()


_decode_result = msgspec.json.Decoder(_Result).decode


def read_google(raw: Raw) -> tuple[TokenLogprob, ...]:
    """Return the chosen tokens, each with the likeliest ones; none if the object is not as documented."""
    try:
        result = _decode_result(raw)
    except msgspec.ValidationError:
        return ()
    tops = (tuple(map(_read_google, place.candidates)) for place in result.top_candidates)
    return tuple(
        structs.replace(_read_google(token), top_logprobs=top)
        for token, top in zip(result.chosen_candidates, chain(tops, repeat(())), strict=False)
    )


def _read_google(token: _GoogleToken) -> TokenLogprob:
    return TokenLogprob(token.token, token.log_probability, id=token.token_id)


def write_google(tokens: Sequence[TokenLogprob]) -> Raw:
    result: dict[str, Any] = {"chosenCandidates": list(map(_write_google, tokens))}
    if any(token.top_logprobs for token in tokens):
        result["topCandidates"] = [{"candidates": list(map(_write_google, token.top_logprobs))} for token in tokens]
    return Raw(encode_json(result))


def _write_google(token: TokenLogprob) -> dict[str, Any]:
    numbered = {} if token.id is None else {"tokenId": token.id}
    return {"token": token.token, **numbered, "logProbability": token.logprob}


def report_bytes(completion: Completion, log: LossLog) -> None:
    """Report tokens whose bytes differ from their text: each is a piece of a character."""
    for one in completion.logprobs:
        if any(_has_bytes(token) or any(map(_has_bytes, token.top_logprobs)) for token in one.tokens):
            log.note(completion, "logprobs", "bytes of tokens", "this API gives the text of tokens only")
            return


def _has_bytes(token: TokenLogprob) -> bool:
    return token.bytes is not None and token.bytes != tuple(token.token.encode("utf-8", "replace"))
