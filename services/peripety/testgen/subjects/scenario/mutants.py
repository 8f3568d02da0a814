"""Mutants of a scenario: documents with one small change each, compiled once and cached."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core import mutation_testing
from peripety.core.mutation_testing import REMOVED, Edit, Mutant, MutantOutcome, apply_edit, shift_number
from peripety.engine.schema_validation import format_pointer
from peripety.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from peripety.core.mutation_testing import DocumentPath


_OPPOSITES = {"inc": "dec", "dec": "inc", "mul": "set", "push": "pop"}
_RULE_SECTIONS = ("actions", "random_events")
_CONDITION_MEMBERS = {
    "actions": "preconditions",
    "random_events": "when",
    "loss_conditions": "when",
    "win_conditions": "when",
}
_NEGLIGIBLE = 1e-9


def _iter_conditions(spec: Mapping[str, Any]) -> Iterator[tuple[DocumentPath, Any]]:
    """Yield every condition that is not empty."""
    for section, name in _CONDITION_MEMBERS.items():
        for index, rule in enumerate(spec.get(section) or ()):
            if rule.get(name):
                yield (section, index, name), rule[name]


def _iter_expressions(spec: Mapping[str, Any]) -> Iterator[tuple[DocumentPath, Any]]:
    """Yield every expression: conditions, and derived values."""
    yield from _iter_conditions(spec)
    for section in _RULE_SECTIONS:
        for index, rule in enumerate(spec.get(section) or ()):
            for name, derived in (rule.get("derives") or {}).items():
                yield (section, index, "derives", name), derived


def _iter_effects(spec: Mapping[str, Any]) -> Iterator[tuple[DocumentPath, Mapping[str, Any]]]:
    """Yield every effect; scheduled effects follow the effect that schedules them."""
    for section in _RULE_SECTIONS:
        for index, rule in enumerate(spec.get(section) or ()):
            yield from _iter_nested_effects(rule["effects"], (section, index, "effects"))


def _iter_nested_effects(
    effects: Iterable[Mapping[str, Any]],
    place: DocumentPath,
) -> Iterator[tuple[DocumentPath, Mapping[str, Any]]]:
    for index, effect in enumerate(effects):
        yield (*place, index), effect
        if effect["op"] == "schedule":
            yield from _iter_nested_effects(effect["effects"], (*place, index, "effects"))


def _lift_to_expressions(operator: Callable[[Any], Iterable[Edit]]) -> Callable[[Any], Iterator[Edit]]:
    def changes(spec: Mapping[str, Any]) -> Iterator[Edit]:
        for place, expression in _iter_expressions(spec):
            for change in operator(expression):
                yield Edit((*place, *change.path), change.before, change.after)

    return changes


def _drop_condition(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for place, condition in _iter_conditions(spec):
        yield Edit(place, condition, {})


def _drop_effect(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for place, effect in _iter_effects(spec):
        yield Edit(place, effect, REMOVED)


def _swap_operation(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for place, effect in _iter_effects(spec):
        other = _OPPOSITES.get(effect["op"])
        if other == "pop":
            yield Edit(place, effect, {"op": "pop", "path": effect["path"]})
        elif other is not None:
            yield Edit((*place, "op"), effect["op"], other)


def _change_value(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for place, effect in _iter_effects(spec):
        value = effect.get("value")
        if isinstance(value, bool):
            yield Edit((*place, "value"), value, not value)
        elif isinstance(value, int | float):
            yield from (Edit((*place, "value"), value, other) for other in shift_number(value))
        elif isinstance(value, str) and effect["op"] in {"set", "push"}:
            yield Edit((*place, "value"), value, f"{value}x")


def _change_path(spec: Mapping[str, Any]) -> Iterator[Edit]:
    """Replace the path of an effect by that of the previous effect."""
    for section in _RULE_SECTIONS:
        for index, rule in enumerate(spec.get(section) or ()):
            for number, effect in enumerate(rule["effects"]):
                before = rule["effects"][number - 1].get("path") if number else None
                if before is not None and effect.get("path") not in {None, before}:
                    place = (section, index, "effects", number, "path")
                    yield Edit(place, effect["path"], before)


def _change_time(spec: Mapping[str, Any]) -> Iterator[Edit]:
    """Delay a scheduled effect by a turn, or extend a duration by a turn."""
    for place, effect in _iter_effects(spec):
        for name in ("at", "after"):
            if isinstance(effect.get(name), int):
                yield Edit((*place, name), effect[name], effect[name] + 1)


def _change_weight(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for index, event in enumerate(spec.get("random_events") or ()):
        weight = event["weight"]
        if isinstance(weight, int | float) and weight:
            yield Edit(("random_events", index, "weight"), weight, weight / 2)


def _drop_event(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for index, event in enumerate(spec.get("random_events") or ()):
        yield Edit(("random_events", index), event, REMOVED)


def _drop_ending(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for section in ("loss_conditions", "win_conditions"):
        for index, ending in enumerate(spec.get(section) or ()):
            yield Edit((section, index), ending, REMOVED)


def _drop_duration(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for index, event in enumerate(spec.get("random_events") or ()):
        if event.get("duration") is not None:
            yield Edit(("random_events", index, "duration"), event["duration"], REMOVED)


def _change_decay(spec: Mapping[str, Any]) -> Iterator[Edit]:
    decay = spec["negativity_budget"].get("decay_per_turn") or {}
    for path, rate in decay.items():
        place = ("negativity_budget", "decay_per_turn", path)
        if abs(rate) > _NEGLIGIBLE:
            yield Edit(place, rate, 0)
            yield Edit(place, rate, -rate)


def _change_start(spec: Mapping[str, Any]) -> Iterator[Edit]:
    """Change an initial value to the next one."""
    pending: list[tuple[DocumentPath, Any]] = [(("state",), spec["state"])]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*place, key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, bool):
            yield Edit(place, value, not value)
        elif isinstance(value, int | float):
            yield from (Edit(place, value, other) for other in [*shift_number(value)][-1:])


def _shift_bound(spec: Mapping[str, Any]) -> Iterator[Edit]:
    for index, action in enumerate(spec["actions"]):
        for name, param in action["params"].items():
            for bound, by in (("minimum", 1), ("maximum", -1)):
                if isinstance(param.get(bound), int | float):
                    place = ("actions", index, "params", name, bound)
                    yield Edit(place, param[bound], param[bound] + by)
                    yield Edit(place, param[bound], param[bound] - by)


OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Edit]]] = {
    **{name: _lift_to_expressions(operator) for name, operator in mutation_testing.OPERATORS.items()},
    "drop_condition": _drop_condition,
    "drop_effect": _drop_effect,
    "swap_operation": _swap_operation,
    "change_value": _change_value,
    "change_path": _change_path,
    "change_time": _change_time,
    "change_weight": _change_weight,
    "drop_event": _drop_event,
    "drop_duration": _drop_duration,
    "drop_ending": _drop_ending,
    "change_decay": _change_decay,
    "change_start": _change_start,
    "shift_bound": _shift_bound,
}
"""The operators by name."""


MAX_SCENARIO_MUTANTS = 2_000
"""Limit of mutants; a larger document is sampled deterministically."""

MAX_MUTANT_BYTES = 16 * 1024 * 1024
"""Total size limit of all mutants; each is a complete document that is compiled and cached."""


class ScenarioMutants:
    """The mutants of a scenario.

    Invalid documents are left out, and so are duplicates.

    Args:
        program_of: the scenario.
    """

    def __init__(self, program: engine.Program) -> None:
        self._program = program

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants, in the order of the operators."""
        return tuple(mutant for mutant, _ in self._compiled.values())

    def program_of(self, mutant_id: str) -> engine.Program:
        """Return the program of a mutant."""
        return self._compiled[mutant_id][1]

    @cached_property
    def _compiled(self) -> dict[str, tuple[Mutant, engine.Program]]:
        spec, compiled, seen = self._program.spec, {}, {self._program.document}
        for mutant_id, (operator, change) in self._sample_changes().items():
            document = engine.canonicalize(apply_edit(spec, change.path, change.after))
            if document in seen:
                continue
            seen.add(document)
            try:
                compiled[mutant_id] = (_to_mutant(mutant_id, operator, change), engine.compile(document))
            except SpecError:
                continue
        return compiled

    def _sample_changes(self) -> dict[str, tuple[str, Edit]]:
        """Return changes with their operators by mutant id; a sample if there are too many."""
        made = {mutant_id: (operator, change) for mutant_id, operator, change in self._iter_changes()}
        most = min(MAX_SCENARIO_MUTANTS, MAX_MUTANT_BYTES // len(self._program.document))
        if len(made) <= most:
            return made
        by_chance = sorted(made, key=lambda mutant_id: sha256(mutant_id.encode()).digest())
        kept = {*by_chance[:most]}
        return {mutant_id: change for mutant_id, change in made.items() if mutant_id in kept}

    def _iter_changes(self) -> Iterator[tuple[str, str, Edit]]:
        for operator, changes in OPERATORS.items():
            counts: dict[DocumentPath, int] = {}
            for change in changes(self._program.spec):
                number = counts[change.path] = counts.get(change.path, 0) + 1
                yield f"{operator}:{format_pointer(change.path)}:{number}", operator, change


def _to_mutant(mutant_id: str, operator: str, change: Edit) -> Mutant:
    return Mutant(
        mutant_id,
        operator,
        format_pointer(change.path),
        engine.canonicalize(change.before),
        None if change.after is REMOVED else engine.canonicalize(change.after),
        MutantOutcome.SURVIVED,
    )
