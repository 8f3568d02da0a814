"""State changes and summaries of agent runs, as the store records them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.durable.model import Change
from peripety.durable.writing import write_error
from peripety.gateway.agents.writing import write_progress

if TYPE_CHECKING:
    from peripety.errors import PeripetyError
    from peripety.gateway.agents.model import Progress, RunEvent, RunState

__all__ = ["RunSummary", "changed"]


def changed(
    *events: RunEvent,
    state: RunState | None = None,
    progress: Progress | None = None,
    error: PeripetyError | None = None,
) -> Change[RunEvent]:
    """Return the change to append to a run.

    Args:
        *events: the events to record, in order.
        state: the new state; None leaves it unchanged. A run in any state but RUNNING has no lease.
        progress: the new progress; None leaves it unchanged.
        error: the error of a failed run.
    """
    values: dict[str, Any] = {}
    if progress is not None:
        values |= {"progress": write_progress(progress), "phase": progress.phase}
    if error is not None:
        values["error"] = write_error(error)
    return Change(events, None if state is None else state.value, values)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run without its manifest, results and history, for lists."""

    run_id: str
    name: str
    state: RunState
    completed_phases: int
    total_phases: int
    created: int
    updated: int
