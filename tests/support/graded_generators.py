"""Models of graded quality for the scripted LLM: what they write of a good specification, and mend of it."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.script.types import Script, ScriptResponse, ScriptRule
from peripety.llmsim.types import SimStopReason
from peripety.scenario.spec_generator.generator import generate_spec

if TYPE_CHECKING:
    from collections.abc import Callable


Json = dict[str, Any]

# Small, to be won, and with nothing to be said against them, not even as a warning.
_GOOD = ((9, 3), (9, 82), (9, 137))
_SPOT = "spot"


@dataclass(frozen=True)
class Written:
    """An answer, and what a reader can make of it."""

    response: ScriptResponse
    document: Json


@dataclass(frozen=True)
class Grade:
    """One kind of quality.

    Attributes:
        write: what the model writes of a good specification at first.
        told: a code that is told of that; None where nothing is wrong with it.
        is_moved: whether the engine moves numbers of it.
    """

    write: Callable[[Json], Written]
    told: str | None = None
    is_moved: bool = False


def good_specs() -> list[Json]:
    """Specifications that earn a certificate."""
    return [json.loads(generate_spec(seed, index)) for seed, index in _GOOD]


def patient(grade: Grade, good: Json) -> Script:
    """A model that puts right what it is told of, and says nothing else again.

    To what does not name the reason it answers as if it were asked for the first time.
    """
    first = grade.write(good)
    rules = [ScriptRule(Pattern(), first.response)]
    if grade.told is not None:
        rules.insert(0, ScriptRule(_naming(grade.told), as_answer(difference(first.document, good))))
    return Script(tuple(rules))


def in_turn(*documents: Json) -> Script:
    """A model that writes one document after the other, each as what differs from the one before."""
    return saying(documents[0], *(difference(before, after) for before, after in pairwise(documents)))


def saying(*answers: Json) -> Script:
    """A model that gives one answer after the other, whatever it is told."""
    rules = [
        ScriptRule(Pattern(message_index=(number, number)), as_answer(value))
        for number, value in enumerate(answers)
    ]
    return Script(tuple(rules))


def stubborn(grade: Grade, good: Json) -> Script:
    """A model that always writes the same, whatever it is told."""
    return Script((ScriptRule(Pattern(), grade.write(good).response),))


def as_answer(document: Json) -> ScriptResponse:
    """An object as a model writes it."""
    return ScriptResponse(json.dumps(document, ensure_ascii=False))


def difference(wrong: Json, right: Json) -> Json:
    """The partial document that makes one document of another: what differs, and what is to be removed."""
    answer: Json = {}
    removed: list[str] = []
    for key in [*right, *(key for key in wrong if key not in right)]:
        was, wanted = wrong.get(key), right.get(key)
        if was == wanted:
            continue
        if isinstance(wanted, list) and isinstance(was, list):
            by_id = {entry["id"]: entry for entry in was}
            answer[key] = [entry for entry in wanted if by_id.get(entry["id"]) != entry]
            kept = {entry["id"] for entry in wanted}
            removed += [f"/{key}/{name}" for name in by_id if name not in kept]
        elif key in {"state", "negativity_budget"} and wanted is not None and was is not None:
            answer[key] = {name: value for name, value in wanted.items() if was.get(name) != value}
            removed += [f"/{key}/{name}" for name in was if name not in wanted]
        elif wanted is None:
            removed.append(f"/{key}")
        else:
            answer[key] = wanted
    answer = {key: value for key, value in answer.items() if value}
    return {**answer, "removed": removed} if removed else answer


def _naming(code: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, f'"{code}"'))


def _with(change: Callable[[Json], None]) -> Callable[[Json], Written]:
    """An answer that is one object, with something changed in it."""

    def write(good: Json) -> Written:
        spec = deepcopy(good)
        change(spec)
        return Written(as_answer(spec), spec)

    return write


def _nothing(_spec: Json) -> None:
    """Nothing is wrong."""


def _wrong_names(spec: Json) -> None:
    for action in spec["actions"][:2]:
        action["effect"] = action.pop("effects")
    for event in spec["random_events"][:2]:
        event["probability"] = event.pop("weight")
    spec["loss_conditions"][0]["condition"] = spec["loss_conditions"][0].pop("when")


def _missing_parts(spec: Json) -> None:
    del spec["negativity_budget"], spec["random_events"]
    del spec["loss_conditions"][1:]


def _code(spec: Json) -> None:
    effect = next(
        effect for action in spec["actions"] for effect in action["effects"] if effect["op"] in {"inc", "dec"}
    )
    effect |= {"op": "set", "value": {"+": [1, 2]}}


def _heavy(spec: Json) -> None:
    for event, weight in zip(spec["random_events"], (0.9, 0, 5), strict=False):
        event["weight"] = weight


def _unwinnable(spec: Json) -> None:
    spec["state"][_SPOT] = 0
    spec["actions"][0]["effects"].append({"op": "inc", "path": f"state.{_SPOT}", "value": 1})
    beyond = spec.get("horizon", 50) + 5
    spec["win_conditions"] = [{"id": "win_1", "when": {">=": [{"var": f"state.{_SPOT}"}, beyond]}}]


def _too_easy(spec: Json) -> None:
    """So easy that moving numbers by a half does not help, and yet not impossible to lose."""
    budget = spec["negativity_budget"]
    budget["decay_per_turn"] = {path: amount / 4 for path, amount in budget["decay_per_turn"].items()}
    for event in spec["random_events"]:
        event["weight"] = 0.05
    budget["min_fail_rate"] = 0.95


def _a_little_too_easy(spec: Json) -> None:
    rate = engine.compile(json.dumps(spec)).dry_run(runs=2_000).fail_rate
    spec["negativity_budget"]["min_fail_rate"] = round(rate + 0.08, 3)


def _other_language(spec: Json) -> None:
    spec["name"] = "Альфа · アルファ · ألفا"
    for number, rule in enumerate([*spec["actions"], *spec["random_events"]]):
        rule["name"] = f"дельта {number} · デルタ"


def _truncated(good: Json) -> Written:
    """The answer ends inside of its loss conditions, before anything that follows them."""
    keys = list(good)
    before = {key: good[key] for key in keys[: keys.index("loss_conditions")]}
    text = json.dumps(good, ensure_ascii=False)
    return Written(
        ScriptResponse(text[: text.index('"loss_conditions"') + 40], stop=SimStopReason.LENGTH),
        before,
    )


def _in_prose(good: Json) -> Written:
    text = json.dumps(good, ensure_ascii=False, indent=2)
    said = f"Gladly! Here is what I made of it, see [1]:\n\n```json\n{text}\n```\n\nAnything else?"
    return Written(ScriptResponse(said), good)


GRADES: dict[str, Grade] = {
    "perfect": Grade(_with(_nothing)),
    "prose around it": Grade(_in_prose),
    "another language": Grade(_with(_other_language)),
    "wrong field names": Grade(_with(_wrong_names), "UNKNOWN_KEY"),
    "missing parts": Grade(_with(_missing_parts), "MISSING_KEY"),
    "code in values": Grade(_with(_code), "CODE_IN_VALUE"),
    "weights out of bounds": Grade(_with(_heavy), "OUT_OF_RANGE"),
    "unwinnable": Grade(_with(_unwinnable), "UNREACHABLE_WIN"),
    "too easy": Grade(_with(_too_easy), "TOO_EASY"),
    "a little too easy": Grade(_with(_a_little_too_easy), is_moved=True),
    "truncated": Grade(_truncated, "MISSING_KEY"),
}
"""Every kind, by its name."""
