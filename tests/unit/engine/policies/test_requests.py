"""Invalid requests are refused with the location of the error; every valid request gets a decision."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from peripety import engine
from peripety.engine.policies.types import ToolRequest
from peripety.errors import InvalidArgumentError
from support.engine.policies import policy_document, rule

POLICY = engine.compile_policy(policy_document(rules=[rule()]))


def request(arguments: Any = None, roles: Any = (), tool: Any = "t", server: Any = "s") -> ToolRequest:
    return ToolRequest(server, tool, {} if arguments is None else arguments, roles)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


def doubled(times: int) -> Any:
    """A list that is small, and whose JSON would fill any memory."""
    value: Any = [1]
    for _ in range(times):
        value = [value, value]
    return value


class Unlisted(list[Any]):
    """A list that can be read, and not be written."""

    def __iter__(self) -> Any:
        raise ValueError


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        (request([]), "arguments", "object"),
        (request("a"), "arguments", "object"),
        (request(roles="admin"), "roles", "list of texts"),
        (request(roles=(1,)), "roles", "list of texts"),
        (request(roles=None), "roles", "list of texts"),
        (request(tool=None), "tool_name", "text"),
        (request(server=b"s"), "server_name", "text"),
        (request({"a": {"b": [1, 2**53]}}), "arguments.a.b[1]", "NUMBER_RANGE"),
        (request({"a": float("nan")}), "arguments.a", "NUMBER_RANGE"),
        (request({"a": [float("inf")]}), "arguments.a[0]", "NUMBER_RANGE"),
        (request({"a": nested(63)}), "arguments", "TOO_DEEP"),
        (request(itself()), "arguments", "TOO_DEEP"),
        (request({"a": nested(5000)}), "arguments", "TOO_DEEP"),
        (request({"a": {1, 2}}), "arguments.a", "NOT_JSON"),
        (request({"a": b"1"}), "arguments.a", "NOT_JSON"),
        (request({"a": MappingProxyType({})}), "arguments.a", "NOT_JSON"),
        (request({"a": "\ud800"}), "arguments.a", "LONE_SURROGATE"),
        (request({"a b": {"\udfff": 1}}), "arguments['a b']", "LONE_SURROGATE"),
        (request({"a": "x" * 70_000}), "arguments.a", "STRING_TOO_LONG"),
        (request({"x" * 300: 1}), "arguments", "KEY_TOO_LONG"),
        (request({1: "x"}), "arguments", "NOT_JSON"),
        (request({"a": {True: 1}}), "arguments.a", "NOT_JSON"),
        (request({"a": [0] * 100_001}), "arguments.a", "TOO_MANY_NODES"),
        (request({"a": ["x" * 60_000] * 20}), "", "DOCUMENT_TOO_LARGE"),
        (request({"a": [["x" * 60_000] * 300] * 300}), "arguments.a", "DOCUMENT_TOO_LARGE"),
        (request({"a": doubled(40)}), "arguments.a" + "[0]" * 24, "TOO_MANY_NODES"),
        (request({"a": [0] * 50_000}, roles=["x"] * 50_000), "", "TOO_MANY_NODES"),
        (request({"a": Unlisted([1])}), "", "NOT_JSON"),
        (request(roles=("\ud800",)), "roles[0]", "LONE_SURROGATE"),
        (request(tool="t" * 70_000), "tool_name", "STRING_TOO_LONG"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_with_its_place(given: ToolRequest, field: str, says: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        POLICY.decide_many([request(), given])
    assert refused.value.code == "REQUEST_INVALID"
    (violation,) = refused.value.violations
    assert violation.field == f"requests[1].{field}".rstrip(".")
    assert says in violation.reason


def test_a_request_that_is_wrong_only_while_it_is_read_is_refused_all_the_same() -> None:
    class Changing(dict[str, Any]):
        looks = 0

        def items(self) -> Any:
            self.looks += 1
            return [("a", float("nan") if self.looks <= 2 else 1.0)]

    with pytest.raises(InvalidArgumentError) as refused:
        POLICY.decide(request({"a": Changing(a=1)}))
    assert refused.value.code == "REQUEST_INVALID"


def test_every_request_that_is_none_is_named() -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        POLICY.prepare([request([]), request(), request("x", roles="y")])
    fields = [violation.field for violation in refused.value.violations]
    assert fields == ["requests[0].arguments", "requests[2].arguments", "requests[2].roles"]


@pytest.mark.parametrize(
    "given",
    [
        request(MappingProxyType({"a": 1})),
        request(roles=["x"]),
        request({"a": nested(62)}),
        request({"a": 1e300, "b": -0.0, "c": 2**53 - 1}),
        request({"": {"": None}, "\u0000": "\U0010ffff", "__proto__": 1}),
        request({"a": (1, 2)}),
    ],
)  # fmt: skip
def test_everything_else_is_decided_about(given: ToolRequest) -> None:
    assert POLICY.decide(given).rule_id == "r"


def test_the_limits_hold_for_each_request_and_not_for_all_of_them_together() -> None:
    requests = [request({"a": ["x"] * 50}) for _ in range(3000)]
    assert len(POLICY.decide_many(requests)) == 3000


def test_large_requests_are_decided_about_as_small_ones_are_alone_and_among_them() -> None:
    large = [
        request({"a": "x" * 20_000}),
        request({"a": ["x"] * 2000}),
        request({"b": {"a": ["x" * 100] * 90}}),
    ]
    assert POLICY.decide_many([request(), *large, request()]) == [POLICY.decide(request())] * 5
    assert [POLICY.decide(one).rule_id for one in large] == ["r"] * 3


def test_there_may_be_no_requests_at_all() -> None:
    assert POLICY.decide_many([]) == []
    (matches,) = POLICY.match_rules(POLICY.prepare([]))
    assert (matches.holds, matches.unevaluated) == (0, 0)
