"""`peripety dry-run`, `balance`, `certify` and `graph`: measure a specification.

They need no server and no model.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peripety import engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.certification import certificate as certificates
from peripety.certification.difficulty_gate import describe_rate, evaluate_to_verdict
from peripety.certification.options import (
    MAX_RUNS,
    USUAL_PERSONAS,
    CertificateOptions,
    DryRunOptions,
    validate_certificate_options,
    validate_options,
)
from peripety.certification.types import Certificate, CertificateVerdict, certificate_hash, encode
from peripety.cli.embedded_services import run_with_progress, services_at
from peripety.cli.input_documents import read_specification
from peripety.cli.options import Horizon, MaxRuns, Persona, Player, Players, Seed, Server
from peripety.cli.output import (
    EXIT_FAILED,
    SHOWS_EVERYTHING,
    error_console,
    finding_fields,
    finding_lines,
    one_line,
    printable,
    progress_bar,
    require_writable,
    result_console,
    save_file,
    start_table,
    table_console,
    write_bytes,
    write_json,
)
from peripety.core.concurrency import WorkerPool
from peripety.engine import PERSONAS
from peripety.errors import filter_errors
from peripety.scenario.balance.balancer import (
    CONFIRMING_RUNS,
    BalanceFailed,
    BalanceOrder,
    Balancer,
    BalanceReached,
    BalanceTarget,
)
from peripety.scenario.certificate.report import render_page
from peripety.scenario.rule_graph.activity import describe_activity, inspect_program
from peripety.scenario.rule_graph.graph import Inspection
from peripety.scenario.rule_graph.mermaid import describe_rules, describe_runs, render_mermaid
from peripety.scenario.rule_graph.shapes import assign_columns, count_cells
from peripety.scenario.rule_graph.svg import render_svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from peripety.certification.types import PersonaReport, Rate
    from peripety.engine import DryRunReport, Program
    from peripety.errors import Finding
    from peripety.scenario.rule_graph.graph import GraphNode
    from peripety.scenario.rule_graph.shapes import Columns
    from peripety.scenario.types import NumberEdit


commands = typer.Typer()


_RESULT_TYPES: tuple[type[BalanceReached | BalanceFailed], ...] = (BalanceReached, BalanceFailed)
_TARGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*-\s*(\d+(?:\.\d+)?)\s*%?\s*")


def parse_target(text: str) -> BalanceTarget:
    """Parse a target range such as `30-40`, in percent.

    Raises:
        BadParameter: the text is not a range.
    """
    match = _TARGET.fullmatch(text)
    ends = [float(end) / 100 for end in match.groups()] if match else []
    if not ends or not ends[0] <= ends[1] <= 1:
        raise typer.BadParameter("--target must be two percentages, the lower one first, such as 30-40")
    return BalanceTarget(*ends)


def _print_balance(result: BalanceReached | BalanceFailed, wanted: BalanceTarget) -> None:
    out = result_console()
    if isinstance(result, BalanceReached):
        out.print(f"balanced: {describe_rate(result.after)}", style="green")
        out.print(f"before, {describe_rate(result.before)}; target {wanted}")
        if result.edits:
            table_console().print(_edits_table(result.edits))
        else:
            out.print("no number had to be changed")
        return
    out.print("not balanced", style="red")
    for line in finding_lines(result.findings):
        out.print(line)
    if result.closest is not None:
        out.print(f"at best {describe_rate(result.closest)}")


def _edits_table(edits: Sequence[NumberEdit]) -> Table:
    table = start_table(("number", "before", "after", "what changed"), {"before", "after"})
    for edit in edits:
        table.add_row(
            printable(edit.path),
            f"{edit.before:.15g}",
            f"{edit.after:.15g}",
            printable(edit.summary),
        )
    return table


def _print_balance_json(result: BalanceReached | BalanceFailed, wanted: BalanceTarget) -> None:
    told: dict[str, Any] = {
        "balanced": isinstance(result, BalanceReached),
        "target": {"min_fail_rate": wanted.min_rate, "max_fail_rate": wanted.max_rate},
    }
    if isinstance(result, BalanceReached):
        told |= {
            "before": _format_report(result.before),
            "after": _format_report(result.after),
            "edits": [asdict(edit) for edit in result.edits],
            "spec": engine.parse(result.document),
        }
    else:
        told |= {
            "closest": _format_report(result.closest) if result.closest else None,
            "findings": list(map(finding_fields, result.findings)),
        }
    write_json(told)


def _format_report(report: DryRunReport) -> dict[str, Any]:
    return {
        "persona": report.persona,
        "runs": report.runs,
        "first_run": report.first_run,
        "lost": report.lost,
        "fail_rate": report.fail_rate,
    }


_CERTIFY_TIMEOUT = math.inf
"""Time limit for a persona, in seconds: none, because the user sees the progress and can interrupt."""


def _verify_certificate(certificate: str, source: str, *, as_json: bool) -> int:
    """Recompute a certificate, print the differences, and return the exit code."""
    with closing(WorkerPool()) as workers:
        events = certificates.verify_certificate(
            read_specification(certificate),
            read_specification(source),
            workers,
            _CERTIFY_TIMEOUT,
        )
        compared = run_with_progress(events, "certifying", certificates.CertificateComparison)
    if as_json:
        differing = [{"path": f.path, "message": f.message} for f in compared.findings]
        write_json({"matches": compared.matches, "findings": differing})
    else:
        result_console().print(
            "the certificate matches" if compared.matches else "the certificate does not match",
            style="green" if compared.matches else "red",
        )
        for line in finding_lines(compared.findings):
            result_console().print(line)
    return 0 if compared.matches else EXIT_FAILED


def _print_certificate(certificate: Certificate, name: str, identity: str) -> None:
    out = result_console()
    certified = certificate.verdict is CertificateVerdict.CERTIFIED
    out.print(
        f"{one_line(name)}: {certificate.verdict.value}",
        style="green" if certified else "red",
    )
    table_console().print(_personas_table(certificate.personas))
    band = certificate.band
    out.print(f"target: the random persona loses {band.min_fail_rate:.1%} to {band.max_fail_rate:.1%}")
    if certificate.planner_gap is not None:
        out.print(f"planning ahead is worth {100 * certificate.planner_gap:.1f} points")
    for line in finding_lines(certificate.findings):
        out.print(line)
    out.print(f"certificate {identity}")


def _personas_table(personas: tuple[PersonaReport, ...]) -> Table:
    columns = ("persona", "runs", "lost", "95% interval", "won", "survived", "turns per run")
    table = start_table(columns, columns[1:])
    for fared in personas:
        table.add_row(
            fared.persona,
            f"{fared.runs:,}",
            f"{fared.lost.value:.1%}",
            _format_interval(fared.lost),
            f"{fared.won.value:.1%}",
            f"{fared.survived.value:.1%}",
            f"{fared.turns / fared.runs:.1f}",
        )
    return table


def _format_interval(rate: Rate) -> str:
    return f"{rate.low:.1%} to {rate.high:.1%}"


_CHUNK_SECONDS = 0.1


def _simulate_in_chunks(program: Program, *, runs: int, persona: Persona, seed: int | None) -> DryRunReport:
    """Run the simulation in chunks, because the native core handles Ctrl-C only between two calls."""
    with progress_bar("simulating", total=runs) as advance:
        report = program.dry_run(runs=1, persona=persona.value, seed=seed)
        piece = 1
        while report.runs < runs:
            started = time.perf_counter()
            played = min(piece, runs - report.runs)
            more = program.dry_run(runs=played, first_run=report.runs, persona=persona.value, seed=seed)
            report = report.merge(more)
            advance(played)
            if time.perf_counter() - started < _CHUNK_SECONDS:
                piece *= 2
    return report


def _print_dry_run(report: DryRunReport, *, required_loss_rate: float) -> None:
    out = result_console()
    out.print(
        f"{report.runs} runs of at most {report.horizon} turns, persona {report.persona}, "
        f"core {engine.BACKEND}",
    )
    out.print(
        f"  lost {report.fail_rate:.1%} of them; the scenario requires at least {required_loss_rate:.1%}",
    )
    out.print(f"  lost {report.lost}, won {report.won}, survived {report.survived}, errored {report.errored}")
    for condition, count in report.losses.items():
        out.print(f"    lost by {printable(condition)}: {count}")
    for error in report.errors:
        out.print(
            f"    {error.code} at {printable(error.rule)}, {error.count} times: {printable(error.message)}",
        )


_SCENARIO_ID = re.compile(r"scn_[0-9a-f]{24}")
_SIMULATION_TIMEOUT = math.inf
"""Time limit for the simulation, in seconds: none, because the user sees the progress and can interrupt."""


def _load_specification(source: str, server: str | None) -> bytes:
    """Return the content of a file or of a stored scenario.

    A file has priority over an id of the same name.
    """
    if _SCENARIO_ID.fullmatch(source) and not Path(source).exists():
        return asyncio.run(_fetch_specification(source, server))
    return read_specification(source)


async def _fetch_specification(scenario_id: str, server: str | None) -> bytes:
    async with services_at(server, "gateway", "scenarios") as channel:
        wanted = pb.GetScenarioRequest(scenario_id=scenario_id)
        spec: bytes = (await ScenarioServiceStub(channel).GetScenario(wanted)).scenario.spec
        return spec


def _graph_fields(found: Inspection) -> dict[str, Any]:
    nodes = [
        {
            "node_id": node.node_id,
            "kind": node.kind.value,
            "label": node.label,
            "condition": node.condition,
            "heat": found.activity.get(node.node_id, 0),
        }
        for node in found.graph.nodes
    ]
    edges = [
        {"from_node_id": edge.source, "to_node_id": edge.target, "kind": edge.kind.value}
        for edge in found.graph.edges
    ]
    report = {} if found.report is None else {"dry_run": _report_fields(found.report)}
    return {"name": found.name, "nodes": nodes, "edges": edges, **report}


def _report_fields(report: DryRunReport) -> dict[str, Any]:
    fields = asdict(report)
    # The nodes already carry these counts.
    del fields["detail"], fields["digest"]
    return {**fields, "fail_rate": report.fail_rate}


def _print_graph_text(found: Inspection) -> None:
    out, sides = result_console(), assign_columns(found.graph)
    out.print(SHOWS_EVERYTHING)
    out.print(one_line(found.name), style="bold")
    if found.report is not None:
        out.print(describe_runs(found))
    width = max(count_cells(_indented_label(node, depth)) for node, depth in _graph_entries(sides))
    doings = describe_rules(found.graph)
    for section in (*sides.left, *sides.middle, *sides.right):
        out.print(f"\n{section.heading}", style="bold")
        for block in section.blocks:
            for node, depth in block.nodes:
                name = _indented_label(node, depth)
                out.print(
                    f"{name}{' ' * (width - count_cells(name))}  {describe_activity(node, found)}".rstrip(),
                )
                condition = f"when {node.condition}" if node.condition else ""
                for line in filter(None, (condition, doings[node.node_id])):
                    out.print(f"{'  ' * (depth + 2)}{one_line(line)}", style="dim")


def _graph_entries(sides: Columns) -> Iterator[tuple[GraphNode, int]]:
    for section in (*sides.left, *sides.middle, *sides.right):
        for block in section.blocks:
            yield from block.nodes


def _indented_label(node: GraphNode, depth: int) -> str:
    return "  " * (depth + 1) + one_line(node.label)


@commands.command("dry-run")
def dry_run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of games to simulate.")] = 200,
    persona: Player = Persona.RANDOM,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON.")] = False,
) -> None:
    """Simulate a specification; show loss rate and reasons."""
    program = engine.compile(read_specification(file))
    report = _simulate_in_chunks(program, runs=runs, persona=persona, seed=seed)
    if as_json:
        write_json({**asdict(report), "fail_rate": report.fail_rate, "spec_hash": program.spec_hash})
    else:
        _print_dry_run(report, required_loss_rate=program.spec["negativity_budget"]["min_fail_rate"])


@commands.command()
def balance(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    target: Annotated[
        str,
        typer.Option(
            metavar="LOW-HIGH", help="Share of games that the persona should lose, in percent, such as 30-40."
        ),
    ],
    persona: Player = Persona.RANDOM,
    seed: Seed = None,
    max_runs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of games that confirm the result. [default: 10,000]"),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one line of JSON that includes the specification."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the specification to a file. [default: no file]"
        ),
    ] = None,
) -> None:
    """Tune numbers of a specification to a loss rate.

    Changes as few numbers as possible and no rules. Whole numbers stay whole if possible. Exit code 0 if it
    is balanced, 1 if the target is out of reach. Prints the errors, if any, for which `peripety compile`
    would reject the result.
    """
    wanted = parse_target(target)
    options = DryRunOptions(persona.value, seed, max_runs or CONFIRMING_RUNS)
    validate_options(options)
    require_writable(out)
    order = BalanceOrder(read_specification(file), wanted, options)
    with closing(WorkerPool()) as workers:
        events = Balancer(workers).balance(order)
        result = run_with_progress(events, "balancing", *_RESULT_TYPES)
        refused = asyncio.run(_find_refusals(result, workers)) if isinstance(result, BalanceReached) else ()
    if isinstance(result, BalanceReached) and out is not None:
        save_file(result.document + b"\n", out)
    tell = _print_balance_json if as_json else _print_balance
    tell(result, wanted)
    if refused and isinstance(result, BalanceReached):
        error_console().print("The result would be refused:", style="yellow")
        for line in finding_lines(refused, remedies=_band_remedies(result.document, wanted)):
            error_console().print(line)
    raise typer.Exit(0 if isinstance(result, BalanceReached) else EXIT_FAILED)


def _band_remedies(document: bytes, wanted: BalanceTarget) -> dict[str, str]:
    """Return the way out if a target is outside of the band of the specification, by code of the finding."""
    budget = json.loads(document)["negativity_budget"]
    least, most = budget["min_fail_rate"], budget.get("max_fail_rate", 1)
    if least <= wanted.min_rate and wanted.max_rate <= most:
        return {}
    remedy = (
        f"Choose a --target within {100 * least:g}-{100 * most:g}, or set min_fail_rate and max_fail_rate of"
        " negativity_budget to the target."
    )
    return {"TOO_EASY": remedy, "TOO_HARD": remedy}


async def _find_refusals(result: BalanceReached, workers: WorkerPool) -> Sequence[Finding]:
    """Return the errors for which the balanced scenario could not be stored or played."""
    if invalid := filter_errors(engine.validate(result.document)):
        return invalid
    program = engine.compile_trusted(result.document)
    verdict = await evaluate_to_verdict(program, DryRunOptions(), workers)
    return filter_errors(verdict.findings)


@commands.command()
def certify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="One specification; use - for standard input.")],
    persona: Players = None,
    seed: Seed = None,
    max_runs: MaxRuns = None,
    horizon: Horizon = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the certificate.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="CERT", help="Write the certificate to a file."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="Write a report with plots to a file."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="CERT", help="Recompute this certificate and compare."),
    ] = None,
) -> None:
    """Measure how fair a specification is.

    Exit code 0 if it is certified, 1 if it is rejected. With --check: 0 if the certificate matches FILE, 1 if
    something differs or the check is inconclusive.
    """
    if check is not None:
        if any(option is not None for option in (persona, seed, max_runs, horizon, out, html)):
            raise typer.BadParameter(
                "--check can only be combined with FILE and --json; the certificate holds its other options",
            )
        raise typer.Exit(_verify_certificate(check, file, as_json=as_json))
    if max_runs is not None and max_runs > MAX_RUNS:
        raise typer.BadParameter(
            f"{max_runs} is more than {MAX_RUNS:,}, which is enough for any certificate",
            param_hint="--max-runs",
        )
    named = [chosen.value for chosen in persona or ()]
    playing = tuple(one for one in PERSONAS if one in named) or USUAL_PERSONAS
    options = CertificateOptions(playing, seed, max_runs or MAX_RUNS, horizon)
    validate_certificate_options(options)
    for place in (out, html):
        require_writable(place)
    program = engine.compile(read_specification(file))
    with closing(WorkerPool()) as workers:
        certificate = run_with_progress(
            certificates.certify(program, options, workers, _CERTIFY_TIMEOUT),
            "certifying",
            Certificate,
        )
    document = encode(certificate)
    if out is not None:
        save_file(document + b"\n", out)
    if html is not None:
        save_file(render_page(certificate, program.spec), html)
    if as_json:
        write_bytes(document)
    else:
        _print_certificate(certificate, program.spec["name"], certificate_hash(document))
    raise typer.Exit(0 if certificate.verdict is CertificateVerdict.CERTIFIED else EXIT_FAILED)


@commands.command()
def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|ID",
            help="Specification or id of a stored scenario; use - for standard input.",
        ),
    ],
    svg: Annotated[
        Path | None,
        typer.Option(metavar="DRAWING", help="Write the graph to a file, as SVG."),
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print only a Mermaid flowchart.")] = False,
    runs: Annotated[
        int,
        typer.Option(
            min=0,
            max=100_000,
            help="Number of games that measure how often each part is active; 0 for none.",
        ),
    ] = 1_024,
    persona: Player = Persona.RANDOM,
    seed: Seed = None,
    server: Server = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the graph as one line of JSON.")] = False,
) -> None:
    """Show the dependency graph of a scenario.

    Includes how often each rule is active and where games end.
    """
    if mermaid and as_json:
        raise typer.BadParameter("--mermaid cannot be combined with --json; leave one out")
    played = DryRunOptions(persona.value, seed, runs) if runs else None
    require_writable(svg)
    program = engine.compile(_load_specification(source, server))
    with closing(WorkerPool()) as workers:
        found = run_with_progress(
            inspect_program(program, played, workers, _SIMULATION_TIMEOUT),
            "simulating",
            Inspection,
        )
    if svg is not None:
        save_file(render_svg(found), svg)
    if mermaid:
        write_bytes(render_mermaid(found).rstrip().encode())
    elif as_json:
        write_json({"spec_hash": program.spec_hash, **_graph_fields(found)})
    else:
        _print_graph_text(found)
