"""What sessions and turns are made of."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety import sim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.model import Spent
    from peripety.sessions.events import Event
    from peripety.sim import Status

__all__ = [
    "ActionCall",
    "CommittedTurn",
    "NewSession",
    "Resolution",
    "Session",
    "TurnRequest",
    "microseconds_now",
]


def microseconds_now() -> int:
    """The wall clock, in microseconds since 1970."""
    return time.time_ns() // 1000


class Resolution(Enum):
    """How the prose of a turn came about."""

    NARRATED = "narrated"
    REPAIRED = "repaired"
    SERVER_RESOLVED = "server_resolved"


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action that a player tries, with a value for each of its parameters."""

    action_id: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that is asked for.

    Attributes:
        request_id: names the request; the same one again gives the same session.
        scenario_id: the compiled scenario to play.
        spec_hash: the version of it; None for the latest.
        seed: None for the specification's own.
        pov: the entity whose view is returned; None for the public part.
    """

    request_id: str
    scenario_id: str
    spec_hash: str | None = None
    seed: int | None = None
    pov: str | None = None

    def digest(self) -> str:
        """Tells this request from another one under the same id."""
        return _digest(asdict(self))


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn that is asked for.

    Attributes:
        session_id: the session.
        request_id: names the request; the same one again replays the recorded turn.
        expected_turn: the number that the turn is meant to have, from 1.
        actions: what the player tries, in order; empty to wait.
        input: what the player says, as free text.
        pov: the entity whose view is streamed and narrated; None for the public part.
    """

    session_id: str
    request_id: str
    expected_turn: int
    actions: tuple[ActionCall, ...] = ()
    input: str = ""
    pov: str | None = None

    def digest(self) -> str:
        """Tells this request from another one under the same id."""
        return _digest(asdict(self))


@dataclass(frozen=True, slots=True)
class Session:
    """A session after its last committed turn, whole: what a viewer may see of it is cut elsewhere.

    Attributes:
        session_id: its id.
        scenario_id: the scenario it plays.
        spec_hash: the version of the scenario, for good.
        seed: where its randomness comes from.
        turn: how many turns are committed.
        status: whether the run goes on.
        snapshot: the engine's state, complete.
        state_hash: SHA-256 of the state tree.
        chain_hash: hash over all turns so far.
        last_sequence: sequence of the last recorded event; 0 before the first turn.
        usage: what all turns used of language models.
        created: when it was created, in microseconds since 1970.
        updated: when its last turn was committed.
    """

    session_id: str
    scenario_id: str
    spec_hash: str
    seed: int
    turn: int
    status: Status
    snapshot: bytes
    state_hash: str
    chain_hash: str
    last_sequence: int
    usage: Spent
    created: int
    updated: int


@dataclass(frozen=True, slots=True)
class CommittedTurn:
    """A turn as it is recorded.

    Attributes:
        turn: its number, from 1.
        request_id: the request that played it.
        request_digest: tells that request from another one under the same id.
        pov: whom it was narrated for; only they may read its prose. None: everyone.
        record: the mechanics, as the canonical JSON that the chain hash covers.
        first_sequence: sequence of its first event.
        events: what was streamed, whole, the last one being `Committed`.
    """

    turn: int
    request_id: str
    request_digest: str
    pov: str | None
    record: bytes
    first_sequence: int
    events: tuple[Event, ...]

    @property
    def last_sequence(self) -> int:
        """Sequence of its last event."""
        return self.first_sequence + len(self.events) - 1


def _digest(request: Mapping[str, Any]) -> str:
    meaning = {name: value for name, value in request.items() if name != "request_id"}
    return hashlib.sha256(sim.canonical(meaning)).hexdigest()
