"""The tests of a round, by what they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.testing.asked import Asked
from peripety.authoring.testing.calling import sketches_of_command
from peripety.authoring.testing.playing import sketches_of_scenario
from peripety.authoring.testing.requesting import sketches_of_policy
from peripety.authoring.testing.sketches import chosen
from peripety.authoring.testing.stating import sketches_of_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.authoring.testing.sketches import Sketch

__all__ = ["write_tests"]


def write_tests(material: Mapping[str, Any], question: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tests that follow from what is known, at most as many as are asked for; none when none is left.

    Args:
        material: `task`, `categories`, and perhaps `environment` and `subject`.
        question: what is asked for: `category`, `round`, `at_least`, `at_most`, `existing_tests`, `survivors`
            and `uncovered`, each of which may be missing.

    Returns:
        Tests with `id`, `input`, `expected_output`, `reasoning` and `confidence`; with a `body` where they
        can be run, and a `category` where none is asked for.

    Raises:
        PeripetyError: the engine does not take the document that is to be tested.
    """
    asked = Asked.of(material, question)
    return chosen(_sketches(material, asked), asked)


def _sketches(material: Mapping[str, Any], asked: Asked) -> Iterable[Sketch]:
    subject = material.get("subject") or {}
    match subject:
        case {"kind": "scenario", "scenario": dict(document)}:
            return sketches_of_scenario(document, asked)
        case {"kind": "policy", "policy": dict(document)}:
            return sketches_of_policy(document, asked)
        case {"kind": "command", "command": [*_]}:
            return sketches_of_command(material["task"], subject, material.get("environment") or {})
    return sketches_of_words(material["task"], material.get("environment") or {}, asked.categories)
