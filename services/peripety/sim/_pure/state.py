"""The rules of a scenario, parsed, and one run under them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import border, durations
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.rng import RNG_VERSION
from peripety.sim._pure.scope import Scope
from peripety.sim._pure.size import MAX_LOG_LINES, MAX_PENDING, Size, check_limits, measure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_ROLLS", "Rules", "State"]

DEFAULT_HORIZON = 50
# Rolls of one turn, all kinds together.
MAX_ROLLS = 256

_SEED = re.compile(r"[0-9]{1,20}")


class Rules:
    """A scenario document that has passed validation, taken apart."""

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
    """One run of a scenario: its tree, and what the engine must remember beside it.

    A value that a state refers to is never changed, only replaced, so that states may share it.

    Attributes:
        nodes: values in the tree and in the entries of `scheduled`.
        text: bytes of text in them, keys included.
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
    # How often each stream was rolled in the current turn.
    rolls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def initial(cls, rules: Rules, seed: int) -> State:
        """The state that a run under a seed starts with."""
        return cls(rules, seed, rules.initial, rules.initial_size.nodes, rules.initial_size.text)

    def fork(self) -> State:
        """An independent copy, which shares what neither replaces."""
        fork = State.__new__(State)
        fork.become(self)
        return fork

    def become(self, other: State) -> None:
        """Take over everything from another state of the same run."""
        self.__dict__.update(other.__dict__)

    def unschedule(self, chosen: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Take pending entries away; those taken, in the order of their scheduling."""
        taken = [entry for entry in self.scheduled if chosen(entry)]
        self.scheduled = [entry for entry in self.scheduled if not chosen(entry)]
        for size in map(measure, taken):
            self.nodes -= size.nodes
            self.text -= size.text
        return taken

    def tree(self) -> bytes:
        """The state tree, canonical."""
        return canonical(self.tree_value)

    def to_json(self) -> bytes:
        """The snapshot, canonical."""
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
        """A state from what `to_json` gave."""
        value = border.parse_canonical(snapshot)
        if isinstance(value, dict) and value.get("rng_version", RNG_VERSION) != RNG_VERSION:
            raise CoreError("SNAPSHOT_INVALID", "the snapshot is of another version of the random numbers")
        if not _is_snapshot(value, rules):
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
    """Whether a value is of the shape that `State.to_json` gives it under these rules."""
    if not isinstance(value, dict) or value.keys() - {"rolls"} != _MEMBERS.keys():
        return False
    if not all(isinstance(value[name], kind) for name, kind in _MEMBERS.items()):
        return False
    events = [event["id"] for event in rules.events]
    return (
        _SEED.fullmatch(value["seed"]) is not None
        and int(value["seed"]) < 1 << 64
        and _is_count(value["turn"])
        and all(_fits(entry, id=str, until=float) and entry["id"] in events for entry in value["lasting"])
        and all(_fits(entry, id=str, due=float, effects=list) for entry in value["scheduled"])
        and len(value["scheduled"]) <= MAX_PENDING
        and len(value["log"]) <= MAX_LOG_LINES
        and all(_fits(line, turn=float, message=str, cause=str) for line in value["log"])
        and _is_status(value["status"], rules)
        and _are_rolls(value.get("rolls", {}))
    )


def _fits(entry: Any, **members: type) -> bool:
    """Whether a value is an object with members of these types, its numbers counts."""
    return isinstance(entry, dict) and all(
        isinstance(entry.get(name), kind) and (kind is not float or _is_count(entry[name]))
        for name, kind in members.items()
    )


def _is_count(value: float) -> bool:
    return value >= 0 and value.is_integer()


def _are_rolls(rolls: Any) -> bool:
    return isinstance(rolls, dict) and all(
        isinstance(count, float) and _is_count(count) and 1 <= count <= MAX_ROLLS for count in rolls.values()
    )


def _is_status(status: dict[str, Any], rules: Rules) -> bool:
    ends = {"lost": rules.losses, "won": rules.wins}.get(status.get("kind", ""))
    if ends is None:
        return status.get("kind") == "ongoing"
    return any(condition["id"] == status.get("condition") for condition in ends)
