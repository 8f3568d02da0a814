"""Rules as formulas of z3: a second implementation of docs/reference/policies-semantics.md by other means.

One tool with an amount, a mode, a place and up to two addressees; each value is a number of the solver or a
few segments, and never a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import z3

from peripety import engine
from support.engine.policies import policy_document, rule, tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from peripety.engine.policies.policy import Policy


Json = dict[str, Any]

_ROLES = ("first", "second")
_MODES = ("plain", "quick", "full")
_PATHS = ("/a", "/a/b", "/a/b/c", "/d", "/")
_DOMAINS = ("x.y", "*.x.y", "z.x.y", "*.z.x.y", "*.y", "*")
_NUMBERS = (-1, 0, 1.5, 2, 7, 99, 100)
_DEPTH = 4
_SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "minimum": 0, "exclusiveMaximum": 100},
        "count": {"type": "integer", "minimum": 1},
        "mode": {"enum": [*_MODES]},
        "place": {"type": "string"},
        "hosts": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["amount", "place"],
    "additionalProperties": False,
}


def oracle_policy(random: Random) -> Policy:
    """A policy whose rules the oracle knows as well."""
    roles = {"/place": "place", "/hosts": "host"}
    tools = [tool("a", "alpha", input_schema=_SCHEMA, argument_roles=roles)]
    rules = [oracle_rule(random, f"r{number}") for number in range(random.randint(3, 9))]
    return engine.compile_policy(policy_document(tools=tools, rules=rules))


def oracle_rule(random: Random, rule_id: str) -> Json:
    """A rule that the oracle knows as well."""
    when: Json = {}
    if random.random() < 0.25:
        when["roles"] = random.sample(_ROLES, random.randint(1, 2))
    if random.random() < 0.6:
        when["arguments"] = [_matcher(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.6 or not when:
        when["logic"] = _logic(random, 2)
    return rule(rule_id, random.choice(("allow", "deny", "escalate")), **when)


def _matcher(random: Random) -> Json:
    role, kind, entries = random.choice((("place", "path", _PATHS), ("host", "domain", _DOMAINS)))
    return {
        "argument_roles": [role],
        "kind": kind,
        "among": random.sample(entries, random.randint(1, 2)),
        "quantifier": random.choice(("all", "any", "none", "not_all")),
    }


def _logic(random: Random, depth: int) -> Json:
    if depth and random.random() < 0.5:
        operator = random.choice(("and", "or", "!"))
        return {operator: [_logic(random, depth - 1) for _ in range(1 if operator == "!" else 2)]}
    name = random.choice(("amount", "amount", "count"))
    return random.choice(
        (
            {random.choice(("<", "<=", ">", ">=", "==", "!=")): [_var(name), random.choice(_NUMBERS)]},
            {random.choice(("===", "!==")): [_var("mode"), random.choice(_MODES)]},
            {"in": [_var("mode"), random.sample(_MODES, 2)]},
            {"missing": [f"arguments.{random.choice(('mode', 'count'))}"]},
            {"in": [random.choice(_ROLES), {"var": "roles"}]},
        ),
    )


def _var(name: str) -> Json:
    return {"var": f"arguments.{name}"}


class _Text:
    """A text as what it is read as: some segments, or nothing that can be read."""

    def __init__(self, name: str) -> None:
        self.readable = z3.Bool(f"{name} readable")
        self.segments = [z3.Int(f"{name} {number}") for number in range(_DEPTH)]

    def shape(self, *, least: int) -> z3.BoolRef:
        """Segments are words, numbered from 1; 0 where there are no more."""
        ends = [
            z3.Implies(one == 0, other == 0)
            for one, other in zip(self.segments, self.segments[1:], strict=False)
        ]
        return z3.And(
            *ends,
            *(one >= 0 for one in self.segments),
            *(one > 0 for one in self.segments[:least]),
        )

    def begins(self, words: Sequence[int]) -> z3.BoolRef:
        return z3.And(*(one == word for one, word in zip(self.segments, words, strict=False)))

    def ends_after(self, count: int) -> z3.BoolRef:
        return self.segments[count] == 0


class Oracle:
    """All requests to the tool, and the decisions of rules about them."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._roles = {role: z3.Bool(role) for role in _ROLES}
        self._numbers = {name: z3.Real(name) for name in ("amount", "count")}
        self._mode, self._has_mode, self._has_count = (
            z3.Int("mode"),
            z3.Bool("has mode"),
            z3.Bool("has count"),
        )
        self._place, self._hosts = _Text("place"), [_Text("host 0"), _Text("host 1")]
        self._host_count = z3.Int("hosts")
        amount, count = self._numbers["amount"], self._numbers["count"]
        self._possible = z3.And(
            *(amount >= 0, amount < 100, z3.Implies(self._has_count, z3.And(count >= 1, z3.IsInt(count)))),
            *(self._mode >= 0, self._mode < len(_MODES), self._host_count >= 0, self._host_count <= 2),
            self._place.shape(least=0),
            *(host.shape(least=1) for host in self._hosts),
        )

    def is_possible(self, *conditions: Any) -> bool:
        """Return True if some request meets all conditions."""
        solver = z3.Solver()
        solver.add(self._possible, *conditions)
        return bool(solver.check() == z3.sat)

    def takes(self, one: Mapping[str, Any]) -> Any:
        """The requests that a rule takes hold of."""
        holds, fails = self._condition(one["when"])
        return holds if one["then"] == "allow" else z3.Or(holds, fails)

    def decided(self, rules: Sequence[Mapping[str, Any]]) -> Any:
        """Return the decision of rules as a formula: 0 to deny, 1 to allow, 2 to escalate."""
        decided: Any = z3.IntVal(0)
        for one in reversed(rules):
            decided = z3.If(self.takes(one), {"deny": 0, "allow": 1, "escalate": 2}[one["then"]], decided)
        return decided

    def _condition(self, when: Mapping[str, Any]) -> tuple[Any, Any]:
        holds: Any = z3.Or(*(self._roles[role] for role in when["roles"])) if "roles" in when else True
        fails: Any = False
        for matcher in when.get("arguments", ()):
            matching, broken = self._matching(matcher)
            holds, fails = z3.And(holds, matching), z3.Or(fails, z3.And(holds, broken))
        return z3.And(holds, self._truth(when["logic"])) if when.get("logic") else holds, fails

    def _matching(self, matcher: Mapping[str, Any]) -> tuple[Any, Any]:
        if matcher["kind"] == "path":
            values = [(z3.BoolVal(val=True), self._place)]
            matches = self._below
        else:
            values = [(self._host_count > number, host) for number, host in enumerate(self._hosts)]
            matches = self._among_hosts
        broken = z3.Or(*(z3.And(there, z3.Not(value.readable)) for there, value in values))
        some = z3.Or(*(z3.And(there, self._any(matches, matcher, value)) for there, value in values))
        other = z3.Or(*(z3.And(there, z3.Not(self._any(matches, matcher, value))) for there, value in values))
        holds = {
            "any": some,
            "all": z3.And(some, z3.Not(other)),
            "none": z3.And(other, z3.Not(some)),
            "not_all": other,
        }
        return z3.And(z3.Not(broken), holds[matcher["quantifier"]]), broken

    def _any(self, matches: Any, matcher: Mapping[str, Any], value: _Text) -> Any:
        return z3.Or(*(matches(entry, value) for entry in matcher["among"]))

    def _below(self, entry: str, value: _Text) -> Any:
        return value.begins([self._word(one) for one in entry.split("/") if one])

    def _among_hosts(self, entry: str, value: _Text) -> Any:
        if entry == "*":
            return z3.BoolVal(val=True)
        words = [self._word(one) for one in reversed(entry.removeprefix("*.").split("."))]
        ended = value.ends_after(len(words))
        return z3.And(value.begins(words), z3.Not(ended) if entry.startswith("*.") else ended)

    def _word(self, text: str) -> int:
        return self._words.setdefault(text, len(self._words) + 1)

    def _truth(self, logic: Mapping[str, Any]) -> Any:
        ((operator, operand),) = logic.items()
        if operator in {"and", "or", "!"}:
            combined = {"and": z3.And, "or": z3.Or, "!": z3.Not}[operator]
            return combined(*map(self._truth, operand))
        if operator == "missing":
            return z3.Not(self._has_mode if operand == ["arguments.mode"] else self._has_count)
        value, literal = operand
        if operator == "in":
            return self._roles[value] if isinstance(value, str) else z3.Or(*map(self._is_mode, literal))
        if operator in {"===", "!=="}:
            return self._is_mode(literal) == (operator == "===")
        return self._compared(operator, self._number(value["var"]), z3.RealVal(str(literal)))

    def _is_mode(self, mode: str) -> Any:
        return z3.And(self._has_mode, self._mode == _MODES.index(mode))

    def _number(self, name: str) -> Any:
        """Return the value as a number; a missing one is 0."""
        number = self._numbers[name.removeprefix("arguments.")]
        return number if name == "arguments.amount" else z3.If(self._has_count, number, z3.RealVal(0))

    def _compared(self, operator: str, one: Any, other: Any) -> Any:
        comparisons = {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}
        return (comparisons | {"==": one == other, "!=": one != other})[operator]
