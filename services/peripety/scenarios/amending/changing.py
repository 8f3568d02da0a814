"""Proposed change of a scenario, by a model or by rules, evaluated like a new specification."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import Finding
from peripety.gateway.model import Spent
from peripety.gateway.streams import following
from peripety.scenarios.amending.bending import bent
from peripety.scenarios.amending.model import NotAmended, Proposed
from peripety.scenarios.diff import rule_edits
from peripety.scenarios.model import Draft, FoundWrong, NumbersMoved, Progress, Rewritten, Stage
from peripety.scenarios.writing.asking import Asker
from peripety.scenarios.writing.conversing import conversation_about_a_document
from peripety.scenarios.writing.judging import Judgement
from peripety.scenarios.writing.manuscript import Manuscript
from peripety.scenarios.writing.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.model import ModelGateway
    from peripety.scenarios.amending.model import AmendmentOrder
    from peripety.scenarios.writing.judging import Judge
    from peripety.scenarios.writing.writer import WritingEvent
    from peripety.sim import Program
    from peripety.workers import Worker

__all__ = ["Change", "ChangeEvent"]

_IDENTITY = ("id", "seed", "spec_version")
_NOTHING = Finding("AMENDMENT_CHANGES_NOTHING", "", "the proposal does not change the scenario")

ChangeEvent: TypeAlias = Progress | Proposed | FoundWrong | NumbersMoved | NotAmended
"""Events of a change. After a rejected change, `NotAmended` is the last one."""


class Change:
    """Change of a scenario in progress.

    Args:
        present: the present version.
        order: the order.
        judge: evaluates the changed version.
        fail_rate: the fail rate of the present version.
        worker: applies rule-based edits.

    Attributes:
        accepted: the evaluation of the changed version; None until it passes.
        spent: the model usage.
    """

    def __init__(
        self, present: Program, order: AmendmentOrder, judge: Judge, fail_rate: float, worker: Worker
    ) -> None:
        self._present = present
        self._order = order
        self._judge = judge
        self._fail_rate = fail_rate
        self._worker = worker
        self.accepted: Judgement | None = None
        self.spent = Spent()

    async def by_model(self, gateway: ModelGateway) -> AsyncIterator[ChangeEvent]:
        """Request a change from a model, and repair it until it passes.

        The system prompt is the same as for generation, so that it is in the provider's prompt cache.
        """
        spec, order = self._present.spec, self._order
        asker = Asker(order.limits, spec["seed"])
        conversation = conversation_about_a_document(gateway, order.model, order.limits)
        manuscript = Manuscript(self._judge, spec, {key: spec[key] for key in _IDENTITY})
        writer = Writer(asker, conversation, manuscript)
        yield asker.progress(Stage.AUTHORING, "requesting the change")
        question = {"scenario": spec, "instruction": order.instruction}
        async with following(writer.events(question)) as events:
            async for event in events:
                yield self._told(event)
        self.spent = asker.spent
        if writer.is_done and manuscript.judgement is not None:
            yield self._passed(manuscript.judgement)
        else:
            used_up = asker.used_up()
            yield NotAmended((*writer.findings, *([used_up] if used_up else [])), self.spent)

    async def is_understood(self) -> bool:
        """Return True if rules can make the change."""
        return not isinstance(await self._bent(), Finding)

    async def by_rules(self) -> AsyncIterator[ChangeEvent]:
        """Make the change without a model, if rules understand it."""
        yield Progress(Stage.AUTHORING, "matching the text with the scenario", 0.0)
        changed = await self._bent()
        if isinstance(changed, Finding):
            yield NotAmended((changed,), self.spent)
            return
        yield Proposed(rule_edits(self._present.spec, changed), 1, self.spent)
        judgement = await self._judge.check(changed)
        if not judgement.errors:
            async with following(self._judge.play(judgement)) as steps:
                async for step in steps:
                    if isinstance(step, Judgement):
                        judgement = step
                    else:
                        yield step
        yield NotAmended(judgement.findings, self.spent) if judgement.errors else self._passed(judgement)

    async def _bent(self) -> dict[str, Any] | Finding:
        instruction = self._order.instruction
        return await self._worker.run(bent, self._present.spec, instruction, self._fail_rate)

    def _told(self, event: WritingEvent) -> ChangeEvent:
        """Convert an event of the loop; proposals become differences to the present version."""
        if not isinstance(event, Draft | Rewritten):
            return event
        edits = rule_edits(self._present.spec, json.loads(event.document))
        return Proposed(edits, event.attempt, event.spent or Spent())

    def _passed(self, judgement: Judgement) -> ChangeEvent:
        if judgement.canonical == self._present.document:
            return NotAmended((_NOTHING,), self.spent)
        self.accepted = judgement
        return Progress(Stage.STORING, "storing the new version", 1.0, self.spent)
