"""Changes of rules, made mechanically."""

from __future__ import annotations

import pytest

from peripety.errors import InvalidArgumentError
from peripety.policy.authoring.rule_repair import PatchOperation, apply_patches, parse_operations
from peripety.policy.types import RulePatchKind
from support.policy.models import rule

A, B, C = (rule(name, "deny", tools=[name]) for name in "abc")
UPDATE, ADD, DELETE = RulePatchKind.UPDATE, RulePatchKind.ADD, RulePatchKind.DELETE


def test_operations_are_made_one_after_the_other() -> None:
    new, changed = rule("n", "allow", tools=["a"]), rule("a", "escalate", tools=["a"])
    done = apply_patches(
        [A, B],
        [
            PatchOperation(ADD, "c", C, "a"),
            PatchOperation(DELETE, "b"),
            PatchOperation(ADD, "n", new),
            PatchOperation(UPDATE, "a", changed),
        ],
        reasoning="why",
        first=10,
    )
    assert [one["id"] for one in done.rules] == ["n", "a", "c"]
    assert done.rules[1] is changed
    assert [(p.kind, p.rule_id, p.before, p.after, p.position) for p in done.patches] == [
        (ADD, "c", None, C, 11),
        (DELETE, "b", B, None, 12),
        (ADD, "n", None, new, 10),
        (UPDATE, "a", A, changed, 11),
    ]
    assert {patch.reasoning for patch in done.patches} == {"why"}


@pytest.mark.parametrize(
    "operation",
    [
        PatchOperation(UPDATE, "x", rule("x", "deny", tools=["a"])),
        PatchOperation(DELETE, "x"),
        PatchOperation(ADD, "c", C, "x"),
        PatchOperation(ADD, "a", A),
        PatchOperation(UPDATE, "a", B),
        PatchOperation(ADD, "c", A),
        PatchOperation(UPDATE, "a"),
        PatchOperation(ADD, "c"),
    ],
    ids=[
        "unknown",
        "unknown-gone",
        "unknown-place",
        "duplicate",
        "rename",
        "other-id",
        "no-rule",
        "nothing-new",
    ],
)
def test_an_operation_that_cannot_be_made_fails_the_whole_patch(operation: PatchOperation) -> None:
    rules = [A, B]
    with pytest.raises(InvalidArgumentError) as refused:
        apply_patches(rules, [PatchOperation(DELETE, "b"), operation])
    assert refused.value.code == "PATCH_UNFIT"
    assert rules == [A, B]


def test_an_answer_is_read_as_operations() -> None:
    told = {
        "reasoning": "r",
        "operations": [
            {"op": "add", "rule_id": "c", "rule": C, "after": "a"},
            {"op": "delete", "rule_id": "b"},
        ],
    }
    assert parse_operations(told) == (PatchOperation(ADD, "c", C, "a"), PatchOperation(DELETE, "b"))
