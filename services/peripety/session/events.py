"""Events of a turn, which are streamed, recorded and replayed, and their JSON codec.

Events contain everything; the visibility module projects them to a viewer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.engine import ABSENT, Change, LogLine, RollResult, RuleError, Status
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.session.types import (
    ForkOrigin,
    NarratorMemory,
    NarratorOptions,
    NarratorStats,
    PlayerAction,
    Resolution,
    Seat,
    SeatConfig,
    TurnOrder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Accepted:
    """The turn starts or restarts; earlier events of it are void."""

    attempt_id: str
    request_id: str
    actions: tuple[PlayerAction, ...]
    input: str


@dataclass(frozen=True, slots=True)
class ActionResolved:
    """The result of an action.

    The first action of a turn also contains the changes and log lines of what became due at the start of the
    turn, each under its own cause. All events together therefore list changes in the order in which they were
    made.
    """

    action_id: str
    params: Mapping[str, Any]
    accepted: bool
    reasons: tuple[RuleError, ...]
    changes: tuple[Change, ...]
    log: tuple[LogLine, ...]
    entity_id: str | None = None


@dataclass(frozen=True, slots=True)
class Rolled:
    """The result of a die roll."""

    roll: RollResult


@dataclass(frozen=True, slots=True)
class WorldResolved:
    """The result of the world's step; `event_id` is the random event that was drawn.

    The narrator's own changes come before those of the world, under their own cause.
    """

    event_id: str | None
    changes: tuple[Change, ...]
    log: tuple[LogLine, ...]
    errors: tuple[RuleError, ...]
    status: Status


@dataclass(frozen=True, slots=True)
class NarrativeChunk:
    """The next characters of the narration."""

    text: str


@dataclass(frozen=True, slots=True)
class NarrativeRetracted:
    """The narration and dialogue of this turn so far are void."""

    reason: str


@dataclass(frozen=True, slots=True)
class DialogueSpoken:
    """An utterance of an entity."""

    entity_id: str
    utterance: str


@dataclass(frozen=True, slots=True)
class Degraded:
    """The narrator failed; the server uses the fallback narration."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RuleFailed:
    """A rule of the scenario failed; if that abandoned the turn, nothing of the turn was applied.

    Words of the player that led to no turn abandon it as well. `NOT_UNDERSTOOD` has the narrator's question
    as its message, and other codes are those of `Degraded`.
    """

    code: str
    rule: str
    message: str
    turn_abandoned: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """The turn is stored: the last event of every turn that was applied.

    Attributes:
        state_hash: SHA-256 of the state tree after it.
        chain_hash: hash over all turns so far.
        status: status of the run.
        legal_actions: ids of the actions that are legal next.
        usage: usage of language models.
        changes: all changes of the turn, in order.
        narrative: the whole narration.
        resolution: origin of the narration.
        model: the narrator's model as `provider/model`; empty for the fallback narration.
        commit_time: commit time in microseconds since 1970.
        conduct: statistics of the narrator.
        next_seat_id: the seat that acts next; None if all act at the same time or there is one player.
    """

    state_hash: str
    chain_hash: str
    status: Status
    legal_actions: tuple[str, ...]
    usage: UsageTotal
    changes: tuple[Change, ...]
    narrative: str
    resolution: Resolution
    model: str
    commit_time: int
    conduct: NarratorStats = field(default_factory=NarratorStats)
    next_seat_id: str | None = None


NOT_UNDERSTOOD = "NOT_UNDERSTOOD"
"""Code of a turn that the narrator did not play, because it returned a question to the player."""

Event: TypeAlias = (
    Accepted
    | ActionResolved
    | Rolled
    | WorldResolved
    | NarrativeChunk
    | NarrativeRetracted
    | DialogueSpoken
    | Degraded
    | RuleFailed
    | Committed
)

_CLASSES: dict[str, type[Event]] = {
    "accepted": Accepted,
    "action_resolved": ActionResolved,
    "rolled": Rolled,
    "world_resolved": WorldResolved,
    "narrative_chunk": NarrativeChunk,
    "narrative_retracted": NarrativeRetracted,
    "dialogue": DialogueSpoken,
    "degraded": Degraded,
    "rule_failed": RuleFailed,
    "committed": Committed,
}
_KINDS: dict[type, str] = {kind: name for name, kind in _CLASSES.items()}


def event_kind(event: Event) -> str:
    """Return the name of an event in storage and in the contract."""
    return _KINDS[type(event)]


def encode_value(value: Any) -> Any:
    """Convert an event or a part of one to a JSON value; absent values are omitted."""
    if is_dataclass(value) and not isinstance(value, type):
        members = {
            f.name: encode_value(getattr(value, f.name))
            for f in fields(value)
            if not f.metadata.get("omitted_at_default") or getattr(value, f.name) != f.default
        }
        kind = {"kind": _KINDS[type(value)]} if type(value) in _KINDS else {}
        return kind | {name: member for name, member in members.items() if member is not ABSENT}
    if isinstance(value, Enum):
        return value.value
    return [encode_value(item) for item in value] if isinstance(value, tuple) else value


def decode_event(value: Mapping[str, Any]) -> Event:
    """Convert a JSON value to an event."""
    members = {name: decode_member(name, member) for name, member in value.items() if name != "kind"}
    return _CLASSES[value["kind"]](**members)


def decode_member(name: str, value: Any) -> Any:
    """Decode a member of an event's JSON; a name has the same meaning in every event."""
    return _DECODERS[name](value) if name in _DECODERS else value


def _tuple_of(decoder: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda items: tuple(decoder(item) for item in items)


def _decode_usage(value: Mapping[str, Any]) -> UsageTotal:
    # Older records have no costs: their cost is unknown.
    return UsageTotal(value["calls"], Usage(**value["usage"]), value.get("cost"), value.get("cache_savings"))


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "actions": _tuple_of(lambda value: PlayerAction(**value)),
    "changes": _tuple_of(Change.from_json),
    "conduct": lambda value: NarratorStats(**value),
    "errors": _tuple_of(lambda value: RuleError(**value)),
    "legal_actions": tuple,
    "log": _tuple_of(lambda value: LogLine(**value)),
    "reasons": _tuple_of(lambda value: RuleError(**value)),
    "resolution": Resolution,
    "roll": RollResult.from_json,
    "memories": _tuple_of(lambda value: NarratorMemory(**value)),
    "narrator": lambda value: NarratorOptions(
        **value | {name: Budget(**value[name]) for name in ("turn_budget", "session_budget") if value[name]},
    ),
    "parent": lambda value: ForkOrigin(**value),
    "status": lambda value: Status(**value),
    "table": lambda value: SeatConfig(
        tuple(Seat(**seat) for seat in value["seats"]),
        TurnOrder(value["order"]),
        value["seconds"],
    ),
    "usage": _decode_usage,
}
