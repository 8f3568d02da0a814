"""Environments of tasks from and to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.requests import require
from peripety.testgen.model import Environment, FilePreview

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["environment_from_proto", "environment_to_proto"]

_MOST_FILES = 100
_MOST_NAMES = 1_000
_MAX_NAME_BYTES = 4 * 1024
_MAX_PREVIEW_BYTES = 16 * 1024


def environment_from_proto(environment: pb.EnvironmentInfo, field: str = ".environment") -> Environment:
    """Parse the environment of a task.

    Args:
        environment: the message.
        field: its path in the request.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    _check_name(environment.platform, f"{field}.platform")
    for name in ("file_count", "cpu_count", "memory_bytes"):
        require(getattr(environment, name) >= 0, f"{field}.{name}", "must not be negative")
    require(
        len(environment.files) <= _MOST_FILES,
        f"{field}.files",
        f"has more than {_MOST_FILES} files; send fewer",
    )
    return Environment(
        platform=environment.platform,
        languages=_names(environment.languages, f"{field}.languages"),
        available_tools=_names(environment.available_tools, f"{field}.available_tools"),
        prohibited_tools=_names(environment.prohibited_tools, f"{field}.prohibited_tools"),
        files=tuple(_file(file, f"{field}.files[{at}]") for at, file in enumerate(environment.files)),
        file_count=environment.file_count,
        cpu_count=environment.cpu_count,
        memory_bytes=environment.memory_bytes,
    )


def environment_to_proto(environment: Environment) -> pb.EnvironmentInfo:
    """Convert the environment of a task."""
    return pb.EnvironmentInfo(
        platform=environment.platform,
        languages=environment.languages,
        available_tools=environment.available_tools,
        prohibited_tools=environment.prohibited_tools,
        files=[
            pb.FilePreview(
                path=file.path, size_bytes=file.size_bytes, preview=file.preview, structure=file.structure
            )
            for file in environment.files
        ],
        file_count=environment.file_count,
        cpu_count=environment.cpu_count,
        memory_bytes=environment.memory_bytes,
    )


def _file(file: pb.FilePreview, field: str) -> FilePreview:
    require(file.path, f"{field}.path", "is required")
    _check_name(file.path, f"{field}.path")
    require(file.size_bytes >= 0, f"{field}.size_bytes", "must not be negative")
    size = len(file.preview.encode())
    reason = f"has {size} bytes; at most {_MAX_PREVIEW_BYTES} are accepted, so send its beginning"
    require(size <= _MAX_PREVIEW_BYTES, f"{field}.preview", reason)
    return FilePreview(file.path, file.size_bytes, file.preview, _names(file.structure, f"{field}.structure"))


def _names(names: Sequence[str], field: str) -> tuple[str, ...]:
    require(len(names) <= _MOST_NAMES, field, f"has more than {_MOST_NAMES} names; send fewer")
    for at, name in enumerate(names):
        _check_name(name, f"{field}[{at}]")
    return tuple(names)


def _check_name(name: str, field: str) -> None:
    require(
        len(name.encode()) <= _MAX_NAME_BYTES, field, f"has more than {_MAX_NAME_BYTES} bytes; shorten it"
    )
