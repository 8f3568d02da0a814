"""Judge of failed scenarios: a model call that attributes fault in structured fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ResponseSchema
from peripety.policies.compiling.answers import JUDGEMENT, judgement_schema, scenarios_read
from peripety.policies.compiling.blame import Attribution
from peripety.policies.compiling.material import (
    as_text,
    conversation_about,
    material,
    scenario_document,
    system_text,
)
from peripety.policies.model import Blame, Expectation, ScenarioSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.gateway.model import ModelGateway
    from peripety.policies.compiling.batches import Batch
    from peripety.policies.model import CompileOrder, ScenarioResult, TestScenario

__all__ = ["Judge", "Opinion", "failure_document"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """The response of a judge.

    Attributes:
        satisfied: True if the judge has no doubts about the rules.
        attributions: fault attributions of the failed scenarios that it was shown.
        probes: scenarios that test what it doubts.
        model: the model, as `provider/model`.
    """

    satisfied: bool
    attributions: tuple[Attribution, ...]
    probes: tuple[TestScenario, ...]
    model: str


class Judge:
    """Judge of the scenarios of one batch, in one conversation over all rounds.

    Args:
        gateway: the model gateway.
        order: the written policy.
        batch: the tools.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, batch: Batch) -> None:
        system = system_text("judge", material(order, batch.tools))
        self._conversation = conversation_about(gateway, system, order.model)
        self._schema = ResponseSchema(JUDGEMENT, judgement_schema(batch.tools))
        self._rules: Sequence[Mapping[str, Any]] | None = None

    async def judge(
        self, rules: Sequence[Mapping[str, Any]], results: Iterable[ScenarioResult], probes: int
    ) -> Opinion:
        """Show the results of scenarios and request fault attributions.

        Passed scenarios take one line each. The rules are included only if they changed.

        Args:
            rules: the current rules of the batch.
            results: the results of its scenarios.
            probes: the maximum number of probes; further ones are ignored.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        known = [*results]
        question: dict[str, Any] = {} if rules == self._rules else {"rules": [*rules]}
        question["passed"] = [_in_a_line(result) for result in known if result.passed]
        question["failed"] = [failure_document(result) for result in known if not result.passed]
        question["probes"] = probes
        completion = await self._conversation.send(as_text(question), schema=self._schema)
        self._rules = rules
        value = completion.value or {"satisfied": False, "attributions": (), "probes": ()}
        failed = {result.scenario.description for result in known if not result.passed}
        return Opinion(
            value["satisfied"],
            tuple(_attribution(told) for told in value["attributions"] if told["description"] in failed),
            scenarios_read(value["probes"][:probes], ScenarioSource.PROBE),
            f"{completion.provider}/{completion.model}",
        )


def failure_document(result: ScenarioResult) -> dict[str, Any]:
    """Return a failed scenario with the decision of the rules."""
    actual = result.actual
    decided = {"decision": actual.decision.value, "rule": actual.rule_id, "reasons": [*actual.reasons]}
    return {**scenario_document(result.scenario), "decided": decided}


def _in_a_line(result: ScenarioResult) -> str:
    decided = result.actual
    return f"{result.scenario.description}: {decided.decision.value} by {decided.rule_id or 'no rule'}"


def _attribution(told: Mapping[str, Any]) -> Attribution:
    right = told.get("corrected_decision")
    return Attribution(
        told["description"],
        Blame(told["blame"]),
        told["reasoning"],
        None if right is None else Expectation(right),
    )
