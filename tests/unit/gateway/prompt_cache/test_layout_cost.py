"""Cost of a conversation by the positions of its cache markers: the table of docs/reference/gateway.md."""

from __future__ import annotations

import pytest

from bench.prompt_cache import TURNS, Row, rows


@pytest.fixture(scope="module")
def table() -> dict[str, Row]:
    return {row.layout: row for row in rows()}


@pytest.mark.parametrize(
    ("layout", "not_read", "dollars", "of_the_next"),
    [
        ("as the gateway plans", 0.116, 0.0225, 0.015),
        ("automatic, by the provider", 0.116, 0.0225, 1),
        ("the first four messages of the user", 0.169, 0.0266, 1),
        ("the system text and no more", 0.254, 0.0337, 0.015),
        ("none", 1, 0.0965, 1),
    ],
)
def test_every_layout_costs_what_the_table_says(
    table: dict[str, Row],
    layout: str,
    not_read: float,
    dollars: float,
    of_the_next: float,
) -> None:
    row = table[layout]
    assert row.turns == TURNS
    found = round(row.not_read, 3), round(row.dollars, 4), round(row.next_not_read, 3)
    assert found == (not_read, dollars, of_the_next)


def test_what_is_planned_pays_in_full_for_less_than_an_eighth_and_nothing_is_cheaper(
    table: dict[str, Row],
) -> None:
    planned = table["as the gateway plans"]
    assert planned.not_read <= 0.12
    assert all(row.dollars >= planned.dollars for row in table.values() if row.turns == TURNS)


def test_a_marker_on_every_message_of_the_user_is_refused_at_the_fifth(table: dict[str, Row]) -> None:
    row = table["every message of the user"]
    assert row.turns == 4
    assert row.refusal == "A maximum of 4 blocks with cache_control may be provided. Found 5."
