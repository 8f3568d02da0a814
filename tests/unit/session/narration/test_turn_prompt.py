from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.narration.turn_prompt import (
    build_messages,
    cache_plan,
    collect_facts,
    render_system_text,
)
from peripety.session.types import NarratorMemory, NarratorOptions, PlayerAction
from support.engine.specs import Json, action, at_most, document, event, never
from support.session.sessions import scene_of, turn_of

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.types import CommittedTurn


ENTITIES: list[Json] = [
    {"id": "p", "name": "P", "playable": True, "description": "not told"},
    {"id": "q", "kind": "k"},
]
SECRETS: list[Json] = [
    {"op": "set", "path": "state.private.q.x", "value": "new secret"},
    {"op": "inc", "path": "state.hidden.y", "value": 1},
    {"op": "inc", "path": "state.a", "value": 1},
]


def scene(*actions: PlayerAction, viewer: str | None = None, **parts: Any) -> NarrationContext:
    about = {name: parts.pop(name) for name in ("past", "memories", "narrator", "room") if name in parts}
    spec = {
        "entities": ENTITIES,
        "state": {"a": 1, "private": {"p": {"x": "own"}, "q": {"x": "old secret"}}, "hidden": {"y": 77}},
        "actions": [
            {**action("act", SECRETS), "name": "Act now"},
            action("no", SECRETS[2:], preconditions={"<": [1, 0]}),
        ],
        **parts,
    }
    calls = actions or [PlayerAction("act", {})]
    return scene_of(document(**spec), calls, viewer=viewer, spoken="what is said", **about)


def facts(about: NarrationContext) -> Json:
    return collect_facts(about, about.speculation.preview())


def prompt(about: NarrationContext, *, to_the_end: bool = True) -> list[str]:
    played = about.speculation.preview() if to_the_end else None
    return [message.text for message in build_messages(about, played)]


def asked(about: NarrationContext, *, to_the_end: bool = True) -> Json:
    """Return the last message, which is about the turn."""
    told: Json = json.loads(prompt(about, to_the_end=to_the_end)[-1])
    return told


def scenario(about: NarrationContext) -> Json:
    text = render_system_text(about)
    told: Json = json.loads(text[text.index('\n{"') :])
    return told


def test_the_facts_are_those_that_the_point_of_view_may_know() -> None:
    told = facts(scene())
    assert told["changes"] == [{"path": "state.a", "cause": "action:act", "before": 1, "after": 2}]
    assert told["actions"] == [{"id": "act", "name": "Act now", "params": {}}]
    assert told["input"] == "what is said"
    assert told["status"] == {"kind": "ongoing", "condition": None, "message": None}
    assert told["event"] is None


def test_what_happened_before_is_counted_from_the_record() -> None:
    drop: list[Json] = [
        {"op": "addlog", "message": "The a drops."},
        {"op": "dec", "path": "state.a", "value": 1},
    ]
    past: tuple[CommittedTurn, ...] = ()
    for count in (1, 2, 3):
        about = scene(past=past, actions=[action("act", drop)])
        told = facts(about)
        assert told["log"] == ["The a drops."]
        assert told.get("repeated") == ({"The a drops.": count} if count > 1 else None)
        assert asked(about)["facts"].get("repeated") == told.get("repeated")
        past += (turn_of(about, "It drops."),)


def test_what_the_world_does_is_no_fact_while_the_narrator_may_still_act() -> None:
    schedule = {"op": "schedule", "id": "s", "after": 1, "effects": SECRETS[2:]}
    about = scene(actions=[action("act", [*SECRETS, schedule])], random_events=[event(weight=0.3)] * 1)
    told = collect_facts(about, None)
    assert told["changes"] == [{"path": "state.a", "cause": "action:act", "before": 1, "after": 2}]
    assert not {"event", "status"} & set(told)


def test_the_prompt_holds_nobody_elses_secrets() -> None:
    about = scene(viewer="p")
    told = scenario(about)
    assert told["entities"] == [{"id": "p", "name": "P"}, {"id": "q", "kind": "k"}]
    assert told["point_of_view"] == "p"
    assert told["start"] == {"a": 1, "private": {"p": {"x": "own"}}}
    assert asked(about)["view"] == {"a": 2}
    for secret in ("old secret", "new secret", "77", "78", "not told"):
        assert secret not in render_system_text(about) + "".join(prompt(about))


