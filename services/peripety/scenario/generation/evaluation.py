"""Evaluation of a draft: validate, prove, simulate and certify it, up to a level.

`find_retained_risk` warns about a description that requests a scenario without risk, `find_replaced_language`
about a requested language in which rules cannot write.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.plots.plot import list_languages
from peripety.author.text_analysis.languages import find_no_risk_phrase
from peripety.certification.certificate import CertificationProgress, certify
from peripety.certification.options import CertificateOptions, DryRunOptions
from peripety.certification.player_checks import check_new_document
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner
from peripety.certification.solution_trace import measure_slips
from peripety.certification.statistics import find_report
from peripety.certification.types import Certificate, Rate
from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.engine.schema_validation import MAX_FINDINGS
from peripety.engine.spec_sections import part_name_at
from peripety.errors import Finding, ResourceExhaustedError, Severity, SpecError, filter_errors, load_catalog
from peripety.scenario.admission import GateWithRepair
from peripety.scenario.certificate.certifier import to_progress
from peripety.scenario.generation.number_trials import try_numbers
from peripety.scenario.rule_graph.graph import find_unread_actions
from peripety.scenario.types import NumbersAdjusted, Progress, ProgressStage, ValidationLevel
from peripety.scenario.validation import collect_proof_findings, validate_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping

    from peripety.core.concurrency import WorkerPool
    from peripety.engine import DryRunReport, Program
    from peripety.engine.executor import Executor
    from peripety.engine.spec_sections import PartName
    from peripety.scenario.types import NumberEdit


_MIN_RISK = 0.1
_MAX_UNREAD = 8

_REJECTING_WARNINGS = frozenset(
    {
        *("NEVER_WON", "CHOICES_DO_NOT_MATTER", "LOST_AT_ONCE", "WON_AT_ONCE"),
        *("DEAL_IN_PRECONDITION", "SOLUTION_GUESSES"),
    }
)
"""Warnings that reject a new document, although a registered scenario may have them."""


_TRIED = frozenset(
    {"SOLUTION_FAILS", "CURIOUS_WINS", "IDLE_WINS", "SKILL_TOO_SAFE", "SKILL_IN_VAIN", "IDLE_SURVIVES"}
)
"""Findings about players that other numbers may resolve."""

_RATES = frozenset({"TOO_EASY", "TOO_HARD"})
_AFTER_RATES = _RATES | {"POSITIVE_DRIFT"}


class EvaluationDepth(IntEnum):
    """Depth of an evaluation; each depth is reached only without errors in the earlier ones."""

    FORM = 1
    RULES = 2
    PROOFS = 3
    GATE = 4
    CERTIFICATE = 5


@dataclass(frozen=True, slots=True)
class SpecEvaluation:
    """Evaluation of a document.

    Attributes:
        document: the document, with moved numbers.
        depth: the last depth.
        findings: errors, which reject it, then warnings.
        edits: the moved numbers, of this document and its predecessors.
        program: the compiled program; None before compilation.
        dry_run: the dry-run of the gate; None without one.
        certificate: its certificate; None without one.
        figures: a line about each player that the gate has measured.
        trials: lines about numbers that would bring the rates of the players into their bands.
    """

    document: dict[str, Any]
    depth: EvaluationDepth
    findings: tuple[Finding, ...] = ()
    edits: tuple[NumberEdit, ...] = ()
    program: Program | None = None
    dry_run: DryRunReport | None = None
    certificate: Certificate | None = None
    figures: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the findings that reject it."""
        return filter_errors(self.findings)

    @property
    def quality(self) -> tuple[int, int]:
        """Return a key that is greater for a better document: its depth, then its fewer errors."""
        return self.depth, -len(self.errors)

    @property
    def canonical(self) -> bytes:
        """Return the document in canonical form."""
        return self.program.document if self.program else engine.canonicalize(self.document)

    def would_have_found(self, code: str) -> bool:
        """Return True if the evaluation would have found a finding of its depth with this code."""
        if self.depth is EvaluationDepth.FORM and code not in load_catalog()["schema"]:
            # The static checks have seen only the parts that do not violate the schema.
            return False
        if self.depth is not EvaluationDepth.GATE:
            return len(self.findings) < MAX_FINDINGS and all(
                error.code != "DRY_RUN_TOO_SLOW" for error in self.errors
            )
        # The gate stops at its first finding, and tests rates before drift.
        return code in _RATES and any(error.code in _AFTER_RATES for error in self.errors)

    def error_keys(self) -> set[tuple[str, PartName]]:
        """Return keys of its errors that are stable under reordering: the code, and the name of the part."""
        return {(error.code, part_name_at(self.document, error.path)) for error in self.errors}


