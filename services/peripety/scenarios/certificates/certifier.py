"""Certification service: from a document or a stored scenario to a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety import sim
from peripety.gateway.streams import following
from peripety.scenarios.certificates.certifying import certify
from peripety.scenarios.certificates.checking import check
from peripety.scenarios.certificates.model import Certificate, PersonaReport
from peripety.scenarios.checking import load
from peripety.scenarios.checks import check_certificate_options, check_document
from peripety.scenarios.model import Progress, Stage, errors_among

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.errors import Finding
    from peripety.scenarios.certificates.checking import Comparison
    from peripety.scenarios.certificates.model import CertificateOptions
    from peripety.scenarios.programs import Programs
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.workers import Workers

__all__ = ["Certifier", "CertifyEvent", "NotCertifiable"]


@dataclass(frozen=True, slots=True)
class NotCertifiable:
    """The specification has errors, so nothing was measured; the last event."""

    findings: tuple[Finding, ...]


CertifyEvent: TypeAlias = Progress | PersonaReport | Certificate | NotCertifiable


class Certifier:
    """Certification of documents and stored scenarios; certificates of documents are not stored.

    Args:
        registry: stores scenarios and their certificates.
        programs: cache of compiled programs.
        workers: pool for validation, proofs and simulation.
    """

    def __init__(self, registry: ScenarioRegistry, programs: Programs, workers: Workers) -> None:
        self._registry = registry
        self._programs = programs
        self._workers = workers

    async def certify(self, document: bytes, options: CertificateOptions) -> AsyncIterator[CertifyEvent]:
        """Certify a document; nothing is stored.

        Args:
            document: the specification, any bytes.
            options: certificate options.

        Yields:
            Progress, the report of each persona, and the certificate or `NotCertifiable` as the last event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option is out of range.
            ResourceExhaustedError: the runs of a persona exceed the time limit.
        """
        check_document(document)
        check_certificate_options(options)
        yield Progress(Stage.VALIDATING, "checking the document", 0.0)
        errors = errors_among(await self._workers.run(sim.validate, document))
        if errors:
            yield NotCertifiable(errors)
            return
        program = await self._workers.run(load, document)
        async with following(certify(program, options, self._workers)) as events:
            async for event in events:
                yield event

    async def certify_stored(
        self, scenario_id: str, options: CertificateOptions
    ) -> AsyncIterator[CertifyEvent]:
        """Certify the latest version of a stored scenario, and store the certificate with it; see `certify`.

        The version was validated when it was stored, and is not validated again.

        Raises:
            NotFoundError: the scenario does not exist, or was deleted meanwhile.
        """
        check_certificate_options(options)
        scenario = await self._registry.compiled(scenario_id)
        program = await self._programs.of(scenario.spec_hash, scenario.document)
        async with following(certify(program, options, self._workers)) as events:
            async for event in events:
                if isinstance(event, Certificate):
                    await self._registry.certify(scenario_id, event)
                yield event

    async def check(self, document: bytes, spec: bytes) -> AsyncIterator[Progress | Comparison]:
        """Recompute a certificate and compare.

        Raises:
            InvalidArgumentError: the specification is empty or too large.
        """
        check_document(spec)
        async with following(check(document, spec, self._workers)) as events:
            async for event in events:
                yield event
