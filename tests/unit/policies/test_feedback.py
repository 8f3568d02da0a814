from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.engine.policies.types import Decision, ToolRequest
from peripety.policy.authoring.scenario_authors import feedback_message
from peripety.policy.types import (
    DiscardedScenario,
    Expectation,
    ScenarioCorrection,
    ScenarioFeedback,
    TestScenario,
)

PROBE = TestScenario(
    "a probe",
    ToolRequest("server", "tool", {"b": [1], "a": "é"}),
    Expectation.NOT_ALLOW,
    "nobody says so",
)
CORRECTION = ScenarioCorrection("a wrong one", Expectation.DENY, Expectation.ESCALATE, "somebody has to look")
DISCARDED = DiscardedScenario(
    replace(PROBE, description="an impossible one"),
    "protected-paths",
    Decision.DENY,
)
ALL = ScenarioFeedback((CORRECTION,), (DISCARDED,), (PROBE,))


def sections(feedback: ScenarioFeedback, **options: bool) -> list[str]:
    return feedback_message(feedback, **options).split("\n\n")


def test_corrections_come_before_discarded_scenarios_before_gaps_before_the_instruction() -> None:
    corrected, discarded, gaps, instruction = sections(ALL)
    for part in ('"a wrong one"', "not deny but escalate", "somebody has to look"):
        assert part in corrected
    for part in ('"an impossible one"', "protected-paths", "always says deny", "Do not write them again"):
        assert part in discarded
    for part in ("server/tool", '{"a": "é", "b": [1]}', "expected: not_allow"):
        assert part in gaps
    assert "take the place of the discarded ones" in instruction


@pytest.mark.parametrize(
    ("feedback", "left"),
    [
        (ScenarioFeedback(corrections=(CORRECTION,)), "a wrong one"),
        (ScenarioFeedback(discarded=(DISCARDED,)), "an impossible one"),
        (ScenarioFeedback(probes=(PROBE,)), "server/tool"),
    ],
)
def test_a_list_without_entries_has_no_section(feedback: ScenarioFeedback, left: str) -> None:
    section, _ = sections(feedback)
    assert left in section


def test_without_anything_to_say_the_instruction_remains() -> None:
    (instruction,) = sections(ScenarioFeedback())
    assert "Do not repeat a discarded scenario" in instruction
    assert "what a correction calls wrong" in instruction
    assert sections(ALL)[-1] == instruction


def test_corrected_scenarios_are_asked_for_again_only_when_that_is_wanted() -> None:
    assert "corrected and discarded ones" in sections(ALL, replace_corrected=True)[-1]
    assert "corrected and discarded ones" not in sections(ALL)[-1]


def test_the_same_findings_are_told_in_the_same_bytes() -> None:
    other = replace(PROBE, request=ToolRequest("server", "tool", {"a": "é", "b": [1]}))
    assert feedback_message(ScenarioFeedback(probes=(other,))) == feedback_message(
        ScenarioFeedback(probes=(PROBE,)),
    )
