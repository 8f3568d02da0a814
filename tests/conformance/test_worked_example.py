"""The worked example of docs/tutorials/first-scenario.md: its specification and the output of the engine."""

from __future__ import annotations

import json

import pytest

from conformance.worked_example import DRAWING, PAGE, SPEC, drawn, example
from peripety import engine
from support.engine.backends import BACKEND_NAMES, backend_named, program_on
from support.repo.repository import document_shown


def test_the_parts_that_are_explained_are_all_there_is() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("\n## A specification, part by part\n")[2].partition("\n## ")[0]
    assert document_shown(section) == json.loads(SPEC.read_text(encoding="utf-8"))


@pytest.mark.slow(reason="measures a whole scenario for its drawing")
@pytest.mark.parametrize("name", BACKEND_NAMES)
def test_a_core_gives_the_drawing(name: str) -> None:
    assert drawn(program_on(backend_named(name), SPEC.read_bytes())) == DRAWING.read_bytes()


def test_the_worked_example_is_what_the_engine_says() -> None:
    backend_named("native")
    if engine.BACKEND != "native":
        pytest.skip("so many runs take the reference core minutes")
    files = example()
    assert {path: path.read_bytes() for path in files} == files
