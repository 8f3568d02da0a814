"""Hot reload: a scenario's file is read again when it changes; one that cannot be read changes nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from peripety.errors import PeripetyError
from peripety.simulator.scenario.load import load_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.simulator.simulator import Simulator

__all__ = ["Source"]

_log = logging.getLogger(__name__)

_SECONDS = 0.25


class Source:
    """The file that a simulator's scenario comes from.

    Args:
        path: the file.
        simulator: what plays it.
    """

    def __init__(self, path: Path, simulator: Simulator) -> None:
        self._path = path
        self._simulator = simulator

    def reload(self) -> None:
        """Go on by what the file says now.

        Raises:
            ScenarioError: it is not valid; everything stays as it was.
        """
        self._simulator.reload(load_scenario(self._path))
        _log.info("script reloaded", extra={"file": str(self._path)})

    def try_reload(self) -> None:
        """Go on by what the file says now; if that is not valid, log why and let everything be."""
        try:
            self.reload()
        except PeripetyError as error:
            _log.error("script not reloaded", extra={"file": str(self._path), "reason": str(error)})

    async def watch(self) -> None:
        """Reload whenever the file has changed, until cancelled; one that is being written is waited for."""
        played = latest = self._stamp()
        while True:
            await asyncio.sleep(_SECONDS)
            before, latest = latest, self._stamp()
            if latest is not None and latest == before != played:
                self.try_reload()
                played = latest

    def _stamp(self) -> tuple[int, int, int] | None:
        """What changes when the file does; None while there is none, as when an editor replaces it."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
