"""State of one run and the parsed rules of its scenario; validation of snapshots.

Exactly the form of a snapshot that the engine writes is accepted.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.engine import strict_json
from peripety.engine._reference import limits
from peripety.engine._reference.bounds import NumberBounds
from peripety.engine._reference.limits import (
    MAX_LOG_LINES,
    MAX_PENDING,
    MAX_ROLLS,
    JsonSize,
    check_limits,
    measure,
)
from peripety.engine._reference.narrator_scope import NarratorPermissions
from peripety.engine._reference.variants import Variant, list_variants
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.paths import parse_path
from peripety.engine.rng import RNG_VERSION
from peripety.engine.strict_json import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable


class RunEnd(NamedTuple):
    """Result of a run.

    Attributes:
        outcome: `lost`, `won`, `survived`, or `errored` if the state or a call exceeded its limits.
        condition: id of the condition that ended the run.
        turns: number of completed turns.
        tree: returns the final state tree, canonical.
    """

    outcome: str
    condition: str | None
    turns: int
    tree: Callable[[], bytes]

    def digest_line(self) -> bytes:
        """Return the line of the run in the digest: outcome, turns and state hash."""
        return f"{self.outcome} {self.turns} {hashlib.sha256(self.tree()).hexdigest()}\n".encode("ascii")


_MEMBERS: dict[str, type] = {
    "lasting": list,
    "log": list,
    "opened": bool,
    "rng_version": float,
    "scheduled": list,
    "seed": str,
    "state": dict,
    "status": dict,
    "turn": float,
}
_SEED = re.compile(r"0|[1-9][0-9]{0,19}")
_WRITES = frozenset({"set", "inc", "dec", "mul", "patch", "push", "pop"})


def is_valid_snapshot(value: Any, rules: Rules) -> bool:
    """Return True if a value has the form of `State.to_json` under these rules."""
    if not isinstance(value, dict):
        return False
    always = {name: member for name, member in value.items() if name != "rolls"}
    if not _has_members(always, **_MEMBERS):
        return False
    events = [event["id"] for event in rules.events]
    return (
        _SEED.fullmatch(value["seed"]) is not None
        and int(value["seed"]) < 1 << 64
        and all(
            _has_members(entry, id=str, until=float) and entry["id"] in events for entry in value["lasting"]
        )
        and len(value["scheduled"]) <= MAX_PENDING
        and all(
            _has_members(entry, id=str, due=float, effects=list) and _are_effects(entry["effects"])
            for entry in value["scheduled"]
        )
        and len(value["log"]) <= MAX_LOG_LINES
        and all(_has_members(line, turn=float, message=str, cause=str) for line in value["log"])
        and _is_status(value["status"], rules)
        and ("rolls" not in value or _are_rolls(value["rolls"]))
    )


def _has_members(entry: Any, **members: type) -> bool:
    """Return True if a value is an object of exactly these members and types, with counts as numbers."""
    return (
        isinstance(entry, dict)
        and entry.keys() == members.keys()
        and all(
            _is_count(entry[name]) if kind is float else isinstance(entry[name], kind)
            for name, kind in members.items()
        )
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and 0 <= value <= MAX_SAFE_INTEGER


def _are_rolls(rolls: Any) -> bool:
    return isinstance(rolls, dict) and all(
        _is_count(count) and 1 <= count <= MAX_ROLLS for count in rolls.values()
    )


def _is_status(status: dict[str, Any], rules: Rules) -> bool:
    return status == {"kind": "ongoing"} or any(
        status == {"kind": kind, "condition": condition["id"], "message": condition.get("message")}
        for kind, conditions in (("lost", rules.losses), ("won", rules.wins))
        for condition in conditions
    )


def _are_effects(effects: Any) -> bool:
    return isinstance(effects, list) and all(
        isinstance(effect, dict) and _is_effect(effect) for effect in effects
    )


def _is_effect(effect: dict[str, Any]) -> bool:
    """Return True if an effect is well-formed."""
    match effect.get("op"):
        case "addlog":
            return isinstance(effect.get("message"), str)
        case "schedule":
            when = effect["at"] if "at" in effect else effect.get("after")
            return (
                isinstance(effect.get("id"), str) and _is_time(when) and _are_effects(effect.get("effects"))
            )
        case str(operation) if operation in _WRITES:
            return _is_target(operation, effect.get("path"))
        case _:
            return False


def _is_time(when: Any) -> bool:
    try:
        return _is_count(when) or (isinstance(when, str) and limits.duration_in_minutes(when) >= 0)
    except EngineError:
        return False


def _is_target(operation: str, path: Any) -> bool:
    try:
        return isinstance(path, str) and len(parse_path(path)) > (1 if operation == "set" else 0)
    except EngineError:
        return False


DEFAULT_HORIZON = 50
_PORTRAYAL = frozenset({"voice", "manner", "wants", "knows", "secret"})


class Rules:
    """Validated scenario document, split into its parts."""

    def __init__(self, document: bytes) -> None:
        spec = strict_json.parse_canonical(document)
        self.initial = spec["state"]
        self.initial_size = measure(self.initial)
        # Rules read of an entity what they read in version 1.0.
        self.entities = [
            {key: value for key, value in entity.items() if key not in _PORTRAYAL}
            for entity in spec.get("entities", [])
        ]
        self.bounds = NumberBounds(spec.get("bounds", {}))
        self.deals: list[Any] = spec.get("deal", [])
        self.solutions: list[Any] = spec.get("solutions", [])
        # From version 1.1 on, end conditions are also tested before the random event.
        self.ends_early = spec.get("spec_version") == "1.1"
        self.actions: list[Any] = spec["actions"]
        self.events: list[Any] = spec["random_events"]
        # The variants of each action; none without parameters in paths and messages.
        self.variants: list[list[Variant]] = list_variants(spec)
        self.losses: list[Any] = spec["loss_conditions"]
        self.wins: list[Any] = spec.get("win_conditions", [])
        self.decay: dict[str, float] = spec["negativity_budget"].get("decay_per_turn", {})
        self.narrator_permissions = NarratorPermissions(spec)
        self.horizon = int(spec.get("horizon", DEFAULT_HORIZON))
        clock = spec.get("clock")
        self.turn_minutes = (
            limits.duration_in_minutes(clock["turn"]) if clock else limits.DEFAULT_TURN_MINUTES
        )
        self.event_turns = [
            limits.duration_in_turns(event["duration"], self.turn_minutes) if "duration" in event else 1
            for event in self.events
        ]

    def list_actions(self, index: int) -> list[dict[str, Any]]:
        """Return the variants of the action of an index, or the action itself if it has none."""
        return [variant.action for variant in self.variants[index]] or [self.actions[index]]

    def get_variant(self, index: int, params: dict[str, Any]) -> dict[str, Any]:
        """Return the action of an index as it is for some legal parameters."""
        for values, action in self.variants[index]:
            if all(params[name] == value for name, value in values.items()):
                return action
        whole: dict[str, Any] = self.actions[index]
        return whole


@dataclass
class ReferenceState:
    """State of one run: the tree and the bookkeeping of the engine.

    Values are immutable once they are part of a state, so that states can share them.

    Attributes:
        nodes: number of values in the tree and in the entries of `scheduled`.
        text: bytes of text in them, including keys.
    """

    rules: Rules
    seed: int
    tree_value: dict[str, Any]
    nodes: int
    text: int
    turn: int = 0
    opened: bool = False
    scheduled: list[dict[str, Any]] = field(default_factory=list)
    lasting: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=lambda: {"kind": "ongoing"})
    # Number of rolls of each stream in the current turn.
    rolls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def initial(cls, rules: Rules, seed: int) -> ReferenceState:
        """Return the state of the document for a seed, before the deal."""
        return cls(rules, seed, rules.initial, rules.initial_size.nodes, rules.initial_size.text)

    def fork(self) -> ReferenceState:
        """Return an independent copy, which shares immutable values."""
        fork = ReferenceState.__new__(ReferenceState)
        fork.restore_from(self)
        return fork

    def restore_from(self, other: ReferenceState) -> None:
        """Copy everything from another state of the same run."""
        self.__dict__.update(other.__dict__)

    def unschedule(self, chosen: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Remove and return the matching scheduled entries, in the order of their scheduling."""
        taken = [entry for entry in self.scheduled if chosen(entry)]
        self.scheduled = [entry for entry in self.scheduled if not chosen(entry)]
        for size in map(measure, taken):
            self.nodes -= size.nodes
            self.text -= size.text
        return taken

    def tree(self) -> bytes:
        """Return the state tree, canonical."""
        return canonicalize(self.tree_value)

    def hash(self) -> str:
        """Return the SHA-256 of the canonical state tree, in hex."""
        return hashlib.sha256(self.tree()).hexdigest()

    def completed_turns(self) -> int:
        """Return the number of completed turns."""
        return self.turn

    def status_json(self) -> bytes:
        """Return the status, canonical."""
        return canonicalize(self.status)

    def to_json(self) -> bytes:
        """Return the snapshot, canonical."""
        snapshot = {
            "lasting": self.lasting,
            "log": self.log,
            "opened": self.opened,
            "rng_version": RNG_VERSION,
            "scheduled": self.scheduled,
            "seed": str(self.seed),
            "state": self.tree_value,
            "status": self.status,
            "turn": self.turn,
        }
        return canonicalize({**snapshot, "rolls": self.rolls} if self.rolls else snapshot)

    @classmethod
    def from_json(cls, rules: Rules, snapshot: bytes) -> ReferenceState:
        """Restore a state from the result of `to_json`."""
        value = strict_json.parse_canonical(snapshot)
        if isinstance(value, dict) and value.get("rng_version", RNG_VERSION) != RNG_VERSION:
            raise EngineError("SNAPSHOT_INVALID", "the snapshot is of another version of the random numbers")
        if not is_valid_snapshot(value, rules):
            raise _snapshot_error()
        tree, *_ = sizes = [measure(part) for part in (value["state"], *value["scheduled"])]
        size = JsonSize(
            sum(size.nodes for size in sizes),
            tree.depth,
            sum(size.text for size in sizes),
            max(size.longest_text for size in sizes),
        )
        try:
            check_limits(size)
        except EngineError:
            raise _snapshot_error() from None
        return cls(
            rules,
            int(value["seed"]),
            value["state"],
            size.nodes,
            size.text,
            int(value["turn"]),
            value["opened"],
            value["scheduled"],
            value["lasting"],
            value["log"],
            value["status"],
            {stream: int(count) for stream, count in value.get("rolls", {}).items()},
        )


def _snapshot_error() -> EngineError:
    return EngineError("SNAPSHOT_INVALID", "the snapshot was not made by this engine")
