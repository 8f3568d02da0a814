"""Scenario authors of a run: one conversation per batch, for first scenarios and for replacements."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import Finding, PeripetyError, Severity
from peripety.gateway.streams import following
from peripety.policies.compiling.answers import SCENARIOS, scenarios_read, scenarios_schema
from peripety.policies.compiling.artifacts import key_of
from peripety.policies.compiling.batches import halving, in_parallel
from peripety.policies.compiling.context import is_of_answer
from peripety.policies.compiling.generator import ScenarioGeneratorSession
from peripety.policies.compiling.material import as_text, material, scenario_document, system_text
from peripety.policies.model import CompilePhase, GenerationTurn, ScenarioFeedback, ScenarioSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from peripety.policies.compiling.batches import Batch
    from peripety.policies.compiling.context import Context
    from peripety.policies.model import Progress, ScenarioCorrection, TestScenario, ToolRequest

__all__ = ["Authors", "Contribution"]

_GIVEN_UP = frozenset({"TURNS_USED_UP"})


@dataclass(frozen=True, slots=True)
class Contribution:
    """The result of one turn of an author.

    Attributes:
        batch: the tools of the scenarios.
        scenarios: the new scenarios.
        turn: usage of the turn; None for cached scenarios.
        session: the conversation; None for cached scenarios.
        feedback: the feedback that the scenarios respond to.
    """

    batch: Batch
    scenarios: tuple[TestScenario, ...]
    turn: GenerationTurn | None
    session: ScenarioGeneratorSession | None
    feedback: ScenarioFeedback = ScenarioFeedback()  # noqa: RUF009 - frozen


class Authors:
    """Pool of the scenario authors of all batches.

    Cached scenarios of equal inputs are used without a conversation. No replacements are requested for them.

    Args:
        context: the run.

    Attributes:
        contributions: the latest results, in the order of the batches.
        turns: the turns of all conversations, in that order.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sessions: dict[Batch, ScenarioGeneratorSession] = {}
        self._untold: dict[Batch, ScenarioFeedback] = {}
        self.contributions: tuple[Contribution, ...] = ()
        self.turns: tuple[GenerationTurn, ...] = ()

    async def write(self, batch: Batch) -> tuple[Contribution, ...]:
        """Write the scenarios of a batch, or of its parts if one response cannot hold them.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        context = self._context
        own = self._handwritten(batch)
        system = self._system(batch)
        schema = scenarios_schema(batch.tools)
        key = key_of(
            SCENARIOS, context.order.model, system, [*map(scenario_document, own)], schema, batch.is_all
        )
        kept = await context.artifacts.get(key)
        if kept is not None:
            scenarios = scenarios_read(json.loads(kept), ScenarioSource.GENERATED)
            return (Contribution(batch, scenarios, None, None),)
        parts = tuple(part for _, part in await halving(batch, self._begin))
        written = [scenario_document(scenario) for part in parts for scenario in part.scenarios]
        await context.artifacts.put(key, as_text(written).encode())
        return parts

    def begun(self, contributions: Sequence[Contribution]) -> None:
        """Record the first contributions, so that their authors can write replacements."""
        self.contributions = tuple(contributions)
        self._sessions = {one.batch: one.session for one in contributions if one.session is not None}
        self._untold = dict.fromkeys(self._sessions, ScenarioFeedback())
        self.turns = tuple(one.turn for one in contributions if one.turn is not None)

    def tell(self, feedback: ScenarioFeedback, scenarios: Iterable[TestScenario]) -> None:
        """Add feedback for the next turn of the authors that it concerns.

        Args:
            feedback: the feedback.
            scenarios: the scenarios that the corrections refer to.
        """
        requests = {scenario.description: scenario.request for scenario in scenarios}
        for batch, before in self._untold.items():
            self._untold[batch] = ScenarioFeedback(
                (
                    *before.corrections,
                    *(one for one in feedback.corrections if _about(batch, requests, one)),
                ),
                (
                    *before.discarded,
                    *(one for one in feedback.discarded if batch.has(one.scenario.request)),
                ),
                (*before.probes, *(one for one in feedback.probes if batch.has(one.request))),
            )

    @property
    def are_wanted(self) -> bool:
        """Return True if an author has to write replacements."""
        return any(map(self._needs_turn, self._untold.values()))

    async def replace(self) -> AsyncIterator[Progress]:
        """Write replacements in all conversations with open feedback; the results are in `contributions`.

        An author without a valid response or without turns left contributes nothing.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        asked = [(batch, part) for batch, part in self._untold.items() if self._needs_turn(part)]
        self._untold |= dict.fromkeys((batch for batch, _ in asked), ScenarioFeedback())
        turns = [self._sessions[batch].regenerate(part) for batch, part in asked]
        written: dict[int, Contribution] = {}
        async with following(in_parallel(turns)) as answers:
            async for number, answer in answers:
                batch, part = asked[number]
                session = self._sessions[batch]
                if not isinstance(answer, PeripetyError):
                    written[number] = Contribution(batch, answer, session.turns[-1], session, part)
                elif is_of_answer(answer) or answer.code in _GIVEN_UP:
                    message = f"about {batch.name}: {answer.message}"
                    self._context.warn(Finding("NOT_REPLACED", "", message, Severity.WARNING))
                else:
                    raise answer
                share = (len(written) + 1) / (len(asked) + 1)
                message = f"more scenarios for {batch.name}"
                yield self._context.progress(CompilePhase.REPAIRING, message, share)
        self.contributions = tuple(written[number] for number in sorted(written))
        self.turns += tuple(one.turn for one in self.contributions if one.turn is not None)

    def _needs_turn(self, feedback: ScenarioFeedback) -> bool:
        """Return True if replacements are needed; corrections alone are applied in place."""
        again = self._context.order.replace_corrected and feedback.corrections
        return bool(feedback.discarded or feedback.probes or again)

    async def _begin(self, batch: Batch) -> Contribution:
        order = self._context.order
        own = self._handwritten(batch)
        session = ScenarioGeneratorSession(
            self._context.gateway,
            self._system(batch),
            batch.tools,
            handwritten=own,
            model=order.model,
            max_turns=order.limits.turns,
            replace_corrected=order.replace_corrected,
        )
        scenarios = await session.generate()
        return Contribution(batch, scenarios[len(own) :], session.turns[-1], session)

    def _system(self, batch: Batch) -> str:
        return system_text("scenarios", material(self._context.order, batch.tools))

    def _handwritten(self, batch: Batch) -> tuple[TestScenario, ...]:
        return tuple(one for one in self._context.order.handwritten if batch.has(one.request))


def _about(batch: Batch, requests: Mapping[str, ToolRequest], correction: ScenarioCorrection) -> bool:
    request = requests.get(correction.scenario_description)
    return request is not None and batch.has(request)
