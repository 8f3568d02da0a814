"""The service of policies on a free port, in front of a compiler that asks nobody."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.core.config import Config
from peripety.policy.compile_cache import ArtifactStore
from peripety.policy.setup import register_service_with
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.policy.compile_cache import PolicyCompilerProtocol
    from peripety.rpc.container import ServiceContainer


@asynccontextmanager
async def serving_policies(
    database_url: str,
    compiler: PolicyCompilerProtocol,
    **settings: Any,
) -> AsyncIterator[PolicyServiceAsyncStub]:
    """Serve them and connect."""

    async def bind(wiring: ServiceContainer) -> None:
        await register_service_with(wiring, compiler, ArtifactStore(await wiring.get_database(), "fake"))

    config = Config(database_url=SecretStr(database_url), listen="127.0.0.1:0", **settings)
    async with serve_registered(config, [bind]) as app, open_channel(app.address) as channel:
        yield PolicyServiceStub(channel)
