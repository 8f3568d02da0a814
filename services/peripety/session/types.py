"""Session types: sessions, turns, seats, options, and attempt ids.

An attempt id encodes the sequence where the attempt began. A failed attempt leaves nothing behind except
the events that watchers received, and its sequences are reused. A client that resumes with such a sequence
would continue after an event that does not exist; the id detects this.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core.validation import UUID_PATTERN

if TYPE_CHECKING:
    from peripety.engine import Persona, Status
    from peripety.gateway.types.request import Budget
    from peripety.gateway.types.response import UsageTotal
    from peripety.session.events import Event


# A UUID of version 8: its first 48 bits are the sequence, the rest is random.
_RANDOM = (1 << 76) - 1
_VERSION = 8 << 76
_SEQUENCE_SHIFT = 80


def new_attempt_id(after: int) -> str:
    """Return the id of an attempt whose events come after a sequence."""
    return str(uuid.UUID(int=(after << _SEQUENCE_SHIFT) | _VERSION | (uuid.uuid4().int & _RANDOM)))


def sequence_of_attempt(attempt_id: str) -> int | None:
    """Return the sequence passed to `new_attempt_id`, or None if the id was made elsewhere."""
    if not UUID_PATTERN.fullmatch(attempt_id):
        return None
    value = uuid.UUID(attempt_id).int
    return value >> _SEQUENCE_SHIFT if (value ^ _VERSION) >> 76 & 0xF == 0 else None


OMITTED_AT_DEFAULT = {"omitted_at_default": True}
"""Metadata of a field that older records do not have: its default value is not written."""

FACT = "fact"
"""Scope of established facts."""


class Resolution(Enum):
    """Origin of the prose of a turn."""

    NARRATED = "narrated"
    REPAIRED = "repaired"
    SERVER_RESOLVED = "server_resolved"


@dataclass(frozen=True, slots=True)
class PlayerAction:
    """An action that a player tries.

    Attributes:
        params: values of its parameters.
        entity_id: the entity that acts; None if there is one player.
    """

    action_id: str
    params: Mapping[str, Any]
    entity_id: str | None = None


@dataclass(frozen=True, slots=True)
class DieRollRequest:
    """A die roll request: purpose, target, and minimum successful value, 1 … 30."""

    kind: str
    difficulty: int
    target: str | None = None


@dataclass(frozen=True, slots=True)
class NarratorMemory:
    """A memory that a narrator stores. A public one of the scope `fact` must stay true for the whole run.

    A fact of the scope `fact:SUBJECT` stays true until another one with the same subject replaces it.

    Attributes:
        turn: the turn in which it was written.
        scope: its subject in the narrator's words.
        owner: the entity that remembers.
        content: the remembered text.
        visibility: `public`: for everyone; `private`: for the owner alone; `hidden`: for no entity.
        audience: the entity that the turn was narrated for, None for everyone. That narration drew on the
            entity's knowledge, so narrations for other entities must not read the memory.
    """

    turn: int
    scope: str
    owner: str
    content: str
    visibility: str
    audience: str | None = None

    @property
    def is_fact(self) -> bool:
        """True for an established fact, such as an invention of the narrator."""
        return self.scope.partition(":")[0] == FACT and self.visibility == "public"

    @property
    def subject(self) -> str:
        """The subject of a fact, in lower case; empty if it has none."""
        return self.scope.partition(":")[2].casefold() if self.is_fact else ""


@dataclass(frozen=True, slots=True)
class UnchangedMemories:
    """A slice of the previous turn's memories that a turn left unchanged."""

    start: int
    stop: int


class TurnOrder(Enum):
    """Order in which several seats act."""

    ROTATING = "rotating"
    """One seat per turn, in the order of the seats."""
    SIMULTANEOUS = "simultaneous"
    """All seats in every turn."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat of a session: its id and the entity it plays."""

    seat_id: str
    entity_id: str


@dataclass(frozen=True, slots=True)
class SeatConfig:
    """Seat configuration of a session with several players.

    Attributes:
        seats: in playing order.
        order: order in which the seats act.
        seconds: seat timeout in seconds; None for no timeout.
    """

    seats: tuple[Seat, ...]
    order: TurnOrder = TurnOrder.ROTATING
    seconds: float | None = None

    def next_seat(self, turn: int) -> Seat | None:
        """Return the seat that acts after `turn` committed turns; None if all act at the same time."""
        return self.seats[turn % len(self.seats)] if self.order is TurnOrder.ROTATING else None


