"""Approvals: escalated calls that wait for a person.

An approval is for one call, identified by the hash of its exact content, and for one time. A call that is
not approved in time is denied. The terminal, HTTP and gRPC answer calls through one queue.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING

from peripety.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    ResourceExhaustedError,
)
from peripety.policy.enforcement.decision_log import call_hash

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from peripety.engine import DecisionResult, ToolRequest


MAX_WAITING = 100
"""Maximum number of calls that wait at the same time; further ones are denied at once."""
_MAX_ENDED = 1_000


class ApprovalOutcome(Enum):
    """End of a waiting call."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    """No person answered in time."""
    WITHDRAWN = "withdrawn"
    """The caller stopped waiting."""


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for a person.

    Attributes:
        number: position among all calls of the queue, from 1.
        approval_id: its id.
        request: the exact call.
        call_hash: the hash that identifies the call.
        rule_id: the rule that escalated it.
        reasons: the reasons of the policy.
        since: start of the wait in seconds since 1970.
        until: the time of denial in seconds since 1970.
        redacted_paths: JSON Pointers of the arguments whose values the decision log leaves out.
    """

    number: int
    approval_id: str
    request: ToolRequest
    call_hash: str
    rule_id: str
    reasons: tuple[str, ...]
    since: float
    until: float
    redacted_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedApproval:
    """A call that no longer waits."""

    approval_id: str
    outcome: ApprovalOutcome


class ApprovalQueue:
    """The calls that wait for a person.

    Args:
        seconds: the time that a person has.
        now: returns seconds since 1970.
    """

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._numbers = count(1)
        self._waiting: dict[str, tuple[PendingApproval, asyncio.Future[bool]]] = {}
        # The outcome of ended calls, and the request that answered each one.
        self._ended: OrderedDict[str, tuple[ApprovalOutcome, str]] = OrderedDict()
        self._changed = asyncio.Event()

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The waiting calls, the oldest first."""
        return tuple(approval for approval, _ in self._waiting.values())

    async def ask(
        self, request: ToolRequest, decided: DecisionResult, redacted_paths: tuple[str, ...] = ()
    ) -> ApprovalOutcome:
        """Wait for a person, and return the outcome.

        Args:
            request: the call.
            decided: the decision of the policy.
            redacted_paths: JSON Pointers of the arguments whose values a client hides at first.

        Raises:
            ResourceExhaustedError: `TOO_MANY_CALLS`; too many calls wait.
        """
        if len(self._waiting) >= MAX_WAITING:
            raise ResourceExhaustedError(
                f"{MAX_WAITING} calls wait for a person; answer them first", code="TOO_MANY_CALLS"
            )
        started = self._now()
        approval = PendingApproval(
            next(self._numbers),
            secrets.token_hex(4),
            request,
            call_hash(request),
            decided.rule_id,
            decided.reasons,
            started,
            started + self._seconds,
            redacted_paths,
        )
        answer = asyncio.get_running_loop().create_future()
        self._waiting[approval.approval_id] = approval, answer
        self._notify()
        try:
            await asyncio.wait({answer}, timeout=self._seconds)
        except asyncio.CancelledError:
            self._end(approval.approval_id, ApprovalOutcome.WITHDRAWN)
            raise
        if answer.done():
            return ApprovalOutcome.APPROVED if answer.result() else ApprovalOutcome.DENIED
        self._end(approval.approval_id, ApprovalOutcome.EXPIRED)
        return ApprovalOutcome.EXPIRED

    def answer(
        self, approval_id: str, hash_of_call: str, *, is_approved: bool, request_id: str = ""
    ) -> PendingApproval | None:
        """Approve or deny a call.

        Args:
            approval_id: the id of the approval.
            hash_of_call: the hash of the call that the person has seen.
            is_approved: True to approve.
            request_id: id of the answer, so that a repeated request succeeds again; empty for none.

        Returns:
            The answered call, or None if this request has answered it before.

        Raises:
            AlreadyExistsError: `REQUEST_ID_REUSED`; the request id belongs to another answer of this call.
            NotFoundError: `APPROVAL_NOT_FOUND`; no such call waits, or it was answered.
            FailedPreconditionError: `APPROVAL_MISMATCH`; the hash is that of another call.
        """
        wanted = ApprovalOutcome.APPROVED if is_approved else ApprovalOutcome.DENIED
        approval, answer = self._waiting.get(approval_id, (None, None))
        if approval is None or answer is None:
            outcome, answered_by = self._ended.get(approval_id, (None, ""))
            if not request_id or answered_by != request_id:
                raise NotFoundError(f"no call waits as {approval_id[:64]}", code="APPROVAL_NOT_FOUND")
            if outcome is not wanted:
                raise AlreadyExistsError(
                    f"request_id {request_id} has another answer; use a new one", code="REQUEST_ID_REUSED"
                )
            return None
        if not secrets.compare_digest(approval.call_hash.encode(), hash_of_call.encode()):
            raise FailedPreconditionError(
                "the hash is that of another call; read the waiting calls again", code="APPROVAL_MISMATCH"
            )
        answer.set_result(is_approved)
        self._end(approval_id, wanted, request_id)
        return approval

    def page(self, size: int, after: int = 0) -> Sequence[PendingApproval]:
        """Return at most `size` waiting calls whose number is greater than `after`."""
        return [one for one in self.pending if one.number > after][:size]

    async def watch(self) -> AsyncIterator[PendingApproval | EndedApproval]:
        """Yield the waiting calls, and then each call that starts or stops waiting.

        A reader that is slow may miss a call that has started and ended meanwhile.
        """
        seen: set[str] = set()
        while True:
            changed = self._changed
            for approval in self.pending:
                if approval.approval_id not in seen:
                    seen.add(approval.approval_id)
                    yield approval
            for ended in sorted(seen - self._waiting.keys()):
                seen.discard(ended)
                outcome, _ = self._ended.get(ended, (ApprovalOutcome.WITHDRAWN, ""))
                yield EndedApproval(ended, outcome)
            await changed.wait()

    def _end(self, approval_id: str, outcome: ApprovalOutcome, request_id: str = "") -> None:
        if self._waiting.pop(approval_id, None) is None:
            return
        self._ended[approval_id] = outcome, request_id
        if len(self._ended) > _MAX_ENDED:
            self._ended.popitem(last=False)
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
