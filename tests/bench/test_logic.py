"""JSONLogic alone, beside other implementations: compiled and parsed beforehand, where that is possible."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from bench.logic import DATA, RULES
from bench.measure import best, keep
from bench.peers import IMPLEMENTATIONS
from peripety import engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_evaluate(benchmark: BenchmarkFixture, name: str, rule: str) -> None:
    evaluate = _evaluate(name, rule)
    assert evaluate() == engine.evaluate(RULES[rule], DATA)
    # Reading the clock takes longer than one evaluation.
    benchmark.group = f"JSONLogic, {rule}, 100 times"
    benchmark(_repeated(evaluate), 100)


@pytest.mark.parametrize("rule", RULES)
def test_implementations_side_by_side(rule: str) -> None:
    sides = {}
    for name in IMPLEMENTATIONS:
        try:
            sides[name] = _repeated(IMPLEMENTATIONS[name](RULES[rule], DATA))
        except ModuleNotFoundError:
            sys.stdout.write(f"\n{name}: skipped (not installed; `make bench` installs it)\n")
    keep("JSONLogic", scenario=rule, **best(sides))


def _evaluate(name: str, rule: str) -> Callable[[], Any]:
    try:
        return IMPLEMENTATIONS[name](RULES[rule], DATA)
    except ModuleNotFoundError:
        pytest.skip(f"{name} is not installed; `make bench` installs it")


def _repeated(evaluate: Callable[[], Any]) -> Callable[[int], int]:
    def work(times: int) -> int:
        for _ in range(times):
            evaluate()
        return times

    return work
