from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from peripety.author.narration import narrate, narrate_late_facts
from peripety.author.plots.beats import Scene
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.schemas import OUTCOME, schema_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Json = dict[str, Any]


def change(path: str, before: Any = None, after: Any = None, cause: str = "action:act") -> Json:
    return {"path": path, "before": before, "after": after, "cause": cause}


def facts(**parts: Any) -> Json:
    return {
        "turn": 3,
        "actions": [{"id": "act", "name": "Try the alpha", "params": {}}],
        "changes": [],
        "log": [],
        "event": None,
        "status": {"kind": "ongoing", "condition": None, "message": None},
        **parts,
    }


def told(history: tuple[str, ...] = ("before",), **parts: Any) -> str:
    narrative = narrate(facts(**parts), history)["narrative"]
    assert isinstance(narrative, str)
    return narrative


def played(words: list[str], turns: int) -> Iterator[Json]:
    """The facts of turns as a session commits them."""
    paths = [f"state.{word}" for word in words]
    for turn in range(1, turns + 1):
        word = words[turn % len(words)]
        yield facts(
            turn=turn,
            actions=[{"id": "act", "name": f"Try the {word}", "params": {"amount": turn}}],
            changes=[change(path, turn * place, turn * place - 1) for place, path in enumerate(paths)],
            event={"id": "rise", "name": f"{word.capitalize()} rises"} if turn % 2 else None,
        )


def test_a_turn_is_told_as_a_valid_outcome_without_changes_of_its_own() -> None:
    outcome = narrate(facts(), ())
    assert validate_against_schema(schema_document(OUTCOME), outcome) == []
    assert outcome.keys() == {"narrative"}


def test_the_first_turn_says_at_length_that_no_model_tells_it() -> None:
    assert told(history=()).startswith(OFFLINE_MARK)
    assert told(history=("before",)).startswith("(offline) ")


def test_a_scenario_with_labels_is_told_by_its_texts_and_bands() -> None:
    bands = [{"upto": 4, "word": "low"}, {"word": "enough"}]
    scenario = {
        "labels": {"state.a": {"name": "Alpha", "bands": bands}, "state.b": {"name": "Beta"}},
        "entities": [{"id": "g", "name": "Gamma"}],
    }
    act = {"id": "act", "name": "Ask", "params": {"who": "g"}}
    changes = [
        change("state.a", 5, 4),
        change("state.b", 1, 2),
        change("state.c", 1, 2),
        change("state.clues.k", "", "A text that is revealed."),
    ]
    event = {"id": "e", "name": "It rains"}
    turn = facts(actions=[act], changes=changes, event=event, log=["You ask.", "The path is wet."])
    narrative = narrate(turn, ("before",), Scene(scenario, {}))["narrative"]
    assert re.fullmatch(r"You ask\. It rains\. The path is wet\. Alpha (became|is now:) low\.", narrative)
    silent = narrate(facts(actions=[act]), ("before",), Scene(scenario, {}))["narrative"]
    assert "Ask (Gamma)" in silent


def test_the_same_facts_read_the_same_and_others_vary() -> None:
    assert told(turn=1) == told(turn=1)
    assert len({told(turn=turn) for turn in range(20)}) > 1


def test_an_action_is_named_with_what_it_was_given() -> None:
    assert "Try the alpha (amount 3, way \u201cb\u201d)" in told(
        actions=[{"id": "act", "name": "Try the alpha", "params": {"amount": 3.0, "way": "b"}}],
    )


def test_what_happens_again_is_told_with_its_number_of_times() -> None:
    wave: Json = {"event": {"id": "e", "name": "The alpha rises"}, "log": ["The beta falls."]}
    once, again = told(**wave), told(**wave, repeated={"The alpha rises": 3})
    assert "Again" not in once
    assert "Again (3 times): The alpha rises." in again
    assert "3 times): The beta" not in again
    both = told(**wave, repeated={"The alpha rises": 2, "The beta falls.": 4})
    assert "Again (2 times): The alpha rises. Again (4 times): The beta falls." in both
    late = narrate_late_facts(facts(**wave, repeated={"The alpha rises": 2}), ("before",))
    assert late == "Again (2 times): The alpha rises."


def test_what_has_no_name_goes_by_its_identifier() -> None:
    narrative = told(actions=[{"id": "try_alpha", "params": {}}], event={"id": "beta_rises"})
    assert "try alpha" in narrative
    assert "beta rises." in narrative


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (2.0, 5.0, ["2", "5"]),
        (5, 2, ["5", "2"]),
        (0.1 + 0.2, 1, ["0.3", "1"]),
        ("a", "b", ["\u201cb\u201d"]),
        (False, True, ["true"]),
        (None, {"k": 1}, ['{"k": 1}']),
    ],
)
def test_a_change_is_told_with_its_values(before: Any, after: Any, expected: list[str]) -> None:
    narrative = told(changes=[change("state.alpha", before, after)])
    assert "Alpha" in narrative
    assert all(value in narrative for value in expected)


def test_up_is_not_down() -> None:
    up = told(changes=[change("state.alpha", 1, 2)])
    down = told(changes=[change("state.alpha", 2, 1)])
    assert re.search(r"rose|climbed|up", up)
    assert re.search(r"fell|dropped|down", down)


