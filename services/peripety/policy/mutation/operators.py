"""Mutation operators: mutants of a policy as changes of its rules, and their registry.

- Rules: drop, swap, or change the decision.
- Conditions: drop or negate members; change operators of the logic.
- Matchers: widen, narrow, or change the kind or quantifier.
- Named lists: drop a value wherever the list is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from peripety.core import mutation_testing
from peripety.core.mutation_testing import REMOVED, Edit, apply_edit, sample
from peripety.engine import Decision
from peripety.engine.policies.policy import fits_document
from peripety.engine.schema_validation import format_pointer
from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.policy.analysis.equivalence import RuleWindow
from peripety.policy.rule_paths import child_path, enumerate_rules, parent_path, rule_path, split_host_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import DocumentPath
    from peripety.engine import Policy


ALWAYS_TRUE: Final[Mapping[str, Any]] = {"logic": {}}
"""The condition that always holds."""


@dataclass(frozen=True, slots=True)
class PolicyMutation:
    """A mutant of a policy.

    Attributes:
        mutant_id: unique within the document and the version of the operators.
        operator: stable lower_snake_case name of the operator.
        place: path of the changed part in the document.
        before: the part before; `GONE` if it was added.
        after: the part after; `GONE` if it was removed.
        rules: replaced rules by their index in `Policy.rules`; None removes a rule.
    """

    mutant_id: str
    operator: str
    place: DocumentPath
    before: Any
    after: Any
    rules: Mapping[int, Mapping[str, Any] | None]


def mutation_window(rules: Sequence[Mapping[str, Any]], mutation: PolicyMutation) -> RuleWindow:
    """Return the window of rules that a mutant replaces; unchanged rules are the same objects."""
    first, behind = min(mutation.rules), max(mutation.rules) + 1
    replaced = (mutation.rules.get(index, rules[index]) for index in range(first, behind))
    return RuleWindow(first, behind, [rule for rule in replaced if rule is not None])


def mutated_rules(rules: Sequence[Mapping[str, Any]], mutation: PolicyMutation) -> list[Mapping[str, Any]]:
    """Return all rules of a mutant; unchanged rules are the same objects."""
    replaced = (mutation.rules.get(index, rule) for index, rule in enumerate(rules))
    return [rule for rule in replaced if rule is not None]


_NAME_OPERATORS = {"servers": "drop_server", "tools": "drop_tool", "roles": "drop_role"}
_FLAG_OPERATORS = {"read_only": "flip_read_only", "destructive": "flip_destructive"}
_CONDITION_MEMBERS = (*_NAME_OPERATORS, "argument_roles", *_FLAG_OPERATORS, "logic")


def _drop_member(rule: Mapping[str, Any]) -> Iterator[Edit]:
    """Drop a member; matchers are dropped one by one."""
    when = rule["when"]
    for member in _CONDITION_MEMBERS:
        if member not in when:
            continue
        if len(when) > 1:
            yield Edit(("when", member), when[member], REMOVED)
        elif when != ALWAYS_TRUE:
            yield Edit(("when",), when, ALWAYS_TRUE)


def _drop_matcher(rule: Mapping[str, Any]) -> Iterator[Edit]:
    when = rule["when"]
    matchers = when.get("arguments", ())
    for index, matcher in enumerate(matchers):
        if len(matchers) > 1:
            yield Edit(("when", "arguments", index), matcher, REMOVED)
        elif len(when) > 1:
            yield Edit(("when", "arguments"), matchers, REMOVED)
        else:
            yield Edit(("when",), when, ALWAYS_TRUE)


def _drop_name(member: str) -> Callable[[Mapping[str, Any]], Iterator[Edit]]:
    """Return an operator that drops one of several names."""

    def operator(rule: Mapping[str, Any]) -> Iterator[Edit]:
        names = rule["when"].get(member, ())
        if len(names) > 1:
            for index, name in sample(names):
                yield Edit(("when", member, index), name, REMOVED)

    return operator


def _drop_argument_role(rule: Mapping[str, Any]) -> Iterator[Edit]:
    yield from _drop_name("argument_roles")(rule)
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        roles = matcher["argument_roles"]
        if len(roles) > 1:
            for index, role in sample(roles):
                yield Edit(("when", "arguments", number, "argument_roles", index), role, REMOVED)


def _flip_flag(member: str) -> Callable[[Mapping[str, Any]], Iterator[Edit]]:
    def operator(rule: Mapping[str, Any]) -> Iterator[Edit]:
        if member in rule["when"]:
            asked = rule["when"][member]
            yield Edit(("when", member), asked, not asked)

    return operator


CONDITION_OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Edit]]] = {
    "drop_member": _drop_member,
    "drop_matcher": _drop_matcher,
    **{name: _drop_name(member) for member, name in _NAME_OPERATORS.items()},
    "drop_argument_role": _drop_argument_role,
    **{name: _flip_flag(member) for member, name in _FLAG_OPERATORS.items()},
}
"""The operators by name."""


def drop_list_value(policy: Policy) -> Iterator[tuple[DocumentPath, Any, Any, dict[int, Any]]]:
    """Drop a value of a list: its other values replace the list name in each rule.

    Rules that would exceed the size limit of a document are not mutated.
    """
    lists = policy.spec.get("lists", {})
    named_by = _referring_lists(lists)
    for name, named in lists.items():
        leading = _expanding_entries(name, named_by)
        users = [
            (index, rule)
            for index, rule in enumerate_rules(policy)
            if any(leading.intersection(matcher["among"]) for matcher in rule["when"].get("arguments", ()))
        ]
        for index, value in sample(named["values"]) if users else ():
            without = {**lists, name: {**named, "values": apply_edit(named["values"], (index,), REMOVED)}}
            written = ((at, _expand_lists(rule, leading, without)) for at, rule in users)
            rules = {at: rule for at, rule in written if rule is not None and fits_document(rule)}
            if rules:
                yield ("lists", name, "values", index), value, REMOVED, rules


def _referring_lists(lists: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, for each entry that names a list, the lists that contain the entry."""
    found: dict[str, list[str]] = {}
    for name, named in lists.items():
        for entry in named["values"]:
            if entry.startswith("@"):
                found.setdefault(entry, []).append(f"@{name}")
    return found


