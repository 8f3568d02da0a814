"""Server reflection, under `grpc.reflection.v1` and the older `v1alpha`.

`grpcio-reflection` has only v1alpha, and current tools try v1 first. The messages of both versions have
the same bytes, so one servicer answers under both names. Only the descriptor of v1 is derived, so that tools
can describe the v1 service itself. It has its own descriptor pool: a later `grpcio-reflection` may add the
official file to the default pool, which rejects a second file of that name.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import reflection, reflection_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.protobuf.descriptor import FileDescriptor


_V1ALPHA = reflection.SERVICE_NAME
_V1 = _V1ALPHA.replace(".v1alpha.", ".v1.")

SERVICE_NAMES = (_V1, _V1ALPHA)
"""Full names of the reflection services."""


class _Pool:
    """Descriptor lookup in the default pool, then in the file of the v1 service.

    A symbol can also be a method, which a descriptor pool does not find by `FindFileContainingSymbol`.
    """

    def __init__(self) -> None:
        own = descriptor_pool.DescriptorPool()
        own.Add(_file_of_v1())
        self._default: Any = descriptor_pool.Default()
        self._pools: tuple[Any, ...] = (self._default, own)

    def FindFileByName(self, name: str) -> FileDescriptor:  # noqa: N802 - the name of the pool's method
        """Return a file by its name."""
        return _first(name, [pool.FindFileByName for pool in self._pools])

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802 - as above
        """Return the file that defines a symbol: a type, a service or a method."""
        finders = [pool.FindFileContainingSymbol for pool in self._pools]
        finders += [partial(_file_of_method, pool) for pool in self._pools]
        return _first(symbol, finders)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._default, name)


def _first(name: str, finders: list[Callable[[str], FileDescriptor]]) -> FileDescriptor:
    for find in finders:
        with suppress(KeyError):
            return find(name)
    raise KeyError(name)


def _file_of_method(pool: Any, name: str) -> FileDescriptor:
    file: FileDescriptor = pool.FindMethodByName(name).containing_service.file
    return file


def _file_of_v1() -> descriptor_pb2.FileDescriptorProto:
    """Return the file of v1alpha with the package and the type names of v1."""
    copy = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(copy)
    copy.name = "grpc/reflection/v1/reflection.proto"
    copy.package = _V1.rpartition(".")[0]
    copy.ClearField("options")
    old, new = f".{_V1ALPHA.rpartition('.')[0]}.", f".{copy.package}."
    for message in copy.message_type:
        for field in message.field:
            if field.HasField("type_name"):
                field.type_name = field.type_name.replace(old, new)
    for service in copy.service:
        for method in service.method:
            method.input_type = method.input_type.replace(old, new)
            method.output_type = method.output_type.replace(old, new)
    return copy


def enable_reflection(service_names: Iterable[str], server: grpc.aio.Server) -> None:
    """Serve reflection about services, and about reflection itself.

    Args:
        service_names: full names of the other services.
        server: the server to register with, before its start.
    """
    pool: Any = _Pool()
    servicer = reflection.aio.ReflectionServicer((*service_names, *SERVICE_NAMES), pool=pool)
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        [
            grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method})
            for name in SERVICE_NAMES
        ],
    )
