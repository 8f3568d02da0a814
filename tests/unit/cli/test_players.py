"""Players that choose actions: the rule always legally, a person as typed.

Point of view of a game.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety.api.common.v1 import engine_pb2
from peripety.cli.players import PUBLIC_VIEW, HumanPlayer, PointOfView, RoundRobinPlayer, select_point_of_view
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator


P = engine_pb2.ParamValue


def param(kind: engine_pb2.ParamType.ValueType, **domain: object) -> engine_pb2.Param:
    return engine_pb2.Param(name="p", type=kind, **domain)  # type: ignore[arg-type]  # the test names what fits


NUMBERS = [
    param(engine_pb2.PARAM_TYPE_INTEGER, minimum=1, maximum=4),
    param(engine_pb2.PARAM_TYPE_INTEGER, minimum=-3, maximum=-3),
    param(engine_pb2.PARAM_TYPE_NUMBER, minimum=0.5, maximum=0.75),
]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Lines that the person types, followed by end of input."""
    lines: list[str] = []

    def read(_: str) -> str:
        if not lines:
            raise EOFError
        return lines.pop(0)

    monkeypatch.setattr("builtins.input", read)
    yield lines
    assert not lines, "not every line was asked for"


def test_the_rule_takes_each_legal_action_in_turn() -> None:
    legal = [engine_pb2.LegalAction(action_id=name) for name in "abc"]
    chosen = [RoundRobinPlayer().choose(turn, legal).actions[0].action_id for turn in range(1, 8)]
    assert "".join(chosen) == "abcabca"


def test_the_rule_lets_the_turn_pass_when_nothing_is_legal() -> None:
    assert RoundRobinPlayer().choose(1, []).actions == []


@pytest.mark.parametrize("number", NUMBERS)
def test_the_rule_stays_within_bounds_and_reaches_both(number: engine_pb2.Param) -> None:
    legal = [engine_pb2.LegalAction(action_id="a", params=[number])]
    values = {RoundRobinPlayer().choose(turn, legal).actions[0].params["p"].number for turn in range(1, 7)}
    assert all(number.minimum <= value <= number.maximum for value in values)
    assert {number.minimum, number.maximum} <= values
    if number.type == engine_pb2.PARAM_TYPE_INTEGER:
        assert all(value == int(value) for value in values)


def test_the_rule_takes_listed_values_only() -> None:
    listed = [P(text="x"), P(text="y")]
    legal = [
        engine_pb2.LegalAction(action_id="a", params=[param(engine_pb2.PARAM_TYPE_STRING, choices=listed)]),
    ]
    values = {RoundRobinPlayer().choose(turn, legal).actions[0].params["p"].text for turn in (1, 2)}
    assert values == {"x", "y"}


@pytest.mark.parametrize(
    ("kind", "value"),
    [(engine_pb2.PARAM_TYPE_BOOLEAN, P(flag=True)), (engine_pb2.PARAM_TYPE_STRING, P(text=""))],
)
def test_the_rule_knows_a_value_of_every_type(
    kind: engine_pb2.ParamType.ValueType,
    value: engine_pb2.ParamValue,
) -> None:
    legal = [engine_pb2.LegalAction(action_id="a", params=[param(kind)])]
    assert RoundRobinPlayer().choose(1, legal).actions[0].params["p"] == value


def test_a_number_chooses_an_action_and_its_parameters_are_asked_for(typed: list[str]) -> None:
    typed += ["2", "three", "3"]
    legal = [
        engine_pb2.LegalAction(action_id="a"),
        engine_pb2.LegalAction(action_id="b", params=[NUMBERS[0]]),
    ]
    choice = HumanPlayer().choose(1, legal)
    assert choice is not None
    assert choice.actions[0].action_id == "b"
    assert choice.actions[0].params["p"].number == 3


@pytest.mark.parametrize(("answer", "flag"), [("yes", True), ("NO", False)])
def test_yes_and_no_are_understood(typed: list[str], answer: str, flag: bool) -> None:
    typed += ["1", "perhaps", answer]
    legal = [engine_pb2.LegalAction(action_id="a", params=[param(engine_pb2.PARAM_TYPE_BOOLEAN)])]
    choice = HumanPlayer().choose(1, legal)
    assert choice is not None
    assert choice.actions[0].params["p"].flag is flag


@pytest.mark.parametrize("answer", ["say this", "-1", "1.5", "²"])
def test_anything_but_a_number_is_said(typed: list[str], answer: str) -> None:
    typed.append(answer)
    choice = HumanPlayer().choose(1, [engine_pb2.LegalAction(action_id="a")])
    assert choice is not None
    assert (choice.words, choice.actions) == (answer, [])


def test_a_question_is_not_a_turn(typed: list[str]) -> None:
    typed.append("/ask  how many? ")
    choice = HumanPlayer().choose(1, [])
    assert choice is not None
    assert (choice.question, choice.words) == ("how many?", "")


@pytest.mark.parametrize("mistake", ["0", "2", "9" * 5000])
def test_a_number_that_is_not_listed_costs_no_turn(
    typed: list[str],
    mistake: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed += [mistake, "1"]
    choice = HumanPlayer().choose(1, [engine_pb2.LegalAction(action_id="a")])
    assert choice is not None
    assert [action.action_id for action in choice.actions] == ["a"]
    assert "unknown number" in capsys.readouterr().out


@pytest.mark.parametrize("question", ["?", "help"])
def test_help_is_given_on_request_and_costs_no_turn(
    typed: list[str],
    question: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed += [question, "q"]
    assert HumanPlayer().choose(1, []) is None
    explained = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert explained == ["number", "text", "/ask", "Enter", "?", "q"]


def test_enter_lets_the_turn_pass(typed: list[str]) -> None:
    typed.append("")
    choice = HumanPlayer().choose(1, [])
    assert choice is not None
    assert (choice.words, choice.actions) == ("", [])


@pytest.mark.parametrize("lines", [["q"], []])
def test_q_and_the_end_of_input_stop_the_game(typed: list[str], lines: list[str]) -> None:
    typed += lines
    assert HumanPlayer().choose(1, []) is None


def test_the_end_of_input_while_a_parameter_is_asked_for_stops_the_game(typed: list[str]) -> None:
    typed.append("1")
    assert HumanPlayer().choose(1, [engine_pb2.LegalAction(action_id="a", params=[NUMBERS[0]])]) is None


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
