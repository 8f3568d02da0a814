"""Effects: the only writes there are. A list of them is a transaction: all of it, or none of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure import durations
from peripety.sim._pure.border import MAX_DEPTH, MAX_STRING_BYTES
from peripety.sim._pure.convert import finite
from peripety.sim._pure.paths import MISSING, Path, child, format_path, lookup, parse_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.sim._pure.state import State

__all__ = [
    "MAX_LOG_LINES",
    "MAX_PENDING",
    "MAX_STATE_NODES",
    "MAX_STATE_TEXT",
    "Record",
    "apply_effects",
    "measure",
]

MAX_LOG_LINES = 256
MAX_PENDING = 256
MAX_STATE_NODES = 10_000
MAX_STATE_TEXT = 1 << 20


@dataclass
class Record:
    """What has happened to a state during one call, and how to take it back."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    draws: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)

    def fail(self, error: CoreError, rule: str) -> dict[str, str]:
        """Note that a rule failed; it had no effect."""
        entry = {"code": error.code, "rule": rule + error.path, "message": error.message}
        self.errors.append(entry)
        return entry


def apply_effects(
    state: State, effects: list[Any], derives: dict[str, Any], cause: str, record: Record
) -> None:
    """Apply a list of effects, all or none.

    Args:
        state: the run to change.
        effects: the effects as they stand in the document.
        derives: the values that their names stand for.
        cause: what the changes are recorded under, such as `action:a`.
        record: where the changes, and the way back, are written.

    Raises:
        CoreError: the first effect that failed, `path` being its place in the list. Nothing was applied.
    """
    transaction = _Transaction(state, derives, cause, record)
    at = ""
    try:
        for index, effect in enumerate(effects):
            at = f"/{index}"
            transaction.apply(effect)
        at = ""
        if transaction.grew:
            _check_limits(state)
    except CoreError as error:
        transaction.roll_back()
        raise CoreError(error.code, error.message, at) from None


