"""Hot reload of a script file. An invalid file leaves the current script in use."""

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
    """The script file of a simulator.

    Args:
        path: the file.
        simulator: the simulator.
    """

    def __init__(self, path: Path, simulator: Simulator) -> None:
        self._path = path
        self._simulator = simulator

    def reload(self) -> None:
        """Load the current content of the file.

        Raises:
            ScenarioError: the file is not valid; the old script stays in use.
        """
        self._simulator.reload(load_scenario(self._path))
        _log.info("script reloaded", extra={"file": str(self._path)})

    def try_reload(self) -> None:
        """Load the current content of the file; log an error if it is not valid."""
        try:
            self.reload()
        except PeripetyError as error:
            _log.error("script not reloaded", extra={"file": str(self._path), "reason": str(error)})

    async def watch(self) -> None:
        """Reload after each change of the file, until cancelled. Waits for a file that is being written."""
        played = latest = self._stamp()
        while True:
            await asyncio.sleep(_SECONDS)
            before, latest = latest, self._stamp()
            if latest is not None and latest == before != played:
                self.try_reload()
                played = latest

    def _stamp(self) -> tuple[int, int, int] | None:
        """Return a value that changes with the file; None while an editor replaces the file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
