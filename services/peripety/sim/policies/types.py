"""What policies decide about, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NO_RULE", "UNKNOWN_TOOL", "Decided", "Decision", "Matches", "ToolRequest", "Unevaluated"]

UNKNOWN_TOOL = "structural-unknown-tool"
"""The invariant of every policy that denies calls of tools it is not about."""

NO_RULE = ""
"""What decides when no rule takes hold: the request is denied."""


class Decision(Enum):
    """What a policy says to a request."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    """A person has to decide."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool that a policy decides about.

    Attributes:
        server_name: the server that offers the tool.
        tool_name: the tool.
        arguments: what it is called with: JSON.
        roles: those of whoever calls.
    """

    server_name: str
    tool_name: str
    arguments: Mapping[str, Any]
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unevaluated:
    """A condition that could not be evaluated.

    Attributes:
        rule_id: whose it is.
        code: stable UPPER_SNAKE reason, such as `BAD_PATH` or `NOT_A_NUMBER`.
        message: one sentence, which quotes no value of the request.
        path: JSON Pointer into the rule, such as `/when/arguments/0`.
    """

    rule_id: str
    code: str
    message: str
    path: str


@dataclass(frozen=True, slots=True)
class Decided:
    """What a policy says to a request, and why.

    Attributes:
        decision: what it says.
        rule_id: the rule that decided; `NO_RULE` when none took hold.
        by_invariant: whether that is an invariant, which no rule can override.
        reasons: why, for a person, in the order of evaluation.
        errors: conditions up to the deciding rule's that could not be evaluated, in order.
    """

    decision: Decision
    rule_id: str
    by_invariant: bool
    reasons: tuple[str, ...]
    errors: tuple[Unevaluated, ...] = ()


@dataclass(frozen=True, slots=True)
class Matches:
    """Which of many requests the condition of a rule holds for, wherever the rule stands.

    Attributes:
        holds: bit `n` is set when it holds for request `n`.
        unevaluated: bit `n` is set when it cannot be evaluated for request `n`.
    """

    holds: int
    unevaluated: int
