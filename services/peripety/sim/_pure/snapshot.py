"""Validation of snapshots: exactly the form that the engine writes is accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import durations
from peripety.sim._pure.border import MAX_SAFE_INTEGER
from peripety.sim._pure.paths import parse_path
from peripety.sim._pure.size import MAX_LOG_LINES, MAX_PENDING, MAX_ROLLS

if TYPE_CHECKING:
    from peripety.sim._pure.state import Rules

__all__ = ["is_snapshot"]

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


def is_snapshot(value: Any, rules: Rules) -> bool:
    """Return True if a value has the form of `State.to_json` under these rules."""
    if not isinstance(value, dict):
        return False
    always = {name: member for name, member in value.items() if name != "rolls"}
    if not _fits(always, **_MEMBERS):
        return False
    events = [event["id"] for event in rules.events]
    return (
        _SEED.fullmatch(value["seed"]) is not None
        and int(value["seed"]) < 1 << 64
        and all(_fits(entry, id=str, until=float) and entry["id"] in events for entry in value["lasting"])
        and len(value["scheduled"]) <= MAX_PENDING
        and all(
            _fits(entry, id=str, due=float, effects=list) and _are_effects(entry["effects"])
            for entry in value["scheduled"]
        )
        and len(value["log"]) <= MAX_LOG_LINES
        and all(_fits(line, turn=float, message=str, cause=str) for line in value["log"])
        and _is_status(value["status"], rules)
        and ("rolls" not in value or _are_rolls(value["rolls"]))
    )


def _fits(entry: Any, **members: type) -> bool:
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
        return _is_count(when) or (isinstance(when, str) and durations.minutes(when) >= 0)
    except CoreError:
        return False


def _is_target(operation: str, path: Any) -> bool:
    try:
        return isinstance(path, str) and len(parse_path(path)) > (1 if operation == "set" else 0)
    except CoreError:
        return False