@dataclass(frozen=True, slots=True)
class NarratorOptions:
    """Narrator options of a session.

    Attributes:
        model: `provider/model`; None for the configured one.
        language: BCP 47 tag of the language; None for the scenario's own.
        turn_budget: budget of one turn; None for no limit.
        session_budget: budget of the session; turns beyond it use the fallback narration.
        actors: whether people are voiced by calls of their own, in which the point of view is that person.
    """

    model: str | None = None
    language: str | None = None
    turn_budget: Budget | None = None
    session_budget: Budget | None = None
    actors: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)


@dataclass(frozen=True, slots=True)
class NarratorStats:
    """Statistics of a narrator in a turn; rejected items had no effect.

    Attributes:
        tool_rounds: number of model calls that received tool results.
        tool_calls: number of tool calls.
        rejected_actions: action calls that the rules rejected.
        refused_calls: other rejected tool calls.
        refused_changes: rejected state changes of its own.
        refused_answers: rejected answers.
        withheld_secrets: rejected answers that would have revealed restricted information.
        contradictions: rejected answers whose prose contradicts the record of the turn.
        unchecked_answers: answers whose prose was not compared with the record, as it is not in English.
    """

    tool_rounds: int = 0
    tool_calls: int = 0
    rejected_actions: int = 0
    refused_calls: int = 0
    refused_changes: int = 0
    refused_answers: int = 0
    withheld_secrets: int = 0
    contradictions: int = field(default=0, metadata=OMITTED_AT_DEFAULT)
    unchecked_answers: int = field(default=0, metadata=OMITTED_AT_DEFAULT)


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """Origin of a fork: the parent session, and the last common turn."""

    session_id: str
    turn: int


@dataclass(frozen=True, slots=True)
class SessionRequestKey:
    """Identity of a request: idempotency key, and a digest that distinguishes requests with the same key."""

    request_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class NewSession:
    """Request to create a session.

    Attributes:
        request_id: idempotency key; repeating it returns the same session.
        scenario_id: the scenario to play.
        spec_hash: its version; None for the latest.
        seed: the seed; None for the specification's own.
        pov: the entity whose view is returned; None for the public view.
        table: seats of several players, if any.
        narrator: narrator options.
    """

    request_id: str
    scenario_id: str
    spec_hash: str | None = None
    seed: int | None = None
    pov: str | None = None
    table: SeatConfig | None = None
    narrator: NarratorOptions = field(default_factory=NarratorOptions)

    def request_key(self) -> SessionRequestKey:
        """Return the idempotency key and digest of the request."""
        return SessionRequestKey(self.request_id, request_digest_of(asdict(self)))


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """Request to play a turn.

    Attributes:
        session_id: the session.
        request_id: idempotency key; repeating it replays the recorded turn.
        expected_turn: expected number of the turn, from 1 (optimistic locking).
        actions: actions to try, in order; empty to wait.
        input: free text of the player.
        pov: the entity whose view is streamed, and narrated if there is one player; None for the public view.
        seat_id: the seat that acts; None if there is one player.
    """

    session_id: str
    request_id: str
    expected_turn: int
    actions: tuple[PlayerAction, ...] = ()
    input: str = ""
    pov: str | None = None
    seat_id: str | None = None

    def request_digest(self) -> str:
        """Return a digest that distinguishes the request from another one with the same id."""
        return request_digest_of(asdict(self))


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """Request for a forecast of a session.

    Attributes:
        session_id: the session.
        persona: the simulated player.
        runs: number of simulations; 0 for the engine's default.
        horizon: turns per simulation; 0 for the rest of the scenario's horizon.
        seed: seed of the first simulation; None to derive one from the session.
        actions: actions of the next turn in every simulation; empty to leave them to the persona.
        pov: the entity whose knowledge the forecast is limited to; None for what is public.
    """

    session_id: str
    persona: Persona = "random"
    runs: int = 0
    horizon: int = 0
    seed: int | None = None
    actions: tuple[PlayerAction, ...] = ()
    pov: str | None = None


