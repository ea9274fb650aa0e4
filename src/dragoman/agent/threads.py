"""Runs blocking functions without blocking the event loop.

The threads are daemons, not those of the loop's executor: a tool that hangs must not keep the program from exiting.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return the function's result. A cancelled caller stops waiting; the function itself cannot be stopped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]

    def work() -> None:
        value: T | None = None
        failed: BaseException | None = None
        try:
            value = context.run(function, *args, **kwargs)
        # A future does not accept the one, and the other would end the loop: Ctrl-C never arrives in this thread.
        except (StopIteration, KeyboardInterrupt) as error:
            failed = RuntimeError(f"the function raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - re-raised where the function is awaited
            failed = error
        try:
            loop.call_soon_threadsafe(settle, value, failed)
        except RuntimeError:  # the loop has ended, and nothing waits any more
            return

    threading.Thread(target=work, daemon=True, name=f"tool {getattr(function, '__name__', '')}").start()
    return await future
