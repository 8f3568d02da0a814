"""Static checks of a scenario document: ids, sizes, keys, times, the budget, and JSONLogic expressions.

Expressions are checked for certain errors, and for forms that other engines read differently. `StateModel`
is a static model of the state: the initial paths, and those that effects can create.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from peripety.engine._reference import limits
from peripety.engine._reference.bounds import NumberBounds
from peripety.engine._reference.jsonlogic_operators import OPERATORS
from peripety.engine._reference.limits import MAX_STATE_NODES, MAX_STATE_TEXT, measure
from peripety.engine._reference.variants import list_rules
from peripety.engine.backend_protocol import EngineError
from peripety.engine.paths import (
    FORBIDDEN_KEYS,
    MISSING,
    Path,
    lookup,
    parse_path,
    parse_state_path,
    split_variable,
)
from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator


class StateModel:
    """Static model of a scenario's state."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.state = spec["state"]
        self.has_variants = spec["spec_version"] == "1.1"
        self.entities = {entity["id"] for entity in spec.get("entities", [])}
        self.bounds = NumberBounds(
            {text: limit for text, limit in spec.get("bounds", {}).items() if is_state_path(text)},
        )
        self._created_paths = set(_iter_created_paths(spec))
        self._created_containers = {path[:end] for path in self._created_paths for end in range(1, len(path))}

    def can_exist(self, path: Path) -> bool:
        """Return True if a path under `state` exists, or can exist later.

        Any index into an array counts, since arrays can grow. Any path below one that effects write counts as
        well.
        """
        return self.get_initial(path) is not MISSING or self._is_inside_created(path)

    def get_initial(self, path: Path) -> Any:
        """Return the initial value at a path; the last element of an array represents later ones."""
        value = self.state
        for segment in path[1:]:
            if isinstance(value, list) and value and _is_index(segment):
                value = value[min(int(segment), len(value) - 1)]
            else:
                value = lookup(value, (segment,))
        return value

    def may_appear_in_array(self, path: Path) -> bool:
        """Return True if the path passes an element of an initial array, which may not exist yet."""
        return any(
            isinstance(lookup(self.state, path[1:end]), list) and _is_index(path[end])
            for end in range(1, len(path))
        )

    def is_written(self, path: Path) -> bool:
        """Return True if an effect can replace the value at the path, or one of its containers."""
        return self._is_inside_created(path) or path in self._created_containers

    def _is_inside_created(self, path: Path) -> bool:
        return any(path[:end] in self._created_paths for end in range(1, len(path) + 1))


def is_state_path(text: str) -> bool:
    """Return True if a text is a path into the state."""
    try:
        parse_state_path(text)
    except EngineError:
        return False
    return True


def _is_index(segment: str | int) -> bool:
    return isinstance(segment, int) or (segment.isascii() and segment.isdecimal())


def _iter_created_paths(spec: dict[str, Any]) -> Iterator[Path]:
    yield from (parse_path(entry["path"]) for entry in spec.get("deal", []) if is_state_path(entry["path"]))
    for effect in iter_effects(spec):
        try:
            path = parse_path(effect.get("path", "state"))
        except EngineError:
            continue
        if effect["op"] == "set":
            yield path
        elif effect["op"] == "patch":
            value = effect["value"]
            yield from ((*path, key) for key in value) if isinstance(value, dict) else iter([path])


