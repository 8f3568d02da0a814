"""Differential test of JSONLogic against datalogic-py, on expressions that both define in the same way.

Known deviation of datalogic-py: it computes with integers where it can, while JSONLogic has only doubles.
Beyond 2^53 such an integer is not a double, and comparisons with it may differ. The comparison then ends.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from peripety import engine as engine_api
from support.engine.backends import BACKEND_NAMES, backend_named
from support.examples import example_count

datalogic = pytest.importorskip("datalogic_py", reason="no third opinion: datalogic-py is not installed")

EXAMPLES = example_count(150)
_MAX_INTEGER = 2**53
_ITERATING = {"map", "filter", "all", "some", "none", "reduce"}
Json = Any
Expressions = st.SearchStrategy[Json]

DATA = {
    "a": 3,
    "b": -2.5,
    "zero": 0,
    "text": "abcde",
    "none": None,
    "yes": True,
    "list": [4, 1, 0, 2.5],
    "words": ["x", "abc", ""],
    "deep": {"c": {"d": [7, 8]}},
}


def call(name: str, *arguments: Expressions) -> Expressions:
    return st.tuples(*arguments).map(lambda values: {name: list(values)})


def variable(*paths: str) -> Expressions:
    return st.sampled_from(paths).map(lambda path: {"var": path})


literals = st.one_of(st.integers(-9, 9), st.sampled_from([0.5, -1.25, 100, 1e6]))
words = st.sampled_from(["", "a", "abc", "cd", "x", "word"])
element = {"var": ""}


def numbers(depth: int) -> Expressions:
    leaves = st.one_of(literals, variable("a", "b", "zero", "list.0", "deep.c.d.1"))
    if depth == 0:
        return leaves
    inner = numbers(depth - 1)
    fold = {"reduce": [{"var": "list"}, {"+": [{"var": "current"}, {"var": "accumulator"}]}, 0]}
    return st.one_of(
        leaves,
        st.sampled_from(["+", "-", "*", "min", "max"]).flatmap(lambda name: call(name, inner, inner)),
        st.sampled_from(["/", "%"]).flatmap(lambda name: call(name, inner, st.sampled_from([2, -3, 0.5]))),
        call("if", conditions(depth - 1), inner, inner),
        st.just(fold),
    )


def conditions(depth: int) -> Expressions:
    leaves = st.one_of(st.booleans(), variable("yes", "none", "zero", "text", "absent"))
    if depth == 0:
        return leaves
    inner, number = conditions(depth - 1), numbers(depth - 1)
    compared = st.sampled_from(["==", "!=", "===", "!==", "<", "<=", ">", ">="])
    return st.one_of(
        leaves,
        compared.flatmap(lambda name: call(name, number, number)),
        compared.flatmap(lambda name: call(name, texts(depth - 1), texts(depth - 1))),
        st.sampled_from(["and", "or"]).flatmap(lambda name: call(name, inner, inner)),
        st.sampled_from(["!", "!!"]).flatmap(lambda name: call(name, inner)),
        call("in", texts(depth - 1), st.one_of(texts(depth - 1), variable("words"))),
        st.sampled_from(["all", "some", "none"]).flatmap(
            lambda name: call(name, lists(depth - 1), call(">", st.just(element), literals)),
        ),
    )


def texts(depth: int) -> Expressions:
    leaves = st.one_of(words, variable("text", "words.1"))
    if depth == 0:
        return leaves
    inner = texts(depth - 1)
    return st.one_of(
        leaves,
        call("cat", inner, st.one_of(inner, st.integers(-9, 9))),
        call("substr", inner, st.integers(-4, 4), st.integers(-3, 3)),
        call("if", conditions(depth - 1), inner, inner),
    )


def lists(depth: int) -> Expressions:
    leaves = variable("list", "deep.c.d")
    if depth == 0:
        return leaves
    return st.one_of(
        leaves,
        call(
            "map",
            lists(depth - 1),
            call("*", st.just(element), numbers(0).filter(lambda n: not isinstance(n, dict))),
        ),
        call("filter", lists(depth - 1), call("<", st.just(element), literals)),
        call("merge", lists(depth - 1), numbers(depth - 1)),
    )


expressions = st.one_of(numbers(3), conditions(3), texts(3), lists(3))


def has_integer_beyond_doubles(engine: Any, logic: Json) -> bool:
    """Return True if the other engine computes an integer beyond 2^53 in any part of an expression."""

    def is_beyond(value: Json) -> bool:
        if isinstance(value, list):
            return any(map(is_beyond, value))
        return isinstance(value, int) and abs(value) > _MAX_INTEGER

    if isinstance(logic, list):
        return any(has_integer_beyond_doubles(engine, part) for part in logic)
    if not isinstance(logic, dict):
        return False
    # The body of `map` and `filter` is part of their result; alone, `var` there would name something else.
    return is_beyond(engine.compile(json.dumps(logic)).evaluate(DATA)) or any(
        has_integer_beyond_doubles(engine, parts[:1] if name in _ITERATING else parts)
        for name, parts in logic.items()
        if isinstance(parts, list)
    )


@pytest.mark.parametrize("name", BACKEND_NAMES)
def test_another_engine_gives_the_same_value(name: str) -> None:
    core = backend_named(name)
    engine = datalogic.Engine()

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(logic=expressions)
    @example(logic={"*": [1e6, {"*": [1e6, 1e6]}]})
    @example(logic={"===": [{"+": [{"*": [1e6, {"*": [1e6, 1e6]}]}, 1]}, {"*": [1e6, {"*": [1e6, 1e6]}]}]})
    def agree(logic: Json) -> None:
        ours = core.compile_rule(logic, ValueError).evaluate(DATA)
        if has_integer_beyond_doubles(engine, logic):
            return
        assert engine_api.canonicalize(ours) == engine_api.canonicalize(
            engine.compile(json.dumps(logic)).evaluate(DATA),
        )

    agree()


def test_the_known_deviation_of_the_other_engine_is_still_there() -> None:
    """If this fails, the other engine computes with doubles, and the exception above can go."""
    product = datalogic.Engine().compile('{"*": [1000000.0, 1000000.0, 1000000.0]}').evaluate({})
    assert isinstance(product, int)
