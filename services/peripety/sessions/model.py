"""What sessions and turns are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety import sim

if TYPE_CHECKING:
    from peripety.gateway.model import Budget, Spent
    from peripety.sessions.events import Event
    from peripety.sim import Persona, Status

__all__ = [
    "ActionCall",
    "CommittedTurn",
    "Conduct",
    "Kept",
    "Memory",
    "NarratorOptions",
    "NewSession",
    "OddsRequest",
    "Parent",
    "Request",
    "Resolution",
    "Rewind",
    "RollRequest",
    "Seat",
    "SeatOrder",
    "Session",
    "SessionSummary",
    "Table",
    "TurnRequest",
    "digest_of",
]


class Resolution(Enum):
    """How the prose of a turn came about."""

    NARRATED = "narrated"
    REPAIRED = "repaired"
    SERVER_RESOLVED = "server_resolved"


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action that a player tries.

    Attributes:
        action_id: the action.
        params: a value for each of its parameters.
        entity_id: the entity that acts; None when there is one player.
    """

    action_id: str
    params: Mapping[str, Any]
    entity_id: str | None = None


@dataclass(frozen=True, slots=True)
class RollRequest:
    """A die to cast: what for, on what or whom, and the least face that is a success, 1 … 30."""

    kind: str
    difficulty: int
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Something that a narrator wants remembered.

    Attributes:
        turn: the turn in which it was written.
        scope: what it is about, in the narrator's words.
        owner: the entity that remembers.
        content: what is remembered.
        visibility: `public`: for everyone; `private`: for the owner alone; `hidden`: for nobody.
        audience: for whom that turn was narrated, None for everyone: who wrote it knew what they know, so
            that nobody else may read it.
    """

    turn: int
    scope: str
    owner: str
    content: str
    visibility: str
    audience: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Memories that a turn left as they were: those of the turn before from one place up to another."""

    start: int
    stop: int


class SeatOrder(Enum):
    """Who acts when, in a session with several seats."""

    ROTATING = "rotating"
    """One seat a turn, in the order of the seats."""
    SIMULTANEOUS = "simultaneous"
    """All seats in every turn."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A place at the table: its name, and the entity that is played there."""

    seat_id: str
    entity_id: str


@dataclass(frozen=True, slots=True)
class Table:
    """Several players in one session.

    Attributes:
        seats: in playing order.
        order: who acts when.
        seconds: how long to wait for a seat; None for ever.
    """

    seats: tuple[Seat, ...]
    order: SeatOrder = SeatOrder.ROTATING
    seconds: float | None = None

    def next_seat(self, turn: int) -> Seat | None:
        """The seat whose turn comes after `turn` committed ones; None when all act at the same time."""
        return self.seats[turn % len(self.seats)] if self.order is SeatOrder.ROTATING else None


@dataclass(frozen=True, slots=True)
class NarratorOptions:
    """How the turns of a session are narrated.

    Attributes:
        model: `provider/model`; None for the configured one.
        language: BCP 47 tag of the language; None for the scenario's own.
        turn_budget: the most that one turn may use; None is no cap.
        session_budget: the most that the session may use; turns beyond it are resolved by the server alone.
    """

    model: str | None = None
    language: str | None = None
    turn_budget: Budget | None = None
    session_budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a narrator behaved in a turn; nothing of what was refused had any effect.

    Attributes:
        tool_rounds: how often it was answered with the results of tools.
        tool_calls: the tools that it called.
        rejected_actions: calls that tried an action which could not be taken.
        refused_calls: other calls that were refused.
        refused_changes: changes of its own that were refused.
        refused_answers: answers that were refused.
        withheld_secrets: answers among them that would have told what the point of view may not know.
    """

    tool_rounds: int = 0
    tool_calls: int = 0
    rejected_actions: int = 0
    refused_calls: int = 0
    refused_changes: int = 0
    refused_answers: int = 0
    withheld_secrets: int = 0


@dataclass(frozen=True, slots=True)
class Parent:
    """Where a session was forked from: the session, and the turn after which they parted."""

    session_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Request:
    """What names a request, and what tells it from another one under the same id."""

    request_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that is asked for.

    Attributes:
        request_id: names the request; the same one again gives the same session.
        scenario_id: the compiled scenario to play.
        spec_hash: the version of it; None for the latest.
        seed: None for the specification's own.
        pov: the entity whose view is returned; None for the public part.
        table: the players, when there are several.
        narrator: how to narrate.
    """

    request_id: str
    scenario_id: str
    spec_hash: str | None = None
    seed: int | None = None
    pov: str | None = None
    table: Table | None = None
    narrator: NarratorOptions = field(default_factory=NarratorOptions)

    def named(self) -> Request:
        """What tells this request from another one."""
        return Request(self.request_id, digest_of(asdict(self)))


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn that is asked for.

    Attributes:
        session_id: the session.
        request_id: names the request; the same one again replays the recorded turn.
        expected_turn: the number that the turn is meant to have, from 1.
        actions: what the player tries, in order; empty to wait.
        input: what the player says, as free text.
        pov: the entity whose view is streamed, and narrated when there is one player; None for the public
            part.
        seat_id: the seat that acts; None when there is one player.
    """

    session_id: str
    request_id: str
    expected_turn: int
    actions: tuple[ActionCall, ...] = ()
    input: str = ""
    pov: str | None = None
    seat_id: str | None = None

    def digest(self) -> str:
        """Tells this request from another one under the same id."""
        return digest_of(asdict(self))


@dataclass(frozen=True, slots=True)
class OddsRequest:
    """A look into the future of a session.

    Attributes:
        session_id: the session.
        persona: who plays on.
        runs: futures to play; 0 leaves it to the engine.
        horizon: turns of a future; 0 for what is left of the scenario's horizon.
        seed: seed of the first future; None for one that follows from the session.
        actions: what to do in the next turn of every future; empty to leave it to the persona.
    """

    session_id: str
    persona: Persona = "random"
    runs: int = 0
    horizon: int = 0
    seed: int | None = None
    actions: tuple[ActionCall, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session without its weight, for lists; see `Session`."""

    session_id: str
    scenario_id: str
    spec_hash: str
    turn: int
    status: Status
    created: int
    updated: int
    parent: Parent | None


