"""`peripety policy verify`, `analyze`, `diff`, `decide`, `mutate` and `generate-scenarios`.

These checks are deterministic and need no model.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.options import Server
from peripety.cli.output import (
    EXIT_FAILED,
    finding_lines,
    one_line,
    person_console,
    progress_bar,
    read_text_argument,
    require_writable,
    result_console,
    save_file,
    write_json,
)
from peripety.cli.policy_author import format_suite, policy_input, read_text_file
from peripety.cli.render.policy import (
    format_count,
    format_decision,
    format_failures,
    format_request,
    format_rule_figures,
)
from peripety.cli.render.policy_report import render_report
from peripety.errors import InternalError, Severity, SpecError
from peripety.rpc.proto_json import enum_word, to_json
from peripety.rpc.status import finding_from_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.api.common.v1 import quality_pb2 as quality
    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.errors import Finding


commands = typer.Typer()

_POLICY_HELP = "Compiled folder, document (use - for standard input), or stored policy: ID or ID@HASH."
Policy = Annotated[str, typer.Argument(metavar="POLICY", help=_POLICY_HELP)]
Scenarios = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File with scenarios, as JSON. [default: those in the folder, or stored with the policy]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


_ISSUE = pb.RuleIssue.DESCRIPTOR.fields_by_name["kind"]
_PATCH = pb.RulePatch.DESCRIPTOR.fields_by_name["kind"]


@asynccontextmanager
async def policies_at(server: str | None) -> AsyncIterator[PolicyServiceAsyncStub]:
    """Yield a policy stub: of a server, or of an embedded service on the configured database."""
    async with services_at(server, "gateway", "policies") as channel:
        yield PolicyServiceStub(channel)


def warnings_or_raise(findings: Iterable[common.Finding]) -> list[Finding]:
    """Return the warnings among findings.

    Raises:
        SpecError: a finding is an error.
    """
    found = list(map(finding_from_proto, findings))
    if any(one.severity is Severity.ERROR for one in found):
        raise SpecError("the policy has errors", found)
    return found


async def _verify(
    request: pb.VerifyPolicyRequest,
    server: str | None,
) -> tuple[pb.VerificationReport, dict[str, pb.PolicyScenario]]:
    """Return the report, and its scenarios by id."""
    async with policies_at(server) as stub:
        scenarios = list(request.scenarios)
        if request.policy.policy_id and not scenarios:
            source = request.policy
            wanted = pb.GetPolicyRequest(policy_id=source.policy_id, policy_hash=source.policy_hash)
            scenarios = list((await stub.GetPolicy(wanted)).policy.scenarios)
        told = await stub.VerifyPolicy(request)
    warnings_or_raise(told.findings)
    named = zip(told.verification.results, scenarios, strict=True)
    return told.verification, {result.scenario_id: scenario for result, scenario in named}


async def _analyze(request: pb.AnalyzePolicyRequest, server: str | None) -> pb.AnalyzePolicyResponse:
    async with policies_at(server) as stub:
        return await stub.AnalyzePolicy(request)


async def _compare(request: pb.DiffPoliciesRequest, server: str | None) -> pb.DiffPoliciesResponse:
    async with policies_at(server) as stub:
        return await stub.DiffPolicies(request)


async def _decide(request: pb.DecideRequest, server: str | None) -> pb.DecideResponse:
    async with policies_at(server) as stub:
        return await stub.Decide(request)


def _format_considered(rule: pb.ConsideredRule) -> str:
    """Return a line about a rule that was considered."""
    word = enum_word(rule.DESCRIPTOR.fields_by_name["outcome"], rule.outcome).replace("_", " ")
    return one_line(f"{rule.rule_id}: {word}{f', see {rule.path}' if rule.path else ''}")


def _format_masked(
    found: Iterable[pb.ScenarioResult],
    scenarios: dict[str, pb.PolicyScenario],
) -> Iterable[str]:
    for result in found:
        if result.passed and result.masked_rule_id:
            about = one_line(scenarios[result.scenario_id].description)
            meant = one_line(result.masked_rule_id)
            yield f"  masked: {about}: is {format_decision(result.actual)}, before {meant}"


def _format_comparison(told: pb.DiffPoliciesResponse) -> str:
    if told.equivalent:
        return "the policies decide every request alike"
    if told.changes:
        return f"the policies differ: {format_count(len(told.changes), 'example')}"
    return "no difference was found, but equivalence is not proved"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        result_console().print(line)


_EXPECTED = pb.PolicyScenario.DESCRIPTOR.fields_by_name["expected"]


async def _mutate(
    request: pb.RunMutationTestsRequest,
    server: str | None,
    *,
    as_json: bool,
) -> quality.MutationScore:
    async with policies_at(server) as stub:
        with progress_bar("mutating", 1.0) as advance:
            async for event in stub.RunMutationTests(request):
                if event.HasField("scored"):
                    warnings_or_raise(event.scored.findings)
                    return event.scored.score
                if event.HasField("mutants"):
                    advance(len(event.mutants.mutants) / max(event.mutants.total, 1))
                    for mutant in event.mutants.mutants if as_json else ():
                        write_json(to_json(mutant))
    raise InternalError("the policy service ended its stream without a score")


async def _generate(
    request: pb.GenerateCoverageScenariosRequest,
    server: str | None,
    *,
    as_json: bool,
) -> tuple[list[pb.PolicyScenario], pb.GenerateCoverageScenariosResponse.Covered]:
    made: list[pb.PolicyScenario] = []
    async with policies_at(server) as stub:
        if request.policy.policy_id and not request.scenarios:
            wanted = pb.GetPolicyRequest(policy_id=request.policy.policy_id)
            request.scenarios.extend((await stub.GetPolicy(wanted)).policy.scenarios)
        async for event in stub.GenerateCoverageScenarios(request):
            if event.HasField("covered"):
                warnings_or_raise(event.covered.findings)
                return made, event.covered
            if event.HasField("scenario"):
                made.append(event.scenario)
                if as_json:
                    write_json(to_json(event.scenario))
                else:
                    expected = enum_word(_EXPECTED, event.scenario.expected)
                    result_console().print(f"{expected}: {format_request(event.scenario.request)}")
    raise InternalError("the policy service ended its stream without a result")


@commands.command()
def verify(
    policy: Policy,
    scenarios: Scenarios = None,
    mutation: Annotated[bool, typer.Option("--mutation", help="Also measure the mutation score.")] = False,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Run scenarios against rules. No model is called.

    Exit code 0 if all scenarios pass, 1 if one fails.
    """
    source = policy_input(policy, scenarios)
    request = pb.VerifyPolicyRequest(
        policy=source.policy,
        scenarios=source.required_scenarios(),
        mutation=mutation,
    )
    report, played = asyncio.run(_verify(request, server))
    if as_json:
        write_json(to_json(report))
    else:
        style = "red" if report.failed else "green"
        result_console().print(f"{report.passed:,} passed, {report.failed:,} failed", style=style)
        _print_lines(format_failures(report.results, played))
        _print_lines(_format_masked(report.results, played))
        mutation_score = report.mutation if report.HasField("mutation") else None
        _print_lines(format_rule_figures(report.coverage, mutation_score))
    raise typer.Exit(EXIT_FAILED if report.failed else 0)


