"""What a certificate says. Its document has these fields under these names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from peripety.errors import Finding  # noqa: TC001 - pydantic reads the annotations
from peripety.scenarios.drift import Drift  # noqa: TC001 - pydantic reads the annotations
from peripety.scenarios.rates import interval
from peripety.sim import PERSONAS, Persona, Proof

__all__ = [
    "ENGINE_VERSION",
    "LEAST_RUNS",
    "MOST_RUNS",
    "ActionCount",
    "Band",
    "Certificate",
    "CertificateOptions",
    "CertificateVerdict",
    "NamedCount",
    "PersonaReport",
    "Rate",
    "TurnCount",
    "rounded",
]

ENGINE_VERSION: Final = "1.0"
"""Version of docs/semantics.md. Both cores implement it, so a certificate does not say which one ran."""

LEAST_RUNS: Final = 64
MOST_RUNS: Final = 9_604
"""So many runs give ± 1 point, 95 times in 100, whatever the rate is."""

_DIGITS = 6


def rounded(figure: float) -> float:
    """A figure as documents have it: the double of six decimals that is nearest, of two the even one.

    What C libraries disagree about is the 16th digit, so they agree about these.
    """
    return round(figure, _DIGITS)


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """What to measure.

    Attributes:
        personas: who plays; the random persona always does, because the band is about it.
        seed: what the seeds of the runs follow from; the specification's own by default.
        max_runs: most runs of a persona, `LEAST_RUNS` … `MOST_RUNS`.
        horizon: most turns of a run; the specification's own by default.
    """

    personas: tuple[Persona, ...] = PERSONAS
    seed: int | None = None
    max_runs: int = MOST_RUNS
    horizon: int | None = None


class CertificateVerdict(Enum):
    """What a certificate comes to."""

    CERTIFIED = "certified"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happened: in `count` of `total` runs, with its 95 % interval."""

    count: int
    total: int
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Rate:
        """The rate of a count in at least one run."""
        low, high = interval(count, total)
        return cls(count, total, rounded(count / total), rounded(low), rounded(high))


@dataclass(frozen=True, slots=True)
class NamedCount:
    """How often something of the specification was at work."""

    id: str
    count: int


@dataclass(frozen=True, slots=True)
class ActionCount:
    """In how many turns an action was among the choices, and in how many it was taken."""

    id: str
    legal: int
    taken: int


@dataclass(frozen=True, slots=True)
class TurnCount:
    """How many runs ended in a turn; turns count from 1."""

    turn: int
    count: int


@dataclass(frozen=True, slots=True)
class PersonaReport:
    """How one persona fared. Everything of the specification is in its order, turns in theirs.

    Attributes:
        persona: who played.
        turns: turns played in all runs.
        lost: runs that were lost.
        won: runs that were won.
        survived: runs that reached the horizon.
        errored: runs that ended because the state or a turn outgrew its limits.
        losses: runs that each loss condition ended.
        wins: runs that each win condition ended.
        loss_turns: in which turns runs were lost, without the turns in which none was.
        actions: how each action was used.
        events: how often each event was drawn.
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
        """How many runs were played."""
        return self.lost.total


@dataclass(frozen=True, slots=True)
class Band:
    """The shares of lost runs between which the specification wants the random persona."""

    min_fail_rate: float
    max_fail_rate: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known about the fairness of one version of a scenario.

    Attributes:
        spec_hash: names the version.
        engine_version: version of the engine's semantics.
        rng_version: version of the random numbers.
        options: what was measured, with everything that was left open filled in.
        band: the band that the specification asks for.
        verdict: refused when a finding is an error.
        findings: what is in the way, or worth knowing.
        personas: how each persona fared, in the order of `PERSONAS`.
        planner_gap: the fail rate of the random persona less the planner's, both over the runs that the
            planner played; None when it did not.
        drifts: how each quantity that an ending or decay reads moves.
        proofs: what was proved without any run.
        dead_actions: actions that were never among the choices of any persona.
        dominant_actions: actions that the planner takes almost whenever it can.
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
