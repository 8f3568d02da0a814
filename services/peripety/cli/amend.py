"""`peripety amend`: change a stored scenario by a description of the change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.cli.authoring import amend_scenario
from peripety.cli.embedded import services_at
from peripety.cli.jsonify import jsonify
from peripety.cli.live import live_story
from peripety.cli.output import asides, results, write_json
from peripety.cli.text import read_text

if TYPE_CHECKING:
    from peripety.api.common.v1 import common_pb2 as common

__all__ = ["amend", "order"]


def order(
    scenario_id: str, text: str, level: str, model: str, attempts: int, caps: common.Budget
) -> pb.AmendScenarioRequest:
    """Return the request for a change, without its id.

    Args:
        scenario_id: the scenario.
        text: the change; - for standard input.
        level: the checks that the result must pass: DRY_RUN, CERTIFICATE, or UNSPECIFIED for those that the
            current version passed.
        model: the model, as `provider/model`; empty for the configured one.
        attempts: maximum number of model answers.
        caps: the budget of these answers.
    """
    return pb.AmendScenarioRequest(
        scenario_id=scenario_id,
        instruction=read_text(text, "TEXT"),
        level=pb.ValidationLevel.Value(f"VALIDATION_LEVEL_{level}"),
        model=model,
        max_attempts=attempts,
        budget=caps,
    )


def amend(request: pb.AmendScenarioRequest, server: str | None, *, as_json: bool) -> None:
    """Change a scenario; print the progress and the differences.

    Args:
        request: the change.
        server: `host:port` of a server; None runs the change in this process, on the configured database.
        as_json: True to print the new version and its differences as one line of JSON instead.

    Raises:
        SpecError: the change is not possible.
    """
    amended = asyncio.run(_amended(request, server, as_json=as_json))
    if as_json:
        write_json(jsonify(amended))
    else:
        scenario = amended.scenario
        results().print(f"stored as {scenario.scenario_id}, version {scenario.spec_hash}", style="bold")


async def _amended(
    request: pb.AmendScenarioRequest, server: str | None, *, as_json: bool
) -> pb.AmendScenarioResponse.Amended:
    with live_story(asides() if as_json else results()) as story:
        async with services_at(server, "gateway", "scenarios") as channel:
            return await amend_scenario(channel, request, story)
