"""Requests from protobuf messages."""

from __future__ import annotations

from typing import TypeVar

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.config import ProviderName
from peripety.gateway.messages.requests import budget_from_proto
from peripety.requests import require
from peripety.scenarios.amending.model import AmendmentOrder
from peripety.scenarios.balancing.model import CONFIRMING_RUNS, BalanceOrder, Target
from peripety.scenarios.batch import BatchOptions
from peripety.scenarios.checks import unsupported
from peripety.scenarios.inspecting.model import INSPECTING_RUNS
from peripety.scenarios.messages import parts
from peripety.scenarios.messages.certificates import options_asked
from peripety.scenarios.model import DryRunOptions, GenerationLimits, GenerationOrder, Level
from peripety.sim import Persona

__all__ = [
    "amendment",
    "balance_order",
    "batch_options",
    "dry_run_options",
    "inspection_options",
    "level_asked",
    "order",
    "provider",
]

_Default = TypeVar("_Default", Level, None)

_MAX_ANSWERS = 4
_MAX_RUNS = 4_096
_PERSONAS: dict[int, Persona] = {
    engine.PERSONA_UNSPECIFIED: "random",
    **parts.PERSONAS,
}
_GATE_PERSONAS = frozenset[Persona]({"random", "idle"})
_LEVELS = {
    pb.VALIDATION_LEVEL_SCHEMA: Level.SCHEMA,
    pb.VALIDATION_LEVEL_STATIC: Level.STATIC,
    pb.VALIDATION_LEVEL_DRY_RUN: Level.DRY_RUN,
    pb.VALIDATION_LEVEL_CERTIFICATE: Level.CERTIFICATE,
}


def order(request: pb.GenerateScenarioRequest) -> GenerationOrder:
    """Convert a generation request."""
    return GenerationOrder(
        description=request.description,
        seed=request.seed if request.HasField("seed") else None,
        model=request.model or None,
        level=level_asked(request.level, Level.CERTIFICATE),
        limits=_limits(request),
        refresh=request.refresh,
    )


def amendment(request: pb.AmendScenarioRequest) -> AmendmentOrder:
    """Convert an amendment request."""
    return AmendmentOrder(
        request.scenario_id,
        request.instruction,
        expected=request.expected_spec_hash or None,
        model=request.model or None,
        level=level_asked(request.level, None),
        limits=_limits(request),
    )


def _limits(request: pb.GenerateScenarioRequest | pb.AmendScenarioRequest) -> GenerationLimits:
    budget = budget_from_proto(".budget", request.budget)
    return GenerationLimits(request.max_attempts or _MAX_ANSWERS, budget)


def level_asked(level: pb.ValidationLevel.ValueType, default: _Default) -> Level | _Default:
    """Convert a validation level; return the default if it is unspecified."""
    if level == pb.VALIDATION_LEVEL_UNSPECIFIED:
        return default
    require(level in _LEVELS, ".level", "is not a ValidationLevel")
    return _LEVELS[level]


def batch_options(options: pb.ValidationOptions) -> BatchOptions:
    """Convert batch validation options."""
    return BatchOptions(
        level_asked(options.level, Level.STATIC),
        dry_run_options(options.dry_run),
        options_asked(options.certificate, ".certificate"),
    )


def balance_order(request: pb.BalanceScenarioRequest) -> BalanceOrder:
    """Convert a balance request; every persona is allowed."""
    require(request.HasField("target"), ".target", "is required: how often the persona should lose")
    target = Target(request.target.min_fail_rate, request.target.max_fail_rate)
    return BalanceOrder(request.spec, target, _simulated(request.dry_run, CONFIRMING_RUNS))


def inspection_options(request: pb.InspectScenarioRequest) -> DryRunOptions | None:
    """Convert the simulation options of an inspection, None for no runs; every persona is allowed."""
    return _simulated(request.dry_run, INSPECTING_RUNS) if request.HasField("dry_run") else None


def dry_run_options(options: pb.DryRunOptions) -> DryRunOptions:
    """Convert simulation options of the gate, which allows only some personas."""
    simulated = _simulated(options, _MAX_RUNS)
    if simulated.persona not in _GATE_PERSONAS:
        raise unsupported(".dry_run.persona", engine.Persona.Name(options.persona))
    return simulated


def _simulated(options: pb.DryRunOptions, runs: int) -> DryRunOptions:
    require(options.persona in _PERSONAS, ".dry_run.persona", "is not a Persona")
    return DryRunOptions(
        persona=_PERSONAS[options.persona],
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or runs,
        horizon=options.horizon or None,
    )


def provider(name: str) -> ProviderName | None:
    """Convert the name of a provider whose tool limits apply; None if empty."""
    known = {known.value: known for known in ProviderName}
    require(not name or name in known, ".provider", f"must be one of {', '.join(known)}, or empty")
    return known.get(name)
