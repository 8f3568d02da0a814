"""Conversations about policies over the real protocol: what is sent, cached, and lost by a failure."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.script.types import ScriptResponse
from peripety.llmsim.types import SimStopReason
from peripety.policy.events import ScenariosWritten
from peripety.policy.types import PolicyCompiled
from support.policy.models import (
    FINE,
    ORDER,
    POLICY,
    RIGHT,
    SATISFIED,
    blames,
    generated_scenario,
    rule,
    told,
    workshop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.llmsim.types import SimRequest
    from peripety.policy.events import CompileEvent
    from peripety.policy.types import GenerationTurn
    from support.policy.models import Workshop


RULES, SCENARIOS, JUDGE, MENDER = (
    "# Rule author",
    "# Scenario author",
    "# Judge of disagreements",
    "# Mender of rules",
)
LONG = replace(ORDER, constitution="\n".join([POLICY] * 500), mutation=False)
"""Long enough for the prompt cache of a provider."""

UNSENDABLE = generated_scenario("unsendable", "deny", other=1)
TOO_MUCH = {
    "rules": [
        rule("open", "allow", arguments=[{"argument_roles": ["place"], "kind": "path", "among": ["/"]}]),
    ],
}
RULE = {"rules": [*RIGHT]}
SUITE = {"scenarios": [*map(told, FINE)]}
IN_VAIN = {"scenarios": [*map(told, (*FINE, UNSENDABLE))]}
INSTEAD = {"scenarios": [told(generated_scenario("instead", "deny", at="/instead"))]}
PATCH = {"reasoning": "so it is", "operations": [{"op": "update", "rule_id": "open", "rule": RIGHT[0]}]}

BAD = {
    "no JSON": ScriptResponse("I would rather not."),
    "cut off": ScriptResponse('{"scenarios": [{"descr', stop=SimStopReason.LENGTH),
    "another shape": ScriptResponse('{"other": 1}'),
}


def speaking(**answers: Sequence[Any]) -> Callable[[SimRequest], ScriptResponse]:
    """A model that gives each author's answers one after the other, the last one for ever."""
    said: dict[str, Sequence[Any]] = {
        RULES: [RULE],
        SCENARIOS: [SUITE],
        JUDGE: [SATISFIED],
        MENDER: [PATCH],
        **{globals()[name]: those for name, those in answers.items()},
    }
    asked = dict.fromkeys(said, 0)

    def answer(request: SimRequest) -> ScriptResponse:
        author = author_of(request)
        number = min(asked[author], len(said[author]) - 1)
        asked[author] += 1
        one = said[author][number]
        return one if isinstance(one, ScriptResponse) else ScriptResponse(json.dumps(one))

    return answer


def author_of(request: SimRequest) -> str:
    return request.messages[0].text.partition(" (")[0]


def of(shop: Workshop, author: str) -> list[SimRequest]:
    return [request for request in shop.model.requests if author_of(request) == author]


def turns(events: Sequence[CompileEvent]) -> list[GenerationTurn]:
    return [event.turn for event in events if isinstance(event, ScenariosWritten) and event.turn]


def texts(request: SimRequest) -> list[str]:
    return [message.text for message in request.messages]


async def test_what_was_found_out_is_in_the_messages_and_the_system_text_never_changes() -> None:
    async with workshop(speaking(SCENARIOS=[IN_VAIN, INSTEAD])) as shop:
        events = await shop.compiled(LONG)
    first, second = of(shop, SCENARIOS)
    assert second.system.encode() == first.system.encode()
    assert texts(second)[: len(texts(first))] == texts(first)
    assert json.loads(texts(second)[1]) == IN_VAIN
    assert texts(first)[0].startswith(SCENARIOS)
    assert SCENARIOS not in texts(second)[2]
    assert '"unsendable"; the input schema of the tool rejects its arguments' in texts(second)[2]
    assert isinstance(events[-1], PolicyCompiled)


