from __future__ import annotations

import dataclasses
import json
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from peripety import sim
from peripety.authoring import author
from peripety.authoring import plot as design
from peripety.authoring.reading.languages import MARK, languages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

RUNS = 64
IDS = re.compile(r"[a-z0-9_]{1,64}")


def about(words: list[str], *, person: str = "") -> str:
    a, b, c, d, *more = words
    asked = f" We asked {person} for help." if person else ""
    return f"I am with the {a} and the {b}, while our {c} is near the {d}.{asked} There is {', '.join(more)}."


def compiled(spec: Mapping[str, Any]) -> sim.Program:
    return sim.compile(json.dumps(spec, ensure_ascii=False))


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


def every_plot() -> list[tuple[design.Tempo, bool, bool]]:
    return list(product(design.TEMPOS, (False, True), (False, True)))


@pytest.fixture
def play_out(
    made_up: Callable[[int, int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[[design.Tempo, bool, bool], dict[str, Any]]:
    """A scenario whose odds are the given ones, whatever its text would have chosen."""

    def build(tempo: design.Tempo, has_deadline: bool, has_reserve: bool) -> dict[str, Any]:
        plan = design.Plot
        monkeypatch.setattr(
            design,
            "Plot",
            lambda **parts: plan(**{**parts, "tempo": tempo, "has_deadline": has_deadline}),
        )
        person = made_up(1, 99)[0].capitalize() if has_reserve else ""
        return author(about(made_up(6, 1), person=person), seed=1)

    return build


def test_a_scenario_is_valid_and_compiles(made_up: Callable[[int, int], list[str]]) -> None:
    spec = author(about(made_up(6, 1)), seed=5)
    assert sim.validate(json.dumps(spec)) == []
    assert compiled(spec).spec["seed"] == 5


def test_it_says_that_no_model_made_it(made_up: Callable[[int, int], list[str]]) -> None:
    for text in ("", about(made_up(6, 1)), "\u7532" * 500):
        assert author(text)["name"].endswith(MARK)


def test_every_word_of_the_state_comes_from_the_text(made_up: Callable[[int, int], list[str]]) -> None:
    words = made_up(6, 2)
    spec = author(about(words), seed=1)
    public = [key for key in spec["state"] if key not in {"hidden", "private"}]
    assert len(public) == 4
    for key in public:
        assert key.partition(" (")[0].lower() in words


def test_connecting_text_never_outnumbers_its_own_book(made_up: Callable[[int, int], list[str]]) -> None:
    words = made_up(6, 3)
    text = about(words)
    rules = next(language for language in languages() if language.code == "en").rules
    known = set(re.findall(r"[^\W\d_]+", f"{text} {MARK} {' '.join(rules.values())}".lower()))
    used = {
        word for shown in strings(author(text, seed=3)) for word in re.findall(r"[^\W\d_]+", shown.lower())
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
        found = ids(author(text, seed=seed))
        assert len(set(found)) == len(found)
        assert all(IDS.fullmatch(name) for name in found)


def test_nobody_in_the_text_is_taken_for_the_player() -> None:
    spec = author("The gauge is ours. We asked Player for the alpha.", seed=1)
    assert [entity["id"] for entity in spec["entities"]] == ["player", "p0"]
    assert set(spec["state"]["private"]) == {"player", "p0"}


@pytest.mark.parametrize(
    "text", ["__proto__ constructor prototype", "hidden private state turn", 'a"b\\c {a} %s [0]']
)
def test_words_that_mean_something_to_a_machine_are_only_words(text: str) -> None:
    assert sim.validate(json.dumps(author(text, seed=1))) == []


def test_names_that_look_like_our_identifiers_take_nobodys_place() -> None:
    spec = author(
        "The gauge is ours. We asked Pa and P1x or even \u0416\u0436\u0436 and P0 for more of it.", seed=1
    )
    entities = [entity["id"] for entity in spec["entities"]]
    assert len(set(entities)) == len(entities)


def test_the_same_text_and_seed_give_the_same_bytes(made_up: Callable[[int, int], list[str]]) -> None:
    text = about(made_up(6, 5))
    assert json.dumps(author(text, seed=9)) == json.dumps(author(text, seed=9))
    assert json.dumps(author(text)) == json.dumps(author(text))


def test_another_seed_or_try_gives_another_scenario(made_up: Callable[[int, int], list[str]]) -> None:
    text = about(made_up(6, 6))
    first, seeded, again = author(text, seed=1), author(text, seed=2), author(text, seed=1, variation=1)
    assert len({spec["id"] for spec in (first, seeded, again)}) == 3
    assert first["seed"] == again["seed"] == 1
    assert first["state"] != again["state"]
    assert first["horizon"] != again["horizon"]


@pytest.mark.parametrize("seed", [0, 2**53 - 1, 2**53, -1, 10**30])
def test_any_whole_number_seeds(seed: int) -> None:
    assert 0 <= author("alpha", seed=seed)["seed"] < 2**53


def test_somebody_named_has_a_secret_and_can_be_listened_to(
    made_up: Callable[[int, int], list[str]],
) -> None:
    person = made_up(1, 7)[0].capitalize()
    spec = author(about(made_up(6, 8), person=person), seed=1)
    entity = next(entity for entity in spec["entities"] if entity.get("name") == person)
    assert spec["state"]["private"][entity["id"]]
    assert any(action["name"].endswith(person) for action in spec["actions"])


def test_every_scenario_has_what_a_game_needs(made_up: Callable[[int, int], list[str]]) -> None:
    spec = author(about(made_up(6, 9)), seed=1)
    effects = [effect for action in spec["actions"] for effect in action["effects"]]
    assert 4 <= len(spec["actions"]) <= 7
    assert {effect["op"] for effect in effects} >= {"inc", "dec", "schedule"}
    assert any("addlog" in {effect["op"] for effect in event["effects"]} for event in spec["random_events"])
    assert any(action.get("derives") for action in spec["actions"])
    assert any("duration" in event for event in spec["random_events"])
    assert any(event["when"] for event in spec["random_events"])
    assert len(spec["loss_conditions"]) >= 3
    assert all(condition["message"] for condition in spec["loss_conditions"])
    assert spec["state"]["hidden"]
    assert spec["state"]["private"]["player"]
    assert spec["entities"][0]["playable"]


def test_no_action_is_free(made_up: Callable[[int, int], list[str]]) -> None:
    spec = author(about(made_up(6, 10)), seed=1)
    for action in spec["actions"]:
        assert len({effect["path"] for effect in action["effects"] if "path" in effect}) >= 2, action["id"]
        assert "\u2212" in action["description"]
        assert action["preconditions"]


def test_the_player_is_told_what_wins_and_what_loses(made_up: Callable[[int, int], list[str]]) -> None:
    spec = author(about(made_up(6, 11)), seed=1)
    told = spec["entities"][0]["description"].split("; ")
    assert len(told) == len(spec["loss_conditions"]) + len(spec["win_conditions"])
    assert told[0].startswith("\u2713 ")


def test_what_is_not_public_is_not_told_in_descriptions(made_up: Callable[[int, int], list[str]]) -> None:
    spec = author(about(made_up(6, 12), person="Vobado"), seed=1)
    unseen = [
        *spec["state"]["hidden"],
        *(key for known in spec["state"]["private"].values() for key in known),
    ]
    shown = " ".join(strings(spec))
    assert unseen
    assert not [key for key in unseen if key in shown]


@pytest.mark.parametrize(("tempo", "has_deadline", "has_reserve"), every_plot())
def test_luck_alone_loses_about_as_often_as_it_wins(
    tempo: design.Tempo,
    has_deadline: bool,
    has_reserve: bool,
    play_out: Callable[[design.Tempo, bool, bool], dict[str, Any]],
) -> None:
    spec = play_out(tempo, has_deadline, has_reserve)
    assert spec["horizon"] == tempo.horizon
    assert len(spec["loss_conditions"]) == 3 + has_deadline
    report = compiled(spec).dry_run(runs=2 * RUNS, seed=11)
    assert report.errors == ()
    assert 0.3 <= report.fail_rate <= 0.7
    assert sum(count > 0 for count in report.losses.values()) >= 3
    assert report.won > 0
    assert report.turns > 5 * report.runs


def test_doing_nothing_loses(made_up: Callable[[int, int], list[str]]) -> None:
    report = compiled(author(about(made_up(6, 13)), seed=1)).dry_run(runs=16, persona="idle")
    assert report.lost == report.runs


def test_every_action_and_event_has_its_moment(made_up: Callable[[int, int], list[str]]) -> None:
    program = compiled(author(about(made_up(6, 14), person="Vobado"), seed=1))
    taken: set[str] = set()
    happened: set[str | None] = set()
    for run in range(RUNS):
        state = program.new_state(run)
        while state.status.kind == "ongoing" and state.turn < program.spec["horizon"]:
            legal = program.legal_actions(state)
            chosen = legal[(run + state.turn) % len(legal)]
            params = {"amount": 1} if chosen.startswith("work_") else {}
            assert program.act(state, chosen, params).accepted
            taken.add(chosen)
            happened.add(program.step(state).event)
    assert taken == {action["id"] for action in program.spec["actions"]}
    assert happened - {None} == {event["id"] for event in program.spec["random_events"]}


def test_the_size_of_the_numbers_does_not_change_the_odds(
    made_up: Callable[[int, int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = about(made_up(6, 15))
    reports = []
    for units in ((1,), (10,)):
        monkeypatch.setattr("peripety.authoring.texts._UNITS", units)
        reports.append(compiled(author(text, seed=1)).dry_run(runs=RUNS, seed=1))
    small, large = reports
    assert dataclasses.replace(small, errors=()) == dataclasses.replace(large, errors=())


def test_nearly_every_text_passes_the_gate_at_the_first_try(
    made_up: Callable[[int, int], list[str]],
) -> None:
    passed = 0
    texts = [about(made_up(4 + seed % 5, seed), person="Vobado" if seed % 3 else "") for seed in range(20)]
    for seed, text in enumerate(texts):
        spec = author(text, seed=seed)
        budget = spec["negativity_budget"]
        rate = compiled(spec).dry_run(runs=RUNS).fail_rate
        passed += budget["min_fail_rate"] <= rate <= budget["max_fail_rate"]
    assert passed >= 0.95 * len(texts)


def test_a_long_text_is_no_trouble(made_up: Callable[[int, int], list[str]]) -> None:
    spec = author(" the ".join(made_up(500, 16) * 30), seed=1)
    assert len(json.dumps(spec)) < 20_000
    assert sim.validate(json.dumps(spec)) == []


def test_every_language_has_all_connecting_text() -> None:
    first, *others = languages()
    for language in others:
        assert language.rules.keys() == first.rules.keys()
        assert language.prose.keys() == first.prose.keys()
        assert all(language.prose.values())
        for use, pattern in language.rules.items():
            slots = set(re.findall(r"\{(\w)\}", pattern))
            assert slots == set(re.findall(r"\{(\w)\}", first.rules[use])), (language.code, use)
