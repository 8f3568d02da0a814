"""Static checks of rules: conditions, derived values, parameters, effects, visibility and narrator scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine._reference.effects import find_derive_names
from peripety.engine._reference.limits import looks_like_code
from peripety.engine._reference.variants import (
    MAX_VARIANTS,
    iter_placed_params,
    list_options,
    list_variants,
)
from peripety.engine.backend_protocol import EngineError
from peripety.engine.checks.document_checks import RuleScope, check_duration, check_expression
from peripety.engine.paths import MISSING, Path, parse_state_path
from peripety.engine.schema_validation import format_pointer
from peripety.engine.strict_json import MAX_SAFE_INTEGER
from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine._reference.variants import Variant
    from peripety.engine.checks.document_checks import StateModel


MAX_SCHEDULE_DEPTH = 4
_REQUIRED_KINDS: dict[str, tuple[type, str]] = {
    "inc": (float, "a number"),
    "dec": (float, "a number"),
    "mul": (float, "a number"),
    "patch": (dict, "an object"),
    "push": (list, "an array"),
    "pop": (list, "an array"),
}


def check_effects(
    effects: list[Any],
    place: str,
    state_model: StateModel,
    derives: frozenset[str],
    at: str | None = None,
    depth: int = 1,
) -> Iterator[Finding]:
    """Yield the findings about a list of effects.

    Args:
        effects: the effects.
        place: pointer of the list.
        state_model: the existing paths and entities.
        derives: names of derived values that a string value may refer to.
        at: pointer to report instead of the effect's own, for effects that another part of the document
            implies.
        depth: nesting depth of the list in schedules.
    """
    for index, effect in enumerate(effects):
        here = at or f"{place}/{index}"
        if effect["op"] == "schedule":
            yield from _check_schedule(effect, here, state_model, derives, depth)
        elif effect["op"] != "addlog":
            yield from _check_target(effect, here, state_model)
            if "value" in effect:
                yield from _check_value(effect, here, derives)
                yield from _check_bounds(effect, here, state_model, derives)


def _check_schedule(
    effect: dict[str, Any],
    place: str,
    state_model: StateModel,
    derives: frozenset[str],
    depth: int,
) -> Iterator[Finding]:
    if ("at" in effect) == ("after" in effect):
        yield Finding("BAD_SCHEDULE", place, "give either 'at' or 'after', and not both")
    for key in ("at", "after"):
        if isinstance(effect.get(key), str):
            yield from check_duration(effect[key], f"{place}/{key}")
    if depth > MAX_SCHEDULE_DEPTH:
        yield Finding("BAD_SCHEDULE", place, f"schedules are nested deeper than {MAX_SCHEDULE_DEPTH} levels")
        return
    yield from check_effects(effect["effects"], f"{place}/effects", state_model, derives, depth=depth + 1)


def _check_target(effect: dict[str, Any], place: str, state_model: StateModel) -> Iterator[Finding]:
    path, finding = _parse_target(effect["path"], place)
    if finding is not None:
        yield finding
        return
    if effect["op"] == "set":
        yield from _check_set(path, place, state_model)
        return
    if not state_model.can_exist(path) and not state_model.may_appear_in_array(path):
        yield _unknown_path_finding(effect["path"], place)
        return
    wanted, name = _REQUIRED_KINDS[effect["op"]]
    value = state_model.get_initial(path)
    fits = (
        isinstance(value, int | float) and not isinstance(value, bool)
        if wanted is float
        else isinstance(value, wanted)
    )
    if value is not MISSING and not fits and not state_model.is_written(path):
        message = f"'{effect['path']}' does not hold {name}, which '{effect['op']}' needs"
        yield Finding("TYPE_MISMATCH", place, message)


def _check_set(path: Path, place: str, state_model: StateModel) -> Iterator[Finding]:
    if len(path) == 1:
        yield Finding("BAD_PATH", place, "the whole state cannot be set; name a key of it, such as state.a")
    elif not (state_model.can_exist(path[:-1]) or state_model.may_appear_in_array(path[:-1])):
        yield Finding(
            "UNKNOWN_PATH",
            place,
            f"'set' creates the last key only; '{_join_path(path[:-1])}' does not exist",
        )


def _check_value(effect: dict[str, Any], place: str, derives: frozenset[str]) -> Iterator[Finding]:
    value = effect["value"]
    if isinstance(value, str) and value in derives:
        return
    if effect["op"] in {"inc", "dec", "mul", "patch"} and isinstance(value, str):
        known = (
            f"known derived values: {', '.join(sorted(derives))}"
            if derives
            else "this rule derives no values"
        )
        yield Finding("UNKNOWN_DERIVE", f"{place}/value", f"'{value[:60]}' is not a derived value; {known}")
        return
    if looks_like_code(value):
        message = (
            "the value must be a literal; put the expression into 'derives' and use its name as the value"
        )
        yield Finding("CODE_IN_VALUE", f"{place}/value", message)


def _check_bounds(
    effect: dict[str, Any],
    place: str,
    state_model: StateModel,
    derives: frozenset[str],
) -> Iterator[Finding]:
    """Yield a finding if a literal cannot be stored at a bounded path, or replaces what holds one."""
    value, bounds = effect["value"], state_model.bounds
    path, finding = _parse_target(effect["path"], place)
    is_literal = path not in bounds.limits or not (isinstance(value, str) and value in derives)
    try:
        if finding is None and effect["op"] == "set" and is_literal:
            bounds.clamp(path, value)
        elif finding is None and effect["op"] == "patch" and isinstance(value, dict):
            bounds.clamp_members(path, value)
    except EngineError as error:
        yield Finding(error.code, place, error.message)


def check_path(text: str, place: str, state_model: StateModel) -> Iterator[Finding]:
    """Yield a finding if a path does not exist."""
    path, finding = _parse_target(text, place)
    if finding is not None:
        yield finding
    elif not state_model.can_exist(path) and not state_model.may_appear_in_array(path):
        yield _unknown_path_finding(text, place)


def _parse_target(text: str, place: str) -> tuple[Path, Finding | None]:
    try:
        return parse_state_path(text), None
    except EngineError as error:
        return (), Finding(error.code, place, error.message)


def _unknown_path_finding(text: str, place: str) -> Finding:
    return Finding("UNKNOWN_PATH", place, f"'{text[:80]}' is not in the state, and no effect creates it")


def _join_path(path: Path) -> str:
    return ".".join(str(segment) for segment in path)


def check_rules(spec: dict[str, Any], state_model: StateModel) -> Iterator[Finding]:
    """Yield the findings about every rule of a scenario, section by section."""
    for index, (action, variants) in enumerate(zip(spec["actions"], list_variants(spec), strict=True)):
        yield from _check_action(action, variants, f"/actions/{index}", state_model)
    for index, event in enumerate(spec["random_events"]):
        yield from _check_event(event, f"/random_events/{index}", state_model)
    for section in ("loss_conditions", "win_conditions"):
        for index, condition in enumerate(spec.get(section, [])):
            yield from check_expression(condition["when"], f"/{section}/{index}/when", RuleScope(state_model))
    yield from _check_decay(spec, state_model)
    yield from _check_visibility(spec, state_model)
    for index, scope in enumerate(spec.get("narrator_scope", [])):
        yield from check_path(scope["path"], f"/narrator_scope/{index}/path", state_model)


def _check_action(
    action: dict[str, Any],
    variants: list[Variant],
    place: str,
    state_model: StateModel,
) -> Iterator[Finding]:
    for name, schema in action["params"].items():
        yield from _check_param(schema, f"{place}/params{format_pointer([name])}")
    if state_model.has_variants:
        misplaced = [*_check_placed_params(action, variants, place)]
        yield from misplaced
        if misplaced and not variants:
            return
    params = frozenset(action["params"])
    known: set[tuple[str, str]] = set()
    for variant in [variant.action for variant in variants] or [action]:
        found = [
            *check_expression(
                variant["preconditions"], f"{place}/preconditions", RuleScope(state_model, params)
            ),
            *_check_rule(variant, place, state_model, params),
        ]
        yield from (finding for finding in found if (finding.code, finding.path) not in known)
        known.update((finding.code, finding.path) for finding in found)


def _check_placed_params(
    action: dict[str, Any],
    variants: list[Variant],
    place: str,
) -> Iterator[Finding]:
    """Yield the findings about parameters in paths and messages."""
    placed = [*iter_placed_params(action)]
    for name, here in placed:
        if not list_options(action, name):
            message = f"the parameter '{name[:64]}' is not a string with enum, so it cannot stand here"
            yield Finding("BAD_PARAM", f"{place}{here}", message)
    if placed and not variants and all(list_options(action, name) for name, _ in placed):
        message = f"its parameters stand in paths with more than {MAX_VARIANTS} combinations of values"
        yield Finding("LIMIT_EXCEEDED", place, message)
    for message_place, told in _iter_messages(action["effects"], f"{place}/effects"):
        missing = [option for option in list_options(action, told["param"]) if option not in told["texts"]]
        if missing:
            yield Finding(
                "MISSING_KEY",
                f"{message_place}/texts",
                f"the value '{missing[0][:64]}' of '{told['param'][:64]}' needs a text",
            )


def _iter_messages(effects: list[Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the messages that depend on a parameter, with their places."""
    for index, effect in enumerate(effects):
        if isinstance(effect.get("message"), dict):
            yield f"{place}/{index}/message", effect["message"]
        yield from _iter_messages(effect.get("effects", []), f"{place}/{index}/effects")


