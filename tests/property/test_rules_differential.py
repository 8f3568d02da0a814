"""Rules on both cores over Python objects of any kind, including those that are not JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.engine.backend_protocol import EngineError
from support.engine.backends import backend_named
from support.examples import example_count

if TYPE_CHECKING:
    from collections.abc import Callable


EXAMPLES = example_count(150, times=2)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**53 - 2, 2**53 + 1),
    st.floats(),
    st.text(st.characters(), max_size=4),
    st.sampled_from(["\ud800", "a" * 257, b"[1]", b"?", {1}, 1j, ..., object]),
)
objects = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(max_size=2), scalars.filter(lambda key: key != {1})),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=20,
)


def outcome(call: Callable[[], Any]) -> tuple[str, ...]:
    try:
        return (repr(call()),)
    except EngineError as error:
        return (error.code, error.message, error.path)


@settings(max_examples=EXAMPLES, deadline=None)
@given(logic=objects, over=objects)
def test_any_objects_have_the_same_value_or_error(logic: Any, over: Any) -> None:
    def evaluated(name: str) -> list[tuple[str, ...]]:
        core = backend_named(name)
        whole = core.compile_rule({"var": ""}, EngineError)
        return [
            outcome(lambda: whole.evaluate(over)),
            outcome(lambda: whole.evaluate(core.parse_data(over, EngineError))),
            outcome(lambda: core.compile_rule(logic, EngineError).evaluate(over)),
        ]

    assert evaluated("native") == evaluated("python")
