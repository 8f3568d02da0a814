"""Proofs of rule analysis, compared with a solver that uses an independent encoding."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.policy.analysis.equivalence import Differs, Equivalent, compare_variants
from peripety.policy.analysis.lint import find_rule_issues
from peripety.policy.types import RuleIssueKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.engine.policies.policy import Policy


pytest.importorskip("z3", reason="z3-solver is not installed: no oracle for the analysis of policies")

_SEEDS = range(12)


def _variants(policy: Policy, random: Random) -> Iterator[tuple[Mapping[str, Any], ...]]:
    from support.engine.policy_oracle import oracle_rule  # noqa: PLC0415 - it needs the solver

    rules = policy.rules
    for number, rule in enumerate(rules):
        before, after = rules[:number], rules[number + 1 :]
        yield before + after
        yield *before, *after, rule
        for _ in range(2):
            other = oracle_rule(random, rule["id"])
            yield *before, {**rule, "when": other["when"]}, *after
            yield *before, {**rule, "when": rule["when"] | other["when"]}, *after


@pytest.mark.slow_after(1, reason="asks a solver for each random policy")
@pytest.mark.parametrize("seed", _SEEDS)
def test_variants_compare_as_the_solver_says(seed: int) -> None:
    from support.engine.policy_oracle import Oracle, oracle_policy  # noqa: PLC0415 - it needs the solver

    random = Random(seed)
    policy, oracle = oracle_policy(random), Oracle()
    variants = [*_variants(policy, random)]
    original = oracle.decided(policy.rules)
    for variant, verdict in zip(variants, compare_variants(policy, variants), strict=True):
        differs = oracle.is_possible(original != oracle.decided(variant))
        assert isinstance(verdict, Differs if differs else Equivalent)


@pytest.mark.slow_after(3, reason="asks a solver for each random policy")
@pytest.mark.parametrize("seed", _SEEDS)
def test_issues_are_those_that_the_solver_finds(seed: int) -> None:
    from support.engine.policy_oracle import Oracle, oracle_policy  # noqa: PLC0415 - it needs the solver

    policy, oracle = oracle_policy(Random(seed)), Oracle()
    rules, expected = policy.rules, []
    for number, rule in enumerate(rules):
        earlier = [oracle.takes(one) for one in rules[:number]]
        if not oracle.is_possible(oracle.takes(rule)):
            expected.append((rule["id"], RuleIssueKind.DEAD))
        elif not oracle.is_possible(oracle.takes(rule), *map(_not, earlier)):
            expected.append((rule["id"], RuleIssueKind.SHADOWED))
        elif not oracle.is_possible(
            oracle.decided(rules) != oracle.decided((*rules[:number], *rules[number + 1 :])),
        ):
            expected.append((rule["id"], RuleIssueKind.REDUNDANT))
    assert [(one.rule_id, one.kind) for one in find_rule_issues(policy)] == expected


def _not(formula: Any) -> Any:
    import z3  # noqa: PLC0415 - it is optional

    return z3.Not(formula)
