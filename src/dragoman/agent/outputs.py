"""Typed output within a run: the tool that takes the answer, and validators."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from dragoman.agent.setup import Validator
from dragoman.agent.tools import BadArguments, Tool, ToolContext
from dragoman.drivers.typed_output import BadOutput, Output


class Accepted(Struct, frozen=True):
    """What the output tool returns: the value of the run."""

    value: Any


def output_tool(output: Output[Any], validators: Sequence[Validator]) -> Tool:
    """Return the tool whose arguments are the answer."""

    def decode(given: Any) -> dict[str, Any]:
        try:
            return {"value": output.decode(given)}
        except BadOutput as error:
            raise BadArguments(str(error)) from None

    async def run(arguments: dict[str, Any], _context: ToolContext) -> Accepted:
        return Accepted(await validate_output(arguments["value"], validators))

    return Tool(definition=output.definition, run=run, decode=decode, read_only=True, ends_run=True, keeps_output=False)


async def validate_output(value: Any, validators: Sequence[Validator]) -> Any:
    for validator in validators:
        value = validator(value)
        if inspect.isawaitable(value):
            value = await value
    return value
