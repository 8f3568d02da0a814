"""Failure report of a run: the scenarios that the rules do not meet, for a human decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.policies.compiling.blame import Attribution
    from peripety.policies.model import ScenarioResult

__all__ = ["not_met"]


def not_met(
    failures: Iterable[ScenarioResult], contested: Mapping[str, Attribution], opinions: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Return one finding for each scenario that the rules do not meet.

    Args:
        failures: the scenarios.
        contested: rejected corrections of a judge, by the description of the scenario.
        opinions: reasons for leaving rules unchanged, likewise.
    """
    return tuple(_finding(failure, contested, opinions) for failure in failures)


def _finding(
    failure: ScenarioResult, contested: Mapping[str, Attribution], opinions: Mapping[str, str]
) -> Finding:
    scenario, decided = failure.scenario, failure.actual
    by = f"rule {decided.rule_id}" if decided.rule_id else "no rule (the default is deny)"
    because = f" ({scenario.reasoning})" if scenario.reasoning else ""
    told = (
        f'"{scenario.description}" expects {scenario.expected_decision.value}{because}, '
        f"and {by} decides {decided.decision.value}"
    )
    word = contested.get(scenario.description)
    why = opinions.get(scenario.description)
    kept = f"; the rules were left as they are: {why}" if why else ""
    if word is None:
        return Finding("SCENARIO_NOT_MET", "", f"{told}{kept}")
    right = "something else" if word.corrected is None else word.corrected.value
    return Finding(
        "EXPECTATION_CONTESTED",
        "",
        f"{told}; the judge considers {right} correct: {word.reasoning}{kept}. A model must not decide this:"
        " write the request as a handwritten scenario, or change the written policy",
    )
