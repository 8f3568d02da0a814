"""Rule patches, applied in order and atomically."""

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
    """One operation of a patch.

    Attributes:
        kind: update, add or delete.
        rule_id: the rule.
        rule: the new rule; None for a deletion.
        after: the rule after which to add it; None for the front.
    """

    kind: RulePatchKind
    rule_id: str
    rule: Mapping[str, Any] | None = None
    after: str | None = None

    def with_rule(self, rule: Mapping[str, Any]) -> Operation:
        """Return a copy with another rule."""
        return replace(self, rule=rule)


@dataclass(frozen=True, slots=True)
class Patched:
    """Rules after a patch.

    Attributes:
        rules: the rules, in order.
        patches: the changes, in the order in which they were made.
    """

    rules: tuple[Mapping[str, Any], ...]
    patches: tuple[RulePatch, ...]


def operations_read(value: Mapping[str, Any]) -> tuple[Operation, ...]:
    """Parse the operations of a response that is valid against its schema."""
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
    """Apply operations in order.

    Args:
        rules: the rules before.
        operations: the operations.
        reasoning: the reason, for the audit log.
        first: index in the document of the first of the rules.

    Raises:
        InvalidArgumentError: an operation cannot be applied (code PATCH_UNFIT): it names an unknown rule,
            adds an existing one, lacks its rule, or changes the id of a rule. Nothing is changed.
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
    """Return the index that an operation refers to."""
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    if operation.kind is not RulePatchKind.ADD:
        return _known(places, operation.rule_id)
    if operation.rule_id in places:
        raise _unfit(f"rule {operation.rule_id} exists already; update it, or choose another id")
    return 0 if operation.after is None else _known(places, operation.after) + 1


def _known(places: Mapping[str, int], rule_id: str) -> int:
    if rule_id not in places:
        raise _unfit(f"rule {rule_id} does not exist; use one of {', '.join(places) or 'none'}")
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
