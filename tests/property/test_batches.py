"""Batches: whatever comes in, in whatever order, portions and threads, the verdicts are the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.errors import Severity
from peripety.scenario.batch import BatchOptions
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import ValidationLevel
from support.scenario.batches import BYTES, EASY, GOOD, WRONG, spaced, verdicts

OPTIONS = BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64, horizon=8))
DOCUMENTS = [
    *(generate_spec(5, index, with_story=index % 4 == 3) for index in range(12)),
    GOOD,
    EASY,
    WRONG,
    BYTES,
    b"",
    spaced(GOOD, 2),
]


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    """The verdicts of the documents, each validated in a batch of its own."""
    return [verdicts([("it", document)], OPTIONS)["it"] for document in DOCUMENTS]


@pytest.mark.slow(reason="validates each batch several times in processes of its own")
@given(
    order=st.permutations(range(len(DOCUMENTS))),
    portions=st.integers(1, len(DOCUMENTS)),
    threads=st.integers(1, 4),
)
@settings(max_examples=25, deadline=None)
def test_order_portions_and_threads_change_nothing(
    alone: list[Any], order: list[int], portions: int, threads: int
) -> None:
    found = {}
    for first in range(0, len(order), portions):
        part = [(index, DOCUMENTS[index]) for index in order[first : first + portions]]
        found.update(verdicts(part, OPTIONS, threads=threads))
    assert [found[index] for index in range(len(DOCUMENTS))] == alone


@st.composite
def nearly_documents(draw: st.DrawFn) -> bytes:
    """A document that lost or changed a few bytes."""
    data = bytearray(draw(st.sampled_from(DOCUMENTS[:4])))
    random = Random(draw(st.integers(0, 2**32)))
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(data))
        data[place : place + random.randint(0, 2)] = random.randbytes(random.randint(0, 2))
    return bytes(data)


@given(st.lists(st.binary(max_size=60) | nearly_documents(), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_bytes_have_a_verdict_with_the_findings_of_the_engine(documents: list[bytes]) -> None:
    found = verdicts(list(enumerate(documents)), OPTIONS)
    for index, document in enumerate(documents):
        assert found[index].error is None
        errors = [finding for finding in engine.validate(document) if finding.severity is Severity.ERROR]
        if errors:
            assert list(found[index].findings[: len(errors)]) == errors
            assert found[index].dry_run is None
