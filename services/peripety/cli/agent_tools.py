"""Agent tools that are commands of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.api.gateway.v1 import gateway_pb2 as gateway

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Command"]

_MAX_OUTPUT_BYTES = 256 * 1024
_CHUNK_BYTES = 16 * 1024


class _TooLargeError(Exception):
    """The output of a command exceeds the limit."""


@dataclass(frozen=True, slots=True)
class Command:
    """A tool that is a local command: arguments as JSON on standard input, the result on standard output.

    Attributes:
        words: the program and its arguments, run without a shell.
        directory: the working directory.
        seconds: the timeout.
    """

    words: tuple[str, ...]
    directory: Path
    seconds: float

    async def result_of(self, call: gateway.ToolCall) -> gateway.ToolResult:
        """Run the command for a tool call.

        A failure becomes an error result, so that the model can react to it.
        """
        try:
            text, is_error = await self._run(call.arguments)
        except TimeoutError:
            text, is_error = f"The tool took longer than {self.seconds:g} s.", True
        except _TooLargeError:
            text, is_error = f"The tool wrote more than {_MAX_OUTPUT_BYTES:,} bytes.", True
        except OSError as error:
            text, is_error = f"The tool cannot be run: {error.strerror or error}.", True
        return gateway.ToolResult(call_id=call.call_id, text=text, is_error=is_error)

    async def _run(self, arguments: bytes) -> tuple[str, bool]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.directory, start_new_session=True
        )
        try:
            async with asyncio.timeout(self.seconds):
                output, complaints, _ = await asyncio.gather(
                    _all_of(process.stdout), _all_of(process.stderr), _feed(process.stdin, arguments)
                )
                code = await process.wait()
        finally:
            # Kill the process group: nothing reads the output of its children any more.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if code:
            return f"The tool failed with exit code {code}: {complaints or output}", True
        return output, False


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # the command closed its input
        stream.write(data)
        await stream.drain()
    stream.close()


async def _all_of(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None  # noqa: S101 - it is a pipe
    data = bytearray()
    while chunk := await stream.read(_CHUNK_BYTES):
        data += chunk
        if len(data) > _MAX_OUTPUT_BYTES:
            raise _TooLargeError
    return data.decode(errors="replace").strip()
