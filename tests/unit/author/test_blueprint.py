from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.author.blueprint import Action, Blueprint, Chance, Event, Flow, Quantity, Role, Size, Trigger
from peripety.author.spec_author import build_spec
from peripety.author.text_analysis.languages import load_languages

PHRASES = next(language.rules for language in load_languages() if language.code == "en")


def blueprint(*quantities: Quantity, **parts: Any) -> Blueprint:
    return Blueprint("A title", PHRASES, quantities, **parts)


def specified(plan: Blueprint, seed: int = 1) -> dict[str, Any]:
    spec = build_spec(plan, seed, spec_id="spec")
    assert engine.validate(json.dumps(spec, ensure_ascii=False)) == []
    return spec


def names(spec: dict[str, Any], section: str) -> list[str]:
    return [part["name"] for part in spec[section]]


def luck(spec: dict[str, Any]) -> engine.DryRunReport:
    return engine.compile(json.dumps(spec, ensure_ascii=False)).dry_run(runs=1024, seed=7)


def test_a_blueprint_of_nothing_becomes_a_whole_scenario() -> None:
    spec = specified(blueprint())
    assert len(spec["loss_conditions"]) == 3
    assert len(spec["actions"]) >= 4
    assert spec["random_events"]
    assert 0.35 <= luck(spec).fail_rate <= 0.7


def test_names_stay_those_of_the_blueprint() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY),
        Quantity("Beta", Role.WARD),
        Quantity("Gauge", Role.THREAT),
        Quantity("Delta", Role.GOAL),
        actions=(Action("Go for it", (Flow("Delta", rises=True), Flow("Alpha", rises=False))),),
        events=(Event("It strikes", (Flow("Beta", rises=False),)),),
    )
    spec = specified(plan)
    assert spec["name"] == "A title"
    assert {"Alpha", "Beta", "Gauge", "Delta"} <= spec["state"].keys()
    assert names(spec, "actions")[0] == "Go for it"
    assert names(spec, "random_events")[0] == "It strikes"


@pytest.mark.parametrize("name", ["", " ", '"\\', "...", "{{a}}", "$%<>", "\u202e"])
def test_what_cannot_be_a_name_is_left_out(name: str) -> None:
    plan = blueprint(
        Quantity(name, Role.SUPPLY),
        Quantity("Beta", Role.WARD),
        actions=(Action(name, (Flow("Beta", rises=True),)),),
        events=(Event(name, (Flow("Beta", rises=False),)),),
        people=(name,),
    )
    specified(plan)


def test_names_that_are_taken_get_numbers() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY),
        Quantity("alpha", Role.WARD),
        actions=(Action("Go", (Flow("Alpha", rises=True),)), Action("go", (Flow("alpha", rises=True),))),
        people=("Vobado", "VOBADO"),
    )
    spec = specified(plan)
    assert {"Alpha", "Alpha 2"} <= spec["state"].keys()
    assert names(spec, "actions")[:2] == ["Go", "Go 2"]
    assert [entity.get("name") for entity in spec["entities"][1:]] == ["Vobado", "VOBADO 2"]


def test_an_action_without_a_price_is_given_one() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY),
        Quantity("Beta", Role.WARD),
        actions=(Action("Wish", (Flow("Beta", rises=True, size=Size.LARGE),)),),
    )
    (wish, *_) = specified(plan)["actions"]
    assert {effect["op"] for effect in wish["effects"]} == {"inc", "dec"}


def test_what_an_unknown_quantity_does_is_left_out() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY),
        actions=(Action("Vain", (Flow("Nowhere", rises=True),)),),
        events=(Event("Vain", (Flow("Alpha", rises=False),), when=Trigger("Nowhere", is_high=True)),),
    )
    spec = specified(plan)
    assert "Vain" not in names(spec, "actions")
    assert spec["random_events"][0]["when"] == {}


