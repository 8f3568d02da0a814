"""A short differential run, and whether the long one, `make fuzz-diff`, would find what it looks for."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from fuzz import comparison, differential
from fuzz.comparison import is_valid
from fuzz.differential import Found, Work, compare_expressions, compare_scenario, minimised
from fuzz.shrink import shrunk
from peripety.engine._backend import load_backend
from peripety.engine.backend_protocol import EngineError
from support.engine.backends import backend_named
from support.engine.seeded_specs import SHAPES, random_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.engine.backend_protocol import Backend


@pytest.mark.parametrize("shape", SHAPES)
def test_random_scenarios_of_every_shape_are_mostly_valid(shape: str) -> None:
    specs = [random_spec(seed, shape=shape) for seed in range(10)]
    assert sum(map(is_valid, specs)) >= 9
    assert specs == [random_spec(seed, shape=shape) for seed in range(10)]


@pytest.mark.slow(reason="plays hundreds of scenarios")
def test_random_scenarios_reach_what_can_happen_in_them() -> None:
    codes, ends = set(), set()
    for seed in range(100):
        spec = random_spec(seed, shape="growing" if seed < 8 else "failing" if seed < 40 else None)
        program = load_backend("python").compile(json.dumps(spec).encode("utf-8"))
        options = {"runs": 2, "first_run": 0, "seed": "7", "persona": "random", "horizon": 30}
        report = json.loads(program.dry_run(json.dumps(options).encode("utf-8")))
        codes |= {error["code"] for error in report["errors"]}
        ends |= {end for end in ("lost", "won", "survived", "errored") if report[end]}
    assert ends == {"lost", "won", "survived", "errored"}
    assert codes >= {
        "DIVISION_BY_ZERO",
        "EMPTY_ARRAY",
        "INVALID_ARGUMENTS",
        "MISSING_PATH",
        "NOT_A_NUMBER",
        "NUMERIC_RANGE",
        "STATE_LIMIT",
        "TYPE_MISMATCH",
    }


@pytest.mark.slow(reason="plays many random scenarios; the properties of the cores have fast ones")
def test_both_cores_do_the_same_in_random_scenarios() -> None:
    backend_named("native")
    work = Work()
    for number in range(12):
        work += compare_scenario(7, number)
    assert work.found is None
    assert work.steps > 100
    assert work.dry_steps > 500


def test_both_cores_give_random_expressions_the_same_value_or_error() -> None:
    backend_named("native")
    assert compare_expressions(7, 0, 1500) == Work(expressions=1500)


class WrongCore:
    """A core that takes 3 for 4."""

    name = "native"

    def __init__(self, core: Backend) -> None:
        self.core = core

    def compile(self, document: bytes) -> Any:
        return self.core.compile(document.replace(b'"value":3', b'"value":4'))

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        return self.core.evaluate(logic.replace(b"3", b"4"), data)


class CrashingCore(WrongCore):
    """A core that fails in its own way."""

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        if b"3" in logic:
            raise RecursionError
        return self.core.evaluate(logic, data)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[WrongCore]], None]:
    """Puts another core beside the reference, and gives its differences little time to become small."""
    monkeypatch.setattr(differential, "SHRINKING_SECONDS", 5)
    reference = load_backend("python")
    return lambda other: monkeypatch.setattr(
        comparison,
        "cores",
        lambda: {"python": reference, "native": other(reference)},
    )


def first_difference(works: Iterator[Work]) -> Found:
    return next(work.found for work in works if work.found)


@pytest.mark.slow(reason="makes a scenario small by hundreds of runs")
def test_a_scenario_that_is_played_differently_is_found_and_made_small(
    beside: Callable[[type[WrongCore]], None],
) -> None:
    beside(WrongCore)
    found = first_difference(compare_scenario(1, number) for number in range(50))
    small = minimised(found)
    assert len(json.dumps(small.case)) < len(json.dumps(found.case)) / 2
    assert is_valid(small.case["spec"])
    assert '"value": 3' in json.dumps(small.case)


@pytest.mark.parametrize(("core", "shown"), [(WrongCore, "python"), (CrashingCore, "crash")])
def test_an_expression_that_differs_is_found_and_made_small(
    beside: Callable[[type[WrongCore]], None],
    core: Any,
    shown: str,
) -> None:
    beside(core)
    small = minimised(first_difference(compare_expressions(1, number, 500) for number in range(20)))
    assert small.case == {"logic": "3", "data": small.case["data"]} or len(small.case["logic"]) < 12
    assert shown in small.results


def test_the_smallest_part_with_the_property_is_kept() -> None:
    random = Random(7)
    case = {"spec": [{"id": n, "more": [random.random()] * 5} for n in range(40)], "rest": {"x": [2]}}

    def has_property(candidate: Any) -> bool:
        spec = candidate["spec"]
        return isinstance(spec, list) and any(
            isinstance(item, dict) and item.get("id") == 23 for item in spec
        )

    assert shrunk(case, has_property, 10) == {"spec": [{"id": 23}], "rest": []}


def test_a_refusal_is_a_result_to_compare() -> None:
    def refuse() -> None:
        raise EngineError("CODE", "message", "/path")

    assert comparison.outcome(refuse) == ("CODE", "message", "/path")
