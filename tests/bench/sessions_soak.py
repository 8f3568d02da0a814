"""Sessions in one server, whose memory must not grow: `make soak-sessions SESSIONS=10000 TURNS=20`.

They are narrated offline, so many at a time, and stay in the database. The exit code is 1 when memory grows;
a turn that is not committed ends the program.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import session_sides

if TYPE_CHECKING:
    from bench.session_clients import Player
    from bench.session_sides import Side

AT_ONCE = 50
TOLD_EVERY = 500
MOST_MIB = 400
GROWTH_MIB = 40
MIB = 2**20


def main(sessions: int, turns: int) -> int:
    """Play, and print whether memory stayed flat."""
    with (
        tempfile.TemporaryDirectory() as folder,
        session_sides.offline(Path(folder)) as side,
    ):
        began, sizes = time.perf_counter(), []
        for first in range(0, sessions, AT_ONCE):
            players = [side.player(number) for number in range(min(AT_ONCE, sessions - first))]
            asyncio.run(_played(players, turns))
            sizes.append(_resident(side))
            played = min(first + AT_ONCE, sessions)
            if played % TOLD_EVERY == 0:
                _tell(f"{played:,} sessions, {time.perf_counter() - began:.0f} s: {sizes[-1]:.0f} MiB")
        seconds = time.perf_counter() - began
    settled, last = sizes[len(sizes) // 4], max(sizes)
    is_flat = last <= MOST_MIB and last - settled <= GROWTH_MIB
    _tell(
        f"{sessions:,} sessions of {turns} turns in {seconds:.0f} s,"
        f" {sessions * turns / seconds:,.0f} a second: {settled:.0f} MiB after a quarter,"
        f" at most {last:.0f} MiB: {'flat' if is_flat else 'NOT flat'}",
    )
    return 0 if is_flat else 1


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _played(players: list[Player], turns: int) -> None:
    async def play(player: Player) -> None:
        await player.open()
        for _ in range(turns):
            await player.take()
        player.close()

    await asyncio.gather(*map(play, players))


def _resident(side: Side) -> float:
    """Memory of the server, in MiB."""
    pages = int(Path(f"/proc/{side.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / MIB


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
