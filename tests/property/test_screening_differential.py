"""The native core vouches for valid documents, and for none in which the reference finds something."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from peripety import engine
from peripety.engine.schemas import SCENARIO_SPEC, schema_document
from support.engine.backends import backend_named
from support.engine.broken_specs import breaks, constraints, spoiled, spoiled_bytes
from support.engine.seeded_specs import SHAPES, random_spec
from support.engine.spec_generators import specs
from support.engine.specs import full_spec
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


@pytest.mark.parametrize("seed", range(EXAMPLES // 5))
def test_nothing_that_is_wrong_is_vouched_for(seed: int) -> None:
    random = Random(seed)
    spec = random_spec(random)
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
