"""Situations for sentences that a record contradicts or supports; see tests/data/narrator_claims."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.engine import Change, RollResult, Status
from peripety.session.events import ActionResolved
from peripety.session.narration.claims.record import TurnFacts
from peripety.session.state_facts import read_facts
from support.engine.specs import action, never, spec

if TYPE_CHECKING:
    from collections.abc import Iterator

TUNING_NARRATORS = (1, 2, 5, 6, 7, 8, 11, 12, 13, 15, 16, *range(19, 28), 29, 30, 32, 33)
"""Authors in `more_narrators` whose texts tune the checks."""
SEALED_NARRATORS = (3, 4, 9, 14)
"""Authors in `more_narrators` whose texts were never read."""
SEALED_TURNS = (17, 18, 28, 31)
"""Honest narrators in `more_narrators` whose turns were never read."""

FOLDER = Path(__file__).parents[2] / "data" / "narrator_claims"


@dataclass(frozen=True)
class Case:
    """A sentence in a situation."""

    kind: str
    facts: TurnFacts
    prose: str
    is_tuning: bool


@dataclass(frozen=True)
class _World:
    """Names and numbers that fill the slots of a sentence."""

    people: tuple[str, str, str, str]
    numbers: dict[str, int]
    in_words: bool
    flat: bool
    quantity: tuple[str, str]


_WORLDS = (
    _World(
        ("Alpha", "Beta", "Gamma", "Delta"),
        {"O": 9, "N": 7, "W": 4, "WD": 5, "PO": 40, "P": 55, "PW": 70, "PWD": 30},
        True,
        False,
        ("supply", "supplies"),
    ),
    _World(
        ("Rho", "Sigma Vale", "Tau", "Omega Lind"),
        {"O": 130, "N": 118, "W": 95, "WD": 41, "PO": 3, "P": 5, "PW": 9, "PWD": 8},
        False,
        True,
        ("ration", "rations"),
    ),
)
_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_PLACES = ("east_room", "west_room", "south_yard")
_DEEDS = {
    "did": ("open the gate", "opened the gate", "opened the gate", "opening the gate"),
    "refused": ("repair the signal", "repaired the signal", "repaired the signal", "repairing the signal"),
    "nottaken": ("search the store", "searched the store", "searched the store", "searching the store"),
}
_HIDDEN = "At night, while all slept, {B} stole the {far} and hid it in {else}."
_LOST, _WON = "The last line of the record is closed.", "The long count comes to rest."


def _spec(world: _World) -> dict[str, Any]:
    ids = _ids(world)
    return spec(
        spec_version="1.1",
        entities=[
            {"id": one, "name": name, "playable": place == 0}
            for place, (one, name) in enumerate(zip(ids, world.people, strict=True))
        ],
        state={},
        places={place: {} for place in _PLACES},
        labels={
            f"state.{world.quantity[0]}": {"name": world.quantity[1].capitalize()},
            "state.gauge": {"name": "Pressure"},
        },
        actions=[
            action("open_gate") | {"name": "Open the gate"},
            action("repair_signal") | {"name": "Repair the signal"},
            action("search_store") | {"name": "Search the store"},
        ],
        loss_conditions=[{**never("first"), "message": _LOST}, never("second")],
        win_conditions=[{**never("third"), "message": _WON}],
    )


def _ids(world: _World) -> list[str]:
    return [name.split()[0].lower() for name in world.people]


def _state(world: _World, amount: int, pressure: int) -> dict[str, Any]:
    you, ally, far, dead = _ids(world)
    here, there, other = _PLACES
    numbers = {world.quantity[0]: amount, "gauge": pressure}
    if world.flat:
        return {
            **numbers,
            **{f"{one}_at": place for one, place in ((you, here), (ally, here), (far, there))},
            **{f"{one}_alive": True for one in (ally, far)},
            f"{dead}_dead": True,
            "seal_holder": you,
            "badge_holder": ally,
            "marker_holder": far,
            "spare_at": other,
        }
    return numbers | {
        "people": {
            you: {"place": here, "has": ["seal"]},
            ally: {"place": here, "alive": True, "has": ["badge"]},
            far: {"place": there, "alive": True},
            dead: {"alive": False},
        },
        "items": {"marker": {"holder": far}},
        "visits": {you: {"where": here}},
    }


def corpus(name: str, *, is_tuning: bool | None = None) -> list[tuple[TurnFacts, str, str, str]]:
    """Return the facts, the label (`true` or `false`), the kind and the text of each line of a corpus.

    Args:
        name: the corpus.
        is_tuning: True for the situations of odd numbers, which tuned the checks; False for the others.
    """
    rows = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    known = {row["situation"]: _facts_of(row) for row in rows if "spec" in row}
    return [
        (known[row["situation"]], row["label"], row["kind"], row["text"])
        for row in rows
        if "text" in row and is_tuning in {None, int(row["situation"][1:]) % 2 == 1}
    ]


def more_narrators(*authors: int) -> list[tuple[TurnFacts, str, str, str]]:
    """Return the facts, the label, the kind and the text of each line of some further authors.

    Their situations are their own or those of other corpora. `SEALED_NARRATORS` did not tune the checks.

    Args:
        authors: their numbers.
    """
    known: dict[str, TurnFacts] = {}
    rows = []
    for line in (FOLDER / "more_narrators.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "spec" in row:
            known[row["situation"]] = _facts_of(row)
        elif row["author"] in authors:
            rows.append(row)
    for name in {row["situation"].partition(":")[0] for row in rows if ":" in row["situation"]}:
        for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "spec" in row:
                known[f"{name}:{row['situation']}"] = _facts_of(row)
    return [(known[row["situation"]], row["label"], row["kind"], row["text"]) for row in rows]


def honest_turns() -> list[tuple[TurnFacts, str]]:
    """Return the facts and the narration of turns that an honest narrator wrote."""
    known: dict[str, TurnFacts] = {}
    for name in ("unseen", "literary"):
        for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "spec" in row:
                known[f"{name}|{row['situation']}"] = _facts_of(row)
    parts = (line.split("|", 2) for line in _lines("honest_turns"))
    return [(known[f"{name}|{situation}"], text) for name, situation, text in parts]


def _facts_of(row: dict[str, Any]) -> TurnFacts:
    """Return the facts of a situation of a corpus, whose labels have no root and whose bands have names."""
    document, status = dict(row["spec"]), row["status"]
    document["labels"] = {
        f"state.{path}": label
        | {"bands": [{"upto": band["upto"], "word": band["name"]} for band in label.get("bands", ())]}
        for path, label in document.get("labels", {}).items()
    }
    acts = [
        ActionResolved(act["id"], {}, accepted=act["accepted"], reasons=(), changes=(), log=())
        for act in row["actions"]
    ]
    dice = [
        # The draw is not read.
        RollResult(act["id"], None, 10, 5, act["success"], None)  # type: ignore[arg-type]
        for act in row["actions"]
        if act["accepted"] and act.get("success") is not None
    ]
    ended = (
        Status("ongoing") if status["state"] == "ongoing" else Status(status["state"], status["ending"], None)
    )
    before, after = (read_facts(document, row[name], None) for name in ("before", "after"))
    return TurnFacts(document, before, after, (), acts, dice, ended)


def _facts(world: _World, situation: str) -> TurnFacts:
    document, numbers = _spec(world), world.numbers
    before = read_facts(document, _state(world, numbers["O"], numbers["PO"]), None)
    after = read_facts(document, _state(world, numbers["N"], numbers["P"]), None)
    changes = [
        Change(f"state.{world.quantity[0]}", "dec", numbers["O"], numbers["N"], "action:open_gate"),
        Change("state.gauge", "inc", numbers["PO"], numbers["P"], "decay"),
    ]
    acts = [
        ActionResolved("open_gate", {}, accepted=True, reasons=(), changes=(), log=()),
        ActionResolved("repair_signal", {}, accepted=False, reasons=(), changes=(), log=()),
    ]
    rolls = {"failroll": False, "goodroll": True}
    # The draw is not read.
    draw: Any = None
    die = [RollResult("balance", None, 10, 5, rolls[situation], draw)] if situation in rolls else []
    status = {"won": Status("won", "third", _WON), "lost": Status("lost", "first", _LOST)}.get(
        situation, Status("ongoing")
    )
    return TurnFacts(
        document, before, after, changes, acts, die, status, secrets=[_HIDDEN.format(**_slots(world))]
    )


def _slots(world: _World) -> dict[str, str]:
    numbers = world.numbers | {
        "diff": world.numbers["O"] - world.numbers["N"],
        "PD": world.numbers["P"] - world.numbers["PO"],
        "T": 3,
    }
    told = {
        name: _WORDS[value] if world.in_words and value < len(_WORDS) else str(value)
        for name, value in numbers.items()
    }
    _, ally, far, dead = (name.split()[0] for name in world.people)
    deeds = {
        f"{name}{suffix}": form
        for name, forms in _DEEDS.items()
        for suffix, form in zip(("", "ed", "en", "ing"), forms, strict=True)
    }
    here, there, other = (f"the {place.replace('_', ' ')}" for place in _PLACES)
    return {
        **told,
        **deeds,
        "B": ally,
        "G": far,
        "D": dead,
        "here": here,
        "there": there,
        "else": other,
        "supply": world.quantity[0],
        "supplies": world.quantity[1],
        "pressure": "pressure",
        "mine": "seal",
        "theirs": "badge",
        "far": "marker",
        "roll": "balance",
        "lostmessage": _LOST,
        "wonmessage": _WON,
    }


def first_document() -> bytes:
    """Return the scenario of the first world, in its state after the turn."""
    world = _WORLDS[0]
    state = _state(world, world.numbers["N"], world.numbers["P"])
    parts = {key: value for key, value in _spec(world).items() if key != "places"}
    return json.dumps(parts | {"state": state}).encode()


def lines_of(name: str, kind: str) -> list[str]:
    """Return the sentences of a file of one kind in the first world, whose run continues."""
    slots, told = _slots(_WORLDS[0]), []
    for line in _lines(name):
        first, *situation, template = line.split("|", 1 if name.startswith("misdeeds") else 2)
        if first == kind and situation in ([], ["ongoing"]):
            prose = template.format(**slots)
            told.append(prose[0].upper() + prose[1:])
    return told


def _lines(name: str) -> list[str]:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and line[0] != "#"]


def paraphrases(kind: str) -> list[str]:
    """Return the freer wordings, `false` or `true` in the first world."""
    return [line.partition("|")[2] for line in _lines("paraphrases") if line.startswith(f"{kind}|")]


def cases(name: str) -> Iterator[Case]:
    """Yield the sentences of a file in each world."""
    for world in _WORLDS:
        slots = _slots(world)
        known: dict[str, TurnFacts] = {}
        for number, line in enumerate(_lines(name)):
            kind, situation, template = line.split("|", 2)
            if situation not in known:
                known[situation] = _facts(world, situation)
            prose = template.format(**slots)
            yield Case(kind, known[situation], prose[0].upper() + prose[1:], number % 2 == 0)
