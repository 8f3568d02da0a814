"""PolicyService: a handler for each of its calls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.answering.recording import Recorder
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceServicer
from peripety.errors import PeripetyError
from peripety.policies.deciding import decisions
from peripety.policies.messages import asked, parts, stored
from peripety.policies.messages import decisions as batches
from peripety.requests import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.answering.log import RequestLog
    from peripety.policies.sources import Sources
    from peripety.policies.store import PolicyStore

__all__ = ["PolicyServicer"]

_LAST = frozenset({"compiled", "failed"})


class PolicyServicer(PolicyServiceServicer):
    """Serves policies over gRPC; what it does not define is answered with UNIMPLEMENTED.

    Args:
        store: keeps those that were compiled.
        sources: finds those that are asked about.
        requests: keeps what requests were answered with.
    """

    def __init__(self, store: PolicyStore, sources: Sources, requests: RequestLog) -> None:
        self._store = store
        self._sources = sources
        self._record = Recorder(requests, _LAST)

    async def Decide(  # noqa: N802 - the contract's name
        self, request: pb.DecideRequest, _context: Any
    ) -> pb.DecideResponse:
        """Decide about one request."""
        policy = await self._sources.policy(asked.policy_source(request.policy))
        call = asked.tool_request(request.request)
        (outcome,) = await decisions(policy, [call], request.request.ByteSize())
        if isinstance(outcome, PeripetyError):
            raise outcome
        return pb.DecideResponse(result=parts.decision_result(outcome))

    async def DecideMany(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[pb.DecideManyRequest], _context: Any
    ) -> AsyncIterator[pb.DecideManyResponse]:
        """Decide about many requests, one message after the other, so that who sends much waits for it."""
        policy = None
        sequence = 0
        async for request in requests:
            if policy is None:
                policy = await self._sources.policy(asked.policy_source(request.policy))
            items = batches.items(request)
            outcomes = await decisions(policy, [call for _, call in items], request.ByteSize())
            names = (name for name, _ in items)
            for response in batches.responses(zip(names, outcomes, strict=True)):
                response.sequence = sequence = sequence + 1
                yield response

    async def GetPolicy(  # noqa: N802 - the contract's name
        self, request: pb.GetPolicyRequest, _context: Any
    ) -> pb.GetPolicyResponse:
        """Read a stored policy."""
        require(request.policy_id, ".policy_id", "is required")
        kept = await self._store.get(request.policy_id, request.policy_hash or None)
        return pb.GetPolicyResponse(policy=stored.policy(kept))

    async def ListPolicies(  # noqa: N802 - the contract's name
        self, request: pb.ListPoliciesRequest, _context: Any
    ) -> pb.ListPoliciesResponse:
        """List stored policies."""
        page = await self._store.policies(request.page_size, request.page_token)
        return pb.ListPoliciesResponse(policies=stored.summaries(page), next_page_token=page.next_page_token)

    async def DeletePolicy(  # noqa: N802 - the contract's name
        self, request: pb.DeletePolicyRequest, _context: Any
    ) -> pb.DeletePolicyResponse:
        """Delete a stored policy."""
        require(request.policy_id, ".policy_id", "is required")
        await self._record.change_once(request, partial(self._store.delete, request.policy_id))
        return pb.DeletePolicyResponse()
