"""Test scenarios of small policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.policy.types import Expectation, TestScenario

if TYPE_CHECKING:
    from peripety.engine import Policy
    from peripety.engine.policies.types import ToolRequest


def scenario(description: str, asked: ToolRequest, expected: str, **more: Any) -> TestScenario:
    return TestScenario(description, asked, Expectation(expected), **more)


def expecting(policy: Policy, *requests: ToolRequest) -> list[TestScenario]:
    """Scenarios that expect what the rules say, named `s0`, `s1` and so on."""
    return [
        TestScenario(f"s{number}", asked, Expectation(policy.decide(asked).decision.value))
        for number, asked in enumerate(requests)
    ]
