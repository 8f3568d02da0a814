"""Benchmark of sessions and their naive version: latency of a turn, and number of sessions per machine.

`make bench-sessions`. Both sides run in front of the same scripted LLM, are played by the same client, and
take turns; every process reads the same clock. The printed targets are goals: no run fails because of time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import session_figures, session_sides
from bench.load import cpu_seconds
from bench.scripted_narrator import moments_in
from bench.session_game import narrator, rolling_narrator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from bench.scripted_narrator import Moments
    from bench.session_clients import Player, Taken
    from bench.session_sides import ScriptedNarrator, Side

    Start = Callable[[Path, ScriptedNarrator], AbstractContextManager[Side]]

SESSIONS = 100
WARM_SECONDS = 3.0
PACE = {"first_token_ms": 500, "tokens_per_second": 100, "tokens_per_chunk": 8}
AT_ONCE = {"tokens_per_second": 1e6, "tokens_per_chunk": 8}


@dataclass(frozen=True)
class Series:
    """Mode of the narrator's answers.

    Attributes:
        title: its title.
        script: script of the scripted LLM.
        sides: the sides that are measured.
    """

    title: str
    script: Any
    sides: tuple[Start, ...] = (session_sides.naive, session_sides.peripety)


SERIES = (
    Series("the narrator begins after 0.5 s and writes 100 tokens a second", narrator(PACE)),
    Series("the narrator answers at once", narrator(AT_ONCE)),
    Series(
        "the narrator casts a die, then answers as in the first series (the naive version has no tools)",
        rolling_narrator(PACE),
        (session_sides.peripety,),
    ),
)


@dataclass
class Figures:
    """Figures of one side with one narrator; times in seconds.

    Attributes:
        turns: those that began and ended while it was measured.
        seconds: duration of the measurement.
        cpu: CPU time that the side used meanwhile.
        moments: times of the narrator's answers to the turns, in the same order.
    """

    turns: Sequence[Taken]
    seconds: float
    cpu: float
    moments: Sequence[Moments]

    @property
    def per_second(self) -> float:
        """Turns a second."""
        return len(self.turns) / self.seconds

    @property
    def per_cpu_second(self) -> float:
        """Turns for each second of CPU time."""
        return len(self.turns) / self.cpu

    @property
    def events_per_cpu_second(self) -> float:
        """Streamed events for each second of CPU time."""
        return sum(turn.events for turn in self.turns) / self.cpu

    def after_asking(self, kind: str) -> list[float]:
        """From each request until the first event of a kind."""
        return [turn.arrived[kind] - turn.asked for turn in self.turns]

    @property
    def before_the_model(self) -> list[float]:
        """Return the seconds from each request until the request to the model."""
        return [told.asked - turn.asked for turn, told in self._told()]

    @property
    def behind_the_token(self) -> list[float]:
        """From the model's first bytes until the first prose."""
        return [turn.arrived["narrative_chunk"] - told.began for turn, told in self._told()]

    @property
    def behind_the_end(self) -> list[float]:
        """From the end of the model's answer until the turn was committed."""
        return [turn.ended - told.ended for turn, told in self._told()]

    def _told(self) -> Iterator[tuple[Taken, Moments]]:
        return zip(self.turns, self.moments, strict=True)


def percentile(times: Sequence[float], percent: int) -> float:
    """Milliseconds that so large a part of the times is at most."""
    return sorted(times)[int((len(times) - 1) * percent / 100)] * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15.0, help="how long to measure each side")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--only", help="measure one side")
    parser.add_argument("--series", type=int, help="measure one series")
    arguments = parser.parse_args()
    for series in SERIES if arguments.series is None else SERIES[arguments.series :][:1]:
        found = measured(series, arguments.sessions, arguments.seconds, arguments.only)
        _report(f"{arguments.sessions} sessions, {series.title}", found)
    if arguments.series is None:
        sys.stdout.write("\none session, and what comes of it\n")
        for start in (session_sides.naive, session_sides.peripety):
            with _started(start, narrator(AT_ONCE)) as (side, noted):
                _report_figures(side, noted)


