"""What is thrown out before it is run."""

from __future__ import annotations

import json
from dataclasses import replace

from peripety import engine
from peripety.engine.policies.types import Decision, ToolRequest
from peripety.policy.authoring.prompts import tool_to_document
from peripety.policy.authoring.scenario_merge import ARGUMENT_SCHEMA_RULE, ScenarioFilter
from peripety.policy.types import ScenarioOrigin
from support.policy.models import below, generated_scenario, rule, tool

TOOLS = (tool("a"),)
INVARIANT = {**rule("structural-kept", "deny", arguments=below("/kept")), "id": "structural-kept"}
POLICY = engine.compile_policy(
    json.dumps(
        {
            "policy_version": "1.0",
            "id": "p",
            "name": "p",
            "tools": [tool_to_document(one) for one in TOOLS],
            "invariants": [INVARIANT],
            "rules": [rule("all", "allow", tools=["a"])],
        },
    ),
)
FILTER = ScenarioFilter(POLICY, TOOLS)


def test_what_an_invariant_decides_otherwise_is_discarded_by_its_name() -> None:
    wrong, right = (
        generated_scenario("wrong", "allow", at="/kept/x"),
        generated_scenario("right", "deny", at="/kept/x"),
    )
    found = FILTER.apply([wrong, right])
    assert found.accepted == (right,)
    ((discarded),) = found.discarded
    assert (discarded.scenario, discarded.rule, discarded.actual) == (wrong, "structural-kept", Decision.DENY)


def test_what_a_rule_decides_otherwise_is_not_discarded() -> None:
    wrong = generated_scenario("wrong", "deny", at="/other")
    assert FILTER.apply([wrong]).accepted == (wrong,)


def test_arguments_that_the_tool_refuses_are_discarded_whatever_is_expected() -> None:
    for expected in ("allow", "deny"):
        ((discarded),) = FILTER.apply([generated_scenario("x", expected, other=1)]).discarded
        assert (discarded.rule, discarded.actual) == (ARGUMENT_SCHEMA_RULE, Decision.DENY)


def test_what_the_engine_cannot_read_is_discarded() -> None:
    beyond = replace(generated_scenario("x"), request=ToolRequest("alpha", "a", {"amount": 2**70}))
    assert FILTER.apply([beyond]).discarded[0].rule == ARGUMENT_SCHEMA_RULE


def test_a_call_of_an_unknown_tool_is_only_expected_to_be_refused() -> None:
    allowed, denied = generated_scenario("x", "allow", "zz"), generated_scenario("y", "deny", "zz")
    found = FILTER.apply([allowed, denied])
    assert found.accepted == (denied,)
    assert found.discarded[0].rule == "structural-unknown-tool"


def test_handwritten_scenarios_are_never_discarded() -> None:
    for one in (generated_scenario("a", "allow", at="/kept"), generated_scenario("b", other=1)):
        kept = replace(one, source=ScenarioOrigin.HANDWRITTEN)
        assert FILTER.apply([kept]).accepted == (kept,)