@commands.command()
def analyze(policy: Policy, server: Server = None, as_json: AsJson = False) -> None:
    """Find dead, shadowed and redundant rules.

    Exit code 0 without issues, 1 otherwise.
    """
    source = policy_input(policy)
    told = asyncio.run(_analyze(pb.AnalyzePolicyRequest(policy=source.policy), server))
    if as_json:
        write_json(to_json(told))
        warnings_or_raise(told.findings)
        raise typer.Exit(EXIT_FAILED if told.issues else 0)
    _print_lines(finding_lines(warnings_or_raise(told.findings)))
    for issue in told.issues:
        kind = enum_word(_ISSUE, issue.kind)
        result_console().print(
            f"{one_line(issue.rule_id)}: {kind}: {one_line(issue.message)}",
            style="yellow",
        )
        if issue.HasField("witness"):
            result_console().print(f"  example: {format_request(issue.witness)}")
    result_console().print(format_count(len(told.issues), "issue"))
    raise typer.Exit(EXIT_FAILED if told.issues else 0)


async def _explain(request: pb.ExplainPolicyRequest, server: str | None) -> pb.ExplainPolicyResponse:
    async with policies_at(server) as stub:
        return await stub.ExplainPolicy(request)


def _format_sentence(sentence: pb.SentenceStatement) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of a sentence, each with its style."""
    yield one_line(sentence.sentence) or "Rules that name no sentence", "bold"
    if not sentence.rules:
        yield "  no rule implements it, so it allows nothing", "red"
    for rule in sentence.rules:
        yield f"  {one_line(rule.text)} ({one_line(rule.rule_id)})", None
        for word, call in (("this call", rule.decided), ("not this", rule.nearest)):
            if call.HasField("request"):
                yield f"    {word}: {format_request(call.request)} → {format_decision(call.decision)}", None


@commands.command()
def explain(
    policy: Policy,
    constitution: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Written policy. [default: constitution.md in the folder]"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the report to this file, as one HTML page."),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Describe the rules of each sentence in English.

    The English is made from the rules alone. Compare it with the sentence: a rule can pass its tests, and
    still have another meaning. Two calls belong to each rule: it decides the first one; the second one just
    misses it.
    """
    require_writable(html)
    beside = Path(policy) / "constitution.md"
    written = constitution or (str(beside) if beside.is_file() else None)
    text = read_text_file(written) if written else ""
    request = pb.ExplainPolicyRequest(policy=policy_input(policy).policy, constitution=text)
    told = asyncio.run(_explain(request, server))
    findings = warnings_or_raise(told.findings)
    if html is not None:
        save_file(render_report(told.sentences).encode(), html)
    if as_json:
        for sentence in told.sentences:
            write_json(to_json(sentence))
        return
    for sentence in told.sentences:
        for line, style in _format_sentence(sentence):
            result_console().print(line, style=style)
    _print_lines(finding_lines(findings))


