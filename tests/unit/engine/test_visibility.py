from __future__ import annotations

from typing import Any

from peripety.engine import ABSENT, Change, View, Visibility, parse_path
from support.engine.specs import Json, spec

ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}]
TREE: Json = {
    "open": 1,
    "private": {"p": {"x": "secret of p"}, "q": {"x": "secret of q"}, "stray": "nobody's"},
    "hidden": {"y": "deep secret"},
    "list": [1, [2, 3], 4],
}


def labelled(*labels: dict[str, Any]) -> Visibility:
    return Visibility(spec(entities=ENTITIES, state=TREE, visibility=list(labels)))


def view(viewer: str | None, *labels: dict[str, Any]) -> View:
    return View(labelled(*labels), viewer)


def change(path: str, before: Any = ABSENT, after: Any = ABSENT) -> Change:
    return Change(path, "set", before, after, "action:act")


def test_without_labels_everything_is_public_but_the_private_and_the_hidden() -> None:
    assert view(None).project_state(TREE) == {"open": 1, "list": [1, [2, 3], 4]}


def test_an_entity_sees_its_own_private_part_and_nobody_elses() -> None:
    seen = view("p").project_state(TREE)
    assert seen["private"] == {"p": {"x": "secret of p"}}
    assert "hidden" not in seen


def test_a_private_part_that_is_no_object_or_no_entitys_is_seen_by_nobody() -> None:
    assert view("p").project_state({"private": "a text"}) == {}
    assert view("p").project_state({"private": ["a", "list"]}) == {}
    assert view("p").project_state({"private": {"stray": 1}}) == {}


def test_a_label_holds_for_all_below_it_and_a_deeper_one_overrules_it() -> None:
    labels: list[Json] = [{"path": "state.tree", "to": ["p"]}, {"path": "state.tree.sign", "to": "public"}]
    tree = {"tree": {"sign": 1, "root": {"deep": 2}}}
    assert view(None, *labels).project_state(tree) == {"tree": {"sign": 1}}
    assert view("p", *labels).project_state(tree) == tree


def test_labels_can_share_the_private_and_open_the_hidden() -> None:
    labels: list[Json] = [
        {"path": "state.private.p", "to": ["p", "q"]},
        {"path": "state.hidden.y", "to": "public"},
    ]
    seen = view("q", *labels).project_state(TREE)
    assert seen["private"] == {"p": {"x": "secret of p"}, "q": {"x": "secret of q"}}
    assert seen["hidden"] == {"y": "deep secret"}


def test_opening_the_private_part_as_a_whole_opens_no_entitys_own() -> None:
    seen = view(None, {"path": "state.private", "to": "public"}).project_state(TREE)
    assert seen["private"] == {"stray": "nobody's"}


def test_elements_of_a_list_keep_their_places_when_one_is_not_seen() -> None:
    labels: list[Json] = [
        {"path": "state.list[0]", "to": "hidden"},
        {"path": "state.list[1][1]", "to": ["q"]},
    ]
    assert view("p", *labels).project_state(TREE)["list"] == [None, [2, None], 4]


def test_a_list_is_left_out_when_none_of_it_is_seen() -> None:
    labels: list[Json] = [{"path": "state.list", "to": "hidden"}, {"path": "state.list[1]", "to": ["q"]}]
    assert "list" not in view("p", *labels).project_state(TREE)
    assert view("q", *labels).project_state(TREE)["list"] == [None, [2, 3], None]


def test_a_container_is_left_out_when_nothing_in_it_is_seen_and_kept_when_it_is_merely_empty() -> None:
    labels: list[Json] = [{"path": "state.open", "to": "hidden"}, {"path": "state.open.sign", "to": "public"}]
    assert view(None, *labels).project_state({"open": {"other": 1}, "empty": {}}) == {"empty": {}}


def test_keys_that_are_no_identifiers_can_be_labelled() -> None:
    seen = view(None, {"path": 'state["odd key"]', "to": "hidden"}).project_state({"odd key": 1, "even": 2})
    assert seen == {"even": 2}


def test_changes_to_what_is_not_seen_are_left_out() -> None:
    changes = [
        change("state.open", 1, 2),
        change("state.private.q.x", "a", "b"),
        change("state.hidden.y", 1, 2),
    ]
    assert view("p").project_changes(changes) == (changes[0],)
    assert view("q").project_changes(changes) == (changes[0], changes[1])


def test_a_change_of_a_parent_is_cut_to_what_is_seen_of_it() -> None:
    whole = change("state.private", {"p": 1, "q": 2}, {"p": 3, "q": 4})
    assert view("p").project_changes([whole]) == (change("state.private", {"p": 1}, {"p": 3}),)


def test_a_change_of_a_parent_in_which_only_the_unseen_differs_is_left_out() -> None:
    whole = change("state.private", {"p": 1, "q": 2}, {"p": 1, "q": 4})
    assert view("p").project_changes([whole]) == ()


def test_a_number_that_becomes_a_boolean_has_changed() -> None:
    whole = change("state.private", {"p": [1], "q": 2}, {"p": [True], "q": 4})
    assert view("p").project_changes([whole]) == (change("state.private", {"p": [1]}, {"p": [True]}),)


def test_a_visible_change_that_changes_nothing_stays() -> None:
    same = change("state.open", 1, 1)
    assert view(None).project_changes([same]) == (same,)


def test_a_value_that_appears_where_nothing_was_is_cut_as_well() -> None:
    made = change("state.private", ABSENT, {"p": 1, "q": 2})
    assert view("q").project_changes([made]) == (change("state.private", ABSENT, {"q": 2}),)


def test_a_change_below_a_list_element_follows_the_elements_label() -> None:
    label = {"path": "state.list[1]", "to": "hidden"}
    pushed = [change("state.list[1][0]", 2, 5), change("state.list[3]", ABSENT, 6)]
    assert view(None, label).project_changes(pushed) == (pushed[1],)


def test_the_audience_of_a_path_is_that_of_the_deepest_label_above_it() -> None:
    labels = labelled({"path": "state.tree", "to": ["p", "q"]}, {"path": "state.tree.sign", "to": "public"})
    audiences = {
        "state": None,
        "state.open": None,
        "state.tree": frozenset({"p", "q"}),
        "state.tree.root[0].deep": frozenset({"p", "q"}),
        "state.tree.sign": None,
        "state.private": frozenset(),
        "state.private.p.x": frozenset({"p"}),
        "state.private.stray": frozenset(),
        "state.hidden.y": frozenset(),
    }
    assert {path: labels.find_audience(parse_path(path)) for path in audiences} == audiences


def test_a_label_of_the_whole_state_is_overruled_by_the_defaults_below_it() -> None:
    labels = labelled({"path": "state", "to": ["p"]})
    assert labels.find_audience(parse_path("state.open")) == frozenset({"p"})
    assert labels.find_audience(parse_path("state.hidden.y")) == frozenset()
    assert View(labels, "q").project_state(TREE) == {"private": {"q": {"x": "secret of q"}}}


def test_a_viewer_sees_a_path_by_the_deepest_label_above_it() -> None:
    seen = view("p", {"path": "state.open", "to": ["q"]})
    assert [seen.can_see(path) for path in ("state.list[1]", "state.private.p.x", "state.new")] == [True] * 3
    unseen = ("state.open.x", "state.private", "state.private.q.x", "state.hidden.y", "state.private.stray")
    assert [seen.can_see(path) for path in unseen] == [False] * 5
