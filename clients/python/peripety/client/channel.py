"""Channels with TLS, token, deadline and retries. Their calls raise `CallError`, and have a `request_id`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import grpc
import grpc.aio

from peripety.client.errors import from_rpc_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_KEEPALIVE = (
    ("grpc.keepalive_time_ms", 30_000),  # servers close connections that probe every 20 s or more often
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # its default leaves a frozen peer connected for a minute
    ("grpc.http2.max_pings_without_data", 0),  # a turn may take minutes without a byte
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.use_local_subchannel_pool", 1),  # two clients are two connections
)
_LOOPBACK = ("127.", "localhost:", "[::1]:", "unix:")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a connection.

    Attributes:
        address: `host:port` of the server.
        tls: False for plaintext, True for the system's certificate authorities, PEM bytes for others, or
            credentials of gRPC.
        token: bearer token of the `authorization` header, or a function that returns it for each call.
        timeout: deadline of each call in seconds, unless the call sets its own; None for that of the service
            config.
    """

    address: str
    tls: bool | bytes | grpc.ChannelCredentials = False
    token: str | Callable[[], str] | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.token is not None and self.tls is False and not self.address.startswith(_LOOPBACK):
            raise ValueError(f"token: would be sent as plaintext to another machine: {self.address}; set tls")

    def open(self, api: Any) -> Any:
        """Open a channel of `grpc` or of `grpc.aio`; it connects at its first call."""
        target = self.address if self.address.startswith("unix:") else f"dns:///{self.address}"
        options = [
            *_KEEPALIVE,
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.service_config", service_config()),
        ]
        if self.tls is False:
            return api.insecure_channel(target, options=options)
        credentials = self.tls
        if not isinstance(credentials, grpc.ChannelCredentials):
            credentials = grpc.ssl_channel_credentials(None if credentials is True else credentials)
        return api.secure_channel(target, credentials, options=options)

    def arguments(self, timeout: float | None, metadata: Iterable[tuple[str, Any]] | None) -> dict[str, Any]:
        """Return the arguments that every call gets."""
        pairs = list(metadata or ())
        if self.token is not None:
            token = self.token if isinstance(self.token, str) else self.token()
            pairs.append(("authorization", f"Bearer {token}"))
        return {"timeout": self.timeout if timeout is None else timeout, "metadata": pairs}


def service_config() -> str:
    """Return the gRPC service config: retries and time limits of each call, as JSON."""
    return resources.files("peripety.client").joinpath("service-config.json").read_text("utf-8")


def with_request_id(request: Any) -> Any:
    """Return a request with a new `request_id`, if it needs one and has none."""
    field = request.DESCRIPTOR.fields_by_name.get("request_id") if hasattr(request, "DESCRIPTOR") else None
    if field is None or field.containing_oneof or request.request_id:
        return request
    identified = type(request)()
    identified.CopyFrom(request)  # a request that is sent twice without an id is two requests
    identified.request_id = str(uuid4())
    return identified


@contextmanager
def _call_errors() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc_error(error) from None


class Channel:
    """Channel for stubs, of the sync or of the async API.

    Args:
        settings: settings of the connection.
        api: `grpc` or `grpc.aio`.
    """

    def __init__(self, settings: Settings, api: Any) -> None:
        self._settings = settings
        self._channel = settings.open(api)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._channel, name)
        return self._wrap(found) if name.startswith(("unary_", "stream_")) else found

    def _wrap(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def create(*args: Any, **kwargs: Any) -> Callable[..., Any]:
            start = method(*args, **kwargs)

            def call(
                request: Any = None, timeout: float | None = None, metadata: Any = None, **options: Any
            ) -> Any:
                arguments = self._settings.arguments(timeout, metadata)
                with _call_errors():
                    result = start(with_request_id(request), **arguments, **options)
                if isinstance(result, grpc.aio.Call):
                    return _AsyncCall(result)
                return _SyncStream(result) if isinstance(result, grpc.Call) else result

            return call

        return create


class _SyncStream:
    """Stream of responses that raises `CallError`."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> _SyncStream:
        return self

    def __next__(self) -> Any:
        with _call_errors():
            return next(self._call)


class _AsyncCall:
    """Call that raises `CallError`: a response to await, or a stream of responses."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __await__(self) -> Generator[Any, None, Any]:
        with _call_errors():
            return (yield from self._call.__await__())

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            with _call_errors():
                async for message in self._call:
                    yield message
        finally:
            self._call.cancel()  # the reader may have stopped early
