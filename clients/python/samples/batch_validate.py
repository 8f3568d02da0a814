"""Validate a file with one specification per line. It is read as fast as the server works."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from peripety.api.scenario.v1.scenario_pb2 import VALIDATION_LEVEL_DRY_RUN, ValidationOptions
from peripety.client import AsyncClient

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")


def documents() -> Iterator[tuple[str, bytes]]:
    """Yield the number of each line and its document."""
    with Path("batch.jsonl").open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield str(number), line


async def main() -> None:
    """Print a line for each verdict, in the order in which they arrive."""
    async with AsyncClient(ADDRESS) as client:
        async for verdict in client.validate(documents(), ValidationOptions(level=VALIDATION_LEVEL_DRY_RUN)):
            if verdict.HasField("error"):
                print(f"line {verdict.item_id}: not decided: {verdict.error.message}")
            elif verdict.accepted:
                print(f"line {verdict.item_id}: valid, lost {verdict.dry_run.fail_rate:.0%} of the runs")
            for finding in verdict.findings.findings:
                print(f"line {verdict.item_id}: {finding.code} {finding.path}: {finding.message}")


asyncio.run(main())
