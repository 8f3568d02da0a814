"""Registration of the approvals in the process of an enforcement point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import add_ApprovalServiceServicer_to_server
from peripety.policy.enforcement.service import ApprovalServicer

if TYPE_CHECKING:
    from peripety.policy.enforcement.approvals import ApprovalQueue
    from peripety.rpc.container import ServiceContainer


async def register_approvals(wiring: ServiceContainer, *, approvals: ApprovalQueue, token: str) -> None:
    """Register ApprovalService.

    Args:
        wiring: the process.
        approvals: the waiting calls.
        token: the token that each request must have.
    """
    add_ApprovalServiceServicer_to_server(ApprovalServicer(approvals, token), wiring.server)
    service = pb.DESCRIPTOR.services_by_name["ApprovalService"]
    wiring.add_service_name(service.full_name)
    wiring.methods_without_deadline.add(f"/{service.full_name}/WatchApprovals")
