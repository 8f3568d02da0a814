"""The scripted LLM beside the services: who answers prompts with `MODEL_PROVIDER=scripted`.

The gateway asks it over HTTP like any other provider: the two share no code.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from peripety.simulator.scenario.load import load_scenario
from peripety.simulator.server import serve
from peripety.simulator.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.config import Config

__all__ = ["with_script"]


@asynccontextmanager
async def with_script(config: Config, file: Path) -> AsyncIterator[Config]:
    """Serve a script on this machine until the block ends, and give the settings that point to it.

    Raises:
        InvalidArgumentError: the script cannot be used; the message names each problem's `file:line:column`.
    """
    scenario = load_scenario(file)
    simulator = Simulator(scenario)
    key = SecretStr(scenario.keys[0]) if scenario.keys else None
    try:
        async with serve(simulator) as url:
            yield config.model_copy(update={"scripted_api_base": url, "scripted_api_key": key})
    finally:
        simulator.close()
