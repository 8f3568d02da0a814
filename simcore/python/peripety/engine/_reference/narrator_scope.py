"""Narrator scope: the changes that the narrator may make by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from peripety.engine._reference.bounds import NumberBounds
from peripety.engine._reference.effects import iter_variables
from peripety.engine._reference.limits import find_forbidden_key, looks_like_code
from peripety.engine._reference.variants import list_rules
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.paths import MISSING, Path, format_path, parse_path, parse_state_path

if TYPE_CHECKING:
    from collections.abc import Iterator


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


class NarratorPermission(NamedTuple):
    """One operation that the narrator may perform by itself.

    Attributes:
        path: as `parse_path` returns it.
        operation: the operation of an Outcome's change.
        includes_children: True if every path below is allowed as well.
        limit: the largest magnitude of numbers in a value; None for any.
        values: the accepted values as canonical JSON, for `patch` one for each member; None for any.
    """

    path: Path
    operation: str
    includes_children: bool = False
    limit: float | None = None
    values: tuple[str, ...] | None = None


class NarratorPermissions:
    """Narrator scope of a scenario."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._bounds = NumberBounds(spec.get("bounds", {}))
        grants = spec.get("narrator_scope")
        self._limits: _PermissionSource = _DefaultScope(spec) if grants is None else _ExplicitGrants(grants)

    def list_permissions(self) -> tuple[NarratorPermission, ...]:
        """Return everything in scope, in document order."""
        return tuple(self._limits.iter_permissions())

    def find_violations(self, changes: Any) -> list[dict[str, str]]:
        """Return the reasons to reject a list of changes, at most one for each change."""
        if not isinstance(changes, list) or len(changes) > MAX_CHANGES:
            message = f"state_changes is a list of at most {MAX_CHANGES} changes"
            return [{"code": "CHANGE_INVALID", "rule": "/state_changes", "message": message}]
        calculated: set[Path] = set()
        reasons = []
        for index, change in enumerate(changes):
            try:
                self._check(change, calculated)
            except EngineError as error:
                place = f"/state_changes/{index}"
                reasons.append({"code": error.code, "rule": place, "message": error.message})
        return reasons

    def _check(self, change: Any, calculated: set[Path]) -> None:
        """Raise if a change is malformed, dangerous, or out of scope.

        Args:
            change: a change that the narrator proposes.
            calculated: paths whose number an earlier change of the list calculates.
        """
        operation, path, value = _parse_change(change)
        self._check_bounds(operation, path, value)
        self._limits.check(operation, path, value)
        if operation not in _CALCULATING:
            return
        if path in calculated:
            # Otherwise many small changes could add up to a large one that is out of scope.
            message = (
                f"the number {_format_path(path)} may change once in a list; combine its changes into one"
            )
            raise EngineError("OUT_OF_SCOPE", message)
        calculated.add(path)

    def _check_bounds(self, operation: str, path: Path, value: Any) -> None:
        """Raise if a change writes something else than a number to a bounded path, or replaces its holder."""
        try:
            if operation == "set":
                self._bounds.clamp(path, value)
            elif operation == "patch":
                self._bounds.clamp_members(path, value)
        except EngineError as error:
            raise _change_error(error.message) from None


class _PermissionSource(Protocol):
    def check(self, operation: str, path: Path, value: Any) -> None:
        """Raise if a change is out of scope.

        Raises:
            EngineError: `OUT_OF_SCOPE`, with the fix.
        """

    def iter_permissions(self) -> Iterator[NarratorPermission]:
        """Yield everything in scope."""


# --- explicit grants ---


@dataclass(frozen=True)
class _Grant:
    path: Path
    operations: frozenset[str]
    limit: float | None


class _ExplicitGrants(_PermissionSource):
    """Entries of `narrator_scope`: a change is in scope if one of them allows it."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._grants = [
            _Grant(parse_path(entry["path"]), frozenset(entry["ops"]), entry.get("max_magnitude"))
            for entry in entries
        ]

    def iter_permissions(self) -> Iterator[NarratorPermission]:
        for grant in self._grants:
            for operation in _OPERATIONS:
                if operation in grant.operations:
                    yield NarratorPermission(grant.path, operation, includes_children=True, limit=grant.limit)

    def check(self, operation: str, path: Path, value: Any) -> None:
        covering = [grant for grant in self._grants if path[: len(grant.path)] == grant.path]
        # Adding a negative number is subtraction.
        done = _OPPOSITE[operation] if operation in _COUNTING and value < 0 else operation
        allowing = [grant for grant in covering if done in grant.operations]
        if not allowing:
            raise _operation_error({op for grant in covering for op in grant.operations}, done, path)
        limits = [grant.limit for grant in allowing if grant.limit is not None]
        if len(limits) == len(allowing):
            _check_magnitude(operation, path, value, max(limits))


# --- default scope ---


class _DefaultScope(_PermissionSource):
    """Default scope: writes that an action or event makes to the same path with the same operation.

    Only literals count, because the values of derived names are unknown. From version 1.1 on, a path that an
    end condition reads is never in scope: the narrator must not end the game by itself.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self._amounts: dict[Path, float] = {}
        self._values: dict[Path, dict[str, set[str]]] = {}
        decisive = [] if spec.get("spec_version") != "1.1" else list(_iter_end_reads(spec))
        for operation, path, value in _iter_literal_writes(spec):
            if _overlaps_any(path, decisive):
                continue
            if operation in _COUNTING:
                self._amounts[path] = max(self._amounts.get(path, 0.0), abs(value))
            else:
                known = self._values.setdefault(path, {}).setdefault(operation, set())
                known.update(_split_value(operation, value))

    def iter_permissions(self) -> Iterator[NarratorPermission]:
        for path, amount in self._amounts.items():
            for operation in ("inc", "dec"):
                yield NarratorPermission(path, operation, limit=amount)
        for path, known in self._values.items():
            for operation, values in known.items():
                yield NarratorPermission(path, operation, values=tuple(sorted(values)))

    def check(self, operation: str, path: Path, value: Any) -> None:
        values = self._values.get(path, {})
        if operation in _COUNTING and path in self._amounts:
            _check_magnitude(operation, path, value, self._amounts[path])
        elif operation not in values:
            raise _operation_error({*values, *(_COUNTING if path in self._amounts else ())}, operation, path)
        elif not values[operation].issuperset(_split_value(operation, value)):
            listed = ", ".join(_format_values(values[operation]))
            message = (
                f"the narrator may {operation} {_format_path(path)} only with what "
                f"the scenario does: {listed}"
            )
            raise EngineError("OUT_OF_SCOPE", message)


