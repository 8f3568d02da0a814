"""Changes of rules, made mechanically and in order: all of them, or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError
from peripety.policies.model import RulePatch, RulePatchKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Operation", "Patched", "operations_read", "patched"]

_UNFIT = "PATCH_UNFIT"


@dataclass(frozen=True, slots=True)
class Operation:
    """One change that a model wants.

    Attributes:
        kind: update, add or delete.
        rule_id: the rule.
        rule: the rule afterwards; None to delete it.
        after: the rule behind which to add it; None for the front.
    """

    kind: RulePatchKind
    rule_id: str
    rule: Mapping[str, Any] | None = None
    after: str | None = None

    def with_rule(self, rule: Mapping[str, Any]) -> Operation:
        """The same with another rule."""
        return replace(self, rule=rule)


@dataclass(frozen=True, slots=True)
class Patched:
    """Rules after a change.

    Attributes:
        rules: the rules, in order.
        patches: what was done, in the order in which it was.
    """

    rules: tuple[Mapping[str, Any], ...]
    patches: tuple[RulePatch, ...]


def operations_read(value: Mapping[str, Any]) -> tuple[Operation, ...]:
    """The operations of an answer that is valid against its schema."""
    return tuple(
        Operation(RulePatchKind(one["op"]), one["rule_id"], one.get("rule"), one.get("after"))
        for one in value["operations"]
    )


def patched(
    rules: Sequence[Mapping[str, Any]],
    operations: Sequence[Operation],
    *,
    reasoning: str = "",
    first: int = 0,
) -> Patched:
    """Make changes one after the other.

    Args:
        rules: the rules before.
        operations: what to do.
        reasoning: why, for the record.
        first: where the first of the rules stands in its document.

    Raises:
        InvalidArgumentError: one of them cannot be made (code PATCH_UNFIT): it names a rule that is not
            there, adds one that is, has no rule to put in, or gives a rule another id. Nothing is changed.
    """
    now = [*rules]
    done: list[RulePatch] = []
    for operation in operations:
        at = _place(now, operation)
        before = None if operation.kind is RulePatchKind.ADD else now[at]
        match operation.kind:
            case RulePatchKind.ADD:
                now.insert(at, _rule_of(operation))
            case RulePatchKind.UPDATE:
                now[at] = _rule_of(operation)
            case RulePatchKind.DELETE:
                del now[at]
        after = None if operation.kind is RulePatchKind.DELETE else now[at]
        done.append(RulePatch(operation.kind, operation.rule_id, before, after, first + at, reasoning))
    return Patched(tuple(now), tuple(done))


def _place(rules: Sequence[Mapping[str, Any]], operation: Operation) -> int:
    """The index that an operation is about."""
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    if operation.kind is not RulePatchKind.ADD:
        return _known(places, operation.rule_id)
    if operation.rule_id in places:
        raise _unfit(f"there is a rule {operation.rule_id} already; update it, or choose another id")
    return 0 if operation.after is None else _known(places, operation.after) + 1


def _known(places: Mapping[str, int], rule_id: str) -> int:
    if rule_id not in places:
        raise _unfit(f"there is no rule {rule_id}; name one of {', '.join(places) or 'none'}")
    return places[rule_id]


def _rule_of(operation: Operation) -> Mapping[str, Any]:
    rule = operation.rule
    if rule is None:
        raise _unfit(f"the rule of {operation.kind.value} {operation.rule_id} is missing")
    if rule["id"] != operation.rule_id:
        raise _unfit(f"{operation.kind.value} {operation.rule_id} has a rule with the id {rule['id']}")
    return rule


def _unfit(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, code=_UNFIT)
