"""Translation of database faults: failures of the disk, the network or the server become `UnavailableError`.

An `UnavailableError` means that a later attempt may succeed. An invalid statement of our own stays the
exception that it is.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import event
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from peripety.core.concurrency import shield_until_done
from peripety.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    Explain: TypeAlias = Callable[[ExceptionContext], UnavailableError | None]


BUSY_SECONDS = 10
"""Seconds that a transaction waits for a lock, or for a connection of a server, before it fails with a
retryable error.
"""

_LASTING_FAULTS = frozenset({"SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_READONLY"})
"""Faults of a file that is not a database, or that this process may not use."""


def storage_unavailable(fault: str) -> UnavailableError:
    """Return the error for a database that does not work.

    Args:
        fault: the driver's name of the fault.
    """
    remedy = "set PERIPETY_DATABASE_URL to another path" if fault in _LASTING_FAULTS else "try again later"
    return UnavailableError(
        f"database is unavailable ({fault}), nothing was changed; {remedy}",
        code="STORAGE_UNAVAILABLE",
        details={"fault": fault},
    )


def storage_busy(fault: str) -> UnavailableError:
    """Return the error for a database that is busy with other transactions.

    Args:
        fault: the exhausted resource.
    """
    return UnavailableError(
        "database is busy, nothing was changed; try again later",
        code="STORAGE_BUSY",
        details={"fault": fault},
        retry_after=1.0,
    )


def translate_db_errors(engine: AsyncEngine, translate: Explain) -> None:
    """Replace errors of `engine` with the result of `translate`; None leaves the error as it is."""

    def handle(context: ExceptionContext) -> UnavailableError | None:
        # A broken connection that the pool detects before use is replaced; that is not an error. Nor is a
        # cancellation, which also ends the connection.
        is_fault = isinstance(context.original_exception, Exception)
        return translate(context) if is_fault and not context.is_pre_ping else None

    event.listen(engine.sync_engine, "handle_error", handle, retval=True)


@asynccontextmanager
async def open_transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Yield a connection in a transaction, which is rolled back unless the block commits it.

    Raises:
        UnavailableError: every connection stayed in use, or no new one can be opened.
    """
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(engine.connect())
        except PoolTimeoutError:
            raise storage_busy("connections") from None
        except OSError as error:  # includes timeouts of a new connection or of the check of an idle one
            raise storage_unavailable(type(error).__name__) from error
        await connection.begin()
        yield connection


async def commit(connection: AsyncConnection) -> None:
    """Commit the transaction of a connection; a cancellation that arrives meanwhile waits for the commit.

    Raises:
        UnavailableError: `STORAGE_UNCERTAIN`: the database stopped working during the commit.
    """
    try:
        await shield_until_done(connection.commit())
    except UnavailableError as error:
        raise UnavailableError(
            "database failed during a commit, so the change may or may not be stored;"
            " send the same request again, with its id if it has one",
            code="STORAGE_UNCERTAIN",
            details=error.details,
        ) from error
