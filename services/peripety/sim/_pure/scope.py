"""Narrator scope: the changes that the narrator may make by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from peripety.sim._core import CoreError
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.literals import forbidden_key, looks_like_code
from peripety.sim._pure.paths import MISSING, Path, format_path, parse_path, parse_state_path

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Allowance", "Scope"]

MAX_CHANGES = 64
_OPERATIONS = ("set", "inc", "dec", "mul", "patch", "push", "pop")
_MEMBERS = frozenset({"op", "path", "value"})
_COUNTING = frozenset({"inc", "dec"})
_CALCULATING = frozenset({"inc", "dec", "mul"})
_OPPOSITE = {"inc": "dec", "dec": "inc"}
# Limits of what a message shows of the allowed values.
_SHOWN_VALUES = 8
_SHOWN_VALUE = 60
_SHOWN_PATH = 80


class Allowance(NamedTuple):
    """One operation that the narrator may perform by itself.

    Attributes:
        path: as `parse_path` returns it.
        operation: the operation of an Outcome's change.
        below: True if every path below is allowed as well.
        limit: the largest magnitude of numbers in a value; None for any.
        values: the accepted values as canonical JSON, for `patch` one for each member; None for any.
    """

    path: Path
    operation: str
    below: bool = False
    limit: float | None = None
    values: tuple[str, ...] | None = None


class Scope:
    """Narrator scope of a scenario."""

    def __init__(self, spec: dict[str, Any]) -> None:
        grants = spec.get("narrator_scope")
        self._limits: _Limits = _Precedents(spec) if grants is None else _Grants(grants)

    def allowances(self) -> tuple[Allowance, ...]:
        """Return everything in scope, in document order."""
        return tuple(self._limits.allowances())

    def objections(self, changes: Any) -> list[dict[str, str]]:
        """Return the reasons to reject a list of changes, at most one for each change."""
        if not isinstance(changes, list) or len(changes) > MAX_CHANGES:
            message = f"state_changes is a list of at most {MAX_CHANGES} changes"
            return [{"code": "CHANGE_INVALID", "rule": "/state_changes", "message": message}]
        calculated: set[Path] = set()
        reasons = []
        for index, change in enumerate(changes):
            try:
                self._check(change, calculated)
            except CoreError as error:
                place = f"/state_changes/{index}"
                reasons.append({"code": error.code, "rule": place, "message": error.message})
        return reasons

    def _check(self, change: Any, calculated: set[Path]) -> None:
        """Raise if a change is malformed, dangerous, or out of scope.

        Args:
            change: a change that the narrator proposes.
            calculated: paths whose number an earlier change of the list calculates.
        """
        operation, path, value = _read(change)
        self._limits.check(operation, path, value)
        if operation not in _CALCULATING:
            return
        if path in calculated:
            # Otherwise many small changes could add up to a large one that is out of scope.
            message = f"the number {_shown(path)} may change once in a list; combine its changes into one"
            raise CoreError("OUT_OF_SCOPE", message)
        calculated.add(path)


class _Limits(Protocol):
    def check(self, operation: str, path: Path, value: Any) -> None:
        """Raise if a change is out of scope.

        Raises:
            CoreError: `OUT_OF_SCOPE`, with the fix.
        """

    def allowances(self) -> Iterator[Allowance]:
        """Yield everything in scope."""


# --- explicit grants ---


@dataclass(frozen=True)
class _Grant:
    path: Path
    operations: frozenset[str]
    limit: float | None


class _Grants(_Limits):
    """Entries of `narrator_scope`: a change is in scope if one of them allows it."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._grants = [
            _Grant(parse_path(entry["path"]), frozenset(entry["ops"]), entry.get("max_magnitude"))
            for entry in entries
        ]

    def allowances(self) -> Iterator[Allowance]:
        for grant in self._grants:
            for operation in _OPERATIONS:
                if operation in grant.operations:
                    yield Allowance(grant.path, operation, below=True, limit=grant.limit)

    def check(self, operation: str, path: Path, value: Any) -> None:
        covering = [grant for grant in self._grants if path[: len(grant.path)] == grant.path]
        # Adding a negative number is subtraction.
        done = _OPPOSITE[operation] if operation in _COUNTING and value < 0 else operation
        allowing = [grant for grant in covering if done in grant.operations]
        if not allowing:
            raise _not_among({op for grant in covering for op in grant.operations}, done, path)
        limits = [grant.limit for grant in allowing if grant.limit is not None]
        if len(limits) == len(allowing):
            _check_magnitude(operation, path, value, max(limits))


# --- default scope ---


