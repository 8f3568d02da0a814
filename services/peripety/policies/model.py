"""What policies are tested by, and what was found out about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Decision",
    "DiscardedScenario",
    "ScenarioCorrection",
    "ScenarioFeedback",
    "ScenarioSource",
    "TestScenario",
    "ToolRequest",
]


class Decision(Enum):
    """What a policy says to a request, or is expected to say."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    NOT_ALLOW = "not_allow"
    """Deny or escalate: only ever expected."""


class ScenarioSource(Enum):
    """Who wrote a scenario."""

    GENERATED = "generated"
    HANDWRITTEN = "handwritten"
    """It is never changed, and never asked for again."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool that a policy decides on.

    Attributes:
        server_name: the server that offers the tool.
        tool_name: the tool.
        arguments: what it is called with.
    """

    server_name: str
    tool_name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TestScenario:
    """A request, and what the policy has to say to it.

    Attributes:
        description: what it is about; names it among the others.
        request: the request.
        expected_decision: what the policy has to say.
        reasoning: why.
        source: who wrote it.
    """

    __test__ = False  # it is none of pytest's

    description: str
    request: ToolRequest
    expected_decision: Decision
    reasoning: str
    source: ScenarioSource = ScenarioSource.GENERATED


@dataclass(frozen=True, slots=True)
class ScenarioCorrection:
    """A scenario that expected the wrong thing.

    Attributes:
        scenario_description: which one.
        original_decision: what it expected.
        corrected_decision: what is right.
        corrected_reasoning: why.
    """

    scenario_description: str
    original_decision: Decision
    corrected_decision: Decision
    corrected_reasoning: str


@dataclass(frozen=True, slots=True)
class DiscardedScenario:
    """A scenario that expects what no rule can bring about.

    Attributes:
        scenario: the scenario.
        rule: the structural rule that decides its request.
        actual: what that rule always says.
    """

    scenario: TestScenario
    rule: str
    actual: Decision


@dataclass(frozen=True, slots=True)
class ScenarioFeedback:
    """What the author of scenarios is told after they were verified.

    Attributes:
        corrections: scenarios that expected the wrong thing; they are put right already.
        discarded: scenarios that are in conflict with a structural rule.
        probes: requests that showed what no scenario covers.
    """

    corrections: tuple[ScenarioCorrection, ...] = ()
    discarded: tuple[DiscardedScenario, ...] = ()
    probes: tuple[TestScenario, ...] = ()
