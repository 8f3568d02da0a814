"""Random policies about one tool whose calls can all be listed, and these calls."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.policies.types import ToolRequest
from support.policy_documents import policy_document, rule, tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from peripety.engine.policies.policy import Policy


Json = dict[str, Any]

_PATHS = ("/a/../ab", "/a/b", "b")
_LABELS = ("one", 5)
_MODES = ("quick", "7", "")
_AMOUNTS = range(3)
_ROLES = ("first", "second")
_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"enum": [*_PATHS]},
        "labels": {"type": "array", "items": {"enum": [*_LABELS]}, "maxItems": 2, "uniqueItems": True},
        "amount": {"type": "integer", "minimum": 0, "maximum": 2},
        "options": {
            "type": "object",
            "properties": {"mode": {"enum": [*_MODES, None]}},
            "additionalProperties": False,
        },
        "force": {"type": "boolean"},
    },
    "required": ["amount", "options"],
    "additionalProperties": False,
}
_TOOL = tool("a", "alpha", input_schema=_SCHEMA, argument_roles={"/path": "place", "/labels": "label"})
_NOTHING: Any = object()


def all_requests() -> list[ToolRequest]:
    """Every call that the tool accepts, except for the order of labels."""
    labels = [_NOTHING, [], *([one] for one in _LABELS), *map(list, combinations(_LABELS, 2))]
    modes = [{}, *({"mode": mode} for mode in (*_MODES, None))]
    roles = [(), *((role,) for role in _ROLES), _ROLES]
    return [
        ToolRequest("alpha", "a", {key: value for key, value in arguments if value is not _NOTHING}, callers)
        for path, label, amount, mode, force, callers in product(
            (_NOTHING, *_PATHS),
            labels,
            _AMOUNTS,
            modes,
            (_NOTHING, False, True),
            roles,
        )
        for arguments in [
            [("path", path), ("labels", label), ("amount", amount), ("options", mode), ("force", force)],
        ]
    ]


def listed_policy(random: Random, *, opaque: bool) -> Policy:
    """A policy of a few rules about the tool.

    Args:
        random: what to draw from.
        opaque: whether some rules look at two arguments at once.
    """
    invariants = [listed_rule(random, f"structural-{n}", opaque=opaque) for n in range(random.randint(0, 2))]
    rules = [listed_rule(random, f"r{number}", opaque=opaque) for number in range(random.randint(2, 8))]
    document = policy_document(tools=[_TOOL], invariants=invariants, rules=rules)
    return engine.compile_policy(document)


def listed_rule(random: Random, rule_id: str, *, opaque: bool) -> Json:
    """A rule about the tool."""
    when: Json = {}
    if random.random() < 0.3:
        when["roles"] = random.sample(_ROLES, random.randint(1, 2))
    if random.random() < 0.5:
        when["arguments"] = [*_matchers(random)]
    if random.random() < 0.7 or not when:
        when["logic"] = _logic(random, 2, opaque=opaque)
    return rule(rule_id, random.choice(("allow", "deny", "escalate")), **when)


def _matchers(random: Random) -> Iterator[Json]:
    for _ in range(random.randint(1, 2)):
        quantifier = random.choice(("all", "any", "none", "not_all"))
        if random.random() < 0.5:
            among = random.sample(("/a", "/a/b", "/a/c", "/", "/ab"), random.randint(1, 2))
            yield {"argument_roles": ["place"], "kind": "path", "among": among, "quantifier": quantifier}
        else:
            among = random.sample(("one", "two", "three"), random.randint(1, 2))
            yield {
                "argument_roles": ["label"],
                "kind": "identifier",
                "among": among,
                "quantifier": quantifier,
            }


def _logic(random: Random, depth: int, *, opaque: bool) -> Any:
    if depth and random.random() < 0.5:
        parts = [_logic(random, depth - 1, opaque=opaque) for _ in range(3)]
        operator = random.choice(("and", "or", "!", "!!", "if"))
        return {operator: parts[:1] if operator.startswith("!") else parts}
    if opaque and random.random() < 0.4:
        labelled = {"==": [{"var": ""}, random.choice(_LABELS)]}
        both = {"+": [{"var": "arguments.options.mode"}, 1]}
        return random.choice(
            (
                {"<": [{"var": "arguments.amount"}, both]},
                {random.choice(("some", "all", "none")): [{"var": "arguments.labels"}, labelled]},
            ),
        )
    mode, amount = {"var": "arguments.options.mode"}, {"var": "arguments.amount"}
    literal = random.choice(("quick", "7", "", 7, 2, 0, None, True))
    return random.choice(
        (
            {
                random.choice(("<", "<=", ">", ">=", "==", "!=", "===", "!==")): [
                    amount,
                    random.randint(-1, 3),
                ],
            },
            {random.choice(("<", "<=")): [random.randint(0, 2), amount, random.randint(1, 3)]},
            {random.choice(("==", "!=", "===", "!==")): [mode, literal]},
            {random.choice(("<", ">=")): [mode, random.choice((2, 7))]},
            {"in": [mode, random.sample(["quick", "plain", 7, None], 2)]},
            {"in": ["ick", mode]},
            {"in": [random.choice(("one", "three", 5)), {"var": "arguments.labels"}]},
            {"missing": random.sample(["arguments.force", "arguments.options.mode", "arguments.path"], 2)},
            {"==": [{"var": ["arguments.force", True]}, True]},
            {"var": random.choice(("arguments.labels", "arguments.force", "arguments.amount"))},
            {"in": [random.choice(_ROLES), {"var": "roles"}]},
            {"===": [{"var": "tool"}, random.choice(("a", "b"))]},
        ),
    )
