"""Approvals: escalated calls that wait for a person.

An approval is for one call, identified by the hash of its exact content, and for one time. A call that is
not approved in time is refused.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError, NotFoundError
from peripety.policy.enforcement.decision_log import call_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.engine import ToolRequest


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call that waits for a person.

    Attributes:
        approval_id: its id.
        request: the exact call.
        call_hash: the hash that identifies the call.
        reasons: the reasons of the policy.
        until: the time of refusal in seconds since 1970.
    """

    approval_id: str
    request: ToolRequest
    call_hash: str
    reasons: tuple[str, ...]
    until: float


class ApprovalQueue:
    """The calls that wait for a person.

    Args:
        seconds: the time that a person has.
        now: returns seconds since 1970.
    """

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._waiting: dict[str, tuple[PendingApproval, asyncio.Future[bool]]] = {}

    @property
    def pending(self) -> tuple[PendingApproval, ...]:
        """The waiting calls, the oldest first."""
        return tuple(approval for approval, _ in self._waiting.values())

    async def ask(self, request: ToolRequest, reasons: tuple[str, ...]) -> bool | None:
        """Wait for a person; return True for an approval, False for a refusal, None after the time limit."""
        until = self._now() + self._seconds
        approval = PendingApproval(secrets.token_hex(4), request, call_hash(request), reasons, until)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[approval.approval_id] = approval, answer
        try:
            return await asyncio.wait_for(answer, self._seconds)
        except TimeoutError:
            return None
        finally:
            del self._waiting[approval.approval_id]

    def answer(self, approval_id: str, hash_of_call: str, *, is_approved: bool) -> None:
        """Approve or refuse a call.

        Args:
            approval_id: the id of the approval.
            hash_of_call: the hash of the call that the person has seen.
            is_approved: True to approve.

        Raises:
            NotFoundError: `APPROVAL_NOT_FOUND`; no such call waits, or it was answered.
            FailedPreconditionError: `APPROVAL_MISMATCH`; the hash is that of another call.
        """
        approval, answer = self._waiting.get(approval_id, (None, None))
        if approval is None or answer is None or answer.done():
            raise NotFoundError(f"no call waits as {approval_id}", code="APPROVAL_NOT_FOUND")
        if not secrets.compare_digest(approval.call_hash, hash_of_call):
            raise FailedPreconditionError(
                "the hash is that of another call; read the waiting calls again", code="APPROVAL_MISMATCH"
            )
        answer.set_result(is_approved)
