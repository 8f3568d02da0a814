"""A model that changes rules in few places, so that they meet scenarios that they do not meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ResponseSchema
from peripety.policies.compiling.answers import PATCHES, patches_schema
from peripety.policies.compiling.judge import failure_document
from peripety.policies.compiling.material import as_text, conversation_about, material, system_text
from peripety.policies.compiling.patches import operations_read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.gateway.model import ModelGateway
    from peripety.policies.compiling.batches import Batch
    from peripety.policies.compiling.patches import Operation
    from peripety.policies.model import CompileOrder, ScenarioResult

__all__ = ["Mender", "Proposal"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of rules that a model wants.

    Attributes:
        operations: what to do, in order; none where it takes the rules for right.
        reasoning: why.
        model: who wants it, as `provider/model`.
    """

    operations: tuple[Operation, ...]
    reasoning: str
    model: str


class Mender:
    """Mends the rules of one batch, in a conversation over all rounds.

    Args:
        gateway: answers.
        order: the written policy.
        batch: the tools.

    Attributes:
        refused: why the last change was not made; told with the next question.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, batch: Batch) -> None:
        system = system_text("patches", material(order, batch.tools))
        self._conversation = conversation_about(gateway, system, order.model)
        self._schema = ResponseSchema(PATCHES, patches_schema(batch.tools))
        self.refused = ""

    async def propose(
        self, rules: Sequence[Mapping[str, Any]], problems: Iterable[ScenarioResult]
    ) -> Proposal:
        """Ask for a change.

        Args:
            rules: the rules of the batch as they are now.
            problems: the scenarios that they have to meet and do not.

        Raises:
            PeripetyError: what `ModelGateway.stream` raises.
        """
        question: dict[str, Any] = {"rules": [*rules], "failed": [*map(failure_document, problems)]}
        if self.refused:
            question["refused"] = self.refused
        completion = await self._conversation.send(as_text(question), schema=self._schema)
        self.refused = ""
        value = completion.value or {"operations": (), "reasoning": ""}
        return Proposal(
            operations_read(value), value["reasoning"], f"{completion.provider}/{completion.model}"
        )
