"""What becomes of a run of an agent, as the store keeps it."""

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
    """What becomes of a run.

    Args:
        *events: what to tell of it, in order.
        state: where it stands now; None leaves it there. In any state but RUNNING nobody holds a lease.
        progress: how far it is now; None leaves it there.
        error: why it failed.
    """
    values: dict[str, Any] = {}
    if progress is not None:
        values |= {"progress": write_progress(progress), "phase": progress.phase}
    if error is not None:
        values["error"] = write_error(error)
    return Change(events, None if state is None else state.value, values)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run without its weight."""

    run_id: str
    name: str
    state: RunState
    completed_phases: int
    total_phases: int
    created: int
    updated: int
