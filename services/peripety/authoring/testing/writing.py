"""Tests of a round, by subject: scenario, policy, command, or text."""

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
    """Return the next tests, up to the requested number; empty if none are left.

    Args:
        material: `task`, `categories`, and optionally `environment` and `subject`.
        question: the request, with optional fields: `category`, `round`, `at_least`, `at_most`,
            `existing_tests`, `survivors` and `uncovered`.

    Returns:
        Tests with `id`, `input`, `expected_output`, `reasoning` and `confidence`; with a `body` if they can
        be run, and a `category` if none is requested.

    Raises:
        PeripetyError: the engine rejects the document under test.
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