class SpecEvaluator:
    """Evaluator of documents at one level.

    Args:
        level: the level that a document must pass.
        workers: pool for validation, proofs and simulation.
        tolerated: codes of tolerated findings, which otherwise reject a new document.
    """

    def __init__(
        self,
        level: ValidationLevel,
        workers: WorkerPool,
        *,
        tolerated: Collection[str] = (),
    ) -> None:
        self._level = level
        self._workers = workers
        self._rejecting_codes = _REJECTING_WARNINGS.difference(tolerated)
        self._least_risk = 0.0 if "RISK_TOO_SMALL" in tolerated else _MIN_RISK

    async def evaluate_statically(self, document: dict[str, Any]) -> SpecEvaluation:
        """Evaluate a document without simulation."""
        return await self._workers.run(self._validate, document)

    async def evaluate_in_simulation(
        self,
        evaluation: SpecEvaluation,
    ) -> AsyncIterator[Progress | NumbersAdjusted | SpecEvaluation]:
        """Prove, simulate and certify a document without errors, up to the level.

        If only the budget is missed, its numbers are moved, and the moves are reported. Rules that are too
        slow to simulate are an error of the document, unless the deadline of the caller is the cause.

        Yields:
            Progress as a fraction of this work, `NumbersAdjusted`, and the evaluation as the last item.

        Raises:
            ResourceExhaustedError: the runs exceed the deadline of the caller.
        """
        if self._level < ValidationLevel.DRY_RUN:
            yield evaluation
            return
        yield Progress(ProgressStage.COMPILING, "compiling the rules", 0.0)
        program = await self._workers.run(engine.compile_trusted, engine.canonicalize(evaluation.document))
        found = await self._workers.run(collect_proof_findings, program)
        proven = replace(self._with_findings(evaluation, EvaluationDepth.PROOFS, found), program=program)
        if proven.errors:
            yield proven
            return
        async with closing(self._simulate(proven, program, evaluation.findings)) as steps:
            async for step in steps:
                yield step

    async def _simulate(
        self,
        proven: SpecEvaluation,
        program: Program,
        warnings: tuple[Finding, ...],
    ) -> AsyncIterator[Progress | NumbersAdjusted | SpecEvaluation]:
        trial = GateWithRepair(program, DryRunOptions(), self._workers)
        reached, depth = proven, EvaluationDepth.GATE
        try:
            async with closing(trial.events()) as steps:
                async for step in steps:
                    yield _scale_progress(step, 0.1, 0.3) if isinstance(step, Progress) else step
            reached, refuted = self._after_gate(proven, trial), frozenset[str]()
            if trial.program.spec["spec_version"] == "1.0" and not trial.verdict.report.errors:
                random, how = trial.verdict.report, DryRunOptions()
                found, refuted = await check_new_document(trial.program, random, how, self._workers)
                reached = self._with_findings(reached, EvaluationDepth.GATE, found)
            reached = await self._measure_further(reached, trial)
            depth = EvaluationDepth.CERTIFICATE
            if reached.errors or self._level < ValidationLevel.CERTIFICATE:
                yield reached
                return
            async with closing(certify(trial.program, CertificateOptions(), self._workers)) as events:
                async for event in events:
                    if isinstance(event, CertificationProgress):
                        yield _scale_progress(to_progress(event), 0.3, 1.0)
                    elif isinstance(event, Certificate):
                        # It contains all findings after static validation.
                        certified = replace(reached, findings=warnings, certificate=event)
                        yield self._with_findings(
                            certified,
                            depth,
                            [finding for finding in event.findings if finding.code not in refuted],
                        )
        except ResourceExhaustedError as error:
            left = call_context.remaining()
            if left is not None and left < MAX_SECONDS:
                raise  # a revised document would also exceed the deadline
            yield self._with_findings(reached, depth, (Finding("DRY_RUN_TOO_SLOW", "", error.message),))

    async def _measure_further(self, reached: SpecEvaluation, trial: GateWithRepair) -> SpecEvaluation:
        """Add figures for the author: wins despite other moves, unread changes, and numbers to try."""
        program = trial.program
        unread = find_unread_actions(program.spec)
        if unread:
            names = ", ".join(f"'{name}'" for name in unread[:_MAX_UNREAD])
            line = f"no ending, event or other action reads what these actions change: {names}"
            reached = replace(reached, figures=(*reached.figures, line))
        if "solutions" in program.spec and not reached.errors:
            line = await self._workers.run(measure_slips, program, trial.verdict.report)
            reached = replace(reached, figures=(*reached.figures, *filter(None, [line])))
        refused = {finding.code for finding in filter_errors(trial.verdict.players)}
        # The reference core would take minutes.
        if refused & _TRIED and engine.BACKEND == "native":
            reached = replace(reached, trials=await try_numbers(program, self._workers))
        return reached

    def _validate(self, document: dict[str, Any]) -> SpecEvaluation:
        data = encode_json(document)
        found = validate_document(data, ValidationLevel.SCHEMA)
        if found:
            # The model repairs everything in one round.
            return SpecEvaluation(document, EvaluationDepth.FORM, tuple(validate_document(data, self._level)))
        if self._level > ValidationLevel.SCHEMA:
            found = validate_document(data, self._level)
            found += _risk_findings(document, self._least_risk)
        evaluation = SpecEvaluation(engine.parse_scenario(data), EvaluationDepth.RULES, ())
        return self._with_findings(evaluation, EvaluationDepth.RULES, found)

    def _after_gate(self, proven: SpecEvaluation, trial: GateWithRepair) -> SpecEvaluation:
        """Return the evaluation after the gate; moves of a failed repair are dropped."""
        verdict = trial.verdict
        judgement = replace(
            self._with_findings(proven, EvaluationDepth.GATE, verdict.findings),
            dry_run=verdict.report,
            figures=verdict.figures,
        )
        if not verdict.is_accepted or not trial.edits:
            return judgement
        edits = (*judgement.edits, *trial.edits)
        return replace(judgement, document=trial.program.spec, edits=edits, program=trial.program)

    def _with_findings(
        self,
        judgement: SpecEvaluation,
        depth: EvaluationDepth,
        findings: Iterable[Finding],
    ) -> SpecEvaluation:
        found = (
            replace(finding, severity=Severity.ERROR) if finding.code in self._rejecting_codes else finding
            for finding in findings
        )
        worst_first = sorted(
            (*judgement.findings, *found),
            key=lambda finding: finding.severity is not Severity.ERROR,
        )
        return replace(judgement, depth=depth, findings=tuple(worst_first))


