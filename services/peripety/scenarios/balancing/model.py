"""Balancing orders and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety.scenarios.model import DryRunOptions, Progress

if TYPE_CHECKING:
    from peripety.errors import Finding
    from peripety.scenarios.model import NumberEdit
    from peripety.sim import DryRunReport

__all__ = ["CONFIRMING_RUNS", "BalanceEvent", "BalanceOrder", "Balanced", "NotBalanced", "Target"]

CONFIRMING_RUNS = 10_000
"""The default number of runs that confirm a balance."""


# The resolution of 10,000 runs: half of their widest 95 % interval.
_RESOLUTION = 0.01
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Target:
    """Target band of a fail rate: two shares of runs, 0 … 1, both inclusive."""

    least: float
    most: float

    def met(self, rate: float) -> bool:
        """Return True if a measured rate is in the band, or indistinguishable from its middle."""
        return abs(rate - self.middle) <= max(self.width / 2, _RESOLUTION) + _ROUNDING

    def __str__(self) -> str:
        return f"{self.least:.1%} to {self.most:.1%}"

    @property
    def middle(self) -> float:
        """Return the middle of the band."""
        return (self.least + self.most) / 2

    @property
    def width(self) -> float:
        """Return the width of the band."""
        return self.most - self.least


@dataclass(frozen=True, slots=True)
class BalanceOrder:
    """Order of a balance.

    Attributes:
        document: the specification, any bytes.
        target: the target band.
        options: simulation options; `max_runs` are simulated before and after.
    """

    document: bytes
    target: Target
    options: DryRunOptions


@dataclass(frozen=True, slots=True)
class Balanced:
    """The fail rate is in the target; the last event.

    Attributes:
        document: the canonical specification.
        edits: the moved numbers; empty if the rate was in the target already.
        before: the runs of the original specification.
        after: the confirming runs of the result; the search used other runs.
    """

    document: bytes
    edits: tuple[NumberEdit, ...]
    before: DryRunReport
    after: DryRunReport


@dataclass(frozen=True, slots=True)
class NotBalanced:
    """The target is out of reach, or the specification has errors; the last event.

    Attributes:
        findings: the reasons.
        closest: the runs of the closest candidate; None without any.
    """

    findings: tuple[Finding, ...]
    closest: DryRunReport | None = None


BalanceEvent: TypeAlias = Progress | Balanced | NotBalanced
