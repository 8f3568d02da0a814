"""Both cores against the community's JSONLogic suites, when they are beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from peripety.sim._core import CoreError
from peripety.sim._pure.canonical import canonical
from support.cores import CORE_NAMES, core_named

SUITES = Path(__file__).parents[3] / "shared" / "data" / "jsonlogic"


def cases() -> list[Any]:
    """Every case of the suites; without them, one that says so and skips."""
    paths = sorted(SUITES.rglob("*.json"))
    if not paths:
        absent = pytest.mark.skip(reason="the JSONLogic suites are not beside this checkout")
        return [pytest.param({}, marks=absent, id="absent")]
    return [
        pytest.param(case, id=f"{path.stem}:{number}")
        for path in paths
        for number, case in enumerate(json.loads(path.read_text("utf-8")))
        # The suites hold headings between their cases.
        if isinstance(case, dict)
    ]


@pytest.mark.parametrize("name", CORE_NAMES)
@pytest.mark.parametrize("case", cases())
def test_a_core_agrees_with_the_suites(name: str, case: dict[str, Any]) -> None:
    core = core_named(name)
    logic, data = canonical(case["rule"]), canonical(case.get("data"))
    if "error" in case:
        with pytest.raises(CoreError):
            core.evaluate(logic, data)
    else:
        assert core.evaluate(logic, data) == canonical(case["result"])