def _expanding_entries(name: str, named_by: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the entries that expand to the values of a list, directly or through other lists."""
    found = {f"@{name}"}
    waiting = [*found]
    while waiting:
        more = [entry for entry in named_by.get(waiting.pop(), ()) if entry not in found]
        found.update(more)
        waiting.extend(more)
    return frozenset(found)


def _expand_lists(
    rule: Mapping[str, Any],
    leading: frozenset[str],
    lists: Mapping[str, Any],
) -> Mapping[str, Any] | None:
    """Return a rule with values in place of list names; None if a matcher would be empty."""
    for number, matcher in enumerate(rule["when"]["arguments"]):
        if leading.intersection(matcher["among"]):
            entries = _expand_entries(matcher["among"], leading, lists)
            if not entries:
                return None
            rule = apply_edit(rule, ("when", "arguments", number, "among"), entries)
    return rule


def _expand_entries(among: Sequence[str], leading: frozenset[str], lists: Mapping[str, Any]) -> list[str]:
    """Return entries with lists expanded in place, each once."""
    found: dict[str, None] = {}
    waiting, seen = [*reversed(among)], set()
    while waiting:
        entry = waiting.pop()
        if entry not in leading:
            found[entry] = None
        elif entry not in seen:
            seen.add(entry)
            waiting.extend(reversed(lists[entry[1:]]["values"]))
    return [*found]


_LOGIC_PATH = ("when", "logic")


def _lift_to_rules(
    operator: Callable[[Any], Iterable[Edit]],
) -> Callable[[Mapping[str, Any]], Iterator[Edit]]:
    def changes(rule: Mapping[str, Any]) -> Iterator[Edit]:
        if "logic" in rule["when"]:
            for change in operator(rule["when"]["logic"]):
                yield Edit((*_LOGIC_PATH, *change.path), change.before, change.after)

    return changes


LOGIC_OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Edit]]] = {
    name: _lift_to_rules(operator) for name, operator in mutation_testing.OPERATORS.items()
}
"""The operators by name."""


_QUANTIFIERS = ("all", "any", "none", "not_all")
_CHILD_NAME = "inner"


def _change_quantifier(rule: Mapping[str, Any]) -> Iterator[Edit]:
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        written = matcher.get("quantifier")
        for quantifier in _QUANTIFIERS:
            if quantifier != (written or "all"):
                before = REMOVED if written is None else written
                yield Edit(("when", "arguments", number, "quantifier"), before, quantifier)


def _read_as_identifier(rule: Mapping[str, Any]) -> Iterator[Edit]:
    """Compare values as plain text; matchers with a named list are not changed."""
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        if matcher["kind"] != "identifier" and not any(entry.startswith("@") for entry in matcher["among"]):
            yield Edit(("when", "arguments", number, "kind"), matcher["kind"], "identifier")


def _drop_entry(rule: Mapping[str, Any]) -> Iterator[Edit]:
    for number, matcher in enumerate(rule["when"].get("arguments", ())):
        if len(matcher["among"]) > 1:
            for index, entry in sample(matcher["among"]):
                yield Edit(("when", "arguments", number, "among", index), entry, REMOVED)


def _replace_entry(
    kinds: frozenset[str],
    replaced: Callable[[str, str], str | None],
) -> Callable[[Mapping[str, Any]], Iterator[Edit]]:
    """Return an operator that replaces an entry.

    Args:
        kinds: the kinds of matchers that it applies to.
        replaced: returns the new entry for a kind and an entry; None for no replacement.
    """

    def operator(rule: Mapping[str, Any]) -> Iterator[Edit]:
        for number, matcher in enumerate(rule["when"].get("arguments", ())):
            kind = matcher["kind"]
            for index, entry in sample(matcher["among"]) if kind in kinds else ():
                after = None if entry.startswith("@") else replaced(kind, entry)
                if after is not None:
                    yield Edit(("when", "arguments", number, "among", index), entry, after)

    return operator


def _widen_host(kind: str, entry: str) -> str | None:
    """Return the next wider pattern: all hosts below, all hosts, or all addresses of a host."""
    local, below, host = split_host_pattern(kind, entry)
    if host == "*" or host.startswith("["):
        return None
    if local not in {"", "*"}:
        return f"*@{host}"
    at = "*@" if local else ""
    return f"{at}*" if below else f"{at}*.{host}"


def _narrow_host(kind: str, entry: str) -> str | None:
    """Return the host alone for a pattern of all hosts below it."""
    local, below, host = split_host_pattern(kind, entry)
    return (f"{local}@{host}" if local else host) if below else None


_HOST_KINDS = frozenset({"domain", "email"})
_PATH_KINDS = frozenset({"path"})

MATCHER_OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Edit]]] = {
    "change_quantifier": _change_quantifier,
    "read_as_identifier": _read_as_identifier,
    "drop_entry": _drop_entry,
    "widen_path": _replace_entry(_PATH_KINDS, lambda _kind, entry: parent_path(entry)),
    "narrow_path": _replace_entry(_PATH_KINDS, lambda _kind, entry: child_path(entry, _CHILD_NAME)),
    "widen_host": _replace_entry(_HOST_KINDS, _widen_host),
    "narrow_host": _replace_entry(_HOST_KINDS, _narrow_host),
}
"""The operators by name."""


def drop_rule(policy: Policy) -> Iterator[tuple[DocumentPath, Any, Any, dict[int, Any]]]:
    """Drop a rule."""
    for index, rule in enumerate_rules(policy):
        yield rule_path(policy, index), rule, REMOVED, {index: None}


def swap_rules(policy: Policy) -> Iterator[tuple[DocumentPath, Any, Any, dict[int, Any]]]:
    """Swap a rule with the next one, unless both make the same decision."""
    for (index, rule), (later, follower) in pairwise(enumerate_rules(policy)):
        if rule["then"] != follower["then"]:
            yield rule_path(policy, index), rule, follower, {index: follower, later: rule}


def change_decision(rule: Mapping[str, Any]) -> Iterator[Edit]:
    """Change the decision of a rule."""
    for decision in Decision:
        if decision.value != rule["then"]:
            yield Edit(("then",), rule["then"], decision.value)


OPERATORS_VERSION = 1
"""Version of the operators; mutant ids are stable within one version."""

_RULE_OPERATORS: dict[str, Callable[[Mapping[str, Any]], Iterable[Edit]]] = {
    "change_decision": change_decision,
    **CONDITION_OPERATORS,
    **MATCHER_OPERATORS,
    **LOGIC_OPERATORS,
}
_POLICY_OPERATORS: dict[str, Callable[[Policy], Iterable[tuple[DocumentPath, Any, Any, dict[int, Any]]]]] = {
    "drop_rule": drop_rule,
    "swap_rules": swap_rules,
    "drop_list_value": drop_list_value,
}

OPERATORS: tuple[str, ...] = (*_POLICY_OPERATORS, *_RULE_OPERATORS)
"""The names of all operators."""


def iter_mutations(policy: Policy, operators: Sequence[str] = ()) -> Iterator[PolicyMutation]:
    """Yield all mutants of a policy, in the order of the operators; invariants are not mutated.

    Args:
        policy: the policy.
        operators: names of the operators to use; empty for all.

    Raises:
        InvalidArgumentError: an operator is unknown.
    """
    _require_known_operators(operators)
    for operator in OPERATORS:
        if not operators or operator in operators:
            yield from _with_mutant_ids(operator, _apply_operator(policy, operator))


def _require_known_operators(operators: Sequence[str]) -> None:
    unknown = [(index, name) for index, name in enumerate(operators) if name not in OPERATORS]
    if unknown:
        raise InvalidArgumentError(
            f"unknown operator {', '.join(repr(name[:64]) for _, name in unknown[:8])};"
            f" use one of {', '.join(OPERATORS)}",
            violations=[FieldViolation(f".operators[{index}]", "is not an operator") for index, _ in unknown],
        )


def _apply_operator(policy: Policy, operator: str) -> Iterable[tuple[DocumentPath, Any, Any, dict[int, Any]]]:
    if operator in _POLICY_OPERATORS:
        return _POLICY_OPERATORS[operator](policy)
    return _apply_to_rules(policy, _RULE_OPERATORS[operator])


def _apply_to_rules(
    policy: Policy,
    operator: Callable[[Mapping[str, Any]], Iterable[Edit]],
) -> Iterator[tuple[DocumentPath, Any, Any, dict[int, Any]]]:
    for index, rule in enumerate_rules(policy):
        for change in operator(rule):
            after = apply_edit(rule, change.path, change.after)
            place = (*rule_path(policy, index), *change.path)
            yield place, change.before, change.after, {index: after}


def _with_mutant_ids(
    operator: str,
    made: Iterable[tuple[DocumentPath, Any, Any, dict[int, Any]]],
) -> Iterator[PolicyMutation]:
    """Yield mutants with ids from the operator, the path, and a number per path."""
    counts: dict[DocumentPath, int] = {}
    for place, before, after, rules in made:
        number = counts[place] = counts.get(place, 0) + 1
        yield PolicyMutation(
            f"{operator}:{format_pointer(place)}:{number}",
            operator,
            place,
            before,
            after,
            rules,
        )
