"""Options of dry-runs and certificates, with their limits and validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from peripety.engine import PERSONAS, Persona
from peripety.errors import require_field

BLOCK = 64
"""The number of runs between two tests of the gate; testing after every run would increase the error rate."""

MIN_RUNS: Final = 64
MAX_RUNS: Final = 9_604
"""The number of runs for an interval of ± 1 point at any rate, with 95 % confidence."""

USUAL_PERSONAS: Final = tuple(persona for persona in PERSONAS if persona not in {"curious", "par"})
"""The personas of every certificate, unless fewer are requested."""

_MAX_SEED = 2**53 - 1
_MAX_RUNS = 100_000
_MAX_HORIZON = 1_000


@dataclass(frozen=True, slots=True)
class DryRunOptions:
    """Simulation options.

    Attributes:
        persona: the simulated player.
        seed: the seed of the runs; by default the seed of the specification.
        max_runs: the number of runs after which the point estimate decides.
        horizon: the maximum number of turns of a run; by default that of the specification.
    """

    persona: Persona = "random"
    seed: int | None = None
    max_runs: int = 4096
    horizon: int | None = None


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """Certificate options.

    Attributes:
        personas: the personas to measure; the random persona is always included, because it defines the band,
            and so are those that the version of the document adds.
        seed: the seed of the runs; by default the seed of the specification.
        max_runs: the maximum number of runs of a persona, `MIN_RUNS` … `MAX_RUNS`.
        horizon: the maximum number of turns of a run; by default that of the specification.
    """

    personas: tuple[Persona, ...] = USUAL_PERSONAS
    seed: int | None = None
    max_runs: int = MAX_RUNS
    horizon: int | None = None


def validate_options(options: DryRunOptions) -> None:
    """Validate simulation options.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    validate_seed(options.seed, ".dry_run.seed")
    enough = BLOCK <= options.max_runs <= _MAX_RUNS
    require_field(
        enough,
        ".dry_run.max_runs",
        f"must be from {BLOCK} to {_MAX_RUNS}, or 0 for the usual number",
    )
    _validate_horizon(options.horizon, ".dry_run.horizon")


def validate_certificate_options(options: CertificateOptions, field: str = ".options") -> None:
    """Validate certificate options.

    Args:
        options: the options.
        field: their path in the request.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    validate_seed(options.seed, f"{field}.seed")
    enough = MIN_RUNS <= options.max_runs <= MAX_RUNS
    reason = f"must be from {MIN_RUNS} to {MAX_RUNS}, which is enough for any rate, or 0 for that"
    require_field(enough, f"{field}.max_runs", reason)
    _validate_horizon(options.horizon, f"{field}.horizon")


def _validate_horizon(horizon: int | None, field: str) -> None:
    require_field(horizon is None or 0 < horizon <= _MAX_HORIZON, field, f"must be from 0 to {_MAX_HORIZON}")


def validate_seed(seed: int | None, field: str) -> None:
    """Validate the seed of a specification or of runs.

    Raises:
        InvalidArgumentError: the seed is out of range.
    """
    require_field(seed is None or 0 <= seed <= _MAX_SEED, field, "must be from 0 to 2^53 - 1")
