"""Defects of a bundle and their line numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, Finding, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BundleError", "Defect"]


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of a bundle.

    Attributes:
        line: the line, from 1.
        finding: the problem; its path is a JSON Pointer into that line.
    """

    line: int
    finding: Finding

    @property
    def violation(self) -> FieldViolation:
        """The defect as a field violation, for a call that fails because of the bundle."""
        violation = self.finding.violation
        return replace(
            violation, field=f"line {self.line}{'' if violation.field == '/' else violation.field}"
        )


class BundleError(InvalidArgumentError):
    """A rejected bundle, with the reasons in line order."""

    default_code = "BUNDLE_INVALID"

    def __init__(self, defects: Iterable[Defect]) -> None:
        self.defects = tuple(defects)
        first = self.defects[0]
        super().__init__(
            f"bundle is invalid: line {first.line}: {first.finding.message}",
            violations=[defect.violation for defect in self.defects],
        )
