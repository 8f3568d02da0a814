"""Scenarios of plots, and runs of them as a narrator sees them."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.blueprint import SeededChoice
from peripety.author.plots.beats import EarlierTurn, Scene, TurnBeats, recognize_plot
from peripety.author.plots.document import PlotDocument
from peripety.author.plots.plot import load_plot, load_texts
from peripety.author.plots.slots import collect_slots
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.author.text_analysis.reading import Deadline, Goal, Person, Phrase, Reading
from peripety.session.events import ActionResolved
from peripety.session.narration.claims.record import TurnFacts
from peripety.session.narration.turn_context import count_repetitions
from peripety.session.state_facts import read_facts
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def subjects() -> list[Reading]:
    """Readings about subjects that have nothing in common."""
    path = ROOT / "tests" / "data" / "plot_subjects" / "subjects.json"
    return [_to_reading(table) for table in json.loads(path.read_text(encoding="utf-8"))["subjects"]]


def _to_reading(table: Mapping[str, Any]) -> Reading:
    def phrase(value: Mapping[str, Any]) -> Phrase:
        text = value["text"]
        return Phrase(text, text.split()[-1], value.get("plural", False), value.get("mass", False))

    return Reading(
        json.dumps(table),
        "en",
        role=Person("", table["role"]) if table["role"] else None,
        goal=Goal("do", phrase({"text": table["object"]}), f"look after the {table['object']}"),
        people=(
            *(Person(name, "") for name in table["names"]),
            *(Person("", role) for role in table["roles"]),
        ),
        places=(phrase({"text": table["place"]}),) if table["place"] else (),
        supplies=(phrase(table["supply"]),),
        dangers=(phrase(table["danger"]),),
        deadline=Deadline(table["deadline"][0], table["deadline"][1], "") if table["deadline"] else None,
    )


def document_of(reading: Reading, plot_id: str, seed: int = 1, language: str = "en") -> dict[str, Any]:
    """The specification of a plot about a reading."""
    texts = load_texts(plot_id, language)
    slots = collect_slots(reading, texts)
    choose = SeededChoice(reading.text, seed).choose_number
    return PlotDocument(load_plot(plot_id), texts, reading, slots, choose).build(
        spec_id="offline_test",
        seed=seed,
        mark=OFFLINE_MARK,
    )


def scenario_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario as the narrator's prompt describes it."""
    named = ("id", "name")
    return {
        "name": spec["name"],
        "entities": [{key: entity[key] for key in named} for entity in spec["entities"]],
        "labels": spec["labels"],
        "events": [{key: event[key] for key in named} for event in spec["random_events"]],
        "wins": [{"id": ending["id"]} for ending in spec["win_conditions"]],
        "start": spec["state"],
    }


def narrated(spec: Mapping[str, Any], seed: int, turns: int = 12) -> Iterator[str]:
    """The narration of each turn of a run whose player acts at random."""
    yield from (told for told, _ in recorded_narrations(spec, seed, turns))


def recorded_narrations(
    spec: Mapping[str, Any],
    seed: int,
    turns: int = 12,
) -> Iterator[tuple[str, TurnFacts]]:
    """The narration of each turn of a run whose player acts at random, with the record of the turn."""
    program = engine.compile(json.dumps(spec, ensure_ascii=False))
    scenario = scenario_of(spec)
    plot = recognize_plot(scenario)
    assert plot is not None
    names = {rule["id"]: rule["name"] for part in ("actions", "random_events") for rule in spec[part]}
    state, rng, past = program.new_state(seed), random.Random(seed), list[EarlierTurn]()
    taken: list[str] = []
    for _ in range(turns):
        legal = list(program.legal_actions(state))
        action = rng.choice(legal) if legal else None
        before = {key: value for key, value in state.tree().items() if key != "hidden"}
        done = program.act(state, action) if action else None
        step = program.step(state)
        changes = [
            {
                "path": change.path,
                "before": None if change.before is engine.ABSENT else change.before,
                "after": change.after,
                "cause": change.cause,
            }
            for change in (*(done.changes if done else ()), *step.changes)
            if "hidden" not in change.path
        ]
        status = step.status
        happened = [names[step.event]] if step.event else []
        facts = {
            "turn": step.turn,
            "actions": [{"id": action, "name": names[action], "params": {}}] if action else [],
            "changes": changes,
            "event": {"id": step.event, "name": names[step.event]} if step.event else None,
            "status": {"kind": status.kind, "message": status.message},
            "repeated": count_repetitions(happened, Counter(turn.event for turn in past)),
            "epilogue": spec["epilogues"].get(status.condition or "", ""),
        }
        seen = {key: value for key, value in state.tree().items() if key != "hidden"}
        told = TurnBeats(plot, Scene(scenario, seen, tuple(past)), facts).narrative()
        shown = (*(done.changes if done else ()), *step.changes)
        record = TurnFacts(
            spec,
            read_facts(spec, before, "you"),
            read_facts(spec, seen, "you"),
            [change for change in shown if "hidden" not in change.path],
            [ActionResolved(action, {}, True, (), tuple(done.changes), ())] if action and done else [],
            status=status,
            done_before=frozenset(taken),
        )
        yield told, record
        taken += [action] if action else []
        if status.kind != "ongoing":
            return
        past.append(
            EarlierTurn((names[action],) if action else (), names.get(step.event or "", ""), told),
        )
