"""Offline scenario author: writes a specification from a text, without a model.

The terms are from the text; the design is a fixed template. Every blueprint, including an incomplete one,
gives a valid specification. The same text, seed and variation give the same document, byte for byte.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.author.blueprint import Role, SeededChoice
from peripety.author.blueprint_builder import compose
from peripety.author.calibration import (
    CalibrationParameters,
    build_scales,
    calibrate,
    calibration_target,
    initial_parameters,
)
from peripety.author.spec_builder.complete import complete_blueprint
from peripety.author.spec_builder.quantities import PLAYER_ID, build_sized_blueprint, build_state, time_scale
from peripety.author.spec_builder.rules import (
    build_actions,
    build_endings,
    build_events,
    describe_stakes,
    find_loss_conditions,
    find_win_conditions,
)
from peripety.author.text_analysis.languages import OFFLINE_MARK

if TYPE_CHECKING:
    from peripety.author.blueprint import Blueprint
    from peripety.author.spec_builder.quantities import SizedBlueprint


_BUDGET = {"min_fail_rate": 0.3, "max_fail_rate": 0.7}


def build_document(world: SizedBlueprint, seed: int, *, spec_id: str) -> dict[str, Any]:
    """Return the ScenarioSpec 1.0 of a world."""
    timing = world.time_scale
    clock = {"clock": {"turn": timing.format_duration(1)}} if timing.minutes else {}
    lost = build_endings(world, find_loss_conditions(world))
    won = build_endings(world, find_win_conditions(world), [ending["id"] for ending in lost])
    return {
        "spec_version": "1.0",
        "id": spec_id,
        "name": world.blueprint.title,
        "seed": seed,
        **clock,
        "horizon": timing.horizon,
        "entities": _build_entities(world),
        "state": build_state([*world.gauges.values(), *world.use_counters.values()]),
        "actions": build_actions(world),
        "random_events": build_events(world),
        "loss_conditions": lost,
        "win_conditions": won,
        "negativity_budget": {**_BUDGET, "decay_per_turn": _build_decay(world)},
    }


def _build_decay(world: SizedBlueprint) -> dict[str, float]:
    """Return the change per turn of each quantity that decays, by path."""
    return {
        gauge.path: gauge.to_amount(-1 if gauge.role is Role.THREAT else 1)
        for gauge in world.gauges.values()
        if gauge.quantity.fades
    }


def _build_entities(world: SizedBlueprint) -> list[dict[str, Any]]:
    player = {"id": PLAYER_ID, "description": describe_stakes(world), "playable": True}
    if you := world.blueprint.player or world.blueprint.phrases.get("you"):
        player["name"] = you
    return [player, *({"id": id_, "name": person} for person, id_ in world.people.items())]


def build_spec(blueprint: Blueprint, seed: int, *, spec_id: str) -> dict[str, Any]:
    """Return the ScenarioSpec 1.0 of a blueprint.

    Args:
        blueprint: the blueprint; missing parts are added by rules.
        seed: seed of the scenario and of all choices that the blueprint leaves open.
        spec_id: the id of the specification.
    """
    blueprint = complete_blueprint(blueprint)
    number = SeededChoice(spec_id, seed).choose_number
    takes = time_scale(blueprint, number("horizon", 3))

    def spec_of(measures: CalibrationParameters) -> dict[str, Any]:
        numbers = build_scales(blueprint, measures, number)
        return build_document(
            build_sized_blueprint(blueprint, numbers, takes, measures.due, measures.pressures),
            seed,
            spec_id=spec_id,
        )

    first = initial_parameters(blueprint, takes.horizon)
    goals = sum(one.role is Role.GOAL for one in blueprint.quantities)
    return calibrate(
        first,
        calibration_target(len(first.buffers) + bool(takes.due), goals, takes.horizon),
        spec_of,
    )


_SEED_RANGE = 2**53


def author_from_text(text: str, seed: int | None = None, variation: int = 0) -> dict[str, Any]:
    """Return a ScenarioSpec 1.0 about the text.

    Args:
        text: text in any language; may be empty.
        seed: seed of the scenario and of its choices; derived from the text if None.
        variation: 0 for the first attempt; another number changes numbers and roles for a retry.
    """
    digest = hashlib.sha256(text.encode("utf-8", "replace"))
    if seed is None:
        seed = int.from_bytes(digest.digest()[:6], "big")
    choices = SeededChoice(digest.hexdigest(), seed, variation)
    blueprint = compose(text, choices.choose_number)
    return build_spec(
        replace(blueprint, title=f"{blueprint.title} {OFFLINE_MARK}".strip()),
        seed % _SEED_RANGE,
        spec_id=f"offline_{choices.name}",
    )
