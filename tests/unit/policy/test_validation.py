"""Orders refused before any model request, with all invalid fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peripety.engine.policies.types import ToolRequest
from peripety.errors import InvalidArgumentError
from peripety.policy.types import CompileLimits, ScenarioOrigin
from peripety.policy.validation import MAX_CONSTITUTION_BYTES, check_order
from support.policy.models import ORDER, below, generated_scenario, rule, tool

HANDWRITTEN = ScenarioOrigin.HANDWRITTEN
KEPT = rule("structural-kept", "deny", arguments=below("/kept"))


def own(name: str, expected: str, **arguments: Any) -> Any:
    return generated_scenario(name, expected, source=HANDWRITTEN, **arguments)


def refused(**changed: Any) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        check_order(replace(ORDER, **changed))
    return caught.value


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"constitution": " \n"}, "constitution"),
        ({"constitution": "é" * (MAX_CONSTITUTION_BYTES // 2 + 1)}, "constitution"),
        ({"tools": ()}, "tools"),
        ({"limits": CompileLimits(repairs=-1)}, "options.max_repairs"),
        ({"limits": CompileLimits(probes=51)}, "options.max_probes"),
        ({"limits": CompileLimits(probe_rounds=-1)}, "options.max_probe_rounds"),
        ({"limits": CompileLimits(tools_per_batch=0)}, "options.tools_per_batch"),
        ({"limits": CompileLimits(turns=0)}, "options.max_turns"),
        ({"tools": (tool("a"), tool("a"))}, "tools[1]"),
        ({"lists": {"x": {"kind": "path", "values": ["@x"]}}}, "foundation/lists/x"),
        ({"invariants": ({**KEPT, "id": "kept"},)}, "foundation/invariants/0"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(changed: dict[str, Any], field: str) -> None:
    assert field in {violation.field[: len(field)] for violation in refused(**changed).violations}


def test_all_that_is_wrong_is_told_at_once() -> None:
    error = refused(constitution="", tools=(), limits=CompileLimits(repairs=99, turns=0))
    assert [violation.field for violation in error.violations] == [
        "constitution",
        "tools",
        "options.max_repairs",
        "options.max_turns",
    ]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("allow", "allow", True),
        ("deny", "not_allow", True),
        ("escalate", "not_allow", True),
        ("allow", "deny", False),
        ("deny", "escalate", False),
        ("not_allow", "allow", False),
    ],
)
def test_handwritten_scenarios_with_one_request_have_to_agree(
    one: str,
    other: str,
    *,
    together: bool,
) -> None:
    handwritten = (own("one", one, at="/x"), own("other", other, at="/x"))
    if together:
        check_order(replace(ORDER, handwritten=handwritten))
        return
    (violation,) = refused(handwritten=handwritten).violations
    assert violation.field == "handwritten_scenarios[1].expected"
    assert "scenario 0" in violation.reason


def test_a_handwritten_scenario_against_an_invariant_is_refused() -> None:
    fine, wrong = own("fine", "deny", at="/kept/x"), own("wrong", "allow", at="/kept/x/..")
    (violation,) = refused(invariants=(KEPT,), handwritten=(fine, wrong)).violations
    assert violation.field == "handwritten_scenarios[1].expected"
    assert "structural-kept always decides deny" in violation.reason


def test_a_handwritten_scenario_has_a_name_of_its_own_and_a_request_that_is_one() -> None:
    beyond = replace(own("beyond", "deny"), request=ToolRequest("alpha", "a", {"amount": 2**70}))
    violations = refused(
        handwritten=(own("x", "deny", at="/1"), own("x", "deny", at="/2"), beyond),
    ).violations
    assert [violation.field for violation in violations] == [
        "handwritten_scenarios[1].description",
        "handwritten_scenarios[2].request",
    ]
