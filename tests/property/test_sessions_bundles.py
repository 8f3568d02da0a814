"""Sessions recorded on one core are right on the other, and nothing in a bundle can be changed unnoticed."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.session.types import DieRollRequest, PlayerAction
from support.engine.backends import backend_named, program_on
from support.engine.spec_generators import narrations, rolls, scopes, specs
from support.examples import example_count
from support.session.bundles import Plan, bundle_of, play, resealed, verdict_on, verified

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.engine.specs import Json
    from support.session.bundles import Game


EXAMPLES = max(10, example_count(150, times=1 / 5))
SESSIONS = int(os.environ.get("PERIPETY_SESSIONS", "24"))
TURNS = 50
MUTATIONS = int(os.environ.get("PERIPETY_MUTATIONS", "400"))
SEED = int(os.environ.get("PERIPETY_SEED", "0"))
thorough = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def plans(draw: st.DrawFn, spec: Json) -> Plan:
    """A turn: legal and illegal actions, dice, the narrator's own changes, now and then another seed."""
    actions = st.sampled_from(spec["actions"]).flatmap(_calls)
    dice = st.builds(lambda die: DieRollRequest(die["kind"], die["difficulty"], die.get("target")), rolls)
    return Plan(
        draw(st.lists(actions, max_size=3)),
        draw(st.lists(dice, max_size=2)),
        draw(narrations),
        draw(st.one_of(st.none(), st.none(), st.integers(0, 2**53 - 1))),
        draw(st.text(max_size=5)),
    )


def _calls(action: Json) -> st.SearchStrategy[PlayerAction]:
    values = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0, 1e17, True, False, "", "x", "é", "too long"])
    params = st.fixed_dictionaries(dict.fromkeys(action["params"], values))
    return st.builds(PlayerAction, st.just(action["id"]), params, st.sampled_from([None, "x"]))


@pytest.mark.parametrize(("one", "other"), [("python", "native"), ("native", "python")])
def test_what_one_core_records_is_right_on_the_other(one: str, other: str) -> None:
    recording, verifying = backend_named(one), backend_named(other)

    @thorough
    @given(st.data(), specs(), scopes)
    def replay(data: st.DataObject, spec: Json, scope: Json) -> None:
        program = program_on(recording, json.dumps(spec | scope).encode())
        game = play(program, data.draw(st.lists(plans(spec), max_size=5)))
        _, verdict = verified(
            bundle_of(game),
            lambda document: program_on(verifying, document, is_canonical=True),
        )
        assert verdict.is_valid, verdict.issues
        assert verdict.turns == len(game.turns)

    replay()


@pytest.mark.slow(reason="forges hundreds of bundles")
@pytest.mark.timeout(120 + SESSIONS)
def test_long_random_sessions_are_right_on_the_other_core() -> None:
    cores = (backend_named("native"), backend_named("python"))
    seen: Counter[str] = Counter()
    for number, (recording, verifying) in zip(range(SESSIONS), cycle((cores, cores[::-1])), strict=False):
        chance = random.Random(SEED * 1_000_003 + number)
        spec = generate_spec(SEED, number, with_story=number % 3 == 0)
        program = program_on(recording, spec if number % 5 == 0 else endless(spec), is_canonical=True)
        game = play(program, random_plans(program.spec, chance), chance.randrange(2**53))
        _, verdict = verified(bundle_of(game), partial(program_on, verifying, is_canonical=True))
        assert verdict.is_valid, (SEED, number, verdict.issues)
        assert verdict.turns == len(game.turns)
        seen.update(happened(game))
    sys.stdout.write(f"{SESSIONS} sessions: {dict(seen)}\n")
    assert seen.keys() == {"turns", "seeds", "dice", "changes", "rejected", "ends"}


def happened(game: Game) -> Counter[str]:
    """Return the number of records of each kind in a session."""
    records = [turn.record for turn in game.turns]
    return +Counter(
        turns=len(records),
        seeds=sum("seed" in record for record in records),
        dice=sum(len(record.get("rolls", ())) for record in records),
        changes=sum(len(record.get("narrated", ())) for record in records),
        rejected=sum(not getattr(event, "accepted", True) for turn in game.turns for event in turn.events),
        ends=sum(record["status"]["kind"] != "ongoing" for record in records),
    )


def endless(document: bytes) -> bytes:
    """A specification whose runs are never lost and never won."""
    spec = engine.loads(document)
    for ending in (*spec["loss_conditions"], *spec.get("win_conditions", ())):
        ending["when"] = {"<": [1, 0]}
    return engine.canonicalize(spec)


