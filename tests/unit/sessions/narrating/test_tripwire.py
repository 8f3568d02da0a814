from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.session.narration.secret_filter import LeakFilter, collect_secrets
from peripety.session.types import NarratorMemory, PlayerAction
from support.engine.specs import Json, action, document
from support.session.leak_probes import WAYS
from support.session.sessions import scene_of, turn_of

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext


ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}]
CODE = "Sel4-vokkum"
LONG = "the third of the seven levers opens the lower gate when it is pulled twice before the second bell"


def scene(
    hidden: Any = CODE,
    *,
    viewer: str | None = "p",
    spoken: str = "",
    **parts: Any,
) -> NarrationContext:
    about = {name: parts.pop(name) for name in ("past", "memories") if name in parts}
    state = {"a": 1, "private": {"p": {"x": "known to p"}, "q": {"x": hidden}}, "hidden": {"y": 48151623}}
    spec = {"entities": ENTITIES, "state": state, **parts}
    return scene_of(document(**spec), [PlayerAction("act", {})], viewer=viewer, spoken=spoken, **about)


def leaks(text: str, about: NarrationContext | None = None) -> bool:
    return LeakFilter(about or scene()).contains_secret(text)


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_found_however_it_is_written(way: str) -> None:
    assert leaks(f"So it is said: {WAYS[way](CODE)}, and no more.")


@pytest.mark.parametrize("way", WAYS)
def test_what_the_audience_knows_may_be_written_in_any_way(way: str) -> None:
    assert not leaks(WAYS[way]("known to p"))


def test_a_long_number_is_found_with_its_digits_grouped() -> None:
    for text in ("48151623", "48,151,623", "48 151 623", "No. 48151623."):
        assert leaks(text)
    assert not leaks("148151623")
    assert not leaks("4815162")


def test_short_values_are_no_secrets() -> None:
    assert not leaks("It is 12345 and low.", scene({"n": 12345, "word": "low", "flag": True, "none": None}))


def test_a_short_word_inside_of_others_is_none() -> None:
    about = scene("listed")
    assert leaks("It is listed.", about)
    assert leaks("Listed!", about)
    assert not leaks("It is enlisted, the tool is Ted's.", about)
    assert not leaks("The tool is ted.", about)


def test_a_part_of_a_long_text_is_enough() -> None:
    assert leaks("They say that the seven levers opens the lower gate when it is pulled.", scene(LONG))
    assert not leaks("The lower gate is shut.", scene(LONG))


def test_values_count_from_before_the_turn_and_after_it() -> None:
    changed = [{"op": "set", "path": "state.private.q.x", "value": "Another-91"}]
    about = scene(actions=[action("act", changed)])
    assert leaks(CODE, about)
    assert leaks("Another-91", about)


def test_what_also_stands_elsewhere_in_plain_sight_is_no_secret() -> None:
    assert not leaks(CODE, scene(spoken=f"I guess {CODE.upper()}"))
    assert not leaks(CODE, scene(actions=[action("act"), {**action("b"), "name": f"Say {CODE}"}]))
    assert not leaks(CODE, scene(viewer="q"))
    public = {"a": 1, "b": CODE, "private": {"p": {}, "q": {"x": CODE}}, "hidden": {}}
    assert not leaks(CODE, scene(state=public))
    heard = turn_of(scene(), f"There is {CODE}.", pov="p")
    assert not leaks(CODE, scene(past=(heard,)))
    unheard = turn_of(scene(), f"There is {CODE}.", pov="q")
    assert leaks(CODE, scene(past=(unheard,)))


def test_rules_on_what_is_hidden_make_nothing_public() -> None:
    writes = [{"op": "set", "path": "state.private.q.x", "value": CODE}]
    asks = {"==": [{"var": "state.private.q.x"}, CODE]}
    assert leaks(CODE, scene(actions=[action("act", writes, preconditions={"or": [asks, {"<": [0, 1]}]})]))


def test_memories_of_others_are_secrets() -> None:
    kinds = [("p", "hidden"), ("q", "private"), ("p", "private"), ("q", "public")]
    memories = tuple(NarratorMemory(1, "s", owner, f"kept for {owner} {kind}", kind) for owner, kind in kinds)
    about = scene(memories=memories)
    assert [leaks(memory.content, about) for memory in memories] == [True, True, False, False]


def test_text_is_released_at_once_but_for_what_may_become_a_secret() -> None:
    tripwire = LeakFilter(scene())
    assert tripwire.feed("They sel") == "They "
    assert tripwire.feed("l lamp") == "sell lamp"
    assert tripwire.feed(", sel4") == ", "
    assert tripwire.feed(" - vok") == ""
    assert tripwire.feed("e.") == "sel4 - voke."
    assert tripwire.feed(" S") == " "
    assert tripwire.finish() == "S"
    assert not tripwire.has_leaked


def test_nothing_is_released_once_a_secret_was_in_the_text() -> None:
    tripwire = LeakFilter(scene())
    released = "".join(map(tripwire.feed, f"It is {CODE} and so on"))
    assert released == "It is "
    assert tripwire.has_leaked
    assert tripwire.feed("more") == tripwire.finish() == ""
    assert not tripwire.fresh_copy().has_leaked


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pieces_make_no_difference(size: int) -> None:
    text = f"Sel4 sel4-vo vokkum {CODE[:-1]} \u017fel4"
    tripwire = LeakFilter(scene())
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join([*map(tripwire.feed, pieces), tripwire.finish()]) == text


def test_a_secret_in_two_parts_is_found() -> None:
    assert LeakFilter(scene()).contains_secret(f"First {CODE[:5]}", f"{CODE[5:]} then")


def test_so_many_secrets_are_looked_for_and_no_more() -> None:
    many = [f"{number:06d}-{'x' * 30}" for number in range(5_000)]
    assert len(collect_secrets(scene(many))) == 128
