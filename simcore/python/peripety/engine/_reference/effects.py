"""Effects: the only writes to a state, as atomic transactions; rules and random events that apply them.

A rule has a condition, derived values and effects. Random events add eligibility, a draw, and effects that
last several turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.engine._reference import limits
from peripety.engine._reference.jsonlogic import Evaluation
from peripety.engine._reference.jsonlogic_operators import is_truthy, require_finite
from peripety.engine._reference.limits import (
    MAX_LOG_LINES,
    MAX_PENDING,
    JsonSize,
    byte_length,
    check_limits,
    handling_cost,
    measure,
)
from peripety.engine.backend_protocol import EngineError
from peripety.engine.paths import MISSING, Path, format_path, get_child, lookup, parse_path, split_variable
from peripety.engine.rng import draw, stream_key, to_unit_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.engine._reference.state import ReferenceState


TURN_LIMIT = 100_000

# These errors fail the whole call, not only the rule.
_FATAL = frozenset({"STATE_LIMIT", "TURN_LIMIT"})


@dataclass
class CallTrace:
    """Results of one call on a state, and its remaining steps."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    draws: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    steps: int = TURN_LIMIT

    def record_failure(self, error: EngineError, rule: str) -> dict[str, str]:
        """Record a failed rule, which had no effect.

        Raises:
            EngineError: the error fails the whole call: `STATE_LIMIT`, `TURN_LIMIT`.
        """
        if error.code in _FATAL:
            raise EngineError(error.code, error.message, rule) from None
        entry = {"code": error.code, "rule": rule + error.path, "message": error.message}
        self.errors.append(entry)
        return entry

    def charge(self, steps: int) -> None:
        """Charge steps, which are not refunded if the rule fails.

        Raises:
            EngineError: `TURN_LIMIT`, if the call has no steps left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise EngineError("TURN_LIMIT", f"the call takes more than {TURN_LIMIT} steps")


def apply_effects(
    state: ReferenceState,
    effects: list[Any],
    derives: dict[str, Any],
    cause: str,
    record: CallTrace,
) -> None:
    """Apply a list of effects atomically.

    Args:
        state: the run to change.
        effects: the effects of the document.
        derives: values of derived names.
        cause: recorded with the changes, such as `action:a`.
        record: receives the changes and pays for the work.

    Raises:
        EngineError: the first failed effect; `path` is its index in the list. The state is unchanged.
    """
    before, changes, log = state.fork(), len(record.changes), len(record.log)
    transaction = _Transaction(state, derives, cause, record)
    at = ""
    try:
        for index, effect in enumerate(effects):
            at = f"/{index}"
            transaction.apply(effect)
        at = ""
        transaction.check()
    except EngineError as error:
        state.restore_from(before)
        del record.changes[changes:]
        del record.log[log:]
        raise EngineError(error.code, error.message, at) from None


class _Transaction:
    """Transaction of effects. Values are immutable: a write copies the containers along its path."""

    def __init__(self, state: ReferenceState, derives: dict[str, Any], cause: str, record: CallTrace) -> None:
        self.state = state
        self.derives = derives
        self.cause = cause
        self.record = record
        self.depth = 0
        self.longest_text = 0

    def apply(self, effect: dict[str, Any]) -> None:
        operation = effect["op"]
        if operation == "addlog":
            self.add_log(effect["message"])
        elif operation == "schedule":
            self.schedule(effect)
        else:
            path = parse_path(effect["path"])
            _OPERATIONS[operation](self, path, self.resolve(effect.get("value")))

    def check(self) -> None:
        """Raise if the state, or a value written to it, exceeds the limits."""
        check_limits(JsonSize(self.state.nodes, self.depth, self.state.text, self.longest_text))

    def resolve(self, value: Any) -> Any:
        """Return a literal, or the derived value that a string refers to."""
        return self.derives.get(value, value) if isinstance(value, str) else value

    # --- operations on the tree ---

    def set(self, path: Path, value: Any) -> None:
        holder = lookup(self.state.tree_value, path[1:-1])
        is_member = isinstance(holder, dict) and isinstance(path[-1], str)
        if get_child(holder, path[-1]) is MISSING and not is_member:
            raise _missing_path_error(path)
        self.write(path, "set", value)

    def add(self, path: Path, value: Any) -> None:
        self.write(path, "inc", require_finite(self.require_number(path) + _require_amount(value)))

    def subtract(self, path: Path, value: Any) -> None:
        self.write(path, "dec", require_finite(self.require_number(path) - _require_amount(value)))

    def multiply(self, path: Path, value: Any) -> None:
        self.write(path, "mul", require_finite(self.require_number(path) * _require_amount(value)))

    def patch(self, path: Path, value: Any) -> None:
        target = self.require_value(path, dict, "an object")
        if not isinstance(value, dict):
            raise EngineError("TYPE_MISMATCH", f"the value to merge is {describe_kind(value)}, not an object")
        stored = self.state.rules.bounds.clamp_members(path, value)
        for key, item in stored.items():
            self.record_change((*path, key), "patch", get_child(target, key), item)
        self.replace_at(path, {**target, **stored})

    def push(self, path: Path, value: Any) -> None:
        target = self.require_value(path, list, "an array")
        self.record_change((*path, len(target)), "push", MISSING, value)
        self.replace_at(path, [*target, value])

    def pop(self, path: Path, _value: Any) -> None:
        target = self.require_value(path, list, "an array")
        if not target:
            raise EngineError("EMPTY_ARRAY", f"'{format_path(path)}' is empty: there is nothing to remove")
        self.record_change((*path, len(target) - 1), "pop", target[-1], MISSING)
        self.replace_at(path, target[:-1])

    # --- helpers ---

    def require_value(self, path: Path, kind: type, wanted: str) -> Any:
        value = lookup(self.state.tree_value, path[1:])
        if value is MISSING:
            raise _missing_path_error(path)
        if not isinstance(value, kind):
            raise EngineError(
                "TYPE_MISMATCH",
                f"'{format_path(path)}' holds {describe_kind(value)}, not {wanted}",
            )
        return value

    def require_number(self, path: Path) -> float:
        value: float = self.require_value(path, float, "a number")
        return value

    def write(self, path: Path, operation: str, value: Any) -> None:
        value = self.state.rules.bounds.clamp(path, value)
        self.record_change(path, operation, lookup(self.state.tree_value, path[1:]), value)
        self.replace_at(path, value)

    def replace_at(self, path: Path, value: Any) -> None:
        self.state.tree_value = _replace_at(self.state.tree_value, path[1:], value)

    def record_change(self, path: Path, operation: str, before: Any, after: Any) -> None:
        """Record and charge a change, and update the size of the state."""
        change: dict[str, Any] = {"path": format_path(path), "op": operation, "cause": self.cause}
        old = new = JsonSize()
        if before is not MISSING:
            change["before"] = before
            old = measure(before, self.record.steps)
        if after is not MISSING:
            change["after"] = after
            new = measure(after, self.record.steps)
            self.longest_text = max(self.longest_text, new.longest_text)
            self.depth = max(self.depth, len(path) - 1 + new.depth)
        self.record.changes.append(change)
        self.record.charge(1 + handling_cost(old.nodes + new.nodes, old.text + new.text))
        self.state.nodes += new.nodes - old.nodes
        self.state.text += new.text - old.text
        if before is MISSING and isinstance(path[-1], str):
            self.state.text += byte_length(path[-1])

    # --- log and schedule ---

    def add_log(self, message: str) -> None:
        line = {"turn": float(self.state.turn + 1), "message": message, "cause": self.cause}
        self.state.log = [*self.state.log, line][-MAX_LOG_LINES:]
        self.record.log.append(line)

    def schedule(self, effect: dict[str, Any]) -> None:
        now = self.state.turn + 1
        clock = self.state.rules.turn_minutes
        if "at" in effect:
            due = max(limits.duration_in_turns(effect["at"], clock), now + 1)
        else:
            due = now + limits.duration_in_turns(effect["after"], clock)
        entry = {"id": effect["id"], "due": float(due), "effects": self.resolve_effects(effect["effects"])}
        self.state.unschedule(lambda other: other["id"] == entry["id"])
        if len(self.state.scheduled) >= MAX_PENDING:
            raise EngineError("STATE_LIMIT", f"more than {MAX_PENDING} scheduled entries are pending")
        size = measure(entry, self.record.steps)
        self.record.charge(1 + handling_cost(size.nodes, size.text))
        self.longest_text = max(self.longest_text, size.longest_text)
        self.state.nodes += size.nodes
        self.state.text += size.text
        self.state.scheduled = [*self.state.scheduled, entry]

    def resolve_effects(self, effects: list[Any]) -> list[Any]:
        """Return effects for later, with derived values resolved now."""
        result = []
        for effect in effects:
            later = dict(effect)
            if "value" in effect:
                later["value"] = self.resolve(effect["value"])
            if "effects" in effect:
                later["effects"] = self.resolve_effects(effect["effects"])
            result.append(later)
        return result


def _replace_at(holder: Any, path: Path, value: Any) -> Any:
    """Return a container with the value at a path replaced; everything beside the path is shared."""
    if not path:
        return value
    key, *below = path
    copy = holder.copy()
    copy[key] = _replace_at(get_child(holder, key), tuple(below), value)
    return copy


_OPERATIONS: dict[str, Callable[[_Transaction, Path, Any], None]] = {
    "set": _Transaction.set,
    "inc": _Transaction.add,
    "dec": _Transaction.subtract,
    "mul": _Transaction.multiply,
    "patch": _Transaction.patch,
    "push": _Transaction.push,
    "pop": _Transaction.pop,
}


def describe_kind(value: Any) -> str:
    """Return the kind of a value, for a message."""
    if value is None:
        return "null"
    names: dict[type, str] = {
        bool: "a boolean",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names[type(value)]


def _require_amount(value: Any) -> float:
    if not isinstance(value, float):
        raise EngineError("TYPE_MISMATCH", f"the amount is {describe_kind(value)}, not a number")
    return value


def _missing_path_error(path: Path) -> EngineError:
    return EngineError("MISSING_PATH", f"'{format_path(path)}' does not exist")


def apply_rule(
    state: ReferenceState,
    rule: dict[str, Any],
    place: str,
    cause: str,
    record: CallTrace,
    params: dict[str, Any],
) -> dict[str, str] | None:
    """Compute derived values and apply the effects of an action or event; return the error, if any."""
    try:
        derives = _compute_derives(state, rule.get("derives", {}), params, record)
    except EngineError as error:
        return record.record_failure(error, f"{place}/derives")
    return try_effects(state, rule["effects"], derives, cause, record, f"{place}/effects")


def try_effects(
    state: ReferenceState,
    effects: list[Any],
    derives: dict[str, Any],
    cause: str,
    record: CallTrace,
    place: str,
) -> dict[str, str] | None:
    """Apply effects atomically; return the error, if any."""
    try:
        apply_effects(state, effects, derives, cause, record)
    except EngineError as error:
        return record.record_failure(error, place)
    return None


def is_satisfied(
    state: ReferenceState,
    condition: dict[str, Any],
    params: dict[str, Any],
    record: CallTrace,
) -> bool:
    """Return True if a condition holds; the empty one always does."""
    return is_truthy(_evaluate(condition, build_data(state, params, {}), record))


def _compute_derives(
    state: ReferenceState,
    expressions: dict[str, Any],
    params: dict[str, Any],
    record: CallTrace,
) -> dict[str, Any]:
    """Compute the derived values in dependency order, otherwise by name."""
    derives: dict[str, Any] = {}

    def visit(name: str) -> None:
        if name in derives:
            return
        for other in sorted(find_derive_names(expressions[name]) & expressions.keys()):
            visit(other)
        try:
            derives[name] = _evaluate(expressions[name], build_data(state, params, derives), record)
        except EngineError as error:
            raise EngineError(error.code, error.message, f"/{escape_segment(name)}") from None

    for name in sorted(expressions):
        visit(name)
    return derives


def _evaluate(logic: Any, data: dict[str, Any], record: CallTrace) -> Any:
    """Evaluate an expression and charge the call for it, even if it fails."""
    run = Evaluation()
    try:
        return run.evaluate_whole(logic, data)
    finally:
        record.charge(run.total_cost)


def escape_segment(name: str) -> str:
    """Escape a key as a segment of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def find_derive_names(expression: Any) -> set[str]:
    """Return the names of derived values that an expression reads or tests for."""
    return {
        str(segments[1])
        for segments in iter_variables(expression)
        if len(segments) > 1 and segments[0] == "derives"
    }