@commands.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=f"First policy. {_POLICY_HELP}")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=f"Second policy. {_POLICY_HELP}")],
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of examples.")] = 50,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show the calls that two policies decide differently.

    Newly allowed calls come first. Exit code 0 if the policies are proved equivalent, 1 if they differ or the
    proof is inconclusive.
    """
    request = pb.DiffPoliciesRequest(
        before=policy_input(before).policy, after=policy_input(after).policy, max_examples=limit
    )
    told = asyncio.run(_compare(request, server))
    if as_json:
        write_json(to_json(told))
        warnings_or_raise(told.findings)
    else:
        findings = warnings_or_raise(told.findings)
        for patch in told.rule_changes:
            result_console().print(f"rule {one_line(patch.rule_id)}: {enum_word(_PATCH, patch.kind)}")
        for change in told.changes:
            style = "red" if change.after.decision == pb.DECISION_ALLOW else None
            words = f"{format_decision(change.before)} → {format_decision(change.after)}"
            result_console().print(f"{words}: {format_request(change.witness)}", style=style)
        _print_lines(finding_lines(findings))
        result_console().print(_format_comparison(told), style="bold")
    raise typer.Exit(0 if told.equivalent else EXIT_FAILED)


@commands.command()
def mutate(
    policy: Policy,
    scenarios: Scenarios = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Mutation operator; may be repeated. An unknown name lists all. [default: all operators]",
        ),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Measure the mutation score of a suite.

    Changes the rules in small ways and reports how many of the changes the scenarios detect.
    """
    source = policy_input(policy, scenarios)
    request = pb.RunMutationTestsRequest(
        policy=source.policy,
        scenarios=source.required_scenarios(),
        operators=operator or (),
    )
    score = asyncio.run(_mutate(request, server, as_json=as_json))
    if as_json:
        write_json({"score": to_json(score)})
        return
    for line in format_rule_figures((), score):
        result_console().print(line.removeprefix("  "))


@commands.command()
def generate_scenarios(
    policy: Policy,
    scenarios: Scenarios = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of scenarios to generate. [default: as many as needed]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write all scenarios to this file, the new ones last.",
        ),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Generate scenarios for uncovered parts of the rules.

    The scenarios expect what the rules decide now: review them.
    """
    require_writable(out)
    source = policy_input(policy, scenarios)
    given = list(source.required_scenarios())
    request = pb.GenerateCoverageScenariosRequest(
        policy=source.policy, scenarios=given, max_scenarios=limit or 0
    )
    made, covered = asyncio.run(_generate(request, server, as_json=as_json))
    if out is not None:
        save_file(format_suite([to_json(one) for one in [*given, *made]]), out)
    console = person_console() if as_json else result_console()
    console.print(f"{format_count(len(made), 'scenario')} generated; review what they expect")
    for line in format_rule_figures(covered.coverage, covered.mutation):
        console.print(line)


@commands.command()
def decide(
    policy: Policy,
    server_name: Annotated[str, typer.Argument(metavar="SERVER", help="Server that offers the tool.")],
    tool_name: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to call.")],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[ARGUMENTS]",
            help="Arguments of the call, in JSON; use - for standard input.",
        ),
    ] = "{}",
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Role of the caller; may be repeated. [default: no role]"),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show each rule that was considered, and the member that did not hold."
        ),
    ] = False,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Decide one tool call, with the reasons.

    Exit code 0 if the call is allowed, 1 otherwise.
    """
    if policy == arguments == "-":
        raise typer.BadParameter("only one of POLICY and ARGUMENTS can come from standard input")
    call = pb.PolicyRequest(
        server_name=server_name,
        tool_name=tool_name,
        arguments=read_text_argument(arguments, "ARGUMENTS").encode(),
        roles=role or (),
    )
    source = policy_input(policy)
    asked = pb.DecideRequest(policy=source.policy, request=call, explain=explain)
    answer = asyncio.run(_decide(asked, server))
    result = answer.result
    if as_json:
        considered = {"considered": [*map(to_json, answer.considered)]} if explain else {}
        write_json(to_json(result) | considered)
    else:
        allowed = result.decision == pb.DECISION_ALLOW
        result_console().print(format_decision(result), style="green" if allowed else "red")
        _print_lines(f"  {one_line(reason)}" for reason in result.reasons)
        _print_lines(finding_lines([*map(finding_from_proto, result.errors)]))
        _print_lines(f"  {_format_considered(rule)}" for rule in answer.considered)
    raise typer.Exit(0 if result.decision == pb.DECISION_ALLOW else EXIT_FAILED)
