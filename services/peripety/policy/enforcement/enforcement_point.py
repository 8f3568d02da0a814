"""Enforcement point: one decision about each tool call, with the log, approvals and pinned definitions.

Why every error closes. An attacker can make a guard fail, and a guard that fails open then protects
nothing. So a call is forwarded after one sequence only: the definition of its tool is the one that the policy
was written for, the rules allow it or a person approves it, and the decision is on the disk. Any exception on
the way refuses the call. The forwarded arguments are the decided ones.

Pinned definitions. A policy is written for tools with certain descriptions and schemas. A server can change
them afterwards, to mislead the agent or to accept arguments that no rule reads. The enforcement point
therefore compares each listed tool with its definition in the policy, and closes a tool that differs.

Hot reload. The rules are read again when their file changes. A file that cannot be read or is invalid closes
all tools until it is corrected: the old rules are not the current intention of their author.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.engine import Decision, ToolRequest, canonicalize, compile_policy
from peripety.engine.policies.types import CONTEXT_PREFIX
from peripety.errors import FailedPreconditionError, PeripetyError, ResourceExhaustedError, SpecError
from peripety.policy.enforcement.approvals import ApprovalOutcome
from peripety.policy.enforcement.context import CallContext, CallLimits
from peripety.policy.explanation import describe_missing_rule, list_closed_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from peripety.engine import DecisionResult, Policy
    from peripety.policy.enforcement.approvals import ApprovalQueue
    from peripety.policy.enforcement.decision_log import DecisionLog


_log = logging.getLogger(__name__)

_OUTCOME_WORDS = {ApprovalOutcome.DENIED: "refused", ApprovalOutcome.EXPIRED: "timed_out"}
_REFUSALS = {
    ApprovalOutcome.DENIED: "A person denied it",
    ApprovalOutcome.EXPIRED: "No person approved it in time",
}


class PolicyFile:
    """Source of the policy in a file, which is read again when it changes.

    Args:
        path: the policy document, or a signed one.
        read: compiles the content of the file.
    """

    def __init__(self, path: Path, read: Callable[[bytes], Policy] = compile_policy) -> None:
        self._path = path
        self._compile = read
        self._read: tuple[tuple[int, int, int], Policy] | None = None

    def current(self) -> Policy:
        """Return the policy.

        Raises:
            PeripetyError: the policy is invalid.
            OSError: the file cannot be read.
        """
        status = self._path.stat()
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._read is None or self._read[0] != version:
            self._read = None  # an invalid file leaves no old rules behind
            self._read = version, self._compile(self._path.read_bytes())
        return self._read[1]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict about a call.

    Attributes:
        is_forwarded: True if the call may go to the tool.
        reason: the reason of a refusal, for the caller.
        decided: the decision of the rules; None if the call could not be decided.
        outcome: the effect, as in the decision log: `forwarded`, `approved`, `refused`, `timed_out` or
            `shadowed`.
    """

    is_forwarded: bool
    reason: str = ""
    decided: DecisionResult | None = None
    outcome: str = "refused"


