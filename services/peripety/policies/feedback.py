"""Feedback message to the author of scenarios after verification."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.policies.model import (
        DiscardedScenario,
        ScenarioCorrection,
        ScenarioFeedback,
        TestScenario,
    )

__all__ = ["feedback_message"]

_CORRECTED = "These scenarios expected the wrong decision:"
_DISCARDED = (
    "These scenarios were discarded, because a structural rule decides their request before any other rule"
    " can. Do not write them again:"
)
_UNCOVERED = "No scenario covers these requests yet:"
_INSTRUCTION = (
    "Write scenarios that take the place of the {replaced} ones, and scenarios for what is not covered, if"
    " any is listed. Stay consistent with the corrections. Do not repeat a discarded scenario, nor expect"
    " again what a correction calls wrong."
)


def feedback_message(feedback: ScenarioFeedback, *, replace_corrected: bool = False) -> str:
    """Return the message: a section for each list that is not empty, and the instruction at the end.

    Args:
        feedback: the feedback.
        replace_corrected: True to request replacements for the corrected scenarios too.
    """
    sections = (
        _section(_CORRECTED, map(_correction, feedback.corrections)),
        _section(_DISCARDED, map(_discarded, feedback.discarded)),
        _section(_UNCOVERED, map(_probe, feedback.probes)),
        [_INSTRUCTION.format(replaced="corrected and discarded" if replace_corrected else "discarded")],
    )
    return "\n\n".join("\n".join(section) for section in sections if section)


def _section(title: str, entries: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"- {'; '.join(entry)}" for entry in entries]
    return [title, *lines] if lines else []


def _correction(correction: ScenarioCorrection) -> Iterator[str]:
    yield json.dumps(correction.scenario_description, ensure_ascii=False)
    yield f"not {correction.original_decision.value} but {correction.corrected_decision.value}"
    yield f"because {correction.corrected_reasoning}"


def _discarded(discarded: DiscardedScenario) -> Iterator[str]:
    yield json.dumps(discarded.scenario.description, ensure_ascii=False)
    yield f"the rule {discarded.rule} always says {discarded.actual.value}"


def _probe(probe: TestScenario) -> Iterator[str]:
    request = probe.request
    arguments = json.dumps(dict(request.arguments), ensure_ascii=False, sort_keys=True)
    yield f"{request.server_name}/{request.tool_name} with {arguments}"
    yield f"expected: {probe.expected_decision.value}"
