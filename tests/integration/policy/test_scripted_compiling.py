"""Policies compiled with scripted models of graded quality, over the real protocol."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.errors import Severity
from peripety.policy.analysis.differences import find_differences
from peripety.policy.authoring.scenario_merge import request_key
from peripety.policy.events import PolicyCompileFailed, ScenariosWritten
from peripety.policy.types import CompileLimits, Expectation, PolicyCompiled, ScenarioOrigin, TestScenario
from support.policy.models import Habit, ScriptedModel, workshop
from support.policy.policies import TruePolicy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.llmsim.types import SimRequest


SEEDS = (1, 2, 3)
"""Of policies with a dozen rules, about two or three servers."""

NO_PROBES = CompileLimits(probes=0)


def made_up(seed: int) -> TruePolicy:
    return TruePolicy.made_up(seed, "few_by_server")


def wrong(true: TruePolicy, scenarios: Iterable[TestScenario]) -> list[TestScenario]:
    """Return the scenarios whose expectation contradicts the policy."""
    return [one for one in scenarios if one.expected_decision is not true.expects(one.request)]


def means_the_same(true: TruePolicy, document: bytes) -> bool:
    return find_differences(true.compiled, engine.compile_policy(document)).equivalent


def conversations(requests: Iterable[SimRequest]) -> dict[tuple[str, str], list[SimRequest]]:
    """Return the requests by system text and first message; a change of either would make two groups."""
    found: dict[tuple[str, str], list[SimRequest]] = defaultdict(list)
    for request in requests:
        found[request.system, request.messages[0].text].append(request)
    return found


@pytest.mark.slow(reason="compiles a policy with a model that errs in many ways")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("habit", [Habit.PERFECT, Habit.LAZY, Habit.TRUNCATING, Habit.REPEATING])
async def test_rules_mean_what_is_written_and_the_suite_notices_every_mistake_in_them(
    habit: Habit,
    seed: int,
) -> None:
    true = made_up(seed)
    async with workshop(ScriptedModel(true, habit, seed=seed)) as shop:
        outcome = await shop.outcome(true.order())
    assert isinstance(outcome, PolicyCompiled), outcome.findings
    assert means_the_same(true, outcome.document)
    assert not wrong(true, outcome.scenarios)
    assert outcome.verification.mutation is not None
    assert outcome.verification.mutation.score >= 0.99
    assert len({request_key(one.request) for one in outcome.scenarios}) == len(outcome.scenarios)


@pytest.mark.parametrize("seed", SEEDS)
async def test_expectations_that_are_made_up_are_put_right_or_named_and_never_change_the_rules(
    seed: int,
) -> None:
    true = made_up(seed)
    async with workshop(ScriptedModel(true, Habit.LYING, seed=seed)) as shop:
        outcome = await shop.outcome(true.order())
    assert means_the_same(true, outcome.document)
    contested = wrong(true, outcome.scenarios)
    if isinstance(outcome, PolicyCompiled):
        assert not contested
        return
    errors = [found for found in outcome.findings if found.severity is Severity.ERROR]
    assert {found.code for found in errors} == {"EXPECTATION_CONTESTED"}
    warnings = {found.code for found in outcome.findings if found not in errors}
    assert warnings <= {"SCENARIOS_CONTRADICT", "SENTENCE_UNFOLLOWED"}
    assert len(errors) == len(contested)
    for one, found in zip(contested, errors, strict=True):
        assert f'"{one.description}" expects {one.expected_decision.value}' in found.message
        assert true.expects(one.request) is Expectation.ALLOW


async def test_what_is_contested_is_settled_by_a_person() -> None:
    true = made_up(1)
    async with workshop(ScriptedModel(true, Habit.LYING, seed=1)) as shop:
        failed = await shop.outcome(true.order())
        assert isinstance(failed, PolicyCompileFailed)
        settled = tuple(
            replace(
                one,
                expected_decision=true.expects(one.request),
                source=ScenarioOrigin.HANDWRITTEN,
            )
            for one in wrong(true, failed.scenarios)
        )
        outcome = await shop.outcome(true.order(handwritten=settled))
    assert isinstance(outcome, PolicyCompiled), outcome.findings
    assert outcome.scenarios[: len(settled)] == settled
    assert not wrong(true, outcome.scenarios)
    assert means_the_same(true, outcome.document)


async def test_an_answer_that_breaks_off_is_asked_for_once_more_and_then_of_fewer_tools() -> None:
    true = made_up(1)
    async with workshop(ScriptedModel(true, Habit.TRUNCATING, seed=1)) as shop:
        events = await shop.compiled(true.order(directed=False, mutation=False))
    asked = conversations(shop.model.requests)
    assert max(map(len, asked.values())) == 2
    turns = [event.turn for event in events if isinstance(event, ScenariosWritten) and event.turn]
    assert turns
    assert all(turn.repaired for turn in turns)


async def test_a_conversation_keeps_its_system_text_and_is_read_from_the_cache() -> None:
    true = made_up(1)
    async with workshop(ScriptedModel(true, Habit.LYING, seed=1)) as shop:
        events = await shop.compiled(true.order(replace_corrected=True))
    turns_of = [len(one) for one in conversations(shop.model.requests).values()]
    assert max(turns_of) > 1
    turns = [event.turn for event in events if isinstance(event, ScenariosWritten) and event.turn]
    again = [turn for turn in turns if turn.turn > 1]
    assert again
    assert all(turn.spent.usage.cache_read_tokens > 0 for turn in again)


async def test_what_was_written_for_the_same_is_not_asked_for_again() -> None:
    true = made_up(1)
    order = true.order(limits=NO_PROBES)
    async with workshop(ScriptedModel(true, seed=1)) as shop:
        first = await shop.outcome(order)
        asked = len(shop.model.requests)
        second = await shop.outcome(order)
        assert len(shop.model.requests) == asked
    assert isinstance(first, PolicyCompiled)
    assert isinstance(second, PolicyCompiled)
    assert (second.document, second.scenarios) == (first.document, first.scenarios)
    assert second.spent.calls == 0
