from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine._reference.jsonlogic import FUEL, Evaluation
from peripety.engine.backend_protocol import EngineError

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


def run(core: Backend, logic: Any, data: Any = None) -> Any:
    return json.loads(core.evaluate(json.dumps(logic).encode(), json.dumps(data).encode()))


@pytest.mark.parametrize(
    ("logic", "data", "value"),
    [
        ({"if": [{}, "yes", "no"]}, None, "yes"),
        ({"!!": [{}]}, None, True),
        ({"!!": [[]]}, None, False),
        ({"and": []}, None, False),
        ({"or": []}, None, False),
        ({"+": ["1", 2, True, None, ""]}, None, 4),
        ({"-": [0]}, None, 0),
        ({"*": []}, None, 1),
        ({"%": [-7, 3]}, None, -1),
        ({"/": [2]}, None, 0.5),
        ({"max": {"merge": [[1, 4], 2]}}, None, 4),
        ({"cat": [1.0, "|", 1e21, "|", None, "|", True, "|", [1, [2]]]}, None, "1|1e+21||true|1,2"),
        ({"substr": ["a😀b", 1, 1]}, None, "😀"),
        ({"substr": ["abcdef", -3, -1]}, None, "de"),
        ({"<": ["\ufb33", "\U0001f600"]}, None, True),
        ({"===": [{"var": "a"}, {"var": "b"}]}, {"a": [1, {"k": 2}], "b": [1, {"k": 2}]}, True),
        ({"in": [[1], [[1], 2]]}, None, True),
        ({"in": [1, "12"]}, None, False),
        ({"var": "a.1.b"}, {"a": [0, {"b": 5}]}, 5),
        ({"var": "a[1].b"}, {"a": [0, {"b": 5}]}, 5),
        ({"var": 'a["odd key"]'}, {"a": {"odd key": 6}}, 6),
        ({"var": "a[x"}, {"a[x": 7}, 7),
        ({"var": ["a", 9]}, {"a": None}, None),
        ({"var": ["b", 9]}, {"a": None}, 9),
        ({"missing": ["a", "b"]}, {"a": "", "b": 0}, ["a"]),
        ({"missing_some": [1, ["a", "b"]]}, {"a": 1}, []),
        ({"reduce": [[1, 2, 3], {"+": [{"var": "current"}, {"var": "accumulator"}]}]}, None, 6),
        ({"map": [{"var": "none"}, 1]}, {}, []),
    ],
)
def test_decisions_of_the_dialect(core: Backend, logic: Any, data: Any, value: Any) -> None:
    assert run(core, logic, data) == value


@pytest.mark.parametrize(
    ("logic", "code"),
    [
        ({"nope": 1}, "UNKNOWN_OPERATOR"),
        ({"+": [1], "-": [1]}, "UNKNOWN_OPERATOR"),
        ({"/": [1, 0]}, "DIVISION_BY_ZERO"),
        ({"%": [1, 0]}, "DIVISION_BY_ZERO"),
        ({"*": [1e308, 10]}, "NUMERIC_RANGE"),
        ({"<": [1, "A"]}, "NOT_A_NUMBER"),
        ({"==": [[1], 1]}, "NOT_A_NUMBER"),
        ({"+": ["1abc"]}, "NOT_A_NUMBER"),
        ({"max": []}, "INVALID_ARGUMENTS"),
        ({"min": ["a"]}, "INVALID_ARGUMENTS"),
        ({"all": [None, True]}, "INVALID_ARGUMENTS"),
        ({"cat": [{}]}, "INVALID_ARGUMENTS"),
        ({"if": 5}, "INVALID_ARGUMENTS"),
    ],
)
def test_errors_have_stable_codes(core: Backend, logic: Any, code: str) -> None:
    with pytest.raises(EngineError) as caught:
        run(core, logic)
    assert caught.value.code == code


def doubling(items: int) -> Any:
    accumulator = {"var": "accumulator"}
    return {"reduce": [list(range(items)), {"cat": [accumulator, accumulator]}, "aa"]}


@pytest.mark.parametrize(
    "logic",
    [
        doubling(24),
        {"reduce": [list(range(64)), [{"var": "accumulator"}, {"var": "accumulator"}], 1]},
        {"reduce": [list(range(40)), {"merge": [{"var": "accumulator"}, {"var": "accumulator"}]}, [1]]},
        {"map": [list(range(200)), {"map": [list(range(200)), {"+": [1, 1]}]}]},
        {"merge": [{"var": "big"}] * 9000},
        {"max": {"var": "big"}},
        {"missing": {"var": "big"}},
        {"cat": [{"substr": ["a" * 60_000, 0]}, {"substr": ["b" * 60_000, 0]}]},
    ],
)
def test_no_rule_costs_more_than_its_budget(core: Backend, logic: Any) -> None:
    with pytest.raises(EngineError) as caught:
        run(core, logic, {"big": [1] * 10_001})
    assert caught.value.code == "FUEL_EXHAUSTED"


@pytest.mark.parametrize(
    ("logic", "steps"),
    [
        ({"+": {"var": "a"}}, 5),
        ({"+": [1, "x"]}, 3),
        ({"map": [{"var": "a"}, {"nope": []}]}, 4),
        ({"map": [list(range(200)), {"map": [list(range(200)), 1]}]}, FUEL + 612),
    ],
)
def test_the_steps_of_an_evaluation_are_known_whether_it_succeeds_or_fails(logic: Any, steps: int) -> None:
    evaluation = Evaluation()
    with suppress(EngineError):
        evaluation.evaluate_whole(logic, {"a": [1.0, 2.0]})
    assert evaluation.total_cost == steps


def test_values_nested_by_a_rule_are_bounded_and_never_overflow_the_stack(core: Backend) -> None:
    nest = {"reduce": [list(range(3000)), {"var": ""}, 1]}
    for logic in ({"===": [nest, nest]}, nest, {"in": [nest, [nest]]}):
        with pytest.raises(EngineError) as caught:
            run(core, logic)
        assert caught.value.code in {"FUEL_EXHAUSTED", "TOO_DEEP"}


def test_a_long_path_costs_an_iterator_no_more_than_a_short_one(core: Backend) -> None:
    # Taken apart and followed to its end for each element, it would take a minute.
    logic = {"map": [{"var": "list"}, {"var": "a[0]" + ".aa" * 20_000}]}
    started = time.process_time()
    assert run(core, logic, {"list": [0] * 4_000}) == [None] * 4_000
    assert time.process_time() - started < 10
