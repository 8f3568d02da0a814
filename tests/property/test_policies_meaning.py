"""Properties of every policy and request, on both cores: the text of docs/reference/policies-semantics.md."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from posixpath import normpath
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.engine.documents import canonicalize_document
from peripety.engine.policies.policy import Policy
from peripety.engine.policies.types import NO_RULE, UNKNOWN_TOOL, Decision, ToolRequest
from peripety.errors import Severity
from support.engine.backends import BACKEND_NAMES, backend_named
from support.engine.policies import policy_spec, rule, tool
from support.examples import example_count

if TYPE_CHECKING:
    from collections.abc import Callable


Json = Any
EXAMPLES = example_count(30)
thorough = settings(max_examples=EXAMPLES, deadline=None)

KINDS = ("path", "domain", "email", "identifier")
ROLES = ("from", "into", "about")
TEXTS = {
    "path": ("/", "/a", "/a/b", "/ab", "/a/../b", "//a/./b/"),
    "domain": ("a.b", "*.a.b", "*", "A.b.", "[::1]", "10.0.0.1", "*.b"),
    "email": ("x@a.b", "*@a.b", "*@*.b", "*@*", "X@A.b"),
    "identifier": ("a", "A", "/a", "a.b", "x@a.b", "é"),
}
HOSTILE = ("", "a", "..", "/..", "~", "/a\0", "http://u@a.b:1/x", "https://a.b\\@c", "a.b:99", "c.a.b",
           "xa.b", "a b", "x@a.b@c", "\u212a", "127.1", "[::0:1]", "/a/bc", "é", "x@c.b")  # fmt: skip
EVERY_TEXT = sorted({*HOSTILE, *(text for texts in TEXTS.values() for text in texts)})

texts = st.one_of(st.sampled_from(EVERY_TEXT), st.text(max_size=6))
scalars = st.one_of(texts, st.none(), st.booleans(), st.integers(-5, 5), st.floats(-1e9, 1e9))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=6,
)
callers = st.lists(st.sampled_from(["x", "y", "z"]), max_size=2).map(tuple)

TOOLS = [
    tool("t", argument_roles=[{"path": "/a", "role": "from"}, {"path": "/b", "role": "into"}]),
    tool(
        "u",
        argument_roles=[{"path": "/a", "role": "about"}, {"path": "/c/a", "role": "from"}],
        read_only=True,
    ),
    tool("t", "v", argument_roles=[{"path": "/b/0", "role": "into"}], destructive=True),
]
requests = st.builds(
    ToolRequest,
    st.sampled_from(["s", "s", "v", "S"]),
    st.sampled_from(["t", "t", "u", "w"]),
    st.dictionaries(st.sampled_from("abc"), values, max_size=3),
    callers,
)


def some(choices: Any, most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(choices), min_size=1, max_size=most, unique=True)


@st.composite
def matchers(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(KINDS))
    matcher: Json = {"argument_roles": draw(some(ROLES)), "kind": kind, "among": draw(some(TEXTS[kind], 3))}
    if draw(st.booleans()):
        matcher["quantifier"] = draw(st.sampled_from(["all", "any", "none", "not_all"]))
    return matcher


variables = st.sampled_from(["arguments.a", "arguments.b.0", "arguments.c.a", "tool", "roles.0"]).map(
    lambda name: {"var": name},
)
expressions: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    variables,
    st.tuples(st.sampled_from(["==", "<", "+", "in", "cat", "/", "==="]), variables, scalars).map(
        lambda parts: {parts[0]: [parts[1], parts[2]]},
    ),
    st.tuples(st.sampled_from(["some", "all", "map"]), variables).map(
        lambda parts: {parts[0]: [parts[1], {"==": [{"var": ""}, "/a"]}]},
    ),
)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "servers": some(["s", "v"]),
        "tools": some(["t", "u"]),
        "roles": some(["x", "y"]),
        "argument_roles": some(ROLES),
        "read_only": st.booleans(),
        "destructive": st.booleans(),
        "arguments": st.lists(matchers(), min_size=1, max_size=2),
        "logic": expressions,
    },
).filter(bool)
outcomes = st.sampled_from(["allow", "deny", "escalate"])


def named(prefix: str, given: list[tuple[Json, str]]) -> list[Json]:
    return [rule(f"{prefix}{index}", then, **when) for index, (when, then) in enumerate(given)]


decided_conditions = st.tuples(conditions, outcomes)
specs = st.builds(
    lambda invariants, rules: policy_spec(
        tools=TOOLS,
        invariants=named("structural-", invariants),
        rules=named("r", rules),
    ),
    st.lists(decided_conditions, max_size=2),
    st.lists(decided_conditions, max_size=6),
)


def compiled(name: str, spec: Json) -> Policy:
    document = canonicalize_document(json.dumps(spec))
    return Policy(document, backend_named(name).compile_policy(document))


def on_both_cores(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("name", BACKEND_NAMES)(test)


@on_both_cores
@thorough
@given(spec=specs, asked=st.lists(requests, max_size=8))
def test_the_first_rule_that_takes_hold_decides(name: str, spec: Json, asked: list[ToolRequest]) -> None:
    policy = compiled(name, spec)
    prepared = policy.prepare(asked)
    matches = policy.match_rules(prepared)
    for number, decided in enumerate(policy.decide_many(prepared)):
        request = asked[number]
        if not any(
            (request.server_name, request.tool_name) == (t["server_name"], t["tool_name"]) for t in TOOLS
        ):
            assert decided.rule_id == UNKNOWN_TOOL
            assert decided.decision is Decision.DENY
            continue
        taking = [
            one
            for one, match in zip(policy.rules, matches, strict=True)
            if match.holds >> number & 1 or (match.unevaluated >> number & 1 and one["then"] != "allow")
        ]
        assert decided.rule_id == (taking[0]["id"] if taking else NO_RULE)
        assert decided.decision is (Decision(taking[0]["then"]) if taking else Decision.DENY)
        last = policy.rules.index(taking[0]) if taking else len(policy.rules)
        assert [error.rule_id for error in decided.errors] == [
            one["id"]
            for one, match in zip(policy.rules[: last + 1], matches, strict=False)
            if match.unevaluated >> number & 1
        ]


@on_both_cores
@thorough
@given(spec=specs, asked=st.lists(requests, min_size=1, max_size=8))
def test_what_is_not_understood_is_never_allowed(name: str, spec: Json, asked: list[ToolRequest]) -> None:
    policy = compiled(name, spec)
    for decided in policy.decide_many(asked):
        if decided.decision is Decision.ALLOW:
            assert decided.rule_id not in {error.rule_id for error in decided.errors}


@on_both_cores
@thorough
@given(spec=specs, asked=requests, place=st.sampled_from("abc"), garbage=values)
def test_a_value_that_is_spoiled_gains_no_permission_from_a_rule_that_cannot_be_evaluated(
    name: str,
    spec: Json,
    asked: ToolRequest,
    place: str,
    garbage: Json,
) -> None:
    policy = compiled(name, spec)
    spoiled = ToolRequest(
        asked.server_name,
        asked.tool_name,
        {**asked.arguments, place: garbage},
        asked.roles,
    )
    after = policy.decide(spoiled)
    if after.decision is Decision.ALLOW and after.errors:
        # Without the rules that it troubles, which do not allow it, the same rule decides.
        troubled = {error.rule_id for error in after.errors}
        spared = {
            **spec,
            **{
                section: [one for one in spec[section] if one["id"] not in troubled]
                for section in ("invariants", "rules")
            },
        }
        assert compiled(name, spared).decide(spoiled).rule_id == after.rule_id


@on_both_cores
@thorough
@given(spec=specs, asked=st.lists(requests, min_size=1, max_size=8), seed=st.integers(0, 99))
def test_a_request_is_decided_the_same_alone_and_among_others(
    name: str,
    spec: Json,
    asked: list[ToolRequest],
    seed: int,
) -> None:
    policy = compiled(name, spec)
    together = policy.decide_many(asked)
    assert [policy.decide(request) for request in asked] == together
    order = Random(seed).sample(range(len(asked)), len(asked))
    assert policy.decide_many([asked[place] for place in order]) == [together[place] for place in order]


@on_both_cores
@thorough
@given(spec=specs, more=decided_conditions, asked=st.lists(requests, min_size=1, max_size=8))
def test_a_rule_behind_the_others_decides_only_what_none_of_them_did(
    name: str,
    spec: Json,
    more: tuple[Json, str],
    asked: list[ToolRequest],
) -> None:
    before = compiled(name, spec).decide_many(asked)
    last = rule("last", more[1], **more[0])
    after = compiled(name, {**spec, "rules": [*spec["rules"], last]}).decide_many(asked)
    for old, new in zip(before, after, strict=True):
        assert new.decision is old.decision or old.rule_id == NO_RULE
        assert new.rule_id in {old.rule_id, "last"}


@on_both_cores
@thorough
@given(spec=specs, asked=st.lists(requests, max_size=8))
def test_other_rules_are_matched_as_if_they_were_the_policys_own(
    name: str,
    spec: Json,
    asked: list[ToolRequest],
) -> None:
    policy = compiled(name, spec)
    empty = compiled(name, {**spec, "invariants": [], "rules": []})
    assert empty.match_rules(empty.prepare(asked), policy.rules) == policy.match_rules(policy.prepare(asked))
    assert empty.match_rules(policy.prepare(asked), policy.rules) == policy.match_rules(empty.prepare(asked))


@on_both_cores
@thorough
@given(given_matcher=matchers(), asked=st.lists(requests, min_size=1, max_size=8))
def test_a_quantifier_and_its_opposite_share_the_requests_that_have_values(
    name: str,
    given_matcher: Json,
    asked: list[ToolRequest],
) -> None:
    def matching(quantifier: str) -> Json:
        return rule(quantifier, arguments=[{**given_matcher, "quantifier": quantifier}])

    rules = [matching(quantifier) for quantifier in ("all", "not_all", "any", "none")]
    policy = compiled(name, policy_spec(tools=TOOLS, rules=rules))
    every, not_every, some_do, none_does = policy.match_rules(policy.prepare(asked))
    assert every.unevaluated == not_every.unevaluated == some_do.unevaluated == none_does.unevaluated
    assert every.holds | not_every.holds == some_do.holds | none_does.holds
    assert every.holds & not_every.holds == some_do.holds & none_does.holds == 0
    assert every.holds & none_does.holds == 0


def matching(name: str, kind: str, entry: str, value: str) -> bool | None:
    """Return True if a value matches an entry; None if it cannot be read."""
    held = rule("r", arguments=[{"argument_roles": ["into"], "kind": kind, "among": [entry]}])
    policy = compiled(name, policy_spec(tools=TOOLS, rules=[held]))
    (match,) = policy.match_rules(policy.prepare([ToolRequest("s", "t", {"b": value})]))
    return None if match.unevaluated else bool(match.holds)


paths = st.lists(st.sampled_from(["", ".", "..", "a", "b", "ab", "...", "é"]), max_size=6).map(
    lambda segments: "/" + "/".join(segments),
)
labels = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,5}", fullmatch=True)
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)


@on_both_cores
@thorough
@given(entry=paths, value=paths)
def test_a_path_matches_what_it_lies_below_as_the_standard_library_has_it(
    name: str,
    entry: str,
    value: str,
) -> None:
    above, below = (PurePosixPath(normpath("/" + text.lstrip("/"))) for text in (entry, value))
    assert matching(name, "path", entry, value) is below.is_relative_to(above)


@on_both_cores
@thorough
@given(
    host=hosts,
    scheme=st.sampled_from(["https", "HTTP", "x+y-1.z"]),
    user=st.sampled_from(["", "a@", "a:b@", "a.b@c@", ":@", "*.a:1@"]),
    port=st.sampled_from(["", ":0", ":443", ":99999"]),
    rest=st.sampled_from(["", "/", "/a@b", "?c://d", "#@e", "/..//?x#y"]),
    other=hosts,
)
def test_a_url_has_the_host_that_it_was_made_of(
    name: str,
    host: str,
    scheme: str,
    user: str,
    port: str,
    rest: str,
    other: str,
) -> None:
    url = f"{scheme}://{user}{host}{port}{rest}"
    assert matching(name, "domain", host.swapcase(), url) is True
    assert matching(name, "domain", f"{host}.", f"{host}{port}") is True
    assert matching(name, "domain", other, url) is (other.lower() == host.lower())
    assert matching(name, "domain", f"*.{other}", url) is host.lower().endswith(f".{other.lower()}")


@thorough
@given(spec=specs, seed=st.integers(0, 99))
def test_the_order_of_keys_and_the_spelling_do_not_matter(spec: Json, seed: int) -> None:
    random = Random(seed)

    def shuffled(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in random.sample([*value], len(value))}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    found = engine.validate_policy(json.dumps(spec))
    assert engine.validate_policy(json.dumps(shuffled(spec), indent=2)) == found
    if any(finding.severity is Severity.ERROR for finding in found):
        return
    policy = engine.compile_policy(json.dumps(spec))
    again = engine.compile_policy(json.dumps(shuffled(spec), indent=2, ensure_ascii=False))
    assert again.policy_hash == policy.policy_hash
    assert engine.compile_policy(policy.document).document == policy.document
