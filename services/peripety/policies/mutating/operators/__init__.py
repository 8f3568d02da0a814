"""Registry of the mutation operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.mutations.changes import Change, changed
from peripety.policies.mutating.changes import Mutation
from peripety.policies.mutating.operators import conditions, lists, logic, matchers, order
from peripety.policies.places import own_rules, place_of
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.mutations.changes import Place
    from peripety.sim import Policy

__all__ = ["OPERATORS", "OPERATORS_VERSION", "mutations"]

OPERATORS_VERSION = 1
"""Version of the operators; mutant ids are stable within one version."""

_OF_RULES: dict[str, Callable[[Mapping[str, Any]], Iterable[Change]]] = {
    "change_decision": order.change_decision,
    **conditions.OPERATORS,
    **matchers.OPERATORS,
    **logic.OPERATORS,
}
_OF_POLICIES: dict[str, Callable[[Policy], Iterable[tuple[Place, Any, Any, dict[int, Any]]]]] = {
    "drop_rule": order.drop_rule,
    "swap_rules": order.swap_rules,
    "drop_list_value": lists.drop_list_value,
}

OPERATORS: tuple[str, ...] = (*_OF_POLICIES, *_OF_RULES)
"""The names of all operators."""


def mutations(policy: Policy, operators: Sequence[str] = ()) -> Iterator[Mutation]:
    """Yield all mutants of a policy, in the order of the operators; invariants are not mutated.

    Args:
        policy: the policy.
        operators: names of the operators to use; empty for all.

    Raises:
        InvalidArgumentError: an operator is unknown.
    """
    _require_known(operators)
    for operator in OPERATORS:
        if not operators or operator in operators:
            yield from _numbered(operator, _made(policy, operator))


def _require_known(operators: Sequence[str]) -> None:
    unknown = [(index, name) for index, name in enumerate(operators) if name not in OPERATORS]
    if unknown:
        raise InvalidArgumentError(
            f"unknown operator {', '.join(repr(name[:64]) for _, name in unknown[:8])};"
            f" use one of {', '.join(OPERATORS)}",
            violations=[FieldViolation(f".operators[{index}]", "is not an operator") for index, _ in unknown],
        )


def _made(policy: Policy, operator: str) -> Iterable[tuple[Place, Any, Any, dict[int, Any]]]:
    if operator in _OF_POLICIES:
        return _OF_POLICIES[operator](policy)
    return _lifted(policy, _OF_RULES[operator])


def _lifted(
    policy: Policy, operator: Callable[[Mapping[str, Any]], Iterable[Change]]
) -> Iterator[tuple[Place, Any, Any, dict[int, Any]]]:
    for index, rule in own_rules(policy):
        for change in operator(rule):
            after = changed(rule, change.place, change.after)
            place = (*place_of(policy, index), *change.place)
            yield place, change.before, change.after, {index: after}


def _numbered(operator: str, made: Iterable[tuple[Place, Any, Any, dict[int, Any]]]) -> Iterator[Mutation]:
    """Yield mutants with ids from the operator, the path, and a number per path."""
    counts: dict[Place, int] = {}
    for place, before, after, rules in made:
        number = counts[place] = counts.get(place, 0) + 1
        yield Mutation(f"{operator}:{pointer(place)}:{number}", operator, place, before, after, rules)
