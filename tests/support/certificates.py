"""Certificates of small scenarios, in as few runs as may be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from peripety.scenario.certificate.certifier import build_certificate
from peripety.scenario.certificate.types import CertificateOptions
from support.registering import WORKERS
from support.scenarios import program
from support.specs import action, at_most, event, spec

if TYPE_CHECKING:
    from peripety.scenario.certificate.types import Certificate


Json = dict[str, Any]
EVERYBODY = CertificateOptions(max_runs=64)
FEWEST = CertificateOptions(("idle", "random", "greedy"), max_runs=64)
"""What takes a reference core less than a second, which the planner does not."""


def contest(**parts: Any) -> Json:
    """A short scenario in which choices matter and nothing is wrong; `parts` replace its sections."""
    blow = event("blow", [{"op": "dec", "path": "state.a", "value": 3}])
    swell = event("swell", [{"op": "inc", "path": "state.c", "value": 2}])
    return spec(
        **{
            "state": {"a": 4, "b": 0, "c": 0},
            "actions": [
                action("shore", [{"op": "inc", "path": "state.a", "value": 2}]),
                action(
                    "press",
                    [
                        {"op": "inc", "path": "state.b", "value": 1},
                        {"op": "dec", "path": "state.a", "value": 1},
                    ],
                ),
            ],
            "random_events": [blow, swell],
            "loss_conditions": [
                at_most("gone", "state.a", 0),
                {"id": "flooded", "when": {">=": [{"var": "state.c"}, 5]}},
            ],
            "win_conditions": [{"id": "full", "when": {">=": [{"var": "state.b"}, 4]}}],
            "negativity_budget": {
                "min_fail_rate": 0.1,
                "decay_per_turn": {"state.a": 0.5},
                "max_positive_drift": 0.5,
            },
            "horizon": 6,
            **parts,
        },
    )


async def certified(value: Json, options: CertificateOptions = FEWEST) -> Certificate:
    """The certificate of a scenario."""
    return await build_certificate(program(value), options, WORKERS)


def certified_alone(value: Json, options: CertificateOptions = FEWEST) -> Certificate:
    """The same in a loop of its own."""
    return asyncio.run(certified(value, options))
