"""Tools of agents that are commands of this machine."""

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
    """A command writes more than a model should read."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that does what a tool does: arguments as JSON on its input, the result on its output.

    Attributes:
        words: the program and its arguments; no shell reads them.
        directory: where it runs.
        seconds: how long it may take.
    """

    words: tuple[str, ...]
    directory: Path
    seconds: float

    async def result_of(self, call: gateway.ToolCall) -> gateway.ToolResult:
        """Run it for a call. Whatever goes wrong is a result that says so: the model may find a way out."""
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
            # All that it has started, too: nobody waits for that any more.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if code:
            return f"The tool failed with exit code {code}: {complaints or output}", True
        return output, False


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # it does not want them
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
