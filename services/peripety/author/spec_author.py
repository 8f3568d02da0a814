"""Offline scenario author: writes a specification from a text, without a model.

A text becomes the scenario of a plot, with the words of the text. A blueprint, which a small model has
written section by section, becomes a specification by rules; every blueprint, including an incomplete one,
gives a valid one. The same text, seed and variation give the same document, byte for byte.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from peripety.author.blueprint import Role, SeededChoice
from peripety.author.calibration import (
    CalibrationParameters,
    build_scales,
    calibrate,
    calibration_target,
    initial_parameters,
)
from peripety.author.plots.document import PlotDocument
from peripety.author.plots.plot import (
    DEFAULT_LANGUAGE,
    PLAIN,
    list_languages,
    list_plots,
    load_plot,
    load_texts,
)
from peripety.author.plots.slots import collect_slots
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
from peripety.author.text_analysis.reading import read_text

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
    """Return a ScenarioSpec 1.1 about the text: its plot, or the plain one.

    Args:
        text: text in any language; may be empty.
        seed: seed of the scenario and of its choices; derived from the text if None.
        variation: 0 for the first attempt; another number changes choices and numbers for a retry.
    """
    digest = hashlib.sha256(text.encode("utf-8", "replace"))
    if seed is None:
        seed = int.from_bytes(digest.digest()[:6], "big")
    choices = SeededChoice(digest.hexdigest(), seed, variation)
    reading = read_text(text)
    is_written = reading.language in list_languages()
    language = reading.language if is_written else DEFAULT_LANGUAGE
    plot_id = reading.pattern if reading.pattern in list_plots(language) else PLAIN
    texts = load_texts(plot_id, language)
    # The words of a language without texts are quoted; an empty text has none.
    is_foreign = bool(text.strip()) and not is_written
    slots = collect_slots(reading, texts, quotes=is_foreign)
    return PlotDocument(load_plot(plot_id), texts, reading, slots, choices.choose_number).build(
        spec_id=f"offline_{choices.name}",
        seed=seed % _SEED_RANGE,
        mark=OFFLINE_MARK,
        note=texts["common"]["quoted"] if is_foreign else "",
        variation=variation,
    )
