"""Rules that allow what they must not, and a judge that lies: none of them gets through.

How many are planted is set by PERIPETY_FLIPS.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.errors import Severity
from peripety.policy.analysis.differences import find_differences
from peripety.policy.types import Expectation, Judgement, PolicyCompiled
from support.policy.models import ScriptedModel, workshop
from support.policy.policies import TruePolicy, plausible_suite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.policy.events import PolicyCompileFailed


pytestmark = pytest.mark.slow(reason="compiles a policy for each planted mistake")


FLIPS = int(os.environ.get("PERIPETY_FLIPS", "12"))
JUDGE_LIES = 0.3

logger = logging.getLogger(__name__)


def planted(true: TruePolicy, seed: int) -> str | None:
    """Return a rule whose change to `allow` some scenario would detect; None if all would miss it."""
    suite = plausible_suite(true, Random(seed))
    rules = [rule for rule in true.spec["rules"] if rule["then"] != "allow"]
    Random(seed).shuffle(rules)
    for rule in rules:
        others = [one | {"then": "allow"} if one is rule else one for one in true.spec["rules"]]
        flipped = replace(true, spec=true.spec | {"rules": others})
        if any(
            flipped.expects(one.request) is Expectation.ALLOW is not one.expected_decision for one in suite
        ):
            return str(rule["id"])
    return None


def flips() -> Iterator[tuple[TruePolicy, str, int]]:
    """Policies, each with a rule to plant the flip in, and the seed."""
    found, seed = 0, 0
    while found < FLIPS:
        true = TruePolicy.made_up(seed, "few_by_server")
        rule_id = planted(true, seed)
        if rule_id is not None:
            found += 1
            yield true, rule_id, seed
        seed += 1


def assert_named(failed: PolicyCompileFailed) -> None:
    """Every scenario that the rules do not meet is named in a finding."""
    policy = engine.compile_policy(failed.document)
    not_met = [
        one.description
        for one in failed.scenarios
        if not one.expected_decision.is_met_by(policy.decide(one.request).decision)
    ]
    errors = [found for found in failed.findings if found.severity is Severity.ERROR]
    assert not_met
    assert len(errors) == len(not_met)
    for description, found in zip(not_met, errors, strict=True):
        assert found.code in {"EXPECTATION_CONTESTED", "SCENARIO_NOT_MET"}
        assert f'"{description}"' in found.message


async def test_no_rule_that_allows_what_it_must_not_is_accepted_however_the_judge_lies() -> None:
    mended = refused = lies = 0
    for number, (true, rule_id, seed) in enumerate(flips()):
        can_mend = number % 2 == 0
        model = ScriptedModel(
            true,
            judge_lies=JUDGE_LIES,
            planted={rule_id: "allow"},
            can_repair=can_mend,
            seed=seed,
        )
        async with workshop(model) as shop:
            outcome = await shop.outcome(true.order(directed=False, mutation=False))
        assert all(one.expected_decision is true.expects(one.request) for one in outcome.scenarios), seed
        judged = [entry.decision for entry in outcome.audit if isinstance(entry.decision, Judgement)]
        assert judged, seed
        lies += sum(one.overruled for one in judged)
        if isinstance(outcome, PolicyCompiled):
            assert find_differences(true.compiled, engine.compile_policy(outcome.document)).equivalent, seed
            mended += 1
        else:
            assert_named(outcome)
            refused += 1
    logger.info("%d flips: %d mended, %d refused; %d lies put aside", FLIPS, mended, refused, lies)
    assert lies > 0
    assert mended > 0
    assert refused > 0