def iter_effects(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every effect of a scenario, including those inside schedules, for each variant of an action."""
    pending = [effect for rule in list_rules(spec) for effect in rule["effects"]]
    while pending:
        effect = pending.pop()
        yield effect
        pending.extend(effect.get("effects", []))


MAX_EFFECTS = 4096
_SECTIONS = ("entities", "actions", "random_events", "loss_conditions", "win_conditions", "deal", "solutions")


def check_document(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield the findings about the whole document."""
    yield from check_forbidden_keys(spec)
    yield from _check_duplicate_ids(spec)
    yield from _check_sizes(spec)
    yield from _check_clock(spec)
    yield from _check_budget(spec["negativity_budget"])


def check_forbidden_keys(spec: dict[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each key that is dangerous to clients in other languages."""
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(spec, ())]
    while pending:
        value, path = pending.pop()
        children = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in children:
            if key in FORBIDDEN_KEYS:
                message = f"the key '{key}' is dangerous to clients in other languages; choose another"
                yield Finding("FORBIDDEN_KEY", format_pointer((*path, key)), message)
            pending.append((item, (*path, key)))


def _check_duplicate_ids(spec: dict[str, Any]) -> Iterator[Finding]:
    ends: dict[str, str] = {}
    for section in _SECTIONS:
        seen = ends if section.endswith("_conditions") else {}
        for index, item in enumerate(spec.get(section, [])):
            place = format_pointer((section, index, "id"))
            if item["id"] in seen:
                yield Finding(
                    "DUPLICATE_ID",
                    place,
                    f"duplicate id '{item['id']}', already used at {seen[item['id']]}",
                )
            seen.setdefault(item["id"], place)


def _check_sizes(spec: dict[str, Any]) -> Iterator[Finding]:
    size = measure(spec["state"])
    if size.nodes > MAX_STATE_NODES:
        yield Finding(
            "LIMIT_EXCEEDED",
            "/state",
            f"{size.nodes} values; at most {MAX_STATE_NODES} are accepted",
        )
    if size.text > MAX_STATE_TEXT:
        yield Finding(
            "LIMIT_EXCEEDED",
            "/state",
            f"{size.text} bytes of text; at most {MAX_STATE_TEXT} are accepted",
        )
    effects = sum(1 for _ in iter_effects(spec))
    if effects > MAX_EFFECTS:
        yield Finding("LIMIT_EXCEEDED", "", f"{effects} effects; at most {MAX_EFFECTS} are accepted")


def _check_clock(spec: dict[str, Any]) -> Iterator[Finding]:
    if "clock" not in spec:
        return
    text = spec["clock"]["turn"]
    yield from check_duration(text, "/clock/turn")
    try:
        if limits.duration_in_minutes(text) == 0:
            yield Finding("BAD_DURATION", "/clock/turn", "a turn must take at least a minute")
    except EngineError:
        return


def check_duration(text: str, place: str) -> Iterator[Finding]:
    """Yield a finding if a text is not a duration."""
    try:
        limits.duration_in_minutes(text)
    except EngineError as error:
        yield Finding(error.code, place, error.message)


def _check_budget(budget: dict[str, Any]) -> Iterator[Finding]:
    if budget.get("max_fail_rate", 1) < budget["min_fail_rate"]:
        message = "max_fail_rate is below min_fail_rate; no scenario can meet both"
        yield Finding("BUDGET_CONTRADICTION", "/negativity_budget/max_fail_rate", message)


MAX_DEPTH = 64
_UNLIMITED = 10_000

# Minimum and maximum number of arguments. Forms that JSONLogic engines disagree on (no argument, a lone
# operand) are rejected.
_ARITY: dict[str, tuple[int, int]] = {
    "var": (1, 2),
    "missing": (1, _UNLIMITED),
    "missing_some": (2, 2),
    "if": (2, _UNLIMITED),
    "?:": (3, 3),
    "and": (1, _UNLIMITED),
    "or": (1, _UNLIMITED),
    "!": (1, 1),
    "!!": (1, 1),
    "==": (2, _UNLIMITED),
    "!=": (2, 2),
    "===": (2, _UNLIMITED),
    "!==": (2, 2),
    "<": (2, _UNLIMITED),
    "<=": (2, _UNLIMITED),
    ">": (2, _UNLIMITED),
    ">=": (2, _UNLIMITED),
    "+": (1, _UNLIMITED),
    "-": (1, _UNLIMITED),
    "*": (1, _UNLIMITED),
    "/": (2, _UNLIMITED),
    "%": (2, _UNLIMITED),
    "min": (1, _UNLIMITED),
    "max": (1, _UNLIMITED),
    "map": (2, 2),
    "filter": (2, 2),
    "reduce": (3, 3),
    "all": (2, 2),
    "some": (2, 2),
    "none": (2, 2),
    "merge": (1, _UNLIMITED),
    "in": (2, 2),
    "cat": (1, _UNLIMITED),
    "substr": (2, 3),
}
_ITERATORS = frozenset({"map", "filter", "reduce", "all", "some", "none"})


class VariableScope(Protocol):
    """Resolver of variables: the names that an expression may read."""

    @property
    def example(self) -> str:
        """A valid variable, for messages."""

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable.

        Args:
            text: the variable as written.
            path: its segments, at least one.
            place: pointer of the variable in the document.
        """


def check_expression(logic: Any, place: str, scope: VariableScope) -> Iterator[Finding]:
    """Yield the findings about an expression."""
    yield from _check_value(logic, place, scope, 1)


def _check_value(logic: Any, place: str, scope: VariableScope | None, depth: int) -> Iterator[Finding]:
    """Yield the findings about a part; without a scope inside an iterator, where elements are unknown."""
    if depth > MAX_DEPTH:
        yield Finding("TOO_DEEP", place, f"the expression is nested deeper than {MAX_DEPTH} levels")
        return
    if isinstance(logic, list):
        for index, item in enumerate(logic):
            yield from _check_value(item, f"{place}/{index}", scope, depth + 1)
    elif isinstance(logic, dict) and logic:
        yield from _check_operation(logic, place, scope, depth)


def _check_operation(
    logic: dict[str, Any],
    place: str,
    scope: VariableScope | None,
    depth: int,
) -> Iterator[Finding]:
    if len(logic) > 1:
        yield Finding("UNKNOWN_OPERATOR", place, "an operation has exactly one key, its operator")
        return
    ((name, operand),) = logic.items()
    if name not in OPERATORS:
        known = ", ".join(OPERATORS)
        yield Finding(
            "UNKNOWN_OPERATOR",
            place,
            f"'{name[:40]}' is not an operator; the operators are {known}",
        )
        return
    here = f"{place}{format_pointer([name])}"
    arguments = operand if isinstance(operand, list) else [operand]
    yield from _check_arity(name, arguments, here)
    if name == "var":
        yield from _check_variable(arguments[:1], here, scope)
        arguments = arguments[1:]
    elif name in {"missing", "missing_some"}:
        yield from _check_missing(name, arguments, here, scope)
    for index, argument in enumerate(arguments):
        inner = None if name in _ITERATORS and index == 1 else scope
        step = f"/{index}" if isinstance(operand, list) else ""
        yield from _check_value(argument, f"{here}{step}", inner, depth + 1)


def _check_arity(name: str, arguments: list[Any], place: str) -> Iterator[Finding]:
    least, most = _ARITY[name]
    if not least <= len(arguments) <= most:
        wanted = (
            f"{least}"
            if least == most
            else f"at least {least}"
            if most == _UNLIMITED
            else f"{least} to {most}"
        )
        yield Finding("WRONG_ARITY", place, f"'{name}' takes {wanted} arguments, not {len(arguments)}")


def _check_variable(arguments: list[Any], place: str, scope: VariableScope | None) -> Iterator[Finding]:
    if scope is None or not arguments:
        return
    text = arguments[0]
    yield from _check_name(text if isinstance(text, str) else "", place, scope)


def _check_missing(
    name: str,
    arguments: list[Any],
    place: str,
    scope: VariableScope | None,
) -> Iterator[Finding]:
    paths = arguments[1] if name == "missing_some" and len(arguments) > 1 else arguments
    if scope is None or not isinstance(paths, list):
        return
    for path in paths:
        if isinstance(path, str):
            yield from _check_name(path, place, scope)


def _check_name(text: str, place: str, scope: VariableScope) -> Iterator[Finding]:
    path = split_variable(text)
    if path:
        yield from scope.check_variable(text, path, place)
    else:
        message = f"a variable outside an iterator must be a fixed path, such as {scope.example}"
        yield Finding("DYNAMIC_PATH", place, message)


@dataclass(frozen=True, slots=True)
class RuleScope:
    """Variables in scope of one rule.

    Attributes:
        state_model: the paths under `state`.
        params: the parameters of the action.
        derives: the derived values of the rule.
    """

    example: ClassVar[str] = "state.a"

    state_model: StateModel
    params: frozenset[str] = frozenset()
    derives: frozenset[str] = frozenset()

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable."""
        root = path[0]
        name = str(path[1]) if len(path) > 1 else None
        if root == "state":
            if not (self.state_model.can_exist(path) or self.state_model.may_appear_in_array(path)):
                message = f"'{text[:80]}' is not in the state, and no effect creates it"
                yield Finding("UNKNOWN_PATH", place, message)
        elif root in {"params", "derives"}:
            known = self.params if root == "params" else self.derives
            if name not in known:
                listed = f"known: {', '.join(sorted(known))}" if known else f"the rule has no {root}"
                yield Finding("UNKNOWN_PATH", place, f"'{text[:80]}' does not exist; {listed}")
        elif root not in {"turn", "entities"}:
            message = f"'{text[:80]}' must start with state, params, derives, turn or entities"
            yield Finding("UNKNOWN_PATH", place, message)
