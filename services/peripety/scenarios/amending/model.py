"""Changes of stored scenarios: what is ordered, and what happens until it is done or refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from peripety.scenarios.model import FoundWrong, GenerationLimits, Level, NumbersMoved, Progress

if TYPE_CHECKING:
    from peripety.errors import Finding
    from peripety.gateway.model import Spent
    from peripety.scenarios.model import RuleEdit, ScenarioRecord

__all__ = ["AmendEvent", "Amended", "AmendmentOrder", "NotAmended", "Proposed"]


@dataclass(frozen=True, slots=True)
class AmendmentOrder:
    """What to change, and in what.

    Attributes:
        scenario_id: the scenario, in its latest version.
        instruction: the change, in any language.
        expected: hash of the version that the change was thought up for; None for whatever is the latest.
        model: as in `GenerateRequest.model`.
        level: what the result must pass, a dry-run at least; None for what the present version has passed.
        limits: caps on the model work.
    """

    scenario_id: str
    instruction: str
    expected: str | None = None
    model: str | None = None
    level: Level | None = None
    limits: GenerationLimits = field(default_factory=GenerationLimits)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A change that somebody proposes; it may still be wrong.

    Attributes:
        edits: what would differ from the present version.
        attempt: which answer of the model it is, from 1.
        spent: what the answer used.
    """

    edits: tuple[RuleEdit, ...]
    attempt: int
    spent: Spent


@dataclass(frozen=True, slots=True)
class Amended:
    """The change is stored as the latest version; the last event, once it is made."""

    record: ScenarioRecord
    edits: tuple[RuleEdit, ...]
    spent: Spent


@dataclass(frozen=True, slots=True)
class NotAmended:
    """The change could not be made, and the scenario is as it was; the last event."""

    findings: tuple[Finding, ...]
    spent: Spent


AmendEvent: TypeAlias = Progress | Proposed | FoundWrong | NumbersMoved | Amended | NotAmended
