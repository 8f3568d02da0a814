"""Cost of writing certified scenarios: `make bench-generation`.

The model on this machine writes part by part, over a real connection. In addition, scripted models write
whole specifications and repair the reported findings, in the protocol of a provider that counts tokens
and caches. Their answers are fixed, so their figures measure the cost of a conversation, not the model.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from peripety.core.config import ProviderName
from peripety.engine.patterns.syntax import Pattern
from peripety.llmsim.script.types import Script, ScriptResponse, ScriptRule
from support.gateway.providers import PROVIDERS, local_server
from support.scenario import generation
from support.scenario.generation import GRADES, authoring, good_specs, heard, patient, scenario_service
from support.servers.apps import config_for

if TYPE_CHECKING:
    from peripety.api.common.v1.common_pb2 import ModelUsage
    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub
    from support.scenario.generation import Heard


DESCRIPTIONS = (
    "Alpha has nine days of stores left, and Beta wants an answer by noon. The gauge keeps falling.",
    "Two sides share one gate and an old quarrel. Each tells me what the other must not know.",
    "I answer for three valves, one of which leaks. Whoever built them is away until tomorrow.",
    "Der Pegel steigt seit gestern. Wir haben zwei Pumpen, und Gamma sagt nicht, was die dritte noch kann.",
    "Je garde la porte du nord jusqu'à l'aube. Delta a promis de venir, mais personne ne l'a vu depuis hier.",
    "Tengo seis horas para ordenar el archivo. Cada caja que abro trae otra duda, y Omega ya no contesta.",
    "今夜は警報が止まらない。残りの電池は四つ、交代は明け方まで来ない。",
    "A list of forty names, a pen that runs dry, and a deadline on Friday.",
    "Everything goes well here and nothing can ever go wrong. Let me enjoy it.",
    "",
)


@dataclass(frozen=True)
class Work:
    """Result of one order, and its duration."""

    heard: Heard
    seconds: float

    @property
    def is_certified(self) -> bool:
        """Return True if it ended with a certificate."""
        last = self.heard.events[-1]
        return last.HasField("completed") and last.completed.HasField("certificate")

    @property
    def usage(self) -> ModelUsage:
        """Return the tokens and requests that it used."""
        last = self.heard.events[-1]
        return last.completed.usage if last.HasField("completed") else last.rejected.usage

    @property
    def findings(self) -> list[int]:
        """Return the number of findings after each answer that was judged."""
        judged: list[int] = []
        for event in self.heard.events:
            match event.WhichOneof("event"):
                case "draft" | "repaired":
                    judged.append(0)
                case "findings":
                    judged[-1:] = [len(event.findings.findings)]
        return judged


Asked: TypeAlias = AsyncIterator["ScenarioServiceAsyncStub"]


@asynccontextmanager
async def on_this_machine(home: Path) -> Asked:
    """Run a service that uses the small model."""
    with local_server(home) as (_, url):
        settings = {"model_provider": "generic", "openai_api_base": url, "model_name": "any"}
        async with scenario_service(config_for(home, **settings)) as stub:
            yield stub


@asynccontextmanager
async def scripted(home: Path, scenario: Script, provider: ProviderName) -> Asked:
    """Run a service that uses a scripted model."""
    spoken = next(spoken for spoken in PROVIDERS if spoken.name is provider)
    async with authoring(home, spoken, scenario) as author:
        yield author.stub


def part_by_part() -> Script:
    """Return the script of a strong model that writes part by part."""
    rules = [
        ScriptRule(Pattern(message_index=(number, number)), ScriptResponse(answer))
        for number, answer in enumerate(generation.ANSWERS)
    ]
    return Script(tuple(rules))


async def measured(asked: ScenarioServiceAsyncStub, descriptions: tuple[str, ...]) -> list[Work]:
    """One order after the other."""
    works = []
    for description in descriptions:
        started = time.perf_counter()
        found = await heard(asked, description=description)
        works.append(Work(found, time.perf_counter() - started))
    return works


def row(name: str, works: list[Work]) -> str:
    """The figures of one model."""
    tokens = [work.usage.tokens for work in works]
    read = sum(each.input_tokens for each in tokens)
    cached = sum(each.cache_read_tokens for each in tokens) / (read or 1)
    turns = max(len(work.findings) for work in works)
    found = [
        statistics.mean(([*work.findings, *[0] * turns])[turn] for work in works) for turn in range(turns)
    ]
    cells = (
        name,
        f"{sum(work.is_certified for work in works)} of {len(works)}",
        f"{statistics.mean(work.usage.calls for work in works):.1f}",
        f"{read / len(works):,.0f}",
        f"{statistics.mean(each.output_tokens for each in tokens):,.0f}",
        f"{cached:.0%}",
        f"{statistics.median(work.seconds for work in works):.1f}",
        " → ".join(f"{mean:.1f}" for mean in found),
    )
    return f"| {' | '.join(cells)} |\n"


async def run(descriptions: tuple[str, ...]) -> None:
    """Measure all models, and print a table."""
    heads = ("model", "certified", "calls", "tokens in", "out", "cached", "seconds", "findings per turn")
    sys.stdout.write(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}\n")
    with TemporaryDirectory() as folder:
        async with on_this_machine(Path(folder)) as asked:
            sys.stdout.write(row("270 M, part by part", await measured(asked, descriptions)))
    good = good_specs()[0]
    models = {"scripted, part by part": (part_by_part(), ProviderName.GENERIC)}
    models |= {
        f"scripted, {name}": (patient(grade, good), ProviderName.ANTHROPIC) for name, grade in GRADES.items()
    }
    for name, (scenario, provider) in models.items():
        with TemporaryDirectory() as folder:
            async with scripted(Path(folder), scenario, provider) as asked:
                sys.stdout.write(row(name, await measured(asked, descriptions[:1])))


def main() -> None:
    """Measure with the descriptions of a file, or with those of this one."""
    parser = argparse.ArgumentParser(description="Write certified scenarios, and say what it takes.")
    parser.add_argument("descriptions", nargs="?", type=Path, help="a file with a description on each line")
    given = parser.parse_args()
    texts = given.descriptions.read_text("utf-8").splitlines() if given.descriptions else DESCRIPTIONS
    asyncio.run(run(tuple(texts)))


if __name__ == "__main__":
    main()
