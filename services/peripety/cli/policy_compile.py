"""`peripety policy compile`: a written policy to rules and a test suite."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import typer

from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.cli.embedded import services_at
from peripety.cli.jsonify import jsonify
from peripety.cli.output import asides, results, save, write_json
from peripety.cli.policy_input import POLICY, SCENARIOS, suite_bytes
from peripety.cli.policy_story import live_policy_story
from peripety.client.findings import finding_from_proto
from peripety.errors import InternalError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from peripety.api.policy.v1 import policy_pb2 as pb

__all__ = ["compile_policy", "require_folder"]


def require_folder(out: Path | None) -> None:
    """Check that an output folder can be created, before the work starts.

    Raises:
        BadParameter: a file has this path.
    """
    if out is not None and any(path.is_file() for path in (out, *out.parents)):
        raise typer.BadParameter(f"cannot write to {out}: choose a folder")


def compile_policy(
    request: pb.CompilePolicyRequest, server: str | None, *, out: Path | None, as_json: bool
) -> None:
    """Compile a policy; print the progress and where the result is stored.

    Args:
        request: the input; its id is set here.
        server: `host:port` of a server; None compiles in this process, into the configured database.
        out: a folder for the document and its suite; None for no folder.
        as_json: True to print the result as one line of JSON instead.

    Raises:
        SpecError: rules and scenarios could not be reconciled.
    """
    request.request_id = str(uuid4())
    compiled = asyncio.run(_compiled(request, server, asides() if as_json else results()))
    policy = compiled.policy
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save(policy.document + b"\n", out / POLICY)
        save(suite_bytes([jsonify(one) for one in policy.scenarios]), out / SCENARIOS)
    if as_json:
        write_json(jsonify(compiled))
    else:
        results().print(f"stored as {policy.policy_id}, version {policy.policy_hash}", style="bold")


async def _compiled(
    request: pb.CompilePolicyRequest, server: str | None, out: Console
) -> pb.CompilePolicyResponse.Compiled:
    with live_policy_story(out) as story:
        async with services_at(server, "gateway", "policies") as channel:
            async for event in PolicyServiceStub(channel).CompilePolicy(request):
                story.tell(event)
                if event.HasField("compiled"):
                    return event.compiled
                if event.HasField("failed"):
                    found = list(map(finding_from_proto, event.failed.findings))
                    raise SpecError("rules and scenarios could not be reconciled", found)
    raise InternalError("the policy service ended its stream without a result")
