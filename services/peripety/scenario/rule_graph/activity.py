"""Activity of a rule graph: how often each node takes part in simulated runs.

Actions count when chosen, events when drawn (at their onset), endings when they end a run, decay in every
turn. Scheduled effects count when they are scheduled, because a run may end before they are due. A quantity
counts as often as all rules that write it.

`Inspector` builds the graph and measures the activity, for documents and stored scenarios.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from peripety import engine
from peripety.certification.options import validate_options
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner
from peripety.core.concurrency import closing
from peripety.errors import InternalError
from peripety.scenario.rule_graph.graph import EdgeKind, Inspection, NodeKind, build_graph
from peripety.scenario.types import Progress, ProgressStage
from peripety.scenario.validation import validate_document_size

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.certification.options import DryRunOptions
    from peripety.core.concurrency import WorkerPool
    from peripety.engine import DryRunReport, Program, RunDetail
    from peripety.engine.executor import Executor
    from peripety.scenario.registry import ProgramCache, ScenarioRegistry
    from peripety.scenario.rule_graph.graph import GraphNode, RuleGraph


LEVELS = 5
"""The number of distinct levels of activity, besides none."""

_ENDINGS = frozenset({NodeKind.LOSS, NodeKind.WIN})
_WRITING = frozenset({EdgeKind.RAISES, EdgeKind.LOWERS, EdgeKind.WRITES})


def measure_activity(graph: RuleGraph, report: DryRunReport, detail: RunDetail) -> dict[str, int]:
    """Return the activity of each node, by its id.

    Args:
        graph: the rule graph.
        report: the runs.
        detail: the detailed counts of the same runs.
    """
    heat: dict[str, int] = {}
    for node in graph.nodes:
        match node.kind:
            case NodeKind.ACTION:
                heat[node.node_id] = detail.actions[node.key].taken
            case NodeKind.EVENT:
                heat[node.node_id] = detail.events[node.key]
            case NodeKind.LOSS:
                heat[node.node_id] = report.losses[node.key]
            case NodeKind.WIN:
                heat[node.node_id] = report.wins[node.key]
            case NodeKind.DECAY:
                heat[node.node_id] = report.turns
            case _:
                heat[node.node_id] = 0
    # The edges of a rule precede those of its scheduled effects.
    for edge in graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            heat[edge.target] = heat[edge.source]
    writing = {(edge.source, edge.target) for edge in graph.edges if edge.kind in _WRITING}
    for rule, quantity in writing:
        heat[quantity] += heat[rule]
    return heat


def activity_levels(inspection: Inspection) -> dict[str, int]:
    """Return the level of activity of each node among those of its kind: 0 for none, at most `LEVELS`."""
    hottest: defaultdict[str, int] = defaultdict(int)
    for node in inspection.graph.nodes:
        alike = _comparison_group(node)
        hottest[alike] = max(hottest[alike], inspection.activity.get(node.node_id, 0))
    levels = {
        node.node_id: _activity_level(
            inspection.activity.get(node.node_id, 0),
            hottest[_comparison_group(node)],
        )
        for node in inspection.graph.nodes
    }
    for edge in inspection.graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            levels[edge.target] = levels[edge.source]
    return levels


def describe_activity(node: GraphNode, inspection: Inspection) -> str:
    """Describe the activity of a node, as a share of turns or runs and as a count; empty without runs."""
    report = inspection.report
    if report is None:
        return ""
    count = inspection.activity[node.node_id]
    if count == 0:
        return "never written" if node.kind is NodeKind.QUANTITY else "never"
    if node.kind is NodeKind.DECAY:
        return "every turn"
    whole, unit = (report.runs, "runs") if node.kind in _ENDINGS else (report.turns, "turns")
    share = count / whole
    told = f"{share:.1f} a turn" if share > 1 else f"{_format_share(share)} of {unit}"
    return f"{told} ({count:,})"


def _format_share(share: float) -> str:
    """Format a share with as few digits as distinguish it from zero."""
    return f"{share:.0%}" if share >= 0.01 else f"{100 * share:.1g}%"  # noqa: PLR2004 - a per cent


def _comparison_group(node: GraphNode) -> str:
    return "ending" if node.kind in _ENDINGS else node.kind.value


def _activity_level(count: int, hottest: int) -> int:
    return math.ceil(LEVELS * count / hottest) if count else 0


async def inspect_program(
    program: Program,
    options: DryRunOptions | None,
    worker: Executor,
    most_seconds: float = MAX_SECONDS,
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
    graph, name = await worker.run(build_graph, program.spec), program.spec["name"]
    if options is None:
        yield Inspection(name, graph, None, {})
        return
    runs = SimulationRunner(program, options, worker, most_seconds).stream(0, options.max_runs, watch={})
    async with closing(runs) as reports:
        async for report in reports:
            message = f"{report.runs} of {options.max_runs} runs are played"
            yield Progress(ProgressStage.DRY_RUNNING, message, report.runs / options.max_runs)
            if report.runs == options.max_runs and report.detail is not None:
                yield Inspection(name, graph, report, measure_activity(graph, report, report.detail))


class Inspector:
    """Inspection of scenarios.

    Args:
        registry: stored scenarios.
        programs: cache of their compiled programs.
        workers: pool for validation and simulation.
    """

    def __init__(self, registry: ScenarioRegistry, programs: ProgramCache, workers: WorkerPool) -> None:
        self._registry = registry
        self._programs = programs
        self._workers = workers

    async def inspect(self, document: bytes, options: DryRunOptions | None) -> Inspection:
        """Inspect a document.

        Args:
            document: the specification, any bytes.
            options: the runs that measure activity; None for no runs.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option is out of range.
            SpecError: the document has errors.
            ResourceExhaustedError: the runs exceed the time limit, or `GRAPH_TOO_LARGE`.
        """
        validate_document_size(document)
        if options is not None:
            validate_options(options)
        return await self._inspect(await self._workers.run(engine.compile, document), options)

    async def inspect_stored(self, scenario_id: str, options: DryRunOptions | None) -> Inspection:
        """Inspect the latest version of a stored scenario; see `inspect`.

        Raises:
            NotFoundError: the scenario does not exist.
        """
        if options is not None:
            validate_options(options)
        scenario = await self._registry.get_scenario(scenario_id)
        program = await self._programs.load(scenario.spec_hash, scenario.document)
        return await self._inspect(program, options)

    async def _inspect(self, program: Program, options: DryRunOptions | None) -> Inspection:
        async with closing(inspect_program(program, options, self._workers)) as events:
            async for event in events:
                if isinstance(event, Inspection):
                    return event
        raise InternalError("The inspection ended without its result")
