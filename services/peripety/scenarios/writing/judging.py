"""Evaluation of a document: validate, prove, simulate and certify it, up to a level."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from peripety import context, sim
from peripety.errors import Finding, ResourceExhaustedError, Severity
from peripety.gateway.streams import following
from peripety.scenarios.certificates.certifying import certify
from peripety.scenarios.certificates.model import Certificate, CertificateOptions
from peripety.scenarios.checking import problems
from peripety.scenarios.model import DryRunOptions, Level, NumbersMoved, Progress, Stage, errors_among
from peripety.scenarios.parts import name_at
from peripety.scenarios.proving import proved
from peripety.scenarios.runs import MOST_SECONDS
from peripety.scenarios.trial import Trial
from peripety.sim.schema import MAX_FINDINGS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping

    from peripety.scenarios.model import NumberEdit
    from peripety.scenarios.parts import Name
    from peripety.sim import DryRunReport, Program
    from peripety.workers import Workers

__all__ = ["Depth", "Judge", "Judgement", "as_json", "insisted_on"]

_LEAST_RISK = 0.1

_NOT_WORTH_PLAYING = frozenset({"NEVER_WON", "CHOICES_DO_NOT_MATTER", "LOST_AT_ONCE"})
"""Warnings that reject a new document, although a registered scenario may have them."""


_RATES = frozenset({"TOO_EASY", "TOO_HARD"})
_AFTER_RATES = _RATES | {"POSITIVE_DRIFT"}


class Depth(IntEnum):
    """Depth of an evaluation; each depth is reached only without errors in the earlier ones."""

    FORM = 1
    RULES = 2
    PROOFS = 3
    GATE = 4
    CERTIFICATE = 5


@dataclass(frozen=True, slots=True)
class Judgement:
    """Evaluation of a document.

    Attributes:
        document: the document, with moved numbers.
        depth: the last depth.
        findings: errors, which reject it, then warnings.
        edits: the moved numbers, of this document and its predecessors.
        program: the compiled program; None before compilation.
        dry_run: the dry-run of the gate; None without one.
        certificate: its certificate; None without one.
    """

    document: dict[str, Any]
    depth: Depth
    findings: tuple[Finding, ...] = ()
    edits: tuple[NumberEdit, ...] = ()
    program: Program | None = None
    dry_run: DryRunReport | None = None
    certificate: Certificate | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the findings that reject it."""
        return errors_among(self.findings)

    @property
    def canonical(self) -> bytes:
        """Return the document in canonical form."""
        return self.program.document if self.program else sim.canonical(self.document)

    def has_looked_for(self, code: str) -> bool:
        """Return True if the evaluation would have found a finding of its depth with this code."""
        if self.depth is not Depth.GATE:
            return len(self.findings) < MAX_FINDINGS and all(
                error.code != "DRY_RUN_TOO_SLOW" for error in self.errors
            )
        # The gate stops at its first finding, and tests rates before drift.
        return code in _RATES and any(error.code in _AFTER_RATES for error in self.errors)

    def marks(self) -> set[tuple[str, Name]]:
        """Return keys of its errors that are stable under reordering: the code, and the name of the part."""
        return {(error.code, name_at(self.document, error.path)) for error in self.errors}


