"""The policy document in progress: fixed parts, and the ordered rules of each batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.policies.compiling.material import tool_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.policies.compiling.batches import Batch
    from peripety.policies.model import CompileOrder, ToolAnnotation, ToolRequest

__all__ = ["Rulebook", "Section", "document_of"]

_LONGEST_NAME = 200
_LONGEST_ID = 64
_HASH_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Section:
    """The rules for the tools of one batch.

    Attributes:
        batch: the tools; the rules apply to no others.
        rules: the rules, in order.
    """

    batch: Batch
    rules: tuple[Mapping[str, Any], ...]

    def bound(self) -> Section:
        """Return the section with rules that are restricted to the tools of the batch."""
        names = [tool.tool_name for tool in self.batch.tools]
        own: dict[str, Any] = {"servers": [self.batch.server_name]}
        if not self.batch.is_all:
            own["tools"] = names
        rules = [{**rule, "when": {**own, **rule["when"], "servers": own["servers"]}} for rule in self.rules]
        return Section(self.batch, tuple(rules))


class Rulebook:
    """The rules of all batches.

    Args:
        order: the order with the fixed parts.
        sections: the rules, in the order of the document. No request matches rules of two sections.

    Attributes:
        sections: the rules, with ids that are unique in the document.
    """

    def __init__(self, order: CompileOrder, sections: Iterable[Section]) -> None:
        self._order = order
        taken: set[str] = set()
        self.sections = tuple([_with_own_ids(section, taken) for section in sections])
        self._places = {
            (tool.server_name, tool.tool_name): place
            for place, section in enumerate(self.sections)
            for tool in section.batch.tools
        }

    def policy(self) -> sim.Policy:
        """Compile the document.

        Raises:
            SpecError: the document is invalid.
        """
        rules = [rule for section in self.sections for rule in section.rules]
        return sim.compile_policy(document_of(self._order, self._order.tools, rules))

    def place_of(self, request: ToolRequest) -> int:
        """Return the index of the section whose rules apply to a request; 0 for unknown tools."""
        return self._places.get((request.server_name, request.tool_name), 0)

    def first_of(self, place: int) -> int:
        """Return the index in the document of the first rule of a section."""
        return sum(len(section.rules) for section in self.sections[:place])

    def with_rules(self, place: int, rules: Sequence[Mapping[str, Any]]) -> Rulebook:
        """Return a copy with other rules in one section."""
        before, own, behind = self.sections[:place], self.sections[place], self.sections[place + 1 :]
        other = replace(own, rules=tuple(rules)).bound()
        taken = {rule["id"] for section in (*before, *behind) for rule in section.rules}
        return Rulebook(self._order, (*before, _with_own_ids(other, taken), *behind))


def document_of(
    order: CompileOrder, tools: Sequence[ToolAnnotation], rules: Sequence[Mapping[str, Any]], **parts: Any
) -> bytes:
    """Return a policy document in canonical form.

    Args:
        order: the order with the fixed parts: invariants and lists.
        tools: the tools of the document.
        rules: its rules, in order.
        parts: replacements of other members.

    Raises:
        InvalidArgumentError: a part is not JSON within the engine's limits.
    """
    digest = sha256(order.constitution.encode("utf-8", "replace")).hexdigest()
    return sim.canonical(
        {
            "policy_version": "1.0",
            "id": f"policy_{digest[:_HASH_CHARACTERS]}",
            "name": _name(order.constitution),
            "tools": [tool_document(tool) for tool in tools],
            "lists": dict(order.lists),
            "invariants": [*order.invariants],
            "rules": [*rules],
            **parts,
        }
    )


def _name(constitution: str) -> str:
    """Return the first line with text, without heading marks."""
    lines = (line.strip("# \t\r") for line in constitution.splitlines())
    return next(filter(None, lines), "policy")[:_LONGEST_NAME]


def _with_own_ids(section: Section, taken: set[str]) -> Section:
    """Return a section with a number appended to each used id, and mark its ids as used."""
    rules = []
    for rule in section.rules:
        name, number = rule["id"], 2
        while name in taken:
            ending = f"-{number}"
            name, number = rule["id"][: _LONGEST_ID - len(ending)] + ending, number + 1
        taken.add(name)
        rules.append(rule if name == rule["id"] else {**rule, "id": name})
    return replace(section, rules=tuple(rules))
