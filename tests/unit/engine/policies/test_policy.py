"""A compiled policy for its callers: who decided, why, and what could not be evaluated."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from peripety import engine
from peripety.engine.policies.policy import Policy
from peripety.engine.policies.types import (
    NO_RULE,
    UNKNOWN_TOOL,
    ConditionError,
    Decision,
    RuleMatches,
    ToolRequest,
)
from peripety.errors import InvalidArgumentError
from support.engine.backends import BACKEND_NAMES, backend_named
from support.engine.policies import policy_document, rule, tool

BELOW = {"argument_roles": ["target"], "kind": "path", "among": ["/a"]}
RULES = [
    rule("r0", "allow", arguments=[BELOW]),
    rule("r1", "escalate", roles=["x"]),
    rule("r2", "deny", roles=["y"]),
]
INVARIANTS = [rule("structural-0", "deny", arguments=[{**BELOW, "among": ["/a/b"], "quantifier": "any"}])]


def compiled(name: str, **parts: Any) -> Policy:
    core = backend_named(name)
    document = core.parse(policy_document(**{"rules": RULES, "invariants": INVARIANTS, **parts}))
    return Policy(document, core.compile_policy(document))


def asks(a: Any = None, *roles: str, tool_name: str = "t") -> ToolRequest:
    return ToolRequest("s", tool_name, {} if a is None else {"a": a}, roles)


@pytest.fixture(params=BACKEND_NAMES)
def policy(request: pytest.FixtureRequest) -> Policy:
    """The policy on each core in turn."""
    return compiled(request.param)


def test_the_rule_that_decides_is_named_with_its_reason(policy: Policy) -> None:
    decided = policy.decide(asks("/a"))
    assert (decided.decision, decided.rule_id, decided.by_invariant) == (Decision.ALLOW, "r0", False)
    assert decided.reasons == ("so says r0",)
    assert decided.errors == ()


def test_an_invariant_that_decides_is_told_from_a_rule(policy: Policy) -> None:
    decided = policy.decide(asks("/a/b/c", "x"))
    assert (decided.decision, decided.rule_id, decided.by_invariant) == (Decision.DENY, "structural-0", True)


def test_a_tool_that_is_not_there_is_denied_by_the_invariant_of_every_policy(policy: Policy) -> None:
    decided = policy.decide(asks("/a", tool_name="u"))
    assert (decided.decision, decided.rule_id, decided.by_invariant) == (Decision.DENY, UNKNOWN_TOOL, True)


def test_without_a_rule_that_takes_hold_it_is_denied_by_none(policy: Policy) -> None:
    decided = policy.decide(asks())
    assert (decided.decision, decided.rule_id, decided.by_invariant) == (Decision.DENY, NO_RULE, False)
    assert decided.reasons == ("no rule takes hold",)


def test_what_could_not_be_evaluated_is_told_before_the_reason(policy: Policy) -> None:
    decided = policy.decide(asks(["/x", "a secret"], "x"))
    assert (decided.decision, decided.rule_id) == (Decision.DENY, "structural-0")
    (error,) = decided.errors
    message = "a path has to be absolute: to begin with / and have no U+0000"
    assert error == ConditionError("structural-0", "BAD_PATH", message, "/when/arguments/0")
    assert decided.reasons == (
        f"the condition of structural-0 cannot be evaluated: {message}",
        "so says structural-0",
    )


def test_a_request_is_told_the_same_alone_among_others_and_read_before(policy: Policy) -> None:
    known = [asks("/a"), asks("x"), asks(tool_name="u"), asks(["/x", 1], "x"), asks(None, "y"), asks()]
    requests = known * 30
    told = policy.decide_many(policy.prepare(requests))
    assert policy.decide_many(requests) == told
    assert [policy.decide(request) for request in requests] == told
    assert [bool(one.errors) for one in told[: len(known)]] == [False, True, False, True, False, False]


class Listing(list[Any]):
    """A list that finds out what it holds when it is gone through."""

    def __iter__(self) -> Any:
        return iter(["/a", "/a/b"])


class Twin(str):
    """A key that is equal to no other, with whatever letters."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def test_an_object_of_a_subclass_is_decided_about_as_its_json(policy: Policy) -> None:
    for request in (asks(Listing()), asks(Listing(["/c"])), ToolRequest("s", "t", {Twin("a"): "/a/b"})):
        told = [policy.decide(request), *policy.decide_many([request, request])]
        told += policy.decide_many(policy.prepare([request]))
        assert [one.rule_id for one in told] == ["structural-0"] * 4


