"""The random policies of the tests: what the other tests take for granted about them."""

from __future__ import annotations

import json
from random import Random

import jsonschema_rs
import pytest

from peripety import engine
from peripety.engine.policies.types import UNKNOWN_TOOL
from support.engine.policy_generators import SHAPES, hostile_requests, random_policy, random_requests


@pytest.mark.parametrize("shape", SHAPES)
def test_a_random_policy_passes_every_check_and_depends_on_its_seed_alone(shape: str) -> None:
    for seed in range(3):
        spec = random_policy(Random(seed), shape)
        assert engine.validate_policy(json.dumps(spec)) == []
        assert random_policy(Random(seed), shape) == spec


def test_random_requests_fit_the_schemas_and_reach_every_decision() -> None:
    random = Random(1)
    spec = random_policy(random)
    schemas = {(tool["server_name"], tool["tool_name"]): tool["input_schema"] for tool in spec["tools"]}
    requests = random_requests(random, spec, 500)
    for request in requests:
        jsonschema_rs.validate(schemas[request.server_name, request.tool_name], request.arguments)
    policy = engine.compile_policy(json.dumps(spec))
    assert {decided.decision for decided in policy.decide_many(requests)} == {*engine.Decision}


def test_hostile_requests_trouble_conditions_and_leave_the_tools() -> None:
    random = Random(1)
    spec = random_policy(random)
    decided = engine.compile_policy(json.dumps(spec)).decide_many(hostile_requests(random, spec, 500))
    assert any(one.errors for one in decided)
    assert any(one.rule_id == UNKNOWN_TOOL for one in decided)
