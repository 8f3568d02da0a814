"""JSONLogic on both cores, expressions that no scenario would be allowed included: what is malformed, what
coerces, what costs too much. `test_engine_differential` has the expressions of valid scenarios.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.engine._reference.jsonlogic_operators import OPERATORS
from peripety.engine.backend_protocol import EngineError
from support.engine.backends import backend_named
from support.engine.seeded_specs import NAMES, NUMBER_LIKE, PATHS
from support.examples import example_count

if TYPE_CHECKING:
    from peripety.engine.backend_protocol import Backend


EXAMPLES = example_count(150, times=4)
thorough = settings(max_examples=EXAMPLES, deadline=None)

scalars = st.one_of(
    st.sampled_from(
        [None, True, False, 0, -0.0, 1, 2, -1, 0.5, 0.1, 1e21, 1e-7, 1.7e308, 5e-324, 2.0**53 - 1],
    ),
    st.sampled_from([*PATHS, *NUMBER_LIKE]),
    st.floats(allow_nan=False, allow_infinity=False),
)
data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
)


def _operations(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arguments = st.one_of(st.lists(inner, max_size=4), st.lists(inner, min_size=2, max_size=3), inner)
    usual = st.dictionaries(st.sampled_from(sorted(OPERATORS)), arguments, min_size=1, max_size=1)
    odd = st.dictionaries(st.sampled_from(["nope", "x" * 50, "+", "var"]), arguments, max_size=2)
    return st.one_of(usual, usual, usual, odd, st.lists(inner, max_size=3))


variables = st.sampled_from(PATHS).map(lambda path: {"var": path})
expressions = st.recursive(st.one_of(data, variables), _operations, max_leaves=12)

CURRENT, TOTAL = {"var": "current"}, {"var": "accumulator"}
appetites: list[Any] = [
    {"var": ""},
    [TOTAL],
    {"cat": [TOTAL, TOTAL, "é"]},
    {"merge": [TOTAL, TOTAL]},
    {"+": [CURRENT, TOTAL]},
    {"in": ["b", {"var": "text"}]},
    {"===": [{"var": "items"}, {"var": "items"}]},
    {"map": [{"var": ""}, {"var": ""}]},
    {"substr": [{"cat": [CURRENT, CURRENT]}, 1, -1]},
]


def verdict(core: Backend, logic: Any, over: Any) -> bytes | tuple[str, str, str]:
    try:
        return core.evaluate(json.dumps(logic).encode("utf-8"), json.dumps(over).encode("utf-8"))
    except EngineError as error:
        return (error.code, error.message, error.path)


def assert_same_verdict(logic: Any, over: Any) -> None:
    assert verdict(backend_named("native"), logic, over) == verdict(backend_named("python"), logic, over)


@thorough
@given(logic=expressions, over=data)
def test_any_expression_has_the_same_value_or_error(logic: Any, over: Any) -> None:
    assert_same_verdict(logic, over)


@thorough
@given(logic=expressions, over=data)
def test_a_rule_says_the_same_over_plain_objects_and_over_parsed_data(logic: Any, over: Any) -> None:
    verdicts = []
    for core in map(backend_named, ("native", "python")):
        rule = core.compile_rule(logic, EngineError)
        for given_data in (over, core.parse_data(over, EngineError)):
            try:
                verdicts.append(repr(rule.evaluate(given_data)))
            except EngineError as error:
                verdicts.append(repr((error.code, error.message, error.path)))
    assert len(set(verdicts)) == 1, verdicts


@thorough
@given(
    count=st.sampled_from([0, 1, 30, 60, 64, 65, 99, 130, 1000, 4000]),
    element=st.sampled_from([0, "x", "y" * 1500, [1, 2]]),
    body=st.sampled_from(appetites),
    start=st.sampled_from([0, "", [], None]),
    operator=st.sampled_from(["reduce", "map", "filter", "all", "some", "none"]),
)
def test_budgets_run_out_at_the_same_step(
    count: int,
    element: Any,
    body: Any,
    start: Any,
    operator: str,
) -> None:
    over = {"items": [element] * min(count, 60_000 // len(str(element))), "text": "a" * 3000}
    assert_same_verdict({operator: [{"var": "items"}, body, start]}, over)
    assert_same_verdict({"and": [{operator: [{"var": "items"}, body, start]}, {"var": "text"}]}, over)
