"""The service of policies on a free port, in front of a compiler that asks nobody."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.client.channel import open_channel
from peripety.config import Config
from peripety.policies.bind import bind_with
from peripety.policies.stored_artifacts import StoredArtifacts
from peripety.rpc.app import serve_bound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.policies.cached import Compiles
    from peripety.wiring import Wiring


@asynccontextmanager
async def serving_policies(
    database_url: str, compiler: Compiles, **settings: Any
) -> AsyncIterator[PolicyServiceAsyncStub]:
    """Serve them and connect."""

    async def bind(wiring: Wiring) -> None:
        await bind_with(wiring, compiler, StoredArtifacts(await wiring.database(), "fake"))

    config = Config(database_url=SecretStr(database_url), listen="127.0.0.1:0", **settings)
    async with serve_bound(config, [bind]) as app, open_channel(app.address) as channel:
        yield PolicyServiceStub(channel)
