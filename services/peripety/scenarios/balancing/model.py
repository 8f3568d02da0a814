"""What balancing is asked for, and what comes of it."""

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
"""Runs that say whether a balance holds, unless the caller asks for another number."""


# What 10,000 runs tell apart: half of their widest 95 % interval.
_RESOLUTION = 0.01
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Target:
    """How often a persona should lose: between two shares of its runs, 0 … 1, both included."""

    least: float
    most: float

    def met(self, rate: float) -> bool:
        """Whether a measured rate is within it, or so close to its middle that no number of runs tells."""
        return abs(rate - self.middle) <= max(self.width / 2, _RESOLUTION) + _ROUNDING

    def __str__(self) -> str:
        return f"{self.least:.1%} to {self.most:.1%}"

    @property
    def middle(self) -> float:
        """The share in the middle."""
        return (self.least + self.most) / 2

    @property
    def width(self) -> float:
        """How far the ends are apart."""
        return self.most - self.least


@dataclass(frozen=True, slots=True)
class BalanceOrder:
    """What to balance.

    Attributes:
        document: the specification, any bytes.
        target: where to.
        options: who plays, and how; `max_runs` are played before and after.
    """

    document: bytes
    target: Target
    options: DryRunOptions


@dataclass(frozen=True, slots=True)
class Balanced:
    """The specification is where it should be; the last event.

    Attributes:
        document: the canonical specification.
        edits: the numbers that were moved; none when it was there already.
        before: the runs of the specification as it was.
        after: the runs of what it became, none of which the search has seen.
    """

    document: bytes
    edits: tuple[NumberEdit, ...]
    before: DryRunReport
    after: DryRunReport


@dataclass(frozen=True, slots=True)
class NotBalanced:
    """The target cannot be reached, or the specification has errors; the last event.

    Attributes:
        findings: why.
        closest: the closest that was reached, when it came to that.
    """

    findings: tuple[Finding, ...]
    closest: DryRunReport | None = None


BalanceEvent: TypeAlias = Progress | Balanced | NotBalanced
