"""The scripted LLM for tests: served on a free port until the block ends."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.llmsim.script.files import load_script, parse_script
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.llmsim.script.types import Script


@dataclass(frozen=True)
class Served:
    """A simulator and the base URL of its providers."""

    url: str
    simulator: Simulator

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def served(scenario: Script | Path | str, **options: Any) -> Iterator[Served]:
    """Serve a scenario: a value, a file, or the text of a TOML file; the options are the `Simulator`'s."""
    if isinstance(scenario, Path):
        scenario = load_script(scenario)
    elif isinstance(scenario, str):
        scenario = parse_script(scenario)
    simulator = Simulator(scenario, **options)
    try:
        with serve_in_thread(simulator) as server:
            yield Served(server.url, simulator)
    finally:
        simulator.close()
