"""Stored policies of another process, with the same interface as the local store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub

if TYPE_CHECKING:
    import grpc.aio


class RemoteStoredPolicies:
    """Implementation of `StoredPolicies` that calls a PolicyService.

    Args:
        channel: the channel to the service.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = PolicyServiceStub(channel)

    async def document(self, policy_id: str) -> bytes:
        """Return the document of a stored policy; see `StoredPolicies.document`."""
        return (await self._stub.GetPolicy(pb.GetPolicyRequest(policy_id=policy_id))).policy.document
