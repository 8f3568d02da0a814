"""Certificate types and their document: canonical JSON, named by its hash.

The document has these fields under these names. It contains only the result, not the machine or the time.
Equal inputs result in equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from peripety import engine
from peripety.certification.drift import Drift  # noqa: TC001 - pydantic reads the annotations
from peripety.certification.options import CertificateOptions  # noqa: TC001 - pydantic reads the annotations
from peripety.certification.rate_interval import rate_interval
from peripety.engine import Persona, Proof  # noqa: TC001 - pydantic reads the annotations
from peripety.errors import (
    Finding,
    InvalidArgumentError,
)

ENGINE_VERSION: Final = "1.0"
"""The version of docs/reference/semantics.md; both backends implement it, so certificates do not name one."""

_DIGITS = 6


def round_figure(figure: float) -> float:
    """Round a figure to six decimals, half to even.

    C libraries disagree only from about the 16th digit on, so all of them agree on the rounded value.
    """
    return round(figure, _DIGITS)


class CertificateVerdict(Enum):
    """Result of a certification."""

    CERTIFIED = "certified"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate: `count` of `total` runs, with its 95 % interval."""

    count: int
    total: int
    value: float
    low: float
    high: float

    @classmethod
    def from_count(cls, count: int, total: int) -> Rate:
        """Return the rate of a count in at least one run."""
        low, high = rate_interval(count, total)
        return cls(count, total, round_figure(count / total), round_figure(low), round_figure(high))


@dataclass(frozen=True, slots=True)
class NamedCount:
    """Number of activations of a named part of the specification."""

    id: str
    count: int


@dataclass(frozen=True, slots=True)
class ActionCount:
    """Number of turns in which an action was legal, and in which it was chosen."""

    id: str
    legal: int
    taken: int


@dataclass(frozen=True, slots=True)
class TurnCount:
    """Number of runs that ended in a turn; turns count from 1."""

    turn: int
    count: int


@dataclass(frozen=True, slots=True)
class PersonaReport:
    """Figures of one persona. Parts of the specification are in its order, turns in theirs.

    Attributes:
        persona: the persona.
        turns: the number of turns of all runs.
        lost: the rate of lost runs.
        won: the rate of won runs.
        survived: the rate of runs that reached the horizon.
        errored: the rate of runs that ended because the state or a turn exceeded its limits.
        losses: the number of runs that each loss condition ended.
        wins: the number of runs that each win condition ended.
        loss_turns: the number of losses per turn; turns without a loss are omitted.
        actions: the use of each action.
        events: the number of draws of each event.
    """

    persona: Persona
    turns: int
    lost: Rate
    won: Rate
    survived: Rate
    errored: int
    losses: tuple[NamedCount, ...]
    wins: tuple[NamedCount, ...]
    loss_turns: tuple[TurnCount, ...]
    actions: tuple[ActionCount, ...]
    events: tuple[NamedCount, ...]

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return self.lost.total


@dataclass(frozen=True, slots=True)
class Band:
    """Band of the specification: the allowed fail rates of the random persona."""

    min_fail_rate: float
    max_fail_rate: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """Fairness of one version of a scenario.

    Attributes:
        spec_hash: the hash of the version.
        engine_version: version of the engine's semantics.
        rng_version: version of the random numbers.
        options: the options, with all defaults filled in.
        band: the band of the specification.
        verdict: refused if a finding is an error.
        findings: errors and warnings.
        personas: the figures of each persona, in the order of `PERSONAS`.
        planner_gap: the fail rate of the random persona minus the planner's, on the runs of the planner; None
            if the planner did not play.
        drifts: the drift of each quantity that an ending or decay reads.
        proofs: the proofs.
        dead_actions: actions that were never legal for any persona.
        dominant_actions: actions that the planner takes almost whenever they are legal.
    """

    spec_hash: str
    engine_version: str
    rng_version: int
    options: CertificateOptions
    band: Band
    verdict: CertificateVerdict
    findings: tuple[Finding, ...]
    personas: tuple[PersonaReport, ...]
    planner_gap: float | None
    drifts: tuple[Drift, ...]
    proofs: tuple[Proof, ...]
    dead_actions: tuple[str, ...]
    dominant_actions: tuple[str, ...]


_KIND = {"kind": "peripety.certificate", "version": 1}


def encode(certificate: Certificate) -> bytes:
    """Return the canonical document of a certificate."""
    return engine.canonicalize(to_json_fields(certificate))


def to_json_fields(certificate: Certificate) -> dict[str, Any]:
    """Return the certificate as JSON values."""
    return {**_KIND, **_type_adapter().dump_python(certificate, mode="json")}


def certificate_hash(document: bytes) -> str:
    """Return the SHA-256 of a document in hex, which is the name of the certificate."""
    return hashlib.sha256(document).hexdigest()


def decode(document: bytes) -> Certificate:
    """Parse the document of a certificate; white space around it is ignored.

    Raises:
        InvalidArgumentError: `CERTIFICATE_INVALID`, the document is not a certificate in canonical form.
    """
    document = document.strip()
    try:
        # Canonical form writes large floats as integers, which exceed the limit of integer parsing.
        certificate = _type_adapter().validate_python(json.loads(document, parse_int=float))
        written = encode(certificate)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"/{segment}" for segment in first["loc"])
        raise _invalid_error(f"{place or 'the document'}: {first['msg']}") from None
    except (ValueError, RecursionError, InvalidArgumentError):
        raise _invalid_error("it is not JSON, or exceeds the limits for numbers, texts and depth") from None
    # Lenient conversions, such as a number in quotes, do not survive the round trip.
    if written != document:
        raise _invalid_error("it is not in canonical form, or has unknown keys: use the original file")
    return certificate


def _invalid_error(reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The document is not a certificate of this version: {reason}",
        code="CERTIFICATE_INVALID",
    )


@cache
def _type_adapter() -> TypeAdapter[Certificate]:
    """Return the type adapter, created on first use because that takes some milliseconds."""
    return TypeAdapter(Certificate)
