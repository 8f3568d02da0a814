"""Policies in a process of their own, with the gateway in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.errors import PeripetyError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.servers.apps import config_for, new_id

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_gateway_may_run_in_another_process(tmp_path: Path) -> None:
    request = pb.CompilePolicyRequest(
        request_id=new_id(),
        constitution="Never remove anything.",
        tools=[pb.ToolAnnotation(server_name="alpha", tool_name="remove", destructive=True)],
    )
    async with serve(config_for(tmp_path), services={"gateway"}) as gateway:
        config = config_for(tmp_path, gateway_address=gateway.address)
        async with serve(config, services={"policies"}) as app, open_channel(app.address) as channel:
            assert app.services == ("peripety.api.policy.v1.PolicyService",)
            stub = PolicyServiceStub(channel)
            events = [event async for event in stub.CompilePolicy(request)]
            policy = events[-1].compiled.policy
            decision = await stub.Decide(
                pb.DecideRequest(
                    policy=pb.PolicySource(policy_id=policy.policy_id),
                    request=pb.PolicyRequest(server_name="alpha", tool_name="remove"),
                ),
            )
    assert decision.result.decision == pb.DECISION_DENY
    assert not policy.verification.failed


async def test_without_a_gateway_anywhere_the_service_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(PeripetyError, match="PERIPETY_GATEWAY_ADDRESS"):
        async with serve(config_for(tmp_path), services={"policies"}):
            pass
