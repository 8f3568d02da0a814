"""Both cores against public JSONLogic suites, when they are beside the checkout.

`PERIPETY_JSONLOGIC_SUITES` names another folder of suites. Deliberate deviations from a suite are listed in
`jsonlogic_deviations.json` as `suite:case:reason`, the suite being its path in that folder, the case its
index in the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine._reference.jsonlogic_operators import OPERATORS
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from support.engine.backends import BACKEND_NAMES, backend_named

if TYPE_CHECKING:
    from collections.abc import Iterator


SUITES = Path(
    os.environ.get("PERIPETY_JSONLOGIC_SUITES")
    or Path(__file__).parents[3] / "shared" / "data" / "jsonlogic",
)
DEVIATIONS: dict[str, str] = dict(
    entry.rsplit(":", 1)
    for entry in json.loads((Path(__file__).parent / "jsonlogic_deviations.json").read_text("utf-8"))
)


def cases() -> list[Any]:
    """Return every case of the suites that applies; without suites, one skipped case with the reason."""
    found = [
        pytest.param(case, id=name, marks=deviation(name))
        for path in sorted(SUITES.rglob("*.json"))
        for number, entry in enumerate(json.loads(path.read_text("utf-8")))
        for name in [f"{path.relative_to(SUITES).with_suffix('')}:{number}"]
        for case in read(entry)
        if applies(case)
    ]
    absent = pytest.mark.skip(reason="the JSONLogic suites are not beside this checkout")
    return found or [pytest.param({}, marks=absent, id="absent")]


def deviation(name: str) -> list[pytest.MarkDecorator]:
    """A deliberate deviation is an expected failure: an entry without one is out of date, and fails."""
    return [pytest.mark.xfail(reason=DEVIATIONS[name])] if name in DEVIATIONS else []


def read(entry: Any) -> Iterator[dict[str, Any]]:
    """The case of an entry: an object, or as the first suite had it; the rest are headings."""
    match entry:
        case {"rule": _}:
            yield entry
        case [rule, data, result]:
            yield {"rule": rule, "data": data, "result": result}


def applies(case: dict[str, Any]) -> bool:
    """Return True if a case uses only JSONLogic: no operators of one engine, no templates."""
    return "error" in case or not (case.get("templating") or set(operators(case["rule"])) - set(OPERATORS))


def operators(logic: Any) -> Iterator[str]:
    """The names that stand where operators do."""
    if isinstance(logic, dict) and len(logic) == 1:
        yield next(iter(logic))
    for inner in logic.values() if isinstance(logic, dict) else logic if isinstance(logic, list) else ():
        yield from operators(inner)


@pytest.mark.parametrize("name", BACKEND_NAMES)
@pytest.mark.parametrize("case", cases())
def test_a_core_agrees_with_the_suites(name: str, case: dict[str, Any]) -> None:
    core = backend_named(name)
    if "error" in case:
        with pytest.raises(EngineError):
            core.compile_rule(case["rule"], EngineError).evaluate(case.get("data"))
    else:
        value = core.compile_rule(case["rule"], EngineError).evaluate(
            core.parse_data(case.get("data"), EngineError),
        )
        assert canonicalize(value) == canonicalize(case["result"])


def test_a_deviation_is_one_line_that_gives_its_reason() -> None:
    entries = json.loads((Path(__file__).parent / "jsonlogic_deviations.json").read_text("utf-8"))
    assert len(DEVIATIONS) == len(entries)
    for entry in entries:
        suite, case, reason = entry.split(":")
        assert suite
        assert case.isdigit()
        assert len(reason) > 20, entry
