"""Amendments of stored scenarios: the order and its events."""

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
    """Order of an amendment.

    Attributes:
        scenario_id: the scenario; its latest version is amended.
        instruction: the change, in any language.
        expected: hash of the version that the change is based on; None for the latest.
        model: as in `GenerateRequest.model`.
        level: the level that the result must pass, at least a dry-run; None for the level of the present
            version.
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
    """Proposed change; not yet validated.

    Attributes:
        edits: the differences to the present version.
        attempt: the number of the model's answer, from 1.
        spent: the usage of the answer.
    """

    edits: tuple[RuleEdit, ...]
    attempt: int
    spent: Spent


@dataclass(frozen=True, slots=True)
class Amended:
    """The change is stored as the latest version; the last event."""

    record: ScenarioRecord
    edits: tuple[RuleEdit, ...]
    spent: Spent


@dataclass(frozen=True, slots=True)
class NotAmended:
    """The change was rejected and the scenario is unchanged; the last event."""

    findings: tuple[Finding, ...]
    spent: Spent


AmendEvent: TypeAlias = Progress | Proposed | FoundWrong | NumbersMoved | Amended | NotAmended
