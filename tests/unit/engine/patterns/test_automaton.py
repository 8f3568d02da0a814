from __future__ import annotations

import pytest

from peripety.engine.patterns import automaton as module
from peripety.engine.patterns.automaton import Automaton
from peripety.engine.patterns.syntax import TextKind, TextPattern, parse_pattern


def automaton(text: str) -> Automaton:
    return Automaton(parse_pattern(TextPattern(TextKind.REGEX, text)))


def test_a_match_is_found_as_soon_as_nothing_more_is_needed() -> None:
    machine = automaton("ab")
    state = machine.start_state
    for character in "xab":
        assert not state.found
        state = machine.step(state, character)
    assert machine.accepts(state)
    assert machine.step(state, "x").found


def test_what_cannot_match_any_more_is_dead() -> None:
    machine = automaton("^ab")
    assert machine.step(machine.start_state, "x").dead
    assert not machine.step(machine.start_state, "a").dead
    anywhere = automaton("ab")
    assert not anywhere.step(anywhere.start_state, "x").dead


def test_characters_that_no_set_tells_apart_lead_to_the_same_state() -> None:
    machine = automaton("[b-d]x")
    assert machine.class_starts == [0, ord("b"), ord("e"), ord("x"), ord("y")]
    assert machine.step(machine.start_state, "b").key == machine.step(machine.start_state, "d").key
    assert machine.step(machine.start_state, "b").key != machine.step(machine.start_state, "e").key


@pytest.mark.parametrize("text", ["(a+)+$", "((a{1,9}){1,9}){1,9}$", "^(a|a)*$", "(a*)*b", "(.*){1,30}[bc]"])
def test_a_hostile_pattern_takes_few_steps_for_each_character(text: str) -> None:
    machine = automaton(text)
    assert not machine.matches("a" * 5000 + "d")
    assert len(machine._states) < 5000


def test_what_it_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED_TRANSITIONS", 50)
    machine = automaton("a.{9}b")
    texts = [f"{number:012b}".replace("0", "a").replace("1", "b") for number in range(300)]
    expected = [
        "a" in text[:2] and (text[0] + text[10] == "ab" or text[1] + text[11] == "ab") for text in texts
    ]
    assert [machine.matches(text) for text in texts] == expected
    assert len(machine._states) <= 51
