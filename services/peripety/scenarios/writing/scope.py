"""Which parts of a document an answer may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.scenarios.parts import name_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.errors import Finding
    from peripety.scenarios.parts import Name

__all__ = ["EVERYTHING", "Scope", "scope_of"]

_BUDGET = "negativity_budget"


@dataclass(frozen=True, slots=True)
class Scope:
    """The parts that may be changed; a section stands for all of its parts, and () for the document."""

    names: frozenset[Name]

    def holds(self, name: Name) -> bool:
        """Whether a part may be changed."""
        return any(name[:length] in self.names for length in range(len(name) + 1))


EVERYTHING = Scope(frozenset({()}))


def scope_of(document: Any, findings: Iterable[Finding]) -> Scope:
    """The parts that findings are about. What is missing opens none: new parts may always be added."""
    return Scope(frozenset(_name(document, finding) for finding in findings if not _is_gap(finding)))


def _is_gap(finding: Finding) -> bool:
    return finding.code == "MISSING_KEY" and not finding.path


def _name(document: Any, finding: Finding) -> Name:
    name = name_at(document, finding.path)
    # Its figures are weighed against each other, so that what is wrong with one may be mended in another.
    return name[:1] if name[:1] == (_BUDGET,) else name