def iter_variables(expression: Any) -> Iterator[Path]:
    """Yield the variables that an expression reads or tests for, as segments; none of them is all data."""
    if isinstance(expression, list):
        for item in expression:
            yield from iter_variables(item)
    elif isinstance(expression, dict):
        for item in expression.values():
            yield from iter_variables(item)
        operand = expression.get("var")
        names = [operand[0] if isinstance(operand, list) and operand else operand]
        for operator in ("missing", "missing_some"):
            names += _find_texts(expression.get(operator))
        yield from (split_variable(name) for name in names if isinstance(name, str))


def _find_texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _find_texts(item)]
    return [value] if isinstance(value, str) else []


def build_data(state: ReferenceState, params: dict[str, Any], derives: dict[str, Any]) -> dict[str, Any]:
    """Build the data that expressions read."""
    return {
        "state": state.tree_value,
        "params": params,
        "derives": derives,
        "turn": float(state.turn + 1),
        "entities": state.rules.entities,
    }


EVENT_STREAM = "event"
_EVENT_KEY = stream_key(EVENT_STREAM)


def select_event(state: ReferenceState, record: CallTrace) -> str | None:
    """Draw at most one random event, then apply the lasting ones; return the id of the drawn event."""
    now = state.turn + 1
    continuing = _find_lasting(state)
    fired = _draw_event(state, record)
    begun = _begin_event(state, fired, record) if fired is not None else None
    for entry in continuing:
        index = next(i for i, event in enumerate(state.rules.events) if event["id"] == entry["id"])
        _apply_event(state, index, record)
    state.lasting = [entry for entry in [*continuing, *([begun] if begun else [])] if entry["until"] > now]
    return None if fired is None else state.rules.events[fired]["id"]


