"""Requests about the branches of sessions, and the result of a comparison."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from peripety.session.types import SessionRequestKey, request_digest_of

if TYPE_CHECKING:
    from peripety.session.visibility import TurnView


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Request to fork a session.

    Attributes:
        request_id: idempotency key; repeating it returns the same fork.
        session_id: the session to fork.
        turn: the turn after which the fork begins; None for the latest one.
        seed: seed of the following turns; None for the same seed and random outcomes.
        pov: the entity whose view is returned; None for the public view.
    """

    request_id: str
    session_id: str
    turn: int | None = None
    seed: int | None = None
    pov: str | None = None

    def request_key(self) -> SessionRequestKey:
        """Return the idempotency key and digest of the request."""
        return SessionRequestKey(self.request_id, request_digest_of(asdict(self)))


@dataclass(frozen=True, slots=True)
class RewindRequest:
    """Request to rewind a session.

    Attributes:
        request_id: idempotency key; repeating it changes nothing.
        session_id: the session.
        turn: the turn to return to, 0 for the start.
        expected_turn: the current turn of the session (optimistic locking).
        pov: the entity whose view is returned; None for the public view.
    """

    request_id: str
    session_id: str
    turn: int
    expected_turn: int
    pov: str | None = None

    def request_key(self) -> SessionRequestKey:
        """Return the idempotency key and digest of the request."""
        return SessionRequestKey(self.request_id, request_digest_of(asdict(self)))


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Request for a page of a comparison.

    Attributes:
        session_id: the first session.
        other_session_id: the second session.
        pov: the entity whose view is compared; None for the public view.
        page_size: maximum number of turns; 0 for the default.
        page_token: token from the previous page; empty for the first one.
    """

    session_id: str
    other_session_id: str
    pov: str | None = None
    page_size: int = 0
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class StateDifference:
    """A value that differs between two states; `ABSENT` if one state lacks it."""

    path: str
    here: Any
    there: Any


@dataclass(frozen=True, slots=True)
class DivergentTurn:
    """One turn number in two sessions, as seen by one viewer; None for a session that did not reach it."""

    turn: int
    here: TurnView | None
    there: TurnView | None


@dataclass(frozen=True, slots=True)
class BranchComparison:
    """Comparison of two sessions.

    Attributes:
        common_turn: the last common turn; 0 for none.
        differences: differences of the current states in path order; empty after the first page.
        turns: the turns after the common one, in order.
        next_page_token: token of the next page; empty on the last one.
    """

    common_turn: int
    differences: tuple[StateDifference, ...]
    turns: tuple[DivergentTurn, ...]
    next_page_token: str
