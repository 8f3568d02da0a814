"""What requests ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.scenarios.batch import BatchOptions
from peripety.scenarios.checks import require, unsupported
from peripety.scenarios.messages.certificates import options_asked
from peripety.scenarios.model import DryRunOptions, GenerationLimits, GenerationOrder, Level

if TYPE_CHECKING:
    from peripety.sim import Persona

__all__ = ["batch_options", "dry_run_options", "level_asked", "order"]

_MAX_ANSWERS = 4
_MAX_RUNS = 4_096
_PERSONAS: dict[int, Persona] = {
    engine.PERSONA_UNSPECIFIED: "random",
    engine.PERSONA_RANDOM: "random",
    engine.PERSONA_IDLE: "idle",
}
_LEVELS = {
    pb.VALIDATION_LEVEL_UNSPECIFIED: Level.STATIC,
    pb.VALIDATION_LEVEL_SCHEMA: Level.SCHEMA,
    pb.VALIDATION_LEVEL_STATIC: Level.STATIC,
    pb.VALIDATION_LEVEL_DRY_RUN: Level.DRY_RUN,
    pb.VALIDATION_LEVEL_CERTIFICATE: Level.CERTIFICATE,
}


def order(request: pb.GenerateScenarioRequest) -> GenerationOrder:
    """What a request wants a specification about."""
    return GenerationOrder(
        description=request.description,
        seed=request.seed if request.HasField("seed") else None,
        model=request.model or None,
        level=level_asked(request.level),
        limits=_limits(request),
    )


def _limits(request: pb.GenerateScenarioRequest) -> GenerationLimits:
    budget = request.budget
    if budget.HasField("max_cost"):
        raise unsupported(".budget.max_cost", "a cap on money")
    answers = request.max_attempts or _MAX_ANSWERS
    return GenerationLimits(
        answers=min(answers, budget.max_calls or answers),
        tokens=budget.max_tokens or None,
        seconds=budget.max_time.ToMilliseconds() / 1000 or None,
    )


def level_asked(level: pb.ValidationLevel.ValueType) -> Level:
    """How much is to be checked."""
    require(level in _LEVELS, ".level", "is no ValidationLevel")
    return _LEVELS[level]


def batch_options(options: pb.ValidationOptions) -> BatchOptions:
    """How to check the items of a batch."""
    return BatchOptions(
        level_asked(options.level),
        dry_run_options(options.dry_run),
        options_asked(options.certificate, ".certificate"),
    )


def dry_run_options(options: pb.DryRunOptions) -> DryRunOptions:
    """How to simulate."""
    persona = options.persona
    if persona not in _PERSONAS and persona in engine.Persona.values():
        raise unsupported(".dry_run.persona", engine.Persona.Name(persona))
    require(persona in _PERSONAS, ".dry_run.persona", "is no Persona")
    return DryRunOptions(
        persona=_PERSONAS[persona],
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or _MAX_RUNS,
        horizon=options.horizon or None,
    )
