"""ApprovalService: one handler per RPC, over the queue of an enforcement point."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import ApprovalServiceServicer
from peripety.core.concurrency import closing
from peripety.core.validation import check_request_id, resolve_page_size
from peripety.errors import FailedPreconditionError, field_error, require_field
from peripety.policy.enforcement.approvals import EndedApproval, PendingApproval
from peripety.policy.pb.responses import tool_request_to_proto
from peripety.rpc.messages import copy_fields

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.policy.enforcement.approvals import ApprovalQueue


_MICROSECONDS = 1_000_000


class ApprovalServicer(ApprovalServiceServicer):
    """gRPC servicer of the waiting calls.

    Args:
        approvals: the waiting calls.
        token: the token that each request must have.
    """

    def __init__(self, approvals: ApprovalQueue, token: str) -> None:
        self._approvals = approvals
        self._expected = f"Bearer {token}".encode()

    async def ListApprovals(  # noqa: N802 - the contract's name
        self,
        request: pb.ListApprovalsRequest,
        context: Any,
    ) -> pb.ListApprovalsResponse:
        """List the waiting calls, oldest first."""
        self._require_token(context)
        size, token = resolve_page_size(request.page_size), request.page_token
        if token and not (token.isascii() and token.isdecimal() and len(token) <= len(str(2**63))):
            raise field_error(".page_token", "is not a token of this list; begin with an empty one")
        found = self._approvals.page(size + 1, int(token or 0))
        page = found[:size]
        return pb.ListApprovalsResponse(
            approvals=map(_approval_to_proto, page),
            next_page_token=str(page[-1].number) if len(found) > size else "",
        )

    async def WatchApprovals(  # noqa: N802 - the contract's name
        self,
        _request: pb.WatchApprovalsRequest,
        context: Any,
    ) -> AsyncIterator[pb.WatchApprovalsResponse]:
        """Stream the waiting calls, and each call that starts or stops waiting."""
        self._require_token(context)
        sequence = 0
        async with closing(self._approvals.watch()) as events:
            async for event in events:
                sequence += 1
                yield _event_to_proto(event, sequence)

    async def ApproveCall(  # noqa: N802 - the contract's name
        self,
        request: pb.ApproveCallRequest,
        context: Any,
    ) -> pb.ApproveCallResponse:
        """Approve a waiting call, once."""
        self._answer(request, context, is_approved=True)
        return pb.ApproveCallResponse()

    async def DenyCall(  # noqa: N802 - the contract's name
        self,
        request: pb.DenyCallRequest,
        context: Any,
    ) -> pb.DenyCallResponse:
        """Deny a waiting call."""
        self._answer(request, context, is_approved=False)
        return pb.DenyCallResponse()

    def _answer(
        self, request: pb.ApproveCallRequest | pb.DenyCallRequest, context: Any, *, is_approved: bool
    ) -> None:
        self._require_token(context)
        check_request_id(request.request_id)
        require_field(request.approval_id, ".approval_id", "is required")
        require_field(request.call_hash, ".call_hash", "is required; repeat the hash of the call")
        self._approvals.answer(
            request.approval_id,
            request.call_hash,
            is_approved=is_approved,
            request_id=request.request_id,
        )

    def _require_token(self, context: Any) -> None:
        given = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        if len(given) != 1 or not secrets.compare_digest(str(given[0]).encode(), self._expected):
            raise FailedPreconditionError(
                "the token of this enforcement point is required; send it as `authorization: Bearer TOKEN`",
                code="TOKEN_REQUIRED",
            )


def _approval_to_proto(approval: PendingApproval) -> pb.PendingApproval:
    return copy_fields(
        pb.PendingApproval,
        approval,
        request=tool_request_to_proto(approval.request),
        create_time=int(approval.since * _MICROSECONDS),
        expire_time=int(approval.until * _MICROSECONDS),
    )


def _event_to_proto(event: PendingApproval | EndedApproval, sequence: int) -> pb.WatchApprovalsResponse:
    response = pb.WatchApprovalsResponse
    if isinstance(event, PendingApproval):
        return response(sequence=sequence, waiting=_approval_to_proto(event))
    return response(sequence=sequence, ended=copy_fields(response.Ended, event))
