"""Tasks about policies: a few tools of one server each, with the rules about them."""

from __future__ import annotations

import json
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from peripety.policy.authoring.scenario_suite import finalize
from peripety.testgen.subjects.policy import PolicySubject
from support.policy.policies import TruePolicy, plausible_suite
from support.testgen.graded_tests.tasks import HiddenTest, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from peripety.policy.types import TestScenario


_SEEDS = ((4, "alpha"), (4, "beta"), (7, "gamma"), (8, "gamma"))
"""Policies whose rules for that server stand alone, and of which a hundred mutants mean something else."""

_TYPICAL = 3
_CATEGORIES = {"allow": "allowed", "deny": "denied", "escalate": "escalated"}


def _true(seed: int, server: str) -> TruePolicy:
    whole = TruePolicy.made_up(seed, "by_server")
    tools = [tool for tool in whole.spec["tools"] if tool["server_name"] == server]
    return TruePolicy({**whole.spec, "tools": tools, "rules": whole.rules(server)})


def _task(seed: int, server: str) -> Task:
    """A task whose hidden suite is typical calls, and those that the engine finds to be missing."""
    true = _true(seed, server)
    tools = true.spec["tools"]
    typical = plausible_suite(true, Random(seed), each=_TYPICAL)
    found = finalize(true.compiled, ()).scenarios
    hidden: dict[str, HiddenTest] = {}
    for scenarios, category in ((typical, _of_decision), (found, _of_directed)):
        for test in _hidden(scenarios, category):
            hidden.setdefault(test.input, test)
    description = (
        f"Decides about calls of {len(tools)} tools by {len(true.spec['rules'])} rules: the first that takes"
        f" hold decides, and what no rule speaks about is denied. {true.constitution}"
    )
    return Task(f"policy_{seed}_{server}", description, PolicySubject(true.compiled), [*hidden.values()])


def _hidden(scenarios: Iterable[TestScenario], category: Callable[[str], str]) -> Iterable[HiddenTest]:
    for scenario in scenarios:
        request, expected = scenario.request, scenario.expected_decision.value
        body = {
            "server_name": request.server_name,
            "tool_name": request.tool_name,
            "arguments": dict(request.arguments),
            "roles": [*request.roles],
            "expected": expected,
        }
        told = json.dumps([request.tool_name, dict(request.arguments), [*request.roles]], ensure_ascii=False)
        yield HiddenTest(category(expected), told, body)


def _of_decision(expected: str) -> str:
    return _CATEGORIES[expected]


def _of_directed(expected: str) -> str:
    """Return the category of a request found near a boundary; a request that is not allowed is an evasion."""
    return "boundary" if expected == "allow" else "evasion"


POLICIES = {f"policy_{seed}_{server}": partial(_task, seed, server) for seed, server in _SEEDS}
"""The tasks, by name, each created on demand."""

WHOLE = {f"policy_{seed}_{server}": partial(_true, seed, server) for seed, server in _SEEDS}
"""The policies that they are about."""
