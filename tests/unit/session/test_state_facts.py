"""Facts are read from the words of paths, whatever their form, and nothing is read from other values."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.session.state_facts import YOU, StateFacts, read_facts

ENTITIES = [{"id": "alpha", "playable": True}, {"id": "beta", "name": "Beta Vale"}, {"id": "beta_two"}]


def facts_of(tree: dict[str, Any], **spec: Any) -> StateFacts:
    return read_facts({"entities": ENTITIES, **spec}, tree, "alpha")


@pytest.mark.parametrize(
    ("tree", "is_alive"),
    [
        ({"beta": {"alive": False}}, False),
        ({"people": {"beta": {"status": "dead"}}}, False),
        ({"people": {"beta": {"condition": "wounded"}}}, True),
        ({"beta_dead": True}, False),
        ({"beta_is_alive": True}, True),
        ({"beta": {"status": "angry"}}, None),
        ({"alive": True}, None),
    ],
)
def test_lives(tree: dict[str, Any], is_alive: bool | None) -> None:
    assert facts_of(tree).alive.get("beta") is is_alive


@pytest.mark.parametrize(
    ("tree", "place"),
    [
        ({"beta": {"place": "east_room"}}, "east_room"),
        ({"beta_at": "east_room"}, "east_room"),
        ({"places": {"beta": "east_room"}}, "east_room"),
        ({"places": {"east_room": {"present": ["beta"]}}}, "east_room"),
        ({"beta": {"mood": "east_room"}}, None),
    ],
)
def test_places(tree: dict[str, Any], place: str | None) -> None:
    facts = facts_of(tree, places={"east_room": {"name": "The Hall"}})
    assert facts.places.get("beta") == place
    assert facts.place_names["east_room"] == ("the hall", "east room")


@pytest.mark.parametrize(
    ("tree", "holder"),
    [
        ({"items": {"seal": {"holder": "beta"}}}, "beta"),
        ({"seal_owner": "beta"}, "beta"),
        ({"items": {"seal": {"holder": "beta"}, "beta_two": {"holder": "beta"}}}, "beta"),
        ({"beta": {"has": ["seal"]}}, "beta"),
        ({"people": {"beta": {"inventory": ["seal", "badge"]}}}, "beta"),
        ({"beta": {"has_seal": True}}, "beta"),
        ({"player": {"inventory": ["seal"]}}, "alpha"),
        ({"inventory": ["seal"]}, "alpha"),
        ({"alpha": {"has": ["seal"]}, "beta": {"has": ["seal"]}}, None),
        ({"beta": {"has_seal": False}}, None),
    ],
)
def test_holders(tree: dict[str, Any], holder: str | None) -> None:
    assert facts_of(tree).holders.get("seal") == holder


def test_quantities_have_the_names_of_labels_and_paths() -> None:
    facts = facts_of(
        {"supply": 4, "beta": {"trust": 2}, "beta_two_trust": 3, "stock": {"level": 7}, "on": True},
        labels={"state.supply": {"name": "Rations", "unit": "kg"}},
    )
    found = {path: (one.names, one.unit, one.owner) for path, one in facts.quantities.items()}
    assert found == {
        "state.supply": (("rations", "supply"), "kg", None),
        "state.beta.trust": (("trust",), "", "beta"),
        "state.beta_two_trust": (("trust",), "", "beta_two"),
        "state.stock.level": (("stock",), "", None),
    }


def test_a_band_of_a_label_may_be_a_death() -> None:
    labels = {
        "state.beta.health": {"name": "Health", "bands": [{"upto": 0, "word": "dead"}, {"word": "well"}]}
    }
    assert facts_of({"beta": {"health": 0}}, labels=labels).alive == {"beta": False}
    assert facts_of({"beta": {"health": 3}}, labels=labels).alive == {}


def test_names_of_entities_are_whole_or_parts_that_only_one_has() -> None:
    facts = facts_of({})
    assert facts.names["beta"] == ("Beta Vale", "Vale")
    assert facts.name_of("alpha") == "you"
    assert facts_of({}, entities=[{"id": "beta", "name": "The Keeper"}]).names["beta"] == (
        "The Keeper",
        "Keeper",
    )
    assert read_facts({}, {}, None).you == YOU


def test_states_of_things() -> None:
    facts = facts_of(
        {"gate": {"locked": True}, "pane_broken": False, "is_late": True, "beta": {"sick": True}}
    )
    assert facts.flags == {("gate", "locked"): True, ("pane", "broken"): False}
