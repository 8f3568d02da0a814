"""The native core vouches for valid documents, and for none in which the reference finds something."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from peripety import engine
from peripety.engine.lowering import lower
from peripety.engine.schemas import SCENARIO_SPEC, SCENARIO_SPEC_1_1, schema_document
from support.engine.backends import backend_named
from support.engine.broken_specs import breaks, constraints, spoiled, spoiled_bytes
from support.engine.seeded_specs import SHAPES, random_spec
from support.engine.spec_generators import specs
from support.engine.specs import action, full_spec
from support.examples import example_count

EXAMPLES = example_count(150)
_BATCH = 64


def vouched(documents: list[bytes]) -> list[bool]:
    """For which documents the native core vouches, with their form and hash, and a program."""
    reference = backend_named("python")
    screened = backend_named("native").validate_many(documents, 2)
    for document, spotless in zip(documents, screened, strict=True):
        if spotless is not None:
            assert spotless.document == reference.parse(document)
            assert spotless.spec_hash == hashlib.sha256(spotless.document).hexdigest()
            spotless.program.new_state(0)
    return [spotless is not None for spotless in screened]


def spotless(document: bytes) -> bool:
    return engine.validate(document) == []


def as_bytes(spec: Any) -> bytes:
    return json.dumps(spec, ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.slow_after(1, reason="screens many scenarios of each shape")
@pytest.mark.parametrize("shape", SHAPES)
def test_valid_scenarios_of_every_shape_are_vouched_for(shape: str) -> None:
    documents = [as_bytes(random_spec(seed, shape=shape)) for seed in range(EXAMPLES)]
    assert all(vouched(documents))


@settings(max_examples=EXAMPLES, deadline=None)
@given(spec=specs())
def test_valid_scenarios_of_any_kind_are_vouched_for(spec: dict[str, Any]) -> None:
    assert vouched([as_bytes(spec)]) == [True]


def test_each_constraint_of_the_schema_is_held() -> None:
    schema = schema_document(SCENARIO_SPEC)
    broken = list(breaks(schema, full_spec()))
    assert {label for label, _ in broken} == set(constraints(schema))
    documents = [as_bytes(spec) for _, spec in broken]
    assert vouched([as_bytes(full_spec())]) == [True]
    for (label, spec), is_vouched in zip(broken, vouched(documents), strict=True):
        assert not is_vouched, (label, spec)


def later_spec() -> dict[str, Any]:
    """A valid scenario with everything of version 1.1, without parameters in paths."""
    texts = ("description", "voice", "manner", "wants", "knows", "secret")
    return {
        **full_spec(),
        "spec_version": "1.1",
        "entities": [{"id": "x", **dict.fromkeys(texts, "One.")}],
        "bounds": {"state.a": {"min": 0, "max": 99}, "state.b": {"min": 0}, "state.tree.x": {"max": 1}},
        "deal": [
            {"id": "one", "path": "state.note", "values": ["x", {"y": [1]}]},
            {"id": "two", "path": "state.a", "values": [1, 2, 300]},
        ],
        "premise": {"text": "It begins.", "tone": "dry", "person": "third", "tense": "past"},
        "opening": "Now.",
        "epilogues": {"first": "Over.", "won": "Done."},
        "labels": {
            "state.a": {"name": "A", "unit": "u", "bands": [{"upto": 3, "word": "low"}, {"word": "high"}]}
        },
        "solutions": [
            {
                "id": "s",
                "when": {"==": [{"var": "state.note"}, "x"]},
                "steps": [
                    {**MOVE, "otherwise": "skip"},
                    {**MOVE, "otherwise": MOVE},
                    {**MOVE, "when": {"!": [{"var": "state.flag"}]}, "otherwise": "skip"},
                    MOVE,
                ],
            }
        ],
    }


MOVE = {
    "action": "act",
    "params": {"n": 3, "text": "ééééé", "flag": True, "choice": 2.5, "word": "low", "yes": True},
}


def steps(**params: Any) -> dict[str, Any]:
    """Return a part of a scenario with one step."""
    move = {"action": "act", "params": {**MOVE["params"], **params}}  # type: ignore[dict-item]
    return {"solutions": [{"id": "s", "steps": [move]}]}


def test_the_keys_of_the_later_version_are_vouched_for() -> None:
    assert spotless(as_bytes(later_spec()))
    assert vouched([as_bytes(later_spec()), as_bytes({**later_spec(), "premise": "Begin."})]) == [True, True]


def test_each_constraint_of_the_later_schema_is_held() -> None:
    broken = list(breaks(schema_document(SCENARIO_SPEC_1_1), later_spec()))
    assert len(broken) > 100
    documents = [as_bytes(spec) for _, spec in broken]
    for (label, spec), is_vouched in zip(broken, vouched(documents), strict=True):
        assert not is_vouched or spotless(as_bytes(spec)), (label, spec)


@pytest.mark.parametrize(
    "part",
    [
        {"spec_version": "1.0"},
        {"bounds": {"state.a": {}}},
        {"bounds": {"state.a": {"min": 11}}},
        {"bounds": {"state.a": {"min": 1, "max": 0}}},
        {"bounds": {"state.list[0]": {"min": 0}}},
        {"bounds": {"state.note": {"min": 0}}},
        {"bounds": {"state.zz": {"min": 0}}},
        {"bounds": {"state.tree.y": {"min": 0}}},
        {"deal": [{"id": "x", "path": "state.zz", "values": [1, 2]}]},
        {"deal": [{"id": "x", "path": "state", "values": [1, 2]}]},
        {"deal": [{"id": "x", "path": "state.a", "values": [1, "x"]}]},
        {"deal": [{"id": "x", "path": "state.tree", "values": [{}, {}]}]},
        {"deal": [{"id": "x", "path": "state.note", "values": ["x", "{{y}}"]}]},
        {"deal": [{"id": "x", "path": "state.note", "values": [1, 2]}] * 2},
        {
            "bounds": {},
            "deal": [
                {"id": "x", "path": "state.tree", "values": [{}, {}]},
                {"id": "y", "path": "state.tree.x", "values": [1, 2]},
            ],
        },
        {"deal": [{"id": "x", "path": "state.note", "values": ["x", [0] * 100]}], "state": "big"},
        {"epilogues": {"zz": "Over."}},
        {"labels": {"state.zz": {"name": "A"}}},
        {"solutions": [{"id": "s", "steps": [{**MOVE, "action": "zz"}]}]},
        {"solutions": [{"id": "s", "steps": [{"action": "act"}]}]},
        {"solutions": [{"id": "s", "steps": [MOVE]}] * 2},
        {"solutions": [{"id": "s", "steps": [{**MOVE, "otherwise": {"action": "act"}}]}]},
        {"solutions": [{"id": "s", "steps": [MOVE], "when": {"var": "state.zz"}}]},
        {"solutions": [{"id": "s", "steps": [{**MOVE, "when": {"var": "state.zz"}}]}]},
        {"solutions": [{"id": "s", "steps": [{**MOVE, "when": []}]}]},
        {"solutions": [{"id": "s", "steps": [{**MOVE, "when": {">": [{"var": "state.a"}, 1]}}]}]},
        {"solutions": [{"id": "s", "steps": [{**MOVE, "when": {"missing": ["state.a"]}}]}]},
        {
            "actions": [
                action(
                    "act", params=full_spec()["actions"][0]["params"], preconditions={"!": {"var": "state.a"}}
                )
            ]
        },
        steps(n=4),
        steps(n=0.5),
        steps(n=-1),
        steps(n="x"),
        steps(text="éééééé"),
        steps(text=1),
        steps(flag=1),
        steps(choice=1.5),
        steps(word="x"),
        steps(yes=False),
        steps(zz=1),
    ],
)
def test_what_is_wrong_with_a_later_key_is_not_vouched_for(part: dict[str, Any]) -> None:
    if part.get("state") == "big":
        part = {**part, "state": {**later_spec()["state"], "big": [0] * 9_950}}
    spec = {**later_spec(), **part}
    assert not spotless(as_bytes(spec))
    assert vouched([as_bytes(spec)]) == [False]


@pytest.mark.slow(reason="counts over many random documents")
@pytest.mark.parametrize("shape", SHAPES)
def test_most_later_scenarios_of_every_shape_are_vouched_for(shape: str) -> None:
    documents = [random_spec(seed, shape=shape, later=True, story=0) for seed in range(EXAMPLES)]
    whole = [document for document in documents if "[params." not in json.dumps(document)]
    assert len(whole) > len(documents) // 3
    assert all(vouched([as_bytes(document) for document in whole]))
    assert not any(vouched([as_bytes(document) for document in documents if document not in whole]))


def test_lowered_keys_are_left_to_the_reference() -> None:
    documents = [random_spec(seed, later=True, story=1) for seed in range(EXAMPLES)]
    lowered = [as_bytes(document) for document in documents if not lower(document).is_identity]
    assert len(lowered) > EXAMPLES // 2
    assert not any(vouched(lowered))
    assert all(result.program for result in engine.validate_many(lowered))


@pytest.mark.parametrize("seed", range(EXAMPLES // 5))
@pytest.mark.slow(reason="compares thousands of documents")
def test_nothing_that_is_wrong_is_vouched_for(seed: int) -> None:
    random = Random(seed)
    spec = random_spec(random, later=seed % 3 == 0)
    documents = [as_bytes(spoiled(random, spec)) for _ in range(_BATCH)]
    for document, is_vouched in zip(documents, vouched(documents), strict=True):
        assert not is_vouched or spotless(document), document


@pytest.mark.parametrize("seed", range(EXAMPLES // 10))
def test_nothing_that_is_no_json_is_vouched_for(seed: int) -> None:
    random = Random(seed)
    document = as_bytes(random_spec(random, shape="params"))
    documents = [spoiled_bytes(random, document) for _ in range(_BATCH)]
    for given_bytes, is_vouched in zip(documents, vouched(documents), strict=True):
        assert not is_vouched or spotless(given_bytes), given_bytes