def test_one_number_is_told_once_from_first_to_last() -> None:
    narrative = told(
        changes=[
            change("state.alpha", 9, 7),
            change("state.alpha", 7, 8),
            change("state.alpha", 8, 5, "decay"),
        ],
    )
    assert narrative.count("Alpha") == 1
    assert {"9", "5"} <= set(re.findall(r"\d+", narrative))


def test_what_came_back_to_where_it_was_is_not_told() -> None:
    assert "Beta" not in told(changes=[change("state.beta", 1, 2), change("state.beta", 2, 1)])


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("state.alpha", "Alpha"),
        ("state.alpha_beta", "Alpha beta"),
        ("state.gauge.alpha", "Gauge alpha"),
        ("state.gauge.alpha[2].level", "Alpha level"),
        ('state["odd key"]', "Odd key"),
        ('state["a \\" b"]', 'A " b'),
        ("state.private.somebody.alpha", "Alpha"),
        ("state.hidden.alpha", "Alpha"),
        ("nonsense", "Nonsense"),
    ],
)
def test_a_path_reads_as_its_last_keys(path: str, label: str) -> None:
    assert f" {label} " in told(changes=[change(path, 1, 2)]).replace(":", " ")


def test_entries_come_and_go() -> None:
    narrative = told(changes=[change("state.list[0]", None, "a"), change("state.list[1]", "b", None)])
    assert "gained" in narrative
    assert "\u201ca\u201d" in narrative
    assert "lost" in narrative
    assert "\u201cb\u201d" in narrative


def test_an_event_and_its_log_line_are_not_told_twice() -> None:
    narrative = told(
        event={"id": "e", "name": "Alpha: under strain"},
        log=["Alpha: under strain", "Beta spoke"],
    )
    assert narrative.count("under strain") == 1
    assert "Beta spoke." in narrative


@pytest.mark.parametrize("kind", ["lost", "won", "survived"])
def test_the_end_is_told_with_its_message(kind: str) -> None:
    open_end = told()
    narrative = told(status={"kind": kind, "condition": "c", "message": "Alpha: nothing left"})
    assert "Alpha: nothing left." in narrative
    assert len(narrative) > len(open_end) + len("Alpha: nothing left.")


def test_a_turn_without_action_says_so() -> None:
    assert re.search(r"No action was taken|You let the turn pass", told(actions=[]))


def test_it_speaks_the_language_of_the_scenario() -> None:
    narrative = told(
        history=(),
        actions=[{"id": "a", "name": "Poner la kavota al servicio de la vokuta", "params": {}}],
        changes=[change("state.kavota", 2, 1)],
    )
    assert not re.search(r"\b(the|from|was|chose|decided)\b", narrative)
    assert re.search(r"\b(de|decisi\u00f3n|decidi\u00f3)\b", narrative)


def test_a_language_without_connecting_text_gets_signs() -> None:
    narrative = told(
        history=(),
        actions=[{"id": "a", "name": "\u2665 \u7532\u4e59", "params": {}}],
        changes=[change('state["\u7532\u4e59"]', 2, 3)],
    )
    assert set(re.findall(r"[a-z]+", narrative)) == set(re.findall(r"[a-z]+", OFFLINE_MARK))


def test_much_of_everything_still_fits_an_outcome() -> None:
    outcome = narrate(
        facts(
            actions=[{"id": "a", "name": "n" * 5000, "params": {"p": "v" * 5000}}],
            changes=[change(f"state.k{n}", "a", "b" * 5000) for n in range(500)],
        ),
        (),
    )
    assert validate_against_schema(schema_document(OUTCOME), outcome) == []


def test_nothing_that_steers_the_display_is_repeated() -> None:
    narrative = told(actions=[{"id": "a", "name": "al\u202epha\x1b[2J\nbeta", "params": {}}])
    assert "alpha[2J beta" in narrative


def test_only_given_facts_are_told(made_up: Callable[[int, int], list[str]]) -> None:
    a, b, c, d, person = made_up(5, 1)
    history: list[str] = []
    for given in played([a, b, c, d, person], 8):
        narrative = narrate(given, tuple(history))["narrative"]
        history.append(narrative)
        known = json.dumps(given, ensure_ascii=False)
        assert set(re.findall(r"\d+", narrative)) <= set(re.findall(r"\d+", known))
        for word in (a, b, c, d, person):
            assert (word in narrative.casefold()) <= (word in known.casefold())


def test_what_others_know_is_not_told_because_it_is_not_given() -> None:
    canary = "zuvokaba"
    given = facts(changes=[change("state.alpha", 1, 2)])
    narrative = narrate(given, (f"{canary} was told before",))["narrative"]
    assert canary not in narrative


def test_what_happened_by_itself_is_told_alone() -> None:
    lost = {"kind": "lost", "condition": "first", "message": "All is over"}
    said = narrate_late_facts(facts(event={"id": "e", "name": "Beta rises"}, status=lost))
    assert said.startswith("Beta rises. All is over.")
    assert "alpha" not in said
    assert narrate_late_facts(facts()) == ""
    assert narrate_late_facts({"actions": [], "changes": []}) == ""
