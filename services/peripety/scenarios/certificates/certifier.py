"""From a document, or a stored scenario, to a certificate."""

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
    """The specification has errors, so that nothing could be measured; the last event."""

    findings: tuple[Finding, ...]


CertifyEvent: TypeAlias = Progress | PersonaReport | Certificate | NotCertifiable


class Certifier:
    """Certifies documents, and stored scenarios with which it keeps the certificates.

    Args:
        registry: keeps scenarios and their certificates.
        programs: the compiled form of those scenarios.
        workers: check, prove and play.
    """

    def __init__(self, registry: ScenarioRegistry, programs: Programs, workers: Workers) -> None:
        self._registry = registry
        self._programs = programs
        self._workers = workers

    async def certify(self, document: bytes, options: CertificateOptions) -> AsyncIterator[CertifyEvent]:
        """Certify a document; nothing is stored.

        Args:
            document: the specification, any bytes.
            options: what to measure.

        Yields:
            Progress, how each persona fared, and the certificate or `NotCertifiable` as the last event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option out of range.
            ResourceExhaustedError: the runs of a persona take longer than there is time.
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
        """Certify the latest version of a stored scenario, and keep the certificate with it; see `certify`.

        It was checked when it was stored, and is not checked again.

        Raises:
            NotFoundError: there is no such scenario, or not any more.
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
        """Compute a certificate again and compare; see `checking.check`.

        Raises:
            InvalidArgumentError: the specification is empty or too large.
        """
        check_document(spec)
        async with following(check(document, spec, self._workers)) as events:
            async for event in events:
                yield event
