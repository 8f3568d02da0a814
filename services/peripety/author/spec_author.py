"""Offline scenario author: writes a specification from a text, without a model.

A text becomes the scenario of a plot, with the words of the text. A blueprint, which a small model has
written section by section, becomes a specification by rules; every blueprint, including an incomplete one,
gives a valid one. The same text, seed and variation give the same document, byte for byte.

The numbers of a blueprint are calibrated: a search for numbers at which random play loses about half of its
runs. Only the random persona is simulated. It is cheap, and its win rate predicts the rates of planning
personas: where random play wins a few runs in a hundred, planning wins most and loses some. Both engine
backends give the same results, so the search finds the same numbers. The target depends on the scenario; its
bounds were measured with the planner on some hundreds of scenarios. The more loss conditions there are, the
more planning helps. With several goals, which must all be reached, random play reaches few.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.blueprint import Role, SeededChoice, Size
from peripety.author.plots.addressing import address_actor, address_named
from peripety.author.plots.document import PlotDocument
from peripety.author.plots.implied import imply_goal
from peripety.author.plots.plot import (
    DEFAULT_LANGUAGE,
    PLAIN,
    apply_variants,
    list_languages,
    list_plots,
    load_plot,
    load_texts,
)
from peripety.author.plots.slots import collect_slots, find_variants
from peripety.author.spec_builder.complete import complete_blueprint
from peripety.author.spec_builder.quantities import (
    PLAYER_ID,
    QuantityScale,
    build_sized_blueprint,
    build_state,
    time_scale,
    to_integer_if_whole,
)
from peripety.author.spec_builder.rules import (
    build_actions,
    build_endings,
    build_events,
    describe_stakes,
    find_loss_conditions,
    find_win_conditions,
)
from peripety.author.text_analysis.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.author.blueprint import Blueprint, Quantity
    from peripety.author.spec_builder.quantities import SizedBlueprint


_MAX_CAUSES = 7
_SHORT = 14


@dataclass(frozen=True, slots=True)
class CalibrationTarget:
    """Target results of the random persona.

    Attributes:
        lost: the target share of lost runs.
        min_won: the minimum share of won runs; below it, planning personas win too rarely.
        max_won: the maximum share of won runs; above it, planning personas always win.
    """

    lost: float
    min_won: float
    max_won: float


def calibration_target(causes: int, goals: int, horizon: int) -> CalibrationTarget:
    """Return the calibration target.

    Args:
        causes: the number of loss conditions.
        goals: the number of goals.
        horizon: the number of turns; several goals need most of them.
    """
    causes = min(causes, _MAX_CAUSES)
    lost = 0.46 + 0.02 * causes
    if goals > 1:
        most = max(0.05 - 0.004 * (horizon - _SHORT), 0.014)
        return CalibrationTarget(lost, 0.4 * most, most)
    most = 0.225 - 0.02 * causes
    return CalibrationTarget(lost, 0.65 * most, most)


_TRIALS, _RUNS = 14, 512
_TOLERANCE = 0.06
_MIN_LOSS_SHARE = 0.03
"""The minimum share of losses for each loss condition."""
_LARGEST_STEP = 1.5
_COMMON_EXPONENT, _BUFFER_EXPONENT, _GOAL_EXPONENT = 0.4, 0.2, 0.12
"""Exponents of the correction ratio: for all buffers together, for each buffer, for the goals."""
_FEW = 0.005
_BUFFER_BOUNDS = (6.0, 60.0)
_PRESSURE_BOUNDS = (0.4, 3.0)
_TARGET_BOUNDS = (6.0, 120.0)
_DUE_BOUNDS = (0.05, 0.9)


@dataclass(frozen=True, slots=True)
class _CalibrationTrial:
    """Result of random play on one candidate.

    Attributes:
        spec: the candidate.
        lost: the share of lost runs.
        won: the share of won runs.
        causes: the share of the losses of each loss condition, in order.
    """

    spec: dict[str, Any]
    lost: float
    won: float
    causes: tuple[float, ...]


def calibrate(
    measures: CalibrationParameters,
    target: CalibrationTarget,
    build_spec: Callable[[CalibrationParameters], dict[str, Any]],
) -> dict[str, Any]:
    """Return the specification that comes closest to the target.

    Args:
        measures: the starting point.
        target: the target for random play.
        build_spec: builds the specification for the given measures. Its first loss conditions are those
            of the
            buffers, in order; the deadline follows, if there is one.
    """
    trials: list[_CalibrationTrial] = []
    for _ in range(_TRIALS):
        trials.append(_run_trial(build_spec(measures)))
        if not _distance_to_target(target, trials[-1]):
            break
        measures = _correct_measures(measures, target, trials[-1])
    return min(trials, key=lambda trial: _distance_to_target(target, trial)).spec


def _run_trial(spec: dict[str, Any]) -> _CalibrationTrial:
    report = engine.compile(json.dumps(spec, ensure_ascii=False)).dry_run(runs=_RUNS)
    causes = (report.losses[loss["id"]] / max(report.lost, 1) for loss in spec["loss_conditions"])
    return _CalibrationTrial(spec, report.fail_rate, report.won / report.runs, tuple(causes))


def _distance_to_target(target: CalibrationTarget, trial: _CalibrationTrial) -> float:
    """Return the distance of a trial from the target; 0 for a match."""
    rate = max(abs(trial.lost - target.lost) - _TOLERANCE, 0)
    causes = sum(max(_MIN_LOSS_SHARE - share, 0) for share in trial.causes)
    too_few = max(target.min_won - trial.won, 0) / target.min_won
    too_many = max(trial.won - target.max_won, 0)
    return 4 * rate + causes + too_few / 2 + too_many


def _correct_measures(
    measures: CalibrationParameters,
    target: CalibrationTarget,
    trial: _CalibrationTrial,
) -> CalibrationParameters:
    """Return measures corrected towards the target."""
    longer = 1.0
    if not target.min_won <= trial.won <= target.max_won:
        longer = _correction_factor(
            (trial.won + _FEW) / ((target.min_won + target.max_won) / 2 + _FEW),
            _GOAL_EXPONENT,
        )
    overall = _correction_factor(trial.lost / target.lost, _COMMON_EXPONENT) * longer**0.5
    fair = 1 / len(trial.causes)
    by_cause = [_correction_factor((share + 0.01) / fair, _BUFFER_EXPONENT) for share in trial.causes]
    has_deadline = len(by_cause) > len(measures.buffers)
    return replace(
        measures,
        buffers={
            name: _clamp(steps * overall * own, _BUFFER_BOUNDS)
            for (name, steps), own in zip(measures.buffers.items(), by_cause, strict=False)
        },
        pressures={
            name: _clamp(pressure / own, _PRESSURE_BOUNDS)
            for (name, pressure), own in zip(measures.pressures.items(), by_cause, strict=False)
        },
        target=_clamp(measures.target * longer, _TARGET_BOUNDS),
        due=_clamp(measures.due / by_cause[-1], _DUE_BOUNDS) if has_deadline else measures.due,
    )


def _correction_factor(ratio: float, power: float) -> float:
    return _clamp(max(ratio, 0.01) ** power, (1 / _LARGEST_STEP, _LARGEST_STEP))


def _clamp(number: float, bounds: tuple[float, float]) -> float:
    least, most = bounds
    return min(max(number, least), most)


_INITIAL_BUFFERS = {Size.SMALL: 9.0, Size.MEDIUM: 13.0, Size.LARGE: 18.0}
_UNITS = (1, 2, 5, 10)
_AT_START = 2
_AMONG = 4
"""The start of a counted threat, in steps."""
_RESERVE_START, _MUCH = 3, 5
_FINE = 4
_PARTS = (3.5, 3, 2.5, 2, 1.5, 1, 0.5, 0.25, 0.125)
"""The allowed step sizes below four; sums of them are exact in floating point."""


@dataclass(frozen=True, slots=True)
class CalibrationParameters:
    """Parameters of the calibration search.

    Attributes:
        buffers: for each quantity with a loss condition, the number of steps from the start to the loss.
        pressures: for each of them, the factor of the weight of harmful events.
        target: the number of steps of all goals together.
        due: the share of the goal that the deadline requires.
    """

    buffers: Mapping[str, float]
    pressures: Mapping[str, float]
    target: float
    due: float


def initial_parameters(blueprint: Blueprint, horizon: int) -> CalibrationParameters:
    """Return the starting point of the search."""
    losing = [one for one in blueprint.quantities if not one.is_unseen and one.role is not Role.GOAL]
    return CalibrationParameters(
        {one.name: _INITIAL_BUFFERS[one.start] for one in losing},
        {one.name: 1.0 for one in losing},
        horizon * 0.8,
        0.4,
    )


def build_scales(
    blueprint: Blueprint,
    measures: CalibrationParameters,
    number: Callable[[str, int], int],
) -> dict[str, QuantityScale]:
    """Return the scale of each quantity.

    Args:
        blueprint: a complete blueprint; known amounts are not changed.
        measures: the numbers of steps.
        number: seeded number for a tag, below a bound; chooses the step size where the amount is unknown.
    """
    goals = sum(one.role is Role.GOAL and not one.is_unseen for one in blueprint.quantities)
    return {
        one.name: _build_scale(one, measures, goals, _UNITS[number(f"unit {one.name}", len(_UNITS))])
        for one in blueprint.quantities
    }


def _build_scale(
    quantity: Quantity,
    measures: CalibrationParameters,
    goals: int,
    unit: float,
) -> QuantityScale:
    if quantity.is_unseen:
        is_threat = quantity.role is Role.THREAT
        return QuantityScale(1, 0 if is_threat else _RESERVE_START, _MUCH if is_threat else 0)
    steps = measures.target / goals if quantity.role is Role.GOAL else measures.buffers[quantity.name]
    if quantity.role is Role.GOAL:
        unit = _round_unit(quantity.amount, steps) or unit
        return QuantityScale(unit, 0, quantity.amount or to_integer_if_whole(round(steps) * unit))
    if quantity.role is Role.THREAT:
        unit = _round_unit(quantity.amount, _AMONG) or unit
        start = quantity.amount or _AT_START * unit
        return QuantityScale(unit, start, to_integer_if_whole(start + round(steps) * unit))
    unit = _round_unit(quantity.amount, steps) or unit
    return QuantityScale(unit, quantity.amount or to_integer_if_whole(round(steps) * unit), 0)


def _round_unit(amount: float | None, steps: float) -> float:
    """Return a round step size, such that the steps make about the amount; 0 if the amount is unknown."""
    if not amount:
        return 0
    step = amount / steps
    if step < _FINE:
        return next((part for part in _PARTS if part <= step), _PARTS[-1])
    digits = len(str(int(step)))
    return round(step, min(2 - digits, 0))


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


def author_from_text(
    text: str, seed: int | None = None, variation: int = 0, language: str = ""
) -> dict[str, Any]:
    """Return a ScenarioSpec 1.1 about the text: its plot, or the plain one.

    Args:
        text: text in any language; may be empty.
        seed: seed of the scenario and of its choices; derived from the text if None.
        variation: 0 for the first attempt; another number changes choices and numbers for a retry.
        language: language of names and texts as a BCP 47 tag; empty for that of the text. Without texts in
            it, they are in English, with a note in the premise.
    """
    digest = hashlib.sha256(text.encode("utf-8", "replace"))
    if seed is None:
        seed = int.from_bytes(digest.digest()[:6], "big")
    choices = SeededChoice(digest.hexdigest(), seed, variation)
    reading = read_text(address_actor(text))
    if reading.language == "en" and reading.role is not None and reading.role.name:
        reading = read_text(address_named(reading.text, reading.role.name))
    wanted = language.partition("-")[0].lower() or reading.language
    written = wanted if wanted in list_languages() else DEFAULT_LANGUAGE
    if written == reading.language:
        reading = imply_goal(reading, load_texts(PLAIN, written)["common"])
    plot_id = reading.pattern if reading.pattern in list_plots(written) else PLAIN
    texts = load_texts(plot_id, written)
    # Words of another language are quoted; an empty text has none.
    is_foreign = bool(text.strip()) and not written == wanted == reading.language
    texts = apply_variants(texts, () if is_foreign else [*find_variants(reading, texts)])
    slots = collect_slots(reading, texts, quotes=is_foreign)
    return PlotDocument(load_plot(plot_id), texts, reading, slots, choices.choose_number).build(
        spec_id=f"offline_{choices.name}",
        seed=seed % _SEED_RANGE,
        mark=texts["common"]["mark"],
        note=texts["common"]["quoted"] if is_foreign and written != wanted else "",
        variation=variation,
    )
