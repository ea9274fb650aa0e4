"""Other libraries on the same bytes, where they are installed; `peers.txt` names the versions the adapters fit.

An adapter is a module with a function `translator(job, source, target)`, which returns a function from bytes to bytes,
or None if the library does not offer that pair. If the library can stream, the adapter also has `streamer`, which
returns a function from the chunks of a stream to the bytes of another. An adapter parses and writes JSON with orjson,
as the floor does, and calls the library's own conversion functions in between, without the network. Time is measured
for the first three formats only; fidelity_peers.py uses the others too.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

from benchmarks.candidates import Candidate, no_streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    distribution: str
    modules: tuple[str, ...]  # all are needed
    adapter: str


PEERS: Final = (
    Peer(
        name="any-llm",
        distribution="any-llm-sdk",
        modules=("any_llm", "anthropic", "google.genai"),
        adapter="any_llm_adapter",
    ),
    Peer(name="litellm", distribution="litellm", modules=("litellm",), adapter="litellm_adapter"),
    Peer(name="llm-rosetta", distribution="llm-rosetta", modules=("llm_rosetta",), adapter="llm_rosetta_adapter"),
    Peer(
        name="pydantic-ai",
        distribution="pydantic-ai-slim",
        modules=("pydantic_ai", "anthropic", "google.genai"),
        adapter="pydantic_ai_adapter",
    ),
    Peer(
        name="langchain",
        distribution="langchain-core",
        modules=("langchain_core", "langchain_anthropic", "langchain_google_genai"),
        adapter="langchain_adapter",
    ),
)


def installed() -> Iterator[Candidate]:
    """Imports the libraries that are installed. Their logging is off: it would dominate the measurement."""
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise its import downloads a price list
    for peer in PEERS:
        if all(_is_there(module) for module in peer.modules):
            adapter = import_module(f"benchmarks.peers.{peer.adapter}")
            streamer = getattr(adapter, "streamer", no_streams)
            number = version(peer.distribution)
            yield Candidate(name=peer.name, version=number, translator=adapter.translator, streamer=streamer)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # also if a parent package is missing
        return False
