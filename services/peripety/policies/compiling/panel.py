"""Pool of judges, one per batch: their attributions in a round, and their probes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.gateway.streams import following
from peripety.policies.compiling.batches import in_parallel
from peripety.policies.compiling.blame import Ruling, ruling
from peripety.policies.compiling.context import ENGINE, by_model, is_of_answer
from peripety.policies.compiling.judge import Judge, Opinion
from peripety.policies.compiling.merging import request_key
from peripety.policies.compiling.suite import fared
from peripety.policies.model import (
    Blame,
    CompilePhase,
    Expectation,
    Judgement,
    ScenariosWritten,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from peripety.policies.compiling.blame import Attribution
    from peripety.policies.compiling.context import Context
    from peripety.policies.compiling.document import Rulebook
    from peripety.policies.compiling.suite import Suite
    from peripety.policies.model import AuditEntry, CompileEvent, ScenarioResult, TestScenario
    from peripety.sim import Policy

__all__ = ["Panel"]


class Panel:
    """Pool of judges, each with a conversation over all rounds.

    Args:
        context: the run.
        suite: its scenarios; probes are added to them.

    Attributes:
        ruling: the resolved attributions of the last round.
        probes: the probes of the last round, as examples for the scenario authors.
        contested: rejected corrections of all rounds, by the description of the scenario.
        doubted: whether the judge of a batch doubted the rules in its last response.
    """

    def __init__(self, context: Context, suite: Suite) -> None:
        self._context = context
        self._suite = suite
        self._judges: dict[int, Judge] = {}
        self._opinions: tuple[Opinion, ...] = ()
        self._fresh: tuple[ScenarioResult, ...] = ()
        self.ruling = Ruling()
        self.doubted: dict[int, bool] = {}
        self.contested: dict[str, Attribution] = {}
        self.probes: tuple[TestScenario, ...] = ()

    async def hear(
        self, book: Rulebook, policy: Policy, results: Iterable[ScenarioResult], rounds: int
    ) -> AsyncIterator[CompileEvent]:
        """Request attributions, run the probes of the judges in rounds, and resolve the attributions.

        Args:
            book: the rules.
            policy: the same, compiled.
            results: the scenarios to show; those of batches that are not judged now are left out.
            rounds: the maximum number of probe rounds.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        most = self._context.order.limits.probes
        shown = tuple(results)
        failures = [result for result in shown if not result.passed]
        words: dict[str, _Word] = {}
        self.probes = ()
        for number in range(max(rounds, 1)):
            probes = most if number < rounds else 0
            async with following(self._ask(book, shown, probes)) as steps:
                async for step in steps:
                    yield step
            for opinion in self._opinions:
                for attribution in opinion.attributions:
                    words.setdefault(attribution.description, _Word(attribution, opinion.model))
            async with following(self._probe(policy, probes)) as steps:
                async for step in steps:
                    yield step
            shown = self._fresh
            if not shown:
                break
            failures += [result for result in shown if not result.passed]
        for entry in self._rule(failures, words):
            yield entry

    async def _ask(
        self, book: Rulebook, results: Sequence[ScenarioResult], probes: int
    ) -> AsyncIterator[CompileEvent]:
        """Send the results to the judges of their batches."""
        of_place: dict[int, list[ScenarioResult]] = defaultdict(list)
        for result in results:
            of_place[book.place_of(result.scenario.request)].append(result)
        places = sorted(of_place)
        asked = [
            self._judge(place, book).judge(book.sections[place].rules, of_place[place], probes)
            for place in places
        ]
        heard: dict[int, Opinion] = {}
        async with following(in_parallel(asked)) as answers:
            async for number, answer in answers:
                name = book.sections[places[number]].batch.name
                if isinstance(answer, Opinion):
                    heard[number] = answer
                elif is_of_answer(answer):
                    message = f"about {name}: {answer.message}"
                    self._context.warn(Finding("JUDGE_SILENT", "", message, Severity.WARNING))
                else:
                    raise answer
                share = len(heard) / len(places)
                yield self._context.progress(CompilePhase.JUDGING, f"{name} is judged", share)
        self._opinions = tuple(heard[number] for number in sorted(heard))
        self.doubted |= {places[number]: not opinion.satisfied for number, opinion in heard.items()}

    def _judge(self, place: int, book: Rulebook) -> Judge:
        if place not in self._judges:
            context = self._context
            self._judges[place] = Judge(context.gateway, context.order, book.sections[place].batch)
        return self._judges[place]

    async def _probe(self, policy: Policy, most: int) -> AsyncIterator[CompileEvent]:
        """Add probes, alternating between the judges, and run them.

        A probe that expects `allow` where the rules do not is not added: the judge alone would widen the
        rules. It is a hint for the scenario author, who decides.
        """
        probes = [
            (probe, opinion.model)
            for each in zip_longest(*(opinion.probes for opinion in self._opinions))
            for probe, opinion in zip(each, self._opinions, strict=True)
            if probe is not None
        ][:most]
        models = {request_key(probe.request): model for probe, model in probes}
        found = self._suite.sift(probe for probe, _ in probes)
        for discarded in found.discarded:
            yield self._context.note(ENGINE, discarded)
        results = await asyncio.to_thread(fared, policy, found.kept)
        self.probes += found.kept
        self._fresh = ()
        for result in results:
            scenario = result.scenario
            if result.passed or scenario.expected_decision is not Expectation.ALLOW:
                self._fresh += (result,)
                continue
            judgement = Judgement(scenario.description, Blame.RULE, scenario.reasoning, overruled=True)
            yield self._context.note(by_model(models[request_key(scenario.request)]), judgement)
        fresh = tuple(result.scenario for result in self._fresh)
        self._suite.take(fresh)
        if fresh:
            yield ScenariosWritten(fresh)

    def _rule(self, failures: Iterable[ScenarioResult], words: Mapping[str, _Word]) -> Iterator[AuditEntry]:
        """Resolve the attributions, and add them to the audit log."""
        self.ruling = ruling(failures, (word.attribution for word in words.values()))
        for warning in self.ruling.warnings:
            self._context.warn(warning)
        self.contested |= {scenario.description: word for scenario, word in self.ruling.contested}
        for judgement in self.ruling.judgements:
            yield self._context.note(by_model(words[judgement.scenario_description].model), judgement)
        for correction in self.ruling.corrections:
            yield self._context.note(by_model(words[correction.scenario_description].model), correction)


@dataclass(frozen=True, slots=True)
class _Word:
    """An attribution, with the model that made it."""

    attribution: Attribution
    model: str
