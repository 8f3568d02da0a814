"""gRPC channels on which every call has a deadline, carries the request id and fails with a `PeripetyError`.

gRPC for Python does not propagate deadlines, and its client interceptors put a task between the caller and
each call. Therefore the channel itself is wrapped: stubs made from it behave like any stub, and a
cancellation reaches the call directly.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import grpc
import grpc.aio

from peripety import context
from peripety.client.errors import from_rpc_error
from peripety.client.options import DEFAULT_MESSAGE_BYTES, client_options
from peripety.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
    from types import TracebackType

__all__ = ["DEFAULT_TIMEOUT", "REQUEST_ID_KEY", "open_channel"]

REQUEST_ID_KEY = "x-request-id"

DEFAULT_TIMEOUT = 300.0
"""Default deadline of a call in seconds, if neither its caller nor the enclosing call sets one."""

_MARGIN = 0.05


def open_channel(
    address: str, *, max_message_bytes: int = DEFAULT_MESSAGE_BYTES, retryable: Iterable[str] = ()
) -> grpc.aio.Channel:
    """Open a channel to `host:port`; it connects at its first call.

    Args:
        address: address of the server; calls are balanced over all addresses of a name.
        max_message_bytes: maximum size of a message in either direction.
        retryable: `package.Service/Method` names that are safe to retry.
    """
    options = client_options(max_message_bytes, retryable=retryable)
    return _Channel(grpc.aio.insecure_channel(f"dns:///{address}", options=options))


def _allowance(timeout: float | None) -> float:
    """Return the timeout of the next call in seconds: never more than the enclosing call has left."""
    left = context.remaining()
    if left is None:
        return DEFAULT_TIMEOUT if timeout is None else timeout
    left -= min(_MARGIN, left / 10)
    if left <= 0:
        raise DeadlineError(
            "no time is left for the call to the next service; increase the deadline or request less"
        )
    return left if timeout is None else min(timeout, left)


def _metadata(given: Iterable[tuple[str, str | bytes]] | None) -> tuple[tuple[str, str | bytes], ...]:
    metadata = tuple(given or ())
    request_id = context.request_id()
    if request_id is None or any(key == REQUEST_ID_KEY for key, _ in metadata):
        return metadata
    return (*metadata, (REQUEST_ID_KEY, request_id))


@contextmanager
def _translated() -> Iterator[None]:
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
        with _translated():
            return (yield from self._call.__await__())

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            with _translated():
                async for message in self._call:
                    yield message
        finally:
            # The reader may have stopped early. On a call that has ended this does nothing.
            self._call.cancel()

    async def read(self) -> Any:
        with _translated():
            return await self._call.read()

    async def write(self, request: Any) -> None:
        with _translated():
            await self._call.write(request)

    async def done_writing(self) -> None:
        with _translated():
            await self._call.done_writing()


def _callable(start: Callable[..., Any]) -> Callable[..., Any]:
    def call(*request: Any, timeout: float | None = None, metadata: Any = None, **options: Any) -> _Call:
        return _Call(start(*request, timeout=_allowance(timeout), metadata=_metadata(metadata), **options))

    return call


class _Channel(grpc.aio.Channel):
    """Wrapper of a gRPC channel that only changes how calls start."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _callable(self._channel.unary_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        return _callable(self._channel.unary_stream(*args, **kwargs))

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _callable(self._channel.stream_unary(*args, **kwargs))

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        return _callable(self._channel.stream_stream(*args, **kwargs))

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
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
