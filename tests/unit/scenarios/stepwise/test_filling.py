"""Where a model said nothing of use, rules do: every action is worth doing, every event does something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peripety.authoring.blueprint import Action, Event, Flow, Role
from peripety.scenarios.stepwise.filling import filled
from peripety.scenarios.stepwise.outline import blueprint_of
from support import stepwise

OUTLINED = blueprint_of(stepwise.OUTLINE, stepwise.DESCRIPTION)
ROLES = {each.name: each.role for each in OUTLINED.quantities}


def is_good(flow: Flow) -> bool:
    return flow.rises is not (ROLES[flow.quantity] is Role.THREAT)


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


def test_what_the_model_said_stays() -> None:
    trade = Action("Trade", (Flow("Fuel", rises=True), Flow("Gauge", rises=False)))
    blow = Event("Blow", (Flow("Fuel", rises=False),))
    said = replace(OUTLINED, actions=(trade,), events=(blow,))
    assert filled(said) == said


@pytest.mark.parametrize(("name", "rises"), [("Fuel", False), ("Drift", True)])
def test_an_action_that_gives_nothing_is_turned_around(name: str, rises: bool) -> None:
    said = replace(OUTLINED, actions=(Action("Vain", (Flow(name, rises=rises), Flow("Gauge", rises=False))),))
    first, second = filled(said).actions[0].flows
    assert first == Flow(name, rises=not rises)
    assert second == Flow("Gauge", rises=False)
