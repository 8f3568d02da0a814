"""Scripted model server beside the services, which answers prompts with `MODEL_PROVIDER=scripted`.

The gateway calls it over HTTP like any other provider: the two share no code.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import SecretStr

from peripety.errors import FailedPreconditionError
from peripety.llmsim.script.files import load_script
from peripety.llmsim.server.runner import serve_simulator
from peripety.llmsim.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.config import Config


@asynccontextmanager
async def with_script(config: Config) -> AsyncIterator[Config]:
    """Serve the script on this machine until the block ends, and yield settings that point to it.

    Raises:
        FailedPreconditionError: no script is configured.
        InvalidArgumentError: the script is invalid; the message lists each problem with `file:line:column`.
    """
    if config.script is None:
        raise FailedPreconditionError(
            "provider scripted needs a script file; set PERIPETY_SCRIPT",
            code="PROVIDER_NOT_CONFIGURED",
        )
    scenario = load_script(config.script)
    simulator = Simulator(scenario)
    key = SecretStr(scenario.keys[0]) if scenario.keys else None
    try:
        async with serve_simulator(simulator) as url:
            yield config.model_copy(update={"scripted_api_base": url, "scripted_api_key": key})
    finally:
        simulator.close()
