"""Mutation operators of conditions: drop or negate members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.mutations.changes import GONE, Change
from peripety.mutations.steps import some
from peripety.policies.mutating.changes import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["OPERATORS"]

_NAMES = {"servers": "drop_server", "tools": "drop_tool", "roles": "drop_role"}
_FLAGS = {"read_only": "flip_read_only", "destructive": "flip_destructive"}
_MEMBERS = (*_NAMES, "argument_roles", *_FLAGS, "logic")


def _drop_member(rule: Mapping[str, Any]) -> Iterator[Change]:
    """Drop a member; matchers are dropped one by one."""
    when = rule["when"]
    for member in _MEMBERS:
        if member not in when:
            continue
        if len(when) > 1:
            yield Change(("when", member), when[member], GONE)
        elif when != ALWAYS:
            yield Change(("when",), when, ALWAYS)


def _drop_matcher(rule: Mapping[str, Any]) -> Iterator[Change]:
    when = rule["when"]
    matchers = when.get("arguments", ())
    for index, matcher in enumerate(matchers):
        if len(matchers) > 1:
            yield Change(("when", "arguments", index), matcher, GONE)
        elif len(when) > 1:
            yield Change(("when", "arguments"), matchers, GONE)
        else:
            yield Change(("when",), when, ALWAYS)


def _drop_name(member: str) -> Callable[[Mapping[str, Any]], Iterator[Change]]:
    """Return an operator that drops one of several names."""

    def operator(rule: Mapping[str, Any]) -> Iterator[Change]:
        names = rule["when"].get(member, ())
        if len(names) > 1:
            for index, name in some(names):
                yield Change(("when", member, index), name, GONE)

    return operator


def _drop_argument_role(rule: Mapping[str, Any]) -> Iterator[Change]:
    yield from _drop_name("argument_roles")(rule)
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        roles = matcher["argument_roles"]
        if len(roles) > 1:
            for index, role in some(roles):
                yield Change(("when", "arguments", number, "argument_roles", index), role, GONE)


def _flip(member: str) -> Callable[[Mapping[str, Any]], Iterator[Change]]:
    def operator(rule: Mapping[str, Any]) -> Iterator[Change]:
        if member in rule["when"]:
            asked = rule["when"][member]
            yield Change(("when", member), asked, not asked)

    return operator


OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Change]]] = {
    "drop_member": _drop_member,
    "drop_matcher": _drop_matcher,
    **{name: _drop_name(member) for member, name in _NAMES.items()},
    "drop_argument_role": _drop_argument_role,
    **{name: _flip(member) for member, name in _FLAGS.items()},
}
"""The operators by name."""