class _Precedents(_Limits):
    """Default scope: writes that an action or event makes to the same path with the same operation.

    Only literals count, because the values of derived names are unknown.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self._amounts: dict[Path, float] = {}
        self._values: dict[Path, dict[str, set[str]]] = {}
        for operation, path, value in _writes(spec):
            if operation in _COUNTING:
                self._amounts[path] = max(self._amounts.get(path, 0.0), abs(value))
            else:
                known = self._values.setdefault(path, {}).setdefault(operation, set())
                known.update(_parts(operation, value))

    def allowances(self) -> Iterator[Allowance]:
        for path, amount in self._amounts.items():
            for operation in ("inc", "dec"):
                yield Allowance(path, operation, limit=amount)
        for path, known in self._values.items():
            for operation, values in known.items():
                yield Allowance(path, operation, values=tuple(sorted(values)))

    def check(self, operation: str, path: Path, value: Any) -> None:
        values = self._values.get(path, {})
        if operation in _COUNTING and path in self._amounts:
            _check_magnitude(operation, path, value, self._amounts[path])
        elif operation not in values:
            raise _not_among({*values, *(_COUNTING if path in self._amounts else ())}, operation, path)
        elif not values[operation].issuperset(_parts(operation, value)):
            listed = ", ".join(_listed(values[operation]))
            message = (
                f"the narrator may {operation} {_shown(path)} only with what the scenario does: {listed}"
            )
            raise CoreError("OUT_OF_SCOPE", message)


def _writes(spec: dict[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """Yield every write of the rules with a literal value, as (operation, path, value)."""
    for rule in [*spec["actions"], *spec["random_events"]]:
        derives = rule.get("derives", {})
        pending = list(rule["effects"])
        while pending:
            effect = pending.pop()
            pending.extend(effect.get("effects", ()))
            value = effect.get("value")
            if "path" in effect and not (isinstance(value, str) and value in derives):
                yield effect["op"], parse_path(effect["path"]), value


def _parts(operation: str, value: Any) -> set[str]:
    """Return the parts of a value that need a precedent: each member of a patch, nothing for pop."""
    if operation == "pop":
        return set()
    if operation == "patch" and value:
        return {_text({key: item}) for key, item in value.items()}
    return {_text(value)}


# --- parsing of changes ---


def _read(change: Any) -> tuple[str, Path, Any]:
    """Parse a change into operation, path and value; raise if it is malformed or dangerous."""
    if not isinstance(change, dict) or not change.keys() <= _MEMBERS:
        raise _invalid("a change is an object of op, path and value")
    operation, text, value = change.get("op"), change.get("path"), change.get("value", MISSING)
    if not isinstance(operation, str) or operation not in _OPERATIONS:
        raise _invalid(f"op must be one of {', '.join(_OPERATIONS)}")
    if not isinstance(text, str):
        raise _invalid("path must be a string, such as state.a")
    path = parse_state_path(text)
    if operation == "set" and len(path) == 1:
        raise CoreError("BAD_PATH", "the whole state cannot be set; name a key of it, such as state.a")
    _check_kind(operation, value)
    key = forbidden_key(value)
    if key is not None:
        message = f"the key '{key}' is dangerous to clients in other languages; choose another"
        raise CoreError("FORBIDDEN_KEY", message)
    if looks_like_code(value):
        raise CoreError("CODE_IN_VALUE", "values are literals; an operation or a template is none")
    return operation, path, value


def _check_kind(operation: str, value: Any) -> None:
    if operation == "pop":
        if value is not MISSING and value is not None:
            raise _invalid("pop takes no value")
    elif value is MISSING:
        raise _invalid(f"{operation} needs a value")
    elif operation in _CALCULATING and not isinstance(value, float):
        raise _invalid(f"the value of {operation} must be a number")
    elif operation == "patch" and not isinstance(value, dict):
        raise _invalid("the value of patch must be an object")


def _invalid(message: str) -> CoreError:
    return CoreError("CHANGE_INVALID", message)


# --- messages ---


def _not_among(operations: set[str], operation: str, path: Path) -> CoreError:
    allowed = ", ".join(name for name in _OPERATIONS if name in operations)
    mend = f"it may: {allowed}" if allowed else "leave this change out"
    return CoreError("OUT_OF_SCOPE", f"the narrator may not {operation} {_shown(path)}; {mend}")


def _check_magnitude(operation: str, path: Path, value: Any, limit: float) -> None:
    if _magnitude(value) > limit:
        message = f"the narrator may {operation} {_shown(path)} with numbers within ±{_text(limit)} only"
        raise CoreError("OUT_OF_SCOPE", message)


def _magnitude(value: Any) -> float:
    """Return the largest magnitude of a number in a value."""
    if isinstance(value, float):
        return abs(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((_magnitude(item) for item in items), default=0.0)


def _listed(values: set[str]) -> Iterator[str]:
    for text in sorted(values)[:_SHOWN_VALUES]:
        yield text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}…"
    if len(values) > _SHOWN_VALUES:
        yield "…"


def _shown(path: Path) -> str:
    return f"'{format_path(path)[:_SHOWN_PATH]}'"


def _text(value: Any) -> str:
    return canonical(value).decode("utf-8")
