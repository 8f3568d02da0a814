"""What can be asked about the branches of sessions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from peripety.sessions.model import Request, digest_of

if TYPE_CHECKING:
    from peripety.sessions.seen import SeenTurn

__all__ = ["BranchTurn", "Compared", "Comparison", "Difference", "Fork", "Rewinding"]


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork that is asked for.

    Attributes:
        request_id: names the request; the same one again gives the same fork.
        session_id: the session to fork.
        turn: the turn after which the fork begins; None for the present.
        seed: a new seed from there on; None to keep the seed, and so the fate.
        pov: the entity whose view is returned; None for the public part.
    """

    request_id: str
    session_id: str
    turn: int | None = None
    seed: int | None = None
    pov: str | None = None

    def named(self) -> Request:
        """What tells this request from another one."""
        return Request(self.request_id, digest_of(asdict(self)))


@dataclass(frozen=True, slots=True)
class Rewinding:
    """A rewind that is asked for.

    Attributes:
        request_id: names the request; the same one again takes nothing back.
        session_id: the session.
        turn: the turn to go back to, 0 for the start.
        expected_turn: the turn that the session must be at.
        pov: the entity whose view is returned; None for the public part.
    """

    request_id: str
    session_id: str
    turn: int
    expected_turn: int
    pov: str | None = None

    def named(self) -> Request:
        """What tells this request from another one."""
        return Request(self.request_id, digest_of(asdict(self)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A page of a comparison that is asked for.

    Attributes:
        session_id: the one session.
        other_session_id: the other one.
        pov: the entity whose view is compared; None for the public part.
        page_size: most turns to return; 0 leaves it to the server.
        page_token: what came with the page before; empty for the first one.
    """

    session_id: str
    other_session_id: str
    pov: str | None = None
    page_size: int = 0
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs between two states; `ABSENT` where there is none."""

    path: str
    here: Any
    there: Any


@dataclass(frozen=True, slots=True)
class BranchTurn:
    """What happened at a turn in two sessions, as one viewer sees it; None where one did not get there."""

    turn: int
    here: SeenTurn | None
    there: SeenTurn | None


@dataclass(frozen=True, slots=True)
class Compared:
    """How two sessions differ.

    Attributes:
        common_turn: the last turn that they have in common; 0 for none.
        differences: how their present states differ, in path order; nothing after the first page.
        turns: the turns after the common one, in order.
        next_page_token: asks for the next page; empty on the last one.
    """

    common_turn: int
    differences: tuple[Difference, ...]
    turns: tuple[BranchTurn, ...]
    next_page_token: str
