"""Why the store does not do what it is asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import AlreadyExistsError, ConflictError, NotFoundError

if TYPE_CHECKING:
    from peripety.sessions.model import Request

__all__ = ["check_same", "stale", "unknown"]


def unknown(session_id: str) -> NotFoundError:
    """There is no such session."""
    return NotFoundError(f".session_id: there is no session '{session_id[:64]}'", code="UNKNOWN_SESSION")


def stale(session_id: str, what: str) -> ConflictError:
    """Somebody else was faster."""
    return ConflictError(
        f"{what}; read it again, then go on", code="STALE_TURN", details={"session_id": session_id}
    )


def check_same(request: Request, digest: str) -> None:
    """Refuse a request whose id was used for a different one.

    Raises:
        AlreadyExistsError: it was.
    """
    if request.digest != digest:
        raise AlreadyExistsError(
            ".request_id was used for a different request; make a new one for each request",
            code="REQUEST_ID_REUSED",
        )
