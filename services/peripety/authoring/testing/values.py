"""Candidate values of an argument: boundary values, their neighbours, and disguised variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Value", "around_entry", "around_number", "of_schema"]

_ELSEWHERE = "elsewhere.example"
_SOMEONE = "someone"
_LONGEST = 60_000
"""The maximum length of a text value; a request must have room for others."""


@dataclass(frozen=True)
class Value:
    """Candidate value of an argument.

    Attributes:
        given: the value.
        borders: JSON Pointers of boundaries, each with its side.
        is_disguised: True if it could be mistaken for another value.
    """

    given: Any
    borders: frozenset[str] = frozenset()
    is_disguised: bool = False


def of_schema(schema: Any) -> Iterator[Value]:
    """Yield the values and bounds of a schema; empty if it has none."""
    if not isinstance(schema, dict):  # true and false are schemas, too
        return
    if "const" in schema:
        yield Value(schema["const"])
        return
    for value in (*(schema.get("examples") or ()), *(schema.get("enum") or ())):
        yield Value(value)
    if schema.get("enum"):
        return
    match schema.get("type"):
        case "boolean":
            yield from map(Value, (False, True))
        case "integer" | "number":
            bounds = [schema[name] for name in ("minimum", "maximum") if name in schema]
            yield from map(Value, bounds or (1, 0))
        case "string":
            yield Value("a" * min(max(1, schema.get("minLength") or 0), _LONGEST))
        case "array":
            yield from of_schema(schema.get("items") or {})
        case "object":
            yield Value({})


def around_number(number: Any, place: str) -> Iterator[Value]:
    """Yield a compared constant and its neighbours."""
    yield Value(number, frozenset({f"{place}/on"}))
    if isinstance(number, bool):
        yield Value(not number)
    elif isinstance(number, int | float):
        yield Value(number - 1, frozenset({f"{place}/below"}))
        yield Value(number + 1, frozenset({f"{place}/above"}))
        yield Value(str(number), is_disguised=True)
    elif isinstance(number, str):
        yield Value(f"{number}x", is_disguised=True)
        yield Value(number.upper() if number != number.upper() else number.lower(), is_disguised=True)


def around_entry(kind: str, entry: str, place: str) -> Iterator[Value]:
    """Yield values that match a matcher entry, adjacent values outside it, and lookalikes."""
    on, inside, outside = (frozenset({f"{place}/{side}"}) for side in ("on", "inside", "outside"))
    match kind:
        case "path":
            whole = entry.rstrip("/")
            parent = whole.rpartition("/")[0]
            yield Value(f"{whole}/inner", inside)
            yield Value(entry, on)
            yield Value(f"{whole}/inner/deeper/file", inside)
            if whole:
                yield Value(f"{whole}-next", outside, is_disguised=True)
                yield Value(parent or "/", outside)
                yield Value(f"{parent}/elsewhere", outside)
                yield Value(f"{whole}/../elsewhere", outside, is_disguised=True)
                yield Value(f"{whole}/./inner", inside, is_disguised=True)
                yield Value(
                    f"{parent}/elsewhere/..{whole.removeprefix(parent)}/inner", inside, is_disguised=True
                )
                yield Value(whole.upper(), is_disguised=True)
            yield Value("/elsewhere/example", is_disguised=False)
        case "domain" | "email":
            yield from _around_host(kind, entry, on, inside, outside)
        case _:
            yield Value(entry, on)
            yield Value(f"{entry}-next", is_disguised=True)
            yield Value(entry.upper() if entry != entry.upper() else entry.lower(), is_disguised=True)
            yield Value("something-else")


def _around_host(
    kind: str, entry: str, on: frozenset[str], inside: frozenset[str], outside: frozenset[str]
) -> Iterator[Value]:
    local, _, pattern = entry.rpartition("@")
    who = _SOMEONE if local in {"", "*"} else local
    below = pattern.startswith("*.")
    host = pattern.removeprefix("*.")

    def at(name: str) -> str:
        return f"{who}@{name}" if kind == "email" else name

    yield Value(at(f"www.{host}" if below else host), on | inside)
    yield Value(at(host if below else f"www.{host}"), outside)
    yield Value(at(f"not{host}"), outside, is_disguised=True)
    yield Value(at(f"{host}.{_ELSEWHERE}"), outside, is_disguised=True)
    yield Value(at(f"a.b.{host}"), inside if below else outside)
    yield Value(at((f"www.{host}" if below else host).upper()), is_disguised=True)
    yield Value(at(_ELSEWHERE))
    if kind == "email" and local not in {"", "*"}:
        yield Value(f"{_SOMEONE}-else@{host}", outside)