def random_plans(spec: Json, chance: random.Random) -> Iterator[Plan]:
    """Turns as players and narrators may take them, right or wrong."""
    grants = [
        {"op": effect["op"], "path": effect["path"], "value": effect["value"]}
        for action in spec["actions"]
        for effect in action["effects"]
        if effect.keys() >= {"op", "path", "value"} and not isinstance(effect["value"], str)
    ]
    for _ in range(TURNS):
        actions = [
            PlayerAction(action["id"], random_params(action["params"], chance))
            for action in chance.choices(spec["actions"], k=chance.choice([0, 1, 1, 1, 2]))
        ]
        dice = [DieRollRequest("k", chance.randint(1, 30), chance.choice([None, "x"]))] * chance.choice(
            [0, 0, 1, 2],
        )
        changes = chance.choices(grants, k=chance.choice([0, 0, 1, 2])) if grants else []
        yield Plan(actions, dice, changes, chance.randrange(2**53) if chance.random() < 0.03 else None)


def random_params(params: Json, chance: random.Random) -> dict[str, Any]:
    """A value for each parameter; one in twenty is wrong."""
    return {
        name: chance.choice([-1.5, "wrong", True]) if chance.random() < 0.05 else legal(schema, chance)
        for name, schema in params.items()
    }


def legal(schema: Json, chance: random.Random) -> Any:
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if schema["type"] == "boolean":
        return chance.random() < 0.5
    if schema["type"] == "string":
        return "x" * min(3, schema.get("maxLength", 3))
    low, high = schema.get("minimum", 0), schema.get("maximum", 3)
    return chance.randint(int(low), int(high)) if schema["type"] == "integer" else chance.uniform(low, high)


def a_game() -> Game:
    """Some turns in which much happens."""
    program = engine.compile(generate_spec(1, 4))
    chance = random.Random(4)
    return play(program, islice(random_plans(program.spec, chance), 8))


@pytest.mark.slow(reason="forges hundreds of bundles")
def test_no_byte_number_or_line_can_be_changed_unnoticed() -> None:
    bundle = bundle_of(a_game())
    assert verdict_on(bundle).is_valid
    chance = random.Random(SEED)
    for _ in range(MUTATIONS):
        changed = mutated(bundle, chance)
        if changed != bundle:
            assert not verdict_on(changed).is_valid


def mutated(bundle: bytes, chance: random.Random) -> bytes:
    """A bundle with one byte or one line changed, lost, doubled or moved, or with its end cut off."""
    place = chance.randrange(len(bundle))
    lines = bundle.splitlines(keepends=True)
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    byte = bytes([chance.randrange(256)])
    moved = [*lines[:at], *lines[at + 1 :]]
    moved.insert(to, lines[at])
    return chance.choice(
        [
            bundle[:place] + byte + bundle[place + 1 :],
            bundle[:place] + bundle[place + 1 :],
            bundle[:place] + byte + bundle[place:],
            bundle[:place],
            b"".join(lines[:at] + lines[at + 1 :]),
            b"".join([*lines[:at], lines[to], *lines[at:]]),
            b"".join(moved),
        ],
    )


@pytest.mark.slow(reason="forges hundreds of bundles")
def test_no_part_of_the_mechanics_can_be_forged() -> None:
    lines = bundle_of(a_game()).splitlines()[:-1]
    chance = random.Random(SEED)
    values = [engine.parse_canonical(line) for line in lines]
    places = [
        (number, place)
        for number in range(2, len(values))
        for place in leaves(values[number])
        if is_mechanics(values[number], place)
    ]
    for number, place in chance.choices(places, k=MUTATIONS):
        value = engine.parse_canonical(lines[number])
        parent = value
        for segment in place[:-1]:
            parent = parent[segment]
        parent[place[-1]] = another(parent[place[-1]], chance)
        forged = [*lines[:number], engine.canonicalize(value), *lines[number + 1 :]]
        assert not verdict_on(resealed(forged)).is_valid, (number, place)


def leaves(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all numbers, texts, booleans and nulls."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*place, index))
    else:
        yield place


def is_mechanics(turn: Json, place: tuple[str | int, ...]) -> bool:
    """Return True if a value is computed, and not merely carried."""
    if place[0] != "events":
        return place[0] == "record"
    kind = turn["events"][place[1]]["kind"]
    if kind == "committed":
        return place[2] in {"state_hash", "chain_hash", "status", "legal_actions", "changes"}
    return kind in {"action_resolved", "rolled", "world_resolved", "rule_failed"}


def another(value: Any, chance: random.Random) -> Any:
    """A value that is not this one, of the same type where there is one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + chance.choice([1, -1, 0.5])
        case str():
            return value + "x" if chance.random() < 0.5 else "y" + value[1:] + "z"
    return 0
