"""Edit scope: the parts of a document that an answer may change."""

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
    """Set of changeable parts; a section includes all of its parts, and () the whole document."""

    names: frozenset[Name]

    def holds(self, name: Name) -> bool:
        """Return True if a part may be changed."""
        return any(name[:length] in self.names for length in range(len(name) + 1))


EVERYTHING = Scope(frozenset({()}))


def scope_of(document: Any, findings: Iterable[Finding]) -> Scope:
    """Return the parts with findings. A missing part adds nothing, because new parts may always be added."""
    return Scope(frozenset(_name(document, finding) for finding in findings if not _is_gap(finding)))


def _is_gap(finding: Finding) -> bool:
    return finding.code == "MISSING_KEY" and not finding.path


def _name(document: Any, finding: Finding) -> Name:
    name = name_at(document, finding.path)
    # Its figures depend on each other, so a finding in one may need a change in another.
    return name[:1] if name[:1] == (_BUDGET,) else name