def test_keys_that_are_two_to_python_and_one_in_json_are_refused(policy: Policy) -> None:
    request = ToolRequest("s", "t", {Twin("a"): "/a/b", Twin("a"): "/a"})
    for decide in (lambda: policy.decide(request), lambda: policy.decide_many([asks(), request])):
        with pytest.raises(InvalidArgumentError, match="DUPLICATE_KEY"):
            decide()


@pytest.mark.parametrize("odd", [None, {}, "x" * 6000, "x" * 60_000])
def test_requests_may_come_from_what_can_be_gone_through_once(policy: Policy, odd: Any) -> None:
    requests = [asks("/a"), asks(odd, "x"), asks("/a/b")]
    told = policy.decide_many(requests)
    assert policy.decide_many(iter(requests)) == told  # type: ignore[arg-type]
    prepared = policy.prepare(iter(requests))  # type: ignore[arg-type]
    assert policy.decide_many(prepared) == told
    assert len(prepared) == 3


def test_no_message_quotes_what_a_request_holds(policy: Policy) -> None:
    told = repr(
        [policy.decide(asks(value, "x")).reasons for value in ("secret", ["/a", "secret"], {"secret": 1})],
    )
    assert "secret" not in told


def test_the_rules_are_numbered_with_the_invariants_before_them(policy: Policy) -> None:
    assert [one["id"] for one in policy.rules] == ["structural-0", "r0", "r1", "r2"]
    requests = policy.prepare([asks("/a"), asks("/a/b"), asks(None, "y"), asks(), asks(tool_name="u")])
    assert [*policy.find_deciding_rules(requests)] == [1, 0, 3, -1, -2]


def test_rules_are_matched_wherever_they_stand_and_mutants_with_them(policy: Policy) -> None:
    requests = policy.prepare([asks("/a/b"), asks("x"), asks("/c", "x")])
    assert policy.match_rules(requests)[:3] == (
        RuleMatches(0b001, 0b010),
        RuleMatches(0b001, 0b010),
        RuleMatches(0b100, 0),
    )
    mutant = rule("m", arguments=[{**BELOW, "quantifier": "none"}])
    assert policy.match_rules(requests, [mutant]) == (RuleMatches(0b100, 0b010),)
    assert policy.match_rules(requests, []) == ()


@pytest.mark.parametrize("name", BACKEND_NAMES)
def test_requests_that_were_read_once_are_good_for_every_policy_with_the_same_tools(name: str) -> None:
    requests = compiled(name).prepare([asks("/a"), asks("/c", "x"), asks(tool_name="u")])
    other = compiled(name, rules=[rule("other", "deny")], invariants=[])
    assert [one.rule_id for one in other.decide_many(requests)] == ["other", "other", UNKNOWN_TOOL]


def test_requests_that_were_read_for_other_tools_are_never_decided_about(policy: Policy) -> None:
    others = [tool("u"), tool("t")]
    requests = compiled("python", tools=others, rules=[], invariants=[]).prepare([asks("/a")])
    for ask in (policy.decide_many, policy.find_deciding_rules, policy.match_rules):
        with pytest.raises(ValueError, match="other tools"):
            ask(requests)


@pytest.mark.parametrize("name", BACKEND_NAMES)
def test_a_large_list_is_shared_by_the_rules_that_name_it(name: str) -> None:
    lists = {"many": {"kind": "path", "values": [f"/m/{index}" for index in range(9000)]}}
    rules = [
        rule(f"r{index}", arguments=[{**BELOW, "among": ["@many", f"/{index}"]}]) for index in range(300)
    ]
    policy = compiled(name, lists=lists, rules=rules)
    assert policy.decide(asks("/m/8999/x")).rule_id == "r0"
    assert policy.decide(asks("/299")).rule_id == "r299"


def test_a_policy_is_named_by_the_hash_of_its_canonical_form() -> None:
    policy = engine.compile_policy(policy_document(tools=[tool()]))
    assert policy.policy_hash == sha256(policy.document).hexdigest()
    assert engine.decide(policy, asks()) == engine.decide_many(policy, [asks()])[0]
