"""Conditions of policies: a filter by tool, and the other members as tests in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.convert import truthy
from peripety.sim._pure.logic import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.sim._pure.policies.entries import Lists
    from peripety.sim._pure.policies.tools import Annotation, Read

__all__ = ["Condition"]


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of a condition: its test and its path in the rule."""

    place: str
    holds: Callable[[Read], bool]


class Condition:
    """Condition of a rule.

    Args:
        when: the condition of the document.
        lists: the lists that it may refer to.
    """

    def __init__(self, when: dict[str, Any], lists: Lists) -> None:
        self._when = when
        self._members = [*_members(when, lists)]

    def fits(self, tool: Annotation) -> bool:
        """Return True if it can match calls of a tool.

        These tests cannot fail. If one is false, the condition is false before anything fails: members that
        depend on the tool precede all others but `roles`, which cannot fail either.
        """
        when = self._when
        return (
            ("servers" not in when or tool.server in when["servers"])
            and ("tools" not in when or tool.name in when["tools"])
            and ("read_only" not in when or tool.read_only is when["read_only"])
            and ("destructive" not in when or tool.destructive is when["destructive"])
            and ("argument_roles" not in when or not tool.roles.isdisjoint(when["argument_roles"]))
        )

    def holds(self, read: Read) -> bool:
        """Return True if it matches a request whose tool fits.

        Raises:
            CoreError: it cannot be evaluated; the path is that of the member.
        """
        for member in self._members:
            try:
                if not member.holds(read):
                    return False
            except CoreError as error:
                raise CoreError(error.code, error.message, member.place) from None
        return True


def _members(when: dict[str, Any], lists: Lists) -> Iterator[_Member]:
    """Yield the members that depend on more than the tool."""
    if "roles" in when:
        roles = frozenset(when["roles"])
        yield _Member("/when/roles", lambda read: not roles.isdisjoint(read.roles))
    for index, matcher in enumerate(when.get("arguments", ())):
        yield _Member(f"/when/arguments/{index}", _matcher(matcher, lists))
    if "logic" in when:
        logic = when["logic"]
        yield _Member("/when/logic", lambda read: truthy(evaluate(logic, read.root)))


def _matcher(matcher: dict[str, Any], lists: Lists) -> Callable[[Read], bool]:
    roles, kind = frozenset(matcher["argument_roles"]), matcher["kind"]
    match = lists.among(kind, matcher["among"]).match
    quantifier = matcher.get("quantifier", "all")

    def holds(read: Read) -> bool:
        values = read.values(roles, kind)
        if not values:
            return False
        matching = map(match, values)
        if quantifier in {"all", "not_all"}:
            return all(matching) is (quantifier == "all")
        return any(matching) is (quantifier == "any")

    return holds
