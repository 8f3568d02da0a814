"""Inspection service for documents and stored scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import InternalError
from peripety.gateway.streams import following
from peripety.scenarios.checks import check_document, check_options
from peripety.scenarios.inspecting.inspecting import inspect
from peripety.scenarios.inspecting.model import Inspection

if TYPE_CHECKING:
    from peripety.scenarios.model import DryRunOptions
    from peripety.scenarios.programs import Programs
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.sim import Program
    from peripety.workers import Workers

__all__ = ["Inspector"]


class Inspector:
    """Inspection of scenarios.

    Args:
        registry: stored scenarios.
        programs: cache of their compiled programs.
        workers: pool for validation and simulation.
    """

    def __init__(self, registry: ScenarioRegistry, programs: Programs, workers: Workers) -> None:
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
        check_document(document)
        if options is not None:
            check_options(options)
        return await self._inspected(await self._workers.run(sim.compile, document), options)

    async def inspect_stored(self, scenario_id: str, options: DryRunOptions | None) -> Inspection:
        """Inspect the latest version of a stored scenario; see `inspect`.

        Raises:
            NotFoundError: the scenario does not exist.
        """
        if options is not None:
            check_options(options)
        scenario = await self._registry.compiled(scenario_id)
        program = await self._programs.of(scenario.spec_hash, scenario.document)
        return await self._inspected(program, options)

    async def _inspected(self, program: Program, options: DryRunOptions | None) -> Inspection:
        async with following(inspect(program, options, self._workers)) as events:
            async for event in events:
                if isinstance(event, Inspection):
                    return event
        raise InternalError("The inspection ended without its result")
