"""Amender: from a text to the next version of a stored scenario.

A model or rules propose the change, and it is evaluated like a new specification. The new version must pass
the same checks as the present one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.certification.types import CertificateVerdict
from peripety.core.concurrency import closing
from peripety.core.config import ProviderName
from peripety.core.idempotency.store import PendingResponse
from peripety.engine.rule_text import diff_specs
from peripety.errors import Finding, InternalError
from peripety.gateway.provider_selection import choose_provider
from peripety.gateway.types.response import UsageTotal
from peripety.scenario.amendment.offline_amendment import apply_edits
from peripety.scenario.generation.draft import SpecDraft
from peripety.scenario.generation.evaluation import (
    SpecEvaluation,
    SpecEvaluator,
    find_retained_risk,
    tolerated_codes,
)
from peripety.scenario.generation.loop import RepairLoop
from peripety.scenario.generation.model_client import ModelClient, start_document_conversation
from peripety.scenario.registry import version_changed_error
from peripety.scenario.types import (
    AmendmentCompleted,
    AmendmentFailed,
    ChangeProposed,
    DraftProposed,
    DraftRevised,
    NumbersAdjusted,
    Progress,
    ProgressStage,
    ValidationFailed,
    ValidationLevel,
)
from peripety.scenario.validation import validate_amendment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.certification.types import Certificate
    from peripety.core.concurrency import WorkerPool
    from peripety.engine import Program
    from peripety.engine.executor import Executor
    from peripety.gateway.types.response import ModelGateway
    from peripety.scenario.generation.loop import RepairLoopEvent
    from peripety.scenario.registry import ProgramCache, ScenarioRegistry
    from peripety.scenario.types import AmendEvent, AmendmentOrder, ScenarioRecord


_IDENTITY = ("id", "seed", "spec_version")
_NO_CHANGE = Finding("AMENDMENT_CHANGES_NOTHING", "", "the proposal does not change the scenario")

ChangeEvent: TypeAlias = Progress | ChangeProposed | ValidationFailed | NumbersAdjusted | AmendmentFailed
"""Events of a change. After a rejected change, `AmendmentFailed` is the last one."""


class ProposedChange:
    """Change of a scenario in progress.

    Args:
        present: the present version.
        order: the order.
        judge: evaluates the changed version.
        fail_rate: the fail rate of the present version.
        worker: applies rule-based edits.

    Attributes:
        accepted: the evaluation of the changed version; None until it passes.
        spent: the model usage.
    """

    def __init__(
        self,
        present: Program,
        order: AmendmentOrder,
        judge: SpecEvaluator,
        fail_rate: float,
        worker: Executor,
    ) -> None:
        self._present = present
        self._order = order
        self._judge = judge
        self._fail_rate = fail_rate
        self._worker = worker
        self.accepted: SpecEvaluation | None = None
        self.spent = UsageTotal()

    async def from_model(self, gateway: ModelGateway) -> AsyncIterator[ChangeEvent]:
        """Request a change from a model, and repair it until it passes.

        The system prompt is the same as for generation, so that it is in the provider's prompt cache.
        """
        spec, order = self._present.spec, self._order
        asker = ModelClient(order.limits, spec["seed"])
        conversation = start_document_conversation(gateway, order.model, order.limits)
        manuscript = SpecDraft(self._judge, spec, {key: spec[key] for key in _IDENTITY})
        writer = RepairLoop(asker, conversation, manuscript)
        yield asker.progress(ProgressStage.AUTHORING, "requesting the change")
        question = {"scenario": spec, "instruction": order.instruction}
        async with closing(writer.run(question)) as events:
            async for event in events:
                yield self._convert_event(event)
        self.spent = asker.spent
        if writer.is_done and manuscript.evaluation is not None:
            yield self._accept(manuscript.evaluation)
        else:
            used_up = asker.exhausted_limit()
            yield AmendmentFailed((*writer.findings, *([used_up] if used_up else [])), self.spent)

    async def is_supported_by_rules(self) -> bool:
        """Return True if rules can make the change."""
        return not isinstance(await self._apply_rules(), Finding)

    async def from_rules(self) -> AsyncIterator[ChangeEvent]:
        """Make the change without a model, if rules understand it."""
        yield Progress(ProgressStage.AUTHORING, "matching the text with the scenario", 0.0)
        changed = await self._apply_rules()
        if isinstance(changed, Finding):
            yield AmendmentFailed((changed,), self.spent)
            return
        yield ChangeProposed(diff_specs(self._present.spec, changed), 1, self.spent)
        judgement = await self._judge.evaluate_statically(changed)
        if not judgement.errors:
            async with closing(self._judge.evaluate_in_simulation(judgement)) as steps:
                async for step in steps:
                    if isinstance(step, SpecEvaluation):
                        judgement = step
                    else:
                        yield step
        yield AmendmentFailed(judgement.findings, self.spent) if judgement.errors else self._accept(judgement)

    async def _apply_rules(self) -> dict[str, Any] | Finding:
        instruction = self._order.instruction
        return await self._worker.run(apply_edits, self._present.spec, instruction, self._fail_rate)

    def _convert_event(self, event: RepairLoopEvent) -> ChangeEvent:
        """Convert an event of the loop; proposals become differences to the present version."""
        if not isinstance(event, DraftProposed | DraftRevised):
            return event
        edits = diff_specs(self._present.spec, json.loads(event.document))
        return ChangeProposed(edits, event.attempt, event.spent or UsageTotal())

    def _accept(self, judgement: SpecEvaluation) -> ChangeEvent:
        if judgement.canonical == self._present.document:
            return AmendmentFailed((_NO_CHANGE,), self.spent)
        self.accepted = judgement
        return Progress(ProgressStage.STORING, "storing the new version", 1.0, self.spent)


class Amender:
    """Amendment of stored scenarios.

    Args:
        gateway: sends requests to models.
        provider: the default provider of an order; the offline one amends by rules.
        registry: stores the scenarios.
        programs: cache of their compiled programs.
        workers: pool for validation and simulation.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        provider: ProviderName,
        registry: ScenarioRegistry,
        programs: ProgramCache,
        workers: WorkerPool,
    ) -> None:
        self._gateway = gateway
        self._provider = provider
        self._registry = registry
        self._programs = programs
        self._workers = workers

    async def check(self, order: AmendmentOrder) -> ScenarioRecord:
        """Return the version that an order would amend; raise the first three errors of `amend`."""
        validate_amendment(order)
        record = await self._registry.get(order.scenario_id)
        scenario = record.scenario
        if order.expected_hash not in {None, scenario.spec_hash}:
            raise version_changed_error(scenario.scenario_id, scenario.spec_hash)
        return record

    async def amend(
        self,
        order: AmendmentOrder,
    ) -> AsyncIterator[AmendEvent | PendingResponse[AmendmentCompleted]]:
        """Amend the latest version of a scenario.

        Yields:
            Progress, proposals and findings. The last event is `AmendmentFailed`, or a pending `Amended`: the
            version is stored when that is executed, which raises `ConflictError` after a concurrent change.

        Raises:
            InvalidArgumentError: a field of the order is out of range.
            NotFoundError: the scenario does not exist.
            ConflictError: its latest version differs from the expected one.
            PeripetyError: from `ModelGateway.stream`, except for invalid answers.
        """
        record = await self.check(order)
        scenario = record.scenario
        present = await self._programs.load(scenario.spec_hash, scenario.document)
        certificate = await self._certificate_of_record(record)
        level = (
            _passed_level(certificate) if order.level is None else max(order.level, ValidationLevel.DRY_RUN)
        )
        warnings = (*record.findings, *(certificate.findings if certificate else ()))
        judge = SpecEvaluator(level, self._workers, tolerated=tolerated_codes(present.spec, warnings))
        change = ProposedChange(present, order, judge, record.dry_run.fail_rate, self._workers)
        is_for_rules = await self._uses_rules(change, order.model)
        events = change.from_rules() if is_for_rules else change.from_model(self._gateway)
        async with closing(events):
            async for event in events:
                yield event
        if change.accepted is not None:
            yield await self._to_pending_storage(change.accepted, order, present, change.spent)

    async def _uses_rules(self, change: ProposedChange, model: str | None) -> bool:
        """Return True if rules make the change: without a model, or if they suffice for a weak one."""
        provider, _ = choose_provider(model, self._provider)
        if provider is ProviderName.GENERIC:
            return await change.is_supported_by_rules()
        return provider is ProviderName.OFFLINE

    async def _certificate_of_record(self, record: ScenarioRecord) -> Certificate | None:
        if record.certificate_hash is None:
            return None
        return await self._registry.get_certificate(record.certificate_hash)

    async def _to_pending_storage(
        self,
        judgement: SpecEvaluation,
        order: AmendmentOrder,
        present: Program,
        spent: UsageTotal,
    ) -> PendingResponse[AmendmentCompleted]:
        """Return the pending storage of the version, the only step in the transaction."""
        program, certificate, dry_run = judgement.program, judgement.certificate, judgement.dry_run
        if program is None or dry_run is None:
            raise InternalError("A change was accepted without a dry-run")
        risk = await find_retained_risk(order.instruction, program.document, certificate, self._workers)
        self._programs.put(program)
        edits = diff_specs(present.spec, judgement.document)

        async def stored(connection: AsyncConnection) -> AmendmentCompleted:
            record = await self._registry.save(
                program,
                dry_run,
                judgement.edits,
                (*judgement.findings, *risk),
                version_of=order.scenario_id,
                follows=present.spec_hash,
                certificate=certificate,
                connection=connection,
            )
            return AmendmentCompleted(record, edits, spent)

        return PendingResponse(stored)


def _passed_level(certificate: Certificate | None) -> ValidationLevel:
    """Return the level that a version has passed: the dry-run, or the certificate if it has one."""
    is_certified = certificate is not None and certificate.verdict is CertificateVerdict.CERTIFIED
    return ValidationLevel.CERTIFICATE if is_certified else ValidationLevel.DRY_RUN
