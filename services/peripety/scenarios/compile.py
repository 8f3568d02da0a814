"""From a document to a stored scenario: checked, compiled, dry-run, and its numbers repaired once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import Finding, InternalError
from peripety.gateway.streams import following
from peripety.scenarios.balancing.knobs import LARGEST_MOVE
from peripety.scenarios.balancing.repairing import Repair, repair
from peripety.scenarios.balancing.searching import FRESH_RUN
from peripety.scenarios.checking import load
from peripety.scenarios.checks import check_document, check_options
from peripety.scenarios.gate import Verdict, judge, rate_sentence
from peripety.scenarios.model import (
    Compiled,
    DryRunOptions,
    NotCompiled,
    NumbersMoved,
    Progress,
    Stage,
    errors_among,
)
from peripety.scenarios.proving import proved
from peripety.sim.documents import findings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.scenarios.model import CompileEvent, NumberEdit
    from peripety.scenarios.programs import Programs
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.scenarios.workers import Workers
    from peripety.sim import Program

__all__ = ["Compiler"]


class Compiler:
    """Accepts scenarios into a registry.

    Args:
        registry: keeps what is accepted.
        programs: the compiled form of that.
        workers: check and play.
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
        """Check a document in full and store it when it passes.

        Args:
            document: the specification, any bytes.
            options: how to simulate.
            auto_repair: whether its numbers may be moved, once, when it misses its budget.
            version_of: the stored scenario that it becomes the latest version of.

        Yields:
            Progress, `NumbersMoved` where that happened, and `Compiled` or `NotCompiled` as the last event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option out of range.
            NotFoundError: there is no scenario `version_of`.
            ResourceExhaustedError: the dry-run takes longer than there is time.
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
        """Compile the latest version of a stored scenario again; see `compile`.

        Raises:
            NotFoundError: there is no such scenario.
        """
        check_options(options)
        scenario = await self._registry.compiled(scenario_id)
        program = await self._programs.of(scenario.spec_hash, scenario.document)
        # Its document passed the border once, and may have numbers there which that takes only from others.
        findings = await self._workers.run(findings_of, program.spec)
        accepting = self._accept(program, findings, options, auto_repair=auto_repair, version_of=scenario_id)
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
    ) -> AsyncIterator[CompileEvent]:
        """Prove, play and store what is compiled."""
        findings = [*warnings, *await self._workers.run(proved, program)]
        if errors_among(findings):
            yield NotCompiled(tuple(findings))
            return
        trial = _Trial(program, options, self._workers)
        async with following(trial.events(auto_repair=auto_repair)) as events:
            async for event in events:
                yield event
        if trial.verdict is not None and trial.verdict.accepted:
            yield Progress(Stage.STORING, "storing the scenario", 0.95)
            remaining = (*findings, *trial.verdict.findings)
            record = await self._registry.save(
                trial.program, trial.verdict.report, trial.edits, remaining, version_of=version_of
            )
            self._programs.keep(trial.program)
            yield Compiled(record)


class _Trial:
    """One program before the gate, with its one repair.

    Attributes:
        program: the program; after a repair, the repaired one.
        edits: the numbers that the repair moved.
        verdict: what the gate said last; None until it did.
    """

    def __init__(self, program: Program, options: DryRunOptions, workers: Workers) -> None:
        self._workers = workers
        self._options = options
        self.program = program
        self.edits: tuple[NumberEdit, ...] = ()
        self.verdict: Verdict | None = None

    async def events(self, *, auto_repair: bool) -> AsyncIterator[CompileEvent]:
        """Judge, and where only the budget is missed, repair and judge again on fresh runs."""
        async with following(self._judged(0, "playing runs without a model", 0.2)) as steps:
            async for step in steps:
                yield step
        first = self._verdict()
        if first.accepted:
            return
        if first.miss is None or not auto_repair:
            yield NotCompiled(first.findings, first.report)
            return
        yield Progress(Stage.REPAIRING, f"{first.miss.value}: looking for the smallest change", 0.5)
        found = await repair(self.program, first.miss, self._options, self._workers)
        if found.program is None:
            yield NotCompiled((*first.findings, _out_of_reach(found)), first.report)
            return
        self.program, self.edits = found.program, found.edits
        yield NumbersMoved(self.edits, first.report)
        async with following(self._judged(FRESH_RUN, "confirming the change on fresh runs", 0.7)) as steps:
            async for step in steps:
                yield step
        second = self._verdict()
        if not second.accepted:
            yield NotCompiled((*second.findings, _not_confirmed()), second.report)

    async def _judged(self, first_run: int, purpose: str, since: float) -> AsyncIterator[Progress]:
        steps = judge(self.program, self._options, self._workers, first_run=first_run)
        yield Progress(Stage.DRY_RUNNING, purpose, since)
        async with following(steps):
            async for step in steps:
                if isinstance(step, Verdict):
                    self.verdict = step
                else:
                    share = step.runs / self._options.max_runs
                    yield Progress(Stage.DRY_RUNNING, rate_sentence(step), since + 0.2 * share)

    def _verdict(self) -> Verdict:
        if self.verdict is None:
            raise InternalError("The gate ended without a verdict")
        return self.verdict


def _out_of_reach(found: Repair) -> Finding:
    if not found.edits:
        message = "there is no event weight, event effect or decay whose number could be moved"
    else:
        message = (
            f"moving every weight and effect of events and every decay by as much as {LARGEST_MOVE:.0%}"
            f" brings the rate to {found.fail_rate:.1%} only; change the rules"
        )
    return Finding("REPAIR_OUT_OF_REACH", "/negativity_budget", message)


def _not_confirmed() -> Finding:
    message = "numbers were moved, and the result did not hold on fresh runs; change the rules"
    return Finding("REPAIR_NOT_CONFIRMED", "/negativity_budget", message)
