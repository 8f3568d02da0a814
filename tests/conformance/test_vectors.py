"""Both cores against the golden vectors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.engine.backends import BACKEND_NAMES, backend_named
from support.engine.vectors import KINDS, VECTORS, expectation


def cases() -> list[Any]:
    found = []
    for path in sorted(VECTORS.glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        found += [
            pytest.param(document["kind"], case, id=f"{path.stem}:{case['name']}")
            for case in document["cases"]
        ]
    return found


@pytest.mark.parametrize("name", BACKEND_NAMES)
@pytest.mark.parametrize(("kind", "case"), cases())
def test_a_core_gives_what_the_vector_says(name: str, kind: str, case: dict[str, Any]) -> None:
    assert expectation(backend_named(name), kind, case) == case["expect"]


def test_there_are_vectors_of_every_kind() -> None:
    kinds = {json.loads(path.read_text("utf-8"))["kind"] for path in VECTORS.glob("*.json")}
    assert kinds == KINDS.keys()
