"""Script writer: scripts to TOML files."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from peripety.sim.patterns import Pattern, TextKind, TextPattern
from peripety.simulator.failures.kinds import KINDS
from peripety.simulator.scenario.fields import TEXT_FIELDS, UNBOUNDED
from peripety.simulator.scenario.model import Failure, Response, ScriptedCall
from peripety.simulator.scenario.readers import FILE, JSON
from peripety.simulator.scenario.toml import to_toml
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.simulator.scenario.model import Scenario

__all__ = ["scenario_to_document", "write_scenario"]

_SECTIONS = frozenset({"responses", "turns", "response", "default_response", "failures", "limits"})


def write_scenario(scenario: Scenario) -> str:
    """Format a script as TOML that reads back as the same script. Referenced files become values."""
    return to_toml(scenario_to_document(scenario), sections=_SECTIONS)


def scenario_to_document(scenario: Scenario) -> dict[str, Any]:
    """Return a script as the plain values of its file, without defaults."""
    document = dict(_given(scenario))
    rules = document.pop("responses", [])
    return {**document, "responses": rules}  # the long part comes last


def _given(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a value that differ from their defaults."""
    for field in fields(value):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if (given := getattr(value, field.name)) != default:
            yield field.name, _plain(given)


def _plain(value: Any) -> Any:
    plain: Any
    match value:
        case Pattern():
            plain = _pattern(value)
        case Response():
            given = dict(_given(value))
            plain = given if given.keys() - {"text"} else value.text
        case ScriptedCall():
            plain = {"tool": value.tool, "input": _input(value.input)}
        case Failure():
            plain = _failure(value)
        case tuple():
            plain = [_plain(item) for item in value]
        case StrEnum():
            plain = value.value
        case _ if is_dataclass(value):
            plain = dict(_given(value))
        case _:
            plain = value
    return plain


def _pattern(pattern: Pattern) -> dict[str, Any]:
    plain = _text_pattern(pattern.text)
    if pattern.model is not None:
        plain["model"] = _short(pattern.model, TextKind.GLOB)
    if pattern.tool_result is not None:
        plain["tool_result"] = _short(pattern.tool_result, TextKind.CONTAINS)
    if pattern.message_index is not None:
        plain["message_index"] = _range(*pattern.message_index)
    return plain


def _range(low: int, high: int) -> int | dict[str, int]:
    if low == high:
        return low
    return ({"from": low} if low > 0 else {}) | ({"to": high} if high < UNBOUNDED else {})


def _text_pattern(pattern: TextPattern) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": pattern.kind.value}
    if pattern.kind is not TextKind.ANY:
        plain[TEXT_FIELDS[pattern.kind]] = pattern.text
    if pattern.ignore_case:
        plain["ignore_case"] = True
    return plain


def _short(pattern: TextPattern, kind: TextKind) -> str | dict[str, Any]:
    return pattern.text if pattern == TextPattern(kind, pattern.text) else _text_pattern(pattern)


def _failure(failure: Failure) -> dict[str, Any]:
    defaults = KINDS[failure.type].defaults
    settings = {name: value for name, value in failure.settings.items() if value != defaults[name]}
    occurrence = {name: value for name, value in _given(failure) if name not in {"type", "settings"}}
    return {"type": failure.type, **settings, **occurrence}


def _input(value: Any) -> Any:
    """Return a JSON value, as JSON text if TOML cannot express it or would be ambiguous."""
    return {JSON: compact(value).decode()} if _needs_json(value) else value


def _needs_json(value: Any) -> bool:
    match value:
        case None:
            return True
        case dict():
            return value.keys() in ({FILE}, {JSON}) or any(map(_needs_json, value.values()))
        case list():
            return any(map(_needs_json, value))
        case _:
            return False
