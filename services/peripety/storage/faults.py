"""What the disk, the network or the server did, as opposed to what our own statement did.

Only the first is an `UnavailableError`, which says that a later attempt may succeed. A wrong statement stays
the exception that it is.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import event
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from peripety.errors import UnavailableError
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    Explain: TypeAlias = Callable[[ExceptionContext], UnavailableError | None]

__all__ = ["BUSY_SECONDS", "busy", "commit", "connected", "explain_faults", "unavailable"]

BUSY_SECONDS = 10
"""For how long a transaction waits for its turn or for a connection before it is told to come back."""


def unavailable(fault: str) -> UnavailableError:
    """The database does not work.

    Args:
        fault: how its driver calls what happened.
    """
    return UnavailableError(
        f"The database cannot be used now ({fault}); nothing was changed, try again later",
        code="STORAGE_UNAVAILABLE",
        details={"fault": fault},
    )


def busy(fault: str) -> UnavailableError:
    """The database works, for others.

    Args:
        fault: what there was not enough of.
    """
    return UnavailableError(
        "The database is busy; nothing was changed, try again later",
        code="STORAGE_BUSY",
        details={"fault": fault},
        retry_after=1.0,
    )


def explain_faults(engine: AsyncEngine, explain: Explain) -> None:
    """Raise what `explain` makes of an error of `engine` in place of that error, unless it is None."""

    def handle(context: ExceptionContext) -> UnavailableError | None:
        # A connection that is found broken before it is used is replaced, and nobody need know.
        return None if context.is_pre_ping else explain(context)

    event.listen(engine.sync_engine, "handle_error", handle, retval=True)


@asynccontextmanager
async def connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection in a transaction, which is rolled back unless the block commits it.

    Raises:
        UnavailableError: every connection stayed in use, or no new one can be made.
    """
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(engine.connect())
        except PoolTimeoutError:
            raise busy("connections") from None
        except OSError as error:  # among them time-outs, of a new connection or of trying one that was idle
            raise unavailable(type(error).__name__) from error
        await connection.begin()
        yield connection


async def commit(connection: AsyncConnection) -> None:
    """Commit the transaction of a connection; a cancellation that arrives meanwhile waits for it.

    Raises:
        UnavailableError: `STORAGE_UNCERTAIN`: the database stopped working while it committed.
    """
    try:
        await finish(connection.commit())
    except UnavailableError as error:
        raise UnavailableError(
            "The database failed while it kept a change, and may or may not have kept it:"
            " send the same request again, with its id if it has one",
            code="STORAGE_UNCERTAIN",
            details=error.details,
        ) from error