def _iter_literal_writes(spec: dict[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """Yield every write of the rules with a literal value, as (operation, path, value)."""
    for rule in list_rules(spec):
        derives = rule.get("derives", {})
        pending = list(rule["effects"])
        while pending:
            effect = pending.pop()
            pending.extend(effect.get("effects", ()))
            value = effect.get("value")
            if "path" in effect and not (isinstance(value, str) and value in derives):
                yield effect["op"], parse_path(effect["path"]), value


def _iter_end_reads(spec: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths below the state that the end conditions read, as texts; an empty one is all of it."""
    for end in (*spec["loss_conditions"], *spec.get("win_conditions", ())):
        for segments in iter_variables(end["when"]):
            if not segments or segments[0] == "state":
                yield tuple(map(str, segments[1:]))


def _overlaps_any(path: Path, others: list[tuple[str, ...]]) -> bool:
    """Return True if a path is one of some others, above one or below one."""
    own = tuple(map(str, path[1:]))
    return any(own[: len(other)] == other[: len(own)] for other in others)


def _split_value(operation: str, value: Any) -> set[str]:
    """Return the parts of a value that need a precedent: each member of a patch, nothing for pop."""
    if operation == "pop":
        return set()
    if operation == "patch" and value:
        return {_format_value({key: item}) for key, item in value.items()}
    return {_format_value(value)}


# --- parsing of changes ---


def _parse_change(change: Any) -> tuple[str, Path, Any]:
    """Parse a change into operation, path and value; raise if it is malformed or dangerous."""
    if not isinstance(change, dict) or not change.keys() <= _MEMBERS:
        raise _change_error("a change is an object of op, path and value")
    operation, text, value = change.get("op"), change.get("path"), change.get("value", MISSING)
    if not isinstance(operation, str) or operation not in _OPERATIONS:
        raise _change_error(f"op must be one of {', '.join(_OPERATIONS)}")
    if not isinstance(text, str):
        raise _change_error("path must be a string, such as state.a")
    path = parse_state_path(text)
    if operation == "set" and len(path) == 1:
        raise EngineError("BAD_PATH", "the whole state cannot be set; name a key of it, such as state.a")
    _check_kind(operation, value)
    key = find_forbidden_key(value)
    if key is not None:
        message = f"the key '{key}' is dangerous to clients in other languages; choose another"
        raise EngineError("FORBIDDEN_KEY", message)
    if looks_like_code(value):
        raise EngineError("CODE_IN_VALUE", "values are literals; an operation or a template is none")
    return operation, path, value


def _check_kind(operation: str, value: Any) -> None:
    if operation == "pop":
        if value is not MISSING and value is not None:
            raise _change_error("pop takes no value")
    elif value is MISSING:
        raise _change_error(f"{operation} needs a value")
    elif operation in _CALCULATING and not isinstance(value, float):
        raise _change_error(f"the value of {operation} must be a number")
    elif operation == "patch" and not isinstance(value, dict):
        raise _change_error("the value of patch must be an object")


def _change_error(message: str) -> EngineError:
    return EngineError("CHANGE_INVALID", message)


# --- messages ---


def _operation_error(operations: set[str], operation: str, path: Path) -> EngineError:
    allowed = ", ".join(name for name in _OPERATIONS if name in operations)
    mend = f"it may: {allowed}" if allowed else "leave this change out"
    return EngineError("OUT_OF_SCOPE", f"the narrator may not {operation} {_format_path(path)}; {mend}")


def _check_magnitude(operation: str, path: Path, value: Any, limit: float) -> None:
    if _max_magnitude(value) > limit:
        message = (
            f"the narrator may {operation} {_format_path(path)} with numbers within "
            f"±{_format_value(limit)} only"
        )
        raise EngineError("OUT_OF_SCOPE", message)


def _max_magnitude(value: Any) -> float:
    """Return the largest magnitude of a number in a value."""
    if isinstance(value, float):
        return abs(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((_max_magnitude(item) for item in items), default=0.0)


def _format_values(values: set[str]) -> Iterator[str]:
    for text in sorted(values)[:_SHOWN_VALUES]:
        yield text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}…"
    if len(values) > _SHOWN_VALUES:
        yield "…"


def _format_path(path: Path) -> str:
    return f"'{format_path(path)[:_SHOWN_PATH]}'"


def _format_value(value: Any) -> str:
    return canonicalize(value).decode("utf-8")
