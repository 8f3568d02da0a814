"""What is asked of an analysis besides issues and differences, and what it answers."""

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
        why: one sentence for a person.
    """

    why: str


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Every request that the tools accept is decided the same; this is proved."""


@dataclass(frozen=True, slots=True)
class Differs:
    """Some request is decided differently.

    Attributes:
        witness: one, which was replayed on the engine.
    """

    witness: ToolRequest


Verdict: TypeAlias = Equivalent | Differs | Undecided
"""How a variant of some rules compares with them."""


@dataclass(frozen=True, slots=True)
class Target:
    """Requests that are wanted: those that get as far as a rule, and do there what is asked for.

    Attributes:
        rule: index of the rule in `Policy.rules`; none before it takes hold. Their number stands for what
            happens when none does.
        decides: whether the rule has to take hold itself, be it that it cannot be evaluated.
        holds: conditions, as in `when` of a rule, that all have to hold.
        fails: conditions that must not hold, and which can be evaluated.
    """

    rule: int
    decides: bool = False
    holds: tuple[Mapping[str, Any], ...] = ()
    fails: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """A target can be reached.

    Attributes:
        request: how; it was replayed on the engine.
    """

    request: ToolRequest


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No request that the tools accept reaches a target; this is proved."""


Reach: TypeAlias = Reached | Unreachable | Undecided
"""Whether a target can be reached."""