def test_the_scenario_is_told_by_its_public_rules() -> None:
    hears = {"when": {"and": [at_most("l", "state.a", 3)["when"], at_most("l", "state.hidden.y", 5)["when"]]}}
    told = scenario(
        scene(
            random_events=[{**event("gust", SECRETS), "name": "Gust", **hears}],
            loss_conditions=[{**at_most("low", "state.a", 0), "message": "It is over."}, never("other")],
            negativity_budget={
                "min_fail_rate": 0.25,
                "decay_per_turn": {"state.a": 0.5, "state.hidden.y": 0.25},
            },
        ),
    )
    assert told["events"] == [{"id": "gust", "name": "Gust", "when": "a ≤ 3", "does": "a +1"}]
    assert told["losses"][0] == {"id": "low", "when": "a ≤ 0", "message": "It is over."}
    assert told["each_turn"] == ["a -0.5"]


def test_the_narrators_own_scope_is_told_as_far_as_it_is_seen() -> None:
    told = scenario(
        scene(
            narrator_scope=[
                {"path": "state.a", "ops": ["inc", "set"], "max_magnitude": 2},
                {"path": "state.hidden", "ops": ["set"]},
                {"path": "state.private.q", "ops": ["set"]},
            ],
        ),
    )
    also = " (also of what is in it)"
    assert told["you_may_change"] == {"state.a": f"set by at most 2{also}; inc by at most 2{also}"}


def test_without_a_granted_scope_the_rules_of_the_scenario_are_its_measure() -> None:
    done: list[Json] = [
        *SECRETS,
        {"op": "set", "path": "state.b", "value": "low"},
        {"op": "pop", "path": "state.list"},
    ]
    told = scenario(
        scene(
            state={"a": 1, "b": "high", "list": [1], "private": {"p": {}, "q": {}}, "hidden": {"y": 1}},
            actions=[action("act", done)],
        ),
    )
    assert told["you_may_change"] == {
        "state.a": "inc by at most 1; dec by at most 1",
        "state.b": 'set "low"',
        "state.list": "pop",
    }


def test_the_language_of_the_session_is_told() -> None:
    assert scenario(scene())["language"] is None
    assert scenario(scene(narrator=NarratorOptions(language="fr")))["language"] == "fr"


def test_the_view_tells_how_the_state_differs_from_the_start() -> None:
    done: list[Json] = [
        {"op": "patch", "path": "state.tree", "value": {"y": 2}},
        {"op": "push", "path": "state.list", "value": True},
        {"op": "set", "path": "state.flag", "value": 1},
    ]
    state = {"tree": {"x": 1, "y": 1}, "list": [1], "flag": True, "a": 1}
    told = asked(scene(state=state, actions=[action("act", done)]))
    assert told["view"] == {"tree": {"y": 2}, "list": [1, True], "flag": 1}


def test_a_found_text_stays_whole_when_the_view_is_cut() -> None:
    text, long = "t" * 300, {f"k{number}": "v" * 90 for number in range(20)}
    reveal: list[Json] = [
        {"op": "reveal", "clue": "c"},
        {"op": "patch", "path": "state.tree", "value": long},
    ]
    about = scene(
        spec_version="1.1",
        state={"tree": {}, "a": 1},
        clues={"c": {"text": text, "about": "x"}},
        actions=[action("act", reveal)],
        room=PromptRoom.for_window(0, max_bytes=16_000),
    )
    view = asked(about)["view"]
    assert view["clues"] == {"c": text}
    assert len(json.dumps(view["tree"])) < len(json.dumps(long))


def test_legal_actions_are_suggested_while_the_narrator_may_act() -> None:
    number = {"type": "integer", "minimum": 0, "maximum": 3}
    actions: list[Json] = [
        {**action("act", SECRETS, params={"n": number}), "name": "Act now"},
        action("other"),
    ]
    never_legal = action("no", preconditions={"<": [1, 0]})
    about = scene(PlayerAction("other", {}), actions=[*actions, never_legal])
    suggested = [{"id": "act", "name": "Act now", "params": ["n"]}, {"id": "other"}]
    assert asked(about, to_the_end=False)["legal_actions"] == suggested
    assert asked(about)["legal_actions"] == suggested


def test_rejected_actions_are_told_apart_with_their_reasons() -> None:
    told = facts(scene(PlayerAction("no", {}), PlayerAction("act", {})))
    assert [told["id"] for told in told["actions"]] == ["act"]
    (rejected,) = told["rejected"]
    assert rejected["name"] == "no"
    assert "do not hold" in rejected["reasons"][0]


