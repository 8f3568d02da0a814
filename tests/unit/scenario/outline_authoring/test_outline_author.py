"""Fallback rules for unusable answers: every action has a benefit, every event has an effect.

An outline gives names; every section is derived from any outline.

Section by section: four small prompts in one conversation, and always a valid specification.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.author.blueprint import Action, Blueprint, Event, Flow, Role
from peripety.author.blueprint_builder import MIN_TERMS
from peripety.author.spec_author import author_from_text
from peripety.author.spec_builder.quantities import is_beneficial
from peripety.author.text_analysis.terms import Term
from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import InvalidArgumentError, UnavailableError
from peripety.gateway.types.request import Budget
from peripety.scenario.generation.draft_cache import load_prompt
from peripety.scenario.generation.model_client import ModelClient
from peripety.scenario.outline_authoring.outline_author import (
    OUTLINE_SCHEMA,
    OutlineAuthor,
    extract_outline_terms,
    fill_gaps,
    outline_request,
    parse_outline,
)
from peripety.scenario.types import GenerationLimits, GenerationOrder, Progress
from support.gateway.fake_gateway import TOKENS, FakeGateway
from support.scenario import generation
from support.scenario.generation import ANSWERS, DESCRIPTION

if TYPE_CHECKING:
    from peripety.errors import Finding


OUTLINED, COMPOSED = generation.outlined(), generation.by_rules()
ROLES = {each.name: each.role for each in OUTLINED.quantities}
FUEL, GAUGE, DRIFT = "Fuel (reserve)", "Gauge (condition)", "Drift (pressure)"


def is_good(flow: Flow) -> bool:
    return is_beneficial(ROLES[flow.quantity], rises=flow.rises)


def filled(blueprint: Blueprint) -> Blueprint:
    """The filling that leaves most to the model."""
    return next(fill_gaps(blueprint, COMPOSED))


def test_actions_without_changes_get_a_gain_and_a_price() -> None:
    actions = filled(OUTLINED).actions
    assert len(actions) == 4
    for action in actions:
        assert {is_good(flow) for flow in action.flows} == {True, False}
        assert len({flow.quantity for flow in action.flows}) == 2
    assert len({action.flows for action in actions}) == 4


def test_events_without_changes_do_harm_for_the_most_part() -> None:
    harm = [not is_good(flow) for event in filled(OUTLINED).events for flow in event.flows]
    assert len(harm) == 4
    assert 2 <= sum(harm) < 4


def test_what_the_model_said_stays_and_rules_add_theirs_where_that_is_little() -> None:
    trade = Action("Trade", (Flow(FUEL, rises=True), Flow(GAUGE, rises=False)))
    blow = Event("Blow", (Flow(FUEL, rises=False),))
    blueprint = filled(replace(OUTLINED, actions=(trade,), events=(blow,)))
    assert blueprint.actions == (trade, *COMPOSED.actions)
    assert blueprint.events == (blow, *COMPOSED.events)


def test_what_nobody_sees_is_there_besides_the_secrets_of_the_model() -> None:
    unseen = {one.name for one in filled(OUTLINED).quantities if one.is_unseen}
    assert unseen == {"Crack", *(one.name for one in COMPOSED.quantities if one.is_unseen)}
    assert len(unseen) > 1


@pytest.mark.parametrize(("name", "rises"), [(FUEL, False), (DRIFT, True)])
def test_an_action_that_gives_nothing_is_turned_around(name: str, rises: bool) -> None:
    vain = Action("Vain", (Flow(name, rises=rises), Flow(GAUGE, rises=False)))
    first, second = filled(replace(OUTLINED, actions=(vain,))).actions[0].flows
    assert first == Flow(name, rises=not rises)
    assert second == Flow(GAUGE, rises=False)


def test_rules_stand_beside_what_the_model_said_and_then_in_its_place() -> None:
    first, beside, instead = fill_gaps(OUTLINED, COMPOSED)
    assert beside.actions == (*first.actions, *COMPOSED.actions)
    assert beside.events == (*first.events, *COMPOSED.events)
    assert (instead.actions, instead.events) == (COMPOSED.actions, COMPOSED.events)
    assert first.quantities == beside.quantities == instead.quantities


VALVE = "The valve is stuck."


def outline(**more: Any) -> dict[str, Any]:
    return {**generation.OUTLINE, **more}


def named(said: Any, description: str) -> list[str]:
    return [term.text.casefold() for term in extract_outline_terms(said, description).terms]


def test_each_name_plays_the_part_that_it_was_given() -> None:
    words = extract_outline_terms(generation.OUTLINE, generation.DESCRIPTION)
    assert words.title == "A gauge and its keeper"
    assert words.people == ("Beta",)
    assert words.terms[:5] == (
        Term("Fuel", Role.SUPPLY),
        Term("Spares", Role.SUPPLY),
        Term("Gauge", Role.WARD),
        Term("Drift", Role.THREAT),
        Term("Report", Role.GOAL),
    )


def test_sections_are_about_what_everybody_sees_and_secrets_and_rules_by_name() -> None:
    blueprint = generation.outlined()
    assert [one.term for one in blueprint.quantities if one.role is Role.SUPPLY] == ["Fuel", "Spares"]
    assert [one.name for one in blueprint.quantities if one.is_unseen] == ["Crack"]
    assert {one.role for one in blueprint.quantities} == set(Role)
    names = [action.name for action in blueprint.actions]
    assert names == ["File the report", "Mend the gauge", "Trim", "Barter"]
    assert [event.name for event in blueprint.events] == ["Leak", "Storm", "Visit", "Rust"]
    assert blueprint.has_deadline


def test_a_name_is_nothing_but_the_first_that_it_was_given_for() -> None:
    said = outline(resources=["Fuel", "fuel"], assets=[" FUEL. "], actions=["Fuel", "gauge", "trim"])
    words = extract_outline_terms(said, generation.DESCRIPTION)
    assert [term for term in words.terms if term.text == "Fuel"] == [Term("Fuel", Role.SUPPLY)]
    blueprint = parse_outline(said, generation.DESCRIPTION, generation.composed_of(words))
    assert "Fuel" not in [action.name for action in blueprint.actions]


def test_words_of_the_description_come_behind_those_of_the_model() -> None:
    assert named(outline(assets=["", "7"]), VALVE)[:5] == ["fuel", "spares", "drift", "report", "valve"]


def test_words_that_say_little_come_before_none_at_all() -> None:
    said = outline(resources=[], assets=[], dangers=[], goals=[])
    names = named(said, "It was given to us, and nothing is left of it.")
    assert not any(name.isdigit() for name in names)


def test_words_of_the_prompt_are_names_only_where_the_description_has_them() -> None:
    said = outline(resources=["dangers", "events may happen"], assets=["goals", "much fuel"])
    names = named(said, "The goals were set too high.")
    assert "dangers" not in names
    assert "events may happen" not in names
    assert names[:2] == ["goals", "much fuel"]


def test_only_people_of_the_description_take_part_and_all_whom_rules_find_there() -> None:
    said = outline(people=["the keeper", "Delta"])
    assert extract_outline_terms(said, "Yesterday Beta met the keeper.").people == ("The keeper", "Beta")


def test_a_word_that_carries_nothing_names_nobody() -> None:
    assert (
        extract_outline_terms(outline(people=["and", "may"]), "The gauge and the valve may fail.").people
        == ()
    )


def test_numbers_and_spans_of_time_are_those_of_the_description() -> None:
    words = extract_outline_terms(
        outline(),
        "There are 40 spares for the next six days, and they are due in two hours.",
    )
    amounts = {term.text: term.amount for term in words.terms}
    assert (amounts["Spares"], amounts["Fuel"]) == (40, None)
    assert words.spans == (6 * 24, 2)


def test_a_name_that_the_limit_cut_ends_with_a_whole_word() -> None:
    words = extract_outline_terms(outline(resources=["alpha beta gamma delta epsilon zeta"[:32]]), "")
    assert words.terms[0].text == "Alpha beta gamma delta epsilon"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"title": 7, "resources": "fuel", "people": [None], "actions": {"a": 1}, "deadline": "yes"},
        outline(title="", resources=[], assets=[], dangers=[], goals=[]),
        outline(resources=['"', "\\", "{{x}}", "${y}", "<%z%>", "[0]", "://"], assets=["a", "b", "c", "d"]),
        outline(resources=["é" * 32, "火", "\U0001f600", "\u202eabc", "क्षि"]),
    ],
)
@pytest.mark.parametrize(
    "description",
    ["", "7", "Beta", "alpha waits for beta", "\u05d0\u05d1\u05d2 \u05d3\u05d4\u05d5"],
)
def test_whatever_is_said_there_is_enough_and_every_name_is_its_own(said: Any, description: str) -> None:
    words = extract_outline_terms(said, description)
    names = named(said, description)
    assert words.title
    assert len(names) >= MIN_TERMS
    assert all(names)
    assert len(names) == len(set(names))
    blueprint = parse_outline(said, description, generation.composed_of(words))
    assert {one.role for one in blueprint.quantities if not one.is_unseen} == set(Role)


def test_random_text_makes_distinct_names() -> None:
    dice = random.Random(1)
    alphabet = [chr(code) for code in (*range(0x20, 0x180), 0x200D, 0x202E, 0x5D0, 0x4E00, 0x1F600, 0x301)]
    for _ in range(60):
        texts = ["".join(dice.choices(alphabet, k=dice.randrange(33))) for _ in range(12)]
        names = named(outline(resources=texts[:3], assets=texts[3:11]), texts[11])
        assert len(names) == len(set(names))


def test_the_schema_is_small_and_takes_an_outline() -> None:
    document = dict(OUTLINE_SCHEMA)
    assert validate_against_schema(document, generation.OUTLINE) == []
    assert validate_against_schema(document, outline(more="")) != []
    assert validate_against_schema(document, outline(goals=["2026-11-22"])) != []
    assert len(json.dumps(document)) < 2_000


def test_a_question_holds_a_short_excerpt_and_words_to_copy() -> None:
    asked = outline_request("The \u202egauge falls. " + "ab" * 50_000)
    assert len(asked["description"]) <= 2_000
    assert asked["description"].startswith("The gauge falls.")
    assert "Gauge" in asked["words"]


Spec = dict[str, Any]

NO_ANSWER = "I would rather talk about something else."


async def written(
    *answers: str | list[str] | Exception,
    description: str = DESCRIPTION,
    seed: int = 1,
    **limits: Any,
) -> tuple[OutlineAuthor, Spec, FakeGateway]:
    """Return the author, the specification from these answers, and the gateway with its requests."""
    gateway = FakeGateway(*answers)
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
    assert {request.system for request in requests} == {load_prompt("stepwise")}
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
        assert request.answer_tokens is not None


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
    assert spec == author_from_text("the valve is stuck", spec["seed"])


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
