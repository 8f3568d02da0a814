"""Amendment service: from a text to the next version of a stored scenario.

The new version must pass the same checks as the present one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.answering.log import Pending
from peripety.config import ProviderName
from peripety.errors import InternalError
from peripety.gateway.choosing import choose_provider
from peripety.gateway.streams import following
from peripety.scenarios.amending.changing import Change
from peripety.scenarios.amending.model import Amended
from peripety.scenarios.certificates.model import CertificateVerdict
from peripety.scenarios.checks import check_amendment
from peripety.scenarios.diff import rule_edits
from peripety.scenarios.model import Level
from peripety.scenarios.registry import version_changed
from peripety.scenarios.writing.judging import Judge, insisted_on
from peripety.scenarios.writing.risk import risk_kept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.gateway.model import ModelGateway, Spent
    from peripety.scenarios.amending.model import AmendEvent, AmendmentOrder
    from peripety.scenarios.certificates.model import Certificate
    from peripety.scenarios.model import ScenarioRecord
    from peripety.scenarios.programs import Programs
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.scenarios.writing.judging import Judgement
    from peripety.sim import Program
    from peripety.workers import Workers

__all__ = ["Amender"]


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
        programs: Programs,
        workers: Workers,
    ) -> None:
        self._gateway = gateway
        self._provider = provider
        self._registry = registry
        self._programs = programs
        self._workers = workers

    async def amend(self, order: AmendmentOrder) -> AsyncIterator[AmendEvent | Pending[Amended]]:
        """Amend the latest version of a scenario.

        Yields:
            Progress, proposals and findings. The last event is `NotAmended`, or a pending `Amended`: the
            version is stored when that is executed, which raises `ConflictError` after a concurrent change.

        Raises:
            InvalidArgumentError: a field of the order is out of range.
            NotFoundError: the scenario does not exist.
            ConflictError: its latest version differs from the expected one.
            PeripetyError: from `ModelGateway.stream`, except for invalid answers.
        """
        check_amendment(order)
        record = await self._registry.get(order.scenario_id)
        scenario = record.scenario
        if order.expected not in {None, scenario.spec_hash}:
            raise version_changed(scenario.scenario_id, scenario.spec_hash)
        present = await self._programs.of(scenario.spec_hash, scenario.document)
        certificate = await self._certificate(record)
        level = _earned(certificate) if order.level is None else max(order.level, Level.DRY_RUN)
        warnings = (*record.findings, *(certificate.findings if certificate else ()))
        judge = Judge(level, self._workers, insisted=insisted_on(present.spec, warnings))
        change = Change(present, order, judge, record.dry_run.fail_rate, self._workers)
        is_for_rules = await self._is_for_rules(change, order.model)
        events = change.by_rules() if is_for_rules else change.by_model(self._gateway)
        async with following(events):
            async for event in events:
                yield event
        if change.accepted is not None:
            yield await self._amended(change.accepted, order, present, change.spent)

    async def _is_for_rules(self, change: Change, model: str | None) -> bool:
        """Return True if rules make the change: without a model, or if they suffice for a weak one."""
        provider, _ = choose_provider(model, self._provider)
        if provider is ProviderName.GENERIC:
            return await change.is_understood()
        return provider is ProviderName.OFFLINE

    async def _certificate(self, record: ScenarioRecord) -> Certificate | None:
        if record.certificate_hash is None:
            return None
        return await self._registry.certificate(record.certificate_hash)

    async def _amended(
        self, judgement: Judgement, order: AmendmentOrder, present: Program, spent: Spent
    ) -> Pending[Amended]:
        """Return the pending storage of the version, the only step in the transaction."""
        program, certificate, dry_run = judgement.program, judgement.certificate, judgement.dry_run
        if program is None or dry_run is None:
            raise InternalError("A change was accepted without a dry-run")
        risk = await risk_kept(order.instruction, program.document, certificate, self._workers)
        self._programs.keep(program)
        edits = rule_edits(present.spec, judgement.document)

        async def stored(connection: AsyncConnection) -> Amended:
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
            return Amended(record, edits, spent)

        return Pending(stored)


def _earned(certificate: Certificate | None) -> Level:
    """Return the level that a version has passed: the dry-run, or the certificate if it has one."""
    is_certified = certificate is not None and certificate.verdict is CertificateVerdict.CERTIFIED
    return Level.CERTIFICATE if is_certified else Level.DRY_RUN
