"""Specifications at random: valid, playable, neither hopeless nor harmless, and the same everywhere."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.engine.rule_text import describe_condition, describe_effects
from peripety.errors import InvalidArgumentError
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.spec_generator.state_vars import MAX_INDEX
from support.engine.backends import BACKEND_NAMES, backend_named, program_on

if TYPE_CHECKING:
    from collections.abc import Iterator


RUNS = 100


@cache
def many() -> list[bytes]:
    return [generate_spec(11, index) for index in range(200)]


@cache
def specs() -> list[dict[str, Any]]:
    return [json.loads(document) for document in many()]


GOLDEN = {
    (0, 0): "0e836f3a8dade2d8",
    (0, 1): "31c265cd72287ba1",
    (7, 123): "117b75fa9a26aacc",
    (2**64 - 1, MAX_INDEX): "f19a8e9e2f0a1dd8",
}


@pytest.mark.parametrize("core", BACKEND_NAMES)
def test_a_seed_and_an_index_give_the_same_bytes_on_both_cores(
    core: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "ACTIVE_BACKEND", backend_named(core))
    assert {key: hashlib.sha256(generate_spec(*key)).hexdigest()[:16] for key in GOLDEN} == GOLDEN


@pytest.mark.parametrize(("seed", "index"), [(-1, 0), (2**64, 0), (0, -1), (0, MAX_INDEX + 1)])
def test_numbers_that_would_repeat_others_are_refused(seed: int, index: int) -> None:
    with pytest.raises(InvalidArgumentError):
        generate_spec(seed, index)


def test_all_are_different_and_valid() -> None:
    assert len({*many(), *(generate_spec(12, index) for index in range(50))}) == len(many()) + 50
    assert [engine.validate(document) for document in many()] == [[]] * len(many())


def test_nothing_can_be_proved_against_them() -> None:
    assert [engine.compile(document).prove() for document in many()[:25]] == [()] * 25


def test_sizes_vary_about_four_kilobytes() -> None:
    sizes = sorted(map(len, many()))
    assert 3_200 < median(sizes) < 4_800
    assert 1_200 < sizes[0] < 2_500
    assert 7_000 < sizes[-1] < 13_000


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


@pytest.mark.parametrize(
    ("feature", "least", "most"),
    [
        *((f'"op":"{op}"', 0.05, 0.9) for op in ("set", "mul", "patch", "push", "pop", "addlog", "schedule")),
        *((f'"type":"{kind}"', 0.05, 0.9) for kind in ("integer", "number", "boolean", "string")),
        *((f'"{name}":', 0.2, 0.9) for name in ("visibility", "narrator_scope", "entities", "clock")),
        *((f'"{name}":', 0.2, 0.95) for name in ("duration", "group_1", "hidden", "private")),
        *((f'"{name}":[', 0.1, 0.95) for name in ("and", "or", "!=", "%", "*", "reduce")),
        ('"derives":', 0.9, 0.999),
        ('"win_conditions":', 0.4, 0.6),
    ],
)
def test_each_feature_is_in_some_and_not_in_all(feature: str, least: float, most: float) -> None:
    share = sum(feature.encode() in document for document in many()) / len(many())
    assert least <= share <= most


def test_no_number_is_longer_than_a_person_would_write_it() -> None:
    for spec in specs():
        numbers = [v for o in _objects(spec) for v in o.values() if isinstance(v, float)]
        assert all(len(str(number)) <= 8 for number in numbers), numbers


def test_none_fails_in_play_and_few_are_hopeless_or_harmless() -> None:
    reports = [engine.compile(document).dry_run(runs=RUNS) for document in many()]
    assert not [report.errors for report in reports if report.errors or report.errored]
    rates = [report.fail_rate for report in reports]
    assert sum(0.05 <= rate <= 0.95 for rate in rates) > 0.85 * len(rates)
    low, middle, high = quantiles(rates, n=4)
    assert 0.1 < low < 0.3 < middle < 0.6 < high < 0.85


def test_most_are_as_hard_as_they_ask_to_be() -> None:
    reports = [engine.compile(document).dry_run(runs=RUNS) for document in many()]
    asked = [spec["negativity_budget"]["min_fail_rate"] for spec in specs()]
    enough = [report.fail_rate >= least for report, least in zip(reports, asked, strict=True)]
    assert sum(enough) > 0.9 * len(enough)


def test_whoever_serves_the_goal_alone_wins_unless_something_happens() -> None:
    winnable = [spec for spec in specs() if "win_conditions" in spec]
    for spec in winnable:
        program = engine.compile(json.dumps({**spec, "random_events": []}))
        state, serving = program.new_state(), spec["actions"][-1]
        params = {"count": 1} if serving["params"] else {}
        for _ in range(spec.get("horizon", 50)):
            assert program.act(state, serving["id"], params).accepted
            program.step(state)
            if state.status.kind != "ongoing":
                break
        assert state.status.kind == "won", spec["id"]


def test_turns_without_an_event_are_always_possible() -> None:
    assert all(sum(event["weight"] for event in spec["random_events"]) < 0.99 for spec in specs())


def test_nearly_every_loss_is_met_in_a_few_thousand_runs() -> None:
    unmet, known = 0, 0
    for document in many()[:60]:
        program = engine.compile(document)
        played = [program.dry_run(runs=1000).losses, program.dry_run(runs=300, persona="idle").losses]
        unmet += sum(not any(losses[loss] for losses in played) for loss in played[0])
        known += len(played[0])
    assert unmet < 0.05 * known


def test_every_action_is_legal_and_nearly_every_event_eligible_in_some_turn() -> None:
    idle = 0
    for spec, document in zip(specs()[:40], many(), strict=False):
        program = engine.compile(document)
        actions = {action["id"] for action in spec["actions"]}
        events = {event["id"]: event["when"] for event in spec["random_events"]}
        for run in range(100):
            actions, events = _unmet(program, run, actions, events)
            if not actions and not events:
                break
        assert not actions, spec["id"]
        idle += len(events)
    assert idle <= 3


def _unmet(
    program: engine.Program,
    run: int,
    actions: set[str],
    events: dict[str, Any],
) -> tuple[set[str], dict[str, Any]]:
    """Return the actions and events that stay impossible throughout a run of random play."""
    state = program.new_state(run)
    while state.status.kind == "ongoing" and state.turn < program.spec.get("horizon", 50):
        legal = program.legal_actions(state)
        data = {"state": state.tree(), "turn": state.turn + 1}
        actions = actions - set(legal)
        events = {key: when for key, when in events.items() if when and not engine.evaluate(when, data)}
        if legal:
            chosen = engine.draw(run, "choice", state.turn, 0) % len(legal)
            action = next(action for action in program.spec["actions"] if action["id"] == legal[chosen])
            program.act(state, action["id"], {k: _least(p) for k, p in action["params"].items()})
        program.step(state)
    return actions, events


def _least(param: dict[str, Any]) -> Any:
    return param["enum"][-1] if "enum" in param else param.get("minimum", False)


def test_nearly_all_are_played_in_lockstep() -> None:
    backend_named("native")
    import peripety_simcore  # noqa: PLC0415 - may be missing

    played = [peripety_simcore.compile(document).is_vectorised() for document in many()]
    assert sum(played) >= 0.85 * len(played)


STORIES = [generate_spec(11, index, with_story=True) for index in range(40)]


def test_specifications_with_a_story_are_valid_and_use_every_key() -> None:
    # Random preconditions read random flags, hidden ones, too.
    found = {finding.code for document in STORIES for finding in engine.validate(document)}
    assert found <= {"HIDDEN_PRECONDITION"}
    for document in STORIES:
        spec = json.loads(document)
        assert spec["spec_version"] == "1.1"
        assert {"bounds", "deal", "clues", "statements", "promises", "places"} <= spec.keys()
        assert any(action.get("once") for action in spec["actions"])
        assert "[params." in document.decode()


@pytest.mark.parametrize("core", BACKEND_NAMES)
def test_a_story_gives_the_same_bytes_and_runs_on_both_cores(core: str) -> None:
    assert hashlib.sha256(STORIES[0]).hexdigest()[:16] == "c1319c2f398117af"
    for document in STORIES[:4]:
        program = program_on(backend_named(core), document, is_canonical=True)
        expected = engine.compile(document).dry_run(runs=16, digest=True)
        assert program.dry_run(runs=16, digest=True) == expected


def test_no_rule_of_a_story_fails_and_most_pass_the_gate() -> None:
    passed = 0
    for document in STORIES:
        program = engine.compile(document)
        report = program.dry_run(runs=RUNS)
        assert report.errors == ()
        passed += report.lost / RUNS >= program.spec["negativity_budget"]["min_fail_rate"] - 0.03
    assert passed >= len(STORIES) - 2


def test_every_rule_of_random_scenarios_has_words() -> None:
    for index in range(20):
        spec = engine.parse(generate_spec(5, index))
        for rule in [*spec["actions"], *spec["random_events"]]:
            assert all(words and not words.startswith("{") for words in describe_effects(rule))
        for ending in spec["loss_conditions"]:
            assert describe_condition(ending["when"])
