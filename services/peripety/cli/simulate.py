"""`peripety simulate`: the scripted LLM as a server, or its answers on standard output."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peripety.cli.options import MAX_SEED
from peripety.cli.output import (
    EXIT_FAILED,
    error_console,
    explain_error,
    printable,
    result_console,
    write_json,
)
from peripety.core import logging_setup
from peripety.core.config import Config
from peripety.llmsim.capture import UnmatchedOutcome
from peripety.llmsim.in_process import InterruptedAnswerError, UnreadableAnswerError
from peripety.llmsim.lint.script_lint import lint_script
from peripety.llmsim.record.proxy import serve_proxy
from peripety.llmsim.record.recorder import ScriptRecorder
from peripety.llmsim.script.files import load_script
from peripety.llmsim.script.sources import ScriptError
from peripety.llmsim.server.runner import ScriptWatcher, serve_simulator
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import ApiError
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from peripety.llmsim.in_process import SimAnswer


commands = typer.Typer()


_GRACE_SECONDS = 5.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class SimulatorSettings:
    """Settings of a simulator besides its script; see the options of the command."""

    seed: int | None = None
    state: Path | None = None
    capture: Path | None = None
    record: Path | None = None


def _answer_prompts(file: Path, prompts: Sequence[str], settings: SimulatorSettings, *, as_json: bool) -> int:
    """Answer prompts in one conversation, in order; return the exit code."""
    simulator = Simulator(load_script(file), **asdict(settings))
    try:
        for prompt in prompts:
            try:
                answered = simulator.execute(prompt)
            except (ApiError, InterruptedAnswerError, UnreadableAnswerError) as error:
                return _fail(str(error))
            if answered.label is None:
                return _report_unmatched(simulator)
            _print_answer(answered, as_json=as_json)
    finally:
        simulator.close()
    return 0


def _print_flaws(file: Path, *, as_json: bool) -> int:
    """Print the flaws of a script, such as unreachable rules; return the exit code."""
    try:
        flaws = [flaw.to_json() for flaw in lint_script(load_script(file))]
    except ScriptError as error:
        if not as_json:
            explain_error(error)
            return EXIT_FAILED
        flaws = [
            {"code": "invalid", "severity": "error", "place": problem.field_name, "message": problem.message}
            for problem in error.problems
        ]
    if as_json:
        write_json({"file": str(file), "flaws": flaws})
    else:
        _print_flaw_list(file, flaws)
    return EXIT_FAILED if any(flaw["severity"] == "error" for flaw in flaws) else 0


def _serve_script(file: Path, settings: SimulatorSettings, *, host: str, port: int, watch: bool) -> None:
    """Serve a script until SIGTERM or Ctrl-C; then finish the responses in progress."""
    logging_setup.configure(Config.from_environment())
    simulator = Simulator(load_script(file), **asdict(settings))
    try:
        asyncio.run(_serve(simulator, ScriptWatcher(file, simulator), host, port, watch=watch))
    finally:
        simulator.close()


async def _serve(simulator: Simulator, source: ScriptWatcher, host: str, port: int, *, watch: bool) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, source.try_reload)
    async with AsyncExitStack() as running:
        if watch:
            watching = asyncio.create_task(source.watch())
            running.callback(watching.cancel)
        await _serve_until_stopped(
            serve_simulator(simulator, host=host, port=port, grace=_GRACE_SECONDS, reload=source.reload),
        )


async def _serve_until_stopped(serving: AbstractAsyncContextManager[str]) -> None:
    """Serve until SIGTERM or Ctrl-C; the second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop() -> None:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
        stopping.set()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    async with serving as url:
        result_console().print(f"listening on {url}")
        result_console().file.flush()
        await stopping.wait()


def _record_provider(file: Path, provider: str, *, host: str, port: int) -> None:
    """Forward requests to a provider and record its answers, until SIGTERM or Ctrl-C."""
    logging_setup.configure(Config.from_environment())
    asyncio.run(_serve_until_stopped(serve_proxy(provider, ScriptRecorder(file), host=host, port=port)))


def _print_answer(answered: SimAnswer, *, as_json: bool) -> None:
    if as_json:
        write_json(asdict(answered))
        return
    for line in _format_answer(answered):
        result_console().print(line)


def _format_answer(answered: SimAnswer) -> Iterator[str]:
    text = answered.text if answered.refusal is None else answered.refusal
    if text or not answered.tool_calls:
        yield text
    for call in answered.tool_calls:
        yield f"-> {call.name} {compact_json(call.arguments).decode()}"


def _print_flaw_list(file: Path, flaws: Sequence[dict[str, Any]]) -> None:
    out = result_console()
    out.print(f"{printable(str(file))}: {len(flaws) or 'no'} flaw{'' if len(flaws) == 1 else 's'}")
    for flaw in flaws:
        out.print(f"  {flaw['severity']} {flaw['code']} {flaw['place']}: {printable(flaw['message'])}")
        for shown in flaw["witness"]:
            prompt = json.dumps(shown["prompt"], ensure_ascii=False)
            out.print(f"    {printable(prompt)} -> {shown['answered_by'] or 'nothing'}")


def _report_unmatched(simulator: Simulator) -> int:
    """Report that no rule matched, with the nearest misses."""
    code = _fail("no rule matches this prompt, and the script has no default_response")
    (call,) = simulator.captured.last()
    if isinstance(call.outcome, UnmatchedOutcome):
        for near in call.outcome.closest:
            error_console().print(f"  {printable(near)}")
    return code


def _fail(reason: str) -> int:
    error_console().print(f"error: {printable(reason)}", style="red")
    return EXIT_FAILED


@commands.command()
def simulate(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Script; the same as --script FILE.")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Script of the simulated model: TOML or JSON."),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--prompt",
            metavar="PROMPT",
            help="Print the answer to this prompt and exit; may be repeated.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print unreachable rules and other flaws of the script, then exit."),
    ] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free port."),
    ] = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Reload the script when its file changes.")] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Store turn sequences, caches, rate limits and bills in this file. [default: in memory]",
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append each call to this file, as a line of JSON."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answers to this file as a script, without credentials."),
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Forward requests to this provider and record its answers."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=MAX_SEED, help="Seed of the random numbers. [default: the seed of the script]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print answers or flaws as lines of JSON.")] = False,
) -> None:
    """Serve a scripted LLM, or print its answers.

    Prints `listening on http://127.0.0.1:PORT` and serves the API paths of every provider to the official
    SDKs until SIGTERM or Ctrl-C; SIGHUP reloads the script. See docs/reference/llmsim-script.md for the
    script format.
    """
    source = script or file
    if proxy is not None:
        if record is None or source is not None:
            raise typer.BadParameter("--proxy needs --record FILE and cannot be combined with a script")
        if not proxy.startswith(("http://", "https://")):
            raise typer.BadParameter(
                "--proxy must be the base URL of a provider, such as https://api.openai.com",
            )
        _record_provider(record, proxy, host=host, port=port)
        return
    if source is None or (script and file):
        raise typer.BadParameter("name one script: --script FILE")
    if check:
        raise typer.Exit(_print_flaws(source, as_json=as_json))
    kept = SimulatorSettings(seed, state, capture, record)
    if prompts:
        raise typer.Exit(_answer_prompts(source, prompts, kept, as_json=as_json))
    _serve_script(source, kept, host=host, port=port, watch=watch)
