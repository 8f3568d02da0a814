"""Defects planted in good specifications, each with the codes that name it."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["DEFECTS", "plant"]

Json = dict[str, Any]

# A number of the state that no rule of the specification knows.
_SPOT = "planted"
_PATH = f"state.{_SPOT}"
_READ = {"var": _PATH}
_HORIZON = 50  # where a specification names none


def plant(document: bytes, defect: str, random: Random) -> tuple[bytes, frozenset[str]]:
    """A copy of a specification with a defect, and the codes of which a checker should give one."""
    spec = {"horizon": _HORIZON, **deepcopy(json.loads(document))}
    make, codes = DEFECTS[defect]
    make(spec, random)
    return json.dumps(spec).encode(), codes


def _start(spec: Json, value: Any) -> None:
    spec["state"][_SPOT] = value


def _event(spec: Json, *effects: Json, weight: float = 0.3, when: Json | None = None, **more: Any) -> None:
    event = {"id": _SPOT, "weight": weight, "when": when or {}, "effects": list(effects), **more}
    spec["random_events"].append(event)


def _action(spec: Json, *effects: Json, **more: Any) -> None:
    action = {"id": _SPOT, "params": {}, "preconditions": {}, "effects": list(effects), **more}
    spec["actions"].append(action)


def _loss(spec: Json, when: Json) -> None:
    spec["loss_conditions"].append({"id": _SPOT, "when": when})


def _narrow(rule: Json, key: str, clause: Json) -> None:
    rule[key] = {"and": [rule[key], clause]} if rule[key] else clause


def _rising(amount: float) -> Json:
    return {"op": "inc", "path": _PATH, "value": amount}


# --- rules that can never do what they are there for ---


def _goal_out_of_reach(spec: Json, random: Random) -> None:
    _start(spec, 0)
    step = random.randint(1, 5)
    random.choice(spec["actions"])["effects"].append(_rising(step))
    target = _horizon(spec) * step + random.randint(1, 50)
    spec["win_conditions"] = [{"id": "goal", "when": {">=": [_READ, target]}}]


def _goal_behind_a_wall(spec: Json, random: Random) -> None:
    """What is raised stops being raised before it is enough."""
    _start(spec, 0)
    wall = random.randint(3, 6)
    _action(spec, _rising(1), preconditions={"<": [_READ, wall]})
    spec["win_conditions"] = [{"id": "goal", "when": {">": [_READ, wall]}}]


def _loss_that_cannot_happen(spec: Json, random: Random) -> None:
    _start(spec, random.randint(0, 9))
    random.choice(spec["actions"])["effects"].append(_rising(random.randint(1, 3)))
    _loss(spec, {"<": [_READ, -1]})


def _certain_loss(spec: Json, random: Random) -> None:
    turns = random.randint(2, max(2, _horizon(spec) // 2))
    _start(spec, turns)
    spec["negativity_budget"].setdefault("decay_per_turn", {})[_PATH] = 1
    _loss(spec, {"<=": [_READ, 0]})
    spec.pop("win_conditions", None)


def _lost_at_once(spec: Json, _random: Random) -> None:
    _loss(spec, {">=": [{"var": "turn"}, 1]})


def _dead_action(spec: Json, random: Random) -> None:
    _start(spec, random.randint(0, 4))
    _action(spec, _rising(1), preconditions={">": [_READ, 5]})


def _dead_choice(spec: Json, random: Random) -> None:
    """An action of two clauses that contradict each other."""
    _start(spec, 5)
    edge = random.randint(2, 8)
    _action(spec, _rising(1), preconditions={"and": [{">": [_READ, edge]}, {"<": [_READ, edge]}]})
    _event(spec, {"op": "dec", "path": _PATH, "value": 1})


def _dead_event(spec: Json, random: Random) -> None:
    _start(spec, random.randint(0, 4))
    _event(spec, _rising(1), when={">": [_READ, 5]})


# --- rules that do too much, or fail ---


def _runaway_growth(spec: Json, random: Random) -> None:
    _start(spec, 1)
    _event(spec, {"op": "mul", "path": _PATH, "value": random.choice([1e3, 1e6, 1e9])})
    _slow_end(spec)


def _retyped_number(spec: Json, _random: Random) -> None:
    _start(spec, 1)
    _event(spec, {"op": "set", "path": _PATH, "value": "many"})
    _action(spec, _rising(1))
    _slow_end(spec)


def _division_by_zero(spec: Json, random: Random) -> None:
    _start(spec, random.randint(1, 3))
    _event(spec, {"op": "dec", "path": _PATH, "value": 1}, when={">": [_READ, 0]})
    _action(spec, {"op": "addlog", "message": "a"}, preconditions={">": [{"/": [1, _READ]}, -9]})
    _slow_end(spec)


def _empty_array(spec: Json, random: Random) -> None:
    _start(spec, [1] * random.randint(0, 2))
    _event(spec, {"op": "pop", "path": _PATH})
    _slow_end(spec)


def _missing_element(spec: Json, _random: Random) -> None:
    _start(spec, [1])
    _event(spec, {"op": "inc", "path": f"{_PATH}[1]", "value": 1})
    _slow_end(spec)


def _horizon(spec: Json) -> int:
    turns: int = spec.get("horizon", 50)
    return turns


def _slow_end(spec: Json) -> None:
    """Give the runs time to come to the rule."""
    spec["horizon"] = max(_horizon(spec), 40)


# --- balance ---


def _too_easy(spec: Json, _random: Random) -> None:
    spec["negativity_budget"].update(min_fail_rate=1.0)
    spec["negativity_budget"].pop("max_fail_rate", None)
    spec["win_conditions"] = [{"id": "goal", "when": {">=": [{"var": "turn"}, 2]}}]


def _too_hard(spec: Json, random: Random) -> None:
    spec["negativity_budget"].update(min_fail_rate=0.01, max_fail_rate=0.05)
    _start(spec, 0)
    _event(spec, _rising(1))
    _loss(spec, {">=": [_READ, random.randint(1, 2)]})


def _positive_drift(spec: Json, random: Random) -> None:
    _start(spec, 10)
    spec["negativity_budget"].setdefault("decay_per_turn", {})[_PATH] = -random.randint(2, 9)
    _event(spec, {"op": "dec", "path": _PATH, "value": 3})
    _loss(spec, {"<=": [_READ, 0]})


def _dominant_action(spec: Json, random: Random) -> None:
    """Nothing else counts than what one action, which costs nothing, keeps up."""
    _start(spec, 1.5)
    spec["negativity_budget"]["decay_per_turn"] = {_PATH: 1}
    _action(spec, _rising(1))
    _event(spec, {"op": "dec", "path": _PATH, "value": 1}, weight=random.choice([0.05, 0.1]))
    spec["loss_conditions"] = [
        {"id": "low", "when": {"<=": [_READ, 0]}},
        {"id": "lower", "when": {"<=": [_READ, -1]}},
    ]
    spec.pop("win_conditions", None)
    _slow_end(spec)


def _idle_choices(spec: Json, _random: Random) -> None:
    """Nothing that can be done does anything, and chance decides."""
    note = {"op": "addlog", "message": "a"}
    spec["actions"] = [{"id": "a", "params": {}, "preconditions": {}, "effects": [note]}]
    spec.pop("win_conditions", None)
    _start(spec, 4)
    _event(spec, {"op": "dec", "path": _PATH, "value": 1}, weight=0.1)
    _loss(spec, {"<=": [_READ, 0]})


# --- what no run is needed for ---


def _unknown_path(spec: Json, random: Random) -> None:
    random.choice(spec["actions"])["effects"].append({"op": "inc", "path": "state.nowhere.at", "value": 1})


def _unknown_variable(spec: Json, random: Random) -> None:
    _narrow(random.choice(spec["random_events"]), "when", {">": [{"var": "state.nowhere"}, 1]})


def _wrong_arity(spec: Json, random: Random) -> None:
    _narrow(random.choice(spec["actions"]), "preconditions", {">": [1]})


def _unknown_operator(spec: Json, random: Random) -> None:
    _narrow(random.choice(spec["actions"]), "preconditions", {"beside": [1, 2]})


def _circle(spec: Json, random: Random) -> None:
    rule = random.choice(spec["actions"])
    one, other = {"+": [{"var": "derives.y"}, 1]}, {"+": [{"var": "derives.x"}, 1]}
    rule.setdefault("derives", {}).update(x=one, y=other)


def _code_in_a_value(spec: Json, _random: Random) -> None:
    _start(spec, [1])
    _action(spec, {"op": "push", "path": _PATH, "value": {"+": [1, 2]}})


def _heavy_event(spec: Json, random: Random) -> None:
    random.choice(spec["random_events"])["weight"] = random.choice([0.31, 0.5, 1, 0.01])


def _one_loss(spec: Json, _random: Random) -> None:
    del spec["loss_conditions"][1:]


def _no_budget(spec: Json, _random: Random) -> None:
    spec["negativity_budget"]["min_fail_rate"] = 0


def _same_id(spec: Json, random: Random) -> None:
    section = random.choice(["actions", "random_events", "loss_conditions"])
    spec[section].append(deepcopy(spec[section][0]))


def _unknown_key(spec: Json, random: Random) -> None:
    random.choice(spec["actions"])["power"] = 1


DEFECTS: dict[str, tuple[Callable[[Json, Random], None], frozenset[str]]] = {
    "a goal out of reach": (_goal_out_of_reach, frozenset({"UNREACHABLE_WIN"})),
    "a goal behind a wall": (_goal_behind_a_wall, frozenset({"UNREACHABLE_WIN"})),
    "a loss that cannot happen": (_loss_that_cannot_happen, frozenset({"IMPOSSIBLE_LOSS"})),
    "a certain loss": (_certain_loss, frozenset({"CERTAIN_LOSS"})),
    "lost at once": (_lost_at_once, frozenset({"CERTAIN_LOSS", "LOST_AT_ONCE"})),
    "a dead action": (_dead_action, frozenset({"DEAD_ACTION"})),
    "a choice that contradicts itself": (_dead_choice, frozenset({"DEAD_ACTION"})),
    "a dead event": (_dead_event, frozenset({"DEAD_EVENT"})),
    "runaway growth": (_runaway_growth, frozenset({"RUNAWAY_GROWTH"})),
    "a number that becomes text": (_retyped_number, frozenset({"TYPE_ERROR", "TYPE_MISMATCH"})),
    "a division by zero": (_division_by_zero, frozenset({"TYPE_ERROR", "DIVISION_BY_ZERO"})),
    "an array that is empty": (_empty_array, frozenset({"TYPE_ERROR", "EMPTY_ARRAY"})),
    "an element that is missing": (_missing_element, frozenset({"TYPE_ERROR", "MISSING_PATH"})),
    "too easy": (_too_easy, frozenset({"TOO_EASY"})),
    "too hard": (_too_hard, frozenset({"TOO_HARD"})),
    "positive drift": (_positive_drift, frozenset({"POSITIVE_DRIFT"})),
    "a dominant action": (_dominant_action, frozenset({"DOMINANT_ACTION"})),
    "choices that do not matter": (_idle_choices, frozenset({"CHOICES_DO_NOT_MATTER"})),
    "an unknown path": (_unknown_path, frozenset({"UNKNOWN_PATH", "MISSING_PATH"})),
    "an unknown variable": (_unknown_variable, frozenset({"UNKNOWN_PATH"})),
    "a wrong number of arguments": (_wrong_arity, frozenset({"WRONG_ARITY"})),
    "an unknown operator": (_unknown_operator, frozenset({"UNKNOWN_OPERATOR"})),
    "a circle of derived values": (_circle, frozenset({"DERIVE_CYCLE"})),
    "code in a value": (_code_in_a_value, frozenset({"CODE_IN_VALUE"})),
    "a weight out of bounds": (_heavy_event, frozenset({"OUT_OF_RANGE"})),
    "a single loss": (_one_loss, frozenset({"TOO_SHORT"})),
    "no budget": (_no_budget, frozenset({"OUT_OF_RANGE"})),
    "the same id twice": (_same_id, frozenset({"DUPLICATE_ID"})),
    "an unknown key": (_unknown_key, frozenset({"UNKNOWN_KEY"})),
}
