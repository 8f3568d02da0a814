"""Errors of the session store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError

if TYPE_CHECKING:
    from peripety.sessions.model import Request

__all__ = ["check_same", "stale", "unknown"]


def unknown(session_id: str) -> NotFoundError:
    """Return the error for a session that does not exist."""
    return NotFoundError(
        f".session_id: unknown session '{session_id[:64]}'; list the sessions", code="UNKNOWN_SESSION"
    )


def stale(session_id: str, what: str) -> ConflictError:
    """Return the error for a session that was changed concurrently."""
    return ConflictError(
        f"{what}; read it again and retry", code="STALE_TURN", details={"session_id": session_id}
    )


def check_same(request: Request, digest: str) -> None:
    """Raise an error if the id of a request was used for a different one.

    Raises:
        AlreadyExistsError: it was.
    """
    if request.digest != digest:
        raise AlreadyExistsError(
            ".request_id was used for a different request; make a new one for each request",
            code="REQUEST_ID_REUSED",
        )
