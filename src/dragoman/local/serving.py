"""The process that holds the model: `python -m dragoman.local.serving`. Its parent is `dragoman.local.servers`.

It reads one line of JSON with the model and writes one with its URL. It exits when its stdin is closed, so it cannot
outlive its parent.
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.request
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.local.models import Plan

LOOPBACK = "127.0.0.1"
_ERRORS_ONLY = 1


class Order(Struct, frozen=True):
    plan: Plan
    key: str
    """Required in requests: other programs and web pages on this machine can reach the port."""


class Ready(Struct, frozen=True):
    url: str
    knows_tools: bool
    """Whether the model's own template supports tools."""


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which stops us by closing stdin
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # keep output of llama.cpp out of stdout
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    try:
        server = import_module("xllamacpp").Server(_parameters(order))
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    url: str = server.listening_address
    answers.write(msgspec.json.encode(Ready(url, _knows_tools(url, order.key))) + b"\n")
    sys.stdin.buffer.read()
    del server  # stops its threads
    return 0


def _parameters(order: Order) -> Any:
    plan = order.plan
    parameters = import_module("xllamacpp").CommonParams()
    parameters.model.path = plan.path
    parameters.model_alias = {plan.name}
    parameters.hostnames, parameters.port = [LOOPBACK], 0
    parameters.api_keys = [order.key]
    parameters.n_ctx, parameters.n_parallel = plan.context, 1
    parameters.n_predict = plan.longest_answer
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = plan.threads
    parameters.use_jinja = True
    if plan.template:
        parameters.chat_template = plan.template
    parameters.offline = True
    parameters.warmup = parameters.ui = parameters.endpoint_slots = False
    parameters.verbosity = _ERRORS_ONLY
    return parameters


def _knows_tools(url: str, key: str) -> bool:
    request = urllib.request.Request(f"{url}/props", headers={"authorization": f"Bearer {key}"})  # noqa: S310 - our own server
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request) as answer:
        properties: dict[str, Any] = msgspec.json.decode(answer.read())
    return bool(properties.get("chat_template_caps", {}).get("supports_tools"))


if __name__ == "__main__":
    sys.exit(main())
