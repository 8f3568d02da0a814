"""Fallback narration, used if the model fails or finished before the turn was resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.providers.offline.narrate import aftermath, narrate
from peripety.sessions.narrating.context import facts_of
from peripety.sessions.narrating.outcome import clean
from peripety.sessions.narrating.past import narrations

if TYPE_CHECKING:
    from peripety.sessions.mechanics import Played
    from peripety.sessions.narrating.scene import Scene

__all__ = ["told_by_server", "what_was_not_known"]


def told_by_server(scene: Scene, played: Played) -> str:
    """Narrate a turn from its facts alone."""
    return clean(narrate(facts_of(scene, played), narrations(scene))["narrative"])


def what_was_not_known(scene: Scene, played: Played) -> str:
    """Narrate the random event and the end of the run if the narrator did not know them."""
    return clean(aftermath(facts_of(scene, played), narrations(scene)))
