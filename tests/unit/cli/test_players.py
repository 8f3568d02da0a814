"""The point of view of a game."""

from __future__ import annotations

import json

import pytest

from peripety.cli.players import PUBLIC_VIEW, PointOfView, select_point_of_view
from peripety.errors import InvalidArgumentError


def spec(*playable: str) -> bytes:
    entities = [{"id": name, "name": name.upper(), "playable": True} for name in playable]
    return json.dumps({"entities": [{"id": "bystander"}, *entities]}).encode()


def test_the_only_playable_entity_sees_the_game() -> None:
    assert select_point_of_view(spec("a"), None) == PointOfView("a", "A", "")


@pytest.mark.parametrize("document", [spec(), spec("a", "b"), b"{}"])
def test_the_view_is_public_where_it_is_open_whose_it_is(document: bytes) -> None:
    assert select_point_of_view(document, None) == PUBLIC_VIEW


def test_a_playable_entity_can_be_chosen_among_several() -> None:
    assert select_point_of_view(spec("a", "b"), "b").entity_id == "b"


def test_what_the_scenario_says_of_the_entity_is_kept() -> None:
    entity = {"id": "a", "playable": True, "description": "wins by waiting"}
    seen = select_point_of_view(json.dumps({"entities": [entity]}).encode(), None)
    assert (seen.name, seen.description) == ("a", "wins by waiting")


@pytest.mark.parametrize(
    ("document", "way_out"),
    [(spec("a", "b"), "use one of a, b"), (spec(), "the scenario has none")],
)
@pytest.mark.parametrize("wanted", ["bystander", "unknown", ""])
def test_an_entity_that_cannot_be_played_is_refused(document: bytes, way_out: str, wanted: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        select_point_of_view(document, wanted)
    (violation,) = refused.value.violations
    assert violation.field == "--pov"
    assert way_out in violation.reason
