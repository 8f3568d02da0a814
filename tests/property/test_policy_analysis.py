"""Results of rule analysis, compared with all possible calls of a tool with few of them."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.policy.analysis.differences import find_differences
from peripety.policy.analysis.engine_replay import EngineReplay
from peripety.policy.analysis.equivalence import (
    Differs,
    Equivalent,
    Reached,
    ReachTarget,
    Undecided,
    Unreachable,
    compare_variants,
)
from peripety.policy.analysis.lint import find_requests, find_rule_issues
from peripety.policy.types import RuleIssueKind
from support.engine.policies import all_requests, listed_policy, listed_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from peripety.engine.policies.policy import Policy


_REQUESTS = all_requests()
_SEEDS = range(8)


@lru_cache(maxsize=2)
def _drawn(seed: int, *, opaque: bool = False) -> tuple[Policy, EngineReplay]:
    policy = listed_policy(Random(seed), opaque=opaque)
    return policy, EngineReplay(policy, _REQUESTS)


def _issues(policy: Policy, replay: EngineReplay) -> Iterator[tuple[str, RuleIssueKind]]:
    rules = policy.rules
    for number, rule in enumerate(rules):
        takes = replay.applying_requests(rule)
        invariants = rules[: min(number, policy.invariants)]
        if not takes:
            yield rule["id"], RuleIssueKind.DEAD
        elif not takes & replay.unmatched_requests(invariants):
            yield rule["id"], RuleIssueKind.OVERRIDDEN
        elif not takes & replay.unmatched_requests(rules[:number]):
            yield rule["id"], RuleIssueKind.SHADOWED
        elif number >= policy.invariants and not replay.differing_requests(
            rules,
            (*rules[:number], *rules[number + 1 :]),
        ):
            yield rule["id"], RuleIssueKind.REDUNDANT


def _variants(policy: Policy, random: Random, *, opaque: bool) -> Iterator[tuple[Mapping[str, Any], ...]]:
    rules = policy.rules
    for number in range(policy.invariants, len(rules)):
        before, after = rules[:number], rules[number + 1 :]
        yield before + after
        yield *before, listed_rule(random, rules[number]["id"], opaque=opaque), *after
        yield *after, *before, rules[number]
        when = listed_rule(random, "other", opaque=opaque)["when"]
        yield *before, {**rules[number], "when": rules[number]["when"] | when}, *after


@pytest.mark.parametrize("seed", _SEEDS)
def test_issues_are_those_that_all_requests_show(seed: int) -> None:
    policy, replay = _drawn(seed)
    found = find_rule_issues(policy)
    assert [(one.rule_id, one.kind) for one in found] == [*_issues(policy, replay)]
    assert all((one.witness is None) == (one.kind is RuleIssueKind.DEAD) for one in found)


@pytest.mark.parametrize("seed", _SEEDS)
def test_variants_compare_as_all_requests_show(seed: int) -> None:
    policy, replay = _drawn(seed)
    variants = [*_variants(policy, Random(seed), opaque=False)]
    for variant, verdict in zip(variants, compare_variants(policy, variants), strict=True):
        assert isinstance(
            verdict,
            Differs if replay.differing_requests(policy.rules, variant) else Equivalent,
        )


@pytest.mark.parametrize("seed", _SEEDS)
def test_parts_of_rules_are_reached_if_some_request_does(seed: int) -> None:
    policy, replay = _drawn(seed)
    targets = [*_targets(policy)]
    for target, found in zip(targets, find_requests(policy, targets), strict=True):
        assert isinstance(found, Reached if _reaching(policy, target, replay) else Unreachable)


def _targets(policy: Policy) -> Iterator[ReachTarget]:
    for number, rule in enumerate(policy.rules):
        yield ReachTarget(number, decides=True)
        for name, member in rule["when"].items():
            others = {key: one for key, one in rule["when"].items() if key != name}
            before = (others,) if others else ()
            yield ReachTarget(number, holds=(*before, {name: member}))
            yield ReachTarget(number, holds=before, fails=({name: member},))
    yield ReachTarget(len(policy.rules))


def _reaching(policy: Policy, target: ReachTarget, replay: EngineReplay) -> int:
    found = replay.unmatched_requests(policy.rules[: target.rule])
    if target.decides:
        found &= replay.applying_requests(policy.rules[target.rule])
    for when in target.holds:
        found &= replay.holding_requests({"id": "x", "when": when, "then": "allow", "reason": "x"})
    for when in target.fails:
        found &= replay.failing_requests({"id": "x", "when": when, "then": "allow", "reason": "x"})
    return found


@pytest.mark.parametrize("seed", _SEEDS)
def test_differences_are_those_that_requests_show(seed: int) -> None:
    before, after = (_drawn(one)[0] for one in (seed, seed + 1))
    if seed % 5 == 0:
        after = before
    found = find_differences(before, after, max_examples=1000)
    decided = zip(before.decide_many(_REQUESTS), after.decide_many(_REQUESTS), strict=True)
    shown = {(one.rule_id, other.rule_id) for one, other in decided if one.decision is not other.decision}
    told = {(one.before.rule_id, one.after.rule_id) for one in found.changes}
    assert shown <= told  # it also reports arguments that the tool refuses
    assert found.equivalent is not bool(told)
    assert not found.findings


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_cannot_be_looked_into_never_leads_to_a_wrong_word(seed: int) -> None:
    policy, replay = _drawn(seed, opaque=True)
    real = dict(_issues(policy, replay))
    for issue in find_rule_issues(policy):
        # An opaque condition that resembles an invariant is at worst blamed on more rules.
        assert issue.rule_id in real
    variants = [*_variants(policy, Random(seed), opaque=True)]
    for variant, verdict in zip(variants, compare_variants(policy, variants), strict=True):
        differing = bool(replay.differing_requests(policy.rules, variant))
        assert isinstance(verdict, Undecided) or isinstance(verdict, Differs) is differing
