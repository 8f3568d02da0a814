"""Back-translation: the effect of the rules of each sentence, in English, from the rules, with witnesses.

A rule can pass its tests and still differ from the sentence that it implements. So each rule is described
from its conditions alone, never from its description or its sentence. Two calls show its border: one that the
rule decides, and the nearest one that it leaves to others. Both are replayed on the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.sentences import split_sentences
from peripety.policy.analysis.condition_logic import PolicyLists, ToolTerms
from peripety.policy.analysis.equivalence import Reached, ReachTarget
from peripety.policy.analysis.lint import find_requests
from peripety.policy.authoring.sentence_report import normalize_words
from peripety.policy.verification.condition_clauses import boundary_points, iter_clauses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.engine.policies.policy import Policy
    from peripety.engine.policies.types import DecisionResult, ToolRequest


@dataclass(frozen=True, slots=True)
class DecidedCall:
    """A call with the decision of the whole policy."""

    request: ToolRequest
    decision: DecisionResult


@dataclass(frozen=True, slots=True)
class RuleStatement:
    """A rule in English.

    Attributes:
        rule_id: its id.
        text: its effect, from its conditions.
        decided: a call that it decides; None if none is found.
        nearest: a call that misses one of its conditions and is decided otherwise, if there is one; else one
            that another rule decides alike; None if none is found.
    """

    rule_id: str
    text: str
    decided: DecidedCall | None
    nearest: DecidedCall | None


@dataclass(frozen=True, slots=True)
class SentenceStatement:
    """The rules of a sentence.

    Attributes:
        sentence: the sentence of the written policy; empty for rules that name none.
        rules: its rules in their order; empty if no rule implements it.
    """

    sentence: str
    rules: tuple[RuleStatement, ...]


_OPTIONAL_MEMBERS = ("logic", "arguments", "roles")
"""The members of a condition that a nearest call misses, in the order in which they are tried."""
_TOOL_MEMBERS = ("tools", "servers", "argument_roles", "read_only", "destructive")
_MAX_LISTED = 8


def translate_policy(policy: Policy, constitution: str = "") -> tuple[SentenceStatement, ...]:
    """Describe each rule of a policy in English, grouped by the sentences that they implement.

    Args:
        policy: the policy.
        constitution: the written policy; its sentences give the order, and those without a rule are included.

    Returns:
        The sentences; rules that name no sentence come first, then those of sentences that are not in the
        written policy.
    """
    statements = _translate_rules(policy)
    of_sentence: dict[tuple[str, ...], tuple[str, list[RuleStatement]]] = {}
    for rule, statement in zip(policy.rules, statements, strict=True):
        principle = rule.get("principle", "")
        of_sentence.setdefault(normalize_words(principle), (principle, []))[1].append(statement)
    written = {normalize_words(sentence): sentence for sentence in split_sentences(constitution)}
    others = [(name, told) for key, (name, told) in of_sentence.items() if key not in written]
    own = [(name, of_sentence.get(key, ("", []))[1]) for key, name in written.items()]
    others.sort(key=lambda one: bool(one[0]))
    return tuple(SentenceStatement(name, tuple(told)) for name, told in (*others, *own))


def _translate_rules(policy: Policy) -> Iterator[RuleStatement]:
    targets: list[ReachTarget] = []
    numbers: list[range] = []
    for number, rule in enumerate(policy.rules):
        first = len(targets)
        targets.append(ReachTarget(number, decides=True))
        targets += _nearest_targets(rule, policy.spec.get("lists", {}))
        numbers.append(range(first, len(targets)))
    found = [
        result.request if isinstance(result, Reached) else None for result in find_requests(policy, targets)
    ]
    decisions = iter(policy.decide_many([request for request in found if request is not None]))
    calls = [None if request is None else DecidedCall(request, next(decisions)) for request in found]
    describer = RuleDescriber(policy)
    for rule, own in zip(policy.rules, numbers, strict=True):
        decided, *near = (calls[number] for number in own)
        missed = [call for call in near if call is not None and call.decision.rule_id != rule["id"]]
        other = [call for call in missed if call.decision.decision.value != rule["then"]]
        yield RuleStatement(
            rule["id"], describer.describe(rule), decided, next(iter([*other, *missed]), None)
        )


def _nearest_targets(rule: Mapping[str, Any], lists: Mapping[str, Any]) -> Iterator[ReachTarget]:
    """Yield targets for calls that miss one member of a condition, the nearest ones first."""
    when = rule["when"]
    for member in (*_OPTIONAL_MEMBERS, *_TOOL_MEMBERS):
        if member not in when:
            continue
        parts = [[one] for one in when[member]] if member == "arguments" else [when[member]]
        for part in parts:
            rest = {key: value for key, value in when.items() if key != member}
            if member == "arguments" and len(parts) > 1:
                rest[member] = [one for one in when[member] if one is not part[0]]
            missed, holds = {member: part}, (rest,) if rest else ()
            for clause in iter_clauses({**rule, "when": missed}):
                for point in boundary_points(clause, lists):
                    closer = (point.closer,) if point.closer else ()
                    yield ReachTarget(0, holds=(*holds, *point.holds, *closer), fails=(missed, *point.fails))
            yield ReachTarget(0, holds=holds, fails=(missed,))


_VERBS = {"allow": "Allow", "deny": "Deny", "escalate": "Escalate"}
_QUANTIFIERS = {
    "all": ("every", "is"),
    "any": ("a", "is"),
    "not_all": ("a", "is not"),
    "none": ("no", "is"),
}
_COMPARISONS = {
    "<": ("is less than", "is at least"),
    "<=": ("is at most", "is more than"),
    ">": ("is more than", "is at most"),
    ">=": ("is at least", "is less than"),
    "==": ("is", "is not"),
    "===": ("is", "is not"),
    "!=": ("is not", "is"),
    "!==": ("is not", "is"),
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class RuleDescriber:
    """Writer of rules in English.

    Args:
        policy: the policy of the rules.
    """

    def __init__(self, policy: Policy) -> None:
        self._lists: Mapping[str, Any] = policy.spec.get("lists", {})
        lists = PolicyLists(self._lists)
        self._tools = [ToolTerms(tool, lists) for tool in policy.spec["tools"]]

    def describe(self, rule: Mapping[str, Any]) -> str:
        """Return a rule as a sentence."""
        when = rule["when"]
        conditions = [*self.describe_conditions(when)]
        condition = f" if {' and '.join(conditions)}" if conditions else ""
        return f"{_VERBS[rule['then']]} {self._describe_calls(when)}{condition}."

    def _describe_calls(self, when: Mapping[str, Any]) -> str:
        if not any(member in when for member in _TOOL_MEMBERS):
            return "any call"
        own = {member: when[member] for member in _TOOL_MEMBERS if member in when}
        names = [f"{terms.server}/{terms.tool}" for terms in self._tools if terms.can_apply(own)]
        return f"a call of {_join(names, 'or')}" if names else "a call of no known tool"

    def describe_conditions(self, when: Mapping[str, Any]) -> Iterator[str]:
        """Yield what a condition requires of the caller and the arguments, one part each."""
        if "roles" in when:
            yield f"the caller has the role {_join(when['roles'], 'or')}"
        for matcher in when.get("arguments", ()):
            yield self._describe_matcher(matcher)
        if when.get("logic", {}) != {}:
            yield _describe_logic(when["logic"])

    def _describe_matcher(self, matcher: Mapping[str, Any]) -> str:
        article, verb = _QUANTIFIERS[matcher.get("quantifier", "all")]
        roles = _join([f"`{role}`" for role in matcher["argument_roles"]], "or")
        entries = [
            f"{_describe_entry(matcher['kind'], entry)}{source}"
            for entry, source in self._expand(matcher["among"], "", frozenset())
        ]
        return f"{article} {roles} {verb} {_join(entries, 'or')}"

    def _expand(self, among: Sequence[str], source: str, seen: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield the entries of a matcher with the lists that they are from."""
        for entry in among:
            if not entry.startswith("@"):
                yield entry, source
            elif entry not in seen:
                values = self._lists[entry[1:]]["values"]
                yield from self._expand(values, f" ({entry})", seen | {entry})


