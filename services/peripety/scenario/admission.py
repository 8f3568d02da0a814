"""Admission of a scenario: validate, compile, dry-run, repair its numbers once, store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import engine
from peripety.certification.difficulty_gate import BudgetMiss, GateVerdict, describe_rate, evaluate
from peripety.certification.options import validate_options
from peripety.core.concurrency import closing
from peripety.engine.documents import validate_parsed
from peripety.errors import Finding, InternalError, filter_errors
from peripety.scenario.balance.candidate_runs import FIRST_FRESH_RUN, BudgetRepair, repair
from peripety.scenario.balance.parameters import MAX_MOVE
from peripety.scenario.types import (
    NumbersAdjusted,
    Progress,
    ProgressStage,
    RegistrationFailed,
    ScenarioRegistered,
)
from peripety.scenario.validation import collect_proof_findings, load_valid, validate_document_size

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.certification.options import DryRunOptions
    from peripety.core.concurrency import WorkerPool
    from peripety.engine import Program
    from peripety.scenario.registry import ProgramCache, ScenarioRegistry
    from peripety.scenario.types import NumberEdit, RegistrationEvent


class GateWithRepair:
    """Gate of one program, with a repair.

    Attributes:
        program: the program; after a repair the repaired one.
        edits: the numbers that the repair moved.
    """

    def __init__(self, program: Program, options: DryRunOptions, workers: WorkerPool) -> None:
        self._workers = workers
        self._options = options
        self._verdict: GateVerdict | None = None
        self.program = program
        self.edits: tuple[NumberEdit, ...] = ()

    @property
    def verdict(self) -> GateVerdict:
        """Return the last verdict of the gate, with any failed repair; available after `events`."""
        if self._verdict is None:
            raise InternalError("The gate ended without a verdict")
        return self._verdict

    async def events(self, *, auto_repair: bool = True) -> AsyncIterator[Progress | NumbersAdjusted]:
        """Run the gate; if only the budget is missed, repair and run it again on fresh runs.

        Yields:
            Progress of the gate as a fraction of its work, and `NumbersAdjusted` after a repair.
        """
        async with closing(self._evaluate(0, "simulating runs without a model", 0.0)) as steps:
            async for step in steps:
                yield step
        first = self.verdict
        if first.miss is None or not auto_repair:
            return
        yield Progress(ProgressStage.REPAIRING, f"{first.miss.value}: looking for the smallest change", 0.4)
        found = await repair(self.program, first.miss, self._options, self._workers)
        if found.program is None:
            self._add_finding(_out_of_reach_finding(found, first.miss))
            return
        self.program, self.edits = found.program, found.edits
        yield NumbersAdjusted(self.edits, first.report)
        async with closing(
            self._evaluate(FIRST_FRESH_RUN, "confirming the change on fresh runs", 0.7),
        ) as steps:
            async for step in steps:
                yield step
        if not self.verdict.is_accepted:
            self._add_finding(_not_confirmed_finding())

    async def _evaluate(self, first_run: int, purpose: str, since: float) -> AsyncIterator[Progress]:
        steps = evaluate(self.program, self._options, self._workers, first_run=first_run)
        yield Progress(ProgressStage.DRY_RUNNING, purpose, since)
        async with closing(steps):
            async for step in steps:
                if isinstance(step, GateVerdict):
                    self._verdict = step
                else:
                    share = step.runs / self._options.max_runs
                    yield Progress(ProgressStage.DRY_RUNNING, describe_rate(step), since + 0.3 * share)

    def _add_finding(self, finding: Finding) -> None:
        self._verdict = replace(self.verdict, findings=(*self.verdict.findings, finding))


def _out_of_reach_finding(found: BudgetRepair, miss: BudgetMiss) -> Finding:
    if not found.edits:
        message = "no event weight, event effect or decay has a number that could be moved"
    else:
        side = "at least" if miss is BudgetMiss.TOO_EASY else "at most"
        margin = abs(found.target - found.limit)
        message = (
            f"{side} {found.limit:.1%} is required, and a repair needs {found.target:.1%}, with a margin of"
            f" {margin:.1%} for fresh runs; moving every weight and effect of events and every decay by as"
            f" much as {MAX_MOVE:.0%} brings the rate to {found.fail_rate:.1%}; change the rules"
        )
    return Finding("REPAIR_OUT_OF_REACH", "/negativity_budget", message)


def _not_confirmed_finding() -> Finding:
    message = "numbers were moved, and the result did not hold on fresh runs; change the rules"
    return Finding("REPAIR_NOT_CONFIRMED", "/negativity_budget", message)


class ScenarioRegistrar:
    """Registrar of scenarios.

    Args:
        registry: stores accepted scenarios.
        programs: cache of compiled programs.
        workers: pool for validation and simulation.
    """

    def __init__(self, registry: ScenarioRegistry, programs: ProgramCache, workers: WorkerPool) -> None:
        self._workers = workers
        self._programs = programs
        self._registry = registry

    async def register(
        self,
        document: bytes,
        options: DryRunOptions,
        *,
        auto_repair: bool = True,
        version_of: str | None = None,
    ) -> AsyncIterator[RegistrationEvent]:
        """Validate a document in full, and store it if it passes.

        Args:
            document: the specification, any bytes.
            options: simulation options.
            auto_repair: move numbers once, if the budget is missed.
            version_of: the stored scenario that gets the document as its latest version.

        Yields:
            Progress, `NumbersAdjusted` after a repair, and `Compiled` or `RegistrationFailed` as the last
            event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option is out of range.
            NotFoundError: the scenario `version_of` does not exist.
            ResourceExhaustedError: the dry-run exceeds the time limit.
        """
        validate_document_size(document)
        validate_options(options)
        if version_of is not None:
            await self._registry.get_scenario(version_of)
        yield Progress(ProgressStage.VALIDATING, "checking the document", 0.0)
        findings = await self._workers.run(engine.validate, document)
        if filter_errors(findings):
            yield RegistrationFailed(tuple(findings))
            return
        yield Progress(ProgressStage.COMPILING, "compiling the rules", 0.1)
        program = await self._workers.run(load_valid, document)
        accepting = self._accept(program, findings, options, auto_repair=auto_repair, version_of=version_of)
        async with closing(accepting) as events:
            async for event in events:
                yield event

    async def register_again(
        self,
        scenario_id: str,
        options: DryRunOptions,
        *,
        auto_repair: bool = True,
    ) -> AsyncIterator[RegistrationEvent]:
        """Validate and register the latest version of a stored scenario again.

        Raises:
            ConflictError: the latest version changed meanwhile.
            NotFoundError: the scenario does not exist.
        """
        validate_options(options)
        scenario = await self._registry.get_scenario(scenario_id)
        program = await self._programs.load(scenario.spec_hash, scenario.document)
        # Canonical form may contain numbers that strict validation rejects, so only the rules are validated.
        findings = await self._workers.run(validate_parsed, program.spec)
        accepting = self._accept(
            program,
            findings,
            options,
            auto_repair=auto_repair,
            version_of=scenario_id,
            follows=scenario.spec_hash,
        )
        async with closing(accepting) as events:
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
    ) -> AsyncIterator[RegistrationEvent]:
        """Prove, simulate and store a compiled scenario."""
        findings = [*warnings, *await self._workers.run(collect_proof_findings, program)]
        if filter_errors(findings):
            yield RegistrationFailed(tuple(findings))
            return
        trial = GateWithRepair(program, options, self._workers)
        async with closing(trial.events(auto_repair=auto_repair)) as steps:
            async for step in steps:
                yield _scale_progress(step)
        verdict = trial.verdict
        if not verdict.is_accepted:
            yield RegistrationFailed(verdict.findings, verdict.report)
            return
        yield Progress(ProgressStage.STORING, "storing the scenario", 0.95)
        remaining = (*findings, *verdict.findings)
        record = await self._registry.save(
            trial.program,
            verdict.report,
            trial.edits,
            remaining,
            version_of=version_of,
            follows=follows,
        )
        self._programs.put(trial.program)
        yield ScenarioRegistered(record)


def _scale_progress(step: Progress | NumbersAdjusted) -> Progress | NumbersAdjusted:
    """Scale the progress of the gate to the whole registration."""
    return replace(step, fraction=0.2 + 0.7 * step.fraction) if isinstance(step, Progress) else step
