"""The reference scenarios of the benchmarks, and their only source.

`PYTHONPATH=tests python -m bench.reference FOLDER` writes them as FOLDER/<name>.json for the benchmarks in
Rust, whose hand-written loops (simcore/benches/src/handwritten) play the first three by the same numbers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.logic import DATA, RULES

if TYPE_CHECKING:
    from collections.abc import Callable

# Fields stand six to a group, so that paths are nested.
GROUP = 6
SIZES = ((6, 4), (12, 6), (24, 12), (60, 24), (200, 60), (200, 500))


def numeric_spec() -> bytes:
    """A scenario whose rules are numeric, about a fifth of whose runs last to the horizon."""
    return sized_spec(fields=12, actions=6)


def sized_spec(*, fields: int, actions: int, start: float = 20.0) -> bytes:
    """A scenario of numbers: five events and three losses for twelve fields, and more for more.

    Args:
        fields: how many numbers the state has.
        actions: how many actions there are, each of two clauses and three effects.
        start: what the first field begins with; fewer end a run earlier.
    """
    numbers = _Numbers(fields, start)
    return _document(
        state=numbers.state(),
        actions=[numbers.action(n) for n in range(actions)],
        random_events=[numbers.event(n) for n in range(max(5, fields // 8))],
        loss_conditions=[
            _when(f"loss{n}", {"<=": [_var(numbers.path(n)), 0]}) for n in range(max(3, fields // 8))
        ],
        decay={numbers.path(3): 0.25, numbers.path(7): 0.5},
    )


def early_spec() -> bytes:
    """The numeric scenario from so little that most runs end within a few turns."""
    return sized_spec(fields=12, actions=6, start=3.0)


def large_spec() -> bytes:
    """The numeric rules with 500 actions over 200 fields."""
    return sized_spec(fields=200, actions=500)


def mixed_spec() -> bytes:
    """Numbers beside two arrays and a text, an action with a parameter and a derived value."""
    level, items, samples, mode = "state.level", "state.items", "state.samples", "state.mode"
    held = {"reduce": [_var(items), {"+": [_var("accumulator"), 1]}, 0]}
    total = {"reduce": [_var(samples), {"+": [_var("accumulator"), _var("current")]}, 0]}
    return _document(
        state={
            "level": {f"f{n}": 20.0 + n for n in range(6)},
            "items": ["x", "y"],
            "samples": [1, 2, 3],
            "mode": "low",
        },
        actions=[
            _action(
                "shift",
                {"and": [{">": [_var(f"{level}.f0"), 2]}, {"<": [_var(f"{level}.f3"), 60]}]},
                [("dec", f"{level}.f0", 1), ("inc", f"{level}.f1", 1), ("inc", f"{level}.f3", 0.5)],
            ),
            _action(
                "take",
                {"and": [{"!": [{"in": ["z", _var(items)]}]}, {"<": [held, 6]}]},
                [("push", items, "z"), ("dec", f"{level}.f1", 1)],
            ),
            _action(
                "drop",
                {"some": [_var(items), {"==": [_var(""), "z"]}]},
                [("pop", items), ("inc", f"{level}.f0", 0.5)],
            ),
            _action(
                "spend",
                {">": [_var(f"{level}.f2"), _var("params.amount")]},
                [("dec", f"{level}.f2", "cost"), ("inc", f"{level}.f4", 1)],
                params={"amount": {"type": "integer", "minimum": 1, "maximum": 3}},
                derives={"cost": {"*": [_var("params.amount"), 0.75]}},
            ),
            _action(
                "raise",
                {"==": [_var(mode), "low"]},
                [("set", mode, "high"), ("inc", f"{level}.f5", 2)],
            ),
            _action(
                "sample",
                {"<": [total, 30]},
                [("push", samples, 4), ("dec", f"{level}.f3", 0.25)],
            ),
        ],
        random_events=[
            _event(
                "calm",
                0.2,
                {"==": [_var(mode), "high"]},
                [("set", mode, "low"), ("dec", f"{level}.f5", 3)],
            ),
            _event(
                "forget",
                0.15,
                {"some": [_var(samples), {">": [_var(""), 3]}]},
                [("pop", samples), ("dec", f"{level}.f4", 2)],
            ),
            _event(
                "wear",
                0.3,
                {">": [_var(f"{level}.f0"), 1]},
                [("dec", f"{level}.f0", 1.25), ("mul", f"{level}.f1", 0.95)],
            ),
            _event(
                "find",
                0.1,
                {"and": [{"in": ["x", _var(items)]}, {"<": [held, 6]}]},
                [("push", items, "y"), ("inc", f"{level}.f2", 1.5)],
            ),
        ],
        loss_conditions=[
            _when("empty", {"<=": [_var(f"{level}.f0"), 0]}),
            _when("spent", {"<=": [_var(f"{level}.f2"), 2]}),
            _when("strained", {"and": [{"==": [_var(mode), "high"]}, {"<": [_var(f"{level}.f4"), 5]}]}),
        ],
        decay={f"{level}.f1": 0.25, f"{level}.f4": 0.5},
    )


def scheduled_spec() -> bytes:
    """A scenario each of whose actions schedules something, and whose events last."""
    numbers = _Numbers(12, 20.0)
    path = numbers.path

    def later(n: int, effects: list[dict[str, Any]]) -> dict[str, Any]:
        # Two actions share an id, so that one replaces what the other has scheduled.
        return {"op": "schedule", "id": f"later{n % 5}", "after": 1 + n % 4, "effects": effects}

    def action(n: int) -> dict[str, Any]:
        first = [_effect("inc", path(n), 1), _effect("dec", path(n + 6), 0.5)]
        if n == 2:
            first.append(
                {"op": "schedule", "id": "again", "after": 2, "effects": [_effect("mul", path(4), 0.9)]},
            )
        return {
            "id": f"action{n}",
            "params": {},
            "preconditions": {">": [_var(path(n)), 2]},
            "effects": [_effect("dec", path(n), 1.5), later(n, first)],
        }

    return _document(
        state=numbers.state(),
        actions=[action(n) for n in range(6)],
        random_events=[{**numbers.event(n), "duration": f"{1 + n}h"} for n in range(5)],
        loss_conditions=[_when(f"loss{n}", {"<=": [_var(path(n)), 0]}) for n in range(3)],
        decay={path(3): 0.25, path(7): 0.5},
    )


SPECS: dict[str, Callable[[], bytes]] = {
    "numeric": numeric_spec,
    "mixed": mixed_spec,
    "scheduled": scheduled_spec,
    "early": early_spec,
    "large": large_spec,
}


def write(folder: Path) -> None:
    """Write each scenario, the sizes included, and the JSONLogic expressions as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logic.json").write_text(json.dumps({"rules": RULES, "data": DATA}), encoding="utf-8")
    for name, spec in SPECS.items():
        (folder / f"{name}.json").write_bytes(spec())
    for fields, actions in SIZES:
        document = sized_spec(fields=fields, actions=actions)
        (folder / f"size-{fields:03}-{actions:03}.json").write_bytes(document)


