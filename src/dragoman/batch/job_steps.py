"""Runs the steps of operations on batch jobs: HTTP over a driver's channel, files through fsspec."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from msgspec import structs

from dragoman.batch.job_file import BatchJobError
from dragoman.batch.provider_jobs import Call, JobContext, Load, Reply, Save, Step, Steps
from dragoman.batch.remote_files import remote_file_system
from dragoman.drivers.remote import Call as DriverCall
from dragoman.drivers.remote import Channel, send
from dragoman.drivers.retries import RetryPolicy
from dragoman.drivers.transport import HttpRequest, read_whole
from dragoman.errors import provider_error
from dragoman.ir import Failure

T = TypeVar("T")


async def run_steps(channel: Channel, steps: Steps[T], context: JobContext, base_url: str = "") -> T:
    """Run the steps of an operation, one after the other, and return its result."""
    try:
        step = next(steps)
        while True:
            reply = await _do(channel, step, context, base_url or channel.base_url)
            step = steps.send(reply)
    except StopIteration as end:
        found: T = end.value
        return found
    except (KeyError, TypeError, AttributeError, msgspec.DecodeError) as error:
        words = f"{channel.provider.name} gave an answer that is not a batch job: {type(error).__name__} {error}"
        raise BatchJobError(words) from error


async def _do(channel: Channel, step: Step, context: JobContext, base_url: str) -> Reply:
    if isinstance(step, Save):
        await asyncio.to_thread(_save, step)
        return Reply()
    if isinstance(step, Load):
        return Reply(await asyncio.to_thread(_load, step))
    return await _call(channel, step, context, base_url)


async def _call(channel: Channel, step: Call, context: JobContext, base_url: str) -> Reply:
    # An address that a provider issues, as for uploads, is its own credential: no key is sent there.
    own = "://" in step.url
    headers = {**channel.provider.headers, **channel.headers, **context.headers, **step.headers}
    request = HttpRequest(
        method=step.method, url=step.url if own else base_url + step.url, headers=headers, body=step.body
    )
    call = DriverCall.about(request, channel.timeouts)
    # A creation whose reply is lost may have created a job: it is searched for, never sent again.
    used = structs.replace(channel, retry=RetryPolicy(attempts=1)) if step.once else channel
    if own:
        response = await channel.transport.send(request, timeouts=channel.timeouts)
        body = await read_whole(response, channel.limits.response)
        if response.status >= 300:  # noqa: PLR2004 - HTTP
            message = f"HTTP {response.status} from the address for uploads"
            raise provider_error(Failure("server", message, response.status), provider=channel.provider.name)
        return Reply(body, response.headers)
    response = await send(used, call)
    return Reply(await read_whole(response, channel.limits.response), response.headers)


def _save(step: Save) -> None:
    files, path = remote_file_system(step.address)
    files.makedirs(path.rpartition("/")[0], exist_ok=True)
    with files.open(path, "wb") as stream:
        stream.write(step.content)


def _load(step: Load) -> bytes:
    files, path = remote_file_system(step.address)
    if not files.exists(path):
        return b""
    names = [name for name in sorted(files.find(path)) if name.endswith(step.suffixes)]
    pieces = []
    for name in names:
        with files.open(name, "rb") as stream:
            pieces.append(stream.read().rstrip(b"\n"))
    return b"\n".join(piece for piece in pieces if piece)
