"""Classes of tools that no condition distinguishes, so that each class is analyzed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.policies.analysis.logic import mentions_tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.policies.analysis.terms import Terms

__all__ = ["Kind", "Kinds"]

Kind: TypeAlias = tuple[tuple[int, ...], bytes, tuple[str, str] | None]
"""A tool class: the applicable condition groups, the annotation, and the names if a condition reads them."""

_OF_TOOLS = ("servers", "tools", "read_only", "destructive", "argument_roles")


class Kinds:
    """Index of conditions by the tools to which they can apply; of thousands, few apply to any one tool.

    Conditions with equal tool matchers form a group, and applicability is evaluated once per group.

    Args:
        whens: the conditions.
    """

    def __init__(self, whens: Sequence[Mapping[str, Any]]) -> None:
        self._whens = whens
        self._groups: list[list[int]] = []
        self._by_name: list[bool] = []
        self._all: list[int] = []
        self._by_server: dict[str, list[int]] = {}
        self._by_tool: dict[str, list[int]] = {}
        known: dict[Any, int] = {}
        self._group_of = [self._filed(known, number, when) for number, when in enumerate(whens)]

    def _filed(self, known: dict[Any, int], number: int, when: Mapping[str, Any]) -> int:
        key = tuple(_hashable(when.get(member)) for member in _OF_TOOLS)
        group = known.get(key)
        if group is None:
            group = known[key] = len(self._groups)
            self._groups.append([])
            self._by_name.append(False)
            self._index(group, when)
        self._groups[group].append(number)
        self._by_name[group] |= mentions_tool(when.get("logic"))
        return group

    def _index(self, group: int, when: Mapping[str, Any]) -> None:
        if "tools" in when:
            index, names = self._by_tool, when["tools"]
        elif "servers" in when:
            index, names = self._by_server, when["servers"]
        else:
            self._all.append(group)
            return
        for name in dict.fromkeys(names):
            index.setdefault(name, []).append(group)

    def groups(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the groups of some conditions."""
        return frozenset(self._group_of[number] for number in numbers)

    def about(self, server: str, tool: str) -> list[int]:
        """Return the groups that may apply to a tool, in order."""
        return sorted((*self._all, *self._by_server.get(server, ()), *self._by_tool.get(tool, ())))

    def kind(self, terms: Terms) -> Kind:
        """Return the class of a tool."""
        groups = self.about(terms.server, terms.tool)
        applying = tuple(group for group in groups if terms.applies(self._whens[self._groups[group][0]]))
        is_named = any(self._by_name[group] for group in applying)
        return applying, terms.told, (terms.server, terms.tool) if is_named else None

    def applying(self, kind: Kind) -> tuple[int, ...]:
        """Return the conditions that can hold for the tools of a class, in order."""
        return tuple(sorted(number for group in kind[0] for number in self._groups[group]))


def _hashable(asked: Any) -> Any:
    return tuple(asked) if isinstance(asked, list) else asked