def test_what_one_person_knows_is_private_and_loses_nothing() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY),
        Quantity("Secret", Role.SUPPLY, holder="Vobado"),
        Quantity("Trace", Role.THREAT, is_hidden=True),
        people=("Vobado",),
    )
    spec = specified(plan)
    assert spec["state"]["private"]["vobado"] == {"Secret": 3}
    assert spec["state"]["hidden"] == {"Trace": 0}
    told = json.dumps(spec["loss_conditions"])
    assert "Secret" not in told
    assert "Trace" not in told
    assert "Listen to Vobado" in names(spec, "actions")


def test_what_can_be_done_once_is_done_once() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY, start=Size.LARGE),
        Quantity("Delta", Role.GOAL),
        actions=(
            Action("First", (Flow("Delta", rises=True), Flow("Alpha", rises=False))),
            Action("Once", (Flow("Delta", rises=True), Flow("Alpha", rises=False)), is_final=True),
        ),
    )
    program = engine.compile(json.dumps(specified(plan)))
    state = program.new_state()
    assert program.act(state, "once").accepted
    program.step(state)
    assert not program.act(state, "once").accepted


def test_what_is_delayed_comes_later() -> None:
    plan = blueprint(
        Quantity("Alpha", Role.SUPPLY),
        Quantity("Beta", Role.WARD),
        actions=(
            Action("Now", (Flow("Beta", rises=True), Flow("Alpha", rises=False))),
            Action("Later", (Flow("Beta", rises=True), Flow("Alpha", rises=False)), is_delayed=True),
        ),
    )
    spec = specified(plan)
    later = next(action for action in spec["actions"] if action["name"] == "Later")
    (schedule,) = [effect for effect in later["effects"] if effect["op"] == "schedule"]
    assert any(effect.get("path") == "state.Beta" for effect in schedule["effects"])
    assert not any(effect.get("path") == "state.Beta" for effect in later["effects"])


@pytest.mark.parametrize(
    ("hours", "turn", "horizon"),
    [(1, "PT2M", 30), (24, "PT1H", 24), (6 * 168, "P2D", 21), (8_760, "P21D", 17)],
)
def test_a_span_of_time_is_cut_into_turns_of_a_usual_length(hours: float, turn: str, horizon: int) -> None:
    spec = specified(blueprint(hours=hours))
    assert spec["clock"] == {"turn": turn}
    assert spec["horizon"] == horizon


@pytest.mark.parametrize("hours", [0, 0.1, 1e9])
def test_a_span_that_no_usual_turns_make_up_is_left_open(hours: float) -> None:
    spec = specified(blueprint(hours=hours))
    assert "clock" not in spec
    assert 14 <= spec["horizon"] <= 30


@pytest.mark.parametrize("seed", range(4))
def test_a_wild_blueprint_is_tamed(seed: int) -> None:
    wild = blueprint(
        *(Quantity(f"Alpha {place}", role, fades=True) for place in range(5) for role in Role),
        actions=tuple(
            Action(
                f"Act {place}",
                tuple(Flow(f"Alpha {other}", rises=True, size=Size.LARGE) for other in range(place + 1)),
                is_delayed=True,
                is_final=place % 2 == 0,
                is_scaled=True,
            )
            for place in range(20)
        ),
        events=tuple(
            Event(f"Event {place}", (Flow(f"Alpha {place}", rises=False, size=Size.LARGE),), Chance.FREQUENT)
            for place in range(30)
        ),
        people=tuple(f"Person {place}" for place in range(9)),
        has_deadline=True,
    )
    spec = specified(wild, seed)
    assert 0.2 <= luck(spec).fail_rate <= 0.8
    assert len(spec["entities"]) <= 5
    assert len(spec["negativity_budget"]["decay_per_turn"]) <= 2


def test_the_same_blueprint_and_seed_give_the_same_bytes() -> None:
    plan = blueprint(Quantity("Alpha", Role.SUPPLY), people=("Vobado",))
    assert json.dumps(specified(plan, 3)) == json.dumps(specified(plan, 3))
    assert json.dumps(specified(plan, 3)) != json.dumps(specified(plan, 4))