def _report_figures(side: Side, noted: Path) -> None:
    player = session_figures.report_growth(side, noted)
    if player is not None:
        session_figures.report_forks(side, player)
        session_figures.report_odds(side)
        session_figures.report_watching(side)


@contextmanager
def _started(start: Start, script: Any) -> Iterator[tuple[Side, Path]]:
    """A side, and where its narrator notes its moments."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        telling = opened.enter_context(session_sides.narrating(folder, script))
        yield opened.enter_context(start(folder, telling)), telling.moments


def measured(series: Series, sessions: int, seconds: float, only: str | None = None) -> dict[str, Figures]:
    """The figures of each side."""
    found = {}
    for start in series.sides:
        if only in {None, start.__name__}:
            with _started(start, series.script) as (side, noted):
                found[side.name] = _figures(side, noted, sessions, seconds)
    return found


def _figures(side: Side, noted: Path, sessions: int, seconds: float) -> Figures:
    players = [side.player(number) for number in range(sessions)]
    turns, begun, ended, cpu = asyncio.run(_play(players, side.pid, seconds))
    turns = [turn for turn in turns if begun <= turn.asked and turn.ended <= ended]
    by_session: dict[int, list[Moments]] = {}
    for moments in moments_in(noted):
        by_session.setdefault(moments.session, []).append(moments)
    told = [_last_within(by_session[turn.session], turn) for turn in turns]
    return Figures(turns, ended - begun, cpu, told)


def _last_within(answers: Sequence[Moments], turn: Taken) -> Moments:
    return max(answer for answer in answers if turn.asked <= answer.asked and answer.began <= turn.ended)


async def _play(
    players: Sequence[Player],
    pid: int,
    seconds: float,
) -> tuple[list[Taken], float, float, float]:
    """Play all sessions at once; their turns, when measuring began and ended, and the CPU time meanwhile."""
    turns: list[Taken] = []
    ends = time.monotonic() + WARM_SECONDS + seconds

    async def play(player: Player, after: float) -> None:
        await asyncio.sleep(after)
        await player.open()
        while time.monotonic() < ends:
            turns.append(await player.take())
        player.close()

    games = asyncio.gather(
        *(play(player, WARM_SECONDS / 2 * number / len(players)) for number, player in enumerate(players)),
    )
    await asyncio.sleep(WARM_SECONDS)
    begun, before = time.monotonic(), cpu_seconds(pid)
    await asyncio.sleep(seconds)
    ended, after = time.monotonic(), cpu_seconds(pid)
    await games
    return turns, begun, ended, after - before


def _report(title: str, found: dict[str, Figures]) -> None:
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    sys.stdout.write(f"\n{title} (load of the machine {load})\n")
    names = list(found)
    rows = [
        (name, unit, target, [figure(side) for side in found.values()]) for name, unit, target, figure in ROWS
    ]
    sys.stdout.write(f"  {'':<48}{''.join(f'{name:>12}' for name in names)}{'ratio':>10}  target\n")
    for name, unit, target, values in rows:
        cells = "".join(f"{value:>12,.1f}" for value in values)
        ratio = f"{values[-1] / values[0]:>9.2f}x" if len(values) > 1 else " " * 10
        sys.stdout.write(f"  {f'{name}, {unit}':<48}{cells}{ratio}  {target}\n")


def _waits(name: str, target: str, times: Callable[[Figures], Sequence[float]]) -> list[Any]:
    return [
        (
            f"{name}, p{percent}",
            "ms",
            target if percent == 95 else "",
            lambda side, p=percent: percentile(times(side), p),
        )
        for percent in (50, 95)
    ]


ROWS = [
    *_waits("mechanics after the request", "at most 10", lambda side: side.after_asking("action_resolved")),
    *_waits("model asked after the request", "", lambda side: side.before_the_model),
    *_waits("prose behind the model's first token", "at most 20", lambda side: side.behind_the_token),
    *_waits("committed behind the end of the answer", "", lambda side: side.behind_the_end),
    ("turns", "a second", "at least 3x", lambda side: side.per_second),
    ("turns", "a second of CPU time", "", lambda side: side.per_cpu_second),
    ("streamed events", "a second of CPU time", "", lambda side: side.events_per_cpu_second),
]

if __name__ == "__main__":
    main()
