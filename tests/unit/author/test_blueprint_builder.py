from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.author.blueprint import SeededChoice
from peripety.author.blueprint_builder import MAX_TERMS, MIN_TERMS, compose_from_analysis
from peripety.author.spec_author import build_spec
from peripety.author.text_analysis.languages import load_languages
from peripety.author.text_analysis.terms import extract_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


RUNS = 64
IDS = re.compile(r"[a-z0-9_]{1,64}")


def blueprint_spec(text: str, seed: int = 0, variation: int = 0) -> dict[str, Any]:
    """Return the specification of the blueprint that rules write for the words of a text."""
    choices = SeededChoice(text, seed, variation)
    terms = extract_terms(text, min_terms=MIN_TERMS, max_terms=MAX_TERMS)
    blueprint = compose_from_analysis(terms, choices.choose_number)
    return build_spec(blueprint, seed, spec_id=f"blueprint_{choices.name}")


def about(words: list[str], *, person: str = "") -> str:
    a, b, c, d, *more = words
    asked = f" We asked {person} for help." if person else ""
    return f"I am with the {a} and the {b}, while our {c} is near the {d}.{asked} There is {', '.join(more)}."


def compiled(spec: Mapping[str, Any]) -> engine.Program:
    return engine.compile(json.dumps(spec, ensure_ascii=False))


