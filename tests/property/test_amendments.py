"""Changes by rules of any scenario: valid documents that differ where they are said to, or a reason."""

from __future__ import annotations

import os
from typing import Any

import pytest

from peripety import sim
from peripety.errors import Finding
from peripety.scenarios.amending.bending import bent
from peripety.scenarios.diff import rule_edits
from peripety.scenarios.random_specs import random_spec

SPECS = int(os.environ.get("PERIPETY_EXAMPLES", "20"))
WAYS = ("longer", "shorter", "likelier", "rarer", "faster", "slower", "harder", "easier", "more", "less")


@pytest.mark.parametrize("index", range(SPECS))
def test_what_can_be_named_can_be_changed_or_it_is_said_why_not(index: int) -> None:
    spec: dict[str, Any] = sim.parse(random_spec(11, index))
    names = [rule["id"] for rule in (*spec["actions"], *spec["random_events"])]
    before = sim.canonical(spec)
    for instruction in [f"{name.replace('_', ' ')} {way}" for name in (*names, "") for way in WAYS]:
        changed = bent(spec, instruction, fail_rate=0.5)
        if isinstance(changed, Finding):
            assert changed.code.startswith("AMENDMENT_")
            assert changed.message
        else:
            assert sim.validate(sim.canonical(changed)) == sim.validate(before), instruction
            assert rule_edits(spec, changed)
    assert sim.canonical(spec) == before
