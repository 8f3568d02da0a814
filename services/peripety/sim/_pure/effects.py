"""Effects: the only writes to a state. A list of effects is an atomic transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import durations
from peripety.sim._pure.convert import finite
from peripety.sim._pure.paths import MISSING, Path, child, format_path, lookup, parse_path
from peripety.sim._pure.size import (
    MAX_LOG_LINES,
    MAX_PENDING,
    Size,
    byte_length,
    check_limits,
    measure,
    steps_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.state import State

__all__ = ["TURN_LIMIT", "Record", "apply_effects"]

TURN_LIMIT = 100_000

# These errors fail the whole call, not only the rule.
_FATAL = frozenset({"STATE_LIMIT", "TURN_LIMIT"})


@dataclass
class Record:
    """Results of one call on a state, and its remaining steps."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    draws: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    steps: int = TURN_LIMIT

    def fail(self, error: CoreError, rule: str) -> dict[str, str]:
        """Record a failed rule, which had no effect.

        Raises:
            CoreError: the error fails the whole call: `STATE_LIMIT`, `TURN_LIMIT`.
        """
        if error.code in _FATAL:
            raise CoreError(error.code, error.message, rule) from None
        entry = {"code": error.code, "rule": rule + error.path, "message": error.message}
        self.errors.append(entry)
        return entry

    def charge(self, steps: int) -> None:
        """Charge steps, which are not refunded if the rule fails.

        Raises:
            CoreError: `TURN_LIMIT`, if the call has no steps left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise CoreError("TURN_LIMIT", f"the call takes more than {TURN_LIMIT} steps")


def apply_effects(
    state: State, effects: list[Any], derives: dict[str, Any], cause: str, record: Record
) -> None:
    """Apply a list of effects atomically.

    Args:
        state: the run to change.
        effects: the effects of the document.
        derives: values of derived names.
        cause: recorded with the changes, such as `action:a`.
        record: receives the changes and pays for the work.

    Raises:
        CoreError: the first failed effect; `path` is its index in the list. The state is unchanged.
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
    except CoreError as error:
        state.become(before)
        del record.changes[changes:]
        del record.log[log:]
        raise CoreError(error.code, error.message, at) from None


class _Transaction:
    """Transaction of effects. Values are immutable: a write copies the containers along its path."""

    def __init__(self, state: State, derives: dict[str, Any], cause: str, record: Record) -> None:
        self.state = state
        self.derives = derives
        self.cause = cause
        self.record = record
        self.deepest = 0
        self.longest = 0

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
        check_limits(Size(self.state.nodes, self.deepest, self.state.text, self.longest))

    def resolve(self, value: Any) -> Any:
        """Return a literal, or the derived value that a string refers to."""
        return self.derives.get(value, value) if isinstance(value, str) else value

    # --- operations on the tree ---

    def set(self, path: Path, value: Any) -> None:
        holder = lookup(self.state.tree_value, path[1:-1])
        is_member = isinstance(holder, dict) and isinstance(path[-1], str)
        if child(holder, path[-1]) is MISSING and not is_member:
            raise _missing(path)
        self.write(path, "set", value)

    def add(self, path: Path, value: Any) -> None:
        self.write(path, "inc", finite(self.number(path) + _amount(value)))

    def subtract(self, path: Path, value: Any) -> None:
        self.write(path, "dec", finite(self.number(path) - _amount(value)))

    def multiply(self, path: Path, value: Any) -> None:
        self.write(path, "mul", finite(self.number(path) * _amount(value)))

    def patch(self, path: Path, value: Any) -> None:
        target = self.existing(path, dict, "an object")
        if not isinstance(value, dict):
            raise CoreError("TYPE_MISMATCH", f"the value to merge is {kind_of(value)}, not an object")
        for key in sorted(value):
            self.note((*path, key), "patch", child(target, key), value[key])
        self.put(path, {**target, **value})

    def push(self, path: Path, value: Any) -> None:
        target = self.existing(path, list, "an array")
        self.note((*path, len(target)), "push", MISSING, value)
        self.put(path, [*target, value])

    def pop(self, path: Path, _value: Any) -> None:
        target = self.existing(path, list, "an array")
        if not target:
            raise CoreError("EMPTY_ARRAY", f"'{format_path(path)}' is empty: there is nothing to remove")
        self.note((*path, len(target) - 1), "pop", target[-1], MISSING)
        self.put(path, target[:-1])

    # --- helpers ---

    def existing(self, path: Path, kind: type, wanted: str) -> Any:
        value = lookup(self.state.tree_value, path[1:])
        if value is MISSING:
            raise _missing(path)
        if not isinstance(value, kind):
            raise CoreError("TYPE_MISMATCH", f"'{format_path(path)}' holds {kind_of(value)}, not {wanted}")
        return value

    def number(self, path: Path) -> float:
        value: float = self.existing(path, float, "a number")
        return value

    def write(self, path: Path, operation: str, value: Any) -> None:
        self.note(path, operation, lookup(self.state.tree_value, path[1:]), value)
        self.put(path, value)

    def put(self, path: Path, value: Any) -> None:
        self.state.tree_value = _replaced(self.state.tree_value, path[1:], value)

    def note(self, path: Path, operation: str, before: Any, after: Any) -> None:
        """Record and charge a change, and update the size of the state."""
        change: dict[str, Any] = {"path": format_path(path), "op": operation, "cause": self.cause}
        old = new = Size()
        if before is not MISSING:
            change["before"] = before
            old = measure(before, self.record.steps)
        if after is not MISSING:
            change["after"] = after
            new = measure(after, self.record.steps)
            self.longest = max(self.longest, new.longest)
            self.deepest = max(self.deepest, len(path) - 1 + new.deepest)
        self.record.changes.append(change)
        self.record.charge(1 + steps_for(old.nodes + new.nodes, old.text + new.text))
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
            due = max(durations.turns(effect["at"], clock), now + 1)
        else:
            due = now + durations.turns(effect["after"], clock)
        entry = {"id": effect["id"], "due": float(due), "effects": self.frozen(effect["effects"])}
        self.state.unschedule(lambda other: other["id"] == entry["id"])
        if len(self.state.scheduled) >= MAX_PENDING:
            raise CoreError("STATE_LIMIT", f"more than {MAX_PENDING} scheduled entries are pending")
        size = measure(entry, self.record.steps)
        self.record.charge(1 + steps_for(size.nodes, size.text))
        self.longest = max(self.longest, size.longest)
        self.state.nodes += size.nodes
        self.state.text += size.text
        self.state.scheduled = [*self.state.scheduled, entry]

    def frozen(self, effects: list[Any]) -> list[Any]:
        """Return effects for later, with derived values resolved now."""
        result = []
        for effect in effects:
            later = dict(effect)
            if "value" in effect:
                later["value"] = self.resolve(effect["value"])
            if "effects" in effect:
                later["effects"] = self.frozen(effect["effects"])
            result.append(later)
        return result


def _replaced(holder: Any, path: Path, value: Any) -> Any:
    """Return a container with the value at a path replaced; everything beside the path is shared."""
    if not path:
        return value
    key, *below = path
    copy = holder.copy()
    copy[key] = _replaced(child(holder, key), tuple(below), value)
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


def kind_of(value: Any) -> str:
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


def _amount(value: Any) -> float:
    if not isinstance(value, float):
        raise CoreError("TYPE_MISMATCH", f"the amount is {kind_of(value)}, not a number")
    return value


def _missing(path: Path) -> CoreError:
    return CoreError("MISSING_PATH", f"'{format_path(path)}' does not exist")
