"""Certificates are the same bytes on both cores, and those that the repository shows."""

from __future__ import annotations

import pytest

from conformance.certificates import GOLDEN, SPEC, example, golden
from peripety import engine
from support.engine.backends import BACKEND_NAMES, backend_named, program_on


@pytest.mark.slow_after(1, reason="measures whole certificates")
@pytest.mark.parametrize("name", sorted(BACKEND_NAMES))
def test_a_core_gives_the_golden_certificate(name: str) -> None:
    assert golden(program_on(backend_named(name), SPEC.read_bytes())) == GOLDEN.read_bytes()


def test_the_worked_example_is_what_the_engine_says() -> None:
    backend_named("native")
    if engine.BACKEND != "native":
        pytest.skip("so many runs take the reference core minutes; that both agree is shown above")
    files = example()
    assert {path: path.read_bytes() for path in files} == files
