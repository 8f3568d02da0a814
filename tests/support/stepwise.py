"""What a model answers that is asked for a scenario part by part."""

from __future__ import annotations

import json
from typing import Any

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
    "quantities_01": {"name": "Fuel", "start": "large", "fades": True},
    "quantities_02": {"name": "Spares", "start": "small", "fades": False},
    "quantities_03": {"name": "Gauge", "start": "medium", "fades": False},
    "quantities_04": {"name": "Drift", "start": "medium", "fades": True},
    "quantities_05": {"name": "Report", "start": "large", "fades": False},
    "quantities_06": {"name": "Crack", "start": "small", "fades": False, "known_to": "Beta", "helps": False},
}
ACTIONS: dict[str, Any] = {
    "actions_01": {"name": "File the report", "changes": ["++ Report", "- Fuel"], "how": "scaled"},
    "actions_02": {"name": "Mend the gauge", "changes": ["++ Gauge", "- Spares"], "how": "later"},
    "actions_03": {"name": "Trim", "changes": ["-- Drift", "- Fuel"], "how": "plain"},
    "actions_04": {"name": "Barter", "changes": ["+++ Fuel", "- Gauge", "+ Crack"], "how": "once"},
}
EVENTS: dict[str, Any] = {
    "events_01": {
        "name": "Leak",
        "changes": ["-- Fuel"],
        "chance": "rare",
        "when": "low Gauge",
        "lasts": True,
    },
    "events_02": {
        "name": "Storm",
        "changes": ["++ Drift"],
        "chance": "frequent",
        "when": "always",
        "lasts": False,
    },
    "events_03": {
        "name": "Visit",
        "changes": ["+ Spares"],
        "chance": "occasional",
        "when": "always",
        "lasts": False,
    },
    "events_04": {
        "name": "Rust",
        "changes": ["- Gauge"],
        "chance": "rare",
        "when": "high Crack",
        "lasts": False,
    },
}
ANSWERS = [json.dumps(answer) for answer in (OUTLINE, QUANTITIES, ACTIONS, EVENTS)]
"""All answers, in the order in which they are asked for."""
DESCRIPTION = "Beta keeps a gauge that falls"
