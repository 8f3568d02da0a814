"""Static checks of the keys of version 1.1: bounds, deals, epilogues, labels and solutions."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.limits import MAX_STATE_NODES, MAX_STATE_TEXT, looks_like_code, measure
from peripety.engine._reference.turn import find_parameter_problems
from peripety.engine.backend_protocol import EngineError
from peripety.engine.checks.document_checks import RuleScope, check_expression, is_state_path
from peripety.engine.checks.rule_checks import check_path
from peripety.engine.lowering import dealt_key
from peripety.engine.paths import MISSING, lookup, parse_state_path
from peripety.engine.schema_validation import format_pointer
from peripety.engine.strict_json import MAX_DEPTH
from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.engine.checks.document_checks import StateModel


def check_story(spec: dict[str, Any], state_model: StateModel) -> Iterator[Finding]:
    """Yield the findings about the keys of version 1.1."""
    for text, limit in spec.get("bounds", {}).items():
        yield from _check_limit(text, limit, f"/bounds{format_pointer([text])}", spec["state"])
    deals = spec.get("deal", [])
    for index, entry in enumerate(deals):
        yield from _check_deal(entry, f"/deal/{index}", state_model)
    yield from _check_overlaps(deals)
    yield from _check_deal_sizes(spec)
    endings = {
        end["id"] for section in ("loss_conditions", "win_conditions") for end in spec.get(section, [])
    }
    for name, epilogue in spec.get("epilogues", {}).items():
        if name not in endings:
            message = f"no loss or win condition has the id '{name[:80]}'"
            yield Finding("UNKNOWN_ENDING", f"/epilogues{format_pointer([name])}", message)
        if isinstance(epilogue, dict):
            yield from check_dealt_text(epilogue, f"/epilogues{format_pointer([name])}", spec)
    for text in spec.get("labels", {}):
        yield from check_path(text, f"/labels{format_pointer([text])}", state_model)
    for index, solution in enumerate(spec.get("solutions", [])):
        yield from _check_solution(solution, f"/solutions/{index}", spec["actions"], state_model)


def check_dealt_text(text: dict[str, Any], place: str, spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield the findings about a text that depends on a deal."""
    deal = next((deal for deal in spec.get("deal", []) if deal["id"] == text["deal"]), None)
    keys = [dealt_key(value) for value in deal["values"]] if deal else [None]
    if None in keys:
        message = f"'{text['deal'][:64]}' is not the id of a deal whose values are texts, numbers or booleans"
        yield Finding("UNKNOWN_DEAL", f"{place}/deal", message)
        return
    missing = [key for key in keys if key is not None and key not in text["texts"]]
    if missing:
        message = f"the value '{missing[0][:64]}' of the deal needs a text"
        yield Finding("MISSING_KEY", f"{place}/texts", message)


def _check_solution(
    solution: dict[str, Any],
    place: str,
    actions: list[dict[str, Any]],
    state_model: StateModel,
) -> Iterator[Finding]:
    yield from check_expression(solution.get("when", {}), f"{place}/when", RuleScope(state_model))
    declared = {action["id"]: action["params"] for action in actions}
    for index, step in enumerate(solution["steps"]):
        yield from _check_move(step, f"{place}/steps/{index}", declared)
        when = f"{place}/steps/{index}/when"
        yield from check_expression(step.get("when", {}), when, RuleScope(state_model))
        if isinstance(step.get("otherwise"), dict):
            yield from _check_move(step["otherwise"], f"{place}/steps/{index}/otherwise", declared)


def _check_move(
    move: dict[str, Any],
    place: str,
    declared: dict[str, dict[str, Any]],
) -> Iterator[Finding]:
    name = move["action"]
    if name not in declared:
        message = f"'{name}' is not an action; the actions are {', '.join(sorted(declared))[:200]}"
        yield Finding("UNKNOWN_ACTION", f"{place}/action", message)
        return
    # The check of parameters knows numbers as the engine stores them.
    params = {key: _as_stored(value) for key, value in declared[name].items()}
    for problem in find_parameter_problems(params, _as_stored(move.get("params", {}))):
        yield Finding("BAD_STEP", f"{place}/params", f"for the action '{name}', {problem}")


def _as_stored(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_stored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_stored(item) for item in value]
    return float(value) if type(value) is int else value


def _check_limit(text: str, limit: dict[str, float], place: str, state: Any) -> Iterator[Finding]:
    if not limit:
        yield Finding("BAD_BOUNDS", place, "give 'min', 'max' or both")
    if limit.get("min", float("-inf")) > limit.get("max", float("inf")):
        yield Finding("BAD_BOUNDS", place, "min is above max")
    value = state
    try:
        path = parse_state_path(text)
    except EngineError as error:
        yield Finding(error.code, place, error.message)
        return
    for segment in path[1:]:
        value = MISSING if isinstance(value, list) else lookup(value, (segment,))
    if value is MISSING:
        message = f"'{text[:80]}' is not a value of the initial state, or is below an array"
        yield Finding("UNKNOWN_PATH", place, message)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        yield Finding("TYPE_MISMATCH", place, f"'{text[:80]}' does not hold a number")
    elif not limit.get("min", value) <= value <= limit.get("max", value):
        yield Finding("BAD_BOUNDS", place, f"the initial value of '{text[:80]}' is not within the bounds")


def _check_deal(entry: dict[str, Any], place: str, state_model: StateModel) -> Iterator[Finding]:
    try:
        path = parse_state_path(entry["path"])
    except EngineError as error:
        yield Finding(error.code, f"{place}/path", error.message)
        return
    if len(path) == 1:
        message = "the whole state cannot be set; name a key of it, such as state.a"
        yield Finding("BAD_PATH", f"{place}/path", message)
    elif lookup(state_model.state, path[1:]) is MISSING:
        message = f"'{entry['path'][:80]}' is not in the initial state"
        yield Finding("UNKNOWN_PATH", f"{place}/path", message)
    for index, value in enumerate(entry["values"]):
        if looks_like_code(value):
            message = "the values of a deal are literals, not operations or templates"
            yield Finding("CODE_IN_VALUE", f"{place}/values/{index}", message)
        if len(path) - 1 + measure(value).depth > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels of the state"
            yield Finding("LIMIT_EXCEEDED", f"{place}/values/{index}", message)
        try:
            state_model.bounds.clamp(path, value)
        except EngineError as error:
            yield Finding(error.code, f"{place}/values/{index}", error.message)


def _check_overlaps(deals: list[dict[str, Any]]) -> Iterator[Finding]:
    known = [
        (index, parse_state_path(entry["path"]))
        for index, entry in enumerate(deals)
        if is_state_path(entry["path"])
    ]
    for (_, one), (index, other) in combinations(known, 2):
        shorter = min(len(one), len(other))
        if one[:shorter] == other[:shorter]:
            yield Finding(
                "BAD_DEAL", f"/deal/{index}/path", "an earlier deal writes the same path, or one around it"
            )


def _check_deal_sizes(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield a finding if the state may outgrow its limits by the deal."""
    sizes = [[measure(value) for value in entry["values"]] for entry in spec.get("deal", [])]
    if not sizes:
        return
    initial = measure(spec["state"])
    nodes = initial.nodes + sum(max(size.nodes for size in values) for values in sizes)
    text = initial.text + sum(max(size.text for size in values) for values in sizes)
    if nodes > MAX_STATE_NODES or text > MAX_STATE_TEXT:
        yield Finding("LIMIT_EXCEEDED", "/deal", "the values of the deal may break the limits of the state")