class Enforcer:
    """Enforcement point of one server of tools.

    Args:
        source: the policy.
        server_name: the name of the server in the policy.
        roles: the roles of the caller.
        approvals: waits for a person.
        now: returns seconds since 1970.
        log: the decision log; None for none.
        context: supplies the context that a policy declares; by default that of an unknown user.
        limits: rate and circuit breaker; None for none.
        is_shadow: True to forward all calls, and only log the decisions.
    """

    def __init__(
        self,
        source: PolicyFile,
        server_name: str,
        roles: Sequence[str],
        approvals: ApprovalQueue,
        now: Callable[[], float],
        log: DecisionLog | None = None,
        *,
        context: CallContext | None = None,
        limits: CallLimits | None = None,
        is_shadow: bool = False,
    ) -> None:
        self._source = source
        self._server_name = server_name
        self._roles = tuple(roles)
        self._approvals = approvals
        self._now = now
        self._decision_log = log
        self._context = context or CallContext(now, "")
        self._limits = limits or CallLimits(now)
        self._is_shadow = is_shadow
        self._listed: dict[str, tuple[str | None, Mapping[str, Any] | None]] = {}
        self._compared: tuple[Policy, dict[str, str | None]] | None = None

    def set_listed_tools(self, tools: Mapping[str, tuple[str | None, Mapping[str, Any] | None]]) -> None:
        """Store the definitions that the server lists now: description and input schema by name."""
        self._listed = dict(tools)
        self._compared = None

    def list_open_tools(self) -> frozenset[str]:
        """Return the names of the listed tools of which a call may be allowed or escalated.

        An unreadable policy opens none; a shadow opens all.
        """
        if self._is_shadow:
            return frozenset(self._listed)
        try:
            policy = self._source.current()
        except (PeripetyError, OSError):
            _log.exception("no valid policy: all tools are closed")
            return frozenset()
        known = {(tool["server_name"], tool["tool_name"]) for tool in policy.spec["tools"]}
        is_open = known.difference(list_closed_tools(policy))
        return frozenset(
            name
            for name in self._listed
            if self._describe_change(policy, name) is None and (self._server_name, name) in is_open
        )

    async def decide(self, tool_name: str, arguments: Mapping[str, Any]) -> Verdict:
        """Decide a call; wait for a person if the policy escalates it. Never raises an error."""
        try:
            verdict = await self._decide(ToolRequest(self._server_name, tool_name, arguments, self._roles))
        except asyncio.CancelledError:
            raise
        except SpecError:
            verdict = Verdict(is_forwarded=False, reason="the policy is invalid; all tools are closed")
        except (ResourceExhaustedError, FailedPreconditionError) as error:
            verdict = Verdict(is_forwarded=False, reason=f"Refused: {error.message}.")
        except Exception:  # noqa: BLE001 - the border: every error closes
            _log.exception("a call could not be decided")
            verdict = Verdict(is_forwarded=False, reason="the call could not be decided, so it is refused")
        if verdict.is_forwarded:
            self._limits.count_forwarded()
        elif verdict.decided is not None:
            self._limits.count_refused()
        if self._is_shadow:
            return Verdict(is_forwarded=True, decided=verdict.decided, outcome="shadowed")
        return verdict

    def read_result(self, tool_name: str, arguments: Mapping[str, Any], text: str) -> None:
        """Add the result of a forwarded call to the context of later ones."""
        self._context.read_result(ToolRequest(self._server_name, tool_name, arguments), text)

    async def _decide(self, request: ToolRequest) -> Verdict:
        policy = self._source.current()
        decided, context = self._evaluate(policy, request)
        closed = self._describe_change(policy, request.tool_name) or self._limits.find_closure()
        if closed is not None:
            self._write(request, policy, decided, context, "refused", closed=closed)
            # Not counted as a refusal of the policy: the breaker would never close again.
            return Verdict(is_forwarded=False, reason=f"Refused: {closed}.")
        if decided.decision is Decision.ALLOW:
            return self._forward(request, policy, decided, context, "forwarded")
        if decided.decision is Decision.DENY or self._is_shadow:
            self._write(request, policy, decided, context, "refused")
            return Verdict(
                is_forwarded=False,
                reason=self._describe_refusal(policy, request, decided, context),
                decided=decided,
            )
        self._write(request, policy, decided, context, "waiting")
        log = self._decision_log
        hidden = log.find_redacted_paths(request, policy) if log else ()
        outcome = await self._approvals.ask(request, decided, hidden)
        # The rules, the context and the definition may have changed while the person decided.
        latest = self._source.current()
        again, context = self._evaluate(latest, request)
        changed = self._describe_change(latest, request.tool_name)
        is_approved = outcome is ApprovalOutcome.APPROVED
        if is_approved and changed is None and again.decision is not Decision.DENY:
            return self._forward(request, latest, again, context, "approved")
        word = "refused" if is_approved else _OUTCOME_WORDS[outcome]
        self._write(request, latest, again, context, word)
        why = changed or "The rules changed meanwhile" if is_approved else _REFUSALS[outcome]
        reason = f"{self._describe_refusal(latest, request, again, context)} {why}."
        return Verdict(is_forwarded=False, reason=reason, decided=again, outcome=word)

    def _evaluate(self, policy: Policy, request: ToolRequest) -> tuple[DecisionResult, tuple[str, ...]]:
        """Return the decision, and the context that holds."""
        context = self._context.holding(policy, request)
        return policy.decide(replace(request, roles=(*request.roles, *context))), context

    def _forward(
        self,
        request: ToolRequest,
        policy: Policy,
        decided: DecisionResult,
        context: tuple[str, ...],
        outcome: str,
    ) -> Verdict:
        self._write(request, policy, decided, context, outcome)
        self._context.count(request)
        return Verdict(is_forwarded=True, decided=decided, outcome=outcome)

    def _write(
        self,
        request: ToolRequest,
        policy: Policy,
        decided: DecisionResult,
        context: tuple[str, ...],
        outcome: str,
        **details: Any,
    ) -> None:
        if self._is_shadow and outcome != "forwarded":
            self._context.count(request)  # a shadow forwards it all the same
        if self._decision_log is not None:
            told = "shadowed" if self._is_shadow else outcome
            self._decision_log.append(
                request, policy, decided, told, self._now(), context=[*context], **details
            )

    def _describe_refusal(
        self, policy: Policy, request: ToolRequest, decided: DecisionResult, context: tuple[str, ...]
    ) -> str:
        """Return the reason of the deciding rule, and the context that does not hold, for the caller.

        Without a deciding rule: what the rules need that may open the tool.
        """
        if not decided.rule_id:
            why = f"{describe_missing_rule(policy, replace(request, roles=(*request.roles, *context)))}."
        else:
            why = decided.reasons[-1]
        by = f" (rule {decided.rule_id})" if decided.rule_id else ""
        names = (f"{CONTEXT_PREFIX}{name}" for name in policy.spec.get("context", {}))
        missing = ", ".join(name for name in names if name not in context)
        does_not_hold = f" (does not hold: {missing})" if missing else ""
        return f"Refused by the policy{by}: {why}{does_not_hold}"

    def _describe_change(self, policy: Policy, name: str) -> str | None:
        """Return a sentence about a definition that differs from the policy; None if it is the same."""
        if self._compared is None or self._compared[0] is not policy:
            self._compared = policy, {}
        changes = self._compared[1]
        if name not in self._listed:
            return self._compare_definition(policy, name)
        if name not in changes:
            changes[name] = self._compare_definition(policy, name)
        return changes[name]

    def _compare_definition(self, policy: Policy, name: str) -> str | None:
        for tool in policy.spec["tools"]:
            if (tool["server_name"], tool["tool_name"]) == (self._server_name, name):
                if name not in self._listed:
                    return f"the server does not list {name}"
                description, schema = self._listed[name]
                if (description or "") != tool.get("description", ""):
                    return f"the description of {name} is not the one that the policy was written for"
                if canonicalize(schema or {}) != canonicalize(tool.get("input_schema", {})):
                    return f"the input schema of {name} is not the one that the policy was written for"
                return None
        return None  # the rules deny an unknown tool
