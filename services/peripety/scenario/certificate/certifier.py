"""Certification of documents and stored scenarios, with progress; see `peripety.certification`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from peripety import engine
from peripety.certification.certificate import (
    CertificateComparison,
    CertificationProgress,
    certify,
    verify_certificate,
)
from peripety.certification.options import validate_certificate_options
from peripety.certification.types import Certificate, PersonaReport
from peripety.core.concurrency import closing
from peripety.errors import Finding, filter_errors
from peripety.scenario.types import Progress, ProgressStage
from peripety.scenario.validation import load_valid, validate_document_size

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.certification.options import CertificateOptions
    from peripety.core.concurrency import WorkerPool
    from peripety.scenario.registry import ProgramCache, ScenarioRegistry


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CertificationRefused:
    """The specification has errors, so nothing was measured; the last event."""

    findings: tuple[Finding, ...]


CertifyEvent: TypeAlias = Progress | PersonaReport | Certificate | CertificationRefused


def to_progress(event: T | CertificationProgress) -> T | Progress:
    """Return the progress of a certification as that of an operation, and any other event unchanged."""
    if isinstance(event, CertificationProgress):
        return Progress(ProgressStage.CERTIFYING, event.message, event.fraction)
    return event


class Certifier:
    """Certification of documents and stored scenarios; certificates of documents are not stored.

    Args:
        registry: stores scenarios and their certificates.
        programs: cache of compiled programs.
        workers: pool for validation, proofs and simulation.
    """

    def __init__(self, registry: ScenarioRegistry, programs: ProgramCache, workers: WorkerPool) -> None:
        self._registry = registry
        self._programs = programs
        self._workers = workers

    async def certify(self, document: bytes, options: CertificateOptions) -> AsyncIterator[CertifyEvent]:
        """Certify a document; nothing is stored.

        Args:
            document: the specification, any bytes.
            options: certificate options.

        Yields:
            Progress, the report of each persona, and the certificate or `CertificationRefused` as the last
            event.

        Raises:
            InvalidArgumentError: the document is empty or too large, or an option is out of range.
            ResourceExhaustedError: the runs of a persona exceed the time limit.
        """
        validate_document_size(document)
        validate_certificate_options(options)
        yield Progress(ProgressStage.VALIDATING, "checking the document", 0.0)
        errors = filter_errors(await self._workers.run(engine.validate, document))
        if errors:
            yield CertificationRefused(errors)
            return
        program = await self._workers.run(load_valid, document)
        async with closing(certify(program, options, self._workers)) as events:
            async for event in events:
                yield to_progress(event)

    async def certify_stored(
        self,
        scenario_id: str,
        options: CertificateOptions,
    ) -> AsyncIterator[CertifyEvent]:
        """Certify the latest version of a stored scenario, and store the certificate with it; see `certify`.

        The version was validated when it was stored, and is not validated again.

        Raises:
            NotFoundError: the scenario does not exist, or was deleted meanwhile.
        """
        validate_certificate_options(options)
        scenario = await self._registry.get_scenario(scenario_id)
        program = await self._programs.load(scenario.spec_hash, scenario.document)
        async with closing(certify(program, options, self._workers)) as events:
            async for event in events:
                if isinstance(event, Certificate):
                    await self._registry.add_certificate(scenario_id, event)
                yield to_progress(event)

    async def verify(self, document: bytes, spec: bytes) -> AsyncIterator[Progress | CertificateComparison]:
        """Recompute a certificate and compare.

        Raises:
            InvalidArgumentError: the specification is empty or too large.
        """
        validate_document_size(spec)
        async with closing(verify_certificate(document, spec, self._workers)) as events:
            async for event in events:
                yield to_progress(event)
