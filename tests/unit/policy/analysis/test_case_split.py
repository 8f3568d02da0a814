"""Expressions over several arguments, of which a schema lists all values but those of one."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.policy.analysis.equivalence import Differs, Equivalent, Undecided, compare_variants
from peripety.policy.analysis.lint import find_rule_issues
from peripety.policy.types import RuleIssueKind
from support.engine.policies import policy_of, rule, tool

Json = dict[str, Any]

_AMOUNT, _MODE, _SIZE = ({"var": f"arguments.{name}"} for name in ("amount", "mode", "size"))
_TOOL = tool(
    "a",
    "alpha",
    input_schema={
        "type": "object",
        "properties": {
            "amount": {"type": "number", "minimum": 0, "maximum": 1000},
            "mode": {"enum": ["plain", "7", "quick"]},
            "size": {"type": "number"},
            "note": {"type": "string", "maxLength": 20},
        },
        "additionalProperties": False,
    },
)


def _compared(before: Json, after: Json) -> Any:
    policy = policy_of(rule("r", "allow", logic=before), tools=(_TOOL,))
    other = policy_of(rule("r", "allow", logic=after), tools=(_TOOL,))
    (verdict,) = compare_variants(policy, [other.rules])
    if isinstance(verdict, Differs):
        assert policy.decide(verdict.witness).decision is not other.decide(verdict.witness).decision
    return verdict


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"<": [{"+": [_MODE, _AMOUNT]}, 99.5]}, {"<=": [{"+": [_MODE, _AMOUNT]}, 99.5]}),
        ({"<": [_AMOUNT, _MODE]}, {"<=": [_AMOUNT, _MODE]}),
        ({"<": [{"*": [_AMOUNT, 2]}, 30]}, {"<": [{"*": [_AMOUNT, 2]}, 30.000001]}),
        ({"<": [_AMOUNT, {"+": [_MODE, 1]}]}, {"<": [_AMOUNT, {"+": [_MODE, 2]}]}),
    ],
)
def test_what_says_otherwise_in_one_case_has_a_witness(before: Json, after: Json) -> None:
    assert isinstance(_compared(before, after), Differs)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # A non-numeric text has no sum, and an amount is never negative if the mode is missing.
        ({"<": [{"-": [_AMOUNT, _MODE]}, -8]}, {"<": [{"-": [_AMOUNT, _MODE]}, -9]}),
        ({"<": [{"*": [_AMOUNT, 2]}, 30]}, {"<": [{"+": [_AMOUNT, _AMOUNT]}, 30]}),
        ({"<": [{"*": [_AMOUNT, 2]}, 30]}, {"<": [_AMOUNT, 15]}),
        ({"<": [{"+": [_MODE, _AMOUNT]}, 0]}, {"<": [{"+": [_MODE, _AMOUNT]}, -1]}),
    ],
)
def test_what_says_the_same_in_every_case_is_proved_to(before: Json, after: Json) -> None:
    assert isinstance(_compared(before, after), Equivalent)


def test_two_arguments_without_lists_of_values_stay_undecided() -> None:
    squares = {"+": [{"*": [_SIZE, _SIZE]}, {"*": [_AMOUNT, _AMOUNT]}]}
    before, after = ({"<": [squares, bound]} for bound in (-1, -2))
    assert isinstance(_compared(before, after), Undecided)


def test_going_through_what_is_never_an_array_never_holds() -> None:
    logic = {"some": [{"var": "arguments.note"}, {"==": [{"var": ""}, "a"]}]}
    policy = policy_of(rule("r", "allow", logic=logic), tools=(_TOOL,))
    assert [(issue.rule_id, issue.kind) for issue in find_rule_issues(policy)] == [("r", RuleIssueKind.DEAD)]
