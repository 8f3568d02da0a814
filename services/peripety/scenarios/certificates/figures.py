"""Figures of a certificate, computed from counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import InternalError
from peripety.scenarios.certificates.model import (
    ActionCount,
    NamedCount,
    PersonaReport,
    Rate,
    TurnCount,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.sim import DryRunReport, Persona

__all__ = ["dead_actions", "dominant_actions", "persona_report", "report_of"]

_ENOUGH_TURNS = 200
_ALMOST_ALWAYS = 0.9


def persona_report(spec: Mapping[str, Any], counted: DryRunReport) -> PersonaReport:
    """Return the report of a persona, from detailed runs."""
    detail = counted.detail
    if detail is None:
        raise InternalError("Runs were counted without their detail")
    return PersonaReport(
        persona=counted.persona,
        turns=counted.turns,
        lost=Rate.of(counted.lost, counted.runs),
        won=Rate.of(counted.won, counted.runs),
        survived=Rate.of(counted.survived, counted.runs),
        errored=counted.errored,
        losses=_named(spec["loss_conditions"], counted.losses),
        wins=_named(spec.get("win_conditions", ()), counted.wins),
        loss_turns=tuple(TurnCount(turn, count) for turn, count in detail.lost_turns.items() if count),
        actions=tuple(
            ActionCount(name, detail.actions[name].legal, detail.actions[name].taken)
            for name in _ids(spec["actions"])
        ),
        events=_named(spec["random_events"], detail.events),
    )


def dead_actions(reports: Sequence[PersonaReport]) -> tuple[str, ...]:
    """Return the actions that were never legal for any persona."""
    legal: dict[str, int] = {}
    for report in reports:
        for action in report.actions:
            legal[action.id] = legal.get(action.id, 0) + action.legal
    return tuple(name for name, turns in legal.items() if not turns)


def dominant_actions(reports: Sequence[PersonaReport]) -> tuple[str, ...]:
    """Return the actions that the planner takes almost whenever they are legal, if that was often enough.

    The planner weighs an action against all others and against doing nothing, which is always legal. Of equal
    candidates it does nothing, so an action without any effect is never dominant.
    """
    planner = report_of("planner", reports)
    return tuple(
        action.id
        for action in (planner.actions if planner else ())
        if action.legal >= _ENOUGH_TURNS and action.taken >= _ALMOST_ALWAYS * action.legal
    )


def report_of(persona: Persona, reports: Sequence[PersonaReport]) -> PersonaReport | None:
    """Return the report of one persona, if it played."""
    return next((report for report in reports if report.persona == persona), None)


def _named(parts: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> tuple[NamedCount, ...]:
    return tuple(NamedCount(name, counts[name]) for name in _ids(parts))


def _ids(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    return [part["id"] for part in parts]
