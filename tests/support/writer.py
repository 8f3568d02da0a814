"""A process that commits pairs of rows, one pair a transaction, and prints the number of each."""

from __future__ import annotations

import asyncio
import itertools
import sys

from sqlalchemy import Column, Integer, Table, insert

from peripety.storage import METADATA, Database

pairs = Table(
    "pairs", METADATA, Column("number", Integer, primary_key=True), Column("half", Integer, primary_key=True)
)


async def _write_for_ever(url: str) -> None:
    database = await Database.open(url)
    for number in itertools.count():
        async with database.write() as connection:
            await connection.execute(insert(pairs).values(number=number, half=0))
            await connection.execute(insert(pairs).values(number=number, half=1))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_write_for_ever(sys.argv[1]))