class _Numbers:
    """Rules over numbers that stand in groups."""

    def __init__(self, fields: int, start: float) -> None:
        self._fields = fields
        self._start = start

    def path(self, field: int) -> str:
        """The path of a field; they go round."""
        field %= self._fields
        return f"state.g{field // GROUP}.f{field}"

    def state(self) -> dict[str, Any]:
        """The initial state."""
        groups: dict[str, Any] = {}
        for field in range(self._fields):
            groups.setdefault(f"g{field // GROUP}", {})[f"f{field}"] = self._start + field % 12
        return groups

    def action(self, n: int) -> dict[str, Any]:
        """Two clauses, three effects."""
        return _action(
            f"action{n}",
            {"and": [{">": [_var(self.path(n)), 2]}, {"<": [_var(self.path(n + 6)), 60]}]},
            [
                ("dec", self.path(n), 1.5),
                ("inc", self.path(n + 1), 1),
                ("inc", self.path(n + 6), 0.5),
            ],
        )

    def event(self, n: int) -> dict[str, Any]:
        """One clause, two effects."""
        return _event(
            f"event{n}",
            (10 + n % 5 * 5) / 100,
            {">": [_var(self.path(n + 2)), 1]},
            [("dec", self.path(n), 2 + n % 5), ("mul", self.path(n + 6), 0.95)],
        )


def _document(*, decay: dict[str, float], **parts: Any) -> bytes:
    document = {
        "spec_version": "1.0",
        "id": "reference",
        "name": "Reference",
        "seed": 1,
        **parts,
        "negativity_budget": {"min_fail_rate": 0.25, "decay_per_turn": decay},
    }
    return json.dumps(document).encode("utf-8")


def _action(
    name: str,
    preconditions: dict[str, Any],
    effects: list[tuple[Any, ...]],
    *,
    params: dict[str, Any] | None = None,
    derives: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "id": name,
        "params": params or {},
        "preconditions": preconditions,
        **({"derives": derives} if derives else {}),
        "effects": [_effect(*effect) for effect in effects],
    }


def _event(name: str, weight: float, when: dict[str, Any], effects: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {"id": name, "weight": weight, "when": when, "effects": [_effect(*effect) for effect in effects]}


def _effect(op: str, path: str, *value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **({"value": value[0]} if value else {})}


def _when(name: str, condition: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "when": condition}


def _var(path: str) -> dict[str, Any]:
    return {"var": path}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
