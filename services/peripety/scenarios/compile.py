"""Registration of a scenario: validate, compile, dry-run, repair its numbers once, and store it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import sim
from peripety.gateway.streams import following
from peripety.scenarios.checking import load
from peripety.scenarios.checks import check_document, check_options
from peripety.scenarios.model import Compiled, NotCompiled, Progress, Stage, errors_among
from peripety.scenarios.proving import proved
from peripety.scenarios.trial import Trial
from peripety.sim.documents import findings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.errors import Finding
    from peripety.scenarios.model import CompileEvent, DryRunOptions, NumbersMoved
    from peripety.scenarios.programs import Programs
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.sim import Program
    from peripety.workers import Workers

__all__ = ["Compiler"]


class Compiler:
    """Registrar of scenarios.

    Args:
        registry: stores accepted scenarios.
        programs: cache of compiled programs.
        workers: pool for validation and simulation.
    """

    def __init__(self, registry: ScenarioRegistry, programs: Programs, workers: Workers) -> None:
        self._workers = workers
        self._programs = programs
        self._registry = registry

    async def compile(
        self,
        document: bytes,
        options: DryRunOptions,
        *,
        auto_repair: bool = True,
        version_of: str | None = None,
    ) -> AsyncIterator[CompileEvent]:
        """Validate a document in full, and store it if it passes.

        Args:
            document: the specification, any bytes.
            options: simulation options.
            auto_repair: move numbers once, if the budget is missed.
            version_of: the stored scenario that gets the document as its latest version.

        Yields:
            Progress, `NumbersMoved` after a repair, and `Compiled` or `NotCompiled` as the last event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option is out of range.
            NotFoundError: the scenario `version_of` does not exist.
            ResourceExhaustedError: the dry-run exceeds the time limit.
        """
        check_document(document)
        check_options(options)
        if version_of is not None:
            await self._registry.compiled(version_of)
        yield Progress(Stage.VALIDATING, "checking the document", 0.0)
        findings = await self._workers.run(sim.validate, document)
        if errors_among(findings):
            yield NotCompiled(tuple(findings))
            return
        yield Progress(Stage.COMPILING, "compiling the rules", 0.1)
        program = await self._workers.run(load, document)
        accepting = self._accept(program, findings, options, auto_repair=auto_repair, version_of=version_of)
        async with following(accepting) as events:
            async for event in events:
                yield event

    async def recompile(
        self, scenario_id: str, options: DryRunOptions, *, auto_repair: bool = True
    ) -> AsyncIterator[CompileEvent]:
        """Validate and register the latest version of a stored scenario again.

        Raises:
            ConflictError: the latest version changed meanwhile.
            NotFoundError: the scenario does not exist.
        """
        check_options(options)
        scenario = await self._registry.compiled(scenario_id)
        program = await self._programs.of(scenario.spec_hash, scenario.document)
        # Canonical form may contain numbers that strict validation rejects, so only the rules are validated.
        findings = await self._workers.run(findings_of, program.spec)
        accepting = self._accept(
            program,
            findings,
            options,
            auto_repair=auto_repair,
            version_of=scenario_id,
            follows=scenario.spec_hash,
        )
        async with following(accepting) as events:
            async for event in events:
                yield event

    async def _accept(
        self,
        program: Program,
        warnings: Sequence[Finding],
        options: DryRunOptions,
        *,
        auto_repair: bool,
        version_of: str | None,
        follows: str | None = None,
    ) -> AsyncIterator[CompileEvent]:
        """Prove, simulate and store a compiled scenario."""
        findings = [*warnings, *await self._workers.run(proved, program)]
        if errors_among(findings):
            yield NotCompiled(tuple(findings))
            return
        trial = Trial(program, options, self._workers)
        async with following(trial.events(auto_repair=auto_repair)) as steps:
            async for step in steps:
                yield _within(step)
        verdict = trial.verdict
        if not verdict.accepted:
            yield NotCompiled(verdict.findings, verdict.report)
            return
        yield Progress(Stage.STORING, "storing the scenario", 0.95)
        remaining = (*findings, *verdict.findings)
        record = await self._registry.save(
            trial.program, verdict.report, trial.edits, remaining, version_of=version_of, follows=follows
        )
        self._programs.keep(trial.program)
        yield Compiled(record)


def _within(step: Progress | NumbersMoved) -> Progress | NumbersMoved:
    """Scale the progress of the gate to the whole registration."""
    return replace(step, fraction=0.2 + 0.7 * step.fraction) if isinstance(step, Progress) else step
