"""Fallback narration, used if the model fails or finished before the turn was resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.author.narration import narrate, narrate_late_facts, read_earlier_turns
from peripety.author.plots.beats import Scene
from peripety.session.narration.outcome_schema import normalize_text
from peripety.session.narration.scenario_prompt import render_scenario
from peripety.session.narration.turn_context import list_narrations
from peripety.session.narration.turn_prompt import collect_facts

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.turn_transaction import TurnResult


def fallback_narration(scene: NarrationContext, played: TurnResult) -> str:
    """Narrate a turn from its facts alone."""
    return normalize_text(
        narrate(collect_facts(scene, played), list_narrations(scene), _describe_scene(scene, played))[
            "narrative"
        ]
    )


def late_facts(scene: NarrationContext, played: TurnResult) -> str:
    """Narrate the random event and the end of the run if the narrator did not know them."""
    return normalize_text(
        narrate_late_facts(
            collect_facts(scene, played), list_narrations(scene), _describe_scene(scene, played)
        )
    )


def _describe_scene(scene: NarrationContext, played: TurnResult) -> Scene:
    """Return the scenario and the earlier turns as the audience may know them."""
    sides = [side for turn in scene.history for side in ((True, turn.facts), (False, turn.answer))]
    return Scene(
        render_scenario(scene.spec, scene.view, scene.session.narrator.language),
        scene.view.project_state(played.tree),
        tuple(read_earlier_turns(sides)),
    )
