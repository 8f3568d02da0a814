"""Where a model said nothing of use, rules do: every action is worth doing, every event does something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.author.blueprint import Action, Blueprint, Event, Flow
from peripety.author.spec_builder.quantities import is_beneficial
from peripety.scenario.outline_authoring.outline_author import fill_gaps
from support.scenario import generation

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