def _describe_entry(kind: str, entry: str) -> str:
    if kind == "path":
        return f"below {entry}"
    if kind == "identifier":
        return json.dumps(entry, ensure_ascii=False)
    local, at, host = entry.rpartition("@")
    place = f"below {host[2:]}" if host.startswith("*.") else "anywhere" if host == "*" else f"at {host}"
    return place if not at or local == "*" else f"{local} {place}"


def _describe_logic(logic: Any, *, denied: bool = False) -> str:
    """Describe an expression, or its negation; what has no words is quoted as JSON."""
    operator, operands = _split(logic)
    match operator:
        case "!!" if len(operands) == 1 and _split(operands[0])[0] == "var":
            return f"{_describe_value(operands[0])} {'is not set' if denied else 'is set'}"
        case "!" | "!!" if len(operands) == 1:
            return _describe_logic(operands[0], denied=denied == (operator == "!!"))
        case "and" | "or" if operands:
            word = "and" if (operator == "and") is not denied else "or"
            parts = [_describe_logic(part, denied=denied) for part in operands]
            return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"
        case "missing" if operands and all(isinstance(name, str) for name in operands):
            names = _join([_variable_name(name) for name in operands], "or")
            return f"{names} {'is given' if denied else 'is missing'}"
    text = _describe_comparison(operator, operands, denied=denied)
    return text or f"{_describe_value(logic)} {'does not hold' if denied else 'holds'}"