@dataclass(frozen=True, slots=True)
class Session:
    """A session after its last committed turn, whole: what a viewer may see of it is cut elsewhere.

    Attributes:
        session_id: its id.
        scenario_id: the scenario it plays.
        spec_hash: the version of the scenario, for good.
        seed: where its randomness comes from now.
        first_seed: where it came from at first: the chain of hashes begins with it.
        reseeded: whether the next turn is the first one under another seed.
        turn: how many turns are committed.
        status: whether the run goes on.
        snapshot: the engine's state, complete.
        state_hash: SHA-256 of the state tree.
        chain_hash: hash over all turns so far.
        last_sequence: sequence of the last recorded event; 0 before the first turn.
        usage: what all turns used of language models.
        created: when it was created, in microseconds since 1970.
        updated: when its last turn was committed, or taken back.
        line_id: the line of turns that it is on; forks share the lines before them.
        memories: what is remembered, oldest first, of all entities.
        narrator: how it is narrated.
        table: the players, when there are several.
        parent: where it was forked from; None for nowhere.
        due: when the turn goes on without those who have not acted, in microseconds since 1970; None for
            never.
    """

    session_id: str
    scenario_id: str
    spec_hash: str
    seed: int
    first_seed: int
    reseeded: bool
    turn: int
    status: Status
    snapshot: bytes
    state_hash: str
    chain_hash: str
    last_sequence: int
    usage: Spent
    created: int
    updated: int
    line_id: str
    memories: tuple[Memory, ...] = ()
    narrator: NarratorOptions = field(default_factory=NarratorOptions)
    table: Table | None = None
    parent: Parent | None = None
    due: int | None = None

    @property
    def next_seat_id(self) -> str | None:
        """The seat whose turn comes next; None when all act at the same time, or there is one player."""
        table = self.table if self.status.kind == "ongoing" else None
        seat = None if table is None else table.next_seat(self.turn)
        return None if seat is None else seat.seat_id

    def next_due(self, now: int) -> int | None:
        """When the turn that begins now goes on without those who have not acted; None for never."""
        seconds = None if self.table is None or self.status.kind != "ongoing" else self.table.seconds
        return None if seconds is None else now + round(seconds * 1_000_000)


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
        memories: what is remembered after it, as a change of what was before; None when nothing changed.
    """

    turn: int
    request_id: str
    request_digest: str
    pov: str | None
    record: bytes
    first_sequence: int
    events: tuple[Event, ...]
    memories: tuple[Kept | Memory, ...] | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence of its last event."""
        return self.first_sequence + len(self.events) - 1


@dataclass(frozen=True, slots=True)
class Rewind:
    """The last turns of a session were taken back: an event like those of turns.

    Attributes:
        sequence: its place among all recorded events of the session.
        turn: how many turns were left.
        time: when, in microseconds since 1970.
    """

    sequence: int
    turn: int
    time: int


def digest_of(request: Mapping[str, Any]) -> str:
    """What a request asks for, whatever it is called: tells it from another one under the same id."""
    meaning = {name: value for name, value in request.items() if name != "request_id"}
    return hashlib.sha256(sim.canonical(_plain(meaning))).hexdigest()


def _plain(value: Any) -> Any:
    """A value as JSON, without what is not set: what requests may say later changes no digest of today."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
