"""One run of every case with every SDK, against one simulator."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from conformance.simulator.cases import scenario
from conformance.simulator.drivers import DRIVERS
from conformance.simulator.observation import Observation
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.simulator.cases import Case, Mode, Question
    from conformance.simulator.driver import Driver


class Run:
    """Cache of observations: sends each request once, at its first use.

    Attributes:
        drivers: the SDKs, by name.
    """

    def __init__(self) -> None:
        self._server = serve_in_thread(Simulator(scenario()))
        self._loop = asyncio.Runner()
        self.drivers: Mapping[str, Driver] = {each.name: each(self._server.url) for each in DRIVERS}
        self._seen: dict[tuple[str, str, int | None, Mode], Observation] = {}

    def observe(self, driver: Driver, case: Case, size: int | None, mode: Mode) -> Observation:
        """Return the observation of a case whose stream is written in pieces of this size."""
        place = (driver.name, case.name, size, mode)
        if place not in self._seen:
            self._seen[place] = self._ask(driver, case.question(size, mode), mode)
        return self._seen[place]

    def _ask(self, driver: Driver, question: Question, mode: Mode) -> Observation:
        seen = Observation()
        try:
            if mode.is_async:
                self._loop.run(driver.ask_async(question, seen, stream=mode.streams))
            else:
                driver.ask(question, seen, stream=mode.streams)
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises is what its user is shown
            seen.raised = driver.raised(error)
        return seen

    def close(self) -> None:
        """End the connections, then the simulator."""
        for driver in self.drivers.values():
            self._loop.run(driver.close())
        self._loop.close()
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
