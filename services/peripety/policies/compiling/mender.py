"""Rule repair: a model call that patches rules so that they meet failed scenarios."""

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
    """A patch that a model proposes.

    Attributes:
        operations: the operations, in order; empty if the model considers the rules correct.
        reasoning: the reason.
        model: the model, as `provider/model`.
    """

    operations: tuple[Operation, ...]
    reasoning: str
    model: str


class Mender:
    """Repairer of the rules of one batch, in one conversation over all rounds.

    Args:
        gateway: the model gateway.
        order: the written policy.
        batch: the tools.

    Attributes:
        refused: why the last patch was rejected; sent with the next request.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, batch: Batch) -> None:
        system = system_text("patches", material(order, batch.tools))
        self._conversation = conversation_about(gateway, system, order.model)
        self._schema = ResponseSchema(PATCHES, patches_schema(batch.tools))
        self.refused = ""

    async def propose(
        self, rules: Sequence[Mapping[str, Any]], problems: Iterable[ScenarioResult]
    ) -> Proposal:
        """Request a patch.

        Args:
            rules: the current rules of the batch.
            problems: the scenarios that they have to meet and do not.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
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
