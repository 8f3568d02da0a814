"""Inspection of a compiled scenario: its rule graph, with the activity in simulated runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.streams import following
from peripety.scenarios.inspecting.graph import rule_graph
from peripety.scenarios.inspecting.heat import measured_heat
from peripety.scenarios.inspecting.model import Inspection
from peripety.scenarios.model import Progress, Stage
from peripety.scenarios.runs import MOST_SECONDS, Runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.scenarios.model import DryRunOptions
    from peripety.sim import Program
    from peripety.workers import Worker

__all__ = ["inspect"]


async def inspect(
    program: Program, options: DryRunOptions | None, worker: Worker, most_seconds: float = MOST_SECONDS
) -> AsyncIterator[Progress | Inspection]:
    """Build the rule graph of a scenario.

    Args:
        program: the scenario.
        options: the runs that measure activity, exactly `max_runs` of them; None for no runs.
        worker: runs the simulation.
        most_seconds: time limit of the runs.

    Yields:
        Progress, and the inspection as the last event.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit, or `GRAPH_TOO_LARGE`.
    """
    graph, name = await worker.run(rule_graph, program.spec), program.spec["name"]
    if options is None:
        yield Inspection(name, graph, None, {})
        return
    runs = Runner(program, options, worker, most_seconds).playing(0, options.max_runs, watch={})
    async with following(runs) as reports:
        async for report in reports:
            message = f"{report.runs} of {options.max_runs} runs are played"
            yield Progress(Stage.DRY_RUNNING, message, report.runs / options.max_runs)
            if report.runs == options.max_runs and report.detail is not None:
                yield Inspection(name, graph, report, measured_heat(graph, report, report.detail))
