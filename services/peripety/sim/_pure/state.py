"""Parsed rules of a scenario, and the state of one run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import border, durations
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.rng import RNG_VERSION
from peripety.sim._pure.scope import Scope
from peripety.sim._pure.size import Size, check_limits, measure
from peripety.sim._pure.snapshot import is_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEFAULT_HORIZON", "Rules", "State"]

DEFAULT_HORIZON = 50


class Rules:
    """Validated scenario document, split into its parts."""

    def __init__(self, document: bytes) -> None:
        spec = border.parse_canonical(document)
        self.initial = spec["state"]
        self.initial_size = measure(self.initial)
        self.entities = spec.get("entities", [])
        self.actions: list[Any] = spec["actions"]
        self.events: list[Any] = spec["random_events"]
        self.losses: list[Any] = spec["loss_conditions"]
        self.wins: list[Any] = spec.get("win_conditions", [])
        self.decay: dict[str, float] = spec["negativity_budget"].get("decay_per_turn", {})
        self.scope = Scope(spec)
        self.horizon = int(spec.get("horizon", DEFAULT_HORIZON))
        clock = spec.get("clock")
        self.turn_minutes = durations.minutes(clock["turn"]) if clock else durations.DEFAULT_TURN_MINUTES
        self.event_turns = [
            durations.turns(event["duration"], self.turn_minutes) if "duration" in event else 1
            for event in self.events
        ]


@dataclass
class State:
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
    def initial(cls, rules: Rules, seed: int) -> State:
        """Return the initial state of a run for a seed."""
        return cls(rules, seed, rules.initial, rules.initial_size.nodes, rules.initial_size.text)

    def fork(self) -> State:
        """Return an independent copy, which shares immutable values."""
        fork = State.__new__(State)
        fork.become(self)
        return fork

    def become(self, other: State) -> None:
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
        return canonical(self.tree_value)

    def hash(self) -> str:
        """Return the SHA-256 of the canonical state tree, in hex."""
        return hashlib.sha256(self.tree()).hexdigest()

    def completed(self) -> int:
        """Return the number of completed turns."""
        return self.turn

    def standing(self) -> bytes:
        """Return the status, canonical."""
        return canonical(self.status)

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
        return canonical({**snapshot, "rolls": self.rolls} if self.rolls else snapshot)

    @classmethod
    def from_json(cls, rules: Rules, snapshot: bytes) -> State:
        """Restore a state from the result of `to_json`."""
        value = border.parse_canonical(snapshot)
        if isinstance(value, dict) and value.get("rng_version", RNG_VERSION) != RNG_VERSION:
            raise CoreError("SNAPSHOT_INVALID", "the snapshot is of another version of the random numbers")
        if not is_snapshot(value, rules):
            raise _not_ours()
        tree, *_ = sizes = [measure(part) for part in (value["state"], *value["scheduled"])]
        size = Size(
            sum(size.nodes for size in sizes),
            tree.deepest,
            sum(size.text for size in sizes),
            max(size.longest for size in sizes),
        )
        try:
            check_limits(size)
        except CoreError:
            raise _not_ours() from None
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


def _not_ours() -> CoreError:
    return CoreError("SNAPSHOT_INVALID", "the snapshot was not made by this engine")
