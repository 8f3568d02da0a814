"""The rules of a scenario, parsed, and one run under them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from peripety.sim._core import CoreError
from peripety.sim._pure import border, durations
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.rng import RNG_VERSION

__all__ = ["Rules", "State"]

DEFAULT_HORIZON = 50


class Rules:
    """A scenario document that has passed validation, taken apart."""

    def __init__(self, document: bytes) -> None:
        spec = border.parse_canonical(document)
        self.initial = spec["state"]
        self.entities = spec.get("entities", [])
        self.actions: list[Any] = spec["actions"]
        self.events: list[Any] = spec["random_events"]
        self.losses: list[Any] = spec["loss_conditions"]
        self.wins: list[Any] = spec.get("win_conditions", [])
        self.decay: dict[str, float] = spec["negativity_budget"].get("decay_per_turn", {})
        self.horizon = int(spec.get("horizon", DEFAULT_HORIZON))
        clock = spec.get("clock")
        self.turn_minutes = durations.minutes(clock["turn"]) if clock else durations.DEFAULT_TURN_MINUTES
        self.event_turns = [
            durations.turns(event["duration"], self.turn_minutes) if "duration" in event else 1
            for event in self.events
        ]


@dataclass
class State:
    """One run of a scenario: its tree, and what the engine must remember beside it."""

    rules: Rules
    seed: int
    tree_value: dict[str, Any]
    turn: int = 0
    opened: bool = False
    scheduled: list[dict[str, Any]] = field(default_factory=list)
    lasting: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=lambda: {"kind": "ongoing"})

    @classmethod
    def initial(cls, rules: Rules, seed: int) -> State:
        """The state that a run under a seed starts with."""
        return cls(rules, seed, copy.deepcopy(rules.initial))

    def fork(self) -> State:
        """An independent copy; only the tree is ever changed in place."""
        return replace(self, tree_value=copy.deepcopy(self.tree_value))

    def tree(self) -> bytes:
        """The state tree, canonical."""
        return canonical(self.tree_value)

    def to_json(self) -> bytes:
        """The snapshot, canonical."""
        return canonical(
            {
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
        )

    @classmethod
    def from_json(cls, rules: Rules, snapshot: bytes) -> State:
        """A state from what `to_json` gave."""
        value = border.parse_canonical(snapshot)
        if isinstance(value, dict) and value.get("rng_version", RNG_VERSION) != RNG_VERSION:
            raise CoreError("SNAPSHOT_INVALID", "the snapshot is of another version of the random numbers")
        if not _is_snapshot(value, rules):
            raise CoreError("SNAPSHOT_INVALID", "the snapshot was not made by this engine")
        return cls(
            rules,
            int(value["seed"]),
            value["state"],
            int(value["turn"]),
            value["opened"],
            value["scheduled"],
            value["lasting"],
            value["log"],
            value["status"],
        )


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


def _is_snapshot(value: Any, rules: Rules) -> bool:
    """Whether a value is of the shape that `State.to_json` gives it for this program."""
    if not isinstance(value, dict) or value.keys() != _MEMBERS.keys():
        return False
    if not all(isinstance(value[name], kind) for name, kind in _MEMBERS.items()):
        return False
    events = {event["id"] for event in rules.events}
    return (
        value["seed"].isdecimal()
        and value["turn"].is_integer()
        and all(isinstance(entry, dict) and entry.get("id") in events for entry in value["lasting"])
        and all(
            isinstance(entry, dict) and {"id", "due", "effects"} <= entry.keys()
            for entry in value["scheduled"]
        )
    )
