"""Changes by rules of any scenario: valid documents with the reported differences, or a reason."""

from __future__ import annotations

from typing import Any

import pytest

from peripety import engine
from peripety.engine.rule_text import diff_specs
from peripety.errors import Finding
from peripety.scenario.amendment.offline_amendment import apply_edits
from peripety.scenario.spec_generator.generator import generate_spec
from support.examples import example_count

SPECS = example_count(20)
WAYS = ("longer", "shorter", "likelier", "rarer", "faster", "slower", "harder", "easier", "more", "less")


@pytest.mark.parametrize("index", range(SPECS))
def test_what_can_be_named_can_be_changed_or_it_is_said_why_not(index: int) -> None:
    spec: dict[str, Any] = engine.parse(generate_spec(11, index))
    names = [rule["id"] for rule in (*spec["actions"], *spec["random_events"])]
    before = engine.canonicalize(spec)
    for instruction in [f"{name.replace('_', ' ')} {way}" for name in (*names, "") for way in WAYS]:
        changed = apply_edits(spec, instruction, fail_rate=0.5)
        if isinstance(changed, Finding):
            assert changed.code.startswith("AMENDMENT_")
            assert changed.message
        else:
            assert engine.validate(engine.canonicalize(changed)) == engine.validate(before), instruction
            assert diff_specs(spec, changed)
    assert engine.canonicalize(spec) == before