def _check_event(event: dict[str, Any], place: str, state_model: StateModel) -> Iterator[Finding]:
    yield from check_expression(event["when"], f"{place}/when", RuleScope(state_model))
    if "duration" in event:
        yield from check_duration(event["duration"], f"{place}/duration")
    yield from _check_rule(event, place, state_model, frozenset())


def _check_rule(
    rule: dict[str, Any],
    place: str,
    state_model: StateModel,
    params: frozenset[str],
) -> Iterator[Finding]:
    derives = rule.get("derives", {})
    scope = RuleScope(state_model, params, frozenset(derives))
    for name, expression in derives.items():
        yield from check_expression(expression, f"{place}/derives{format_pointer([name])}", scope)
        if _is_circular(name, derives):
            message = f"the derived value '{name}' depends on itself"
            yield Finding("DERIVE_CYCLE", f"{place}/derives{format_pointer([name])}", message)
    yield from check_effects(rule["effects"], f"{place}/effects", state_model, frozenset(derives))


def _is_circular(name: str, derives: dict[str, Any]) -> bool:
    seen: set[str] = set()
    pending = [name]
    while pending:
        read = find_derive_names(derives[pending.pop()]) & derives.keys()
        if name in read:
            return True
        pending.extend(read - seen)
        seen |= read
    return False


