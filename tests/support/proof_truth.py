"""Runs that would show a proof to be wrong, and the run that shows it to be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from peripety.engine import DryRunReport, Program, Proof


def is_contradicted(program: Program, proof: Proof, report: DryRunReport) -> bool:
    """Whether a report cannot be when a proof holds."""
    assert report.detail is not None
    if proof.code == "CERTAIN_LOSS":
        return bool(report.won or report.survived)
    section, _, place = proof.path.strip("/").partition("/")
    rule = program.spec[section][int(place)]["id"]
    counts = {
        "UNREACHABLE_WIN": report.wins,
        "IMPOSSIBLE_LOSS": report.losses,
        "DEAD_ACTION": {name: use.legal + use.taken for name, use in report.detail.actions.items()},
        "DEAD_EVENT": report.detail.events,
    }
    return counts[proof.code][rule] > 0


def replayed(program: Program, proof: Proof) -> list[str]:
    """What goes wrong in the run that shows a proof: rules that fail, and paths of numbers that are large."""
    state = program.new_state()
    seen: list[str] = []
    for call in proof.witness:
        try:
            results: list[Any] = [program.act(state, call.action_id, call.params)] if call.action_id else []
            results.append(program.step(state))
        except PeripetyError as error:
            return [*seen, error.code]
        for result in results:
            seen += [error.rule for error in [*getattr(result, "reasons", ()), *result.errors]]
            seen += [
                change.path
                for change in result.changes
                if isinstance(change.after, int | float) and abs(change.after) > 1e15
            ]
    return seen
