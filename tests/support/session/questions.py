"""Questions about a long game, with the answers of an oracle that reads the states of the game directly."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.session.events import Accepted, DialogueSpoken
from peripety.session.narration.turn_context import NarrationContext
from peripety.session.questions.session_record import read_record
from peripety.session.speculation import begin_turn
from peripety.session.turn_transaction import TurnTransaction
from peripety.session.types import PlayerAction
from peripety.session.visibility import Projector
from support.engine.specs import action, event, never, spec
from support.session.sessions import session_of, turn_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from peripety.session.questions.session_record import SessionRecord
    from peripety.session.types import CommittedTurn

CANARIES = ("canary amethyst", "canary basalt", "canary cobalt")
_PLACES = ("east_room", "west_room", "south_yard")
_COUNTS = ("supply", "token", "progress")


@dataclass(frozen=True)
class Asked:
    """A question with the right answer.

    Attributes:
        question: the question.
        expected: texts that the answer contains; None if the record must not answer.
        turns: the cited turns; None if they are not compared.
    """

    question: str
    expected: tuple[str, ...] | None
    turns: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Move:
    """Move of a player.

    Attributes:
        action: the id of an action; empty for none.
        spoken: the words of the player; empty for none.
        reply: the words of the entity `beta`; empty for none.
    """

    action: str
    spoken: str = ""
    reply: str = ""


@dataclass(frozen=True)
class Game:
    """A game that was played: its record, and its whole states after each turn, the first before turn 1."""

    record: SessionRecord
    states: list[dict[str, Any]]
    turns: list[CommittedTurn]


def _document() -> bytes:
    def change(op: str, path: str, value: Any) -> dict[str, Any]:
        return {"op": op, "path": path, "value": value}

    moves = [
        action(f"send_{who}_{place}", [change("set", f"state.people.{who}.place", place)])
        | {"name": f"Send {who} to {place}"}
        for who in ("beta", "gamma")
        for place in _PLACES
    ]
    actions = [
        action("gather_supply", [change("inc", "state.supply", 3)]) | {"name": "Gather the supply"},
        action("spend_token", [change("dec", "state.token", 1)]) | {"name": "Spend a token"},
        action("push_work", [change("inc", "state.progress", 0.5)]) | {"name": "Push the work"},
        action("hand_seal", [change("set", "state.items.seal.holder", "beta")])
        | {"name": "Hand over the seal"},
        action("fetch_seal", [change("set", "state.items.seal.holder", "alpha")])
        | {"name": "Fetch the seal"},
        action("wound_gamma", [change("set", "state.people.gamma.alive", False)])
        | {"name": "Leave gamma behind"},
        action("whisper", [change("inc", "state.hidden.depth", 1)]) | {"name": "Listen at the wall"},
        *moves,
    ]
    return json.dumps(
        spec(
            entities=[
                {"id": "alpha", "name": "Alpha", "playable": True},
                {"id": "beta", "name": "Beta"},
                {"id": "gamma", "name": "Gamma"},
            ],
            state={
                "supply": 20,
                "token": 300,
                "progress": 0,
                "people": {
                    "alpha": {"place": "east_room"},
                    "beta": {"place": "east_room", "alive": True, "trust": 4},
                    "gamma": {"place": "west_room", "alive": True, "trust": 2},
                },
                "items": {"seal": {"holder": "alpha"}, "badge": {"holder": "gamma"}},
                "hidden": {"culprit": CANARIES[0], "depth": 41_523_947, "vault": {"holder": CANARIES[1]}},
                "private": {"beta": {"secret": CANARIES[2], "doubt": 77_310_264}},
            },
            actions=actions,
            random_events=[
                event("storm", [change("dec", "state.supply", 1)], weight=0.3) | {"name": "The storm"},
                event("market", [change("inc", "state.people.beta.trust", 1)], weight=0.2)
                | {"name": "The market"},
            ],
            loss_conditions=[never("first"), never("second")],
        ),
    ).encode()


def play(turns: int, seed: int) -> Game:
    """Play a game with random actions, words and lines of dialogue, without a model."""
    random = Random(seed)
    program = engine.compile(_document())
    ids = [one["id"] for one in program.spec["actions"]]
    weights = [1.0 if name != "wound_gamma" else 0.02 for name in ids]

    def moves() -> Iterator[Move]:
        for turn in range(1, turns + 1):
            chosen = random.choices(ids, weights)[0] if random.random() < 0.9 else ""
            said = f"Word {turn} about the wind." if random.random() < 0.3 else ""
            yield Move(chosen, f"note {turn}" if turn % 7 == 0 else "", said)

    return play_moves(_document(), "alpha", moves())


def play_moves(document: bytes, viewer: str, moves: Iterable[Move]) -> Game:
    """Play a game with given moves, without a model; the entity `beta` speaks."""
    program = engine.compile(document)
    session = session_of(program)
    view = Projector(program.spec).for_viewer(viewer)
    states = [program.load_state(session.snapshot).tree()]
    played: list[CommittedTurn] = []
    for turn, move in enumerate(moves, 1):
        calls = [PlayerAction(move.action, {})] if move.action else []
        stage, _ = begin_turn(
            TurnTransaction(program, session.snapshot), calls, abandon_if_all_rejected=False
        )
        assert stage is not None
        scene = NarrationContext(program.spec, view, turn, "", session, stage)
        lines = [DialogueSpoken("beta", move.reply)] if move.reply else []
        told = turn_of(scene, f"Turn {turn} is told.", pov=viewer, spoken=move.spoken, dialogue=lines)
        result = stage.preview()
        played.append(told)
        states.append(result.tree)
        session = replace(session, turn=turn, snapshot=result.snapshot)
    state = program.load_state(session.snapshot)
    return Game(read_record(program.spec, state, program.legal_actions(state), view, played), states, played)


def questions(game: Game, count: int, seed: int) -> Iterator[Asked]:
    """Yield random questions about a game, with the answers of the oracle."""
    random = Random(seed)
    for _ in range(count):
        yield random.choice(_MAKERS)(game, random)


def _last_turn_of_change(game: Game, read: Callable[[dict[str, Any]], Any], until: int) -> int:
    values = [read(state) for state in game.states]
    return max((turn for turn in range(1, until + 1) if values[turn] != values[turn - 1]), default=0)


def _amount(game: Game, random: Random) -> Asked:
    end = len(game.turns)
    if random.random() < 0.3:
        who = random.choice(["beta", "gamma"])
        asked = random.choice(
            [
                f"What is {who}'s trust?",
                f"How much trust does {who.capitalize()} have?",
                f"How high is the trust of {who}?",
            ]
        )
        value = game.states[-1]["people"][who]["trust"]
        return Asked(
            asked,
            (f"{value:.10g}.",),
            (_last_turn_of_change(game, lambda state: state["people"][who]["trust"], end),),
        )
    name = random.choice(_COUNTS)
    plural = {"supply": "supplies", "token": "tokens", "progress": "progress"}[name]
    asked = random.choice(
        [
            f"How many {plural} are left?",
            f"How much {name} do I have?",
            f"What is the {name}?",
            f"how many {plural} do we have now",
            f"How high is my {name}?",
        ],
    )
    return Asked(
        asked,
        (f"{game.states[-1][name]:.10g}.",),
        (_last_turn_of_change(game, lambda state: state[name], end),),
    )


def _amount_then(game: Game, random: Random) -> Asked:
    name, turn = random.choice(_COUNTS), random.randint(1, len(game.turns))
    if random.random() < 0.3:
        return Asked(
            f"How much {name} was there before turn {turn}?", (f"{game.states[turn - 1][name]:.10g}.",)
        )
    asked = random.choice(
        [f"How much {name} did I have after turn {turn}?", f"What was the {name} in turn {turn}?"]
    )
    return Asked(
        asked,
        (f"{game.states[turn][name]:.10g}.",),
        (_last_turn_of_change(game, lambda state: state[name], turn),),
    )


def _place(game: Game, random: Random) -> Asked:
    who = random.choice(["beta", "gamma", "alpha"])
    turn = random.choice([None, random.randint(1, len(game.turns))])
    end = len(game.turns) if turn is None else turn

    def read(state: dict[str, Any]) -> Any:
        return state["people"][who]["place"]

    place = read(game.states[end]).replace("_", " ")
    subject = "am I" if who == "alpha" else f"is {who.capitalize()}"
    then = "" if turn is None else f" after turn {turn}"
    if who != "alpha" and random.random() < 0.3:
        return Asked(
            f"Is {who} still in the {place}{then}?", ("Yes.",), (_last_turn_of_change(game, read, end),)
        )
    return Asked(f"Where {subject}{then}?", (place,), (_last_turn_of_change(game, read, end),))


def _alive(game: Game, random: Random) -> Asked:
    who, how = random.choice(["beta", "gamma"]), random.choice(["alive", "dead"])
    is_alive = game.states[-1]["people"][who]["alive"]
    turn = _last_turn_of_change(game, lambda state: state["people"][who]["alive"], len(game.turns))
    return Asked(
        f"Is {who.capitalize()} {random.choice(['', 'still '])}{how}?",
        ("Yes." if is_alive is (how == "alive") else "No.",),
        (turn,),
    )


def _holder(game: Game, random: Random) -> Asked:
    thing = random.choice(["seal", "badge"])

    def read(state: dict[str, Any]) -> Any:
        return state["items"][thing]["holder"]

    holder = read(game.states[-1])
    turn = (_last_turn_of_change(game, read, len(game.turns)),)
    if random.random() < 0.4:
        return Asked(
            f"Do I {random.choice(['', 'still '])}have the {thing}?",
            ("Yes." if holder == "alpha" else "No.",),
            turn,
        )
    name = "You have" if holder == "alpha" else f"{holder.capitalize()} has"
    return Asked(
        random.choice([f"Who has the {thing}?", f"Who holds the {thing}", f"Where is the {thing}?"]),
        (name,),
        turn,
    )


def _things(game: Game, random: Random) -> Asked:
    who = random.choice(["alpha", "beta", "gamma"])
    held = [thing for thing, item in game.states[-1]["items"].items() if item["holder"] == who]
    asked = "What do I have?" if who == "alpha" else f"What does {who.capitalize()} carry?"
    return Asked(asked, tuple(held) or ("Nothing.",))


def _event(game: Game, random: Random) -> Asked:
    turn = random.randint(1, len(game.turns))
    record = game.turns[turn - 1]
    names = {one["id"]: one["name"] for one in game.record.spec["actions"]}
    events = {one["id"]: one["name"] for one in game.record.spec["random_events"]}
    told = json.loads(record.record)
    expected = [names[call["id"]] for call in told["actions"]] or ["No action"]
    expected += [events[told["event"]]] if told["event"] else []
    return Asked(
        random.choice([f"What happened in turn {turn}?", f"what changed in turn {turn}"]),
        tuple(expected),
        (turn,),
    )


def _turns_of(game: Game, action_id: str) -> list[int]:
    return [
        turn.turn
        for turn in game.turns
        if any(call["id"] == action_id for call in json.loads(turn.record)["actions"])
    ]


_DEEDS = (
    ("gather_supply", "gather the supply"),
    ("spend_token", "spend a token"),
    ("push_work", "push the work"),
    ("fetch_seal", "fetch the seal"),
)


def _deed(game: Game, random: Random) -> Asked:
    action_id, words = random.choice(_DEEDS)
    turns = _turns_of(game, action_id)
    if random.random() < 0.5:
        turn = random.randint(1, len(game.turns))
        return Asked(f"Did I {words} in turn {turn}?", ("Yes" if turn in turns else "No.",), (turn,))
    return Asked(
        f"When did I last {words}?",
        (f"turn {turns[-1]}.",) if turns else ("Never.",),
        (turns[-1],) if turns else None,
    )


def _often(game: Game, random: Random) -> Asked:
    action_id, words = random.choice(_DEEDS)
    turns = _turns_of(game, action_id)
    return Asked(f"How many times did I {words}?", ("Once." if len(turns) == 1 else f"{len(turns)} times.",))


def _speech(game: Game, random: Random) -> Asked:
    said = [
        (turn.turn, one.utterance)
        for turn in game.turns
        for one in turn.events
        if isinstance(one, DialogueSpoken)
    ]
    if random.random() < 0.5:
        return Asked(
            "What did Beta say?", (said[-1][1],) if said else ("Nothing.",), (said[-1][0],) if said else None
        )
    turn = random.randint(1, len(game.turns))
    words = [one for number, one in said if number == turn]
    return Asked(f"What did Beta say in turn {turn}?", tuple(words) or ("Nothing.",), (turn,))


def _words(game: Game, random: Random) -> Asked:
    turn = random.randint(1, len(game.turns))
    said = next(one.input for one in game.turns[turn - 1].events if isinstance(one, Accepted))
    return Asked(f"What did I say in turn {turn}?", (said or "Nothing.",), (turn,))


def _change(game: Game, random: Random) -> Asked:
    name, turn = random.choice(_COUNTS), random.randint(1, len(game.turns))
    before, after = game.states[turn - 1][name], game.states[turn][name]
    if random.random() < 0.5:
        how = random.choice(["rise", "fall"])
        is_so = after > before if how == "rise" else after < before
        return Asked(f"Did the {name} {how} in turn {turn}?", ("Yes" if is_so else "No",), (turn,))
    text = f"{before:.10g} to {after:.10g}." if before != after else "did not change"
    return Asked(f"How did the {name} change in turn {turn}?", (text,), (turn,))


def _when(game: Game, random: Random) -> Asked:
    if random.random() < 0.3:
        who = random.choice(["beta", "gamma"])
        turn = _last_turn_of_change(game, lambda state: state["people"][who]["place"], len(game.turns))
        return Asked(f"When did {who.capitalize()} move?", (f"turn {turn}.",) if turn else ("Never.",))
    name = random.choice(_COUNTS)
    turn = _last_turn_of_change(game, lambda state: state[name], len(game.turns))
    asked = (
        random.choice([f"When did the {name} change?", f"When did the {name} last change?"]) if name else ""
    )
    return Asked(
        asked.replace(" last change", " change last"),
        (f"turn {turn}.",) if turn else ("Never.",),
        (turn,) if turn else None,
    )


def _company(game: Game, random: Random) -> Asked:
    people = game.states[-1]["people"]
    place = random.choice([people["alpha"]["place"], *_PLACES])
    there = [
        who.capitalize()
        for who in ("beta", "gamma")
        if people[who]["place"] == place and people[who]["alive"]
    ]
    asked = (
        "Who is here?"
        if place == people["alpha"]["place"] and random.random() < 0.7
        else f"Who is in the {place.replace('_', ' ')}?"
    )
    return Asked(asked, tuple(there) or ("No other person.",))


_HIDDEN = (
    *("Who is the culprit?", "What is the culprit?", "How much depth is there?", "What is the depth?"),
    *("What is hidden?", "Who has the vault?", "What is beta's secret?", "How high is beta's doubt?"),
    *("What is the doubt of Beta?", "When did the depth change?", "Where is the vault?"),
    *("What does the vault hold?", "How did the depth change in turn 3?", "Did the depth rise?"),
)
_UNKNOWN = (
    *("How many lanterns are left?", "Where is Zeta?", "Why did Beta leave?", "Is Omega alive?"),
    *("Who has the crown?", "What does Beta think of me?", "Did I ever burn the map?"),
    *(
        "What will happen next?",
        "What happened in turn {later}?",
        "How many supplies did I have in turn {later}?",
    ),
)


def _hidden(_game: Game, random: Random) -> Asked:
    return Asked(random.choice(_HIDDEN), None)


def _unknown(game: Game, random: Random) -> Asked:
    later = len(game.turns) + random.randint(1, 9)
    return Asked(random.choice(_UNKNOWN).format(later=later), None)


_MAKERS: tuple[Callable[[Game, Random], Asked], ...] = (
    *(_amount, _amount, _amount_then, _place, _alive, _holder, _things, _event, _deed, _often),
    *(_speech, _words, _change, _when, _company, _hidden, _unknown),
)
