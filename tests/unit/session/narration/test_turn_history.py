from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety.gateway.types.message import ChatRole
from peripety.session.events import DialogueSpoken
from peripety.session.narration.claims.record import undo_changes
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.narration.turn_history import first_turn_of_history, render_history, shorten_prose
from peripety.session.narration.turn_prompt import find_noticed
from peripety.session.types import DieRollRequest, NarratorMemory, PlayerAction
from support.engine.specs import Json, action, at_most, document, never
from support.session.sessions import FULL_ROOM, scene_of, text_of, turn_of

if TYPE_CHECKING:
    from peripety.gateway.types.message import ChatMessage
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.types import CommittedTurn

ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q"}]
SMALL_ROOM = PromptRoom.for_window(4_096)


def scene(*, viewer: str | None = None, **parts: Any) -> NarrationContext:
    about = {name: parts.pop(name) for name in ("past", "memories", "room") if name in parts}
    spec = {
        "entities": ENTITIES,
        "state": {"a": 1, "hidden": {"y": 7}},
        "actions": [{**action("act", [{"op": "inc", "path": "state.a", "value": 1}]), "name": "Act now"}],
        "loss_conditions": [at_most("low", "state.a", -5), never("other")],
        **parts,
    }
    return scene_of(document(**spec), [PlayerAction("act", {})], viewer=viewer, **about)


def numbered(turn: CommittedTurn, number: int) -> CommittedTurn:
    return replace(turn, turn=number)


def after(turns: int, *, narrative: str = "It was told.", room: PromptRoom = FULL_ROOM) -> NarrationContext:
    """Return a scene after many turns, each of which has its number in the player's words and the text."""
    about = scene(room=room)
    texts = []
    for number in range(1, turns + 1):
        turn = turn_of(about, f"{narrative} No. {number}.", spoken=f"words of {number}")
        texts.append(text_of(numbered(turn, number), about))
    return replace(about, history=tuple(texts), turn=turns + 1)


def messages_of(about: NarrationContext) -> tuple[ChatMessage, ...]:
    return render_history(about, 2_000).messages


def text(about: NarrationContext) -> str:
    return "\n".join(message.text for message in messages_of(about))


def test_an_earlier_turn_is_a_message_with_its_facts_and_the_answer() -> None:
    memory = NarratorMemory(1, "fact", "world", "The door is red.", "public")
    spoken = [DialogueSpoken("q", "Hello.")]
    before = scene()
    past = (turn_of(before, "It was told.", spoken="I look.", memories=[memory], dialogue=spoken),)
    asked, answered = messages_of(scene(past=past))
    assert (asked.role, answered.role) == (ChatRole.USER, ChatRole.ASSISTANT)
    facts = json.loads(asked.text)["facts"]
    assert (facts["turn"], facts["input"], facts["actions"][0]["name"]) == (1, "I look.", "Act now")
    assert facts["changes"][0]["after"] == 2
    # The keys of an Outcome have an order.
    assert list(json.loads(answered.text)) == ["visible_dialogue", "narrative", "hidden_memory_updates"]
    assert json.loads(answered.text) == {
        "narrative": "It was told.",
        "visible_dialogue": [{"entity_id": "q", "utterance": "Hello."}],
        "hidden_memory_updates": [
            {
                "scope": "fact",
                "target_id": "world",
                "content": "The door is red.",
                "visibility": "public",
            },
        ],
    }


def test_a_turn_that_was_narrated_for_another_viewer_has_facts_only() -> None:
    before = scene(viewer="p")
    heard = turn_of(before, "It was told.", pov="p", spoken="what was said")
    memory = NarratorMemory(1, "s", "q", "known to q", "public", "q")
    unheard = turn_of(before, "z" * 300, pov="q", spoken="what q said", memories=[memory])
    messages = messages_of(scene(viewer="p", past=(heard, unheard)))
    assert [message.role.value for message in messages] == ["user", "assistant", "user"]
    for secret in ("zzz", "what q said", "known to q"):
        assert secret not in "".join(message.text for message in messages)


def test_dice_are_among_the_facts_of_their_turn() -> None:
    before = scene()
    before.speculation.roll(DieRollRequest("luck", 12, "p"))
    before.speculation.finish()
    (rolled,) = json.loads(messages_of(scene(past=(turn_of(before, "told"),)))[0].text)["facts"]["rolls"]
    assert (rolled["kind"], rolled["target"], rolled["difficulty"]) == ("luck", "p", 12)
    assert rolled["success"] is (rolled["face"] >= 12)
    hidden = (turn_of(before, "told", pov="p"),)
    assert "luck" not in text(scene(past=hidden))


