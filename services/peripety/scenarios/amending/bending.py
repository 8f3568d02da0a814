"""Rule-based amendment: applies edit requests to a specification.

Rules can change durations, chances, amounts and decay, and can remove actions and events.
"""

from __future__ import annotations

import math
import re
from copy import deepcopy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import Finding
from peripety.scenarios.amending.hearing import USUAL, Way, Wish, wishes
from peripety.scenarios.amending.mentions import mentioned
from peripety.scenarios.balancing.knobs import WEIGHT_BOUNDS
from peripety.scenarios.phrases import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["bent"]

_LONGEST = 2_000
"""The maximum length of an instruction; a longer text is never a list of simple edits."""
_MOST_TURNS = 1_000
_USUAL_HORIZON = 50
_USUAL_TURN = "1h"
_LASTING = 2
_DIFFICULTY_STEP = 0.15
_FAIL_RATES = (0.2, 0.85)
_NARROWEST = 0.1
_COUNT = re.compile(r"\d+")

_Bend: TypeAlias = "Callable[[float], None]"
"""A function that changes one value of a document by a factor."""


def bent(spec: Mapping[str, Any], instruction: str, fail_rate: float) -> dict[str, Any] | Finding:
    """Return the specification with the edits of an instruction, or a finding if they cannot be made.

    The edits alone do not make a valid specification invalid. The caller validates that it can still be won
    and is lost often enough.

    Args:
        spec: a valid specification; not modified.
        instruction: the text.
        fail_rate: the current fail rate, from which "harder" and "easier" start.
    """
    if len(instruction) > _LONGEST:
        return _not_understood(instruction, f"rules read texts of at most {_LONGEST:,} characters")
    changed = deepcopy(dict(spec))
    heard = wishes(instruction)
    if not heard:
        return _not_understood(instruction, "the text is empty")
    for wish in heard:
        if isinstance(wish, str):
            return _not_understood(wish, "not a change that rules can make")
        bends = _of_everything(changed, wish.way, fail_rate) if wish.is_general else _of_named(changed, wish)
        if not bends:
            what = "removed" if wish.way is Way.REMOVED else f"made {wish.way.value}"
            return _not_understood(wish.said, f"it names nothing that could be {what}")
        for bend in bends:
            bend(wish.factor)
    if changed == spec:
        message = (
            "the requested change has no effect: the values are already as requested, or at their limits"
        )
        return Finding("AMENDMENT_CHANGES_NOTHING", "", message)
    return changed


def _not_understood(clause: str, reason: str) -> Finding:
    return Finding("AMENDMENT_NOT_UNDERSTOOD", "", f"'{clause[:200]}': {reason}")


def _of_named(spec: dict[str, Any], wish: Wish) -> list[_Bend]:
    """Return the edits of the named parts, for the kind of the request."""
    actions, events = spec["actions"], spec["random_events"]
    match wish.way:
        case Way.LONGER | Way.SHORTER:
            lasting = (_each(rules, lambda rule: _timing(rule, spec)) for rules in (events, actions))
            return mentioned(wish.about, *lasting)
        case Way.LIKELIER | Way.RARER:
            return mentioned(wish.about, _each(events, _chance))
        case Way.FASTER | Way.SLOWER:
            decay = spec["negativity_budget"].get("decay_per_turn", {})
            return mentioned(wish.about, [(_key(path), _number(decay, path)) for path in decay])
        case Way.MORE | Way.LESS:
            return mentioned(wish.about, _of_state(spec["state"]), _each([*actions, *events], _strength))
        case Way.HARDER | Way.EASIER:
            return mentioned(wish.about, _each(events, _strength))
        case Way.REMOVED:
            going = (_each(rules, partial(_removal, rules)) for rules in (actions, events))
            return mentioned(wish.about, chain.from_iterable(going))


def _of_everything(spec: dict[str, Any], way: Way, fail_rate: float) -> list[_Bend]:
    """Return the edit of the scenario as a whole: its length or its difficulty."""
    if way in {Way.LONGER, Way.SHORTER}:
        return [_horizon(spec)]
    if way in {Way.HARDER, Way.EASIER}:
        return [_difficulty(spec["negativity_budget"], fail_rate)]
    return []