class Judge:
    """Evaluator of documents at one level.

    Args:
        level: the level that a document must pass.
        workers: pool for validation, proofs and simulation.
        insisted: codes of tolerated findings, which otherwise reject a new document.
    """

    def __init__(self, level: Level, workers: Workers, *, insisted: Collection[str] = ()) -> None:
        self._level = level
        self._workers = workers
        self._refusing = _NOT_WORTH_PLAYING.difference(insisted)
        self._least_risk = 0.0 if "RISK_TOO_SMALL" in insisted else _LEAST_RISK

    async def check(self, document: dict[str, Any]) -> Judgement:
        """Evaluate a document without simulation."""
        return await self._workers.run(self._checked, document)

    async def play(self, checked: Judgement) -> AsyncIterator[Progress | NumbersMoved | Judgement]:
        """Prove, simulate and certify a document without errors, up to the level.

        If only the budget is missed, its numbers are moved, and the moves are reported. Rules that are too
        slow to simulate are an error of the document, unless the deadline of the caller is the cause.

        Yields:
            Progress as a fraction of this work, `NumbersMoved`, and the evaluation as the last item.

        Raises:
            ResourceExhaustedError: the runs exceed the deadline of the caller.
        """
        if self._level < Level.DRY_RUN:
            yield checked
            return
        yield Progress(Stage.COMPILING, "compiling the rules", 0.0)
        program = await self._workers.run(sim.load, sim.canonical(checked.document))
        found = await self._workers.run(proved, program)
        proven = replace(self._deeper(checked, Depth.PROOFS, found), program=program)
        if proven.errors:
            yield proven
            return
        async with following(self._played(proven, program, checked.findings)) as steps:
            async for step in steps:
                yield step

    async def _played(
        self, proven: Judgement, program: Program, warnings: tuple[Finding, ...]
    ) -> AsyncIterator[Progress | NumbersMoved | Judgement]:
        trial = Trial(program, DryRunOptions(), self._workers)
        reached, depth = proven, Depth.GATE
        try:
            async with following(trial.events()) as steps:
                async for step in steps:
                    yield _within(step, 0.1, 0.3) if isinstance(step, Progress) else step
            reached, depth = self._tried(proven, trial), Depth.CERTIFICATE
            if reached.errors or self._level < Level.CERTIFICATE:
                yield reached
                return
            async with following(certify(trial.program, CertificateOptions(), self._workers)) as events:
                async for event in events:
                    if isinstance(event, Progress):
                        yield _within(event, 0.3, 1.0)
                    elif isinstance(event, Certificate):
                        # It contains all findings after static validation.
                        certified = replace(reached, findings=warnings, certificate=event)
                        yield self._deeper(certified, depth, event.findings)
        except ResourceExhaustedError as error:
            left = context.remaining()
            if left is not None and left < MOST_SECONDS:
                raise  # a revised document would also exceed the deadline
            yield self._deeper(reached, depth, (Finding("DRY_RUN_TOO_SLOW", "", error.message),))

    def _checked(self, document: dict[str, Any]) -> Judgement:
        data = as_json(document)
        found = problems(data, Level.SCHEMA)
        if found:
            return Judgement(document, Depth.FORM, tuple(found))
        if self._level > Level.SCHEMA:
            found = problems(data, self._level)
            found += _too_safe(document, self._least_risk)
        return Judgement(sim.parse(data), Depth.RULES, tuple(found))

    def _tried(self, proven: Judgement, trial: Trial) -> Judgement:
        """Return the evaluation after the gate; moves of a failed repair are dropped."""
        verdict = trial.verdict
        judgement = replace(self._deeper(proven, Depth.GATE, verdict.findings), dry_run=verdict.report)
        if not verdict.accepted or not trial.edits:
            return judgement
        edits = (*judgement.edits, *trial.edits)
        return replace(judgement, document=trial.program.spec, edits=edits, program=trial.program)

    def _deeper(self, judgement: Judgement, depth: Depth, findings: Iterable[Finding]) -> Judgement:
        found = (
            replace(finding, severity=Severity.ERROR) if finding.code in self._refusing else finding
            for finding in findings
        )
        worst_first = sorted(
            (*judgement.findings, *found), key=lambda finding: finding.severity is not Severity.ERROR
        )
        return replace(judgement, depth=depth, findings=tuple(worst_first))


def insisted_on(document: Mapping[str, Any], findings: Iterable[Finding]) -> frozenset[str]:
    """Return the codes of a registered document that would reject a new one.

    Args:
        document: a valid specification.
        findings: its warnings at registration.
    """
    warned = {finding.code for finding in findings} & _NOT_WORTH_PLAYING
    return frozenset(warned | {finding.code for finding in _too_safe(document, _LEAST_RISK)})


def as_json(value: Any) -> bytes:
    """Encode a value from a model as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _within(step: Progress, since: float, until: float) -> Progress:
    """Scale progress to a part of a larger work."""
    return replace(step, fraction=since + (until - since) * step.fraction)


def _too_safe(document: Mapping[str, Any], least_risk: float) -> list[Finding]:
    """Return an error for a budget with almost no risk, which the description may have induced."""
    least = document["negativity_budget"]["min_fail_rate"]
    if least >= least_risk:
        return []
    message = (
        f"min_fail_rate is {least}: a random player must lose at least {_LEAST_RISK:.0%} of runs, even if the"
        f" description requests less risk; use {_LEAST_RISK} or more"
    )
    return [Finding("RISK_TOO_SMALL", "/negativity_budget/min_fail_rate", message)]
