"""PostgreSQL backend, for a database that several processes share.

Reads are REPEATABLE READ and READ ONLY. Writes are READ COMMITTED, so each statement sees what was committed
before it. Each write first takes an advisory lock, so that what it checks still holds when it writes.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import create_async_engine

from peripety.core.storage.errors import (
    BUSY_SECONDS,
    commit,
    open_transaction,
    storage_busy,
    storage_unavailable,
    translate_db_errors,
)
from peripety.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from asyncpg import Connection
    from sqlalchemy import Select
    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from peripety.errors import UnavailableError


_CONNECTIONS = 5  # per pool: ten of the hundred connections that a server allows by default
_COMMAND_SECONDS = 30.0
_SETTINGS = {
    "lock_timeout": f"{BUSY_SECONDS}s",
    # A process that hangs or vanishes in a transaction blocks the others for a minute at most.
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_READER_SETTINGS = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
}
_WRITER_SETTINGS = {"default_transaction_isolation": "read committed"}

# SQLSTATE codes, or their first two characters, which are the error class.
_BUSY = frozenset({"53300", "55P03", "40001", "40P01"})
_READ_FAULTS = frozenset({"08", "28", "3D", "53", "57", "58", "XX", "25P03"})
_WRITE_FAULTS = _READ_FAULTS | {"25006"}  # read only: this server is a standby now

# PostgreSQL text cannot contain NUL, but a model or a caller may send it.
_ESCAPES = {0: "\x01\x02", 1: "\x01\x01"}
_UNESCAPES = {escape: chr(character) for character, escape in _ESCAPES.items()}
_ESCAPED = re.compile("\x01[\x01\x02]")

_EVERYTHING = "everything"


class PostgresqlServer:
    """Backend for `postgresql://user:password@host:port/name`.

    Raises:
        FailedPreconditionError: the driver is not installed.
    """

    def __init__(self, url: str) -> None:
        try:
            import asyncpg  # noqa: F401, PLC0415 - an extra
        except ImportError as error:
            raise FailedPreconditionError(
                "PERIPETY_DATABASE_URL: PostgreSQL needs the package asyncpg;"
                " run pip install 'peripety[postgresql]'",
                code="MISSING_PACKAGE",
            ) from error
        self._writers = _engine(url, _WRITER_SETTINGS, _WRITE_FAULTS)
        self._readers = _engine(url, _READER_SETTINGS, _READ_FAULTS)

    @asynccontextmanager
    async def read_transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a read transaction; see the protocol."""
        async with open_transaction(self._readers) as connection:
            yield connection

    @asynccontextmanager
    async def write_transaction(self, scope: str | None, /) -> AsyncIterator[AsyncConnection]:
        """Open a write transaction; see the protocol."""
        async with open_transaction(self._writers) as connection:
            await connection.execute(_lock_statement(scope))
            yield connection
            await commit(connection)

    async def close(self) -> None:
        """Close every connection."""
        await self._readers.dispose()
        await self._writers.dispose()


def _engine(url: str, settings: dict[str, str], faults: frozenset[str]) -> AsyncEngine:
    engine = create_async_engine(
        # The driver parses the URL itself, as it supports every option of PostgreSQL. The engine, which
        # appears in logs, never sees the password.
        "postgresql+asyncpg://",
        async_creator=partial(_connect, url, _SETTINGS | settings),
        hide_parameters=True,
        max_overflow=0,
        pool_pre_ping=True,
        pool_size=_CONNECTIONS,
        pool_timeout=BUSY_SECONDS,
    )
    translate_db_errors(engine, partial(_translate_error, faults))
    return engine


def _lock_statement(about: str | None) -> Select[Any]:
    if about is None:
        return select(func.pg_advisory_xact_lock(_lock_number(_EVERYTHING)))
    return select(
        func.pg_advisory_xact_lock_shared(_lock_number(_EVERYTHING)),
        func.pg_advisory_xact_lock(_lock_number("about " + about)),
    )


def _lock_number(name: str) -> int:
    """Return the number of a lock; names with the same number only wait for each other."""
    # Salted: other programs on the same database may use advisory locks.
    return int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"peripety").digest(), signed=True)


async def _connect(url: str, settings: dict[str, str]) -> Connection[Any]:
    import asyncpg  # noqa: PLC0415 - an extra

    try:
        connection = await asyncpg.connect(
            url,
            timeout=BUSY_SECONDS,
            command_timeout=_COMMAND_SECONDS,
            server_settings=settings,
        )
    except (ValueError, OverflowError):
        # The exception is not chained: its text may quote the URL with the password.
        raise InvalidArgumentError(
            "PERIPETY_DATABASE_URL: invalid PostgreSQL URL; a complete example is"
            " postgresql://user:password@host:port/name?sslmode=require",
            code="BAD_CONFIGURATION",
        ) from None
    try:
        for name in ("text", "varchar"):
            await connection.set_type_codec(name, schema="pg_catalog", encoder=_escape, decoder=_unescape)
    except BaseException:
        # The pool does not own the connection yet; this also covers cancellation.
        connection.terminate()
        raise
    return connection


def _escape(text: str) -> str:
    return text.translate(_ESCAPES) if "\x00" in text or "\x01" in text else text


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _UNESCAPES[found[0]], text) if "\x01" in text else text


def _translate_error(faults: frozenset[str], context: ExceptionContext) -> UnavailableError | None:
    error = context.original_exception
    if isinstance(error, OSError):  # includes timeouts: the machine or the network is gone or far too slow
        context.is_disconnect = True
        return storage_unavailable(type(error).__name__)
    code = getattr(error, "sqlstate", None) or ""
    name = type(error.__cause__ or error).__name__
    if code in _BUSY:
        return storage_busy(name)
    if context.is_disconnect or not faults.isdisjoint({code, code[:2]}):
        return storage_unavailable(name)
    return None