@dataclass(frozen=True, slots=True)
class SessionListing:
    """Filter and order of a list of sessions.

    Attributes:
        scenario_id: only sessions of this scenario; None for all.
        statuses: only sessions with one of these statuses; empty for all.
        by_update_time: True for the latest turn first, False for the newest session first.
    """

    scenario_id: str | None = None
    statuses: frozenset[str] = frozenset()
    by_update_time: bool = False


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session without its state, for lists; see `Session`."""

    session_id: str
    scenario_id: str
    spec_hash: str
    turn: int
    status: Status
    created: int
    updated: int
    parent: ForkOrigin | None
    table: SeatConfig | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A complete session after its last committed turn; projection to a viewer happens elsewhere.

    Attributes:
        session_id: id of the session.
        scenario_id: id of its scenario.
        spec_hash: version of the scenario, which never changes.
        seed: current seed.
        first_seed: initial seed, with which the hash chain begins.
        reseeded: True if the next turn is the first one under another seed.
        turn: number of committed turns.
        status: status of the run.
        snapshot: complete state of the engine.
        state_hash: SHA-256 of the state tree.
        chain_hash: hash over all turns so far.
        last_sequence: sequence of the last recorded event; 0 before the first turn.
        usage: usage of language models in all turns.
        created: creation time in microseconds since 1970.
        updated: time of the last commit or rewind.
        line_id: current history segment; forks share the segments before it.
        memories: memories of all entities, oldest first.
        narrator: narrator options.
        table: seats of several players, if any.
        parent: origin of a fork; None for other sessions.
        due: time at which the turn continues without missing seats, in microseconds since 1970; None for no
            timeout.
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
    usage: UsageTotal
    created: int
    updated: int
    line_id: str
    memories: tuple[NarratorMemory, ...] = ()
    narrator: NarratorOptions = field(default_factory=NarratorOptions)
    table: SeatConfig | None = None
    parent: ForkOrigin | None = None
    due: int | None = None

    @property
    def next_seat_id(self) -> str | None:
        """Id of the seat that acts next; None if all act at the same time or there is one player."""
        table = self.table if self.status.kind == "ongoing" else None
        seat = None if table is None else table.next_seat(self.turn)
        return None if seat is None else seat.seat_id

    def next_deadline(self, now: int) -> int | None:
        """Return the seat deadline of a turn that begins now, or None for no timeout."""
        seconds = None if self.table is None or self.status.kind != "ongoing" else self.table.seconds
        return None if seconds is None else now + round(seconds * 1_000_000)


@dataclass(frozen=True, slots=True)
class CommittedTurn:
    """A turn as recorded.

    Attributes:
        turn: number of the turn, from 1.
        request_id: the request that played it.
        request_digest: distinguishes the request from another one with the same id.
        pov: the entity it was narrated for, which alone may read its prose; None for everyone.
        record: canonical JSON of the mechanics, which the chain hash covers.
        first_sequence: sequence of its first event.
        events: all streamed events, the last one being `Committed`.
        memories: memories after it, as a diff to those before; None if unchanged.
    """

    turn: int
    request_id: str
    request_digest: str
    pov: str | None
    record: bytes
    first_sequence: int
    events: tuple[Event, ...]
    memories: tuple[UnchangedMemories | NarratorMemory, ...] | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence of its last event."""
        return self.first_sequence + len(self.events) - 1


@dataclass(frozen=True, slots=True)
class RecordedRewind:
    """A rewind of a session, recorded like the events of turns.

    Attributes:
        sequence: its position among all recorded events of the session.
        turn: number of remaining turns.
        time: time of the rewind in microseconds since 1970.
    """

    sequence: int
    turn: int
    time: int


def request_digest_of(request: Mapping[str, Any]) -> str:
    """Return the digest of a request without its id: it distinguishes requests with the same id."""
    meaning = {name: value for name, value in request.items() if name != "request_id"}
    return hashlib.sha256(engine.canonicalize(_to_digest_json(meaning))).hexdigest()


def _to_digest_json(value: Any) -> Any:
    """Convert a value to JSON without unset members: new optional fields leave old digests unchanged."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: _to_digest_json(item) for name, item in value.items() if item is not None}
    return [_to_digest_json(item) for item in value] if isinstance(value, list | tuple) else value
