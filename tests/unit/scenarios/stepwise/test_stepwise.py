"""Asked part by part: four small questions in one conversation, and always a valid specification."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.errors import InvalidArgumentError, UnavailableError
from peripety.gateway.types.request import Budget
from peripety.scenario.generation.draft_cache import prompt
from peripety.scenario.generation.model_client import ModelClient
from peripety.scenario.outline_authoring.outline_author import OutlineAuthor
from peripety.scenario.types import GenerationLimits, GenerationOrder, Progress
from support.scenario.generation import ANSWERS, DESCRIPTION
from support.session.sessions import TOKENS, ScriptedGateway

if TYPE_CHECKING:
    from peripety.errors import Finding


Spec = dict[str, Any]

NO_ANSWER = "I would rather talk about something else."


async def written(
    *answers: str | list[str] | Exception,
    description: str = DESCRIPTION,
    seed: int = 1,
    **limits: Any,
) -> tuple[OutlineAuthor, Spec, ScriptedGateway]:
    """What comes of these answers, and what was asked."""
    gateway = ScriptedGateway(list(answers))
    asker = ModelClient(GenerationLimits(**limits), seed)
    stepwise = OutlineAuthor(asker, gateway, GenerationOrder(description, model="x/y"), seed)
    async for step in stepwise.events():
        assert isinstance(step, Progress)
    return stepwise, stepwise.candidates[0].build_spec(), gateway


def findings(stepwise: OutlineAuthor) -> tuple[Finding, ...]:
    return stepwise.candidates[0].findings


def told(stepwise: OutlineAuthor) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in findings(stepwise)]


async def test_four_answers_make_a_scenario_in_the_words_of_the_model() -> None:
    stepwise, spec, gateway = await written(*ANSWERS)
    text = json.dumps(spec)
    assert engine.validate(text) == []
    assert spec["name"] == "A gauge and its keeper"
    assert all(word in text for word in ("Fuel", "Gauge", "Drift", "Report", "Beta"))
    assert told(stepwise) == [("WORDS_ONLY", "")]
    assert stepwise.answer is not None
    assert stepwise.answer.model == "fake/scripted"
    assert len(gateway.requests) == 4


async def test_one_conversation_asks_for_one_part_after_the_other() -> None:
    _, _, gateway = await written(*ANSWERS)
    requests = gateway.requests
    assert {request.system for request in requests} == {prompt("stepwise")}
    asked = [json.loads(request.messages[-1].text) for request in requests]
    assert [question["write"] for question in asked] == ["outline", "quantities", "actions", "events"]
    assert asked[0]["description"] == DESCRIPTION
    assert asked[2]["of"] == ["File the report", "Mend the gauge", "Trim", "Barter"]
    for earlier, later in pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    for request in requests:
        assert request.model == "x/y"
        assert request.schema is not None
        assert request.schema.advisory
        assert request.max_output_tokens is not None


async def test_the_same_answers_and_seed_give_the_same_bytes() -> None:
    one, same, other = [(await written(*ANSWERS, seed=seed))[1] for seed in (1, 1, 2)]
    assert engine.canonicalize(one) == engine.canonicalize(same)
    assert one["id"] != other["id"]


@pytest.mark.parametrize(("broken", "path"), [(1, "/state"), (2, "/actions"), (3, "/random_events")])
async def test_a_section_that_fails_is_filled_by_rules_and_that_is_said(broken: int, path: str) -> None:
    answers = [NO_ANSWER if index == broken else answer for index, answer in enumerate(ANSWERS)]
    stepwise, spec, gateway = await written(*answers)
    assert engine.validate(json.dumps(spec)) == []
    assert told(stepwise) == [("WORDS_ONLY", ""), ("FILLED_BY_RULES", path)]
    assert len(gateway.requests) == 4


async def test_half_a_section_is_used_as_far_as_it_goes() -> None:
    half = json.dumps({"actions_01": json.loads(ANSWERS[2])["actions_01"]})
    stepwise, _, _ = await written(ANSWERS[0], ANSWERS[1], half, ANSWERS[3])
    found = findings(stepwise)[-1]
    assert (found.code, found.path) == ("FILLED_BY_RULES", "/actions")
    assert "3 of 4 actions" in found.message


async def test_a_model_that_gives_no_outline_leaves_the_words_to_the_description() -> None:
    stepwise, spec, gateway = await written(NO_ANSWER, description="the valve is stuck")
    assert told(stepwise) == [("WITHOUT_MODEL", "")]
    assert stepwise.answer is None
    assert len(gateway.requests) == 1
    assert "Valve" in json.dumps(spec)


async def test_an_outline_of_names_alone_needs_no_section_about_what_it_does_not_name() -> None:
    outline = json.dumps({**json.loads(ANSWERS[0]), "actions": [], "events": []})
    _, spec, gateway = await written(outline, ANSWERS[1])
    assert len(gateway.requests) == 2
    assert engine.validate(json.dumps(spec)) == []


async def test_with_fewer_answers_allowed_rules_do_the_rest() -> None:
    stepwise, _, gateway = await written(*ANSWERS, answers=2)
    assert len(gateway.requests) == 2
    paths = [finding.path for finding in findings(stepwise)]
    assert paths == ["", "/actions", "/random_events"]
    assert "limit of 2 answers" in findings(stepwise)[-1].message


async def test_no_question_is_asked_once_the_tokens_are_used() -> None:
    budget = Budget(max_tokens=TOKENS.input_tokens + TOKENS.output_tokens)
    stepwise, _, gateway = await written(*ANSWERS, budget=budget)
    assert len(gateway.requests) == 1
    assert [finding.code for finding in findings(stepwise)] == ["WORDS_ONLY", *["FILLED_BY_RULES"] * 3]


async def test_a_section_that_does_not_fit_is_left_to_rules() -> None:
    too_long = InvalidArgumentError("too long", code="CONTEXT_LENGTH_EXCEEDED")
    stepwise, spec, _ = await written(ANSWERS[0], too_long)
    assert "too long" in findings(stepwise)[1].message
    assert engine.validate(json.dumps(spec)) == []


async def test_a_provider_that_fails_is_not_hidden() -> None:
    with pytest.raises(UnavailableError):
        await written(ANSWERS[0], UnavailableError("away", code="PROVIDER_FAILED"))


async def test_what_rules_add_and_replace_is_said_of_the_candidates_that_come_later() -> None:
    stepwise, _, _ = await written(*ANSWERS)
    hows = [[finding.message for finding in each.findings[1:]] for each in stepwise.candidates]
    assert hows[0] == []
    assert "added" in hows[1][0]
    assert "wrote both" in hows[2][0]
    for candidate in stepwise.candidates:
        assert engine.validate(json.dumps(candidate.build_spec())) == []


async def test_where_the_model_names_no_rules_there_is_nothing_to_replace() -> None:
    outline = json.dumps({**json.loads(ANSWERS[0]), "actions": [], "events": []})
    stepwise, _, _ = await written(outline, ANSWERS[1])
    assert len(stepwise.candidates) == 1