def strings(value: Any) -> Iterator[str]:
    """Every text of a document that a reader sees: names, descriptions, messages and keys of the state."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in {"name", "message", "description"} and isinstance(item, str):
                yield item
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def ids(spec: Mapping[str, Any]) -> list[str]:
    sections = ("actions", "random_events", "loss_conditions", "win_conditions", "entities")
    return [spec["id"], *(rule["id"] for section in sections for rule in spec[section])]


def test_a_scenario_is_valid_and_compiles(made_up: Callable[[int, int], list[str]]) -> None:
    spec = blueprint_spec(about(made_up(6, 1)), seed=5)
    assert engine.validate(json.dumps(spec)) == []
    assert compiled(spec).spec["seed"] == 5


def test_connecting_text_never_outnumbers_its_own_book(made_up: Callable[[int, int], list[str]]) -> None:
    words = made_up(6, 3)
    text = about(words)
    rules = next(language for language in load_languages() if language.code == "en").rules
    known = set(re.findall(r"[^\W\d_]+", f"{text} {' '.join(rules.values())}".lower()))
    used = {
        word
        for shown in strings(blueprint_spec(text, seed=3))
        for word in re.findall(r"[^\W\d_]+", shown.lower())
    }
    assert used <= known


@pytest.mark.parametrize("seed", range(6))
def test_identifiers_are_safe_and_distinct(seed: int, made_up: Callable[[int, int], list[str]]) -> None:
    same = made_up(1, 4)[0]
    texts = (
        about(made_up(6, 4)),
        f"{same} and {same.capitalize()} {same}",
        "\u7532\u4e59 \U0001f600 \u0416\u0416\u0416",
        "",
    )
    for text in texts:
        found = ids(blueprint_spec(text, seed=seed))
        assert len(set(found)) == len(found)
        assert all(IDS.fullmatch(name) for name in found)


def test_nobody_in_the_text_is_taken_for_the_player() -> None:
    spec = blueprint_spec("The gauge is ours. We asked Player for the alpha.", seed=1)
    assert [entity["id"] for entity in spec["entities"]] == ["player", "player_2"]
    assert set(spec["state"]["private"]) == {"player", "player_2"}


@pytest.mark.parametrize(
    "text",
    ["__proto__ constructor prototype", "hidden private state turn", 'a"b\\c {a} %s [0]'],
)
def test_words_that_mean_something_to_a_machine_are_only_words(text: str) -> None:
    assert engine.validate(json.dumps(blueprint_spec(text, seed=1))) == []


def test_names_that_look_like_our_identifiers_take_nobodys_place() -> None:
    spec = blueprint_spec(
        "The gauge is ours. We asked Pa and P1x or even \u0416\u0436\u0436 and P0 for more of it.",
        seed=1,
    )
    entities = [entity["id"] for entity in spec["entities"]]
    assert len(set(entities)) == len(entities)


def test_the_same_text_and_seed_give_the_same_bytes(made_up: Callable[[int, int], list[str]]) -> None:
    text = about(made_up(6, 5))
    assert json.dumps(blueprint_spec(text, seed=9)) == json.dumps(blueprint_spec(text, seed=9))
    assert json.dumps(blueprint_spec(text)) == json.dumps(blueprint_spec(text))


def test_another_seed_or_try_gives_another_scenario(made_up: Callable[[int, int], list[str]]) -> None:
    text = about(made_up(6, 6))
    first, seeded, again = (
        blueprint_spec(text, seed=1),
        blueprint_spec(text, seed=2),
        blueprint_spec(text, seed=1, variation=1),
    )
    assert len({spec["id"] for spec in (first, seeded, again)}) == 3
    assert first["seed"] == again["seed"] == 1
    assert first["state"] != again["state"]


def test_no_action_is_free(made_up: Callable[[int, int], list[str]]) -> None:
    spec = blueprint_spec(about(made_up(6, 10)), seed=1)
    for action in spec["actions"]:
        assert len({effect["path"] for effect in action["effects"] if "path" in effect}) >= 2, action["id"]
        assert "\u2212" in action["description"]
        assert action["preconditions"]


def test_the_player_is_told_what_wins_and_what_loses(made_up: Callable[[int, int], list[str]]) -> None:
    spec = blueprint_spec(about(made_up(6, 11)), seed=1)
    told = spec["entities"][0]["description"].split("; ")
    assert len(told) == len(spec["loss_conditions"]) + len(spec["win_conditions"])
    assert told[0].startswith("\u2713 ")


def test_what_is_not_public_is_not_told_in_descriptions(made_up: Callable[[int, int], list[str]]) -> None:
    spec = blueprint_spec(about(made_up(6, 12), person="Vobado"), seed=1)
    unseen = [
        *spec["state"]["hidden"],
        *(key for who, known in spec["state"]["private"].items() for key in known if who != "player"),
    ]
    shown = " ".join(strings(spec))
    assert unseen
    assert not [key for key in unseen if key in shown]


def test_doing_nothing_loses(made_up: Callable[[int, int], list[str]]) -> None:
    report = compiled(blueprint_spec(about(made_up(6, 13)), seed=1)).dry_run(runs=16, persona="idle")
    assert report.lost == report.runs


def test_a_long_text_is_no_trouble(made_up: Callable[[int, int], list[str]]) -> None:
    spec = blueprint_spec(" the ".join(made_up(500, 16) * 30), seed=1)
    assert len(json.dumps(spec)) < 20_000
    assert engine.validate(json.dumps(spec)) == []


def test_every_language_has_all_connecting_text() -> None:
    first, *others = load_languages()
    for language in others:
        assert language.rules.keys() == first.rules.keys()
        assert language.prose.keys() == first.prose.keys()
        assert all(language.prose.values())
        for use, pattern in language.rules.items():
            slots = set(re.findall(r"\{(\w)\}", pattern))
            assert slots == set(re.findall(r"\{(\w)\}", first.rules[use])), (language.code, use)


def test_every_public_quantity_is_named_in_words_of_the_text(
    made_up: Callable[[int, int], list[str]],
) -> None:
    words = made_up(7, 2)
    spec = blueprint_spec(about(words), seed=1)
    public = [key for key in spec["state"] if key not in {"hidden", "private"}]
    assert len(public) == 7
    for key in public:
        assert key.partition(" (")[0].lower() in words


def test_everybody_named_keeps_something_to_themselves_and_can_be_listened_to() -> None:
    spec = blueprint_spec("I run the alpha and the gauge. We asked Vobado and Kepra for the beta.", seed=1)
    people = {entity["name"]: entity["id"] for entity in spec["entities"][1:]}
    assert set(people) == {"Vobado", "Kepra"}
    for person, id_ in people.items():
        assert len(spec["state"]["private"][id_]) == 2
        assert any(action["name"] == f"Listen to {person}" for action in spec["actions"])


def test_who_is_only_told_by_what_they_do_keeps_something_to_themselves_as_well() -> None:
    spec = blueprint_spec(
        "We run the alpha, the gauge and the beta. Each vobado will tell me what it knows.",
        seed=1,
    )
    people = {entity["name"]: entity["id"] for entity in spec["entities"][1:]}
    assert set(people) == {"Vobado A", "Vobado B"}
    assert all(len(spec["state"]["private"][id_]) == 2 for id_ in people.values())


def test_the_player_is_called_what_the_text_says_or_else_you() -> None:
    told, untold = (
        blueprint_spec(f"{start}, with the alpha and the gauge.") for start in ("I'm the kepra", "We go")
    )
    assert [told["entities"][0]["name"], untold["entities"][0]["name"]] == ["Kepra", "You"]


def test_every_scenario_has_what_a_game_needs(made_up: Callable[[int, int], list[str]]) -> None:
    spec = blueprint_spec(about(made_up(6, 9)), seed=1)
    effects = [effect for action in spec["actions"] for effect in action["effects"]]
    assert {effect["op"] for effect in effects} >= {"inc", "dec", "schedule"}
    assert any("addlog" in {effect["op"] for effect in event["effects"]} for event in spec["random_events"])
    assert any(action["params"] and action["derives"] for action in spec["actions"])
    assert any("duration" in event for event in spec["random_events"])
    assert any(event["when"] for event in spec["random_events"])
    assert len(spec["loss_conditions"]) >= 3
    assert all(condition["message"] for condition in spec["loss_conditions"])
    assert spec["state"]["hidden"]
    assert spec["state"]["private"]["player"]
    assert spec["entities"][0]["playable"]


def test_spans_of_time_become_turns_horizon_and_deadline() -> None:
    spec = blueprint_spec(
        "We have six weeks for the alpha, and the gauge wants the beta by Friday.",
        seed=1,
    )
    assert spec["clock"] == {"turn": "P2D"}
    assert spec["horizon"] == 21
    (late,) = [loss for loss in spec["loss_conditions"] if "turn" in json.dumps(loss["when"])]
    assert late["when"]["and"][1] == {">=": [{"var": "turn"}, 5]}


def test_amounts_are_those_of_the_text() -> None:
    spec = blueprint_spec(
        "I run the alpha for 3,000 settlers, with eighty gauges left and a beta at sixty percent.",
    )
    wanted = [side for when in spec["win_conditions"] for side in when["when"][">="]]
    assert {"3000", "80", "60"} <= {*map(str, spec["state"].values()), *map(str, wanted)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "We keep the alpha, and the beta is rising. We asked Vobado for the gauge.",
        "Tenemos seis semanas, el alfa sube y quedan ochenta betas.",
        "\u7532\u4e59\u4e19\u7532 \u620a\u5df1\u5e9a\u8f9b",
    ],
)
def test_luck_alone_loses_by_every_cause_and_thinking_pays(text: str) -> None:
    program = compiled(blueprint_spec(text))
    luck = program.dry_run(runs=2048, seed=11)
    assert luck.errors == ()
    assert 0.35 <= luck.fail_rate <= 0.7
    assert all(luck.losses.values())
    if engine.BACKEND == "native":
        planner = program.dry_run(runs=64, seed=11, persona="planner")
        assert planner.won >= 0.6 * planner.runs
        assert planner.fail_rate <= luck.fail_rate - 0.25


def test_every_action_and_event_has_its_moment() -> None:
    program = compiled(
        blueprint_spec("The alpha, the beta, the gauge. We asked Vobado for the delta.", seed=1),
    )
    detail = program.dry_run(runs=2048, detail=True).detail
    assert detail is not None
    assert all(use.legal for use in detail.actions.values())
    assert all(detail.events.values())