def _each(
    rules: Iterable[dict[str, Any]], bend_of: Callable[[dict[str, Any]], _Bend | None]
) -> Iterator[tuple[str, _Bend]]:
    """Yield the edit of each rule, under its id and its name."""
    for rule in rules:
        bend = bend_of(rule)
        if bend is not None:
            yield rule["id"], bend
            if "name" in rule:
                yield rule["name"], bend


def _of_state(tree: dict[str, Any]) -> Iterator[tuple[str, _Bend]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _of_state(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key, _number(tree, key)


def _key(path: str) -> str:
    return quantity(path).rpartition(".")[2]


def _number(holder: dict[str, Any], key: str) -> _Bend:
    def bend(factor: float) -> None:
        holder[key] = _scaled(holder[key], factor)

    return bend


def _horizon(spec: dict[str, Any]) -> _Bend:
    def bend(factor: float) -> None:
        turns = spec.get("horizon", _USUAL_HORIZON)
        spec["horizon"] = min(max(round(turns * factor), 1), _MOST_TURNS)

    return bend


def _difficulty(budget: dict[str, Any], fail_rate: float) -> _Bend:
    """Return an edit of the target fail rate; balancing finds the numbers for it."""

    def bend(factor: float) -> None:
        step = _DIFFICULTY_STEP * math.log(factor, USUAL)
        aim = min(max(fail_rate + step, _FAIL_RATES[0]), _FAIL_RATES[1])
        least, most = budget["min_fail_rate"], budget.get("max_fail_rate")
        if factor > 1:
            least = max(least, round(aim, 2))
            most = None if most is None else max(most, round(least + 2 * _NARROWEST, 2))
        else:
            most = min(1.0 if most is None else most, round(aim, 2))
            least = min(least, round(most - _NARROWEST, 2))
        budget.update({"min_fail_rate": least} | ({} if most is None else {"max_fail_rate": min(most, 1.0)}))

    return bend


def _chance(rule: dict[str, Any]) -> _Bend:
    def bend(factor: float) -> None:
        least, most = WEIGHT_BOUNDS
        rule["weight"] = round(min(max(rule["weight"] * factor, least), most), 4)

    return bend


def _timing(rule: dict[str, Any], spec: Mapping[str, Any]) -> _Bend | None:
    """Return an edit of a rule's duration, or of the delay of its scheduled effects."""
    delays = [one for one in rule["effects"] if one["op"] == "schedule" and one.get("after") is not None]
    if "weight" not in rule and not delays:
        return None
    turn = spec.get("clock", {}).get("turn", _USUAL_TURN)

    def bend(factor: float) -> None:
        if "duration" in rule:
            rule["duration"] = _stretched(rule["duration"], factor)
        elif "weight" in rule and factor > 1:
            rule["duration"] = _stretched(turn, max(factor, _LASTING))
        for delay in delays:
            after = delay["after"]
            delay["after"] = _stretched(after, factor) if isinstance(after, str) else _count(after, factor)

    return bend


def _strength(rule: dict[str, Any]) -> _Bend | None:
    """Return an edit of the amounts of a rule."""
    moved = list(_moves(rule["effects"]))

    def bend(factor: float) -> None:
        for effect in moved:
            effect["value"] = _scaled(effect["value"], factor)

    return bend if moved else None


def _moves(effects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for effect in effects:
        if effect["op"] == "schedule":
            yield from _moves(effect["effects"])
        elif effect["op"] in {"inc", "dec"} and not isinstance(effect["value"], str):
            yield effect


def _removal(rules: list[dict[str, Any]], rule: dict[str, Any]) -> _Bend:
    def bend(_factor: float) -> None:
        rules[:] = [one for one in rules if one is not rule]

    return bend


def _scaled(value: float, factor: float) -> float:
    """Return the product; an integer stays an integer unless rounding would undo the change."""
    exact = value * factor
    if not math.isfinite(exact):
        return value
    whole = round(exact)
    if value == round(value) and whole not in {0, value}:
        return whole
    return float(f"{exact:.3g}")


def _stretched(duration: str, factor: float) -> str:
    return _COUNT.sub(lambda count: str(_count(int(count[0]), factor)), duration)


def _count(turns: int, factor: float) -> int:
    """Return the number of turns times the factor, at least one."""
    return max(math.ceil(turns * factor) if factor > 1 else math.floor(turns * factor), 1)
