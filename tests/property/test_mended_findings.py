"""Careless models write a document answer by answer, and repaired findings never return."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from peripety import engine
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.schemas import SCENARIO_SPEC, schema_document
from peripety.errors import Severity
from peripety.scenario.generation.draft import SpecDraft
from peripety.scenario.generation.evaluation import SpecEvaluator
from peripety.scenario.generation.model_client import ModelAnswer
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel
from support.engine.broken_specs import spoiled
from support.examples import example_count
from support.gateway.fake_gateway import answer
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.errors import Finding


Json: TypeAlias = "dict[str, Any]"
Mark: TypeAlias = "tuple[str, str]"

MODELS = example_count(80)
ANSWERS = 6
SECTIONS = ("actions", "random_events", "loss_conditions")
_FORM, _RULES = 0, 1


def _heavy(rule: Json) -> None:
    rule["weight"] = 0.9


def _odd(rule: Json) -> None:
    rule["power"] = 1


def _halved(rule: Json) -> None:
    for key in ("effects", "when"):
        rule.pop(key, None)


def _astray(rule: Json) -> None:
    rule.setdefault("effects", []).append({"op": "inc", "path": "state.nowhere.at", "value": 1})


def _coded(rule: Json) -> None:
    rule.setdefault("effects", []).append({"op": "set", "path": "state.nowhere", "value": {"+": [1, 2]}})


def _circular(rule: Json) -> None:
    rule["derives"] = {"x": {"+": [{"var": "derives.y"}, 1]}, "y": {"+": [{"var": "derives.x"}, 1]}}


SLIPS: tuple[Callable[[Json], None], ...] = (_heavy, _odd, _halved, _astray, _coded, _circular)


_ODDITIES: tuple[Any, ...] = (
    *(None, [], {}, 0, "x", [1], [{}], {"a": {}}),
    *([{"id": 1}], [{"id": None}], [{"id": "a"}, {"id": "a"}], [{"id": "a", "effects": [{"op": []}]}]),
    ["/actions/act_1", "/x", "", 5, "/state", "actions"],
)


def good_spec(number: int) -> Json:
    spec: Json = json.loads(generate_spec(5, number % 40))
    spec["negativity_budget"]["min_fail_rate"] = 0.25
    return spec


def answers(random: Random, good: Json) -> list[Json]:
    """A whole document with a few slips, and then parts of it, better or worse, as it happens."""
    first = deepcopy(good)
    for section in SECTIONS:
        first[section] = [_slipped(random, rule, 0.3) for rule in first[section]]
    return [first, *(_partial(random, good) for _ in range(ANSWERS - 1))]


def _partial(random: Random, good: Json) -> Json:
    partial: Json = {}
    for section in SECTIONS:
        chosen = [rule for rule in good[section] if random.random() < 0.6]
        if chosen:
            partial[section] = [_slipped(random, rule, 0.25) for rule in chosen]
    if random.random() < 0.2:
        rule = random.choice(good["actions"])
        partial["removed"] = [random.choice([f"/actions/{rule['id']}", "/negativity_budget", "/state"])]
    if random.random() < 0.4:
        partial |= {key: good[key] for key in ("negativity_budget", "state")}
    return partial


def _slipped(random: Random, rule: Json, chance: float) -> Json:
    rule = deepcopy(rule)
    while random.random() < chance:
        random.choice(SLIPS)(rule)
    return rule


def anything(random: Random, good: Json) -> Json:
    """Return an answer that no author would write."""
    written = spoiled(random, good)
    answer = written if isinstance(written, dict) else {"x": written}
    for key in random.sample([*good, "removed", "zz"], random.randint(0, 4)):
        answer[key] = deepcopy(random.choice(_ODDITIES)) if random.random() < 0.8 else [good.get(key)]
    return {key: value for key, value in answer.items() if random.random() < 0.8}


async def documents(spoken: list[Json]) -> list[tuple[Mapping[str, Any], tuple[Finding, ...]]]:
    """Return the document and its findings after each answer."""
    manuscript = SpecDraft(SpecEvaluator(ValidationLevel.STATIC, WORKERS), {}, {"seed": 7})
    after = []
    for number, value in enumerate(spoken, 1):
        async for _ in manuscript.apply_answer(ModelAnswer(value, (), number, answer(json.dumps(value)))):
            pass
        after.append((manuscript.document, manuscript.findings))
    return after


def depth_of(document: Mapping[str, Any]) -> int:
    """Return the stage that the engine reaches: rules are not checked if the form is invalid."""
    return _FORM if validate_against_schema(schema_document(SCENARIO_SPEC), document) else _RULES


def marks(document: Mapping[str, Any], findings: tuple[Finding, ...]) -> set[Mark]:
    """Return the errors by code and the rule that they are about, at any position."""
    return {(f.code, _owner(document, f.path)) for f in findings if f.severity is Severity.ERROR}


def _owner(document: Mapping[str, Any], path: str) -> str:
    section, place, *_ = [*path.split("/")[1:], "", ""]
    entries = document.get(section)
    if isinstance(entries, list) and place.isdigit():
        return f"/{section}/{entries[int(place)].get('id')}"
    return f"/{section}/{place}" if isinstance(entries, dict) else f"/{section}"


@pytest.mark.slow(reason="mends and checks many random documents")
@pytest.mark.timeout(3_600)
def test_what_was_mended_is_never_told_again() -> None:
    mended_in_all = 0
    for model in range(MODELS):
        random = Random(model)
        spoken = answers(random, good_spec(model))
        mended: set[Mark] = set()
        before: set[Mark] = set()
        before_of_form: set[Mark] = set()
        depth = _FORM
        for number, (document, findings) in enumerate(asyncio.run(documents(spoken))):
            found, reached = marks(document, findings), depth_of(document)
            assert not found & mended, (model, number, found & mended)
            if reached >= depth:
                # While the form is invalid, rules are checked in part: only its own findings can be fixed.
                mended |= (before if reached == _RULES else before_of_form) - found
            violations = tuple(validate_against_schema(schema_document(SCENARIO_SPEC), document))
            before, before_of_form, depth = found, marks(document, violations), reached
        mended_in_all += len(mended)
    assert mended_in_all > MODELS


@pytest.mark.slow(reason="mends and checks many random documents")
@pytest.mark.timeout(3_600)
def test_what_is_told_is_what_is_wrong() -> None:
    """Undoing a relapse does not hide any finding of the document."""
    for model in range(MODELS):
        spoken = answers(Random(model), good_spec(model))
        for document, findings in asyncio.run(documents(spoken)):
            wrong = {(finding.code, finding.path) for finding in engine.validate(json.dumps(document))}
            told = {(finding.code, finding.path) for finding in findings}
            assert wrong <= told, model


@pytest.mark.slow(reason="repairs the documents of many models")
@pytest.mark.timeout(3_600)
def test_whoever_writes_all_of_a_good_document_in_the_end_has_one() -> None:
    """Omissions and undone changes before do not prevent a valid document."""
    for model in range(MODELS):
        good = good_spec(model)
        spoken = [*answers(Random(model), good), good, good, good]
        (*_, (document, findings)) = asyncio.run(documents(spoken))
        assert findings == (), model
        assert engine.validate(json.dumps(document)) == []


def test_whatever_is_written_is_told_of_and_never_fails() -> None:
    for model in range(MODELS):
        random, good = Random(model), good_spec(model)
        spoken = [random.choice([good, anything(random, good)]) for _ in range(ANSWERS)]
        for _, findings in asyncio.run(documents(spoken)):
            assert all(finding.code and finding.message for finding in findings)


def test_who_mends_what_it_is_told_and_no_more_gets_on() -> None:
    """If another finding hid a relapse, the part is restored to its last valid version."""
    good = good_spec(0)
    first, *others = good["actions"]

    def with_first(*slips: Callable[[Json], None]) -> Json:
        rule = deepcopy(first)
        for slip in slips:
            slip(rule)
        return {"actions": [rule]}

    spoken = [
        {**good, "actions": [*with_first(_circular)["actions"], *others]},
        with_first(_astray),
        with_first(_circular, _odd),
        with_first(_circular),
        {"actions": [first]},
    ]
    told = [{code for code, _ in marks(*after)} for after in asyncio.run(documents(spoken))]
    assert told == [{"DERIVE_CYCLE"}, {"UNKNOWN_PATH"}, {"UNKNOWN_KEY"}, {"UNKNOWN_PATH"}, set()]