class _Transaction:
    def __init__(self, state: State, derives: dict[str, Any], cause: str, record: Record) -> None:
        self.state = state
        self.derives = derives
        self.cause = cause
        self.record = record
        self.grew = False
        self.marks = (len(record.changes), len(record.log), len(record.undo))

    def roll_back(self) -> None:
        changes, log, undo = self.marks
        while len(self.record.undo) > undo:
            self.record.undo.pop()()
        del self.record.changes[changes:]
        del self.record.log[log:]

    def apply(self, effect: dict[str, Any]) -> None:
        operation = effect["op"]
        if operation == "addlog":
            self.add_log(effect["message"])
        elif operation == "schedule":
            self.schedule(effect)
        else:
            path = parse_path(effect["path"])
            _OPERATIONS[operation](self, path, self.resolve(effect.get("value")))

    def resolve(self, value: Any) -> Any:
        """A literal, or the derived value that a string names."""
        if isinstance(value, str) and value in self.derives:
            value = self.derives[value]
        return copy.deepcopy(value)

    # --- operations on the tree ---

    def set(self, path: Path, value: Any) -> None:
        holder = self.holder(path)
        before = child(holder, path[-1])
        if before is MISSING and (isinstance(holder, list) or isinstance(path[-1], int)):
            raise _missing(path)
        self.write(path, "set", holder, path[-1], value)

    def add(self, path: Path, value: Any, sign: float = 1.0) -> None:
        number = self.number(path)
        self.write(
            path,
            "inc" if sign > 0 else "dec",
            self.holder(path),
            path[-1],
            finite(number + sign * _amount(value)),
        )

    def subtract(self, path: Path, value: Any) -> None:
        self.add(path, value, -1.0)

    def multiply(self, path: Path, value: Any) -> None:
        number = self.number(path)
        self.write(path, "mul", self.holder(path), path[-1], finite(number * _amount(value)))

    def patch(self, path: Path, value: Any) -> None:
        target = self.existing(path, dict, "an object")
        if not isinstance(value, dict):
            raise CoreError("TYPE_MISMATCH", f"the value to merge is {kind_of(value)}, not an object")
        for key in sorted(value):
            self.write((*path, key), "patch", target, key, value[key])

    def push(self, path: Path, value: Any) -> None:
        target = self.existing(path, list, "an array")
        target.append(value)
        self.grew = True
        self.record.undo.append(lambda: _discard_last(target))
        self.note((*path, len(target) - 1), "push", MISSING, value)

    def pop(self, path: Path, _value: Any) -> None:
        target = self.existing(path, list, "an array")
        if not target:
            raise CoreError("EMPTY_ARRAY", f"'{format_path(path)}' is empty: there is nothing to remove")
        value = target.pop()
        self.record.undo.append(lambda: target.append(value))
        self.note((*path, len(target)), "pop", value, MISSING)

    # --- what they share ---

    def holder(self, path: Path) -> Any:
        holder = lookup(self.state.tree_value, path[1:-1])
        if not isinstance(holder, dict | list):
            raise _missing(path)
        return holder

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

    def write(self, path: Path, operation: str, holder: Any, key: str | int, value: Any) -> None:
        before = child(holder, key)
        self.grew = self.grew or before is MISSING or isinstance(value, str | list | dict)
        holder[key] = value
        self.record.undo.append(lambda: _restore(holder, key, before))
        self.note(path, operation, before, value)

    def note(self, path: Path, operation: str, before: Any, after: Any) -> None:
        change: dict[str, Any] = {"path": format_path(path), "op": operation, "cause": self.cause}
        if before is not MISSING:
            change["before"] = copy.deepcopy(before)
        if after is not MISSING:
            change["after"] = copy.deepcopy(after)
        self.record.changes.append(change)

    # --- operations beside the tree ---

    def add_log(self, message: str) -> None:
        line = {"turn": float(self.state.turn + 1), "message": message, "cause": self.cause}
        self.replace("log", [*self.state.log, line][-MAX_LOG_LINES:])
        self.record.log.append(line)

    def schedule(self, effect: dict[str, Any]) -> None:
        now = self.state.turn + 1
        clock = self.state.rules.turn_minutes
        if "at" in effect:
            due = max(durations.turns(effect["at"], clock), now + 1)
        else:
            due = now + durations.turns(effect["after"], clock)
        entry = {"id": effect["id"], "due": float(due), "effects": self.frozen(effect["effects"])}
        pending = [other for other in self.state.scheduled if other["id"] != effect["id"]]
        if len(pending) >= MAX_PENDING:
            raise CoreError("STATE_LIMIT", f"more than {MAX_PENDING} scheduled entries are pending")
        self.replace("scheduled", [*pending, entry])
        self.grew = True

    def frozen(self, effects: list[Any]) -> list[Any]:
        """Effects for later, with the derived values of now."""
        result = []
        for effect in effects:
            later = dict(effect)
            if "value" in effect:
                later["value"] = self.resolve(effect["value"])
            if "effects" in effect:
                later["effects"] = self.frozen(effect["effects"])
            result.append(later)
        return result

    def replace(self, name: str, value: list[Any]) -> None:
        before = getattr(self.state, name)
        setattr(self.state, name, value)
        self.record.undo.append(lambda: setattr(self.state, name, before))


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
    """What a value is, for a message."""
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


def _restore(holder: Any, key: str | int, before: Any) -> None:
    if before is MISSING:
        del holder[key]
    else:
        holder[key] = before


def _discard_last(target: list[Any]) -> None:
    target.pop()


def _check_limits(state: State) -> None:
    """A state may not outgrow its limits, whatever wrote to it."""
    tree, pending = measure(state.tree_value), measure(state.scheduled)
    if max(tree.longest, pending.longest) > MAX_STRING_BYTES:
        raise CoreError("STATE_LIMIT", f"a string is longer than {MAX_STRING_BYTES} bytes")
    if tree.deepest > MAX_DEPTH:
        raise CoreError("STATE_LIMIT", f"the state is nested deeper than {MAX_DEPTH} levels")
    if tree.nodes + pending.nodes > MAX_STATE_NODES:
        raise CoreError("STATE_LIMIT", f"the state has more than {MAX_STATE_NODES} values")
    if tree.text + pending.text > MAX_STATE_TEXT:
        raise CoreError("STATE_LIMIT", f"the state holds more than {MAX_STATE_TEXT} bytes of text")


@dataclass
class Size:
    """Values, levels of containers, bytes of text in all and in the longest string."""

    nodes: int = 0
    deepest: int = 0
    text: int = 0
    longest: int = 0


def measure(root: Any) -> Size:
    """How large a JSON value is."""
    size = Size()
    pending: list[tuple[Any, int]] = [(root, 1)]
    while pending:
        value, depth = pending.pop()
        size.nodes += 1
        if isinstance(value, str):
            length = len(value.encode("utf-8"))
            size.text += length
            size.longest = max(size.longest, length)
        elif isinstance(value, dict | list):
            size.deepest = max(size.deepest, depth)
            if isinstance(value, dict):
                size.text += sum(len(key.encode("utf-8")) for key in value)
            pending.extend(
                (item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)
            )
    return size
