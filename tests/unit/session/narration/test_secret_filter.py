"""Facts known to a narrator but hidden from its audience or from other seats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.session.events import ActionResolved, NarrativeChunk
from peripety.session.narration.secret_filter import LeakFilter, collect_secrets
from peripety.session.types import NarratorMemory, PlayerAction, Resolution
from support.engine.specs import Json, action, document
from support.gateway.fake_gateway import calling
from support.session.leak_probes import WAYS
from support.session.sessions import ACTIONS, outcome, played, results, scene, scene_of, turn_of

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext


HIDDEN = "zebra-0815-qx"
OWN = "mine-4711-ab"


def secretive(spoken: str = "", **more: Any) -> NarrationContext:
    state = {"a": 1, "b": 2, "private": {"p": {"x": OWN}, "q": {"x": HIDDEN}}}
    return scene(spoken, viewer="p", state=state, **more)


@pytest.mark.parametrize("told_as", [HIDDEN, HIDDEN[::-1], " ".join(HIDDEN), HIDDEN.encode().hex()])
async def test_what_the_audience_may_not_know_is_never_shown(told_as: str) -> None:
    bad = outcome(f"It is said that {told_as} is so.")
    pieces = [bad[start : start + 3] for start in range(0, len(bad), 3)]
    events, gateway = await played(pieces, outcome("Good."), about=secretive())
    assert told_as not in repr(events)
    shown = "".join(one.text for one in events if isinstance(one, NarrativeChunk))
    assert shown == "It is said that Good."
    assert events[-1].narrative == "Good."
    assert events[-1].stats.withheld_secrets == 1
    assert "SECRET_TOLD" in gateway.requests[1].messages[-1].text


async def test_what_the_audience_alone_may_know_gets_into_no_parameter_that_others_see() -> None:
    noting = action("note", [], params={"text": {"type": "string", "maxLength": 40}})
    about = secretive("words", actions=[*ACTIONS, noting])
    events, gateway = await played(
        calling(("action:note", {"text": f"it is {OWN}"}), ("action:note", {"text": "a plain text"})),
        outcome("Told."),
        about=about,
    )
    assert [one.params for one in events if isinstance(one, ActionResolved)] == [{"text": "a plain text"}]
    (refusal, failed), (_, other_failed) = results(gateway)
    assert failed
    assert "contain restricted information" in refusal["error"]
    assert not other_failed


async def test_what_the_player_said_aloud_may_be_a_parameter() -> None:
    noting = action("note", [], params={"text": {"type": "string", "maxLength": 40}})
    about = secretive(f"I note {OWN}", actions=[*ACTIONS, noting])
    events, _ = await played(calling(("action:note", {"text": OWN})), outcome("Told."), about=about)
    assert [one.params for one in events if isinstance(one, ActionResolved)] == [{"text": OWN}]


@pytest.mark.parametrize(
    ("path", "resolution"),
    [("state.a", Resolution.REPAIRED), ("state.private.p.x", Resolution.NARRATED)],
)
async def test_what_the_audience_alone_may_know_gets_into_no_state_that_others_see(
    path: str,
    resolution: Resolution,
) -> None:
    about = secretive(narrator_scope=[{"path": path, "ops": ["set"]}])
    change = {"op": "set", "path": path, "value": f"it is {OWN}"}
    events, gateway = await played(outcome("Bad.", state_changes=[change]), outcome("Good."), about=about)
    assert events[-1].resolution is resolution
    assert len(gateway.requests) == (2 if resolution is Resolution.REPAIRED else 1)


async def test_what_somebody_says_is_held_against_secrets_as_well() -> None:
    line = {"entity_id": "q", "utterance": f"I have {HIDDEN}."}
    events, _ = await played(outcome("Bad.", visible_dialogue=[line]), outcome("Good."), about=secretive())
    assert HIDDEN not in repr(events)
    assert events[-1].stats.withheld_secrets == 1


ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}]
CODE = "Sel4-vokkum"
LONG = "the third of the seven levers opens the lower gate when it is pulled twice before the second bell"


def secret_scene(
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
    return LeakFilter(about or secret_scene()).contains_secret(text)


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
    assert not leaks(
        "It is 12345 and low.", secret_scene({"n": 12345, "word": "low", "flag": True, "none": None})
    )


def test_a_short_word_inside_of_others_is_none() -> None:
    about = secret_scene("listed")
    assert leaks("It is listed.", about)
    assert leaks("Listed!", about)
    assert not leaks("It is enlisted, the tool is Ted's.", about)
    assert not leaks("The tool is ted.", about)


def test_a_part_of_a_long_text_is_enough() -> None:
    assert leaks("They say that the seven levers opens the lower gate when it is pulled.", secret_scene(LONG))
    assert not leaks("The lower gate is shut.", secret_scene(LONG))


def test_values_count_from_before_the_turn_and_after_it() -> None:
    changed = [{"op": "set", "path": "state.private.q.x", "value": "Another-91"}]
    about = secret_scene(actions=[action("act", changed)])
    assert leaks(CODE, about)
    assert leaks("Another-91", about)


def test_what_also_stands_elsewhere_in_plain_sight_is_no_secret() -> None:
    assert not leaks(CODE, secret_scene(spoken=f"I guess {CODE.upper()}"))
    assert not leaks(CODE, secret_scene(actions=[action("act"), {**action("b"), "name": f"Say {CODE}"}]))
    assert not leaks(CODE, secret_scene(viewer="q"))
    public = {"a": 1, "b": CODE, "private": {"p": {}, "q": {"x": CODE}}, "hidden": {}}
    assert not leaks(CODE, secret_scene(state=public))
    heard = turn_of(secret_scene(), f"There is {CODE}.", pov="p")
    assert not leaks(CODE, secret_scene(past=(heard,)))
    unheard = turn_of(secret_scene(), f"There is {CODE}.", pov="q")
    assert leaks(CODE, secret_scene(past=(unheard,)))


def test_rules_on_what_is_hidden_make_nothing_public() -> None:
    writes = [{"op": "set", "path": "state.private.q.x", "value": CODE}]
    asks = {"==": [{"var": "state.private.q.x"}, CODE]}
    assert leaks(
        CODE, secret_scene(actions=[action("act", writes, preconditions={"or": [asks, {"<": [0, 1]}]})])
    )


def test_memories_of_others_are_secrets() -> None:
    kinds = [("p", "hidden"), ("q", "private"), ("p", "private"), ("q", "public")]
    memories = tuple(NarratorMemory(1, "s", owner, f"kept for {owner} {kind}", kind) for owner, kind in kinds)
    about = secret_scene(memories=memories)
    assert [leaks(memory.content, about) for memory in memories] == [True, True, False, False]


def test_text_is_released_at_once_but_for_what_may_become_a_secret() -> None:
    tripwire = LeakFilter(secret_scene())
    assert tripwire.feed("They sel") == "They "
    assert tripwire.feed("l lamp") == "sell lamp"
    assert tripwire.feed(", sel4") == ", "
    assert tripwire.feed(" - vok") == ""
    assert tripwire.feed("e.") == "sel4 - voke."
    assert tripwire.feed(" S") == " "
    assert tripwire.finish() == "S"
    assert not tripwire.has_leaked


def test_nothing_is_released_once_a_secret_was_in_the_text() -> None:
    tripwire = LeakFilter(secret_scene())
    released = "".join(map(tripwire.feed, f"It is {CODE} and so on"))
    assert released == "It is "
    assert tripwire.has_leaked
    assert tripwire.feed("more") == tripwire.finish() == ""
    assert not tripwire.fresh_copy().has_leaked


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pieces_make_no_difference(size: int) -> None:
    text = f"Sel4 sel4-vo vokkum {CODE[:-1]} \u017fel4"
    tripwire = LeakFilter(secret_scene())
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join([*map(tripwire.feed, pieces), tripwire.finish()]) == text


def test_a_secret_in_two_parts_is_found() -> None:
    assert LeakFilter(secret_scene()).contains_secret(f"First {CODE[:5]}", f"{CODE[5:]} then")


def test_so_many_secrets_are_looked_for_and_no_more() -> None:
    many = [f"{number:06d}-{'x' * 30}" for number in range(5_000)]
    assert len(collect_secrets(secret_scene(many))) == 128
