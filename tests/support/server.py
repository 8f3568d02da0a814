"""A served process: prints its address, holds each `Hold` call open for some seconds, drains on a signal."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.wrappers_pb2 import StringValue

from peripety.core import logging_setup
from peripety.server.app import serve_registered
from support.apps import config_for, service, stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def _main(directory: Path, hold_seconds: float) -> None:
    async def hold(_request: object, _call: object) -> AsyncIterator[StringValue]:
        yield StringValue(value="begin")
        await asyncio.sleep(hold_seconds)
        yield StringValue(value="end")

    config = config_for(directory)
    logging_setup.configure(config)
    async with serve_registered(config, [service(Hold=stream(hold))]) as app:
        sys.stdout.write(f"{app.address}\n")
        sys.stdout.flush()
        await app.wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), float(sys.argv[2])))