def tolerated_codes(document: Mapping[str, Any], findings: Iterable[Finding]) -> frozenset[str]:
    """Return the codes of a registered document that would reject a new one.

    Args:
        document: a valid specification.
        findings: its warnings at registration.
    """
    # A version stored by an earlier release has no warning that is new since.
    static = engine.validate(engine.canonicalize(document))
    warned = {finding.code for finding in (*findings, *static)} & _REJECTING_WARNINGS
    return frozenset(warned | {finding.code for finding in _risk_findings(document, _MIN_RISK)})


def encode_json(value: Any) -> bytes:
    """Encode a value from a model as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _scale_progress(step: Progress, since: float, until: float) -> Progress:
    """Scale progress to a part of a larger work."""
    return replace(step, fraction=since + (until - since) * step.fraction)


def _risk_findings(document: Mapping[str, Any], least_risk: float) -> list[Finding]:
    """Return an error for a budget with almost no risk, which the description may have induced."""
    least = document["negativity_budget"]["min_fail_rate"]
    if least >= least_risk:
        return []
    message = (
        f"min_fail_rate is {least}: a random player must lose at least {_MIN_RISK:.0%} of runs, even if the"
        f" description requests less risk; use {_MIN_RISK} or more"
    )
    return [Finding("RISK_TOO_SMALL", "/negativity_budget/min_fail_rate", message)]


_RUNS = 256
_MAX_SECONDS = 5.0
_MAX_QUOTE = 80


async def find_retained_risk(
    description: str,
    document: bytes,
    certificate: Certificate | None,
    workers: Executor,
) -> tuple[Finding, ...]:
    """Return a warning if the description requests a scenario without risk; otherwise nothing.

    Args:
        description: the description of the scenario, or of a change.
        document: the scenario.
        certificate: its certificate; without one, some runs are simulated.
        workers: worker pool.
    """
    phrase = await workers.run(find_no_risk_phrase, description)
    if not phrase:
        return ()
    lost = _certified_rate(certificate) if certificate else await _simulated_rate(document, workers)
    message = f"the description requests no risk ('{phrase[:_MAX_QUOTE]}'), but the scenario has some"
    if lost is not None:
        interval = f"95% interval {lost.low:.1%} to {lost.high:.1%}"
        message += f": the random persona loses {lost.value:.1%} of {lost.total} runs ({interval})"
    return (Finding("RISK_RETAINED", "/negativity_budget/min_fail_rate", message, Severity.WARNING),)


def find_replaced_language(language: str) -> tuple[Finding, ...]:
    """Return a warning if rules have no texts in a requested language; otherwise nothing.

    Args:
        language: the language as a BCP 47 tag; empty for that of the description.
    """
    known = list_languages()
    if not language or language.partition("-")[0].lower() in known:
        return ()
    message = (
        f"names and texts are in English, because '{language[:_MAX_QUOTE]}' needs a model; "
        f"rules write {', '.join(known)}"
    )
    return (Finding("LANGUAGE_REPLACED", "", message, Severity.WARNING),)


def _certified_rate(certificate: Certificate) -> Rate | None:
    report = find_report("random", certificate.personas)
    return report.lost if report else None


async def _simulated_rate(document: bytes, workers: Executor) -> Rate | None:
    """Return the fail rate of the random persona; None for a document that is invalid or too slow."""
    try:
        program = await workers.run(engine.compile, document)
        report = await SimulationRunner(program, DryRunOptions(), workers, _MAX_SECONDS).run(0, _RUNS)
    except (SpecError, ResourceExhaustedError):
        return None
    return Rate.from_count(report.lost, report.runs)
