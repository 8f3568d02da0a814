"""The scripted LLM in a process of its own, which records when requests arrive and answers begin and end.

`PYTHONPATH=tests python -m bench.scripted_narrator SCENARIO MOMENTS` serves on a free port and prints it. All
processes of a machine read the same monotonic clock, so that other processes can compare their times.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from bench.session_game import marked
from peripety.llmsim.script.files import load_script
from peripety.llmsim.server.runner import serve_simulator
from peripety.llmsim.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.llmsim.script.types import Script
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import SimBlock, SimRequest


class Moments(NamedTuple):
    """Times of one answer, in seconds of the monotonic clock.

    Attributes:
        session: its session.
        `asked`: its request was read.
        began: its first bytes left; for an answer that is not streamed, its first token was ready.
        ended: its last bytes left.
        input_tokens: size of the prompt.
    """

    session: int
    asked: float
    began: float
    ended: float
    input_tokens: int


def moments_in(file: Path) -> Iterator[Moments]:
    """Yield the times that a narrator has recorded."""
    for line in file.read_text(encoding="ascii").splitlines():
        session, asked, began, ended, tokens = line.split()
        yield Moments(int(session), float(asked), float(began), float(ended), int(tokens))


class TimedNarrator(Simulator):
    """A scripted LLM that records the times of its answers.

    Args:
        scenario: its script.
        notes: receives a line for each answer that has left.
    """

    def __init__(self, script: Script, notes: TextIO) -> None:
        super().__init__(script)
        self._notes = notes

    def begin(self, request: SimRequest) -> Exchange:
        """See `Simulator.begin`."""
        asked = time.monotonic()
        exchange = super().begin(request)
        session = marked("\n".join(message.text for message in request.messages))
        if session is None or exchange.reply is None:
            return exchange
        used = exchange.reply.usage
        tokens = used.fresh + used.read + sum(used.written.values())
        whole = [] if request.stream else [asked + exchange.delivery.pace.first_token_ms / 1e3]
        began: list[float] = whole

        def started() -> None:
            began.append(time.monotonic())
            exchange.on_started()

        def finished(answer: Sequence[SimBlock] = ()) -> None:
            ended = time.monotonic()
            self._notes.write(f"{session} {asked} {began[0]} {ended} {tokens}\n")
            self._notes.flush()
            exchange.on_finished(answer)

        return replace(exchange, on_started=started, on_finished=finished)


async def _main(scenario: Path, moments: Path) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    with moments.open("a", encoding="ascii") as notes:
        async with serve_simulator(TimedNarrator(load_script(scenario), notes)) as url:
            sys.stdout.write(f"listening on {url}\n")
            sys.stdout.flush()
            await stopping.wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), Path(sys.argv[2])))
