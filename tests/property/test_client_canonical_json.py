"""The canonical form of the Python client is that of the engine."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from peripety import engine
from peripety.client.transcript import canonical_json

values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@example(value=[2.0**53, 1e20 / 3, 1e21, 1e-6, 1e-7, 5e-324, -0.0, 0.1 + 0.2, 123456789012345680000.0])
@example(value={"\U0001f600": 1.0, "\ufb33": 2.0, "\u2028\x7f\x1f": '\b\t\n\f\r"\\'})
@given(value=values)
def test_canonical_form_is_that_of_the_engine(value: Any) -> None:
    assert canonical_json(value) == engine.canonicalize(value)
