"""Queries and results of the analysis, besides lint issues and policy differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sim.policies.types import ToolRequest

__all__ = ["Differs", "Equivalent", "Reach", "Reached", "Target", "Undecided", "Unreachable", "Verdict"]


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither a proof nor a witness was found.

    Attributes:
        why: one sentence for display.
    """

    why: str


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Proof that every request that the tools accept is decided alike."""


@dataclass(frozen=True, slots=True)
class Differs:
    """Some request is decided differently.

    Attributes:
        witness: such a request, confirmed on the engine.
    """

    witness: ToolRequest


Verdict: TypeAlias = Equivalent | Differs | Undecided
"""The result of comparing a variant with the original rules."""


@dataclass(frozen=True, slots=True)
class Target:
    """A set of requests to find: those that reach a rule and fulfil given conditions.

    Attributes:
        rule: index of the rule in `Policy.rules`; no earlier rule applies. The number of rules means that no
            rule applies.
        decides: True if the rule itself has to apply, possibly because it cannot be evaluated.
        holds: conditions, as in `when` of a rule, that must all hold.
        fails: conditions that must be evaluable and must not hold.
    """

    rule: int
    decides: bool = False
    holds: tuple[Mapping[str, Any], ...] = ()
    fails: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """A target can be reached.

    Attributes:
        request: a request that reaches it, confirmed on the engine.
    """

    request: ToolRequest


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Proof that no request that the tools accept reaches a target."""


Reach: TypeAlias = Reached | Unreachable | Undecided
"""The result of a search for a target."""
