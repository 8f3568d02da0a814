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
# `suite:case:reason` for each deliberate deviation.
DEVIATIONS: frozenset[str] = frozenset()


def cases() -> list[Any]:
    found = []
    for path in sorted(SUITES.rglob("*.json")):
        for number, case in enumerate(json.loads(path.read_text("utf-8"))):
            if isinstance(case, dict):
                found.append(pytest.param(case, id=f"{path.stem}:{number}"))
    return found


@pytest.mark.skipif(
    not SUITES.exists(), reason=f"the JSONLogic suites are not beside this checkout ({SUITES.name})"
)
@pytest.mark.parametrize("name", CORE_NAMES)
def test_the_suites_are_read(name: str) -> None:
    core_named(name)
    assert len(cases()) > 600


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
