"""Requests and decisions of policies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


UNKNOWN_TOOL = "structural-unknown-tool"
"""Id of the built-in invariant that denies calls of unknown tools."""

NO_RULE = ""
"""Rule id of the default decision: a request that no rule matches is denied."""


CONTEXT_PREFIX = "context."
"""Prefix of the roles that stand for the declared context of a policy."""


class Decision(Enum):
    """Decision about a request."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    """A person must decide."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """Tool call that a policy decides about.

    Attributes:
        server_name: the server of the tool.
        tool_name: the tool.
        arguments: JSON arguments of the call.
        roles: roles of the caller.
    """

    server_name: str
    tool_name: str
    arguments: Mapping[str, Any]
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionError:
    """Condition that could not be evaluated.

    Attributes:
        rule_id: the rule of the condition.
        code: stable UPPER_SNAKE reason, such as `BAD_PATH` or `NOT_A_NUMBER`.
        message: one sentence, without values of the request.
        path: JSON Pointer into the rule, such as `/when/arguments/0`.
    """

    rule_id: str
    code: str
    message: str
    path: str


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """Decision about a request, with its reasons.

    Attributes:
        decision: the decision.
        rule_id: the deciding rule; `NO_RULE` if none matched.
        by_invariant: the deciding rule is an invariant, which no rule can override.
        reasons: explanations for a person, in order of evaluation.
        errors: conditions up to the deciding rule that could not be evaluated, in order.
    """

    decision: Decision
    rule_id: str
    by_invariant: bool
    reasons: tuple[str, ...]
    errors: tuple[ConditionError, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """Requests that the condition of a rule matches, independently of earlier rules.

    Attributes:
        holds: bit `n` is set if it matches request `n`.
        unevaluated: bit `n` is set if it cannot be evaluated for request `n`.
    """

    holds: int
    unevaluated: int