def test_the_reasons_tell_nothing_of_what_is_hidden() -> None:
    broken = action("broken", [{"op": "pop", "path": "state.hidden.y"}])
    told = facts(
        scene(
            PlayerAction("broken", {}),
            PlayerAction("act", {}),
            state={"a": 1, "private": {"p": {}, "q": {}}, "hidden": {"y": []}},
            actions=[broken, action("act", SECRETS[2:])],
        ),
    )
    assert "hidden" not in json.dumps(told)


def test_the_event_goes_by_its_name() -> None:
    events = [{**event(f"e{n}"), "name": f"Event {n}"} for n in range(4)]
    told = facts(scene(random_events=events))["event"]
    assert told["name"] == f"Event {told['id'][1:]}"


def test_an_event_may_have_the_id_of_an_action() -> None:
    events = [{**event(f"e{n}"), "name": "An event"} for n in range(4)]
    actions = [{**action(f"e{n}", SECRETS), "name": "An action"} for n in range(4)]
    call = PlayerAction("e0", {})
    before = scene(call, random_events=events, actions=actions)
    assert facts(before)["event"]["name"] == "An event"
    after = scene(call, random_events=events, actions=actions, past=(turn_of(before, "told"),))
    turn = json.loads(prompt(after)[0])["facts"]
    assert ([act["name"] for act in turn["actions"]], turn["event"]["name"]) == (["An action"], "An event")


def test_a_session_of_many_turns_to_come_is_worth_caching() -> None:
    assert cache_plan(scene(horizon=20)).expected_reuse == 19


def test_a_turn_of_any_size_makes_a_question_of_bounded_size() -> None:
    huge = {f"key{n}": "x" * 60_000 for n in range(12)}
    patch = [{"op": "patch", "path": "state.big", "value": {f"key{n}": "y" * 2_000 for n in range(64)}}]
    parts: dict[str, Any] = {
        "state": {"a": 1, "big": huge, "private": {"p": {}, "q": {}}, "hidden": {"y": 1}},
        "actions": [action("act", patch)],
    }
    past = (turn_of(scene(**parts), "z" * 9_000),) * 40
    memories = (NarratorMemory(0, "s", "p", "w" * 1_900, "public"),) * 8
    for room in (PromptRoom.for_window(4_096), PromptRoom.for_window(200_000)):
        about = scene(**parts, past=past, memories=memories, room=room)
        *_, turn = text = prompt(about)
        limits = (room.facts, room.view, room.legal_actions or 200, room.whole_turns, room.summary)
        assert len("".join(text)) < 1.3 * sum(limits)
        assert json.loads(turn)["facts"]["changes"]


PEOPLE: list[Json] = [
    {"id": "p", "playable": True, "description": "tall", "wants": "own want", "secret": "own secret"},
    {"id": "q", "voice": "slow", "manner": "polite", "knows": "hidden knowledge", "secret": "hidden secret"},
]


def story(**parts: Any) -> NarrationContext:
    return scene(
        viewer="p",
        spec_version="1.1",
        entities=PEOPLE,
        premise={"text": "It begins at night.", "person": "first", "tense": "past"},
        opening="The player read this.",
        labels={"state.a": {"name": "Alpha", "unit": "bars"}, "state.hidden.y": {"name": "Unseen"}},
        **parts,
    )


def test_the_texts_of_a_story_are_told_and_only_the_point_of_view_knows_its_own() -> None:
    told = scenario(story())
    assert told["premise"] == {"text": "It begins at night.", "person": "first", "tense": "past"}
    assert told["opening"] == "The player read this."
    assert told["labels"] == {"state.a": {"name": "Alpha", "unit": "bars"}}
    first, second = told["entities"]
    assert (first["description"], first["wants"], first["secret"]) == ("tall", "own want", "own secret")
    assert second == {"id": "q", "voice": "slow", "manner": "polite"}


def test_a_small_model_gets_the_beginning_of_the_premise_and_no_opening() -> None:
    told = scenario(story(room=PromptRoom.for_window(4_096)))
    assert told["premise"]["text"] == "It begins at night."
    assert not {"opening", "labels"} & told.keys()


def test_no_solution_is_in_a_prompt() -> None:
    when = {"==": [{"var": "state.a"}, "planted"]}
    step = {"action": "act", "otherwise": {"action": "no"}}
    solutions = [{"id": "planted", "when": when, "steps": [step]}]
    for viewer in (None, "p"):
        told = scene(viewer=viewer, spec_version="1.1", solutions=solutions)
        assert "planted" not in " ".join(prompt(told))
        assert "otherwise" not in " ".join(prompt(told))
        assert "planted" not in render_system_text(told)
