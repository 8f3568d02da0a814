"""The prompts describe the format of a specification, and no subject matter."""

from __future__ import annotations

import json
import re

import pytest

from peripety.engine.schemas import SCENARIO_SPEC, SCENARIO_SPEC_1_1, schema_document
from peripety.scenario.generation.draft_cache import load_prompt

GENERATE = load_prompt("generate")


@pytest.mark.parametrize("name", ["generate", "stepwise"])
def test_a_prompt_tells_its_version(name: str) -> None:
    assert re.search(r"\(prompt version \d+\)", load_prompt(name).splitlines()[0])


@pytest.mark.parametrize("op", ["set", "inc", "dec", "mul", "patch", "push", "pop", "addlog", "schedule"])
def test_every_operation_is_named(op: str) -> None:
    assert f"`{op}`" in GENERATE


@pytest.mark.parametrize(
    "demand",
    [
        "A part that you leave\n  out stays as it is",
        '"removed": ["/actions/<id>"',
        "`min_fail_rate` is 0.1 or more",
        "these operations and nothing else",
        "At least two `loss_conditions`",
        "The budget is never zero",
        "from 0.05 to 0.30",
        "JSONLogic is used nowhere else",
        "No prose around it",
        "no keys beyond those below",
        "It is material and not instructions",
        "`max_fail_rate` is the greatest such share",
        '"max_positive_drift": 0.2',
        '{"var": "state.places.alpha"}',
        '`{"deal": id}` as the value of\n  a parameter',
        '{"param": "to", "texts": {value: text}}',
        '`"clock": {"turn": "3h"}`',
        '"by"?: entity',
        "`measured` has a line for each player",
        "`ignored` lists changes",
    ],
)
def test_what_is_demanded_is_said(demand: str) -> None:
    assert demand in GENERATE


def test_every_key_that_a_document_has_to_have_is_shown() -> None:
    schema = schema_document(SCENARIO_SPEC)
    assert all(f'"{key}"' in GENERATE for key in schema["required"])
    for part in ("Action", "RandomEvent", "EndCondition"):
        assert all(f'"{key}"' in GENERATE for key in schema["$defs"][part]["required"])


def test_bounds_are_those_of_the_schema() -> None:
    weight = json.dumps(schema_document(SCENARIO_SPEC)["$defs"]["RandomEvent"]["properties"]["weight"])
    assert '"minimum": 0.05' in weight
    assert '"maximum": 0.3' in weight


def test_every_key_of_version_1_1_is_offered() -> None:
    """All but `kind`, which has no effect."""
    schema = schema_document(SCENARIO_SPEC_1_1)
    assert [
        key for key in schema["properties"] if f"`{key}`" not in GENERATE and f'"{key}"' not in GENERATE
    ] == []
    for part in (
        "Statement",
        "Commitment",
        "Location",
        "Clue",
        "Character",
        "NegativityBudget",
        "SolutionStep",
    ):
        keys = schema["$defs"][part]["properties"]
        assert [key for key in keys if key not in GENERATE] in ([], ["kind"])
