"""`peripety policy mutate` and `generate-scenarios`: mutation score and coverage of a policy suite."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.jsonify import enum_word, jsonify
from peripety.cli.output import asides, progress, results, save, write_json
from peripety.cli.policy_checks import policies_at, usable
from peripety.cli.policy_input import suite_bytes
from peripety.cli.policy_telling import counted, coverage_lines, mutation_lines, request_words
from peripety.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.api.common.v1 import quality_pb2 as quality
    from peripety.cli.policy_input import Source

__all__ = ["cover", "mutate"]

_EXPECTED = pb.PolicyScenario.DESCRIPTOR.fields_by_name["expected"]


def mutate(source: Source, operators: Sequence[str], server: str | None, *, as_json: bool) -> None:
    """Mutate rules, and print how many mutants the scenarios detect.

    Args:
        source: the rules and the scenarios.
        operators: the mutation operators; empty for all.
        server: `host:port` of a server; None runs them in this process.
        as_json: True to print every mutant, and the score, as a line of JSON each.

    Raises:
        SpecError: the policy has errors.
    """
    request = pb.RunMutationTestsRequest(
        policy=source.policy, scenarios=source.required_scenarios(), operators=operators
    )
    score = asyncio.run(_mutated(request, server, as_json=as_json))
    if as_json:
        write_json({"score": jsonify(score)})
        return
    for line in mutation_lines(score):
        results().print(line.removeprefix("  "))


def cover(source: Source, most: int, server: str | None, *, out: Path | None, as_json: bool) -> None:
    """Generate scenarios for uncovered rules, and print the coverage of the whole suite.

    Args:
        source: the rules and the existing scenarios.
        most: maximum number of new scenarios; 0 for as many as needed.
        server: `host:port` of a server; None runs in this process.
        out: a file for all scenarios, the existing ones first; None for no file.
        as_json: True to print the new scenarios as lines of JSON.

    Raises:
        SpecError: the policy has errors.
    """
    given = list(source.required_scenarios())
    request = pb.GenerateCoverageScenariosRequest(policy=source.policy, scenarios=given, max_scenarios=most)
    made, covered = asyncio.run(_covered(request, server, as_json=as_json))
    if out is not None:
        save(suite_bytes([jsonify(one) for one in [*given, *made]]), out)
    console = asides() if as_json else results()
    console.print(f"{counted(len(made), 'scenario')} generated; review what they expect")
    for line in (*coverage_lines(covered.coverage), *mutation_lines(covered.mutation)):
        console.print(line)


async def _mutated(
    request: pb.RunMutationTestsRequest, server: str | None, *, as_json: bool
) -> quality.MutationScore:
    async with policies_at(server) as stub:
        with progress("mutating", 1.0) as advance:
            async for event in stub.RunMutationTests(request):
                if event.HasField("scored"):
                    usable(event.scored.findings)
                    return event.scored.score
                if event.HasField("mutants"):
                    advance(len(event.mutants.mutants) / max(event.mutants.total, 1))
                    for mutant in event.mutants.mutants if as_json else ():
                        write_json(jsonify(mutant))
    raise InternalError("the policy service ended its stream without a score")


async def _covered(
    request: pb.GenerateCoverageScenariosRequest, server: str | None, *, as_json: bool
) -> tuple[list[pb.PolicyScenario], pb.GenerateCoverageScenariosResponse.Covered]:
    made: list[pb.PolicyScenario] = []
    async with policies_at(server) as stub:
        if request.policy.policy_id and not request.scenarios:
            wanted = pb.GetPolicyRequest(policy_id=request.policy.policy_id)
            request.scenarios.extend((await stub.GetPolicy(wanted)).policy.scenarios)
        async for event in stub.GenerateCoverageScenarios(request):
            if event.HasField("covered"):
                usable(event.covered.findings)
                return made, event.covered
            if event.HasField("scenario"):
                made.append(event.scenario)
                if as_json:
                    write_json(jsonify(event.scenario))
                else:
                    expected = enum_word(_EXPECTED, event.scenario.expected)
                    results().print(f"{expected}: {request_words(event.scenario.request)}")
    raise InternalError("the policy service ended its stream without a result")