@pytest.mark.parametrize("room", [FULL_ROOM, SMALL_ROOM])
def test_the_history_only_grows_between_two_folds(room: PromptRoom) -> None:
    prompts = [text(after(turns, narrative="word " * 120, room=room)) for turns in range(1, 60)]
    kept = [later.startswith(earlier) for earlier, later in pairwise(prompts)]
    folds = kept.count(False)
    assert folds <= (6 if room is FULL_ROOM else 58)
    assert max(len(prompt.encode()) for prompt in prompts) <= 1.3 * (room.whole_turns + room.summary)


def test_folded_turns_keep_the_words_of_the_player_and_the_newest_turns_are_whole() -> None:
    messages = messages_of(after(40, narrative="word " * 120))
    summary, *whole = messages
    answers = [
        json.loads(message.text)["narrative"] for message in whole if message.role is ChatRole.ASSISTANT
    ]
    assert len(answers) >= 3
    assert answers[-1] == f"{'word ' * 120} No. 40."
    lines = [json.loads(line) for line in summary.text.splitlines()[1:]]
    assert [line["turn"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["said"] for line in lines] == [f"words of {line['turn']}" for line in lines]
    assert len(lines) + len(answers) == 40


def folded(turns: list[CommittedTurn], room: PromptRoom = FULL_ROOM) -> list[Json]:
    """Return the lines of the summary after the given turns and many that are long and without words."""
    about = scene(room=room)
    filler = turn_of(about, "word " * 290)
    numbers = range(len(turns) + 1, 33)
    told = [*turns, *(numbered(filler, number) for number in numbers)]
    about = replace(about, history=tuple(text_of(turn, about) for turn in told), turn=33)
    return [json.loads(line) for line in messages_of(about)[0].text.splitlines()[1:]]


def test_a_folded_turn_has_the_beginning_and_end_of_its_narration_and_what_was_spoken() -> None:
    narrative = f"It begins. {'The middle is long. ' * 60}It ends."
    spoken = [DialogueSpoken("q", "A word of q."), DialogueSpoken("q", "It ends.")]
    turn = turn_of(scene(), narrative, spoken="I look.", dialogue=spoken)
    line = json.loads(text_of(turn, scene()).lines[0])
    assert line["told"].startswith("It begins. The middle is long. ")
    assert line["told"].endswith(" It ends.")
    assert 500 < len(line["told"]) <= 600
    assert line["heard"] == ["q: A word of q."]
    assert line["said"] == "I look."


@pytest.mark.parametrize(
    ("text", "shortened"),
    [
        ("One two.", "One two."),
        ("First. Second. Third. Fourth. Fifth.", "First. Second. \u2026 Fifth."),
        ("A sentence that has no end in sight", "A sentence that has no\u2026"),
        ("He says: \u201cNo.\u201d Then he goes. Rain falls.", "He says: \u201cNo.\u201d \u2026"),
    ],
)
def test_prose_is_shortened_at_the_ends_of_sentences(text: str, shortened: str) -> None:
    assert shorten_prose(text, 23) == shortened


def test_old_lines_become_shorter_before_any_is_dropped() -> None:
    lines = folded([])
    lengths = [len(line.get("told", "")) for line in lines]
    assert lengths == sorted(lengths)
    assert [line["turn"] for line in lines] == list(range(1, len(lines) + 1))


def test_turns_with_words_of_the_player_outlive_the_others_in_a_small_room() -> None:
    about = scene(room=SMALL_ROOM)
    first, second = turn_of(about, "Told."), turn_of(about, "Told.", spoken="I call it Abri.")
    lines = folded([first, numbered(second, 2)], SMALL_ROOM)
    assert (lines[0]["turn"], lines[0]["said"]) == (2, "I call it Abri.")
    assert len(lines) < 28


def test_memories_outlive_the_turns_that_are_dropped() -> None:
    memories = (
        NarratorMemory(3, "fact", "world", "The door is red.", "public"),
        NarratorMemory(3, "s", "q", "only for q", "private"),
        NarratorMemory(70, "fact", "world", "The door is open.", "public"),
    )
    about = after(80)
    history = tuple(each for each in about.history if each.turn >= 65)
    about = replace(about, history=history, session=replace(about.session, memories=memories))
    head = messages_of(about)[0].text.splitlines()[1]
    assert [memory["content"] for memory in json.loads(head)["facts"]] == ["The door is red."]


def test_only_memories_that_the_audience_may_read_are_told() -> None:
    kinds = [("p", "public"), ("p", "private"), ("q", "public"), ("q", "private"), ("p", "hidden")]
    memories = tuple(NarratorMemory(0, "s", owner, f"{owner} {kind}", kind) for owner, kind in kinds)
    about = scene(viewer="p", memories=memories)
    told = "".join(memory["content"] for memory in render_history(about, 2_000).memories)
    assert all(seen in told for seen in ("p public", "p private", "q public"))
    assert not any(unseen in told for unseen in ("q private", "p hidden"))
    unseen_by_others = render_history(scene(memories=memories), 2_000).memories
    assert "p private" not in [memory["content"] for memory in unseen_by_others]
    assert render_history(about, 0).memories == []


def test_what_decides_the_run_is_the_first_of_what_changed() -> None:
    numbers = {f"n{n}": n for n in range(8)}
    done = [{"op": "inc", "path": f"state.{name}", "value": 1} for name in numbers]
    about = scene(
        state=numbers,
        actions=[action("act", done)],
        loss_conditions=[at_most("low", "state.n7", -5), never("other")],
    )
    line = json.loads(text_of(turn_of(about, "told"), about).lines[0])
    assert list(line["changed"]) == ["n7", "n0", "n1"]


def test_the_first_turn_of_the_history_moves_in_steps() -> None:
    firsts = [first_turn_of_history(turn) for turn in range(1, 200)]
    assert firsts[:96] == [1] * 96
    assert len(set(firsts)) == 5
    assert all(turn - first <= 96 for turn, first in enumerate(firsts, start=1))


@pytest.mark.parametrize(
    ("tokens", "least", "most"), [(0, 2_400, 2_700), (4_096, 2_400, 2_700), (128_000, 24_000, 32_000)]
)
def test_the_room_follows_from_the_context_window(tokens: int, least: int, most: int) -> None:
    room = PromptRoom.for_window(tokens)
    parts = room.facts + room.view + (room.legal_actions or room.view) + room.whole_turns + room.summary
    assert least <= parts <= most
    assert room.is_small is (tokens < 16_000)


def test_a_model_that_reasons_has_room_for_its_thoughts_besides_the_answer() -> None:
    assert PromptRoom.for_window(128_000).answer_tokens == 1_024
    assert PromptRoom.for_window(0).answer_tokens == 1_024


def test_what_looks_like_misconduct_is_told_in_the_next_prompt() -> None:
    about, told = scene(), "A lamp burns. You decide to trust the second."

    def noticed(narrative: str, room: PromptRoom = FULL_ROOM, spoken: str = "") -> list[str]:
        turns = (turn_of(about, narrative, spoken=spoken),)
        return [one["sentence"] for one in find_noticed(replace(about, room=room, recent_turns=turns))]

    assert noticed(told) == ["You decide to trust the second."]
    assert noticed("A lamp burns.") == noticed(told, SMALL_ROOM) == noticed(told, spoken="I trust it.") == []


def test_what_probably_contradicts_the_last_turn_is_told_in_the_next_prompt() -> None:
    story: dict[str, Any] = {"spec_version": "1.1", "labels": {"state.a": {"name": "tokens"}}}
    turns = (turn_of(scene(**story), "It is the ninth token."),)
    about = scene(**story, state={"a": 2, "hidden": {"y": 7}}, past=turns)
    assert find_noticed(about) == [
        {
            "sentence": "It is the ninth token.",
            "rule": "narrate the facts: tokens is 2 (before the turn 1)",
        }
    ]


def test_the_changes_of_a_turn_are_undone() -> None:
    effects: list[Json] = [
        {"op": "inc", "path": "state.a", "value": 1},
        {"op": "push", "path": "state.list", "value": 3},
        {"op": "pop", "path": "state.queue"},
        {"op": "set", "path": "state.new", "value": True},
        {"op": "patch", "path": "state.inner", "value": {"x": None, "y": 2}},
    ]
    about = scene(
        state={"a": 1, "list": [1, 2], "queue": [4, 5], "inner": {"x": 1}},
        actions=[action("act", effects)],
    )
    played = about.speculation.preview()
    assert undo_changes(played.tree, played.events) == about.speculation.transaction.opening_state.tree()
