"""What a model answers that is asked for a scenario part by part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.author.blueprint import SeededChoice
from peripety.author.blueprint_builder import compose_from_analysis
from peripety.scenario.outline_authoring import outline_author

if TYPE_CHECKING:
    from peripety.author.blueprint import Blueprint
    from peripety.author.text_analysis.terms import TermSet


OUTLINE: dict[str, Any] = {
    "title": "A gauge and its keeper",
    "resources": ["fuel", "spares"],
    "assets": ["gauge"],
    "dangers": ["drift"],
    "goals": ["report"],
    "secrets": ["crack"],
    "people": ["Beta"],
    "actions": ["file the report", "mend the gauge", "trim", "barter"],
    "events": ["leak", "storm", "visit", "rust"],
    "deadline": True,
}
QUANTITIES: dict[str, Any] = {
    "quantities_01": {"name": "Fuel (reserve)", "start": "large", "fades": True},
    "quantities_02": {"name": "Spares (reserve)", "start": "small", "fades": False},
    "quantities_03": {"name": "Gauge (condition)", "start": "medium", "fades": False},
    "quantities_04": {"name": "Drift (pressure)", "start": "medium", "fades": True},
    "quantities_05": {"name": "Falls (pressure)", "start": "medium", "fades": False},
    "quantities_06": {"name": "Report (progress)", "start": "large", "fades": False},
    "quantities_07": {"name": "Crack", "start": "small", "fades": False, "known_to": "Beta", "helps": False},
}
ACTIONS: dict[str, Any] = {
    "actions_01": {
        "name": "File the report",
        "changes": ["++ Report (progress)", "- Fuel (reserve)"],
        "how": "scaled",
    },
    "actions_02": {
        "name": "Mend the gauge",
        "changes": ["++ Gauge (condition)", "- Spares (reserve)"],
        "how": "later",
    },
    "actions_03": {"name": "Trim", "changes": ["-- Drift (pressure)", "- Fuel (reserve)"], "how": "plain"},
    "actions_04": {
        "name": "Barter",
        "changes": ["+++ Fuel (reserve)", "- Gauge (condition)", "+ Crack"],
        "how": "once",
    },
}
EVENTS: dict[str, Any] = {
    "events_01": {
        "name": "Leak",
        "changes": ["-- Fuel (reserve)"],
        "chance": "rare",
        "when": "low Gauge (condition)",
        "lasts": True,
    },
    "events_02": {
        "name": "Storm",
        "changes": ["++ Drift (pressure)"],
        "chance": "frequent",
        "when": "always",
        "lasts": False,
    },
    "events_03": {
        "name": "Visit",
        "changes": ["+ Spares (reserve)"],
        "chance": "occasional",
        "when": "always",
        "lasts": False,
    },
    "events_04": {
        "name": "Rust",
        "changes": ["- Gauge (condition)"],
        "chance": "rare",
        "when": "high Crack",
        "lasts": False,
    },
}
ANSWERS = [json.dumps(answer) for answer in (OUTLINE, QUANTITIES, ACTIONS, EVENTS)]
"""All answers, in the order in which they are asked for."""
DESCRIPTION = "Beta keeps a gauge that falls"


def composed_of(words: TermSet) -> Blueprint:
    """What rules make of words."""
    return compose_from_analysis(words, SeededChoice("", 1).choose_number)


def by_rules() -> Blueprint:
    """What rules make of the words of the outline."""
    return composed_of(outline_author.extract_outline_terms(OUTLINE, DESCRIPTION))


def outlined() -> Blueprint:
    """What the sections are about."""
    return outline_author.parse_outline(OUTLINE, DESCRIPTION, by_rules())
