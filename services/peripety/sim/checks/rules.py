"""Static checks of rules: conditions, derived values, parameters, effects, visibility and narrator scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Finding
from peripety.sim._pure.border import MAX_SAFE_INTEGER
from peripety.sim._pure.execution import derive_names
from peripety.sim.checks.documents import check_duration
from peripety.sim.checks.effects import check_effects, check_path
from peripety.sim.checks.expressions import check_expression
from peripety.sim.checks.scope import RuleScope
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim.checks.world import World

__all__ = ["check_rules"]


def check_rules(spec: dict[str, Any], world: World) -> Iterator[Finding]:
    """Yield the findings about every rule of a scenario, section by section."""
    for index, action in enumerate(spec["actions"]):
        yield from _check_action(action, f"/actions/{index}", world)
    for index, event in enumerate(spec["random_events"]):
        yield from _check_event(event, f"/random_events/{index}", world)
    for section in ("loss_conditions", "win_conditions"):
        for index, condition in enumerate(spec.get(section, [])):
            yield from check_expression(condition["when"], f"/{section}/{index}/when", RuleScope(world))
    yield from _check_decay(spec, world)
    yield from _check_visibility(spec, world)
    for index, scope in enumerate(spec.get("narrator_scope", [])):
        yield from check_path(scope["path"], f"/narrator_scope/{index}/path", world)


def _check_action(action: dict[str, Any], place: str, world: World) -> Iterator[Finding]:
    for name, schema in action["params"].items():
        yield from _check_param(schema, f"{place}/params{pointer([name])}")
    params = frozenset(action["params"])
    yield from check_expression(action["preconditions"], f"{place}/preconditions", RuleScope(world, params))
    yield from _check_rule(action, place, world, params)


def _check_event(event: dict[str, Any], place: str, world: World) -> Iterator[Finding]:
    yield from check_expression(event["when"], f"{place}/when", RuleScope(world))
    if "duration" in event:
        yield from check_duration(event["duration"], f"{place}/duration")
    yield from _check_rule(event, place, world, frozenset())


def _check_rule(rule: dict[str, Any], place: str, world: World, params: frozenset[str]) -> Iterator[Finding]:
    derives = rule.get("derives", {})
    scope = RuleScope(world, params, frozenset(derives))
    for name, expression in derives.items():
        yield from check_expression(expression, f"{place}/derives{pointer([name])}", scope)
        if _reads_itself(name, derives):
            message = f"the derived value '{name}' depends on itself"
            yield Finding("DERIVE_CYCLE", f"{place}/derives{pointer([name])}", message)
    yield from check_effects(rule["effects"], f"{place}/effects", world, frozenset(derives))


def _reads_itself(name: str, derives: dict[str, Any]) -> bool:
    seen: set[str] = set()
    pending = [name]
    while pending:
        read = derive_names(derives[pending.pop()]) & derives.keys()
        if name in read:
            return True
        pending.extend(read - seen)
        seen |= read
    return False


def _check_param(schema: dict[str, Any], place: str) -> Iterator[Finding]:
    kind = schema["type"]
    for problem in _param_problems(kind, schema):
        yield Finding("BAD_PARAM", place, problem)


def _param_problems(kind: str, schema: dict[str, Any]) -> Iterator[str]:
    numeric = kind in {"integer", "number"}
    bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
    if bounds and not numeric:
        yield f"minimum and maximum are for numbers, not for a {kind}"
    if kind != "string" and "maxLength" in schema:
        yield f"maxLength is for strings, not for a {kind}"
    if "enum" in schema:
        if bounds or "maxLength" in schema:
            yield "enum already lists the legal values; remove the bounds"
        if not all(_is_of(kind, option) for option in schema["enum"]):
            yield f"every value of enum must be of type {kind}"
    elif numeric:
        yield from _bound_problems(kind, bounds)
    elif kind == "string" and "maxLength" not in schema:
        yield "a string needs enum or maxLength"


def _bound_problems(kind: str, bounds: list[float]) -> Iterator[str]:
    if len(bounds) != 2:  # noqa: PLR2004 - minimum and maximum
        yield "a number needs minimum and maximum, or enum, for random draws"
        return
    low, high = bounds
    if low > high:
        yield "minimum is above maximum"
    if not all(abs(bound) <= MAX_SAFE_INTEGER for bound in bounds):
        yield f"the bounds of a number must be within ±{MAX_SAFE_INTEGER}"
    elif kind == "integer" and not all(float(bound).is_integer() for bound in bounds):
        yield "the bounds of an integer must be integers"


def _is_of(kind: str, value: Any) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (kind == "number" or float(value).is_integer())


def _check_decay(spec: dict[str, Any], world: World) -> Iterator[Finding]:
    for text in spec["negativity_budget"].get("decay_per_turn", {}):
        place = f"/negativity_budget/decay_per_turn{pointer([text])}"
        yield from check_effects([{"op": "dec", "path": text, "value": 0}], "", world, frozenset(), place)


def _check_visibility(spec: dict[str, Any], world: World) -> Iterator[Finding]:
    for index, rule in enumerate(spec.get("visibility", [])):
        yield from check_path(rule["path"], f"/visibility/{index}/path", world)
        if isinstance(rule["to"], list):
            for unknown in sorted(set(rule["to"]) - world.entities):
                yield Finding(
                    "UNKNOWN_ENTITY",
                    f"/visibility/{index}/to",
                    f"unknown entity '{unknown}'; add it to entities",
                )
    yield from _check_private(spec["state"].get("private"), world)


def _check_private(private: Any, world: World) -> Iterator[Finding]:
    """Yield a finding for each key of `state.private` that is not an entity; only that entity may see it."""
    if not isinstance(private, dict):
        return
    for name in sorted(private.keys() - world.entities):
        message = f"state.private.{name} does not belong to an entity; add an entity with the id '{name}'"
        yield Finding("UNKNOWN_ENTITY", f"/state/private{pointer([name])}", message)
