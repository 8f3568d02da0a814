"""`peripety compile`: validate, dry-run, repair and store a specification.

Repairs only adjust numbers, and only if the dry-run misses its budget.
"""

from __future__ import annotations

import asyncio

from peripety.cli.authoring import compile_scenario
from peripety.cli.documents import read_specification
from peripety.cli.embedded import services_at
from peripety.cli.jsonify import jsonify
from peripety.cli.live import live_story
from peripety.cli.output import asides, results, write_json

__all__ = ["compile_specification"]


def compile_specification(source: str, *, version_of: str | None, server: str | None, as_json: bool) -> None:
    """Compile the specification in `source`; print its repairs and where it is stored.

    Args:
        source: a file, or - for standard input.
        version_of: the stored scenario to add a version to.
        server: `host:port` of a server; None compiles in this process, into the configured database.
        as_json: True to print the stored scenario as one line of JSON instead.

    Raises:
        SpecError: the specification is rejected.
    """
    asyncio.run(_compile(read_specification(source), version_of, server, as_json=as_json))


async def _compile(spec: bytes, version_of: str | None, server: str | None, *, as_json: bool) -> None:
    with live_story(asides() if as_json else results()) as story:
        async with services_at(server, "gateway", "scenarios") as channel:
            scenario = await compile_scenario(channel, spec=spec, view=story, version_of=version_of or "")
    if as_json:
        write_json(jsonify(scenario))
    else:
        results().print(f"stored as {scenario.scenario_id}, version {scenario.spec_hash}", style="bold")