def _check_param(schema: dict[str, Any], place: str) -> Iterator[Finding]:
    kind = schema["type"]
    for problem in _find_param_problems(kind, schema):
        yield Finding("BAD_PARAM", place, problem)


def _find_param_problems(kind: str, schema: dict[str, Any]) -> Iterator[str]:
    numeric = kind in {"integer", "number"}
    bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
    if bounds and not numeric:
        yield f"minimum and maximum are for numbers, not for a {kind}"
    if kind != "string" and "maxLength" in schema:
        yield f"maxLength is for strings, not for a {kind}"
    if "enum" in schema:
        if bounds or "maxLength" in schema:
            yield "enum already lists the legal values; remove the bounds"
        if not all(_has_type(kind, option) for option in schema["enum"]):
            yield f"every value of enum must be of type {kind}"
    elif numeric:
        yield from _find_bound_problems(kind, bounds)
    elif kind == "string" and "maxLength" not in schema:
        yield "a string needs enum or maxLength"


def _find_bound_problems(kind: str, bounds: list[float]) -> Iterator[str]:
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


def _has_type(kind: str, value: Any) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (kind == "number" or float(value).is_integer())


def _check_decay(spec: dict[str, Any], state_model: StateModel) -> Iterator[Finding]:
    for text in spec["negativity_budget"].get("decay_per_turn", {}):
        place = f"/negativity_budget/decay_per_turn{format_pointer([text])}"
        yield from check_effects(
            [{"op": "dec", "path": text, "value": 0}],
            "",
            state_model,
            frozenset(),
            place,
        )


def _check_visibility(spec: dict[str, Any], state_model: StateModel) -> Iterator[Finding]:
    for index, rule in enumerate(spec.get("visibility", [])):
        yield from check_path(rule["path"], f"/visibility/{index}/path", state_model)
        if isinstance(rule["to"], list):
            for unknown in sorted(set(rule["to"]) - state_model.entities):
                yield Finding(
                    "UNKNOWN_ENTITY",
                    f"/visibility/{index}/to",
                    f"unknown entity '{unknown}'; add it to entities",
                )
    yield from _check_private(spec["state"].get("private"), state_model)


def _check_private(private: Any, state_model: StateModel) -> Iterator[Finding]:
    """Yield a finding for each key of `state.private` that is not an entity; only that entity may see it."""
    if not isinstance(private, dict):
        return
    for name in sorted(private.keys() - state_model.entities):
        message = f"state.private.{name} does not belong to an entity; add an entity with the id '{name}'"
        yield Finding("UNKNOWN_ENTITY", f"/state/private{format_pointer([name])}", message)