def _describe_comparison(operator: str, operands: Sequence[Any], *, denied: bool) -> str:
    """Describe a comparison, or its negation; empty for other operators."""
    match operator, operands:
        case "in", [element, container]:
            return _describe_membership(element, container, denied=denied)
        case _, [left, right] if operator in _COMPARISONS:
            if not isinstance(left, dict) and isinstance(right, dict):
                operator, left, right = _MIRRORED.get(operator, operator), right, left
            return f"{_describe_value(left)} {_COMPARISONS[operator][denied]} {_describe_value(right)}"
        case "<" | "<=", [least, value, most]:
            limits = f"{_describe_value(least)} and {_describe_value(most)}"
            ends = "inclusive" if operator == "<=" else "exclusive"
            return f"{_describe_value(value)} is {'not ' if denied else ''}between {limits}, both {ends}"
    return ""


def _describe_membership(element: Any, container: Any, *, denied: bool) -> str:
    if container == {"var": "roles"}:
        verb = "does not have" if denied else "has"
        name = element if isinstance(element, str) else _describe_value(element)
        return f"the caller {verb} the role {name}"
    if isinstance(container, list):
        options = _join([_describe_value(option) for option in container], "or")
        return f"{_describe_value(element)} {'is not' if denied else 'is'} {options}"
    verb = "does not contain" if denied else "contains"
    return f"{_describe_value(container)} {verb} {_describe_value(element)}"


def _describe_value(value: Any) -> str:
    operator, operands = _split(value)
    if operator == "var" and operands and isinstance(operands[0], str):
        return _variable_name(operands[0])
    text = json.dumps(value, ensure_ascii=False)
    return f"`{text}`" if isinstance(value, dict) else text


def _variable_name(name: str) -> str:
    return {"tool": "the tool", "server": "the server"}.get(name, f"`{name.removeprefix('arguments.')}`")


def _split(logic: Any) -> tuple[str, list[Any]]:
    """Return the operator of an expression and its operands; an empty operator for other values."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return "", []
    ((operator, operands),) = logic.items()
    return operator, operands if isinstance(operands, list) else [operands]


def _join(names: Sequence[str], word: str) -> str:
    """Join names as a list in English; a long one is cut, with a count."""
    shown = [
        *names[:_MAX_LISTED],
        *([f"{len(names) - _MAX_LISTED} more"] if len(names) > _MAX_LISTED else []),
    ]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {word} {shown[-1]}"
