"""Verification of a certificate: recompute it and compare the documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import FailedPreconditionError, Finding, InvalidArgumentError
from peripety.gateway.streams import following
from peripety.scenarios.certificates.certifying import certify
from peripety.scenarios.certificates.document import decode, fields
from peripety.scenarios.certificates.model import ENGINE_VERSION, Certificate
from peripety.scenarios.checks import check_certificate_options
from peripety.scenarios.model import Progress
from peripety.scenarios.runs import MOST_SECONDS
from peripety.sim import RNG_VERSION
from peripety.sim.differences import differences, shown
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.sim import Program
    from peripety.workers import Worker

__all__ = ["Comparison", "check"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a verification.

    Attributes:
        findings: the differences, with JSON Pointers into the certificate; empty for a match.
    """

    findings: tuple[Finding, ...]

    @property
    def matches(self) -> bool:
        """Return True if the recomputed document is the same."""
        return not self.findings


async def check(
    document: bytes, spec: bytes, workers: Worker, most_seconds: float = MOST_SECONDS
) -> AsyncIterator[Progress | Comparison]:
    """Recompute a certificate under its own options, and compare.

    Args:
        document: the certificate.
        spec: the certified specification, as JSON.
        workers: pool for proofs and simulation.
        most_seconds: time limit of each persona.

    Yields:
        Progress, and the comparison as the last item.

    Raises:
        InvalidArgumentError: the document is not a certificate, or is of another specification.
        SpecError: the specification has errors.
        FailedPreconditionError: it was made by another version of the engine.
        ResourceExhaustedError: the runs of a persona exceed the time limit.
    """
    given = decode(document)
    check_certificate_options(given.options)
    _check_versions(given)
    program = await workers.run(sim.compile, spec)
    _check_spec(given, program)
    async with following(certify(program, given.options, workers, most_seconds)) as events:
        async for event in events:
            if isinstance(event, Progress):
                yield event
            elif isinstance(event, Certificate):
                yield Comparison(tuple(_findings(fields(given), fields(event))))


def _check_versions(given: Certificate) -> None:
    ours = (ENGINE_VERSION, RNG_VERSION)
    theirs = (given.engine_version, given.rng_version)
    if theirs != ours:
        raise FailedPreconditionError(
            f"The certificate was made by version {theirs[0]} of the engine with random numbers {theirs[1]},"
            f" and this is version {ours[0]} with {ours[1]}: check it with a program of that version, or"
            " certify anew",
            code="OTHER_ENGINE",
        )


def _check_spec(given: Certificate, program: Program) -> None:
    if given.spec_hash != program.spec_hash:
        raise InvalidArgumentError(
            f"The certificate is about the specification {given.spec_hash}, and this one is"
            f" {program.spec_hash}: give the one that it is about, or certify this one",
            code="OTHER_SPEC",
        )


def _findings(given: Any, computed: Any) -> Iterator[Finding]:
    for place, one, other in differences(given, computed):
        message = f"the certificate has {shown(one)}, but the computed value is {shown(other)}"
        yield Finding("CERTIFICATE_DIFFERS", pointer(place), message)
