"""`peripety simulate`: the scripted LLM as a server, or its answers on standard output."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from peripety import logs
from peripety.cli.failure import FOUND_WRONG, explain
from peripety.cli.output import errors, results, write_json
from peripety.cli.text import printable
from peripety.config import Config
from peripety.simulator.analysis import check as find_flaws
from peripety.simulator.capture import Unmatched
from peripety.simulator.delivery.events import InterruptedAnswerError, UnreadableAnswerError
from peripety.simulator.model import ApiError
from peripety.simulator.record.proxy import serve_proxy
from peripety.simulator.record.recorder import Recorder
from peripety.simulator.scenario.load import load_scenario
from peripety.simulator.scenario.problems import ScenarioError
from peripety.simulator.server import serve
from peripety.simulator.server.source import Source
from peripety.simulator.simulator import Simulator
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from peripety.simulator.in_process import Answer

__all__ = ["Kept", "answer", "check", "record", "simulate"]

_GRACE_SECONDS = 5.0
_STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Kept:
    """Settings of a simulator besides its script; see the options of the command."""

    seed: int | None = None
    state: Path | None = None
    capture: Path | None = None
    record: Path | None = None


def answer(file: Path, prompts: Sequence[str], kept: Kept, *, as_json: bool) -> int:
    """Answer prompts in one conversation, in order; return the exit code."""
    simulator = Simulator(load_scenario(file), **asdict(kept))
    try:
        for prompt in prompts:
            try:
                answered = simulator.execute(prompt)
            except (ApiError, InterruptedAnswerError, UnreadableAnswerError) as error:
                return _fail(str(error))
            if answered.label is None:
                return _unmatched(simulator)
            _tell(answered, as_json=as_json)
    finally:
        simulator.close()
    return 0


def check(file: Path, *, as_json: bool) -> int:
    """Print the flaws of a script, such as unreachable rules; return the exit code."""
    try:
        flaws = [flaw.to_json() for flaw in find_flaws(load_scenario(file))]
    except ScenarioError as error:
        if not as_json:
            explain(error)
            return FOUND_WRONG
        flaws = [
            {"code": "invalid", "severity": "error", "place": problem.field, "message": problem.sentence}
            for problem in error.problems
        ]
    if as_json:
        write_json({"file": str(file), "flaws": flaws})
    else:
        _tell_flaws(file, flaws)
    return FOUND_WRONG if any(flaw["severity"] == "error" for flaw in flaws) else 0


def simulate(file: Path, kept: Kept, *, host: str, port: int, watch: bool) -> None:
    """Serve a script until SIGTERM or Ctrl-C; then finish the responses in progress."""
    logs.configure(Config.from_environment())
    simulator = Simulator(load_scenario(file), **asdict(kept))
    try:
        asyncio.run(_serve(simulator, Source(file, simulator), host, port, watch=watch))
    finally:
        simulator.close()


async def _serve(simulator: Simulator, source: Source, host: str, port: int, *, watch: bool) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, source.try_reload)
    async with AsyncExitStack() as running:
        if watch:
            watching = asyncio.create_task(source.watch())
            running.callback(watching.cancel)
        await _until_stopped(
            serve(simulator, host=host, port=port, grace=_GRACE_SECONDS, reload=source.reload)
        )


async def _until_stopped(serving: AbstractAsyncContextManager[str]) -> None:
    """Serve until SIGTERM or Ctrl-C; the second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop() -> None:
        for number in _STOPS:
            loop.remove_signal_handler(number)
        stopping.set()

    for number in _STOPS:
        loop.add_signal_handler(number, stop)
    async with serving as url:
        results().print(f"listening on {url}")
        results().file.flush()
        await stopping.wait()


def record(file: Path, provider: str, *, host: str, port: int) -> None:
    """Forward requests to a provider and record its answers, until SIGTERM or Ctrl-C."""
    logs.configure(Config.from_environment())
    asyncio.run(_until_stopped(serve_proxy(provider, Recorder(file), host=host, port=port)))


def _tell(answered: Answer, *, as_json: bool) -> None:
    if as_json:
        write_json(asdict(answered))
        return
    for line in _lines(answered):
        results().print(line)


def _lines(answered: Answer) -> Iterator[str]:
    text = answered.text if answered.refusal is None else answered.refusal
    if text or not answered.tool_calls:
        yield text
    for call in answered.tool_calls:
        yield f"-> {call.name} {compact(call.arguments).decode()}"


def _tell_flaws(file: Path, flaws: Sequence[dict[str, Any]]) -> None:
    out = results()
    out.print(f"{printable(str(file))}: {len(flaws) or 'no'} flaw{'' if len(flaws) == 1 else 's'}")
    for flaw in flaws:
        out.print(f"  {flaw['severity']} {flaw['code']} {flaw['place']}: {printable(flaw['message'])}")
        for shown in flaw["witness"]:
            prompt = json.dumps(shown["prompt"], ensure_ascii=False)
            out.print(f"    {printable(prompt)} -> {shown['answered_by'] or 'nothing'}")


def _unmatched(simulator: Simulator) -> int:
    """Report that no rule matched, with the nearest misses."""
    code = _fail("no rule matches this prompt, and the script has no default_response")
    (call,) = simulator.captured.last()
    if isinstance(call.outcome, Unmatched):
        for near in call.outcome.closest:
            errors().print(f"  {printable(near)}")
    return code


def _fail(reason: str) -> int:
    errors().print(f"error: {printable(reason)}", style="red")
    return FOUND_WRONG
