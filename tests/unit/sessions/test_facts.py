from __future__ import annotations

import json
from typing import Any

from peripety.sessions.facts import Scene, abridged, facts_of, history_of, question_about
from peripety.sessions.model import ActionCall
from support.scenes import scene_of
from support.specs import Json, action, document, event

ENTITIES: list[Json] = [
    {"id": "p", "name": "P", "playable": True, "description": "not told"},
    {"id": "q", "kind": "k"},
]
SECRETS: list[Json] = [
    {"op": "set", "path": "state.private.q.x", "value": "new secret"},
    {"op": "inc", "path": "state.hidden.y", "value": 1},
    {"op": "inc", "path": "state.a", "value": 1},
]


def scene(
    *actions: ActionCall, viewer: str | None = None, narrated: tuple[str, ...] = (), **parts: Any
) -> Scene:
    spec = {
        "entities": ENTITIES,
        "state": {"a": 1, "private": {"p": {"x": "own"}, "q": {"x": "old secret"}}, "hidden": {"y": 77}},
        "actions": [
            {**action("act", SECRETS), "name": "Act now"},
            action("no", SECRETS[2:], preconditions={"<": [1, 0]}),
        ],
        **parts,
    }
    return scene_of(
        document(**spec),
        actions or [ActionCall("act", {})],
        viewer=viewer,
        spoken="what is said",
        narrated=narrated,
    )


def facts(about: Scene) -> Json:
    return facts_of(about, about.stage.foresee())


def question(about: Scene) -> str:
    return question_about(about, about.stage.foresee())


def test_the_facts_are_those_that_the_point_of_view_may_know() -> None:
    told = facts(scene())
    assert told["changes"] == [{"path": "state.a", "cause": "action:act", "before": 1, "after": 2}]
    assert told["actions"] == [{"id": "act", "name": "Act now", "params": {}}]
    assert told["input"] == "what is said"
    assert told["status"] == {"kind": "ongoing", "condition": None, "message": None}
    assert told["event"] is None


def test_the_question_is_one_json_object_without_anybody_elses_secrets() -> None:
    text = question(scene(viewer="p"))
    asked = json.loads(text)
    assert list(asked) == ["scenario", "history", "view", "facts"]
    assert asked["view"] == {"a": 2, "private": {"p": {"x": "own"}}}
    assert asked["scenario"] == {
        "name": "Alpha",
        "entities": [{"id": "p", "name": "P"}, {"id": "q", "kind": "k"}],
        "pov": "p",
    }
    for secret in ("old secret", "new secret", "77", "78", "not told"):
        assert secret not in text


def test_rejected_actions_are_told_apart_with_their_reasons() -> None:
    told = facts(scene(ActionCall("no", {}), ActionCall("act", {})))
    assert [told["id"] for told in told["actions"]] == ["act"]
    (rejected,) = told["rejected"]
    assert rejected["name"] == "no"
    assert "do not hold" in rejected["reasons"][0]


def test_the_reasons_tell_nothing_of_what_is_hidden() -> None:
    broken = action("broken", [{"op": "pop", "path": "state.hidden.y"}])
    told = facts(
        scene(
            ActionCall("broken", {}),
            ActionCall("act", {}),
            state={"a": 1, "private": {"p": {}, "q": {}}, "hidden": {"y": []}},
            actions=[broken, action("act", SECRETS[2:])],
        )
    )
    assert "hidden" not in json.dumps(told)


def test_the_event_goes_by_its_name() -> None:
    events = [{**event(f"e{n}"), "name": f"Event {n}"} for n in range(4)]
    told = facts(scene(random_events=events))["event"]
    assert told["name"] == f"Event {told['id'][1:]}"


def test_old_narrations_are_told_in_short() -> None:
    short, long = history_of(scene(narrated=("short", "x" * 1_000)))
    assert short == "short"
    assert len(long) == 300
    assert long.endswith("…")


def test_a_small_value_is_shown_whole() -> None:
    value = {"a": [1, {"b": "text"}], "c": None}
    assert abridged(value, 1_000) == value


def test_a_large_value_is_cut_fairly_until_it_fits() -> None:
    value = {f"key {n}": {"list": list(range(1_000)), "text": "x" * 5_000} for n in range(10)}
    shown = abridged(value, 3_000)
    assert len(json.dumps(shown)) <= 3_000
    assert set(value) & set(shown)
    assert shown["key 0"]["list"][-1] == "…"


def test_a_value_that_can_not_be_cut_to_fit_is_left_out() -> None:
    deep: Any = ["x" * 40]
    for _ in range(8):
        deep = [deep] * 4
    assert abridged(deep, 500) is None


def test_a_turn_of_any_size_makes_a_question_of_bounded_size() -> None:
    huge = {f"key{n}": "x" * 60_000 for n in range(12)}
    patch = [{"op": "patch", "path": "state.big", "value": {f"key{n}": "y" * 2_000 for n in range(64)}}]
    played = scene(
        state={"a": 1, "big": huge, "private": {"p": {}, "q": {}}, "hidden": {"y": 1}},
        actions=[action("act", patch)],
        narrated=("z" * 9_000,) * 6,
    )
    assert len(question(played)) < 30_000
