"""Other libraries on the same bytes, where they are installed; `peers.txt` names the versions the adapters fit.

An adapter is a module with one function, `translator(job, source, target)`, which gives a function from bytes to bytes,
or None where the library does not offer that pair; and where it can stream, with another, `streamer`, which gives one
from the chunks of a stream to the bytes of another. It parses and writes JSON with orjson, as the floor does, and calls
the library's own conversion functions in between, without the network. Adapters know the first three formats only.
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
    modules: tuple[str, ...]  # all of them have to be there
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
    """Imports what is there. Their logging is off: a line for every dropped keyword would be all that is measured."""
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import fetches a price list
    for peer in PEERS:
        if all(_is_there(module) for module in peer.modules):
            adapter = import_module(f"benchmarks.peers.{peer.adapter}")
            streamer = getattr(adapter, "streamer", no_streams)
            number = version(peer.distribution)
            yield Candidate(name=peer.name, version=number, translator=adapter.translator, streamer=streamer)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False
