"""Partial evaluation: the remaining conditions of the rules for calls of one tool with some known arguments.

Conditions that depend only on known values are evaluated by the engine. The others remain, in the order of
the rules, and so do parts that read both. A remaining condition may be simpler than the original one, and has
the same outcome for every call with the known values: it holds, does not hold, or cannot be evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.engine import Decision, ToolRequest
from peripety.engine.policies.types import CONTEXT_PREFIX, UNKNOWN_TOOL
from peripety.policy.analysis.condition_logic import (
    ITERATING_OPERATORS,
    And,
    Constant,
    If,
    Leaf,
    Not,
    Opaque,
    Or,
    PolicyLists,
    RoleIs,
    ToolTerms,
    evaluate_truth,
    to_formula,
)
from peripety.policy.verification.back_translation import RuleDescriber

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.engine import Policy
    from peripety.policy.analysis.condition_logic import Formula


@dataclass(frozen=True, slots=True)
class RemainingRule:
    """A rule that may decide a call.

    Attributes:
        rule_id: its id.
        decision: its decision.
        condition: the members of `when` that remain; empty if the rule applies to each call that gets to it.
        text: the rule in English, from the remaining condition.
    """

    rule_id: str
    decision: Decision
    condition: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class PartialDecision:
    """Decision about the calls of a tool with known values.

    Attributes:
        decision: the decision if it is the same for all of these calls; None if it depends on the rest.
        rules: the rules that may decide, in their order. The first one whose condition holds decides; a rule
            that denies or escalates also decides if its condition cannot be evaluated. Without one, the call
            is denied.
        read_arguments: names of the known arguments that remaining conditions read, beside unknown ones.
    """

    decision: Decision | None
    rules: tuple[RemainingRule, ...]
    read_arguments: tuple[str, ...]


_UNKNOWN_TOOL = RemainingRule(
    UNKNOWN_TOOL, Decision.DENY, {}, "Deny a call of a tool that the policy does not have."
)


def decide_partially(policy: Policy, known: ToolRequest, *, has_open_roles: bool = False) -> PartialDecision:
    """Return the remaining conditions for calls of a tool.

    Args:
        policy: the policy.
        known: the tool, its known arguments, and the roles of the caller. All other arguments are open, and
            so is the context of a call.
        has_open_roles: True if the caller may have other roles as well.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`.
    """
    decided = policy.decide(known)  # validates the request
    if decided.rule_id == UNKNOWN_TOOL:
        return PartialDecision(Decision.DENY, (_UNKNOWN_TOOL,), ())
    return _Evaluator(policy, known, None if has_open_roles else frozenset(known.roles)).evaluate()


_TRUE, _FALSE, _NO_VALUE = Constant(holds=True), Constant(holds=False), Constant(holds=None)
_MOST_REPEATED_STEPS = 5_000
"""The maximum number of steps of a split expression over lists; the parts of longer ones share their fuel."""
_NEVER: Mapping[str, Any] = {"!!": [False]}


class _Evaluator:
    def __init__(self, policy: Policy, request: ToolRequest, roles: frozenset[str] | None) -> None:
        self._policy = policy
        self._request = request
        self._prepared = policy.prepare([request])
        self._roles = roles
        lists = PolicyLists(policy.spec.get("lists", {}))
        (tool,) = (
            one
            for one in policy.spec["tools"]
            if (one["server_name"], one["tool_name"]) == (request.server_name, request.tool_name)
        )
        self._terms = ToolTerms(tool, lists)
        self._describer = RuleDescriber(policy)
        self._root = {
            "server": request.server_name,
            "tool": request.tool_name,
            "arguments": request.arguments,
            "roles": [*request.roles],
        }
        self._elements = _count_elements(request.arguments)
        self._read: dict[str, None] = {}

    def evaluate(self) -> PartialDecision:
        found: list[RemainingRule] = []
        for rule in self._policy.rules:
            condition = self._evaluate_rule(rule)
            if condition is not None:
                found.append(
                    RemainingRule(
                        rule["id"], Decision(rule["then"]), condition, self._describe(rule, condition)
                    )
                )
            if condition == {}:
                break
        outcomes = {rule.decision for rule in found}
        if not found or found[-1].condition:
            outcomes.add(Decision.DENY)
        return PartialDecision(
            outcomes.pop() if len(outcomes) == 1 else None, tuple(found), tuple(self._read)
        )

    def _evaluate_rule(self, rule: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the condition that remains; None if the rule does not decide any of the calls."""
        when = rule["when"]
        if not self._terms.can_apply(when):
            return None
        remaining: dict[str, Any] = {}
        is_stopping = rule["then"] != Decision.ALLOW.value
        read = dict(self._read)
        for name, part, holds in self._iter_parts(when):
            if holds is _NO_VALUE:
                # If the parts before it hold, this part applies a rule that stops calls, and no other rule.
                if not is_stopping:
                    self._read = read
                return remaining if is_stopping else None
            if holds is _FALSE:
                # Only a part before it that cannot be evaluated applies the rule.
                if is_stopping and remaining.keys() - {"roles"}:
                    return {**remaining, "logic": _NEVER}
                self._read = read  # a rule that does not decide reads nothing
                return None
            if holds is None and name == "arguments":
                remaining.setdefault(name, []).append(part)
            elif holds is None:
                remaining[name] = part
        return remaining

    def _iter_parts(self, when: Mapping[str, Any]) -> Iterator[tuple[str, Any, Constant | None]]:
        """Yield the parts of a condition in the order of evaluation: what remains of each, or its outcome."""
        if "roles" in when:
            left = [role for role in when["roles"] if self._is_open(role)]
            is_met = self._roles is not None and not self._roles.isdisjoint(when["roles"])
            yield "roles", left, _TRUE if is_met else None if left else _FALSE
        resolved = self._terms.resolve(when)
        for matcher, terms in zip(when.get("arguments", ()), resolved.matchers, strict=True):
            names = dict.fromkeys(path[0] for path in terms.paths)
            known = [name for name in names if name in self._request.arguments]
            if len(known) == len(names):
                yield "arguments", matcher, self._match(matcher)
            else:
                self._read |= dict.fromkeys(known)
                yield "arguments", matcher, None
        if when.get("logic"):
            formula = self._simplify(self._to_formula(when["logic"]))
            outcome = formula if isinstance(formula, Constant) else None
            yield "logic", _to_logic(formula), _normalize(outcome)

    def _match(self, matcher: Mapping[str, Any]) -> Constant:
        rule = {"id": "a", "when": {"arguments": [matcher]}, "then": "deny", "reason": "a"}
        (match,) = self._policy.match_rules(self._prepared, [rule])
        return _NO_VALUE if match.unevaluated else _TRUE if match.holds else _FALSE

    def _is_open(self, role: str) -> bool:
        """Return True if a caller may have a role or not."""
        if self._roles is None:
            return True
        return role.startswith(CONTEXT_PREFIX) and role not in self._roles

    # ---- Logic

    def _to_formula(self, logic: Any) -> Formula:
        formula = to_formula(logic, self._terms.server, self._terms.tool)
        steps, iterates = _measure(logic)
        if iterates or steps * self._elements > _MOST_REPEATED_STEPS:
            # Its parts share the fuel of the engine, so that no part has an outcome of its own.
            return self._to_whole(logic, formula)
        return formula

    def _to_whole(self, logic: Any, formula: Formula) -> Formula:
        reads = tuple(_iter_reads(formula))
        is_closed = all(not isinstance(one, Opaque) or one.is_closed for one in _iter_ends(formula))
        roles = any(
            isinstance(one, RoleIs) or getattr(one, "reads_roles", False) for one in _iter_ends(formula)
        )
        return Opaque(logic, "", reads, is_closed and not roles, reads_roles=roles, literals=())

    def _simplify(self, formula: Formula) -> Formula:
        match formula:
            case RoleIs(role) if not self._is_open(role):
                formula = Constant(holds=role in (self._roles or ()))
            case Leaf() | Opaque():
                formula = self._evaluate_end(formula)
            case Not(part):
                inner = self._simplify(part)
                formula = Not(inner)
                if isinstance(inner, Constant):
                    formula = Constant(None if inner.holds is None else not inner.holds)
            case And(parts):
                formula = self._simplify_parts(parts, is_and=True)
            case Or(parts):
                formula = self._simplify_parts(parts, is_and=False)
            case If():
                formula = self._simplify_conditional(formula)
        return formula

    def _simplify_conditional(self, formula: If) -> Formula:
        condition = self._simplify(formula.condition)
        if not isinstance(condition, Constant):
            return If(condition, self._simplify(formula.then), self._simplify(formula.otherwise))
        if condition.holds is None:
            return condition
        return self._simplify(formula.then if condition.holds else formula.otherwise)

    def _simplify_parts(self, parts: Sequence[Formula], *, is_and: bool) -> Formula:
        """Drop the parts that do not matter, and those behind one that ends the evaluation."""
        kept: list[Formula] = []
        for part in map(self._simplify, parts):
            if isinstance(part, Constant) and part.holds is is_and:
                continue
            kept.append(part)
            if isinstance(part, Constant):
                break
        if not kept:
            return Constant(holds=is_and)
        if len(kept) == 1:
            return kept[0]
        return And(tuple(kept)) if is_and else Or(tuple(kept))

    def _evaluate_end(self, end: Leaf | Opaque) -> Formula:
        paths = (end.path,) if isinstance(end, Leaf) else end.reads
        known = [path[0] for path in paths if path[0] in self._request.arguments]
        is_closed = isinstance(end, Leaf) or end.is_closed
        if is_closed and len(known) == len(paths):
            return Constant(evaluate_truth(end.logic, self._root))
        self._read |= dict.fromkeys(known if is_closed else self._request.arguments)
        return end

    def _describe(self, rule: Mapping[str, Any], condition: Mapping[str, Any]) -> str:
        when = {"servers": [self._terms.server], "tools": [self._terms.tool], **condition}
        if condition.get("logic") == _NEVER:
            rest = {name: part for name, part in when.items() if name != "logic"}
            text = self._describer.describe({**rule, "when": rest})
            return f"{text.removesuffix('.')}, but only if that cannot be evaluated."
        return self._describer.describe({**rule, "when": when})


def _normalize(outcome: Constant | None) -> Constant | None:
    """Return the constant that stands for an outcome."""
    if outcome is None:
        return None
    return _NO_VALUE if outcome.holds is None else _TRUE if outcome.holds else _FALSE


def _to_logic(formula: Formula) -> Any:
    """Return the expression of a formula."""
    match formula:
        case Constant(holds):
            logic: Any = {"/": [1, 0]} if holds is None else {"!!": [holds]}
        case RoleIs(role):
            logic = {"in": [role, {"var": "roles"}]}
        case Not(part):
            logic = {"!": [_to_logic(part)]}
        case And(parts):
            logic = {"and": [*map(_to_logic, parts)]}
        case Or(parts):
            logic = {"or": [*map(_to_logic, parts)]}
        case If(condition, then, otherwise):
            logic = {"if": [*map(_to_logic, (condition, then, otherwise))]}
        case _:
            logic = formula.logic
    return logic


def _iter_ends(formula: Formula) -> Iterator[Formula]:
    """Yield the parts of a formula that have no parts."""
    match formula:
        case Not(part):
            yield from _iter_ends(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _iter_ends(part)
        case If(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from _iter_ends(part)
        case _:
            yield formula


def _iter_reads(formula: Formula) -> Iterator[tuple[str, ...]]:
    for end in _iter_ends(formula):
        if isinstance(end, Leaf):
            yield end.path
        elif isinstance(end, Opaque):
            yield from end.reads


def _measure(logic: Any) -> tuple[int, bool]:
    """Return the number of values in an expression, and whether it evaluates a part for each element."""
    if isinstance(logic, dict):
        inner = [_measure(value) for value in logic.values()]
        return 1 + sum(steps for steps, _ in inner), any(one for _, one in inner) or bool(
            logic.keys() & ITERATING_OPERATORS
        )
    if isinstance(logic, list):
        inner = [_measure(value) for value in logic]
        return 1 + sum(steps for steps, _ in inner), any(one for _, one in inner)
    return 1, False


def _count_elements(value: Any) -> int:
    """Return the number of elements of the longest list in a value."""
    if isinstance(value, dict):
        return max(map(_count_elements, value.values()), default=0)
    if isinstance(value, list):
        return max(len(value), *map(_count_elements, value)) if value else 0
    return 0
