"""Commands and options of `peripety policy`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from peripety.cli.options import (  # noqa: TC001 - typer reads the annotations
    MaxCost,
    MaxTime,
    MaxTokens,
    Model,
    Server,
)

__all__ = ["policies"]

policies = typer.Typer(
    name="policy",
    help="Compile a written policy into rules for tool calls, and test the rules by scenarios.",
    no_args_is_help=True,
)

Policy = Annotated[
    str,
    typer.Argument(
        metavar="POLICY",
        help="Compiled folder, document (use - for standard input), or id of a stored policy.",
    ),
]
Scenarios = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Scenarios. [default: those in the folder, or stored with the policy]"),
]
PolicyId = Annotated[str, typer.Argument(metavar="ID", help="Id of the policy; see `peripety policy list`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]


@policies.command("compile")
def compile_(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="Folder with constitution.md, tools.json, optionally handwritten.json and foundation.json.",
        ),
    ] = None,
    constitution: Annotated[
        str | None, typer.Option(metavar="FILE", help="Written policy; use - for standard input.")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="FILE", help="Tools that the policy covers: a JSON list.")
    ] = None,
    handwritten: Annotated[
        str | None, typer.Option(metavar="FILE", help="Handwritten scenarios that must pass: a JSON list.")
    ] = None,
    foundation: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Invariants and lists that precede the rules: {invariants, lists} in JSON."
        ),
    ] = None,
    version_of: Annotated[
        str | None, typer.Option(metavar="ID", help="Store the result as the latest version of this policy.")
    ] = None,
    model: Model = "",
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write policy.json and scenarios.json to this folder."
        ),
    ] = None,
    server: Server = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the stored policy as one line of JSON.")
    ] = False,
) -> None:
    """Compile a written policy into rules and a test suite.

    Stores both. Exit code 0 if rules and suite agree, 1 if they could not be reconciled: the findings give
    the reasons.
    """
    from peripety.cli import policy_compile as command  # noqa: PLC0415 - loads the services
    from peripety.cli import policy_input  # noqa: PLC0415
    from peripety.cli.spending import budget  # noqa: PLC0415

    command.require_folder(out)
    request = policy_input.order(folder, constitution, tools, handwritten, foundation).request()
    request.policy_id = version_of or ""
    request.model = model
    request.budget.CopyFrom(budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0))
    command.compile_policy(request, server, out=out, as_json=as_json)


@policies.command()
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
    from peripety.cli import policy_checks, policy_input  # noqa: PLC0415 - loads the services

    source = policy_input.source(policy, scenarios)
    raise typer.Exit(policy_checks.verify(source, server, mutation=mutation, as_json=as_json))


@policies.command()
def analyze(policy: Policy, server: Server = None, as_json: AsJson = False) -> None:
    """Find dead, shadowed and redundant rules.

    Exit code 0 without issues, 1 otherwise.
    """
    from peripety.cli import policy_checks, policy_input  # noqa: PLC0415 - loads the services

    raise typer.Exit(policy_checks.analyze(policy_input.source(policy), server, as_json=as_json))


@policies.command()
def diff(
    before: Policy,
    after: Policy,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of examples.")] = 50,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show the calls that two policies decide differently.

    Newly allowed calls come first. Exit code 0 if the policies are proved equivalent, 1 if they differ or the
    proof
    is inconclusive.
    """
    from peripety.cli import policy_checks, policy_input  # noqa: PLC0415 - loads the services

    old, new = policy_input.source(before), policy_input.source(after)
    raise typer.Exit(policy_checks.diff(old, new, limit, server, as_json=as_json))


@policies.command()
def mutate(
    policy: Policy,
    scenarios: Scenarios = None,
    operator: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Mutation operator; may be repeated. [default: all operators]"),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Measure the mutation score of a suite.

    Changes the rules in small ways and reports how many of the changes the scenarios detect.
    """
    from peripety.cli import policy_input, policy_proving  # noqa: PLC0415 - loads the services

    source = policy_input.source(policy, scenarios)
    policy_proving.mutate(source, operator or (), server, as_json=as_json)


@policies.command()
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
            "--out", "-o", metavar="FILE", help="Write all scenarios to this file, the new ones last."
        ),
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Generate scenarios for uncovered parts of the rules.

    The scenarios expect what the rules decide now: review them.
    """
    from peripety.cli import policy_input, policy_proving  # noqa: PLC0415 - loads the services
    from peripety.cli.output import require_place  # noqa: PLC0415

    require_place(out)
    source = policy_input.source(policy, scenarios)
    policy_proving.cover(source, limit or 0, server, out=out, as_json=as_json)


@policies.command()
def decide(
    policy: Policy,
    server_name: Annotated[str, typer.Argument(metavar="SERVER", help="Server that offers the tool.")],
    tool_name: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to call.")],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[ARGUMENTS]", help="Arguments of the call, in JSON; use - for standard input."
        ),
    ] = "{}",
    role: Annotated[list[str] | None, typer.Option(help="Role of the caller; may be repeated.")] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Decide one tool call, with the reasons.

    Exit code 0 if the call is allowed, 1 otherwise.
    """
    from peripety.api.policy.v1.policy_pb2 import PolicyRequest  # noqa: PLC0415 - loads protobuf
    from peripety.cli import policy_checks, policy_input  # noqa: PLC0415
    from peripety.cli.text import read_text  # noqa: PLC0415

    if policy == arguments == "-":
        raise typer.BadParameter("only one of POLICY and ARGUMENTS can come from standard input")
    call = PolicyRequest(
        server_name=server_name,
        tool_name=tool_name,
        arguments=read_text(arguments, "ARGUMENTS").encode(),
        roles=role or (),
    )
    raise typer.Exit(policy_checks.decide(policy_input.source(policy), call, server, as_json=as_json))


@policies.command("list")
def list_(
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List the latest versions of policies, newest first."""
    from peripety.cli.policy_stored import list_policies  # noqa: PLC0415 - loads the services

    list_policies(count, server, as_json=as_json)


@policies.command()
def show(
    policy_id: PolicyId,
    version: Annotated[
        str | None, typer.Option(metavar="HASH", help="Version to show. [default: the latest]")
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Show a policy: its rules, its suite, its audit log."""
    from peripety.cli import policy_stored as command  # noqa: PLC0415 - loads the services

    command.show(policy_id, version, server, as_json=as_json)


@policies.command()
def delete(policy_id: PolicyId, server: Server = None) -> None:
    """Delete a policy with all its versions."""
    from peripety.cli import policy_stored as command  # noqa: PLC0415 - loads the services

    command.delete(policy_id, server)