def force_event(state: ReferenceState, index: int, record: CallTrace) -> bool:
    """Apply one event as if it were drawn; return True if it was eligible and succeeded."""
    return _is_eligible(state, index, record) and _apply_event(state, index, record) is None


def _find_lasting(state: ReferenceState) -> list[dict[str, Any]]:
    """Return the events that last through this turn."""
    return [entry for entry in state.lasting if entry["until"] > state.turn]


def _draw_event(state: ReferenceState, record: CallTrace) -> int | None:
    eligible = [index for index in range(len(state.rules.events)) if _is_eligible(state, index, record)]
    if not eligible:
        return None
    total = 0.0
    for index in eligible:
        total += state.rules.events[index]["weight"]
    value = draw(state.seed, _EVENT_KEY, state.turn + 1, 0)
    record.draws.append(
        {"stream": EVENT_STREAM, "turn": float(state.turn + 1), "index": 0.0, "value": f"{value:016x}"},
    )
    threshold = to_unit_interval(value) if total <= 1 else to_unit_interval(value) * total
    cumulative = 0.0
    for index in eligible:
        cumulative += state.rules.events[index]["weight"]
        if threshold < cumulative:
            return index
    return None


def _is_eligible(state: ReferenceState, index: int, record: CallTrace) -> bool:
    """Return True if an event can be drawn; one whose condition fails to evaluate cannot."""
    event = state.rules.events[index]
    if any(entry["id"] == event["id"] for entry in _find_lasting(state)):
        return False
    try:
        return is_satisfied(state, event["when"], {}, record)
    except EngineError as error:
        record.record_failure(error, f"/random_events/{index}/when")
        return False


def _begin_event(state: ReferenceState, index: int, record: CallTrace) -> dict[str, Any] | None:
    """Apply a drawn event; return its entry for later turns, or None if it failed."""
    failure = _apply_event(state, index, record)
    last = state.turn + state.rules.event_turns[index]
    return None if failure else {"id": state.rules.events[index]["id"], "until": float(last)}


def _apply_event(state: ReferenceState, index: int, record: CallTrace) -> dict[str, str] | None:
    event = state.rules.events[index]
    return apply_rule(state, event, f"/random_events/{index}", f"event:{event['id']}", record, {})
