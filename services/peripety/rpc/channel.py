"""Client channels: every call has a deadline, carries the request id and fails with a `PeripetyError`.

gRPC for Python does not propagate deadlines, and its client interceptors put a task between the caller and
each call. Therefore the channel itself is wrapped: stubs made from it behave like any stub, and a
cancellation reaches the call directly. Read-only methods are retried.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import grpc
import grpc.aio
from google.protobuf.descriptor_pb2 import MethodOptions

from peripety.core import call_context
from peripety.errors import DeadlineError
from peripety.rpc.status import from_rpc_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
    from types import TracebackType


DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024

KEEPALIVE: tuple[tuple[str, Any], ...] = (
    ("grpc.keepalive_time_ms", 30_000),  # probe a silent peer
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # its default leaves a frozen peer connected for 60 s
    ("grpc.http2.max_pings_without_data", 0),  # a turn may take minutes without sending a frame
)


def client_options(
    max_message_bytes: int = DEFAULT_MESSAGE_BYTES,
    *,
    retryable: Iterable[str] = (),
) -> list[tuple[str, Any]]:
    """Return the channel arguments of every client.

    Args:
        max_message_bytes: maximum size of a message in either direction; never unlimited.
        retryable: `package.Service/Method` names that are safe to retry.
    """
    return [
        *KEEPALIVE,
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.keepalive_permit_without_calls", 0),  # an idle client costs the server nothing
        ("grpc.max_reconnect_backoff_ms", 5_000),  # a restarted server is found again within seconds
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.enable_retries", 1),
        ("grpc.use_local_subchannel_pool", 1),  # two channels are two connections
        ("grpc.service_config", json.dumps(service_config(retryable))),
    ]


def service_config(retryable: Iterable[str] = ()) -> dict[str, Any]:
    """Return the gRPC service config: round-robin load balancing, and retries of safe methods.

    Only UNAVAILABLE is retried: no other status means both that the call may not have happened and that
    waiting helps. The throttle stops retries when one call in ten fails, so they never double the load of a
    failing server.
    """
    names = [dict(zip(("service", "method"), name.split("/"), strict=True)) for name in retryable]
    policy = {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [{"name": names, "retryPolicy": policy}] if names else [],
        "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
    }


REQUEST_ID_KEY = "x-request-id"

CALLER_KEY = "x-peripety-caller"
"""Metadata with the name of the caller, set by the proxy that authenticates callers."""

DEFAULT_TIMEOUT = 300.0
"""Default deadline of a call in seconds, if neither its caller nor the enclosing call sets one."""

_MARGIN = 0.05


def open_channel(
    address: str,
    *,
    max_message_bytes: int = DEFAULT_MESSAGE_BYTES,
    retryable: Iterable[str] = (),
) -> grpc.aio.Channel:
    """Open a channel to `host:port`; it connects at its first call.

    Args:
        address: address of the server; calls are balanced over all addresses of a name.
        max_message_bytes: maximum size of a message in either direction.
        retryable: `package.Service/Method` names that are safe to retry.
    """
    options = client_options(max_message_bytes, retryable=retryable)
    return _Channel(grpc.aio.insecure_channel(f"dns:///{address}", options=options))


def _call_timeout(timeout: float | None) -> float:
    """Return the timeout of the next call in seconds: never more than the enclosing call has left."""
    left = call_context.remaining()
    if left is None:
        return DEFAULT_TIMEOUT if timeout is None else timeout
    left -= min(_MARGIN, left / 10)
    if left <= 0:
        raise DeadlineError(
            "no time is left for the call to the next service; increase the deadline or request less",
        )
    return left if timeout is None else min(timeout, left)


def _metadata(given: Iterable[tuple[str, str | bytes]] | None) -> tuple[tuple[str, str | bytes], ...]:
    metadata = tuple(given or ())
    named = {key for key, _ in metadata}
    own = ((REQUEST_ID_KEY, call_context.request_id()), (CALLER_KEY, call_context.caller()))
    return (*metadata, *((key, value) for key, value in own if value and key not in named))


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


class _Call:
    """Wrapper of a call of any kind that raises `PeripetyError`."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __await__(self) -> Generator[Any, None, Any]:
        with _translate_errors():
            return (yield from self._call.__await__())

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            with _translate_errors():
                async for message in self._call:
                    yield message
        finally:
            # The reader may have stopped early. On a call that has ended this does nothing.
            self._call.cancel()

    async def read(self) -> Any:
        with _translate_errors():
            return await self._call.read()

    async def write(self, request: Any) -> None:
        with _translate_errors():
            await self._call.write(request)

    async def done_writing(self) -> None:
        with _translate_errors():
            await self._call.done_writing()


def _wrap_callable(start: Callable[..., Any]) -> Callable[..., Any]:
    def call(*request: Any, timeout: float | None = None, metadata: Any = None, **options: Any) -> _Call:
        return _Call(start(*request, timeout=_call_timeout(timeout), metadata=_metadata(metadata), **options))

    return call


class _Channel(grpc.aio.Channel):
    """Wrapper of a gRPC channel that only changes how calls start."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _wrap_callable(self._channel.unary_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        return _wrap_callable(self._channel.unary_stream(*args, **kwargs))

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _wrap_callable(self._channel.stream_unary(*args, **kwargs))

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        return _wrap_callable(self._channel.stream_stream(*args, **kwargs))

    async def close(self, grace: float | None = None) -> None:
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: FBT001, FBT002 - not ours
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._channel.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


SERVICES = {
    "gateway": ("peripety.api.gateway.v1.gateway_pb2", "peripety.api.agent.v1.agent_pb2"),
    "scenarios": ("peripety.api.scenario.v1.scenario_pb2",),
    "sessions": ("peripety.api.session.v1.session_pb2",),
    "policies": ("peripety.api.policy.v1.policy_pb2",),
    "testgen": ("peripety.api.testgen.v1.testgen_pb2",),
}


def read_only_methods(service: str) -> Iterator[str]:
    """Yield the full names of the unary methods without side effects, which a client may retry."""
    for module in SERVICES[service]:
        for descriptor in import_module(module).DESCRIPTOR.services_by_name.values():
            for method in descriptor.methods:
                level = method.GetOptions().idempotency_level
                is_unary = not (method.client_streaming or method.server_streaming)
                if is_unary and level == MethodOptions.NO_SIDE_EFFECTS:
                    yield f"{descriptor.full_name}/{method.name}"
