"""The native core against the reference, to the byte: who decides, what fails, what rules hold for."""

from __future__ import annotations

import enum
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.policies import compare_policy
from peripety import engine
from peripety.engine._reference.policy_values import EntrySet
from peripety.engine.backend_protocol import EngineError
from peripety.engine.policies.requests import encode_requests
from peripety.engine.policies.types import ToolRequest
from support.engine.backends import backend_named
from support.engine.policies import policy_spec, rule
from support.engine.policy_generators import PIECES
from support.examples import example_count

EXAMPLES = example_count(100)
thorough = settings(max_examples=EXAMPLES, deadline=None)

KINDS = ("path", "domain", "email", "identifier")
pieces = st.sampled_from(sorted({piece for some in PIECES.values() for piece in some}))
texts = st.one_of(st.lists(pieces, max_size=7).map("".join), st.text(max_size=8))


class Word(enum.StrEnum):
    """A text that is not exactly one."""

    A = "a"


@pytest.mark.slow(reason="decides with many random policies")
@thorough
@given(seed=st.integers(0, 2**32))
def test_random_policies_decide_the_same(seed: int) -> None:
    backend_named("native")
    assert compare_policy(seed, 0) is None


@thorough
@given(kind=st.sampled_from(KINDS), among=st.lists(texts, min_size=1), values=st.lists(texts, min_size=1))
def test_texts_are_read_and_compared_the_same(kind: str, among: list[str], values: list[str]) -> None:
    among = [entry for entry in among if _is_entry(kind, entry)] or ["/a" if kind == "path" else "a.b"]
    if not all(_is_entry(kind, entry) for entry in among):
        among = ["a@a.b"]
    matcher = {"argument_roles": ["target"], "kind": kind, "among": among}
    document = engine.canonicalize(policy_spec(rules=[rule("r", "deny", arguments=[matcher])]))
    asked = encode_requests([ToolRequest("s", "t", {"a": value}) for value in values])
    results = []
    for name in ("python", "native"):
        policy = backend_named(name).compile_policy(document)
        read = policy.parse_requests(asked)
        told = [policy.explain_errors(read, number) for number in range(len(values))]
        results.append((policy.decide_many(read), policy.match_rules(read, None), told))
    assert results[0] == results[1]


def _is_entry(kind: str, text: str) -> bool:
    try:
        EntrySet(kind, [text])
    except EngineError:
        return False
    return not text.startswith("@")


odd_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.just("\ud800"),
    st.just("x" * 60_000),
    st.just(Word.A),
)
odd_values = st.recursive(
    odd_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.one_of(texts, st.integers(0, 3), st.just(Word.A)), inner, max_size=2),
    ),
    max_leaves=5,
)


@thorough
@given(
    arguments=st.dictionaries(st.sampled_from(["a", "b"]), odd_values),
    roles=st.one_of(
        st.lists(texts, max_size=2),
        st.lists(st.one_of(texts, st.just(Word.A)), max_size=2).map(tuple),
    ),
)
def test_requests_as_they_are_mean_what_their_json_means(arguments: dict[str, Any], roles: Any) -> None:
    logic = {"in": ["a", {"cat": [{"var": "arguments.a"}, {"var": "arguments.b"}, {"var": "roles"}]}]}
    matcher = {"argument_roles": ["target"], "kind": "identifier", "among": ["a"]}
    rules = [rule("r", "deny", arguments=[matcher]), rule("q", "deny", logic=logic)]
    policy = backend_named("native").compile_policy(engine.canonicalize(policy_spec(rules=rules)))
    request = ToolRequest("s", "t", arguments, roles)
    read = policy.prepare([request])
    if read is not None:
        from_json = policy.parse_requests(encode_requests([request]))
        assert policy.decide_many(read) == policy.decide_many(from_json)
        assert policy.match_rules(read, None) == policy.match_rules(from_json, None)
        assert policy.explain_errors(read, 0) == policy.explain_errors(from_json, 0)
    decided = policy.decide_one(request)
    found = policy.decide_many_fast([request])
    assert found is not None
    each, left = found
    assert left == (b"\1" if decided is None else b"")
    if decided is not None:
        assert each == pack("<i", decided)
        assert policy.decide_many(policy.parse_requests(encode_requests([request]))) == (each, b"")


def test_ordinary_requests_are_read_as_they_are_and_unusual_ones_are_left() -> None:
    policy = backend_named("native").compile_policy(
        engine.canonicalize(policy_spec(rules=[rule("r", "deny")]))
    )
    ordinary = ToolRequest("s", "t", {"a": ["x", 1, 0.5, None, True, {"b": {}}]}, ("r",))
    assert policy.prepare([ordinary] * 3) is not None
    assert policy.decide_one(ordinary) == 0
    assert policy.decide_many_fast([ordinary] * 200) == (bytes(800), b"")
    deep: Any = []
    for _ in range(63):
        deep = [deep]
    for arguments in (
        {"a": 2**53},
        {"a": float("nan")},
        {"a": deep},
        {1: 2},
        {"a": "x" * 60_000},
        {"a": "\ud800"},
    ):
        unusual = ToolRequest("s", "t", arguments)  # type: ignore[arg-type]
        assert policy.prepare([ordinary, unusual]) is None
        assert policy.decide_one(unusual) is None
        assert policy.decide_many_fast([ordinary, unusual, ordinary]) == (pack("<3i", 0, -1, 0), b"\2")
    long = ToolRequest("s", "t", {}, ("r" * 300,))
    assert (policy.prepare([long]), policy.decide_one(long)) == (None, None)