async def test_a_judge_and_a_mender_keep_their_system_texts_and_read_them_from_the_cache() -> None:
    answers = speaking(
        RULES=[TOO_MUCH],
        JUDGE=[blames("outside", "rule"), SATISFIED],
        MENDER=[PATCH],
    )
    async with workshop(answers) as shop:
        outcome = await shop.outcome(LONG)
    assert isinstance(outcome, PolicyCompiled), outcome.findings
    for author in (JUDGE, SCENARIOS):
        asked = of(shop, author)
        assert len({request.system for request in asked}) == 1
        for before, after in pairwise(asked):
            assert texts(after)[: len(texts(before))] == texts(before)
    assert len(of(shop, JUDGE)) > 1


async def test_every_turn_tells_what_of_it_was_read_from_the_cache_as_the_provider_has_it_in_its_books() -> (
    None
):
    async with workshop(speaking(SCENARIOS=[IN_VAIN, INSTEAD])) as shop:
        events = await shop.compiled(LONG)
    first, second = (turn.spent.usage for turn in turns(events))
    assert first.cache_read_tokens > 0.9 * first.input_tokens, "the rules were written from the same prefix"
    assert second.cache_read_tokens > 0.9 * first.input_tokens
    assert second.cache_read_tokens > 0.9 * second.input_tokens
    done = events[-1]
    assert isinstance(done, PolicyCompiled)
    accounts = shop.model.accounts
    assert sum(account.requests for account in accounts) == done.spent.calls == len(shop.model.requests)
    assert sum(account.amount for account in accounts) == done.spent.cost
    used = done.spent.usage
    assert sum(account.usage.read for account in accounts) == used.cache_read_tokens
    assert sum(account.usage.output for account in accounts) == used.output_tokens


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_answer_in_a_later_turn_costs_one_repair_and_leaves_no_trace(bad: str) -> None:
    async with workshop(speaking(SCENARIOS=[IN_VAIN, BAD[bad], INSTEAD, SUITE])) as shop:
        events = await shop.compiled(LONG)
    assert isinstance(events[-1], PolicyCompiled)
    assert [(turn.turn, turn.repaired) for turn in turns(events)] == [(1, False), (2, True)]
    assert len(of(shop, SCENARIOS)) == 3


@pytest.mark.parametrize("author", ["RULES", "JUDGE", "MENDER"])
@pytest.mark.parametrize("bad", BAD)
async def test_nobody_s_bad_answer_costs_the_run(author: str, bad: str) -> None:
    right: Mapping[str, Sequence[Any]] = {
        "RULES": [TOO_MUCH],
        "JUDGE": [blames("outside", "rule"), SATISFIED],
        "MENDER": [PATCH],
    }
    async with workshop(speaking(**{**right, author: [BAD[bad], *right[author]]})) as shop:
        outcome = await shop.outcome(LONG)
    assert isinstance(outcome, PolicyCompiled), outcome.findings
    assert json.loads(outcome.document)["rules"][0]["when"]["arguments"] == RIGHT[0]["when"]["arguments"]


async def test_a_turn_without_a_valid_answer_is_told_and_the_run_goes_on_without_it() -> None:
    async with workshop(speaking(SCENARIOS=[IN_VAIN, BAD["no JSON"]])) as shop:
        outcome = await shop.outcome(LONG)
    assert isinstance(outcome, PolicyCompiled)
    assert [finding.code for finding in outcome.findings] == ["NOT_REPLACED"]
    assert len(of(shop, SCENARIOS)) == 3


@pytest.mark.parametrize("author", [RULES, SCENARIOS, JUDGE, MENDER])
async def test_who_cancels_while_an_answer_is_awaited_leaves_nothing_running(author: str) -> None:
    answer = speaking(RULES=[TOO_MUCH], JUDGE=[blames("outside", "rule")])
    asked, loop = asyncio.Event(), asyncio.get_running_loop()

    def slow(request: SimRequest) -> ScriptResponse:
        said = answer(request)
        if author_of(request) != author:
            return said
        loop.call_soon_threadsafe(asked.set)
        return replace(said, delay_ms=600_000)

    async with workshop(slow) as shop:
        before = asyncio.all_tasks()
        run = asyncio.create_task(shop.compiled(LONG))
        await asked.wait()
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run
        assert run.cancelled()
        assert asyncio.all_tasks() - before == set()
        assert author_of(shop.model.requests[-1]) == author
